//! Parameters of the listed policies: names are read and written alike, and every parameter changes what its policy
//! decides.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{fixed, jcts, on_slow_and_fast, oracle, random_workload};
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{NamedPolicy, PolicyNameError, policies, split_list, with_parameters};
use goodput_agents::heuristic::parameters::ParameterError;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::job::{Elasticity, Workload};
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator};
use rand::RngExt;
use serde_json::json;

fn named(text: &str) -> NamedPolicy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_name_is_written_without_what_is_usual() {
    for (text, written) in [
        ("fifo", "fifo"),
        ("gandiva()", "gandiva"),
        ("gandiva(quantum_secs=1800)", "gandiva"),
        ("gandiva( quantum_secs = 6e2 )", "gandiva(quantum_secs=600)"),
        ("gandiva(quantum_secs=600)+reactive", "gandiva(quantum_secs=600)+reactive"),
        ("tiresias(starvation_knob=2.0,limits=[3250,7200])", "tiresias(limits=[3250, 7200], starvation_knob=2)"),
        ("tiresias-l@replica", "tiresias-l@replica"),
        ("tiresias(starvation_knob=0.5)+ats-i", "tiresias(starvation_knob=0.5)+ats-i"),
        ("aryl+forecast:day", "aryl+forecast:day"),
        ("srtf+none+ats-i", "srtf+none+ats-i"),
        ("kueue(within_cohort=never, strategies=[])", "kueue(strategies=[], within_cohort=never)"),
        ("kueue(within_cohort=\"lower-priority\")", "kueue(within_cohort=lower-priority)"),
    ] {
        assert_eq!(named(text).to_string(), written, "{text}");
        assert_eq!(named(written).to_string(), written);
    }
    assert_eq!(
        split_list("fifo, gandiva(quantum_secs=60),tiresias(limits=[1, 2], starvation_knob=1)"),
        ["fifo", "gandiva(quantum_secs=60)", "tiresias(limits=[1, 2], starvation_knob=1)"]
    );
    let table = json!({"quantum_secs": 60, "x": ["a b", true]});
    let text = with_parameters("gandiva+none", table.as_object().unwrap());
    assert_eq!(text, "gandiva(quantum_secs=60, x=[\"a b\", true])+none");
}

#[test]
fn what_is_wrong_about_a_name_has_a_name() {
    let error = |text: &str| text.parse::<NamedPolicy>().map(drop).unwrap_err();
    for text in ["gandiva(", "gandiva(60)", "gandiva(quantum_secs=)", "gandiva(a=1, a=1)", "fifo none", "fifo+"] {
        let error = error(text);
        let unread = matches!(error, PolicyNameError::Syntax { .. } | PolicyNameError::UnknownVariant { .. });
        assert!(
            unread || matches!(&error, PolicyNameError::Unknown { name } if name.contains(' ')),
            "{text}: {error:?}"
        );
    }
    assert!(matches!(error("fifoo(x=1)"), PolicyNameError::Unknown { name } if name == "fifoo"));
    assert!(matches!(error("gandiva@replica"), PolicyNameError::NoReplica { policy: "gandiva" }));
    let PolicyNameError::Parameter { policy: "gandiva", problem: ParameterError::Unknown { name, known } } =
        error("gandiva(quantum=1)")
    else {
        panic!("an unknown parameter")
    };
    assert_eq!((name.as_str(), known.as_slice()), ("quantum", &["quantum_secs".to_owned()][..]));
    for refused in ["\"60\"", "true", "0", "-1", "[60]", "1e99", "NaN"] {
        let found = error(&format!("gandiva(quantum_secs={refused})"));
        assert!(matches!(found, PolicyNameError::Parameter { problem: ParameterError::Value { .. }, .. }), "{found:?}");
    }
}

