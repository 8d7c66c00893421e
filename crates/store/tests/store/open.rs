//! Opening, closing, and who sees what when.

use std::sync::Arc;

use cmautobuy_protocol::ServerId;
use cmautobuy_store::{BindServer, SCHEMA_VERSION, SealKey, Store, StoreError};
use uuid::Uuid;

use crate::support::{Bench, KEY, at, attempt, collect_json, device, standing, token};

#[tokio::test]
async fn connections_are_set_up_as_03_asks() {
    let bench = Bench::new();
    let raw = bench.raw();
    let mode: String = raw.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("pragma");
    assert_eq!(mode, "wal", "readers must not wait for the writer (03 §2.3)");
    let version: i64 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).expect("pragma");
    assert_eq!(version, SCHEMA_VERSION, "user_version counts the migrations (03 §2.3)");
}

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("client.db");
    let raw = rusqlite::Connection::open(&path).expect("a new file");
    raw.execute_batch("CREATE TABLE of_the_future (x); PRAGMA user_version = 7").expect("a newer schema");
    drop(raw);
    let before = std::fs::read(&path).expect("readable");
    let error = Store::open(&path, SealKey::from_bytes(KEY)).expect_err("an older program must not touch a newer database");
    assert!(matches!(error, StoreError::NewerDatabase { found: 7, known: SCHEMA_VERSION }), "both versions are named: {error:?}");
    assert!(error.to_string().contains("update the program"), "the person is told what to do: {error}");
    assert_eq!(std::fs::read(&path).expect("readable"), before, "not one byte may change");
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let garbage = dir.path().join("garbage.db");
    std::fs::write(&garbage, b"this is not a database, but it is long enough to have a header ".repeat(20)).expect("written");
    let file = dir.path().join("file");
    std::fs::write(&file, b"x").expect("written");
    let folder = dir.path().join("folder.db");
    std::fs::create_dir(&folder).expect("made");

    let error = Store::open(&garbage, SealKey::from_bytes(KEY)).expect_err("garbage is no database");
    assert!(matches!(&error, StoreError::Corrupt { path, .. } if *path == garbage), "damage is named with its path: {error:?}");
    assert!(garbage.exists(), "a damaged file is kept for rescue, never rebuilt (03 §2.3)");
    let error = Store::open(&file.join("data").join("client.db"), SealKey::from_bytes(KEY)).expect_err("a file is no folder");
    assert!(matches!(&error, StoreError::Unwritable { path, .. } if path.ends_with("data")), "the folder is named: {error:?}");
    let error = Store::open(&folder, SealKey::from_bytes(KEY)).expect_err("a folder is no file");
    assert!(matches!(&error, StoreError::CannotOpen { path, .. } if *path == folder), "the path is named: {error:?}");
}

#[tokio::test]
async fn the_folder_is_made() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("data").join("client.db");
    Store::open(&path, SealKey::from_bytes(KEY)).expect("the first start finds no folder and makes it (03 §2.2)").close().await;
    assert!(path.exists(), "the database is where it was asked for");
}

#[tokio::test]
async fn commits_survive_a_drop_without_close_and_a_close() {
    let bench = Bench::new();
    bench.write(|tx| tx.setting_set("device.address", &"10.0.0.2:5555", at(0))).await;
    let path = bench.path();
    let Bench { dir, store } = bench;
    drop(store);
    let store = Store::open(&path, SealKey::from_bytes(KEY)).expect("reopens after a crash");
    let address: Option<String> = store.read(|r| r.setting_get("device.address")).await.expect("readable");
    assert_eq!(address.as_deref(), Some("10.0.0.2:5555"), "a commit is on the disk when it answers");
    let clone = store.clone();
    store.close().await;
    assert!(!dir.path().join("client.db-wal").exists(), "closing folds the log away, so the folder can be copied");
    let error = clone.write(|tx| tx.setting_set("a.b", &1, at(0))).await.expect_err("closed");
    assert!(matches!(error, StoreError::Closed), "a clone learns that the store is closed: {error:?}");
    let error = clone.read(|r| r.counts()).await.expect_err("closed");
    assert!(matches!(error, StoreError::Closed), "so do readers: {error:?}");
}

