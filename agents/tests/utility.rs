//! Learned utilities: legal plans on every cluster, whatever the parameters; one set of parameters
//! for 16 and for 10,000 accelerators.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{fixed, random_workload, run};
use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::features::FEATURES;
use goodput_agents::policies::utility::{Experience, Group, PARAMETERS, Theta, Utility, UtilityPolicy};
use goodput_env::application::{Application, EpochTable};
use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::job::{Elasticity, JobSpec, Work, Workload};
use goodput_env::model::fault::{Cause, Scripted};
use goodput_env::model::{FaultModel, SwitchCost};
use goodput_env::scenario::{Batching, Information, Rounds, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use proptest::prelude::*;

fn policy(theta: Theta) -> UtilityPolicy {
    UtilityPolicy::new(
        &Utility { theta, experience: Experience::default(), siblings: false, efficiency: true },
        Batching::Agent,
        Information::Profiled,
    )
}

fn options(batching: Batching) -> SimOptions {
    SimOptions { batching, information: Information::Profiled, ..SimOptions::standard() }
}

/// Parameters of Pollux with some of them changed.
fn theta(changes: &[(&str, f64)]) -> Theta {
    let mut values = Theta::pollux().values();
    for (name, value) in changes {
        values[Theta::sia().names().position(|known| known == *name).unwrap()] = *value;
    }
    Theta::new(&values).unwrap()
}

/// `workload` with its applications on a second type as well, so many times as fast.
fn on_two_types(workload: Workload, faster: f64) -> Workload {
    let mut workload = workload;
    for app in &mut workload.applications {
        let app = Arc::make_mut(app);
        let mut fast = app.params["gpu"];
        for secs in [&mut fast.alpha_c, &mut fast.beta_c, &mut fast.alpha_n, &mut fast.beta_n] {
            *secs /= faster;
        }
        app.params.insert("fast".into(), fast);
    }
    workload
}

fn two_types(nodes: u32) -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Shared, "gpu", nodes, 4);
    cluster.add_to(Pool::Shared, "fast", nodes.div_ceil(2), 8);
    cluster
}

/// Knowledge of sizes from before an absence of the job's only node is not believed when the node
/// is back.
#[test]
fn a_job_goes_on_when_the_only_node_of_its_type_is_back() {
    let mut workload = on_two_types(random_workload(&mut rng(3, Stream::Workload), 1, 1), 1.0);
    workload.jobs = vec![JobSpec { work: Work::application(0), ..fixed("job", 1, 4, 0) }];
    for app in &mut workload.applications {
        Arc::make_mut(app).params.remove("gpu");
    }
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Shared, "gpu", 1, 4);
    cluster.add_to(Pool::Shared, "fast", 1, 4);
    let away =
        |at| Scripted { at_secs: 200.0 * f64::from(at), cause: Cause::Node, node: NodeId(1), lasts_secs: Some(50.0) };
    let faults = Some(FaultModel::scripted((1..100).map(away).collect()));
    // Without rounds it has measured something whenever the policy looks.
    let rounds = Rounds { period: None, on_churn: true };
    let options = SimOptions { faults, rounds, ..options(Batching::Agent) };
    let outcome = run(&mut policy(Theta::sia()), cluster, workload, options);
    assert!(outcome.jobs[0].restarts > 1, "{:?}", outcome.jobs[0]);
    assert!(outcome.jobs[0].finish.is_some(), "{:?}", outcome.jobs[0]);
}

