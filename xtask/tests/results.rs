//! Tables of results are what the run of their command says.

use goodput_eval::report::origin::{ResultOrigin, markdown_results};
use goodput_eval::run::summary::Summary;
use xtask::book::Book;
use xtask::results::{blocks, rewritten};

const SUMMARY: &str = include_str!("data/summary.json");
const ORIGIN: &str = include_str!("data/origin.json");
const PAGE: &str = include_str!("data/page.md");

#[test]
fn blocks_of_the_book_are_whole_and_of_their_commands() {
    let broken = Book::read().unwrap().broken_blocks();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_recorded_run_writes_its_block_to_the_byte() {
    let summary: Summary = serde_json::from_str(SUMMARY).unwrap();
    let origin: ResultOrigin = serde_json::from_str(ORIGIN).unwrap();
    let block = &blocks(PAGE).unwrap()[0];
    assert_eq!(block.stale(PAGE), None);
    let columns: Vec<&str> = block.columns.iter().map(String::as_str).collect();
    let text = markdown_results(&summary, &columns, Some(&origin));
    // An empty block, an old one, and the finished one become the same page.
    let empty = rewritten(PAGE, block, "");
    assert_ne!(empty, PAGE);
    let old = rewritten(PAGE, block, "| policy | an old table |\n\n- Command: `goodput eval other.toml`, on a day.");
    for page in [&empty, &old] {
        let block = &blocks(page).unwrap()[0];
        assert!(block.stale(page).is_some());
        assert_eq!(rewritten(page, block, &text), PAGE);
    }
    assert_eq!(rewritten(PAGE, block, &text), PAGE);
}

#[test]
fn a_broken_block_is_named_by_its_line() {
    let fault = |page: &str| blocks(page).unwrap_err();
    let opening = "# A\n\n<!-- results: a\n";
    assert_eq!(fault("# A\n<!-- end of results -->\n").0, 2);
    assert_eq!(fault("# A\n\nText. <!-- results: a\n").0, 3);
    assert!(fault(opening).1.contains("ends with the page"));
    assert!(fault(&format!("{opening}cargo xtask bench\n-->\n")).1.contains("names no command"));
    assert!(fault(&format!("{opening}goodput eval a.toml --run-dir b\n-->\n")).1.contains("which the writer chooses"));
    assert!(fault(&format!("{opening}goodput eval a.toml\n\n-->\n")).1.contains("has a line beside"));
    let twice = format!("{opening}goodput eval a.toml\n-->\n{opening}goodput eval a.toml\n-->\n");
    assert_eq!(fault(&twice), (3, "the block \"a\" is not closed before the next one".into()));
}
