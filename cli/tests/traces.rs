//! `goodput data`: a trace goes in by its door, and out again.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::fs;
use std::path::Path;

use crate::support::{plain, run};

const OWN: &str = "who,cards,when,hours\nann,2,2026-10-01 08:00:00,1\nbob,1,2026-10-01 08:10:00,0.5\n";

/// A run of `goodput data`: exit code, standard output and messages.
fn data(dir: &Path, args: &[&str]) -> (i32, String, String) {
    run(dir, &[&["data"], args].concat())
}

#[test]
fn a_table_of_any_columns_goes_in_and_comes_out_as_swf() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("own.csv"), OWN).unwrap();
    let map = ["import", "own.csv", "--map", "gpus=cards,submit=when:date,duration=hours:hours,tenant=who"];
    let (code, _, said) = data(dir.path(), &map);
    assert!(code == 0 && said.contains("2 rows kept, 0 repaired, 0 refused"), "{code} {said}");
    let (code, _, said) = data(dir.path(), &["export", "own.parquet", "--format", "swf", "-o", "own.swf"]);
    assert!(code == 0 && said.contains("wrote 2 jobs to own.swf"), "{code} {said}");
    let swf = fs::read_to_string(dir.path().join("own.swf")).unwrap();
    assert!(swf.contains("\n2 600 -1 1800 1 "), "{swf}");
    let (code, _, said) = data(dir.path(), &["import", "own.swf"]);
    assert!(code == 0 && said.contains("2 rows kept"), "{code} {said}");
    let (code, _, said) = data(dir.path(), &["import", "own.csv", "--map", "cards=cards"]);
    assert!(code == 2 && plain(&said).contains("`cards` is no column of the job table"), "{code} {said}");
    let (code, _, said) = data(dir.path(), &["export", "own.parquet", "--format", "perfetto", "-o", "own.json"]);
    assert!(code == 2 && plain(&said).contains("a workload has no schedule to show"), "{code} {said}");
}

#[test]
fn the_schema_is_a_table_and_json() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text, _) = data(dir.path(), &["schema"]);
    assert!(code == 0 && text.contains("submit_secs"), "{text}");
    let (_, text, _) = data(dir.path(), &["schema", "--format", "json"]);
    let columns: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(columns.as_array().unwrap().len(), 16);
    assert_eq!((&columns[0]["name"], &columns[0]["required"]), (&"job_id".into(), &"yes".into()));
}

#[test]
fn an_assumption_is_printed_before_the_results_that_rest_on_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("own.csv"), OWN.replace("who", "application")).unwrap();
    let import = |more: &[&str]| {
        let map = ["import", "own.csv", "--map", "gpus=cards,submit=when:date,duration=hours:hours"];
        data(dir.path(), &[&map, more].concat())
    };
    let (code, _, said) = import(&[]);
    assert!(
        code == 0 && said.contains("applications that the catalog does not have, with their jobs: ann (1), bob (1)")
    );
    let sim = || run(dir.path(), &["sim", "--workload", "own.parquet", "--cluster", "1x4", "--policy", "fifo"]);
    assert!(!sim().2.contains("assumption"));
    let (code, _, said) = import(&["--assume-scaling", "cifar10"]);
    assert!(code == 0 && said.contains("assumption: unknown applications scale as cifar10"), "{code} {said}");
    let (code, rows, said) = sim();
    assert!(code == 0 && said.contains("assumption: unknown applications scale as cifar10"), "{said}");
    assert!(rows.contains("cifar10"), "{rows}");
    let (code, _, said) = import(&["--assume-scaling", "resnet"]);
    assert!(
        code == 2 && plain(&said).contains("neither mixture, nor a file, nor one of bert, cifar10"),
        "{code} {said}"
    );
}