#[tokio::test]
async fn an_error_and_a_panic_roll_back_and_the_store_goes_on() {
    let bench = Bench::new();
    let changes = bench.store.changes();
    let error = bench
        .store
        .write(|tx| {
            tx.setting_set("a.one", &1, at(0))?;
            Err::<(), _>(StoreError::NotAccepted)
        })
        .await
        .expect_err("the closure refused");
    assert!(matches!(error, StoreError::NotAccepted), "the closure's error comes out as it is");
    let error = bench
        .store
        .write(|tx| -> Result<(), StoreError> {
            tx.setting_set("a.two", &1, at(0))?;
            panic!("a bug")
        })
        .await
        .expect_err("the closure panicked");
    assert!(matches!(&error, StoreError::Panicked { message } if message == "a bug"), "a panic is an error: {error:?}");
    assert!(!changes.has_changed().expect("store lives"), "nothing was committed, so nobody is nudged");
    bench.write(|tx| tx.setting_set("a.three", &1, at(0))).await;
    assert!(changes.has_changed().expect("store lives"), "every commit nudges");
    let dump = bench.dump();
    assert!(!dump.contains("a.one") && !dump.contains("a.two"), "neither an error nor a panic leaves anything: {dump}");
    assert!(dump.contains("a.three"), "the writer survived both");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_are_serialised_and_nothing_is_lost() {
    let bench = Arc::new(Bench::new());
    bench.write(|tx| tx.setting_set("a.n", &0_u32, at(0))).await;
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                bench
                    .write(|tx| {
                        let n: u32 = tx.setting_get("a.n")?.expect("set above");
                        tx.setting_set("a.n", &(n + 1), at(0))
                    })
                    .await;
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no writer fails");
    }
    let n: Option<u32> = bench.store.read(|r| r.setting_get("a.n")).await.expect("readable");
    assert_eq!(n, Some(32), "a read-modify-write inside one transaction loses no update");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_only_what_is_committed_and_one_moment() {
    let bench = Bench::new();
    bench.write(|tx| tx.setting_set("a.n", &1, at(0))).await;
    let store = bench.store.clone();
    let (wrote, has_written) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let writing = tokio::spawn(async move {
        store
            .write(move |tx| {
                tx.setting_set("a.n", &2, at(0))?;
                wrote.send(()).expect("the test waits");
                may_go_on.recv().expect("the test says go");
                Ok(())
            })
            .await
    });
    let seen: Option<u32> = tokio::task::block_in_place(|| {
        has_written.recv().expect("the writer is inside its transaction");
        tokio::runtime::Handle::current().block_on(bench.store.read(|r| r.setting_get("a.n")))
    })
    .expect("readers do not wait for the writer");
    assert_eq!(seen, Some(1), "an uncommitted value is invisible");
    // A reader that is in the middle of its work does not see the commit either.
    let store = bench.store.clone();
    let both = bench
        .store
        .read(move |r| {
            let before: Option<u32> = r.setting_get("a.n")?;
            go_on.send(()).expect("the writer waits");
            let done = tokio::runtime::Handle::current().block_on(writing).expect("the writer ends");
            done?;
            let now: Option<u32> = tokio::runtime::Handle::current().block_on(store.read(|r| r.setting_get("a.n")))?;
            Ok((before, r.setting_get::<u32>("a.n")?, now))
        })
        .await
        .expect("readable");
    assert_eq!(both, (Some(1), Some(1), Some(2)), "one reader is one moment; the next one sees the commit");
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let bench = Bench::new();
    let raw = bench.raw();
    raw.pragma_update(None, "query_only", true).expect("pragma");
    assert!(raw.execute("DELETE FROM app_settings", []).is_err(), "query_only is what readers are opened with");
}

#[tokio::test]
async fn no_claim_token_reaches_the_disk() {
    let bench = Bench::new();
    let open = bench.prepare(5).await;
    let secret = token(5);
    assert_eq!(open.token, secret, "the prepared token is the one to send");
    let look = |when: &str| {
        for entry in std::fs::read_dir(bench.dir.path()).expect("readable") {
            let path = entry.expect("entry").path();
            let bytes = std::fs::read(&path).expect("readable");
            let hit = bytes.windows(secret.reveal().len()).any(|w| w == secret.reveal().as_bytes());
            assert!(!hit, "{when}: {} holds a claim token in the clear (D6)", path.display());
        }
    };
    look("prepared");
    let answer =
        cmautobuy_protocol::lifecycle::ClaimAnswer { standing: standing(crate::support::remote(5), 1, None), task: collect_json() };
    let stored = bench.write(move |tx| tx.claim_store(&open.key, &answer, "{}", attempt(1), at(0))).await;
    look("claimed");
    let again = bench.store.read(move |r| r.claim_token(stored.task)).await.expect("sealed under this key");
    assert_eq!(again, secret, "the sealed token opens to the one that claimed");
    bench.store.clone().close().await;
    look("closed");
}

#[tokio::test]
async fn a_sealed_token_is_bound_to_its_row_and_key() {
    let bench = Bench::new();
    let first = bench.claimed(1).await;
    bench.start(first, 1).await;
    let run = bench.store.read(move |r| r.run_newest(first)).await.expect("readable").expect("running").id;
    bench.collected(run, 2).await;
    let second = bench.claimed(2).await;
    bench
        .raw()
        .execute(
            "UPDATE pdd_tasks SET sealed_claim_token = (SELECT sealed_claim_token FROM pdd_tasks WHERE id = ?1) WHERE id = ?2",
            [first.0, second.0],
        )
        .expect("swapped");
    let error = bench.store.read(move |r| r.claim_token(second)).await.expect_err("another row's token");
    assert!(matches!(error, StoreError::Seal(_)), "a token moved to another row must not open: {error:?}");
    let elsewhere = Store::open(&bench.path(), SealKey::from_bytes([1; 32])).expect("opens with any key");
    let error = elsewhere.read(move |r| r.claim_token(first)).await.expect_err("another computer");
    assert!(matches!(error, StoreError::Seal(_)), "a copied data folder opens no token (D6): {error:?}");
}

#[tokio::test]
async fn identity_is_made_once_and_bound_to_one_server() {
    let bench = Bench::new();
    assert_eq!(bench.store.read(|r| r.identity_get()).await.expect("readable"), None, "a fresh store has none");
    let server = |n: u128| ServerId::from_uuid(Uuid::from_u128(n));
    bench.store.write(move |tx| tx.bind_server(server(1))).await.expect_err("no installation, no binding");
    let first = bench.write(|tx| tx.identity_init(device(1), at(0))).await;
    let second = bench.write(|tx| tx.identity_init(device(2), at(1))).await;
    assert_eq!((first.device_id, second.device_id), (device(1), device(1)), "the id of the first start holds for ever (D19)");
    for (id, want, why) in [
        (1, BindServer::Bound, "the first login binds"),
        (1, BindServer::Already, "the same server again is fine"),
        (2, BindServer::Other(server(1)), "another server is refused and named (D7)"),
    ] {
        assert_eq!(bench.write(move |tx| tx.bind_server(server(id))).await, want, "{why}");
    }
}

#[tokio::test]
async fn settings_are_json_under_group_and_name() {
    let bench = Bench::new();
    bench.write(|tx| tx.setting_set("safety.max_quantity", &3_u32, at(0))).await;
    bench.write(|tx| tx.setting_set("safety.max_quantity", &4_u32, at(0))).await;
    let n: Option<u32> = bench.store.read(|r| r.setting_get("safety.max_quantity")).await.expect("readable");
    assert_eq!(n, Some(4), "the last value holds");
    let missing: Option<u32> = bench.store.read(|r| r.setting_get("safety.price_tolerance_cent")).await.expect("readable");
    assert_eq!(missing, None, "a missing setting is none, not zero");
    bench.store.read(|r| r.setting_get::<Vec<u8>>("safety.max_quantity")).await.expect_err("a damaged setting must not become a value");
    for bad in ["", "plain", "a.", ".b", "A.b", "a b.c"] {
        let bad = bad.to_owned();
        bench.store.write(move |tx| tx.setting_set(&bad, &1, at(0))).await.expect_err("keys are <group>.<name> (03 §6)");
    }
}
