//! The book holds together: every link leads somewhere, and the summary names every page.

use xtask::book::Book;

#[test]
fn links_of_the_book_lead_somewhere() {
    let faults = Book::read().unwrap().faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
