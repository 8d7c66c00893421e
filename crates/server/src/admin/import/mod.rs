//! Many tasks from one list (D19): every row is checked, then all of them are made in one transaction, or none. A second upload makes nothing:
//! its key is known, or its `external_ref`s are.

mod sheet;
mod words;

use std::collections::HashMap;

use cmautobuy_protocol::admin::{CreateTask, ImportReport, ImportRow, RowOutcome};
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{IdempotencyKey, RemoteTaskId};

use super::tasks::{check_task, insert};
use super::{Admin, decoding};
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::store::import::{import_get, import_insert};
use crate::store::task::{task_by_external_ref, task_get};
use sheet::{Cell, Line};
use words::{Column, WORDS};

/// Largest list, in bytes.
pub const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;

/// What a row says: a task, or the cell at fault and what to do.
type Read = Result<CreateTask, (Option<usize>, String)>;

struct Header {
    names: Vec<String>,
    columns: Vec<Option<Column>>,
}

impl Admin<'_> {
    /// Makes the tasks of a CSV or XLSX list: all of them, or none when any row is refused. Without a key the list's own bytes are the key, so
    /// that the same file sent twice makes its tasks once. A dry run checks everything and keeps nothing.
    ///
    /// # Errors
    /// 422 `MALFORMED` when the list as a whole cannot be read; 409 `IDEMPOTENCY_CONFLICT`. A bad row is no error but a row of the report.
    pub fn import_tasks(&self, list: &[u8], dry_run: bool, key: Option<&IdempotencyKey>) -> Result<ImportReport, CallError> {
        if list.len() > MAX_LIST_BYTES {
            return Err(Refusal::malformed(format!("the list is larger than {} MiB; send it in parts", MAX_LIST_BYTES >> 20)).into());
        }
        let sha256 = sha256_hex(list);
        let key = key.map_or(sha256.as_str(), |key| key.as_str());
        let lines = decoding("list", || sheet::read(list))?;
        let header = read_header(&lines[0])?;
        let rows: Vec<(u32, Read)> = lines[1..].iter().map(|line| (line.number, read_row(&header, line))).collect();
        let unknown_columns = header.unknown();
        let report = |call: Call<'_>| {
            let mut report = ImportReport {
                dry_run,
                repeated: false,
                created: 0,
                exists: 0,
                refused: 0,
                unknown_columns: unknown_columns.clone(),
                rows: judge(call, &header, &rows)?,
            };
            for row in &report.rows {
                match row.outcome {
                    RowOutcome::Created => report.created += 1,
                    RowOutcome::Exists => report.exists += 1,
                    RowOutcome::Refused => report.refused += 1,
                }
            }
            Ok::<_, CallError>(report)
        };
        if dry_run {
            return self.house.read(report);
        }
        self.house.write(|call| {
            if let Some((before, text)) = import_get(call.tx, self.actor, key)? {
                return if before == sha256 { Ok(ImportReport { repeated: true, ..text }) } else { Err(Refusal::key_reused().into()) };
            }
            let mut report = report(call)?;
            if report.refused > 0 {
                return Ok(ImportReport { created: 0, ..report });
            }
            for (row, (_, read)) in report.rows.iter_mut().zip(&rows) {
                if let (RowOutcome::Created, Ok(asked)) = (row.outcome, read) {
                    row.task_id = Some(insert(call, self.actor, asked, &check_task(asked)?)?);
                }
            }
            import_insert(call.tx, self.actor, key, &sha256, &report, call.now)?;
            tracing::info!(actor = %self.actor, created = report.created, exists = report.exists, "list of tasks taken");
            Ok(report)
        })
    }
}

