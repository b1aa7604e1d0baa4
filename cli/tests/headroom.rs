//! `goodput eval --headroom`: a row and a picture for each setting.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use crate::support::run;

const MAP: &str = r#"
name = "map"

[[cluster.groups]]
accelerator = "t4"
nodes = 16
gpus_per_node = 4

[workload.synthetic.pollux]
jobs = 12

[environment]
batching = "agent"
information = "profiled"

[evaluate]
policies = ["tiresias", "sia", "lookahead(tiresias)"]
seeds = 2

[sweep]
points = [
  { "environment.information" = { estimate = { sigma = 0.5 } } },
  { "environment.switch_cost" = "600s" },
]
"#;

#[test]
fn each_setting_has_a_row_in_which_the_probe_is_above_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("map.toml"), MAP).unwrap();
    let (code, shown, said) = run(dir.path(), &["eval", "map.toml", "--headroom", "-o", "csv", "--run-dir", "out"]);
    assert_eq!(code, 0, "{said}");
    let table = &shown[shown.find("workload,published").unwrap()..];
    let rows: Vec<Vec<&str>> = table.trim().lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    for row in &rows {
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        assert!(["sia", "tiresias"].contains(&row[1]) && row[2] == "lookahead(tiresias)", "{shown}");
        // The probe plays the published policies to the end before it starts, so that it is no worse; the bound is
        // below everything.
        assert!(number(9) <= number(8) && number(8) <= number(6) + 0.1, "{shown}");
    }
    let picture = fs::read_to_string(dir.path().join("out/headroom.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("switch_cost=600s"), "{picture}");
}
