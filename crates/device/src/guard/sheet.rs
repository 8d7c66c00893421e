//! What the guard itself reads on the checkout sheet, without the help of a rule pack.
//!
//! It is asked before an order may be created and before digits are typed; a sheet it cannot read gives no permit.

use super::patterns::normalise;
use crate::tree::{Bounds, Node, NodeId, UiTree};

/// The facts of the sheet that an order depends on. Two looks must give the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) submit: NodeId,
    pub(super) submit_bounds: Bounds,
    /// Fen on the submit button.
    pub(super) total_cent: u64,
    /// The row that says how it will be paid, normalised.
    pub(super) payment_row: String,
    /// The number in the quantity field.
    pub(super) quantity: u64,
    /// The 已选 line, normalised.
    pub(super) chosen: String,
    /// Labels of everything selected, normalised.
    pub(super) selected: Vec<String>,
}

/// What could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Submit,
    Amount,
    PaymentRow,
    Quantity,
    Chosen,
}

impl Sheet {
    pub(super) fn read(tree: &UiTree) -> Result<Sheet, Unreadable> {
        // Only a label that is this word and an amount: `提交并支付` and its kind pay, and there is no permit for them.
        let submit = only(tree, |node| is_plain_submit(node.label())).ok_or(Unreadable::Submit)?;
        let total_cent = amount(submit.label()).ok_or(Unreadable::Amount)?;
        let row = only(tree, |node| normalise(node.label()).contains("更换支付方式")).ok_or(Unreadable::PaymentRow)?;
        let field = quantity_fields(tree).next().ok_or(Unreadable::Quantity)?;
        let quantity = field.text().trim().parse().map_err(|_| Unreadable::Quantity)?;
        let chosen = only(tree, |node| normalise(node.label()).starts_with("已选")).ok_or(Unreadable::Chosen)?;
        let mut selected: Vec<String> = tree.nodes().filter(Node::selected).map(|node| normalise(node.label())).collect();
        selected.sort();
        selected.dedup();
        Ok(Sheet {
            submit: submit.id(),
            submit_bounds: submit.bounds(),
            total_cent,
            payment_row: normalise(row.label()),
            quantity,
            chosen: normalise(chosen.label()),
            selected,
        })
    }

    /// Whether a choice is both selected and named by the 已选 line (facts/pdd 8.5).
    pub(super) fn has_chosen(&self, value: &str) -> bool {
        let value = normalise(value);
        // A chip may carry its price: `丝杠组合 ¥51`.
        let is_value = |label: &String| label.strip_prefix(&value).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
        !value.is_empty() && self.chosen.contains(&value) && self.selected.iter().any(is_value)
    }
}

/// The one node that fits; none when several do, because which one counts would be a guess.
fn only<'t>(tree: &'t UiTree, fits: impl Fn(&Node<'t>) -> bool) -> Option<Node<'t>> {
    let mut found = tree.nodes().filter(|node| fits(node) && !node.bounds().is_empty());
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn is_plain_submit(label: &str) -> bool {
    normalise(label).strip_prefix("提交订单").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

/// Fen after the one yen sign of a label: digits and at most two decimals, nothing behind them.
fn amount(label: &str) -> Option<u64> {
    let (_, digits) = label.split_once(['¥', '￥'])?;
    let (yuan, fen) = digits.trim().split_once('.').unwrap_or((digits.trim(), ""));
    let number = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<u64>().ok()).flatten();
    let yuan = number(yuan)?;
    let fen = match fen.len() {
        0 => 0,
        1 => number(fen)? * 10,
        2 => number(fen)?,
        _ => return None,
    };
    yuan.checked_mul(100)?.checked_add(fen)
}

/// The field between 减少数量 and 增加数量, when it has the focus and nothing else has.
pub(super) fn is_quantity_field(node: Node<'_>) -> bool {
    let tree = node.tree();
    let is_field = quantity_fields(tree).any(|field| field.id() == node.id());
    is_field && node.focused() && tree.nodes().filter(Node::focused).count() == 1
}

fn quantity_fields(tree: &UiTree) -> impl Iterator<Item = Node<'_>> {
    let named = |word: &str| only(tree, |node| normalise(node.label()) == word).map(|node| node.bounds());
    let steppers = named("减少数量").zip(named("增加数量"));
    tree.nodes().filter(move |node| {
        steppers.is_some_and(|(minus, plus)| {
            let (at, row) = (node.bounds().center(), minus.center().y);
            node.class().ends_with("EditText")
                && (minus.center().x..plus.center().x).contains(&at.x)
                && (at.y - row).abs() <= minus.height()
                && (plus.center().y - row).abs() <= minus.height()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        let rows = [
            ("提交订单 ¥69", Some(6900)),
            ("提交订单￥69.5", Some(6950)),
            ("提交订单 ¥ 69.05", Some(6905)),
            ("提交订单", None),
            ("提交订单 ¥", None),
            ("提交订单 ¥1.234", None),
            ("提交订单 ¥69起", None),
            ("提交订单 ¥1 ¥2", None),
            ("提交订单 ¥-1", None),
            ("提交订单 ¥99999999999999999999", None),
        ];
        for (label, want) in rows {
            assert_eq!(amount(label), want, "read exactly or not at all: {label:?}");
        }
    }
}
