//! `goodput federate`: a file in, the comparison of coordinators out.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;

use crate::support::{plain, run};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/scenario/cross-cluster.toml");

/// The shipped federation, changed.
fn federate(from: &str, to: &str, args: &[&str]) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(SHIPPED).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(dir.path().join("x.toml"), text.replace(from, to)).unwrap();
    run(dir.path(), &[&["federate", "x.toml"], args].concat())
}

#[test]
fn coordinators_are_compared_on_the_same_jobs_and_no_server_is_lost() {
    let csv = |threads| federate("seeds = 100", "seeds = 3", &["-q", "-o", "csv", "-j", threads]);
    let (code, text, said) = csv("1");
    assert_eq!((code, said.as_str()), (0, ""));
    assert_eq!(csv("2").1, text, "the number of threads changed the result");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<BTreeMap<&str, &str>> =
        lines.map(|line| columns.iter().copied().zip(line.split(',')).collect()).collect();
    let names: Vec<(&str, &str)> = rows.iter().map(|row| (row["cluster"], row["coordinator"])).collect();
    let expected = ["east", "west", "all"].map(|cluster| ["none", "reactive", "forecast"].map(|how| (cluster, how)));
    assert_eq!(names, expected.concat());
    let number = |row: usize, column: &str| rows[row][column].parse::<f64>().unwrap();
    for (row, cells) in rows.iter().enumerate() {
        assert_eq!(number(row, "jobs"), if cells["cluster"] == "all" { 2400.0 } else { 1200.0 });
        let moves = number(row, "servers_in") + number(row, "servers_out");
        assert_eq!(moves == 0.0, cells["coordinator"] == "none", "{cells:?}");
        assert!(number(row, "slo_attainment") > 0.9, "{cells:?}");
        assert_eq!(cells["difference_secs"].is_empty(), cells["coordinator"] == "none", "{cells:?}");
    }
    for column in ["servers_in", "servers_out", "preemptions"] {
        assert!((0..3).all(|how| number(how, column) + number(how + 3, column) == number(how + 6, column)), "{column}");
    }
    assert!((6..9).all(|row| rows[row]["servers_in"] == rows[row]["servers_out"]), "a server is in one place");
}

#[test]
fn a_coordinator_may_keep_what_the_objectives_of_services_ask_for() {
    let outlooks = "coordinator.outlook=[\"none\",\"objective\"]";
    let (code, text, said) = federate("seeds = 100", "seeds = 1", &["-q", "-o", "csv", "--set", outlooks]);
    assert_eq!((code, text.lines().count()), (0, 1 + 3 * 2), "{said}");
    let all = text.lines().find(|line| line.starts_with("all,objective,")).unwrap();
    let cells: Vec<&str> = all.split(',').collect();
    let [moved, attained] = [cells[8], cells[10]].map(|cell| cell.parse::<f64>().unwrap());
    assert!(moved > 0.0 && attained > 0.98, "{all}");
}

