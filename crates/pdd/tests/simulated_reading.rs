//! Measuring the readers, settling and the guard's links over real ADB against the simulated phone.

use std::time::{Duration, Instant};

use cmautobuy_device::{
    Action, AdbKey, AgentFile, CaptureWant, ExtraPatterns, GoodsId, OrderList, PDD_PACKAGE, Patience, Reader, ReadersAllowed, Screen,
    check, connect_direct, settle,
};
use cmautobuy_phone_sim::{Catalogue, SimConfig, start};

/// Measuring, settling and the two links of the guard over real ADB.
#[tokio::test]
async fn the_phone_is_measured_settles_and_opens_orders() {
    let sim = start(SimConfig { dump_time: Duration::from_millis(8), ..SimConfig::default() }).await.expect("a free local port");
    let phone = connect_direct(sim.addr(), AdbKey::generate().expect("a key"));
    let agent = Some(AgentFile { sha256: "00".repeat(32) });
    let measured = phone.measure(&ReadersAllowed { compressed: true, agent }).await.expect("the simulated phone answers");
    let works: Vec<_> = measured.iter().map(|one| (one.reader, one.result.is_ok())).collect();
    let want = [(Reader::Stock, true), (Reader::Compressed, true), (Reader::Agent, false)];
    assert_eq!(works, want, "no agent is on this phone, and that must not be an error: {measured:?}");

    let size = phone.facts().await.expect("facts").screen;
    let patience = Patience { looks: 10, budget: Duration::from_secs(20), pause: Duration::from_millis(20) };
    let want = CaptureWant::anything().with_goods();
    let goods = GoodsId::try_from(Catalogue::builtin().goods[0].goods_id.as_str()).expect("digits");
    let links = [Action::OpenGoods(goods.clone()), Action::OpenOrders(OrderList::Unpaid)];
    for link in links {
        let capture = phone.capture(&want).await.expect("a look");
        let ticket =
            check(capture, Screen::Elsewhere, link.clone(), size, &ExtraPatterns::none(), Instant::now()).expect("a link is allowed");
        phone.act(ticket).await.expect("the link opens");
        let settled = settle(&*phone, &want, patience, |capture| {
            let text: Vec<String> = capture.tree.nodes().map(|node| node.label().to_owned()).collect();
            (capture.foreground.package == PDD_PACKAGE && text.len() > 5).then_some(text)
        });
        let settled = settled.await.expect("the phone works").unwrap_or_else(|| panic!("{link:?}: the page comes to rest"));
        match link {
            Action::OpenGoods(_) => assert_eq!(settled.capture.goods_id.as_deref(), Some(goods.as_str()), "the goods of the page in front"),
            _ => assert!(settled.reading.iter().any(|label| label.contains("我的订单")), "the order list: {:?}", settled.reading),
        }
    }
}
