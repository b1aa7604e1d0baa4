//! Switch cost models: published totals, the fast elasticity oracle, their order, what dominates,
//! and what frequent switching leaves.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::switching::pipeline::{best_groups, makespan};
use goodput_env::model::switching::{Components, NAMED, Switch, SwitchCost, SwitchEvent};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Rounds, Scenario, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

const APPS: [&str; 6] = ["bert", "imagenet", "yolov3", "ncf", "cifar10", "deepspeech2"];

fn cost(name: &str) -> SwitchCost {
    SwitchCost::by_name(name).unwrap()
}

fn secs(name: &str, application: &str, from: u32, to: u32) -> f64 {
    cost(name).cost_millis(application, from, to) as f64 / 1e3
}

fn example(application: &str, event: SwitchEvent) -> Switch<'_> {
    let (from, to, started) = match event {
        SwitchEvent::Cold => (0, 4, false),
        SwitchEvent::Grow => (2, 4, true),
        SwitchEvent::Shrink => (4, 2, true),
        SwitchEvent::Move => (4, 4, true),
        SwitchEvent::Preempt => (4, 0, true),
        SwitchEvent::Resume => (0, 4, true),
    };
    Switch { application, from, to, moved: true, started }
}

#[test]
fn totals_are_the_published_ones() {
    let table = [
        ("deepboot_full", [103., 35., 26., 25., 24., 18.]),
        ("deepboot_uniform", [60.; 6]),
        ("deepboot_afe", [103., 35., 26., 25., 24., 18.]),
        ("deepboot_infer", [8., 6., 6., 4., 6., 4.]),
        ("sia_full", [120., 250., 80., 15., 50., 25.]),
        ("sia_policy", [120., 250., 80., 30., 20., 25.]),
        ("pollux_const", [30.; 6]),
        ("seed_range", [60.; 6]),
        ("zero", [0.; 6]),
    ];
    for (name, expected) in table {
        assert_eq!(APPS.map(|app| secs(name, app, 0, 4)), expected, "{name}");
    }
    let v100 = |name: &str| ["resnet152", "inception_v3", "bert_base"].map(|app| cost(name).cost_millis(app, 1, 1));
    assert_eq!(v100("pipeswitch"), [7, 1, 15], "6.4, 0.1 and 14.5 ms, rounded up to the clock");
    assert_eq!(v100("mps"), [622, 424, 483]);
    assert_eq!(v100("stop_next"), [188, 149, 182]);
    assert_eq!(v100("kill_restart"), [5641, 6236, 7204]);
}

#[test]
fn fast_elasticity_pays_for_what_is_new() {
    let afe = |app: &str, from, to| secs("deepboot_afe", app, from, to);
    assert_eq!([afe("bert", 1, 2), afe("bert", 2, 4), afe("bert", 4, 2), afe("bert", 4, 4)], [54., 54., 5., 103.]);
    assert_eq!((afe("cifar10", 2, 4), afe("imagenet", 4, 8), afe("bert", 4, 0)), (13., 19., 0.));
    let unchanged = Switch { application: "bert", from: 4, to: 4, moved: false, started: true };
    assert_eq!(cost("deepboot_afe").components(&unchanged).total(), 0, "nothing changed");
    assert_eq!(secs("deepboot_full", "bert", 4, 2), 103., "without it every change is a cold start");
    for app in APPS {
        assert!((18. ..=103.).contains(&secs("deepboot_full", app, 3, 2)), "{app}");
    }
}

#[test]
fn components_sum_to_the_total_and_the_right_one_dominates() {
    for named in NAMED {
        for app in APPS.into_iter().chain(["something-else", ""]) {
            for event in SwitchEvent::ALL {
                let switch = example(app, event);
                assert_eq!(switch.event(), Some(event));
                let parts: Components = named.cost.components(&switch);
                assert!(parts.parts().iter().all(|&part| part >= 0), "{} {app} {event:?}", named.name);
                assert_eq!(parts.total(), parts.parts().iter().sum::<i64>());
                let drawn = named.cost.drawn_millis(&switch, 1, 0, 0);
                let fixed = !matches!(named.cost, SwitchCost::Range { .. });
                assert!(!fixed || drawn == parts.total(), "{} {app} {event:?}", named.name);
                assert!(event != SwitchEvent::Preempt || drawn == 0, "leaving is charged when the job comes back");
            }
        }
    }
    for name in ["deepboot_full", "deepboot_afe", "tiresias_paper"] {
        for app in APPS {
            let parts = cost(name).components(&example(app, SwitchEvent::Cold));
            assert!(parts.derived, "the split is ours");
            let container = app != "bert";
            assert_eq!(parts.container > parts.data_load, container, "{name} {app}");
            assert!(parts.container.max(parts.data_load) > parts.total() / 2, "{name} {app}: {parts:?}");
        }
    }
}

#[test]
fn models_are_ordered_and_overlap_where_they_should() {
    let ascending = ["zero", "pipeswitch", "stop_next", "mps", "kill_restart", "deepboot_full", "sia_full"];
    for app in ["bert", "imagenet"] {
        let costs = ascending.map(|name| secs(name, app, 4, 4));
        assert!(costs.windows(2).all(|pair| pair[0] < pair[1]), "{app}: {costs:?}");
    }
    assert_eq!((secs("coddl", "bert", 2, 4), secs("coddl", "bert", 4, 2)), (98., 0.), "start-up is F - N");
    assert!(NAMED.iter().filter(|named| named.cost.overlaps()).map(|named| named.name).eq(["coddl"]));
}