/// An empty list with the names of all columns, as CSV a spreadsheet opens rightly. `chinese` chooses the names.
pub fn list_template(chinese: bool) -> String {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(vec![0xef, 0xbb, 0xbf]);
    let written = writer.write_record(WORDS.header(usize::from(chinese)));
    let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

impl Header {
    fn place_of(&self, column: Column) -> Option<usize> {
        self.columns.iter().position(|known| *known == Some(column))
    }

    fn unknown(&self) -> Vec<String> {
        let named = self.names.iter().zip(&self.columns).filter(|(name, column)| column.is_none() && !name.is_empty());
        named.map(|(name, _)| name.clone()).collect()
    }
}

fn read_header(line: &Line) -> Result<Header, Refusal> {
    let mut header = Header { names: Vec::new(), columns: Vec::new() };
    for cell in &line.cells {
        let name = match cell {
            Cell::Text(text) => text.clone(),
            Cell::Empty | Cell::Unusable(_) => String::new(),
        };
        let column = WORDS.column(&name);
        if column.is_some() && header.columns.contains(&column) {
            return Err(Refusal::malformed(format!("the column `{name}` is there twice; keep one")));
        }
        header.names.push(name);
        header.columns.push(column);
    }
    if header.place_of(Column::GoodsUrl).is_some() {
        Ok(header)
    } else {
        let known = WORDS.header(0).join(", ");
        Err(Refusal::malformed(format!(
            "the first line names no column `goods_url`; `autobuy-server task template` writes one. Known: {known}"
        )))
    }
}

fn read_row(header: &Header, line: &Line) -> Read {
    let mut asked = CreateTask::collect(String::new());
    let mut was_typed = false;
    for (at, cell) in line.cells.iter().enumerate() {
        let Some(column) = header.columns.get(at).copied().flatten() else { continue };
        let text = match cell {
            Cell::Empty => continue,
            Cell::Unusable(why) => return Err((Some(at), (*why).to_owned())),
            Cell::Text(text) => text.as_str(),
        };
        was_typed |= column == Column::TaskType;
        read_cell(&mut asked, column, text).map_err(|why| (Some(at), why))?;
    }
    if asked.goods_url.is_empty() {
        return Err((header.place_of(Column::GoodsUrl), "there is no link to the goods".to_owned()));
    }
    // A row that says how many to buy and not that it is to buy would be collected, and nobody would see why nothing came.
    if !was_typed && asked.quantity.is_some() {
        return Err((None, "the row has a quantity and no task type; say purchase or collect".to_owned()));
    }
    match check_task(&asked) {
        Ok(_) => Ok(asked),
        Err(refusal) => Err((None, refusal.message)),
    }
}

fn read_cell(asked: &mut CreateTask, column: Column, text: &str) -> Result<(), String> {
    match column {
        Column::TaskType => asked.task_type = WORDS.task_type(text)?,
        Column::ExecutionMode => asked.execution_mode = WORDS.execution_mode(text)?,
        Column::GoodsUrl => asked.goods_url = goods_url(text),
        Column::Title => asked.title = Some(text.to_owned()),
        Column::TargetColor => asked.target_color = Some(text.to_owned()),
        Column::TargetSize => asked.target_size = Some(text.to_owned()),
        Column::Price => asked.price_cent = Some(cents(text)?),
        Column::MaxPrice => asked.max_price_cent = Some(cents(text)?),
        Column::Quantity => asked.quantity = Some(text.parse().map_err(|_| format!("`{text}` is no whole number above zero"))?),
        Column::Priority => asked.priority = text.parse().map_err(|_| format!("`{text}` is no whole number"))?,
        Column::ExternalRef => asked.external_ref = Some(text.to_owned()),
    }
    Ok(())
}

/// A list may hold the goods' number alone.
fn goods_url(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("https://mobile.yangkeduo.com/goods.html?goods_id={text}");
    }
    text.to_owned()
}

