//! Admin creates tasks -> claim -> phone -> one commit -> accepted -> succeeded.

use std::collections::BTreeMap;

use cmautobuy_phone_sim::{Catalogue, Goods};
use cmautobuy_protocol::ServerStatus;
use cmautobuy_protocol::pdd_data::PddData;

use crate::desk::Desk;

fn stored(desk: &Desk, task: cmautobuy_protocol::RemoteTaskId) -> PddData {
    let detail = desk.on_server(task);
    assert_eq!(detail.task.status, ServerStatus::Succeeded, "the server accepted the result of {task}");
    assert_eq!(detail.results.len(), 1, "one attempt, one result");
    serde_json::from_value(detail.results[0].body["pdd_data"].clone()).expect("the result carries pdd_data v1")
}

/// The price dimension of the goods: value -> price in fen, where the phone shows one for a selectable value.
fn prices(goods: &Goods) -> BTreeMap<String, Option<u64>> {
    let dimension = goods.price_dimension().map(|index| &goods.dimensions[index]);
    let values = dimension.map(|d| d.values.as_slice()).unwrap_or_default();
    values.iter().map(|v| (v.text.clone(), goods.price_of(&v.text).filter(|_| !v.sold_out))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_tasks_are_collected_and_accepted() {
    let desk = Desk::new().await;
    desk.ready().await;
    let catalogue = Catalogue::builtin();
    let goods: Vec<&Goods> = catalogue.goods.iter().take(3).collect();
    let tasks: Vec<_> = goods.iter().map(|g| desk.collect_task(&g.goods_id)).collect();

    let said = desk.run(&["run", "--once", "--within-seconds", "110"]).await;
    assert!(said.ok, "the desk works its list off: {said:?}");

    for (task, goods) in tasks.iter().zip(goods) {
        let data = stored(&desk, *task);
        assert_eq!(data.goods.goods_id, goods.goods_id, "the goods asked for, not another page");
        assert_eq!(data.goods.title.trim(), goods.title.trim(), "the whole title, not the list's truncated one");
        assert_eq!(data.shop.name.as_deref(), Some(goods.shop.as_str()), "the shop as the page names it");
        assert!(data.metrics.sales.is_some() && data.metrics.reviews.is_some(), "sales and reviews are on the page: {:?}", data.metrics);
        let read: Vec<Vec<&str>> = data.dimensions.iter().map(|d| d.values.iter().map(|v| v.text.trim()).collect()).collect();
        let real: Vec<Vec<&str>> = goods.dimensions.iter().map(|d| d.values.iter().map(|v| v.text.trim()).collect()).collect();
        assert_eq!(read, real, "every value of every dimension, in the page's order");
        let combinations: usize = real.iter().map(Vec::len).product();
        assert_eq!(data.skus.len(), combinations, "every combination is a SKU");
        let priced_by = &data.dimensions[goods.price_dimension().expect("the sample goods have options")].key;
        for sku in &data.skus {
            let value = &sku.options[priced_by];
            assert_eq!(sku.price_cent, prices(goods)[value], "{value}: the price the phone shows with it selected, nothing else");
            let observed: Vec<&String> = sku.price_observed_at.keys().collect();
            let want: Vec<&String> = sku.price_cent.iter().map(|_| priced_by).collect();
            assert_eq!(observed, want, "{value}: a price names what was really selected, and only that (03 §8.1)");
        }
    }
    assert_eq!(desk.local("SELECT count(*) FROM pdd_tasks WHERE status = 'succeeded'").as_deref(), Some("3"), "the client knows it too");
    assert_eq!(desk.local("SELECT count(*) FROM outbox_events WHERE status = 'sent'").as_deref(), Some("3"), "one result a task, all sent");
    assert_eq!((desk.sim.orders_created(), desk.sim.payments_accepted()), (0, 0), "collecting never orders and never pays");
    let pictures = desk.local("SELECT count(DISTINCT run_id) FROM run_artifacts WHERE kind = 'screenshot'");
    assert_eq!(pictures.as_deref(), Some("3"), "every run left its pictures (D12)");
}

/// Ends the private adb server with the test.
struct AdbServer(u16);

impl AdbServer {
    fn adb(&self, args: &[&str]) -> std::process::Output {
        std::process::Command::new("adb").args(["-P", &self.0.to_string()]).args(args).output().expect("Debian's adb is installed")
    }
}

impl Drop for AdbServer {
    fn drop(&mut self) {
        self.adb(&["kill-server"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_behind_the_stock_adb_server_does_the_same_job() {
    let desk = Desk::new().await;
    desk.ready().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let adb = AdbServer(port);
    let serial = desk.sim.addr().to_string();
    let connected = adb.adb(&["connect", &serial]);
    assert!(connected.status.success(), "the stock adb takes the simulated phone: {connected:?}");
    let goods = &Catalogue::builtin().goods[1];
    let task = desk.collect_task(&goods.goods_id);
    let said = Desk::said(desk.client_at(&format!("adb:127.0.0.1:{port}/{serial}"), &["run", "--once", "--within-seconds", "110"])).await;
    assert!(said.ok, "the job is done through the adb server: {said:?}");
    let data = stored(&desk, task);
    assert!(
        data.skus.iter().all(|sku| sku.price_cent == prices(goods)[&sku.options[&data.dimensions[0].key]]),
        "and reads the same prices"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recollect_is_a_new_attempt_with_a_new_key() {
    let desk = Desk::new().await;
    desk.ready().await;
    let goods = &Catalogue::builtin().goods[1];
    let task = desk.collect_task(&goods.goods_id);
    assert!(desk.run(&["run", "--once"]).await.ok, "collected once");
    let said = desk.run(&["recollect", &task.to_string()]).await;
    assert!(said.ok, "an ended collect task may be collected again: {said:?}");
    assert!(desk.run(&["run", "--once"]).await.ok, "collected twice");
    let detail = desk.on_server(task);
    assert_eq!(detail.task.status, ServerStatus::Succeeded, "terminal states never regress (T-205 §11)");
    let attempts: Vec<(u32, bool)> = detail.results.iter().map(|r| (r.attempt_no, r.late)).collect();
    assert_eq!(attempts.len(), 2, "both results are kept: {attempts:?}");
    assert_ne!(detail.results[0].idempotency_key, detail.results[1].idempotency_key, "a new attempt has a new key (03 §5.2)");
    assert_eq!(desk.local("SELECT count(*) FROM task_runs").as_deref(), Some("2"), "the first run is not overwritten (03 §4)");
    assert_eq!(desk.local("SELECT status FROM pdd_tasks").as_deref(), Some("succeeded"), "settled again");
}
