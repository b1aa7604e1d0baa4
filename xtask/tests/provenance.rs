//! Figures of a page of results have a command.

use xtask::provenance::{has_origin, sections_without_command};

const TOP: &str = "# A\n\n| | |\n|---|---|\n| Recorded | 2026-11-24, commit `1` |\n| Commands | named below |\n\n";

fn titles(page: &str) -> Vec<String> {
    sections_without_command(&format!("{TOP}{page}")).into_iter().map(|(_, title)| title).collect()
}

#[test]
fn a_page_says_when_and_by_which_command() {
    assert!(has_origin(TOP));
    assert!(!has_origin("# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"));
}

#[test]
fn a_section_with_figures_needs_a_command() {
    assert_eq!(titles("## B\n\n| a |\n|---|\n| 1 |\n"), ["B"]);
    assert_eq!(titles("## B\n\nThe mean is 12.5 s long.\n"), ["B"]);
    assert_eq!(titles("## B\n\nSee [a V100](b.md#2-s) and `12 s`.\n"), [""; 0]);
    assert_eq!(titles("## B\n\nRun `goodput eval a.toml`: 12 s.\n"), [""; 0]);
    assert_eq!(titles("## B\n\n    cargo xtask bench gym\n\nIt takes 12 s.\n"), [""; 0]);
    assert_eq!(titles("## B\n\nNo command repeats the 12 s.\n"), [""; 0]);
    assert_eq!(titles("## Summary\n\nIt gains 8 %.\n"), [""; 0]);
}

#[test]
fn a_section_inherits_the_command_around_it() {
    let page = "## B\n\n`goodput eval a.toml`\n\n### C\n\n12 s.\n\n## D\n\n### E\n\n12 s.\n";
    assert_eq!(titles(page), ["E"]);
    let named = format!("{TOP}{page}").replace("named below", "`goodput eval b.toml`");
    assert_eq!(sections_without_command(&named), []);
    let none = format!("{TOP}{page}").replace("named below", "No command: a record");
    assert_eq!(sections_without_command(&none), []);
}