/// Yuan with at most two places, exactly.
fn cents(text: &str) -> Result<u64, String> {
    let bare = WORDS.currency_signs.iter().find_map(|sign| text.strip_prefix(sign.as_str())).unwrap_or(text).trim();
    let blame = || format!("`{text}` is no amount in yuan such as 12.90");
    let (yuan, places) = bare.split_once('.').unwrap_or((bare, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if yuan.is_empty() || !digits(yuan) || !digits(places) || places.len() > 2 || bare.ends_with('.') {
        return Err(blame());
    }
    let yuan: u64 = yuan.parse().map_err(|_| blame())?;
    let places: u64 = format!("{places:0<2}").parse().map_err(|_| blame())?;
    yuan.checked_mul(100).and_then(|cents| cents.checked_add(places)).ok_or_else(blame)
}

/// What one row comes to.
enum Verdict {
    Created,
    Exists(RemoteTaskId),
    /// The cell at fault by its place in the header, the task in the way, and what to do.
    Refused(Option<usize>, Option<RemoteTaskId>, String),
}

/// What each row comes to beside the tasks that are there and the rows above it.
fn judge(call: Call<'_>, header: &Header, rows: &[(u32, Read)]) -> Result<Vec<ImportRow>, CallError> {
    let mut above = HashMap::new();
    let mut judged = Vec::with_capacity(rows.len());
    for (number, read) in rows {
        let (outcome, task_id, at, message) = match judge_row(call, header, *number, read, &mut above)? {
            Verdict::Created => (RowOutcome::Created, None, None, None),
            Verdict::Exists(task) => (RowOutcome::Exists, Some(task), None, None),
            Verdict::Refused(at, task, message) => (RowOutcome::Refused, task, at, Some(message)),
        };
        let external_ref = read.as_ref().ok().and_then(|asked| asked.external_ref.clone());
        let column = at.and_then(|at| header.names.get(at).cloned());
        judged.push(ImportRow { row: *number, outcome, task_id, external_ref, column, message });
    }
    Ok(judged)
}

fn judge_row<'r>(
    call: Call<'_>,
    header: &Header,
    number: u32,
    read: &'r Read,
    above: &mut HashMap<&'r str, u32>,
) -> Result<Verdict, CallError> {
    let asked = match read {
        Ok(asked) => asked,
        Err((at, message)) => return Ok(Verdict::Refused(*at, None, message.clone())),
    };
    let Some(external_ref) = asked.external_ref.as_deref() else { return Ok(Verdict::Created) };
    let at = header.place_of(Column::ExternalRef);
    if let Some(above) = above.insert(external_ref, number) {
        return Ok(Verdict::Refused(at, None, format!("row {above} has the same external_ref; give each row its own")));
    }
    let Some(task) = task_by_external_ref(call.tx, external_ref)? else { return Ok(Verdict::Created) };
    if task_get(call.tx, task)?.is_some_and(|present| present.asked == *asked) {
        return Ok(Verdict::Exists(task));
    }
    let message = format!("task {task} has this external_ref and asks for something else; to ask for this as well, give it another");
    Ok(Verdict::Refused(at, Some(task), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yuan_are_read_exactly_or_not_at_all() {
        let rows = [
            ("12", Some(1200)),
            ("12.9", Some(1290)),
            ("12.90", Some(1290)),
            ("0", Some(0)),
            ("0.05", Some(5)),
            ("\u{a5}8.80", Some(880)),
            ("\u{ffe5} 8.80", Some(880)),
            ("12.905", None),
            ("12.", None),
            (".5", None),
            ("-1", None),
            ("1,200", None),
            ("1e3", None),
            ("99999999999999999999", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(cents(text).ok(), expected, "`{text}`: a price is never guessed");
        }
    }

    #[test]
    fn the_template_is_a_list_whose_columns_are_all_known() {
        for chinese in [false, true] {
            let list = format!("{}https://x/goods.html?goods_id=1", list_template(chinese));
            let lines = sheet::read(list.as_bytes()).expect("a template with a row below it must be readable");
            let header = read_header(&lines[0]).expect("the template must name what is needed");
            assert_eq!(header.unknown(), Vec::<String>::new(), "every column of the template is known (chinese: {chinese})");
            assert_eq!(header.columns.len(), 11, "and all of them are there");
        }
    }
}
