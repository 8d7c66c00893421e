//! When a page has come to rest. The clock is stopped: time passes only while everything waits.

use std::collections::VecDeque;
use std::time::Duration;

use cmautobuy_device::fake::FakePage;
use cmautobuy_device::{Agreement, CaptureWant, FakePhone, Patience, PhoneError, Verdict, settle};

const PATIENCE: Patience = Patience { looks: 6, budget: Duration::from_secs(10), pause: Duration::from_millis(250) };

fn page() -> FakePage {
    FakePage::pdd("<hierarchy><node text=\"x\" bounds=\"[0,0][9,9]\"/></hierarchy>")
}

#[tokio::test(start_paused = true)]
async fn two_readings_in_a_row_must_agree() {
    // name, readings, what comes out, looks
    type Row = (&'static str, &'static [Option<u32>], Option<u32>, usize);
    let rows: [Row; 6] = [
        ("at once", &[Some(1), Some(1)], Some(1), 2),
        ("after a change", &[Some(1), Some(2), Some(2)], Some(2), 3),
        ("the same, but not in a row", &[Some(1), Some(2), Some(1), Some(2), Some(2)], Some(2), 5),
        ("a strange page between", &[Some(1), None, Some(1), Some(1)], Some(1), 4),
        ("never", &[Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)], None, 6),
        ("never the page", &[None, None, None, None, None, None], None, 6),
    ];
    for (name, readings, want, looks) in rows {
        let phone = FakePhone::new("s", page());
        let mut left: VecDeque<Option<u32>> = readings.iter().copied().collect();
        let got = settle(&phone, &CaptureWant::anything(), PATIENCE, |_| left.pop_front().flatten()).await.expect("the phone works");
        assert_eq!(got.as_ref().map(|settled| settled.reading), want, "row {name}");
        assert_eq!(phone.captures_taken(), looks, "row {name}: no look more than needed");
        if let Some(settled) = got {
            assert_eq!(settled.capture.verdict, Verdict::Ok, "row {name}: what settled may be acted on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bad_looks_and_budgets() {
    let look = |phone: FakePhone, patience: Patience| async move {
        let outcome = settle(&phone, &CaptureWant::anything(), patience, |_| Some(1)).await.map(|settled| settled.map(|s| s.reading));
        (outcome, phone.captures_taken())
    };
    let (got, looks) = look(FakePhone::new("s", page().with_verdict(Verdict::NeverIdle)), PATIENCE).await;
    assert!(matches!(got, Err(PhoneError::NeverIdle)), "said twice, believed: {got:?}");
    assert_eq!(looks, 2, "a third look would cost ten seconds and say the same");

    let (got, looks) = look(FakePhone::new("s", page().with_verdict(Verdict::TreeStale)), PATIENCE).await;
    assert!(matches!(got, Ok(None)), "a page that cannot be judged never settles: {got:?}");
    assert_eq!(looks, 6, "the looks are used up");

    let (got, _) = look(FakePhone::new("s", page().with_verdict(Verdict::DeviceGone)), PATIENCE).await;
    assert!(matches!(got, Err(PhoneError::DeviceGone { .. })), "a lost phone is an error at once: {got:?}");

    let phone = FakePhone::new("s", page());
    phone.fail_next(PhoneError::PddMissing);
    let (got, _) = look(phone, PATIENCE).await;
    assert!(matches!(got, Err(PhoneError::PddMissing)), "the phone's error comes through: {got:?}");

    let hasty = Patience { looks: 1_000_000, budget: Duration::from_secs(3), pause: Duration::from_millis(500) };
    let began = tokio::time::Instant::now();
    let phone = FakePhone::new("s", page());
    let mut n = 0;
    let want = CaptureWant::anything();
    let got = settle(&phone, &want, hasty, |_| {
        n += 1;
        Some(n)
    })
    .await;
    assert!(got.expect("the phone works").is_none(), "the budget ends a page that never rests");
    assert_eq!(began.elapsed(), Duration::from_secs(3), "and ends it on time");
}

#[test]
fn an_agreement_counts_its_looks() {
    let mut agreement = Agreement::<()>::within(2);
    assert!(agreement.may_look() && agreement.may_look() && !agreement.may_look(), "two looks and no more");
    let mut agreement = Agreement::within(9);
    let near = |a: &i32, b: &i32| (a - b).abs() < 2;
    assert_eq!(agreement.offer(1, near), None, "nothing to compare with");
    assert_eq!(agreement.offer(5, near), None, "not the same");
    agreement.disturbed();
    assert_eq!(agreement.offer(5, near), None, "what was read before the disturbance no longer counts");
    assert_eq!(agreement.offer(6, near), Some(6), "the caller says what agreeing means");
}
