//! The environment where accelerator types are told apart: a verb for each type starts a job there
//! or moves it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::accelerator_types::two_speeds;
use crate::support::{elastic, mixed_jobs};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::gym::{
    Action, ClusterEnv, Encoder, EnvOptions, Environment, Layout, Observation, ResetOptions, Round, ScenarioSource,
    TYPE_FEATURES, Verb, check,
};
use goodput_env::job::{JobSpec, Workload};
use goodput_env::model::FaultModel;
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::plan::Plan;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use rand::RngExt;

/// Elastic jobs run on the first two types, which differ by a factor of two; nothing is known of the third.
fn source(jobs: impl Fn(u64) -> Vec<JobSpec> + Send + Sync + 'static) -> ScenarioSource {
    let cluster = Arc::new(Cluster::parse("slow:3x4,fast:1x8,unknown:2x4").unwrap());
    let options =
        SimOptions { batching: Batching::Catalog, information: Information::Oracle, ..SimOptions::standard() };
    Arc::new(move |seed| {
        let workload = Workload::new(vec![two_speeds(2.0)], jobs(seed));
        Arc::new(Scenario::new(cluster.clone(), Arc::new(workload), options.clone(), seed))
    })
}

fn env(jobs: impl Fn(u64) -> Vec<JobSpec> + Send + Sync + 'static) -> ClusterEnv {
    ClusterEnv::new(source(jobs), EnvOptions { slots: 8, types: 3, ..EnvOptions::default() })
}

fn place(layout: &Layout, slot: usize, kind: TypeId) -> usize {
    Action::Change { slot, verb: Verb::Place(kind) }.encode(layout)
}

/// The features of a slot by type.
fn by_type<'a>(layout: &Layout, observation: &'a Observation, slot: usize) -> Vec<&'a [f32]> {
    let all = &observation.features[slot * layout.slot_features..(slot + 1) * layout.slot_features];
    all[layout.slot_features - layout.types * TYPE_FEATURES.len()..].chunks_exact(TYPE_FEATURES.len()).collect()
}

#[test]
fn actions_have_one_number_each() {
    let layout = env(|_| Vec::new()).layout();
    assert_eq!((layout.types, layout.verbs), (3, 6));
    for number in 0..layout.actions() {
        assert_eq!(Action::decode(number, &layout).unwrap().encode(&layout), number);
    }
    assert_eq!(Action::decode(layout.actions(), &layout), None);
}

#[test]
fn the_checker_finds_nothing_wrong() {
    for finding in check(&env(|seed| mixed_jobs(seed, 20, 600)), 7, 3, 3000).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
}

/// Random episodes end with every job complete, and every plan of an allowed round passes the
/// guard, or `step` would fail.
#[test]
fn random_rounds_start_move_and_finish_jobs() {
    let (mut started, mut moved, mut longest) = (0, 0, 0);
    for seed in 0..6 {
        let mut env = env(|seed| mixed_jobs(seed, 30, 400));
        let layout = env.layout();
        let mut random = rng(seed, Stream::Exploration);
        let mut observation = Observation::zeros(&layout);
        env.reset(Some(seed), &ResetOptions::default(), observation.as_mut()).unwrap();
        let mut in_round = 0;
        loop {
            let allowed: Vec<usize> = (0..layout.actions()).filter(|&action| observation.mask[action] == 1).collect();
            let action = allowed[random.random_range(0..allowed.len())];
            let before = env.round().slots().to_vec();
            in_round = if action == layout.wait() { 0 } else { in_round + 1 };
            longest = longest.max(in_round);
            let step = env.step(action, observation.as_mut()).unwrap();
            if let Some(Action::Change { slot, verb: Verb::Place(kind) }) = Action::decode(action, &layout) {
                assert_eq!(env.round().slots()[slot].accelerator, kind);
                assert_eq!(by_type(&layout, &observation, slot)[kind.index()][1], 1.0);
                match before[slot].held {
                    0 => started += 1,
                    _ => moved += 1,
                }
            }
            if step.terminated {
                break;
            }
            if action == layout.wait() {
                // What is kept from round to round is what it would be anew.
                let (view, mut round, mut encoder) = (env.view().unwrap(), Round::default(), Encoder::new(layout));
                round.begin(&view, &layout);
                encoder.begin(&view, &round);
                assert_eq!(encoder.observation(), observation.features);
            }
        }
        assert!(env.simulator().unwrap().records().iter().all(|job| job.finish.is_some()));
    }
    assert!(started > 100 && moved > 100, "{started} started, {moved} moved");
    assert!(longest <= 8 * 20, "{longest}");
}