/// Promotion of Tiresias, as the Rust interface has it, from the text that a user types.
#[test]
fn the_starving_are_promoted_by_a_name() {
    let expected = oracle("tiresias_starve");
    let row = |row: &serde_json::Value| {
        let number = |at: usize| row[at].as_i64().unwrap();
        fixed(row[0].as_str().unwrap(), number(1) as u32, number(2), number(3))
    };
    let jobs: Vec<_> = expected["jobs"].as_array().unwrap().iter().map(row).collect();
    for (knob, known) in [(0, "nokn"), (2, "knob2")] {
        let policy = named(&format!("tiresias(limits=[2000], starvation_knob={knob})"));
        let found = jcts(&mut *policy.training(0), 2, jobs.clone());
        assert!(found.iter().all(|(name, secs)| expected[known][name].as_f64() == Some(*secs)), "{knob}: {found:?}");
    }
}

/// Situation in which a parameter shows.
#[derive(Clone, Copy)]
enum Situation {
    /// Elastic and rigid jobs on one type.
    Mixed,
    /// Rigid jobs of three tenants with priorities.
    Tenants,
    /// Jobs on two types of accelerator.
    Types,
}

fn scenario(situation: Situation, named: &NamedPolicy, seed: u64) -> Scenario {
    let policy = named.training(seed);
    let options =
        SimOptions { batching: policy.batching(), information: Information::Oracle, ..SimOptions::standard() };
    let draws = &mut rng(seed, Stream::Workload);
    let (cluster, workload) = match situation {
        Situation::Mixed => (Cluster::homogeneous(3, 4), random_workload(draws, 24, 12)),
        Situation::Tenants => {
            let jobs = (0..40).map(|at| {
                let mut job =
                    fixed(&format!("j{at}"), draws.random_range(1..=4), draws.random_range(300..3000), at * 40);
                job.request.tenant = draws.random_range(0..3);
                job.request.priority = draws.random_range(0..3);
                job
            });
            (Cluster::homogeneous(2, 4), Workload::new(Vec::new(), jobs.collect()))
        }
        Situation::Types => {
            let types = ["slow", "fast"].map(AcceleratorType::named);
            let nodes = [0, 1].map(|kind| Node::new(TypeId(kind), 4));
            let mut workload = on_slow_and_fast(random_workload(draws, 30, 4));
            // AlloX matches jobs of one accelerator.
            workload.jobs.iter_mut().step_by(2).for_each(|job| {
                (job.request.gpus, job.request.elasticity) = (1, Elasticity::Rigid);
            });
            (Cluster { types: types.into(), nodes: nodes.into() }, workload)
        }
    };
    Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed)
}

fn outcome(situation: Situation, text: &str, seed: u64) -> Outcome {
    let named = named(text);
    let scenario = Arc::new(scenario(situation, &named, seed));
    Simulator::new(scenario).run(&mut *named.build(seed, &Sharing::default())).unwrap()
}