/// A utility that values waiting jobs most stops every job in favour of the next; all jobs are done
/// nevertheless.
#[test]
fn jobs_that_are_always_worth_most_while_they_wait_do_not_stop_each_other_for_ever() {
    let makespan = |changes: &[(&str, f64)]| {
        let workload = random_workload(&mut rng(3, Stream::Workload), 16, 2);
        let horizon = Some(SimTime::from_secs(400 * 24 * 3600));
        let cost = SwitchCost::Constant { millis: 30_000 };
        let options = SimOptions { horizon, switch_cost: cost, ..options(Batching::Agent) };
        let outcome = run(&mut policy(theta(changes)), Cluster::homogeneous(1, 2), workload, options);
        let finish = outcome.jobs.iter().map(|job| job.finish.map(SimTime::as_secs_f64));
        let restarts: u32 = outcome.jobs.iter().map(|job| job.restarts).sum();
        (finish.collect::<Option<Vec<f64>>>().map(|finish| finish.into_iter().fold(0.0, f64::max)), restarts)
    };
    let (usual, few) = makespan(&[]);
    let (crowding, many) = makespan(&[("waiting", 30.0), ("log_restarts", -2.0)]);
    assert!(many > 10 * few, "{many} {few}");
    assert!(crowding.unwrap() < 3.0 * usual.unwrap(), "{crowding:?} {usual:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_numbers_finish_any_workload_on_one_type_and_on_two(
        values in prop::collection::vec(-4.0f64..4.0, PARAMETERS),
        seed in 0u64..1000,
        nodes in 1u32..5,
        batching in prop::sample::select(vec![Batching::Agent, Batching::Requested, Batching::Catalog]),
    ) {
        let workload = random_workload(&mut rng(seed, Stream::Workload), 12, nodes * 4);
        let count = workload.jobs.len();
        // The guard checks every plan of every round; a plan it refuses ends the run with an error.
        let places = [(Cluster::homogeneous(nodes, 4), workload.clone()), (two_types(nodes), on_two_types(workload, 3.0))];
        for (cluster, workload) in places {
            let outcome = run(&mut policy(Theta::new(&values).unwrap()), cluster, workload, options(batching));
            prop_assert_eq!(outcome.jobs.iter().filter(|job| job.finish.is_some()).count(), count);
        }
    }
}

#[test]
fn jobs_go_to_the_type_that_is_faster_for_them_and_back_when_it_is_free() {
    // Two equal jobs, one accelerator of either type. The job on the slow one moves when the fast
    // one is free.
    let mut workload = random_workload(&mut rng(3, Stream::Workload), 2, 1);
    for (at, job) in workload.jobs.iter_mut().enumerate() {
        *job = JobSpec { work: Work::application(0), ..fixed(&format!("job-{at}"), 1, 1, at as i64) };
    }
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Shared, "gpu", 1, 1);
    cluster.add_to(Pool::Shared, "fast", 1, 1);
    let options = SimOptions { switch_cost: SwitchCost::Zero, ..options(Batching::Agent) };
    let finish = |faster: f64| -> Vec<f64> {
        let workload = on_two_types(workload.clone(), faster);
        let outcome = run(&mut policy(Theta::sia()), cluster.clone(), workload, options.clone());
        outcome.jobs.iter().map(|job| job.finish.unwrap().as_secs_f64()).collect()
    };
    let (equal, four) = (finish(1.0), finish(4.0));
    let alone = equal[0].max(equal[1]);
    let (first, last) = (four[0].min(four[1]), four[0].max(four[1]));
    assert!(first < 0.3 * alone, "one of them has the fast one: {first} s of {alone} s");
    // A quarter on the slow one by then, the rest at four times the speed.
    assert!(last < 0.5 * alone, "the other one follows: {last} s of {alone} s");
}

#[test]
fn the_same_numbers_run_16_and_10_000_accelerators() {
    for (nodes, jobs) in [(4, 30), (1250, 400)] {
        let workload = random_workload(&mut rng(3, Stream::Workload), jobs, 64);
        let outcome =
            run(&mut policy(Theta::pollux()), Cluster::homogeneous(nodes, 8), workload, options(Batching::Agent));
        assert!(outcome.jobs.iter().all(|job| job.finish.is_some()), "{nodes} nodes");
    }
}

fn mean_secs(theta: Theta, jobs: Vec<JobSpec>) -> f64 {
    let options = SimOptions { switch_cost: SwitchCost::Zero, ..options(Batching::Requested) };
    let outcome = run(&mut policy(theta), Cluster::homogeneous(1, 4), Workload::new(Vec::new(), jobs), options);
    outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum::<f64>() / outcome.jobs.len() as f64
}

