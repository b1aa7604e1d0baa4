//! Tables: their columns, their bytes, the leaderboard.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use crate::common::comparison;
use goodput_datasets::store::Table;
use goodput_eval::Evaluation;
use goodput_eval::report::leaderboard::{COLUMNS, leaderboard};
use goodput_eval::report::origin::{ResultOrigin, markdown_results};
use goodput_eval::report::rows::RunRows;
use goodput_eval::report::tables::run_table;
use goodput_eval::run::RunHead;

fn evaluation() -> Evaluation {
    comparison(2, 4).run(&|_, _| {}).unwrap()
}

/// Rows of all runs in one of their tables, as csv.
fn rows(of: impl Fn(&RunRows) -> Table) -> String {
    let evaluation = evaluation();
    let mut text = String::new();
    for index in 0..evaluation.runs.len() {
        let part = csv(&of(&evaluation.rows(index)));
        let (header, rows) = part.split_once('\n').unwrap();
        text += &if index == 0 { format!("{header}\n{rows}") } else { rows.to_owned() };
    }
    text
}

fn csv(table: &Table) -> String {
    let mut out = Vec::new();
    table.write_csv(Path::new("test.csv"), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_job_row_has_batsims_columns_and_ours() {
    let text = rows(|rows| rows.jobs.clone());
    let head: Vec<&str> = text.lines().take(3).collect();
    insta::assert_snapshot!(head.join("\n"));
    assert_eq!(text.lines().count(), 1 + 3 * 4 * 4);
}

#[test]
fn times_of_a_job_add_up() {
    use goodput_datasets::store::Values;
    let table = evaluation().rows(0).jobs;
    let column = |name: &str| match table.column(name).unwrap() {
        Values::Float64(values) => values.iter().map(|value| value.unwrap()).collect::<Vec<f64>>(),
        other => panic!("{name} holds {}", other.kind()),
    };
    let (waiting, execution, turnaround) =
        (column("waiting_time"), column("execution_time"), column("turnaround_time"));
    let (submit, start, finish) = (column("submission_time"), column("starting_time"), column("finish_time"));
    for row in 0..table.rows() {
        assert!((waiting[row] + execution[row] - turnaround[row]).abs() < 1e-9);
        assert!((submit[row] + waiting[row] - start[row]).abs() < 1e-9);
        assert!((start[row] + execution[row] - finish[row]).abs() < 1e-9);
    }
}

#[test]
fn only_the_first_scenario_logs_its_allocations() {
    let text = rows(|rows| rows.sides[1].clone());
    assert!(text.lines().skip(1).all(|line| line.contains(",steady,0,")));
    assert!(text.lines().count() > 3 * 4 * 2);
}

#[test]
fn a_run_has_a_row_with_every_metric() {
    let evaluation = evaluation();
    let heads: Vec<RunHead> = evaluation.runs.iter().map(RunHead::of).collect();
    let text = csv(&run_table(&evaluation.layout, &heads));
    assert_eq!(text.lines().count(), 1 + 12);
    assert!(text.starts_with("policy,workload,seed,information,jct_mean_secs,"));
}

#[test]
fn parquet_is_the_same_twice_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.parquet"), folder.path().join("b.parquet"));
    let table = evaluation().rows(0).jobs;
    table.write_parquet(&first).unwrap();
    evaluation().rows(0).jobs.write_parquet(&second).unwrap();
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    assert_eq!(goodput_datasets::store::Table::read_parquet(&first).unwrap(), table);
}

#[test]
fn the_leaderboard_is_a_markdown_table() {
    insta::assert_snapshot!(leaderboard(&comparison(3, 12).run(&|_, _| {}).unwrap().summary));
}

#[test]
fn results_in_markdown_name_their_origin() {
    let json = comparison(2, 4).run(&|_, _| {}).unwrap().summary.to_json();
    let summary = serde_json::from_str(&json).unwrap();
    let origin = ResultOrigin {
        command: "goodput eval x.toml".into(),
        version: "0.1.0".into(),
        commit: Some("0123456789ab".into()),
        date: "2026-01-31".into(),
    };
    let text = markdown_results(&summary, &COLUMNS, Some(&origin));
    assert!(text.starts_with(&leaderboard(&summary)), "{text}");
    assert!(text.contains("- Workload `steady`: 2 seeds, "), "{text}");
    assert!(
        text.ends_with("- Command: `goodput eval x.toml`, on 2026-01-31, goodput 0.1.0, commit `0123456789ab`.\n"),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<ResultOrigin>(&origin.to_json()).unwrap(), origin);
    let brief = markdown_results(&summary, &["restarts_mean", "jct_mean_secs"], None);
    let head: Vec<&str> = brief.lines().next().unwrap().split('|').map(|name| name.trim()).collect();
    assert!(head[3..5] == ["restarts, per job", "mean JCT, s"] && head[5].starts_with("against "), "{brief}");
    assert!(!brief.contains("Command"));
}
