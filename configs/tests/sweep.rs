//! Sweeps of experiment files: the combinations, their names and their order.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::experiment::{Experiment, points};
use goodput_configs::reader::{self, Document};

const STUDY: &str = include_str!("../scenario/cluster-size-study.toml");

fn names(text: &str) -> Vec<String> {
    let document = Document::new("study.toml", text, &[]).unwrap();
    points(&document).unwrap().into_iter().map(|point| point.name).collect()
}

#[test]
fn a_grid_is_every_combination() {
    let document = Document::new("study.toml", STUDY, &[]).unwrap();
    let points = points(&document).unwrap();
    let found: Vec<(u32, &str)> = points
        .iter()
        .map(|point| (point.experiment.cluster.groups[0].nodes, point.experiment.environment.switch_cost.as_str()))
        .collect();
    let expected: Vec<(u32, &str)> =
        [16, 20, 24, 28, 32].iter().flat_map(|nodes| ["zero", "pollux_const"].map(|cost| (*nodes, cost))).collect();
    assert_eq!(found, expected);
    assert_eq!(points[3].name, "nodes=20 switch_cost=pollux_const");
    assert!(points.iter().all(|point| point.experiment.sweep.is_none()));
}

#[test]
fn points_set_several_keys_each_with_the_whole_grid() {
    let more = "\n[[sweep.points]]\nworkload.synthetic.diurnal = { jobs = 60, jobs_per_hour = 10.0 }\n\n\
                [[sweep.points]]\nworkload.synthetic.diurnal.jobs = 240\n";
    let names = names(&format!("{STUDY}{more}"));
    assert_eq!(names.len(), 20);
    assert_eq!(names[0], "jobs=60 jobs_per_hour=10.0 nodes=16 switch_cost=zero");
    assert_eq!(names[10], "jobs=240 nodes=16 switch_cost=zero");
}

#[test]
fn a_name_has_the_whole_key_where_its_end_is_not_enough() {
    let more = "\n[[sweep.points]]\nworkload.synthetic.diurnal.tenants = 2\ncluster.groups.0.nodes = 8\n";
    let text = STUDY.split("[sweep.grid]").next().unwrap().to_owned() + more + "cluster.groups.1 = { nodes = 2 }\n";
    let text = text.replace("nodes = 2 }", "accelerator = \"v100\", nodes = 2, gpus_per_node = 4 }");
    assert!(
        names(&text)[0].starts_with(
            "cluster.groups.0.nodes=8 accelerator=v100 gpus_per_node=4 cluster.groups.1.nodes=2 tenants=2"
        ),
        "{:?}",
        names(&text)
    );
}

#[test]
fn an_experiment_without_a_sweep_is_its_only_point() {
    let text = STUDY.split("[sweep.grid]").next().unwrap();
    assert_eq!(names(text), [""]);
    let experiment: Experiment = reader::parse("study.toml", text).unwrap();
    assert_eq!(Experiment::of_resolved(&experiment.resolved().unwrap()).unwrap(), experiment);
}