#[test]
fn weights_on_attained_service_let_short_jobs_by() {
    // One long rigid job that takes the cluster, and short ones that come later, of unknown
    // lengths.
    let mut jobs = vec![fixed("long", 4, 40_000, 0)];
    jobs.extend((0..20).map(|at| fixed(&format!("short-{at}"), 4, 100, 600 + 300 * at)));
    let shared =
        |weight| theta(&[("log_attained_gpu_secs", weight), ("log_speedup_at_fair_share", 0.0), ("exponent", 1.0)]);
    let (to_the_new, to_the_old) = (mean_secs(shared(-1.0), jobs.clone()), mean_secs(shared(1.0), jobs));
    assert!(to_the_new < 0.2 * to_the_old, "{to_the_new} s and {to_the_old} s");
}

#[test]
fn equal_elastic_jobs_share_equally_under_a_concave_exponent_and_not_under_a_straight_one() {
    let elastic = |at: usize| {
        let mut job = fixed(&format!("job-{at}"), 1, 4000, 10 * at as i64);
        job.request.elasticity = Elasticity::Elastic { min: 1, max: 4 };
        job
    };
    let makespans = |exponent: f64| {
        let workload = Workload::new(Vec::new(), (0..2).map(elastic).collect());
        let options = SimOptions { switch_cost: SwitchCost::Zero, ..options(Batching::Requested) };
        // The older one first, where that is not against the exponent.
        let numbers = [("exponent", exponent), ("horizon_by_age", 0.0), ("log_horizon", 20.0), ("restart_memory", 0.0)];
        let theta = theta(&[&numbers[..], &[("log_age_secs", 0.01)]].concat());
        let outcome = run(&mut policy(theta), Cluster::homogeneous(1, 4), workload, options);
        outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).collect::<Vec<_>>()
    };
    let shared = makespans(-1.0);
    assert!((shared[0] - shared[1]).abs() < 30.0, "two each: {shared:?}");
    let one_by_one = makespans(1.0);
    assert!(one_by_one[0] < 0.6 * one_by_one[1], "all for the first: {one_by_one:?}");
}

#[test]
fn what_a_job_of_the_same_model_has_measured_need_not_be_found_out_again() {
    let restarts = |siblings: bool, second: u16| {
        let mut workload = random_workload(&mut rng(1, Stream::Workload), 2, 8);
        for (at, job) in workload.jobs.iter_mut().enumerate() {
            job.work = Work::application(if at == 0 { 0 } else { second });
            job.request.elasticity = Elasticity::Elastic { min: 1, max: 8 };
            (job.request.gpus, job.request.batch_size) = (1, None);
            // The second one comes when the first is done.
            job.request.submit = SimTime::from_secs_f64(if at == 0 { 0.0 } else { 1e7 });
        }
        let utility = Utility { theta: theta(&[]), experience: Experience::default(), siblings, efficiency: true };
        let mut policy = UtilityPolicy::new(&utility, Batching::Agent, Information::Profiled);
        let outcome = run(&mut policy, Cluster::homogeneous(2, 4), workload, options(Batching::Agent));
        outcome.jobs.iter().map(|job| job.restarts).collect::<Vec<_>>()
    };
    let alone = restarts(false, 0);
    assert!(alone[0] >= 2 && alone[1] == alone[0], "doubled up to its size: {alone:?}");
    let told = restarts(true, 0);
    assert_eq!(told[0], alone[0], "the first one of a model cannot be told");
    assert_eq!(told[1], 0, "the second one starts on what the first one ended on");
    assert_eq!(restarts(true, 1), restarts(false, 1), "another model tells nothing");
}

