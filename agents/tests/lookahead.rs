//! The policy that plans with the simulator: what it knows, what it gains, and how it is named.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{fixed, frictionless, random_workload, run};
use goodput_agents::compose::{NamedPolicy, PolicyNameError, by_name};
use goodput_agents::heuristic::parameters::ParameterError;
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobSpec, WHOLE, Work, Workload};
use goodput_env::plan::Plan;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;

/// Looks at every decision, in short futures.
const EAGER: &str = "lookahead(tiresias)(every_secs=1, horizon_secs=1800, futures=4, budget=3000, level=0.5)";

fn profiled(batching: Batching) -> SimOptions {
    SimOptions { batching, information: Information::Profiled, ..SimOptions::standard() }
}

/// Plans of the first `decisions` decisions, with the moment of the last.
fn plans(name: &str, workload: &Workload, options: &SimOptions, decisions: usize) -> (Vec<Plan>, Simulator) {
    let cluster = Arc::new(Cluster::homogeneous(2, 4));
    let scenario = Scenario::new(cluster, Arc::new(workload.clone()), options.clone(), 7);
    let mut simulator = Simulator::new(Arc::new(scenario));
    let mut policy = by_name(name, 7).unwrap();
    let mut plans = Vec::new();
    while plans.len() < decisions && simulator.run_until_decision().unwrap() == Status::Decision {
        plans.push(policy.decide(&simulator.view()));
        simulator.apply(plans.last().unwrap()).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    (plans, simulator)
}

/// Work that ends later than `done` and differs from that of `job`.
fn other_work(job: &JobSpec, at: usize) -> Work {
    let times = [3.0, 0.5, 7.0, 2.0][at % 4];
    match job.work {
        Work::Fixed { duration } => Work::Fixed { duration: SimTime::from_secs_f64(times * duration.as_secs_f64()) },
        Work::Application { index, work_milli } => {
            Work::Application { index, work_milli: (times * f64::from(work_milli)).ceil() as u32 }
        }
        Work::Steps { class, steps } => Work::Steps { class, steps: times * steps },
    }
}

/// The true work of jobs that are not complete at a decision is exchanged for other work. Everything that was decided
/// until then, and the decision itself, stays as it was to the bit.
#[test]
fn the_true_lengths_of_unfinished_jobs_do_not_change_a_decision() {
    for batching in [Batching::Agent, Batching::Requested] {
        let workload = random_workload(&mut rng(5, Stream::Workload), 14, 8);
        let options = profiled(batching);
        for decisions in [12, 40] {
            let (told, simulator) = plans(EAGER, &workload, &options, decisions);
            assert_eq!(told.len(), decisions);
            let base = plans("tiresias", &workload, &options, decisions).0;
            assert!(decisions < 40 || told != base, "no look has changed a plan");
            let mut other = workload.clone();
            let mut changed = 0;
            for (at, job) in other.jobs.iter_mut().enumerate() {
                if simulator.records()[at].finish.is_some() {
                    continue;
                }
                let (now, view) = (simulator.now(), simulator.view());
                let done = view.jobs().find(|active| active.id().index() == at).map_or(0.0, |job| job.state.done(now));
                let whole = |work: Work| match work {
                    Work::Fixed { duration } => duration.as_secs_f64(),
                    Work::Application { index, work_milli } => {
                        workload.applications[usize::from(index)].total_work() * f64::from(work_milli)
                            / f64::from(WHOLE)
                    }
                    Work::Steps { steps, .. } => steps,
                };
                let work = other_work(job, at);
                if whole(work) > done + 1.0 {
                    job.work = work;
                    changed += 1;
                }
            }
            assert!(changed > 4, "{changed}");
            assert_eq!(plans(EAGER, &other, &options, decisions).0, told, "{batching:?}, decision {decisions}");
        }
    }
}

/// Long jobs first, then many short ones, on one accelerator: the worst order for a queue.
fn convoy() -> Workload {
    let long = (0..3).map(|at| fixed(&format!("long-{at}"), 1, 4000, 0));
    let short = (0..30).map(|at| fixed(&format!("short-{at}"), 1, 100, 10 + 100 * at));
    Workload::new(Vec::new(), long.chain(short).collect())
}

fn mean_jct(outcome: &Outcome) -> f64 {
    outcome.jobs.iter().map(|job| job.jct().unwrap().as_secs_f64()).sum::<f64>() / outcome.jobs.len() as f64
}

#[test]
fn a_base_that_a_rival_beats_in_the_futures_is_improved_on() {
    let play = |name: &str| run(&mut *by_name(name, 1).unwrap(), Cluster::homogeneous(1, 1), convoy(), frictionless());
    let (base, best) = (mean_jct(&play("fifo")), mean_jct(&play("srtf")));
    let looking = play("lookahead(fifo)(rivals=[srtf], every_secs=300)");
    assert!(mean_jct(&looking) < 0.7 * base, "{} {base} {best}", mean_jct(&looking));
    assert_eq!(looking, play("lookahead(fifo)(rivals=[srtf], every_secs=300)"), "one seed, one run");
    // Without rivals and holds there is nothing to choose from.
    assert_eq!(play("lookahead(fifo)(rivals=[], hold=false)").jobs, play("fifo").jobs);
}

#[test]
fn a_name_has_a_base_and_parameters_and_is_written_as_it_is_read() {
    let written = |text: &str| text.parse::<NamedPolicy>().unwrap().to_string();
    for text in [
        "lookahead(srtf)",
        "lookahead(srtf)(futures=4, level=0.01)",
        "lookahead(tiresias(starvation_knob=2))(rivals=[sia, srtf])",
        "lookahead(pollux-fast)+forecast",
    ] {
        assert_eq!(written(text), text);
        assert_eq!(written(&written(text)), text);
    }
    assert_eq!(written("lookahead(srtf)(futures=12)"), "lookahead(srtf)", "a default is left out");
    let error = |text: &str| text.parse::<NamedPolicy>().unwrap_err();
    assert!(matches!(error("lookahead(srtff)"), PolicyNameError::Unknown { name } if name == "srtff"));
    for text in [
        "lookahead",
        "lookahead(srtf",
        "lookahead(lookahead(srtf))",
        "lookahead(srtf+forecast)",
        "lookahead(srtf@replica)",
    ] {
        assert!(matches!(error(text), PolicyNameError::Syntax { .. }), "{text}: {:?}", error(text));
    }
    let PolicyNameError::Parameter { policy: "lookahead", problem } = error("lookahead(srtf)(rivals=[fifo])") else {
        panic!("another error")
    };
    assert!(matches!(problem, ParameterError::Value { name, .. } if name == "rivals"));
}
