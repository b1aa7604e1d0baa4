//! Memory of an import does not grow with the number of rows.
#![expect(unsafe_code, reason = "a counting allocator can only be written with unsafe")]
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use goodput_datasets::import_file;

// Bytes that the thread of a test holds, and the most that it held.
thread_local!(static HELD: Cell<[usize; 2]> = const { Cell::new([0; 2]) });

struct Counting;

fn count(added: usize, dropped: usize) {
    HELD.with(|held| {
        let [now, most] = held.get();
        let now = (now + added).saturating_sub(dropped);
        held.set([now, most.max(now)]);
    });
}

// SAFETY: every call is passed on unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes that an import holds.
fn peak(path: &Path, out: &Path, rows: u64) -> usize {
    let before = HELD.with(|held| {
        let [now, _] = held.get();
        held.set([now; 2]);
        now
    });
    assert_eq!(import_file(path, out, |_| {}).unwrap().kept, rows);
    HELD.get()[1] - before
}

#[test]
fn memory_of_an_import_does_not_grow_with_the_rows() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let peaks = [300_000, 1_000_000].map(|rows: u64| {
        let mut csv = BufWriter::new(File::create(at("jobs.csv")).unwrap());
        writeln!(csv, "job_id,submit_secs,duration_secs,gpus,tenant").unwrap();
        for row in 0..rows {
            writeln!(csv, "job-{row:08},{},{},{},team-{}", row / 3, 1 + row % 5000, 1 + row % 8, row % 13).unwrap();
        }
        csv.into_inner().unwrap();
        let from_csv = peak(&at("jobs.csv"), &at("jobs.parquet"), rows);
        let from_parquet = peak(&at("jobs.parquet"), &at("again.parquet"), rows);
        [from_csv, from_parquet]
    });
    let [few, many] = peaks;
    for (few, many) in few.into_iter().zip(many) {
        assert!(many < few + 700_000, "700,000 more rows take {few} to {many} bytes: a byte a row or more");
        assert!(few > 10_000_000, "{few} bytes hold no row group: the count is wrong");
    }
}
