//! Job tables as csv: the table of the tutorial on comparing policies on a trace of one's own.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fs;
use std::path::{Path, PathBuf};

use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::{FORMATS, WorkloadFormat, job_csv};
use goodput_datasets::jobs::JobRow;
use goodput_datasets::store::jobs;
use goodput_datasets::validate::validate;
use goodput_datasets::{import_table, read_jobs, read_workload};
use goodput_env::job::{Elasticity, Work};
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;

const TABLE: &str = "job_id,submit_secs,duration_secs,gpus
train-17,0,3600,4
train-18,95,12000,1
eval-3,140.5,600,8
";

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.csv");
    fs::write(&path, text).unwrap();
    (directory, path)
}

#[test]
fn a_job_is_rigid_and_lasts_as_long_as_the_table_says() {
    let (_directory, path) = file(TABLE);
    let loaded = read_workload(&path, Catalog::shipped()).unwrap();
    let jobs = &loaded.workload.jobs;
    assert_eq!(loaded.tenants, ["default"]);
    assert_eq!(
        jobs.iter().map(|job| job.request.name.as_str()).collect::<Vec<_>>(),
        ["train-17", "train-18", "eval-3"]
    );
    assert_eq!(jobs.iter().map(|job| job.request.gpus).collect::<Vec<_>>(), [4, 1, 8]);
    assert!(jobs.iter().all(|job| job.request.elasticity == Elasticity::Rigid));
    assert_eq!(jobs[2].request.submit, SimTime::from_millis(140_500));
    assert_eq!(jobs[1].work, Work::Fixed { duration: SimTime::from_secs(12_000) });
    assert_eq!(read_jobs(&path).unwrap().format, WorkloadFormat::JobCsv);
}

#[test]
fn tenants_are_read_in_any_column_and_may_be_empty() {
    let (_directory, path) =
        file("tenant,gpus,job_id,note,duration_secs,submit_secs\nvision,4,a,x,10,0\n,1,b,,20,5\nspeech,2,c,,30,7\n");
    let loaded = read_workload(&path, Catalog::shipped()).unwrap();
    assert_eq!(loaded.tenants, ["default", "speech", "vision"]);
    assert_eq!(loaded.workload.jobs.iter().map(|job| job.request.tenant).collect::<Vec<_>>(), [2, 0, 1]);
}

#[test]
fn importing_writes_the_rows_as_parquet() {
    let (directory, path) = file(TABLE);
    let (table, report) = import_table(&path).unwrap();
    assert_eq!((report.kept, report.repaired.count, report.refused.count), (3, 0, 0));
    let parquet = directory.path().join("jobs.parquet");
    table.write_parquet(&parquet).unwrap();
    let without_lines = |path: &Path| {
        read_jobs(path).unwrap().jobs.into_iter().map(|job| JobRow { line: 0, ..job }).collect::<Vec<_>>()
    };
    assert_eq!(without_lines(&parquet), without_lines(&path));
}

#[test]
fn an_error_names_the_file_the_line_and_a_remedy() {
    let refused = |text: &str| {
        let (directory, path) = file(text);
        let error = read_workload(&path, Catalog::shipped()).unwrap_err();
        (error.to_string().replace(&format!("{}/", directory.path().display()), ""), error.remedy())
    };
    let row = |row: &str| refused(&format!("job_id,submit_secs,duration_secs,gpus\nfirst,0,1,1\n{row}\n"));
    let value = "correct the value, or drop the row with `goodput data import`";
    assert_eq!(
        row("a,-1,10,1"),
        ("jobs.csv:3: submit_secs is `-1`, expected a time in seconds of at least 0".to_owned(), value)
    );
    assert_eq!(
        row("a,1,0,1"),
        ("jobs.csv:3: duration_secs is `0`, expected a duration in seconds above 0".to_owned(), value)
    );
    assert_eq!(
        row("a,1,10,0.5"),
        ("jobs.csv:3: gpus is `0.5`, expected a whole number of at least 1".to_owned(), value)
    );
    assert_eq!(row("first,1,10,1"), ("jobs.csv:3: job `first` is also on line 2".to_owned(), "rename one of the jobs"));
    assert_eq!(
        row("a,1,10"),
        ("jobs.csv:3: the row has 3 fields, the header 4".to_owned(), "give every row as many fields as the header")
    );
    assert_eq!(
        refused("job_id,submit_secs,gpus\na,1,1\n"),
        (
            "jobs.csv:1: column `duration_secs` is missing; found job_id, submit_secs, gpus".to_owned(),
            "`goodput list formats -o wide` shows the columns of each format"
        )
    );
    assert_eq!(refused("job_id,submit_secs,duration_secs,gpus\n").0, "jobs.csv: no rows");
}

#[test]
fn validation_lists_every_row_that_is_refused() {
    let text = format!("{TABLE}broken,200,-5,1\ntrain-17,300,60,1\nwide,400,60,64\n");
    let imported = job_csv::parse(Path::new("jobs.csv"), text.as_bytes()).unwrap();
    let verdict = validate(&imported, Catalog::shipped(), Some(32));
    assert!(!verdict.passes());
    assert_eq!(verdict.errors.examples.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(verdict.remarks.examples.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [7]);
}

#[test]
fn the_list_of_formats_has_the_columns_of_both_job_tables() {
    let columns = |name: &str| FORMATS.iter().find(|format| format.name == name).unwrap().columns;
    assert_eq!(columns("job-csv"), job_csv::ALL_COLUMNS);
    let limit = Some(SimTime::from_secs(1));
    let table = jobs::table(&[JobRow { share: Some(ShareRequest::default()), limit, ..JobRow::default() }]);
    assert_eq!(table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), columns("goodput"));
}