/// Features and actions of a job by accelerator type, computed by hand.
#[test]
fn types_are_told_apart() {
    let mut env = env(|_| vec![elastic("one", 0, 8), elastic("two", 60, 8)]);
    let layout = env.layout();
    let mut observation = Observation::zeros(&layout);
    env.reset(Some(0), &ResetOptions::default(), observation.as_mut()).unwrap();
    let ln2 = std::f32::consts::LN_2;
    let close = |one: f32, other: f32| (one - other).abs() < 1e-5;
    let types = by_type(&layout, &observation, 0);
    // Nothing holds it; one accelerator of the second type is twice as fast, and it would start with one.
    assert_eq!(
        types.iter().map(|of| (of[0], of[1], of[4])).collect::<Vec<_>>(),
        [(1., 0., 1.), (1., 0., 1.), (0., 0., 0.)]
    );
    assert!(close(types[0][2], 0.0) && close(types[1][2], 0.5 * ln2) && types[2][2] == 0.0, "{types:?}");
    assert!(close(types[0][3], 0.0) && close(types[1][3], 0.25 * ln2), "{types:?}");
    let grow = Action::Change { slot: 0, verb: Verb::Grow }.encode(&layout);
    assert_eq!(observation.mask[grow], 0, "the verb says where it starts");
    assert_eq!(observation.mask[layout.wait()], 0, "the cluster does not stand still");

    // On the slow type it may grow there, but not go elsewhere in the same round.
    env.step(place(&layout, 0, TypeId(0)), observation.as_mut()).unwrap();
    assert_eq!(observation.mask[grow], 1);
    assert_eq!([0, 1, 2].map(|kind| observation.mask[place(&layout, 0, TypeId(kind))]), [0, 0, 0]);
    let globals = &observation.features[layout.slots * layout.slot_features..];
    let of_types = &globals[globals.len() - 6..];
    assert_eq!(of_types, [11.0 / 12.0, 12.0 / 28.0, 1.0, 8.0 / 28.0, 1.0, 8.0 / 28.0]);

    // When the second job comes it can be moved, as it is, and is then packed on nodes of the other type.
    env.step(layout.wait(), observation.as_mut()).unwrap();
    assert_eq!([0, 1, 2].map(|kind| observation.mask[place(&layout, 0, TypeId(kind))]), [0, 1, 0]);
    env.step(place(&layout, 0, TypeId(1)), observation.as_mut()).unwrap();
    let (mut round, mut plan): (Round, _) = (env.round().clone(), Plan::keep());
    round.plan(&env.view().unwrap(), &mut plan);
    let [change] = &plan.changes[..] else { panic!("{plan:?}") };
    assert_eq!(
        change.placement.slices().iter().map(|slice| (slice.node, slice.gpus)).collect::<Vec<_>>(),
        [(NodeId(3), 1)]
    );
}

/// A job starts only where it can run, also where types are not told apart: `unknown` has most
/// room, and the job has no known speed there.
#[test]
fn without_type_actions_nothing_starts_where_it_cannot_run() {
    let cluster = Arc::new(Cluster::parse("unknown:4x4,slow:1x4,fast:1x4").unwrap());
    let options =
        SimOptions { batching: Batching::Catalog, information: Information::Oracle, ..SimOptions::standard() };
    let source: ScenarioSource = Arc::new(move |seed| {
        let workload = Workload::new(vec![two_speeds(2.0)], mixed_jobs(seed, 30, 200));
        Arc::new(Scenario::new(cluster.clone(), Arc::new(workload), options.clone(), seed))
    });
    let mut env = ClusterEnv::new(source, EnvOptions { slots: 8, ..EnvOptions::default() });
    let layout = env.layout();
    let (mut random, mut observation) = (rng(1, Stream::Exploration), Observation::zeros(&layout));
    env.reset(Some(1), &ResetOptions::default(), observation.as_mut()).unwrap();
    loop {
        let allowed: Vec<usize> = (0..layout.actions()).filter(|&action| observation.mask[action] == 1).collect();
        // `step` fails where the simulator knows no speed.
        let step = env.step(allowed[random.random_range(0..allowed.len())], observation.as_mut()).unwrap();
        if step.terminated {
            break;
        }
    }
    assert!(env.simulator().unwrap().records().iter().all(|job| job.finish.is_some()));
}

/// Measurements of other jobs change what is known of a job that did not change, and so does the
/// loss of the largest node.
#[test]
fn what_is_kept_from_round_to_round_is_what_it_would_be_anew() {
    let cluster = Arc::new(Cluster::parse("slow:3x4,fast:1x8").unwrap());
    let away =
        |at| Scripted { at_secs: 100.0 * f64::from(at), cause: Cause::Node, node: NodeId(3), lasts_secs: Some(50.0) };
    let options = SimOptions {
        batching: Batching::Agent,
        information: Information::Profiled,
        shared_profiles: true,
        faults: Some(FaultModel::scripted((1..40).map(away).collect())),
        ..SimOptions::standard()
    };
    let source: ScenarioSource = Arc::new(move |seed| {
        let jobs = (0..12).map(|at| elastic(&at.to_string(), 40 * at, 8)).collect();
        Arc::new(Scenario::new(
            cluster.clone(),
            Arc::new(Workload::new(vec![two_speeds(2.0)], jobs)),
            options.clone(),
            seed,
        ))
    });
    for types in [0, 2] {
        let mut env = ClusterEnv::new(source.clone(), EnvOptions { slots: 12, types, ..EnvOptions::default() });
        let layout = env.layout();
        let (mut random, mut observation) = (rng(2, Stream::Exploration), Observation::zeros(&layout));
        env.reset(Some(2), &ResetOptions::default(), observation.as_mut()).unwrap();
        let mut rounds = 0;
        loop {
            let allowed: Vec<usize> = (0..layout.actions()).filter(|&action| observation.mask[action] == 1).collect();
            let action = allowed[random.random_range(0..allowed.len())];
            if env.step(action, observation.as_mut()).unwrap().terminated {
                break;
            }
            if action == layout.wait() {
                rounds += 1;
                let (view, mut round, mut encoder) = (env.view().unwrap(), Round::default(), Encoder::new(layout));
                round.begin(&view, &layout);
                encoder.begin(&view, &round);
                assert_eq!(encoder.observation(), observation.features);
                let mut mask = vec![0; layout.actions()];
                round.mask(&layout, &mut mask);
                assert_eq!(mask, observation.mask);
            }
        }
        assert!(rounds > 30, "{rounds}");
    }
}
