//! No secret leaves its place (D6): a whole job, then every file both ends wrote is searched for every secret in use.

use std::path::Path;

use cmautobuy_phone_sim::Catalogue;

use crate::desk::{Desk, PASSWORD};

fn files(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_written_by_a_whole_job() {
    let desk = Desk::new().await;
    desk.ready().await;
    desk.collect_task(&Catalogue::builtin().goods[1].goods_id);
    assert!(desk.run(&["run", "--once"]).await.ok, "the job is done");

    let kept = std::fs::read_to_string(desk.secret_file()).expect("the injected store holds the secrets");
    let entries: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&kept).unwrap();
    let mut secrets = vec![("password", PASSWORD.to_owned())];
    for (name, value) in &entries {
        let value = value.as_str().unwrap();
        match serde_json::from_str::<serde_json::Value>(value) {
            Ok(session) if session.is_object() => {
                for field in ["access_token", "refresh_token"] {
                    secrets.push((field, session[field].as_str().expect("the session keeps its tokens").to_owned()));
                }
            }
            _ => {
                assert!(name.starts_with("seal:"), "an unexpected secret is kept: {name}");
                secrets.push(("seal key", value.to_owned()));
            }
        }
    }
    assert_eq!(secrets.len(), 4, "password, two tokens and the seal key are searched for");

    let mut paths = Vec::new();
    files(&desk.data(), &mut paths);
    files(&desk.server_data(), &mut paths);
    assert!(
        paths.iter().any(|p| p.ends_with("client.db")) && paths.iter().any(|p| p.extension().is_some_and(|e| e == "png")),
        "the job left its files"
    );
    for path in paths {
        let bytes = std::fs::read(&path).unwrap_or_default();
        for (what, secret) in &secrets {
            let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
            assert!(!found, "{what} is in {}", path.display());
        }
    }
}
