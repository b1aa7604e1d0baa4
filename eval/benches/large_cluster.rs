//! One decision about 1,000 jobs on 10,000 accelerators: learned utilities beside published
//! schedulers, on the same moments of the same run; and one forward pass of a set encoder with 64
//! slots. Run with `cargo xtask bench large_cluster`.
//!
//! Times are of the deciding thread's own clock, which stands still while others use the core. What
//! jobs' own agents do, fitting models to what they have measured, happens before the clock starts:
//! in a cluster they report.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../../env/benches/clock/mod.rs"]
mod clock;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{NetConfig, SetConfig, Weights};
use goodput_agents::policies::utility::{Experience, Theta, Utility, UtilityPolicy};
use goodput_datasets::Catalog;
use goodput_datasets::synth::{PolluxSynth, SynthConfig};
use goodput_env::cluster::Cluster;
use goodput_env::gym::{Observation, layout};
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// Nodes of 8 accelerators, and jobs submitted at once.
const SIZES: [(u32, u32); 3] = [(8, 16), (125, 100), (1250, 1000)];
/// Decisions of the run that the learned policy makes.
const DECISIONS: usize = 40;
/// Decisions that others are asked about as well.
const ASKED: [usize; 2] = [10, 30];
const OTHERS: [&str; 6] = ["fifo", "tiresias", "afs-p", "pollux-fast", "sia", "pollux"];
/// A policy that needed longer is not asked again, seconds.
const PATIENCE: f64 = 20.0;

fn main() {
    let mut slow: Vec<&str> = Vec::new();
    for (nodes, jobs) in SIZES {
        println!("{jobs} jobs, {} accelerators: milliseconds a decision", nodes * 8);
        round(nodes, jobs, &mut slow);
    }
    forward();
}

fn round(nodes: u32, jobs: u32, slow: &mut Vec<&'static str>) {
    let mut learned = UtilityPolicy::new(
        &Utility { theta: Theta::sia(), experience: Experience::default(), siblings: true, efficiency: true },
        Batching::Agent,
        Information::Profiled,
    );
    let mut simulator = Simulator::new(scenario(nodes, jobs));
    let mut own: Vec<f64> = Vec::new();
    let mut others: Vec<Vec<f64>> = vec![Vec::new(); OTHERS.len()];
    for decision in 0..DECISIONS {
        if simulator.run_until_decision().expect("a workload that runs") != Status::Decision {
            break;
        }
        let view = simulator.view();
        for job in view.jobs() {
            black_box(job.goodput_model());
        }
        for (name, times) in OTHERS.iter().zip(&mut others) {
            if ASKED.contains(&decision) && !slow.contains(name) {
                let secs = ask(name, &view);
                times.push(secs);
                if secs > PATIENCE {
                    slow.push(name);
                }
            }
        }
        let start = clock::cpu_secs();
        let plan = learned.decide(&view);
        own.push(clock::cpu_secs() - start);
        simulator.apply(&plan).expect("a plan that the guard lets pass");
        simulator.wake_at(learned.wake_at());
    }
    own.sort_by(f64::total_cmp);
    let (median, worst) = (own[own.len() / 2], own[own.len() - 1]);
    println!("  {:<14}{:>12.3}   worst of {} {:.3}", "utility", median * 1e3, own.len(), worst * 1e3);
    for (name, times) in OTHERS.iter().zip(others).filter(|(_, times)| !times.is_empty()) {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        println!("  {name:<14}{:>12.3}   {:.1} times", least * 1e3, least / median);
    }
}

/// Seconds of the second decision about the same moment: the first also sets the policy up.
fn ask(name: &str, view: &ClusterView<'_>) -> f64 {
    let mut policy = compose::by_name(name, 1).expect("a policy of the list");
    let mut view = *view;
    view.information = policy.information();
    let mut last = f64::INFINITY;
    for _ in 0..2 {
        let start = clock::cpu_secs();
        black_box(policy.decide(&view));
        last = clock::cpu_secs() - start;
        if last > PATIENCE {
            break;
        }
    }
    last
}

fn scenario(nodes: u32, jobs: u32) -> Arc<Scenario> {
    let synth = PolluxSynth { jobs, work_spread: 1.0, ..PolluxSynth::default() };
    let generator = SynthConfig::Pollux(synth).build(Catalog::shipped()).expect("settings in range");
    let drawn = generator.generate(1);
    let at_once = drawn.jobs.into_iter().map(|mut job| {
        job.request.submit = SimTime::ZERO;
        job
    });
    let workload = Arc::new(Workload::new(drawn.applications, at_once.collect()));
    let options =
        SimOptions { batching: Batching::Agent, information: Information::Profiled, ..SimOptions::standard() };
    Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(nodes, 8)), workload, options, 1))
}

/// The best of many runs of a set encoder with all slots occupied.
fn forward() {
    let layout = layout(64);
    for width in [32, 64] {
        let net = NetConfig::Set(SetConfig::new(NonZeroUsize::new(width).expect("not zero")));
        let fused = Fused::new(&Weights::new(&net, layout, 1));
        let mut scratch = fused.scratch();
        let mut observation = Observation::zeros(&layout);
        for (at, value) in observation.features.iter_mut().enumerate() {
            *value = if at % layout.slot_features == 0 { 1.0 } else { (at * 31 % 17) as f32 / 17.0 };
        }
        observation.mask.fill(1);
        let mut best = f64::INFINITY;
        for _ in 0..200 {
            let start = clock::cpu_secs();
            for _ in 0..20 {
                black_box(fused.greedy(black_box(&observation.features), &observation.mask, &mut scratch));
            }
            best = best.min((clock::cpu_secs() - start) / 20.0);
        }
        println!("set encoder of width {width}, 64 of 64 slots, batch 1: {:.1} microseconds", best * 1e6);
    }
}
