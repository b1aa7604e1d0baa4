//! Tables on disk: what is written is read, the same way twice.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use crate::shared::shared;
use goodput_datasets::catalog::Catalog;
use goodput_datasets::store::{Column, DataProvenance, Table, Values, jobs, provenance::sha256};
use goodput_datasets::synth::{DiurnalSynth, SynthConfig};
use goodput_datasets::{DataError, import_table, read_jobs, read_workload};

#[test]
fn philly_survives_parquet() {
    let source = shared("data/philly/philly.csv");
    let imported = read_jobs(&source).unwrap();
    let bytes = std::fs::read(&source).unwrap();
    let provenance = DataProvenance::imported(&source, sha256(&bytes), "philly", "CC-BY-4.0", &imported.report);
    let table = provenance.on(jobs::table(&imported.jobs));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("philly.parquet");
    table.write_parquet(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), table.to_parquet(&path).unwrap(), "the same bytes twice");

    let (at_once, report) = import_table(&source).unwrap();
    assert_eq!((&at_once, &report), (&table, &imported.report));

    let back = Table::read_parquet(&path).unwrap();
    assert_eq!(back, table);
    assert_eq!(DataProvenance::of(&back), provenance);
    assert_eq!(provenance.rows, [82_247, 0, 0]);
    assert_eq!(provenance.sha256, sha256(&bytes));

    let again = read_jobs(&path).unwrap();
    let strip = |jobs: &[goodput_datasets::jobs::JobRow]| {
        jobs.iter().map(|job| goodput_datasets::jobs::JobRow { line: 0, ..job.clone() }).collect::<Vec<_>>()
    };
    assert_eq!(strip(&again.jobs), strip(&imported.jobs));
    let (direct, stored) =
        (read_workload(&source, Catalog::shipped()).unwrap(), read_workload(&path, Catalog::shipped()).unwrap());
    assert_eq!(direct.workload.jobs, stored.workload.jobs);
}

#[test]
fn a_generated_workload_survives_parquet() {
    let config = SynthConfig::Diurnal(DiurnalSynth { tenants: 3, ..DiurnalSynth::default() });
    let generator = config.build(Catalog::shipped()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.parquet");
    DataProvenance::generated("diurnal", "seed 5", 160)
        .on(jobs::table(&generator.rows(5)))
        .write_parquet(&path)
        .unwrap();
    let loaded = read_workload(&path, Catalog::shipped()).unwrap();
    assert_eq!(loaded.workload.jobs, generator.generate(5).jobs);
    assert_eq!(loaded.tenants, generator.tenants());
}

#[test]
fn all_kinds_of_columns_survive_with_missing_values() {
    let table = Table::new(vec![
        Column::new("whole", vec![Some(1), None, Some(i64::MIN)]),
        Column::new("real", vec![Some(0.1), Some(f64::MAX), None]),
        Column::new("text", vec!["a,\"b\"".to_owned(), String::new(), "é\n".to_owned()]),
        Column::new("truth", vec![true, false, true]),
    ])
    .with("k", "v");
    let path = Path::new("t.parquet");
    let bytes = table.to_parquet(path).unwrap();
    assert_eq!(Table::from_parquet(path, bytes).unwrap(), table);
    let mut csv = Vec::new();
    table.write_csv(path, &mut csv).unwrap();
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        format!(
            "whole,real,text,truth\n1,0.1,\"a,\"\"b\"\"\",true\n,{},,false\n-9223372036854775808,,\"é\n\",true\n",
            f64::MAX
        )
    );
}

#[test]
fn an_empty_table_is_a_table() {
    let path = Path::new("t.parquet");
    let table = Table::new(vec![Column::new("x", Values::Float64(Vec::new()))]);
    assert_eq!(Table::from_parquet(path, table.to_parquet(path).unwrap()).unwrap(), table);
}

#[test]
fn errors_name_file_and_column() {
    let path = Path::new("t.parquet");
    let ragged = Table::new(vec![Column::new("a", vec![1_i64]), Column::new("b", Vec::<i64>::new())]);
    assert_eq!(ragged.to_parquet(path).unwrap_err().to_string(), "t.parquet: column `b` has 0 values, the first has 1");

    let dir = tempfile::tempdir().unwrap();
    let write = |columns: Vec<Column>| {
        let path = dir.path().join("w.parquet");
        Table::new(columns).write_parquet(&path).unwrap();
        let error = read_workload(&path, Catalog::shipped()).unwrap_err();
        error.to_string().replace(&format!("{}/", dir.path().display()), "")
    };
    let id = || Column::new("job_id", vec!["a".to_owned(), "b".to_owned()]);
    let submit = || Column::new("submit_secs", vec![0.0, 1.0]);
    let gpus = || Column::new("gpus", vec![1_i64, 2]);
    assert_eq!(write(vec![id(), submit()]), "w.parquet:1: column `gpus` is missing; found job_id, submit_secs");
    let text = Column::new("submit_secs", vec!["x".to_owned(), "y".to_owned()]);
    assert_eq!(write(vec![id(), text, gpus()]), "w.parquet: column `submit_secs` is text, expected numbers");
    let negative = Column::new("submit_secs", vec![0.0, -1.0]);
    assert_eq!(write(vec![id(), negative, gpus()]), "w.parquet:2: submit_secs is `-1`, expected seconds of at least 0");
    assert_eq!(write(vec![id(), submit(), gpus()]), "w.parquet:1: the job has neither an application nor a duration");
    let duration = || Column::new("duration_secs", vec![60.0, f64::NAN]);
    assert_eq!(
        write(vec![id(), submit(), gpus(), duration()]),
        "w.parquet:2: duration_secs is `NaN`, expected seconds above 0"
    );
    let max = Column::new("gpu_max", vec![4_i64, 1]);
    let sixty = Column::new("duration_secs", vec![60.0, 60.0]);
    let sizes = write(vec![id(), submit(), gpus(), sixty, max]);
    assert!(sizes.starts_with("w.parquet:2: "), "{sizes}");

    let unwritable = Table::default().write_parquet(Path::new("/proc/none/t.parquet")).unwrap_err();
    assert!(matches!(unwritable, DataError::Write { .. }), "{unwritable}");
    let full = Table::new(vec![id()]).write_parquet(Path::new("/dev/full")).unwrap_err();
    assert!(full.to_string().starts_with("cannot write /dev/full: No space left"), "{full}");
    let mut truncated = Table::new(vec![id()]).to_parquet(path).unwrap();
    truncated.truncate(truncated.len() - 5);
    assert!(matches!(Table::from_parquet(path, truncated), Err(DataError::Parquet { .. })));
}
