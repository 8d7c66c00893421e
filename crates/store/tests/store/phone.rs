//! Remembered phones, and the migration that brings them.

use cmautobuy_store::{PhoneSeen, SealKey, Store, StoreError};

use crate::support::{Bench, KEY, at, device};

fn seen(serial: &str, address: &str) -> PhoneSeen {
    PhoneSeen { serial: serial.to_owned(), model: "M2012".to_owned(), android_version: "13".to_owned(), address: address.to_owned() }
}

#[tokio::test]
async fn a_phone_is_remembered_by_its_own_serial() {
    let bench = Bench::new();
    bench.write(|tx| tx.phone_seen(&seen("A", "192.168.0.20:5555"), at(0))).await;
    bench.write(|tx| tx.phone_seen(&seen("B", "adb:B"), at(10))).await;
    bench.write(|tx| tx.phone_seen(&seen("A", "adb:A"), at(20))).await;
    let list = bench.store.read(|r| r.phone_list()).await.expect("readable");
    let got: Vec<(&str, &str)> = list.iter().map(|phone| (phone.serial.as_str(), phone.address.as_str())).collect();
    assert_eq!(got, [("A", "adb:A"), ("B", "adb:B")], "one row a phone, the road of today, the latest first");
    assert_eq!((list[0].first_seen_at, list[0].last_seen_at), (at(0), at(20)), "first and last sight are kept apart");
    assert!(bench.write(|tx| tx.phone_forget("A")).await, "it was there");
    assert!(!bench.write(|tx| tx.phone_forget("A")).await, "forgetting twice finds nothing");
    assert_eq!(bench.store.read(|r| r.phone_get("A")).await.expect("readable"), None, "forgotten");
}

#[tokio::test]
async fn the_owners_animations_survive_a_second_fix() {
    let bench = Bench::new();
    bench.write(|tx| tx.phone_seen(&seen("A", "adb:A"), at(0))).await;
    let owner = [Some("1.0".to_owned()), None, Some("0.5".to_owned())];
    let zeros = [Some("0".to_owned()), Some("0".to_owned()), Some("0".to_owned())];
    let kept = owner.clone();
    bench.write(move |tx| tx.phone_animations("A", Some(&kept))).await;
    bench.write(move |tx| tx.phone_animations("A", Some(&zeros))).await;
    let phone = bench.store.read(|r| r.phone_get("A")).await.expect("readable").expect("there");
    assert_eq!(phone.animations_before, Some(owner), "our own zeros must not become what the owner wanted");
    bench.write(|tx| tx.phone_seen(&seen("A", "adb:A"), at(5))).await;
    bench.write(|tx| tx.phone_animations("A", None)).await;
    let phone = bench.store.read(|r| r.phone_get("A")).await.expect("readable").expect("there");
    assert_eq!(phone.animations_before, None, "given back");
    let error = bench.store.write(|tx| tx.phone_animations("Z", None)).await.expect_err("never seen");
    assert!(matches!(error, StoreError::NoSuch { .. }), "a fix cannot be kept for a phone nobody knows: {error:?}");
}

#[tokio::test]
async fn a_database_of_version_1_is_brought_up_with_its_data() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("client.db");
    let raw = rusqlite::Connection::open(&path).expect("a new file");
    raw.execute_batch(include_str!("../../migrations/0001_initial.sql")).expect("version 1 as it was");
    raw.execute_batch(&format!(
        "PRAGMA user_version = 1;
         INSERT INTO identity (id, device_id, created_at) VALUES (1, '{}', '{}');
         INSERT INTO app_settings (setting_key, value_json, updated_at) VALUES ('device.address', '\"192.168.0.20:5555\"', '{}');",
        device(1),
        at(0),
        at(0)
    ))
    .expect("sample data of version 1");
    drop(raw);
    let store = Store::open(&path, SealKey::from_bytes(KEY)).expect("an old database opens");
    let address: Option<String> = store.read(|r| r.setting_get("device.address")).await.expect("readable");
    assert_eq!(address.as_deref(), Some("192.168.0.20:5555"), "nothing of version 1 is lost");
    let identity = store.read(|r| r.identity_get()).await.expect("readable").expect("there");
    assert_eq!(identity.device_id, device(1), "it is still the same installation (D19)");
    assert_eq!(store.read(|r| r.phone_list()).await.expect("readable"), [], "and remembers no phone yet");
}