#[test]
fn a_job_that_only_shares_a_name_goes_by_its_own_measurements() {
    let second = |siblings: bool, named_alike: bool| {
        let mut workload = random_workload(&mut rng(1, Stream::Workload), 2, 8);
        // Application with steps that differ most from the first one's.
        let step =
            |at: u16| workload.applications[usize::from(at)].params.values().next().unwrap().optim_time(1, 1, 32);
        let apart = |at: &u16| (step(*at) / step(0)).ln().abs();
        let other = (1..workload.applications.len() as u16).max_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap();
        assert!(apart(&other) > 1.0);
        if named_alike {
            let name = workload.applications[0].name.clone();
            let twin = Application { name, ..(*workload.applications[usize::from(other)]).clone() };
            workload.applications[usize::from(other)] = Arc::new(twin);
        }
        for (at, job) in workload.jobs.iter_mut().enumerate() {
            job.work = Work::application(if at == 0 { 0 } else { other });
            job.request.elasticity = Elasticity::Elastic { min: 1, max: 8 };
            (job.request.gpus, job.request.batch_size) = (1, None);
            job.request.submit = SimTime::from_secs_f64(if at == 0 { 0.0 } else { 1e7 });
        }
        let utility = Utility { theta: theta(&[]), experience: Experience::default(), siblings, efficiency: true };
        let mut policy = UtilityPolicy::new(&utility, Batching::Agent, Information::Profiled);
        let outcome = run(&mut policy, Cluster::homogeneous(2, 4), workload, options(Batching::Agent));
        outcome.jobs[1].jct().unwrap().as_secs_f64()
    };
    let alone = second(false, false);
    assert_eq!(second(true, false), alone, "another name tells nothing");
    let misled = second(true, true);
    assert!(misled < 1.1 * alone, "{misled} s instead of {alone} s");
}

/// Two jobs on eight accelerators, of which one learns nothing from batches larger than its own. A
/// policy without that knowledge gives it more, and stops it for that.
#[test]
fn throughput_alone_mistakes_large_batches_for_progress() {
    let finish = |efficiency: bool| {
        let mut workload = random_workload(&mut rng(1, Stream::Workload), 2, 8);
        for (at, job) in workload.jobs.iter_mut().enumerate() {
            let application = Arc::make_mut(&mut workload.applications[at]);
            let values = vec![if at == 0 { 1e-3 } else { 30.0 }; 3];
            application.gradients.var = EpochTable::new(vec![1.0], values).unwrap();
            job.work = Work::application(at as u16);
            job.request.elasticity = Elasticity::Elastic { min: 1, max: 8 };
            (job.request.gpus, job.request.batch_size, job.request.submit) = (1, None, SimTime::ZERO);
        }
        let utility = Utility { theta: theta(&[]), experience: Experience::default(), siblings: false, efficiency };
        let mut policy = UtilityPolicy::new(&utility, Batching::Agent, Information::Profiled);
        let outcome = run(&mut policy, Cluster::homogeneous(2, 4), workload, options(Batching::Agent));
        outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).collect::<Vec<_>>()
    };
    let (told, blind) = (finish(true), finish(false));
    assert!(told[0] < 0.8 * blind[0] && told[1] <= blind[1], "{told:?}, by throughput {blind:?}");
}

