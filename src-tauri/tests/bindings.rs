//! The TypeScript the pages are checked against is the Rust they talk to: this fails when the committed file is stale.
//! `UPDATE_BINDINGS=1 cargo test -p cmautobuy-desktop --test bindings` rewrites it.

use std::path::Path;
use std::{env, fs};

const HEADER: &str = "// @ts-nocheck\n// Written by src-tauri/tests/bindings.rs. Do not edit.\n";

#[test]
fn bindings_are_current() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/api/bindings.ts");
    let dir = tempfile::tempdir().unwrap();
    let fresh_path = dir.path().join("bindings.ts");
    cmautobuy_desktop::specta_builder::<tauri::Wry>()
        .export(specta_typescript::Typescript::default().header(HEADER), &fresh_path)
        .expect("every type the pages see can be written as TypeScript");
    let fresh = fs::read_to_string(&fresh_path).unwrap();
    if env::var_os("UPDATE_BINDINGS").is_some() {
        fs::write(&committed, &fresh).unwrap();
    }
    let found = fs::read_to_string(&committed).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        found == fresh,
        "ui/src/api/bindings.ts is stale: run `UPDATE_BINDINGS=1 cargo test -p cmautobuy-desktop --test bindings` and commit it"
    );
}
