//! The book holds together: every link leads somewhere, and the summary names every page.

use xtask::book::Book;

#[test]
fn links_of_the_book_lead_somewhere() {
    let faults = Book::read().unwrap().faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_section_of_results_says_where_its_figures_come_from() {
    let without = Book::read().unwrap().results_without_origin();
    assert!(without.is_empty(), "{}", without.join("\n"));
}
