//! Parity with the published FGD experiment on the openb trace, and what ties change.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader of a failure")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use goodput_agents::heuristic::card_sharing;
use goodput_agents::placement::fractional::strategy::{self, STRATEGIES};
use goodput_agents::placement::fractional::{Placer, Request, TieBreak};
use goodput_eval::reproduce::fgd::{self, Openb};
use goodput_eval::reproduce::fgd_policies;
use goodput_eval::reproduce::{REPRODUCTIONS, ReproducedFigure};

fn shared() -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(root.exists(), "{} is absent: these tests compare with the public data in it", root.display());
    root
}

fn show(figures: &[ReproducedFigure]) {
    for ReproducedFigure { case, theirs, ours, .. } in figures {
        let theirs = theirs.map_or("-".into(), |theirs| format!("{theirs:.2}"));
        println!("{case:<32} ours {ours:.2} theirs {theirs}");
    }
}

#[test]
fn six_strategies_allocate_what_the_artifact_allocates() {
    let figures = fgd::table(&shared(), fgd::SEEDS).unwrap();
    show(&figures);
    assert_eq!(figures.len(), 18);
    for figure in &figures {
        let theirs = figure.theirs.unwrap();
        assert!((figure.ours - theirs).abs() < 0.5, "{}: {} {theirs}", figure.case, figure.ours);
    }
}

/// On nodes without processors, the policies of the simulator allocate as much as the placer. `fgd` learns on the way
/// what is typical, so it differs a little.
#[test]
fn policies_of_the_simulator_allocate_what_the_placer_allocates() {
    let mut trace = Openb::read(&shared(), "default").unwrap();
    let by_policy = |name: &str| fgd_policies::allocated_percent(&trace, name, 0).unwrap();
    let ours: BTreeMap<&str, f64> = card_sharing::LISTED.iter().map(|of| (of.name, by_policy(of.name))).collect();
    println!("{ours:?}");
    trace.nodes.iter_mut().for_each(|node| (node.cpu_milli, node.memory_mib) = (0, 0));
    for pod in &mut trace.pods {
        (pod.cpu_milli, pod.memory_mib) = (0, 0);
    }
    let arrivals = |pod: &&Request| pod.accelerators > 0;
    for name in ["gpu-packing", "gpu-clustering", "best-fit", "fgd"] {
        let strategy = strategy::by_name(name, &trace.typical).unwrap();
        let nodes = fgd_policies::shuffled(&trace.nodes, 0);
        let mut placer = Placer::new(nodes, strategy, TieBreak::LowestIndex, 0);
        let pods = trace.arrivals(0);
        let placed = pods.iter().filter(arrivals).filter(|pod| placer.place(pod).is_some());
        let milli: u64 = placed.map(|pod| u64::from(pod.total_milli())).sum();
        let expected = milli as f64 * 100.0 / trace.total_milli as f64;
        println!("{name}: {expected}");
        let bound = if name == "fgd" { 0.5 } else { 1e-9 };
        assert!((ours[name] - expected).abs() < bound, "{name}: {} and {expected}", ours[name]);
    }
}

#[test]
fn ties_alone_cost_fgd_five_points() {
    let figures = fgd::ties(&shared(), fgd::SEEDS).unwrap();
    show(&figures);
    let ours = |case: &str| figures.iter().find(|figure| figure.case == case).unwrap().ours;
    assert!(ours("fgd fixed-random") - ours("fgd random") > 4.0, "a drawn tie scatters the work");
    assert!((ours("fgd fixed-random") - ours("fgd lowest-index")).abs() < 0.5, "any order will do if it stays");
    assert!(ours("fgd fixed-random") > ours("fgd-exact fixed-random"), "coarse scores win on this trace");
}

#[test]
fn the_trace_is_what_its_readme_says() {
    let trace = Openb::read(&shared(), "default").unwrap();
    assert_eq!((trace.nodes.len(), trace.pods.len(), trace.total_milli), (1213, 8152, 6_212_000));
    assert_eq!(trace.pods.iter().map(|pod| pod.total_milli()).sum::<u32>(), 6_086_800);
    assert_eq!(trace.typical.typical().len(), 35, "the specification counts 35 typical pods");
    let requested = |seed| trace.arrivals(seed).iter().map(|pod| u64::from(pod.total_milli())).sum::<u64>();
    let part = requested(0) as f64 / trace.total_milli as f64;
    assert!((1.298..=1.302).contains(&part), "{part}");
    assert_ne!(trace.arrivals(0), trace.arrivals(1));
}

/// No node is ever overdrawn, and after everything is taken back every node is idle again.
#[test]
fn placing_and_releasing_the_trace_leaves_no_trace() {
    let trace = Openb::read(&shared(), "default").unwrap();
    let arrivals = trace.arrivals(3);
    for listed in STRATEGIES {
        let strategy = strategy::by_name(listed.name, &trace.typical).unwrap();
        let mut placer = Placer::new(trace.nodes.clone(), strategy, TieBreak::FixedRandom, 3);
        let placed: Vec<_> = arrivals.iter().filter_map(|pod| Some((pod, placer.place(pod)?))).collect();
        let idle: u64 = placer.nodes().map(|node| u64::from(node.idle_milli())).sum();
        let taken: u64 = placed.iter().map(|(pod, _)| u64::from(pod.total_milli())).sum();
        assert_eq!(idle + taken, trace.total_milli, "{}", listed.name);
        for (pod, placed) in &placed {
            placer.release(pod, placed);
        }
        assert!(placer.nodes().eq(trace.nodes.iter()), "{}", listed.name);
    }
}

#[test]
fn the_tables_are_listed() {
    for name in ["fgd-openb", "fgd-lists", "fgd-ties"] {
        assert!(REPRODUCTIONS.iter().any(|table| table.name == name), "{name}");
    }
}