#[test]
fn a_preempted_job_pays_for_saving_restoring_and_warming_up_by_the_size_of_its_model() {
    let resume = |name: &str, app| cost(name).components(&example(app, SwitchEvent::Resume));
    let bert = resume("tiresias_paper", "bert");
    assert_eq!((bert.save, bert.restore), (2640, 2640), "110 M parameters of 12 bytes at 0.5 GB/s");
    assert!(bert.warm_up > 0 && bert.model_init > 0 && bert.container > 0);
    assert!(resume("tiresias_paper", "ncf").restore < bert.restore);
    assert_eq!([resume("checkpoint_nvme", "bert").restore, resume("checkpoint_pcie", "bert").restore], [660, 110]);
    let cold = cost("tiresias_paper").components(&example("bert", SwitchEvent::Cold));
    assert_eq!((cold.save, cold.restore, cold.warm_up), (0, 0, 0), "a first start has no checkpoint");
}

#[test]
fn drawn_costs_depend_on_job_and_restart_alone() {
    let range = cost("seed_range");
    let draw = |seed, job, restart| range.drawn_millis(&example("bert", SwitchEvent::Move), seed, job, restart);
    let draws: Vec<i64> = (0..2000).map(|at| draw(7, at % 50, at / 50)).collect();
    assert!(draws.iter().all(|millis| (20_000..=100_000).contains(millis)));
    let mean = draws.iter().sum::<i64>() as f64 / 2000.0;
    assert!((mean - 60_000.0).abs() < 2_000.0, "{mean}");
    assert_eq!(draw(7, 3, 4), draw(7, 3, 4));
    assert!(draw(7, 3, 4) != draw(7, 4, 3) && draw(7, 3, 4) != draw(8, 3, 4));
}

#[test]
fn layers_are_best_sent_in_groups() {
    let (transfer, compute) = ([1., 1., 4., 4., 2., 1.], [2., 2., 2., 3., 3., 2.]);
    assert_eq!(makespan(&transfer, &compute, 0.5, &[6]), 27.5);
    assert_eq!(makespan(&transfer, &compute, 0.5, &[1; 6]), 20.0);
    assert_eq!(makespan(&transfer, &compute, 0.5, &[1, 2, 1, 1, 1]), 19.5);
    assert_eq!(best_groups(&transfer, &compute, 0.5).1, 19.5);
    assert_eq!(best_groups(&[], &[], 0.5), (vec![], 0.0));
}

#[test]
fn the_best_groups_are_those_of_an_enumeration() {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 33) as u32 % 9) / 2.0
    };
    for layers in 1..=8_usize {
        for _ in 0..20 {
            let transfer: Vec<f64> = (0..layers).map(|_| draw()).collect();
            let compute: Vec<f64> = (0..layers).map(|_| draw()).collect();
            let overhead = draw() / 2.0;
            let all = (0..1_u32 << (layers - 1)).map(|cuts| {
                let mut sizes = vec![1];
                for layer in 1..layers {
                    match cuts >> (layer - 1) & 1 {
                        1 => sizes.push(1),
                        _ => *sizes.last_mut().unwrap() += 1,
                    }
                }
                makespan(&transfer, &compute, overhead, &sizes)
            });
            let (sizes, end) = best_groups(&transfer, &compute, overhead);
            assert_eq!(sizes.iter().sum::<usize>(), layers);
            assert_eq!(makespan(&transfer, &compute, overhead, &sizes), end);
            assert_eq!(all.fold(f64::INFINITY, f64::min), end);
        }
    }
}

/// Sends the only job to the other node whenever it is asked.
struct BackAndForth(u32);

impl Policy for BackAndForth {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.0 = 1 - self.0;
        if let Some(job) = view.jobs().next() {
            plan.set(job.id(), Placement::on(NodeId(self.0), 1));
        }
        plan
    }
}

fn switched_every(period: i64, name: &str) -> Outcome {
    let request = JobRequest {
        name: "resnet152".into(),
        tenant: 0,
        submit: SimTime::ZERO,
        gpus: 1,
        batch_size: None,
        elasticity: Elasticity::Rigid,
        ..JobRequest::default()
    };
    let work = Work::Fixed { duration: SimTime::from_secs(1_000_000) };
    let options = SimOptions {
        rounds: Rounds { period: Some(SimTime::from_secs(period)), on_churn: false },
        switch_cost: cost(name),
        horizon: Some(SimTime::from_secs(600)),
        ..SimOptions::standard()
    };
    let workload = Workload::new(Vec::new(), vec![JobSpec { request, work }]);
    let scenario = Scenario::new(Arc::new(Cluster::homogeneous(2, 1)), Arc::new(workload), options, 1);
    Simulator::new(Arc::new(scenario)).run(&mut BackAndForth(1)).unwrap()
}

/// Share of the time that makes progress. PipeSwitch's table 6 in our terms: with a process killed
/// and started anew nothing is left at 5 s and below.
#[test]
fn frequent_switching_leaves_nothing_of_a_restarted_process() {
    let useful = |period, name: &str| {
        let outcome = switched_every(period, name);
        let job = &outcome.jobs[0];
        assert_eq!(job.executed, outcome.end - SimTime::from_secs(period), "its accelerator is held throughout");
        1.0 - job.restarting.as_secs_f64() / job.executed.as_secs_f64()
    };
    for (period, least, most) in [(1, 0.0, 0.0), (2, 0.0, 0.0), (5, 0.0, 0.0), (10, 0.42, 0.45), (30, 0.80, 0.82)] {
        let share = useful(period, "kill_restart");
        assert!((least..=most).contains(&share), "every {period} s: {share}");
    }
    assert!(useful(1, "pipeswitch") > 0.99 && useful(5, "mps") > 0.87);
    assert_eq!(useful(5, "zero"), 1.0);
}