#[test]
fn the_schedule_of_a_run_is_a_picture_for_perfetto() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = "name = \"own\"\n[[cluster.groups]]\nnodes = 1\ngpus_per_node = 2\n[workload.file]\npath = \"own.parquet\"\n\
        [environment]\ninformation = \"oracle\"\n[evaluate]\npolicies = [\"fifo\", \"srtf\"]\nseeds = 1\n";
    fs::write(dir.path().join("own.toml"), experiment).unwrap();
    fs::write(dir.path().join("own.csv"), OWN).unwrap();
    let map = ["import", "own.csv", "--map", "gpus=cards,submit=when:date,duration=hours:hours"];
    assert_eq!(data(dir.path(), &map).0, 0);
    let (code, _, said) = run(dir.path(), &["eval", "own.toml"]);
    assert_eq!(code, 0, "{said}");
    let export = |more: &[&str]| {
        data(dir.path(), &[&["export", "runs/eval", "--format", "perfetto", "-o", "own.json"], more].concat())
    };
    let (code, _, said) = export(&[]);
    assert!(code == 2 && plain(&said).contains("2 runs fit, expected one: fifo on"), "{code} {said}");
    let (code, _, said) = export(&["--policy", "srtf"]);
    assert!(code == 0 && said.contains("wrote 2 jobs"), "{code} {said}");
    let text = fs::read_to_string(dir.path().join("own.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(slices, 2 + 1 + 2, "the short job takes an accelerator between two spans of the long one on both");
}

#[test]
fn every_format_reports_its_refused_rows_and_exits_with_three_unless_they_are_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/tests/traces");
    let map = "gpus=cards,submit=created:date,start=began:date,end=ended:date,tenant=who,limit=max_hours:hours";
    let speeds = traces.join("gavel_throughputs.json");
    let speeds = ["--throughputs", speeds.to_str().unwrap()];
    let none: &[&str] = &[];
    // File, further words, rows kept, repaired and refused, and the line of a refused row.
    let cases = [
        ("archive.swf", none, [17, 0, 3], 10),
        ("sacct.txt", none, [9, 3, 6], 12),
        ("philly_job_log.json", none, [11, 2, 9], 2),
        ("philly.csv", none, [19, 1, 1], 12),
        ("helios.csv", none, [18, 0, 2], 8),
        ("pai/pai_task_table.csv", none, [14, 2, 6], 19),
        ("openb_pods.csv", none, [17, 0, 3], 5),
        ("elasticflow.csv", none, [19, 0, 1], 20),
        ("acme_seren.csv", none, [17, 0, 3], 6),
        ("acme_kalos.csv", none, [18, 0, 2], 9),
        ("supercloud.csv", none, [15, 0, 5], 5),
        ("shockwave.trace", none, [18, 17, 2], 20),
        ("gavel.trace", &speeds, [18, 0, 2], 9),
        ("kubernetes.json", none, [8, 0, 7], 19),
        ("kueue.json", none, [15, 0, 5], 4),
        ("jobs.csv", none, [17, 0, 3], 13),
        ("own.csv", &["--map", map], [18, 0, 2], 8),
    ];
    for (file, words, [kept, repaired, refused], line) in cases {
        let path = traces.join(file);
        let command = [&["import", path.to_str().unwrap(), "-o", "out.parquet"], words].concat();
        let (code, _, said) = data(dir.path(), &command);
        let counts = format!("{kept} rows kept, {repaired} repaired, {refused} refused");
        assert!(code == 3 && said.contains(&counts), "{file}: {code} {said}");
        assert!(said.contains(&format!("\n  line {line}: ")), "{file}: {said}");
        assert!(said.contains("with --allow-refused the exit code is 0"), "{file}: {said}");
        let (code, _, said) = data(dir.path(), &[&command[..], &["--allow-refused"]].concat());
        assert!(code == 0 && said.contains(&counts), "{file}: {code} {said}");
        let (code, _, said) = data(dir.path(), &["validate", "out.parquet"]);
        assert!(code == 0, "{file}: {code} {said}");
    }
}
