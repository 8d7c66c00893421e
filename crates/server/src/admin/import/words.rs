//! The words a list of tasks may use, from `resources/task-list.toml`: people write their lists in their own language.

use std::sync::LazyLock;

use cmautobuy_protocol::{ExecutionMode, TaskType};
use serde::Deserialize;

/// A column a list may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    TaskType,
    ExecutionMode,
    GoodsUrl,
    Title,
    TargetColor,
    TargetSize,
    Price,
    MaxPrice,
    Quantity,
    Priority,
    ExternalRef,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    pub(super) currency_signs: Vec<String>,
    columns: Columns,
    task_type: TaskTypes,
    execution_mode: Modes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Columns {
    task_type: Vec<String>,
    execution_mode: Vec<String>,
    goods_url: Vec<String>,
    title: Vec<String>,
    target_color: Vec<String>,
    target_size: Vec<String>,
    price: Vec<String>,
    max_price: Vec<String>,
    quantity: Vec<String>,
    priority: Vec<String>,
    external_ref: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTypes {
    collect: Vec<String>,
    purchase: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Modes {
    dry_run: Vec<String>,
    live: Vec<String>,
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    // A test reads it, so a build whose words cannot be read is never shipped.
    toml::from_str(include_str!("../../../resources/task-list.toml")).expect("resources/task-list.toml must be what words.rs reads")
});

impl Words {
    fn columns(&self) -> [(Column, &[String]); 11] {
        let names = &self.columns;
        [
            (Column::TaskType, &names.task_type),
            (Column::ExecutionMode, &names.execution_mode),
            (Column::GoodsUrl, &names.goods_url),
            (Column::Title, &names.title),
            (Column::TargetColor, &names.target_color),
            (Column::TargetSize, &names.target_size),
            (Column::Price, &names.price),
            (Column::MaxPrice, &names.max_price),
            (Column::Quantity, &names.quantity),
            (Column::Priority, &names.priority),
            (Column::ExternalRef, &names.external_ref),
        ]
    }

    pub(super) fn column(&self, name: &str) -> Option<Column> {
        find(&self.columns().map(|(column, names)| (names, column)), name)
    }

    pub(super) fn task_type(&self, word: &str) -> Result<TaskType, String> {
        one_of(&[(&self.task_type.collect, TaskType::Collect), (&self.task_type.purchase, TaskType::Purchase)], word)
    }

    pub(super) fn execution_mode(&self, word: &str) -> Result<ExecutionMode, String> {
        one_of(&[(&self.execution_mode.dry_run, ExecutionMode::DryRun), (&self.execution_mode.live, ExecutionMode::Live)], word)
    }

    /// The header line of a list; `language` 0 is English, 1 Chinese.
    pub(super) fn header(&self, language: usize) -> Vec<&str> {
        self.columns().into_iter().filter_map(|(_, names)| names.get(language).or(names.first())).map(String::as_str).collect()
    }
}

fn find<T: Copy>(groups: &[(&[String], T)], text: &str) -> Option<T> {
    let text = text.trim().to_lowercase();
    groups.iter().find(|(words, _)| words.contains(&text)).map(|(_, what)| *what)
}

/// Like [`find`], or which words there are, in both languages.
fn one_of<T: Copy>(groups: &[(&[String], T)], word: &str) -> Result<T, String> {
    find(groups, word).ok_or_else(|| {
        let known: Vec<_> = groups.iter().flat_map(|(words, _)| words.iter().take(2)).map(String::as_str).collect();
        format!("`{word}` is not known here; use one of: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_no_two_columns_share_one() {
        let mut seen = std::collections::BTreeSet::new();
        for (column, names) in WORDS.columns() {
            assert!(names.len() >= 2, "{column:?} needs an English and a Chinese name, because the template is written in both");
            for name in names {
                assert_eq!(WORDS.column(&format!(" {} ", name.to_uppercase())), Some(column), "{name}: case and spaces do not matter");
                assert!(seen.insert(name.clone()), "{name} must name one column only");
            }
        }
        assert_eq!(WORDS.task_type("Purchase"), Ok(TaskType::Purchase), "the protocol's own words are known");
        assert_eq!(WORDS.execution_mode("live"), Ok(ExecutionMode::Live), "the protocol's own words are known");
        let refused = WORDS.execution_mode("lives").expect_err("half a word is none");
        assert!(refused.contains("live") && refused.contains("dry_run"), "and the refusal says which there are: {refused}");
    }
}