#[test]
fn clusters_may_differ_and_one_alone_is_near_what_eval_says() {
    let (code, text, said) = federate("movable = 8", "movable = 5", &["-q", "-o", "csv", "--seeds", "1"]);
    assert!(code == 0 && text.lines().count() == 10, "{said}");
    // Without a coordinator a cluster has no servers of other clusters. Only the decision times differ,
    // for the clusters still meet.
    let dir = tempfile::tempdir().unwrap();
    let shipped = fs::read_to_string(SHIPPED).unwrap();
    let east = shipped.split("[[clusters]]").nth(1).unwrap();
    let (environment, rest) =
        shipped.split_once("[environment]").map(|(_, rest)| rest.split_once("[[").unwrap()).unwrap();
    assert!(rest.starts_with("clusters]]"));
    let jobs = east.split_once("[clusters.workload").unwrap().1.replace("clusters.", "");
    let alone = format!(
        "name = \"east\"\n[environment]{environment}[[cluster.groups]]\nnodes = 8\ngpus_per_node = 4\npool = \"inference\"\n\
         [[cluster.groups]]\nnodes = 2\ngpus_per_node = 4\npool = \"training\"\n[workload{jobs}\n\
         [evaluate]\npolicies = [\"aryl+forecast\"]\nseeds = 1\n"
    );
    fs::write(dir.path().join("east.toml"), alone).unwrap();
    let (code, table, said) = run(dir.path(), &["eval", "east.toml", "-q", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    // The held-out seed is the first cluster's of half of it.
    let (_, text, _) = federate("seeds = 100", "seeds = 1\nseed = 500000", &["-q", "-o", "csv"]);
    let isolated: f64 = text.lines().nth(1).unwrap().split(',').nth(3).unwrap().parse().unwrap();
    let mean = table.lines().find(|line| line.contains("aryl+forecast")).unwrap();
    let close = |cell: &str| cell.parse::<f64>().is_ok_and(|secs| (secs / isolated - 1.0).abs() < 0.02);
    assert!(mean.split(',').any(close), "federate: {isolated}, eval: {mean}");
}

#[test]
fn mistakes_are_named() {
    let says = |from: &str, to: &str, expected: &[&str]| {
        let (code, _, said) = federate(from, to, &[]);
        let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(code == 2 && expected.iter().all(|part| said.contains(part)), "{expected:?} in {said}");
    };
    says("quantile = 0.9", "quantile = 2.0", &["x.toml:14:12: coordinator.quantile is 2, expected 0.001 to 0.999"]);
    says("\"forecast\"]", "\"prophecy\"]", &["prophecy", "`none`, `reactive`, `forecast`"]);
    says("\"forecast\"]", "\"none\"]", &["coordinator.outlook is one of them twice"]);
    says("movable = 8", "movable = 0", &["clusters.movable is 0, expected 1 to 1000000 in all"]);
    says("name = \"west\"", "name = \"east\"", &["clusters.name is \"east\" twice"]);
    says("nodes = 2", "nodes = 0", &["clusters, east: cluster.groups.nodes is 0"]);
    says("pool = \"training\"", "pool = \"inference\"", &["clusters, east: groups.pool is inference"]);
    says("aryl+forecast", "arul", &["clusters, east: there is no policy \"arul\"", "did you mean \"aryl\"?"]);
    says(
        "aryl+forecast",
        "aryl+forecst",
        &["did you mean \"forecast\"?", "none, reactive, forecast, objective, oracle"],
    );
    says("aryl+forecast", "gandiva(quantm_secs=1)", &["did you mean \"quantum_secs\"?", "list policies --parameters"]);
    says("aryl+forecast", "srtf@replica", &["clusters, east: policy is \"srtf@replica\"", "a training policy"]);
    says("information = \"oracle\"", "information = \"profiled\"", &["clusters, east: policy", "profiled"]);
    says("mean_per_sec = 1000.0", "mean_per_sec = -1.0", &["clusters, east: services, web", "mean_per_sec"]);
    let dir = tempfile::tempdir().unwrap();
    let (code, _, said) = run(dir.path(), &["eval", SHIPPED]);
    assert!(code == 2 && said.contains("goodput federate FILE"), "{said}");
}

#[test]
fn a_forecaster_made_before_is_for_a_service_of_some_cluster() {
    let saved = |name: &str| {
        let table = format!("[forecaster]\nsaved = {{ {name} = \"nowhere.bundle\" }}\n\n[environment]");
        let (code, _, said) = federate("[environment]", &table, &["-q"]);
        assert_eq!(code, 2);
        plain(&said)
    };
    assert!(saved("nobody").contains("a service of one of the clusters"), "{}", saved("nobody"));
    assert!(saved("web").contains("cannot read"), "{}", saved("web"));
}

#[test]
fn the_file_can_be_checked_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, said) = run(dir.path(), &["config", "check", SHIPPED]);
    assert!(code == 0 && said.ends_with("ok\n"), "{said}");
    let (code, shown, said) = run(dir.path(), &["config", "show", SHIPPED, "--set", "seeds=2"]);
    assert!(code == 0 && shown.contains("headroom = 0.02"), "{said}");
    fs::write(dir.path().join("shown.toml"), shown).unwrap();
    let csv = |path: &str| run(dir.path(), &["federate", path, "--seeds", "2", "-q", "-o", "csv"]).1;
    assert_eq!(csv("shown.toml"), csv(SHIPPED), "what is shown is what runs");
}
