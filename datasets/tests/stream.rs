//! An import that reads and writes some rows at a time gives the table of one that has all rows in memory.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::Path;

use goodput_datasets::store::{Column, Table, TextChoice};
use goodput_datasets::{import_file, import_table, read_jobs};

/// Imports a text both ways. Returns the number of rows that are kept and refused.
fn imported(name: &str, text: &str) -> [u64; 2] {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    imported_file(&path, &directory.path().join("out.parquet"))
}

fn imported_file(path: &Path, out: &Path) -> [u64; 2] {
    let mut shown = Vec::new();
    let report = import_file(path, out, |job| shown.push(job.job_id.clone())).unwrap();
    let (table, expected) = import_table(path).unwrap();
    assert_eq!(report, expected);
    assert!(Table::read_parquet(out).unwrap() == table, "the tables are equal, metadata included");
    assert!(std::fs::read(out).unwrap() == table.to_parquet(out).unwrap(), "the files are equal");
    assert!(!out.with_added_extension("part").exists());
    let back = read_jobs(out).unwrap();
    assert!(back.jobs.iter().map(|job| &job.job_id).eq(&shown));
    assert_eq!(back.report.kept, report.kept);
    [report.kept, report.refused.count]
}

fn rows(count: u64, name: impl Fn(u64) -> String) -> String {
    let mut text = String::from("job_id,submit_secs,duration_secs,gpus,tenant\n");
    for row in 0..count {
        writeln!(text, "{},{},{}.5,{},team-{}", name(row), row / 3, 1 + row % 5000, 1 + row % 8, row % 13).unwrap();
    }
    text
}

#[test]
fn more_rows_than_a_batch() {
    assert_eq!(imported("ascending.csv", &rows(300_000, |row| format!("job-{row}"))), [300_000, 0]);
    assert_eq!(imported("any-order.csv", &rows(70_000, |row| format!("{:x}", row * 7_919 % 70_001))), [70_000, 0]);
}

#[test]
fn a_repeated_name_is_refused_wherever_it_is() {
    let name = |row: u64| if row == 140_000 { "job-7".into() } else { format!("job-{row}") };
    assert_eq!(imported("repeated.csv", &rows(150_000, name)), [149_999, 1]);
    let few = "job_id,submit_secs,duration_secs,gpus\na,0,1,1\na,1,-1,1\n\nb,2,1,1\na,3,1,1\n\"c\",4,1,1\nc,5,1,0\n";
    assert_eq!(imported("few.csv", few), [3, 3]);
    let bad_first = "job_id,submit_secs,duration_secs,gpus\na,0,-1,1\na,1,1,1";
    assert_eq!(imported("bad-first.csv", bad_first), [1, 1], "a refused row does not take its name");
}

#[test]
fn shares_of_cards_have_columns_where_there_are_any() {
    let header = "job_id,submit_secs,duration_secs,gpus,compute_percent,memory_mib\n";
    assert_eq!(imported("shares.csv", &format!("{header}a,0,1,1,50,1000\nb,0,1,1,,\n")), [2, 0]);
    assert_eq!(imported("none.csv", &format!("{header}a,0,1,1,,\nb,0,1,1,,\n")), [2, 0]);
}

#[test]
fn formats_of_one_job_a_row() {
    assert_eq!(imported("pollux.csv", "name,time,application,num_replicas,batch_size\nj,0,bert,4,48\n"), [1, 0]);
    let tiresias = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,2,3,4,vgg16,5,6\n";
    assert_eq!(imported("tiresias.csv", tiresias), [1, 0]);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.parquet");
    assert_eq!(imported_file(&crate::shared::shared("data/philly/philly.csv"), &out), [82_247, 0]);
}

#[test]
fn parquet_of_any_origin_becomes_the_job_table() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("in.parquet"), directory.path().join("out.parquet"));
    let name = |row: i64| format!("job-{}", row % 139_998);
    let columns = vec![
        Column::new("extra", (0..140_000).map(|row| row % 2 == 0).collect::<Vec<_>>()),
        Column::new("gpus", (0..140_000).map(|row| row % 9).collect::<Vec<i64>>()),
        Column::new("submit_secs", (0..140_000).collect::<Vec<i64>>()),
        Column::new("duration_secs", vec![60.5; 140_000]),
        Column::new("tenant", (0..140_000).map(|row| ["a", "b"][row % 2]).collect::<TextChoice>()),
        Column::new("job_id", (0..140_000).map(name).collect::<Vec<_>>()),
    ];
    Table::new(columns).write_parquet(&path).unwrap();
    // Every ninth row has no gpus, the first `job-0` among them; `job-1` is there twice.
    let refused = 140_000_u64.div_ceil(9) + 1;
    assert_eq!(imported_file(&path, &out), [140_000 - refused, refused]);
    let shared = directory.path().join("shared.parquet");
    std::fs::copy(&out, &shared).unwrap();
    let report = import_file(&shared, &shared, |_| {}).unwrap();
    assert_eq!(report.kept, 140_000 - refused, "a file may be imported into itself");
}

#[test]
fn a_pipe_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(rows(1000, |row| format!("job-{row}")).as_bytes()).unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let report = import_file(Path::new(&path), &directory.path().join("out.parquet"), |_| {}).unwrap();
    assert_eq!(report.kept, 1000);
}

#[test]
fn a_file_without_rows_is_an_error_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("empty.csv"), directory.path().join("out.parquet"));
    std::fs::write(&path, "job_id,submit_secs,duration_secs,gpus\n\n").unwrap();
    let error = import_file(&path, &out, |_| {}).unwrap_err();
    assert_eq!(error.to_string(), import_table(&path).unwrap_err().to_string());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
