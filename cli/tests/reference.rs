//! The reference pages of the book are what the program writes.

use std::fs;
use std::path::Path;

use crate::support::run;

#[test]
fn reference_pages_are_those_that_the_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, said) = run(folder.path(), &["reference", "--write", "."]);
    assert_eq!(code, 0, "{said}");
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference");
    let mut pages = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let written = entry.unwrap().path();
        let page = written.file_name().unwrap().to_string_lossy().into_owned();
        let committed = fs::read_to_string(book.join(&page)).unwrap_or_default();
        assert!(committed == fs::read_to_string(&written).unwrap(), "{page} is out of date: run `cargo xtask docs`");
        pages += 1;
    }
    assert_eq!(pages, 6);
}