/// Policies with their parameters: what both runs have, and what the second one has besides.
const CHANGES: &[(&[&str], Situation, &str, &str)] = &[
    (&["tiresias", "tiresias-l", "tiresias-g", "las"], Situation::Mixed, "", "limits=[300]"),
    (&["tiresias", "tiresias-l", "tiresias-g", "las"], Situation::Mixed, "limits=[300]", "starvation_knob=0.2"),
    (&["tiresias-g"], Situation::Mixed, "", "gittins_quantum=50"),
    (&["strict-order", "easy", "conservative"], Situation::Tenants, "", "order=saf"),
    (&["gandiva"], Situation::Mixed, "", "quantum_secs=120"),
    (&["themis"], Situation::Mixed, "", "fairness_knob=0"),
    (&["themis"], Situation::Mixed, "", "lease_secs=120"),
    (&["pollux", "pollux-noavoid"], Situation::Mixed, "population=8, generations=5", "power=-6"),
    (&["pollux", "pollux-noavoid"], Situation::Mixed, "population=8, generations=5", "restart_secs=900"),
    (&["pollux", "pollux-noavoid"], Situation::Mixed, "generations=5", "population=6"),
    (&["pollux", "pollux-noavoid"], Situation::Mixed, "population=8", "generations=2"),
    (&["pollux", "pollux-noavoid"], Situation::Tenants, "population=8, generations=5", "tenant_fairness=1"),
    (&["pollux-fast"], Situation::Tenants, "", "tenant_fairness=1"),
    (&["pollux-fast"], Situation::Mixed, "", "power=-6"),
    (&["pollux-fast"], Situation::Mixed, "", "restart_secs=900"),
    (&["sia"], Situation::Types, "", "power=-6"),
    (&["sia"], Situation::Types, "", "lambda=100"),
    (&["deepboot"], Situation::Mixed, "", "period_secs=600"),
    (&["deepboot"], Situation::Mixed, "", "restart_secs=300"),
    (&["allox"], Situation::Types, "", "fraction=0.1"),
    (&["allox"], Situation::Types, "", "most_jobs=1"),
    (&["kueue"], Situation::Tenants, "", "within_tenant=never"),
    (&["kueue"], Situation::Tenants, "", "within_cohort=never"),
    (&["kueue"], Situation::Tenants, "", "strategies=[]"),
    (&["shockwave"], Situation::Tenants, "", "round_secs=600"),
    (&["shockwave"], Situation::Tenants, "", "window=2"),
    (&["shockwave"], Situation::Tenants, "", "replan_after=1"),
    (&["shockwave"], Situation::Tenants, "", "k=100"),
    (&["shockwave"], Situation::Tenants, "", "lambda=0"),
    (&["shockwave"], Situation::Tenants, "", "most_ratio=100"),
    (&["gavel-per-watt", "gavel-per-dollar"], Situation::Types, "", "relative=true"),
    (&["kai", "kai-time-aware"], Situation::Tenants, "", "min_runtime_secs=900"),
    (&["kai", "kai-time-aware"], Situation::Tenants, "min_runtime_secs=0, usage_half_life_secs=600", "usage_weight=20"),
    (&["kai", "kai-time-aware"], Situation::Tenants, "usage_weight=5", "usage_half_life_secs=60"),
];

/// Seeds that are tried until one shows a difference.
const SEEDS: u64 = 12;

#[test]
fn every_parameter_changes_a_decision() {
    let mut gavel: Vec<&str> = policies().map(|entry| entry.name).filter(|name| name.starts_with("gavel-")).collect();
    gavel.sort_unstable();
    let counting: Vec<&str> = gavel.iter().copied().filter(|name| *name != "gavel-fifo-perf").collect();
    let rounds = [
        (gavel.as_slice(), Situation::Types, "", "round_secs=90"),
        (counting.as_slice(), Situation::Types, "", "reset_secs=400"),
    ];
    let (mut shown, mut alike) = (BTreeSet::new(), Vec::new());
    for &(names, situation, before, change) in CHANGES.iter().chain(&rounds) {
        for name in names {
            let separator = if before.is_empty() { "" } else { ", " };
            let (one, other) = (format!("{name}({before})"), format!("{name}({before}{separator}{change})"));
            let differs = |seed: u64| outcome(situation, &one, seed) != outcome(situation, &other, seed);
            if !(0..SEEDS).any(differs) {
                alike.push(other.clone());
            }
            shown.insert((*name, change.split('=').next().unwrap()));
        }
    }
    assert!(alike.is_empty(), "policies that decide as without the parameter: {alike:#?}");
    let listed: BTreeSet<(&str, String)> = policies()
        .flat_map(|entry| entry.constructor.parameters().into_iter().map(|parameter| (entry.name, parameter.name)))
        .collect();
    let shown: BTreeSet<(&str, String)> = shown.into_iter().map(|(name, parameter)| (name, parameter.into())).collect();
    assert_eq!(listed, shown, "parameters of the list, and parameters that this test changes");
}

#[test]
fn a_parameter_says_what_it_is() {
    for entry in policies() {
        for parameter in entry.constructor.parameters() {
            let place = format!("{}: {}", entry.name, parameter.name);
            assert!(parameter.about.len() > 10, "{place} has no description");
            assert!(!parameter.source.is_empty(), "{place} has no source");
            assert!(parameter.expected.allows(&parameter.default), "{place} refuses its own default");
            let timed = parameter.name.ends_with("_secs");
            assert!(!timed || parameter.unit.ends_with('s'), "{place} has no unit");
        }
    }
}
