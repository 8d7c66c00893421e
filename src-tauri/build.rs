//! Prepares the window's resources. Never needs Node: without a built front end a page saying so takes its place.

use std::path::Path;
use std::{fs, io};

/// What a person sees when the program was compiled before the pages were. No inline style: it would switch off the
/// style policy of the whole window.
const PLACEHOLDER: &str = "<!doctype html><meta charset=\"utf-8\"><title>CMAutoBuy</title>\
<h1>界面还没有构建 / The pages are not built yet</h1>\
<p>请运行 <code>scripts/run</code>，它会先构建界面。 / Run <code>scripts/run</code>: it builds them first.</p>\n";

fn main() -> io::Result<()> {
    let dist = Path::new("../ui/dist");
    let index = dist.join("index.html");
    if !index.exists() {
        fs::create_dir_all(dist)?;
        fs::write(&index, PLACEHOLDER)?;
    }
    println!("cargo::rerun-if-changed=../ui/dist");
    tauri_build::build();
    Ok(())
}
