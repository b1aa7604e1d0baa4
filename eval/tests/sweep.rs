//! Cells of sweeps: what is stored is read, and a second result must have equal bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::experiment::Experiment;
use goodput_configs::reader;
use goodput_eval::report::Report;
use goodput_eval::report::results::ComparisonResults;
use goodput_eval::sweep::{
    CellStore, SharedFolderError, Stored, StudyWorkload, Sweep, SweepError, SweepPlan, SweepShard, SweepStudy,
};

fn sweep(policies: &[&str], seeds: std::ops::Range<u64>) -> Sweep {
    let text = include_str!("../../configs/experiment/set-encoder.toml");
    let experiment: Experiment = reader::parse("set-encoder.toml", text).unwrap();
    let study = SweepStudy {
        title: "A study".into(),
        argv: vec!["goodput".into()],
        config: text.into(),
        policies: policies.iter().map(|name| (*name).to_owned()).collect(),
        workloads: StudyWorkload::of(&experiment, &[]),
        seeds: seeds.collect(),
        reference: None,
    };
    Sweep::plan(study, "a build", "once").unwrap()
}

#[test]
fn a_cell_is_read_as_it_was_stored() {
    let (sweep, dir) = (sweep(&["fifo", "tiresias(starvation_knob=2)"], 1..3), tempfile::tempdir().unwrap());
    let store = CellStore::open(dir.path()).unwrap();
    for (index, planned) in sweep.planned().cells.iter().enumerate() {
        let cell = sweep.cell(index).unwrap();
        assert_eq!(cell.rows.picture.is_some(), sweep.layout().is_shown(index));
        assert_eq!(store.put(&planned.key, &cell).unwrap(), Stored::New);
        assert_eq!(store.read(&planned.key).unwrap(), cell);
        assert_eq!(store.head(&planned.key).unwrap(), cell.head);
        assert_eq!(store.put(&planned.key, &sweep.cell(index).unwrap()).unwrap(), Stored::Known, "the same bytes");
    }
    let (first, second) = (&sweep.planned().cells[0].key, sweep.cell(1).unwrap());
    let error = store.put(first, &second).unwrap_err();
    let SweepError::Shared(SharedFolderError::Differs { name, .. }) = &error else { panic!("{error}") };
    assert_eq!(name, &format!("{first}.parquet"));
    assert!(error.to_string().starts_with("this machine computes differently"), "{error}");
}

#[test]
fn a_merge_shows_what_a_comparison_in_memory_shows() {
    let (sweep, dir) = (sweep(&["fifo", "tiresias"], 1..4), tempfile::tempdir().unwrap());
    let store = CellStore::open(dir.path()).unwrap();
    sweep.run(&SweepShard::WHOLE.cells(sweep.planned()), &store, &|_, _| ()).unwrap();
    let merged: ComparisonResults = sweep.merge(&store, dir.path(), true).unwrap();
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("summary.json"), merged.summary.to_json().as_bytes());
    let page = Report::default().render(&merged).unwrap();
    assert!(page.contains("id=\"completion\"") && page.contains("id=\"utilisation\""));
    assert_eq!(String::from_utf8(read("jobs.csv")).unwrap().lines().count(), 1 + 6 * merged.heads[0].jobs);
}

#[test]
fn keys_tell_apart_what_gives_another_result() {
    let keys = |sweep: &Sweep| sweep.planned().cells.iter().map(|cell| cell.key.clone()).collect::<Vec<_>>();
    let (one, more) = (keys(&sweep(&["fifo", "srtf"], 5..7)), keys(&sweep(&["fifo", "srtf"], 5..8)));
    let mut all = one.clone();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
    assert!(one.iter().all(|key| more.contains(key)), "a study with more seeds has the cells of the first");
    let outside = SweepPlan { build: "another build".into(), ..sweep(&["fifo"], 5..6).planned().clone() };
    let dir = tempfile::tempdir().unwrap();
    outside.write(dir.path()).unwrap();
    assert!(matches!(Sweep::open(dir.path(), "a build").unwrap_err(), SweepError::Build { .. }));
}

#[test]
fn shards_share_the_work_and_nothing_else() {
    let mut plan = sweep(&["fifo", "srtf", "tiresias"], 1..8).planned().clone();
    plan.cells.iter_mut().enumerate().for_each(|(at, cell)| cell.cost_secs = 1.0 + (at * at) as f64);
    let shards: Vec<Vec<usize>> = (0..4).map(|index| SweepShard::new(index, 4).unwrap().cells(&plan)).collect();
    let mut all: Vec<usize> = shards.concat();
    all.sort_unstable();
    assert_eq!(all, (0..21).collect::<Vec<_>>());
    let cost = |cells: &Vec<usize>| cells.iter().map(|cell| plan.cells[*cell].cost_secs).sum::<f64>();
    let (most, total) = (shards.iter().map(cost).fold(0.0, f64::max), cost(&all));
    assert!(most <= total / 4.0 * 4.0 / 3.0, "{most} of {total}");
    assert!(shards.iter().all(|cells| cells.is_sorted_by(|a, b| a > b)), "the longest first");
    assert_eq!("1/4".parse(), Ok(SweepShard::new(1, 4).unwrap()));
    assert!("4/4".parse::<SweepShard>().is_err() && "x".parse::<SweepShard>().is_err());
}
