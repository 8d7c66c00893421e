//! Table `tasks` as an administrator lists it: any filters together, newest first, a page at a time.

use cmautobuy_protocol::admin::TaskSummary;
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::{DeviceId, ExecutionMode, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime};
use rusqlite::types::Value;
use rusqlite::{ToSql, params_from_iter};

use super::task::{SUMMARY, decode_summary};
use super::{StoreError, Tx};

/// Which tasks; `None` is any.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskFilter<'a> {
    pub(crate) status: Option<ServerStatus>,
    pub(crate) task_type: Option<TaskType>,
    pub(crate) execution_mode: Option<ExecutionMode>,
    pub(crate) device: Option<DeviceId>,
    pub(crate) user: Option<UserId>,
    pub(crate) external_ref: Option<&'a str>,
    pub(crate) goods_id: Option<GoodsId>,
    /// Part of the title.
    pub(crate) title: Option<&'a str>,
    pub(crate) created_from: Option<WireTime>,
    pub(crate) created_before: Option<WireTime>,
    pub(crate) cancel_requested: Option<bool>,
    pub(crate) order_may_exist: Option<bool>,
    pub(crate) held: Option<bool>,
}

impl TaskFilter<'_> {
    /// The conditions asked for and their values. A condition that is not asked for is not in the text, so that the one that is gets its index.
    fn conditions(&self) -> Vec<(&'static str, Option<Value>)> {
        let text = |text: String| Some(Value::Text(text));
        let mut list = Vec::new();
        let mut asked = |is: Option<Option<Value>>, sql| list.extend(is.map(|value| (sql, value)));
        asked(self.status.map(|v| text(v.as_str().to_owned())), "t.status = ?");
        asked(self.task_type.map(|v| text(v.as_str().to_owned())), "t.task_type = ?");
        asked(self.execution_mode.map(|v| text(v.as_str().to_owned())), "t.execution_mode = ?");
        asked(self.device.map(|v| text(v.to_string())), "t.device_id = ?");
        asked(self.user.map(|v| text(v.to_string())), "t.user_id = ?");
        asked(self.external_ref.map(|v| text(v.to_owned())), "t.external_ref = ?");
        asked(self.goods_id.as_ref().map(|v| text(v.as_str().to_owned())), "t.goods_id = ?");
        asked(self.title.map(|v| text(v.to_owned())), "instr(lower(t.title), lower(?)) > 0");
        asked(self.created_from.map(|v| text(v.to_string())), "t.created_at >= ?");
        asked(self.created_before.map(|v| text(v.to_string())), "t.created_at < ?");
        asked(self.cancel_requested.filter(|v| *v).map(|_| None), "t.cancel_requested_at IS NOT NULL");
        asked(self.cancel_requested.filter(|v| !*v).map(|_| None), "t.cancel_requested_at IS NULL");
        asked(self.order_may_exist.filter(|v| *v).map(|_| None), "t.order_may_exist = 1");
        asked(self.order_may_exist.filter(|v| !*v).map(|_| None), "t.order_may_exist = 0");
        asked(self.held.filter(|v| *v).map(|_| None), "t.held_at IS NOT NULL");
        asked(self.held.filter(|v| !*v).map(|_| None), "t.held_at IS NULL");
        list
    }

    fn statement(&self, after: Option<(WireTime, RemoteTaskId)>, limit: u32) -> (String, Vec<Value>) {
        let mut wheres = vec!["1"];
        let mut values = Vec::new();
        for (sql, value) in self.conditions() {
            wheres.push(sql);
            values.extend(value);
        }
        if let Some((at, id)) = after {
            wheres.push("(t.created_at, t.task_id) < (?, ?)");
            values.extend([Value::Text(at.to_string()), Value::Text(id.to_string())]);
        }
        values.push(Value::Integer(limit.into()));
        let wheres = wheres.join(" AND ");
        (format!("SELECT {SUMMARY} FROM tasks t WHERE {wheres} ORDER BY t.created_at DESC, t.task_id DESC LIMIT ?"), values)
    }
}

/// Newest first, from below `after` on.
pub(crate) fn task_list(
    tx: &Tx<'_>,
    filter: &TaskFilter<'_>,
    after: Option<(WireTime, RemoteTaskId)>,
    limit: u32,
) -> Result<Vec<TaskSummary>, StoreError> {
    let (sql, values) = filter.statement(after, limit);
    let mut read = tx.0.prepare_cached(&sql)?;
    let rows = read.query_map(params_from_iter(values.iter().map(|value| value as &dyn ToSql)), decode_summary)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn every_list_is_read_from_an_index_in_its_order() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (store, ()) = Store::open(&dir.path().join("db"), |_| Ok::<_, StoreError>(())).expect("an empty database");
        let at: WireTime = "2026-03-02T08:00:00.000Z".parse().expect("a time");
        let id = || "018f3c2a-0000-7000-8000-00000000d001";
        let none = TaskFilter::default;
        let rows = [
            ("all", none(), "tasks_newest"),
            ("status", TaskFilter { status: Some(ServerStatus::Pending), ..none() }, "tasks_by_status"),
            ("device", TaskFilter { device: Some(id().parse().expect("an id")), ..none() }, "tasks_by_device"),
            ("user", TaskFilter { user: Some(id().parse().expect("an id")), ..none() }, "tasks_by_user"),
            ("external_ref", TaskFilter { external_ref: Some("x"), ..none() }, "sqlite_autoindex_tasks"),
            ("goods", TaskFilter { goods_id: Some("1".parse().expect("an id")), ..none() }, "tasks_by_goods"),
            ("from", TaskFilter { created_from: Some(at), created_before: Some(at), ..none() }, "tasks_newest"),
            ("to cancel", TaskFilter { cancel_requested: Some(true), ..none() }, "tasks_to_cancel"),
            ("held", TaskFilter { held: Some(true), ..none() }, "tasks_held"),
            ("doubt", TaskFilter { order_may_exist: Some(true), ..none() }, "tasks_with_doubt"),
        ];
        for (name, filter, index) in rows {
            for after in [None, Some((at, id().parse().expect("an id")))] {
                let (sql, values) = filter.statement(after, 51);
                let plan = store.read(|tx| {
                    let mut explain = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                    let lines = explain.query_map(params_from_iter(values.iter()), |row| row.get::<_, String>("detail"))?;
                    Ok::<_, StoreError>(lines.collect::<Result<Vec<_>, _>>()?)
                });
                let plan = plan.expect("every statement must be good SQL");
                let first = plan.first().expect("a plan has a first line");
                assert!(first.contains(index), "{name} (cursor: {}): it must walk {index}, not {first}", after.is_some());
                let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE FOR ORDER BY"));
                assert!(!sorts || name == "external_ref", "{name}: a page must not sort the whole table first: {plan:?}");
            }
        }
    }
}
