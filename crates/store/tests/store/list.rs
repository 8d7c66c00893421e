//! The task list, and hiding tasks from it (03 §3.1).

use cmautobuy_protocol::TaskType;
use cmautobuy_store::{DeleteBlock, LocalTaskId, Page, StoreError, TaskFilter};
use cmautobuy_task::{Event, TaskState};
use serde_json::json;

use crate::support::{Bench, at, remote};

async fn ids(bench: &Bench, filter: TaskFilter, page: Page) -> Vec<i64> {
    bench.store.read(move |r| r.task_list(&filter, page)).await.expect("readable").iter().map(|t| t.id.0).collect()
}

const ALL: Page = Page { limit: 100, before: None };

/// Tasks 1 to 7 in several states; each ended one with its report delivered.
async fn mixed() -> Bench {
    let bench = Bench::new();
    for (n, event) in [(1, Event::PermanentFailure), (2, Event::OperatorStopped), (3, Event::NeedsPerson)] {
        let (_, run) = bench.running(n).await;
        let settled = bench.failed(run, event, 10 * i64::try_from(n).expect("small")).await;
        bench.deliver(&settled, 10 * i64::try_from(n).expect("small")).await;
    }
    let (_, run) = bench.running(4).await;
    let settled = bench.collected(run, 40).await;
    bench.deliver(&settled, 40).await;
    let (_, run) = bench.running(5).await;
    bench.collected(run, 50).await;
    let (_, run) = bench.running_purchase(6).await;
    bench.failed(run, Event::NeedsPerson, 60).await;
    bench
}

/// The same and a claimed one, task 7.
async fn mixed_and_claimed() -> Bench {
    let bench = mixed().await;
    bench.claimed(7).await;
    bench
}

#[tokio::test]
async fn newest_change_first_in_pages_without_gaps() {
    let bench = mixed_and_claimed().await;
    assert_eq!(ids(&bench, TaskFilter::default(), ALL).await, [6, 5, 4, 3, 2, 1, 7], "newest change first (03 §3)");
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let rows = bench.store.read(move |r| r.task_list(&TaskFilter::default(), Page { limit: 2, before })).await.expect("readable");
        let Some(last) = rows.last() else { break };
        before = Some((last.updated_at, last.id));
        seen.extend(rows.iter().map(|t| t.id.0));
    }
    assert_eq!(seen, [6, 5, 4, 3, 2, 1, 7], "page by page the same list, nothing twice and nothing lost");
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let bench = mixed_and_claimed().await;
    let by_text = |text: &str| TaskFilter { text: Some(text.to_owned()), ..TaskFilter::default() };
    for (filter, want, why) in [
        (TaskFilter { states: vec![TaskState::Failed], ..TaskFilter::default() }, vec![1], "one state"),
        (TaskFilter { states: vec![TaskState::Failed, TaskState::ManualReview], ..TaskFilter::default() }, vec![6, 3, 1], "several states"),
        (TaskFilter { task_type: Some(TaskType::Purchase), ..TaskFilter::default() }, vec![6], "one type"),
        (
            TaskFilter { states: vec![TaskState::ManualReview], task_type: Some(TaskType::Collect), ..TaskFilter::default() },
            vec![3],
            "state and type together",
        ),
        (by_text("seen"), vec![5, 4], "part of a title"),
        (by_text("  SEEN "), vec![5, 4], "however it is typed"),
        (by_text("7371165"), vec![6, 5, 4, 3, 2, 1, 7], "part of the link"),
        (by_text("po-1"), vec![6], "the outside reference"),
        (by_text(&remote(4).to_string()), vec![4], "the task number"),
        (by_text("%"), vec![], "a percent sign means itself"),
        (by_text("_"), vec![6, 5, 4, 3, 2, 1, 7], "an underline means itself; here every link holds one"),
        (by_text("   "), vec![6, 5, 4, 3, 2, 1, 7], "blanks are no filter"),
    ] {
        assert_eq!(ids(&bench, filter, ALL).await, want, "{why}");
    }
    let counts = bench.store.read(|r| r.counts()).await.expect("readable");
    assert_eq!(counts.get(&TaskState::ManualReview), Some(&2), "counted by state");
    assert_eq!(counts.values().sum::<u64>(), 7, "every visible task is counted");
}

#[tokio::test]
async fn hiding_is_all_or_nothing() {
    let bench = mixed().await;
    let (marked, run) = bench.running_purchase(8).await;
    bench.mark(run);
    bench.raw().execute("UPDATE pdd_tasks SET status = 'failed' WHERE id = ?1", [marked.0]).expect("ended with a mark");
    let unsent = bench.claim_json(9, json!({})).await.task;
    let claimed = bench.claimed(7).await;
    let before = bench.dump();
    for (name, id, why) in [
        ("review", 3, DeleteBlock::NotEnded(TaskState::ManualReview)),
        ("pending", 5, DeleteBlock::NotEnded(TaskState::ResultPending)),
        ("claimed", claimed.0, DeleteBlock::NotEnded(TaskState::Claimed)),
        ("marked", marked.0, DeleteBlock::Marked),
        ("unsent", unsent.0, DeleteBlock::Unsent),
        ("missing", 99, DeleteBlock::Missing),
    ] {
        let chosen = [LocalTaskId(1), LocalTaskId(id), LocalTaskId(2)];
        let error = bench.store.write(move |tx| tx.soft_delete(&chosen, at(70))).await.expect_err("one of them may not go");
        let StoreError::NotDeletable { blocked } = &error else { panic!("{name}: {error:?}") };
        assert_eq!(blocked.iter().map(|b| (b.task.0, b.why)).collect::<Vec<_>>(), [(id, why)], "{name}: the one in the way is named");
        assert_eq!(bench.dump(), before, "{name}: none is hidden (03 §3.1)");
    }
    let gone = bench.write(|tx| tx.soft_delete(&[LocalTaskId(1), LocalTaskId(2), LocalTaskId(4)], at(70))).await;
    assert_eq!(gone, 3, "failed, cancelled and succeeded may go");
    let left = ids(&bench, TaskFilter::default(), ALL).await;
    assert!(!left.iter().any(|id| [1, 2, 4].contains(id)), "hidden from the list: {left:?}");
    let detail = bench.store.read(|r| r.task_detail(LocalTaskId(4))).await.expect("readable").expect("never deleted");
    assert_eq!((detail.task.removed_at, detail.runs.len(), detail.outbox.len()), (Some(at(70)), 1, 1), "row, run and report stay for ever");
    bench.write(|tx| tx.recollect(LocalTaskId(4), at(80))).await;
    assert_eq!(ids(&bench, TaskFilter::default(), ALL).await[0], 4, "collected again it is visible again");
}