#[test]
fn a_bundle_keeps_the_numbers_and_refuses_another_schema() {
    let values: Vec<f64> = (0..PARAMETERS).map(|at| f64::from(at as f32 * 0.37 - 2.0)).collect();
    let decoder = Decoder::new(Batching::Agent, Information::Profiled);
    let card = Card {
        schema_hash: Theta::sia().schema_hash(),
        decoder: serde_json::to_value(decoder).unwrap(),
        ..Card::default()
    };
    let experience = Experience::of([("a model/with marks", 3.0), ("a model/with marks", 5.0), ("another", 7.0)]);
    let utility = Utility { theta: Theta::new(&values).unwrap(), experience, siblings: true, efficiency: true };
    let bundle = PolicyBundle { model: Model::Utility(utility), normaliser: None, card };
    let folder = std::env::temp_dir().join(format!("goodput-utility-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("policy.bundle");
    bundle.save(&path).unwrap();
    assert_eq!(PolicyBundle::load(&path).unwrap(), bundle);
    assert_eq!(bundle.kind(), "utility");
    let read = bundle.policy(goodput_env::gym::ExpectedPeak::default()).unwrap();
    assert_eq!((read.batching(), read.information()), (Batching::Agent, Information::Profiled));
    let mut other = bundle.clone();
    other.card.schema_hash = "older".into();
    other.save(&path).unwrap();
    let message = PolicyBundle::load(&path).unwrap_err().to_string();
    assert!(message.contains("older") && message.contains(&Theta::sia().schema_hash()), "{message}");
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(Theta::sia().names().count(), PARAMETERS);
    assert_eq!(Theta::new(&vec![0.0; FEATURES.len()]), None);
}

#[test]
fn groups_of_parameters_are_kept_and_change_nothing_until_they_are_learned() {
    let all = [Group::Loans, Group::Tenants, Group::Faults, Group::Restarts];
    let theta = Theta::sia().with(all);
    assert_eq!(theta.names().take(PARAMETERS).collect::<Vec<_>>(), Theta::sia().names().collect::<Vec<_>>());
    let hashes: BTreeSet<String> = all.iter().map(|group| Theta::sia().with([*group]).schema_hash()).collect();
    assert_eq!(hashes.len(), all.len());
    assert!(!hashes.contains(&Theta::sia().schema_hash()) && !hashes.contains(&theta.schema_hash()));

    let values: Vec<f64> = (0..theta.names().count()).map(|at| f64::from(at as f32 * 0.25 - 2.0)).collect();
    let decoder = Decoder::new(Batching::Agent, Information::Profiled);
    let decoder = serde_json::to_value(decoder).unwrap();
    let card = Card { schema_hash: theta.schema_hash(), decoder, ..Card::default() };
    let utility = Utility {
        theta: theta.of_values(&values).unwrap(),
        experience: Experience::default(),
        siblings: false,
        efficiency: true,
    };
    let bundle = PolicyBundle { model: Model::Utility(utility), normaliser: None, card };
    let path = std::path::Path::new("in memory");
    let read = PolicyBundle::from_bytes(&bundle.to_bytes(), path).unwrap().checked(path).unwrap();
    assert_eq!(read, bundle);
    let Model::Utility(utility) = read.model else { panic!("not a utility") };
    assert_eq!(utility.theta.values(), values);

    let workload = random_workload(&mut rng(3, Stream::Workload), 20, 8);
    let outcome =
        |theta: Theta| run(&mut policy(theta), Cluster::homogeneous(2, 4), workload.clone(), options(Batching::Agent));
    assert_eq!(outcome(Theta::sia().with(all)), outcome(Theta::sia()));
}

/// With restarts of 600 s, parameters by restart add `ln(630 / 60)` times themselves to what they change, and with
/// restarts of 30 s nothing.
#[test]
fn parameters_by_restart_follow_the_logarithm_of_a_restart() {
    let by = [("exponent", -0.2), ("log_horizon", -0.9), ("horizon_by_age", -0.3), ("horizon_by_remaining", 0.4)];
    let plain = Theta::pollux();
    let with = plain.clone().with([Group::Restarts]);
    let place = |name: &str| with.names().position(|known| known == name).unwrap();
    let mut learned = with.values();
    let mut shifted = plain.values();
    for (name, by) in by {
        learned[place(&format!("{name}_by_restart"))] = by;
        shifted[place(name)] += by * 10.5_f64.ln();
    }
    let learned = with.of_values(&learned).unwrap();
    let shifted = Theta::new(&shifted).unwrap();
    let workload = random_workload(&mut rng(5, Stream::Workload), 30, 8);
    let outcome = |theta: &Theta, secs: u64| {
        let switch_cost = SwitchCost::by_name(&format!("{secs}s")).unwrap();
        let options = SimOptions { switch_cost, ..options(Batching::Agent) };
        run(&mut policy(theta.clone()), Cluster::homogeneous(2, 4), workload.clone(), options)
    };
    assert_eq!(outcome(&learned, 30), outcome(&plain, 30));
    assert_eq!(outcome(&learned, 600), outcome(&shifted, 600));
    assert_ne!(outcome(&learned, 600), outcome(&plain, 600));
}
