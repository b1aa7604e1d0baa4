//! The environment keeps its promises: checked, exact rewards, resumable, no allocation per step.
#![expect(unsafe_code, reason = "a counting allocator can only be written with unsafe")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
mod support;

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::gym::{
    Action, ClusterEnv, Discount, EnvError, EnvOptions, Environment, Observation, ResetOptions, ScenarioSource,
    VecBuffers, VecEnv, Verb, WarmUp, check,
};
use goodput_env::job::Workload;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use rand::RngExt;
use support::{application, mixed_jobs};

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

struct Counting;

// SAFETY: every call is passed on unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Memory) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Memory) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn source(jobs: usize) -> ScenarioSource {
    let template = Scenario::new(
        Arc::new(Cluster::parse("8x4").unwrap()),
        Arc::new(Workload::new(vec![application()], vec![])),
        SimOptions::standard(),
        0,
    );
    Arc::new(move |seed| {
        let workload = Workload::new(template.workload.applications.clone(), mixed_jobs(seed, jobs, 40));
        Arc::new(template.with_jobs(Arc::new(workload), seed))
    })
}

fn env(slots: usize, jobs: usize) -> ClusterEnv {
    ClusterEnv::new(source(jobs), EnvOptions { slots, ..EnvOptions::default() })
}

/// Plays a seeded random episode, handing each step to `each`.
fn play(env: &mut ClusterEnv, seed: u64, mut each: impl FnMut(usize, f64, &Observation)) {
    let mut random = rng(seed, Stream::Exploration);
    let mut observation = Observation::zeros(&env.layout());
    env.reset(Some(seed), &ResetOptions::default(), observation.as_mut()).unwrap();
    loop {
        let allowed = observation.mask.iter().filter(|&&allowed| allowed == 1).count();
        let pick = random.random_range(0..allowed);
        let (action, _) = observation.mask.iter().enumerate().filter(|(_, allowed)| **allowed == 1).nth(pick).unwrap();
        let step = env.step(action, observation.as_mut()).unwrap();
        each(action, step.reward, &observation);
        if step.terminated || step.truncated {
            break;
        }
    }
}

#[test]
fn the_checker_finds_nothing_wrong() {
    for finding in check(&env(64, 20), 7, 3, 3000).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
}

#[test]
fn rewards_sum_to_minus_the_completion_times() {
    for slots in [4, 64] {
        let mut env = env(slots, 30);
        let mut total = 0.0;
        play(&mut env, 3, |_, reward, _| total += reward);
        let jct_millis: i64 = env.simulator().unwrap().records().iter().map(|job| job.jct().unwrap().as_millis()).sum();
        assert!((total + jct_millis as f64 / 3_600_000.0).abs() < 1e-9, "{total} {jct_millis}");
    }
}

/// The record of a job counts the accelerator time that it held.
#[test]
fn a_timeline_adds_up_to_the_time_that_every_job_held() {
    let mut env = env(64, 30).with_timeline();
    for seed in [3, 4] {
        play(&mut env, seed, |_, _, _| {});
        let (simulator, timeline) = (env.simulator().unwrap(), env.timeline().unwrap());
        let mut held = vec![0; simulator.records().len()];
        for stay in timeline.stays() {
            held[stay.job.index()] += i64::from(stay.gpus) * (stay.to.unwrap() - stay.from).as_millis();
        }
        let attained: Vec<i64> = simulator.records().iter().map(|record| record.attained_gpu_millis).collect();
        assert_eq!(held, attained);
        assert_eq!(timeline.waiting().last().unwrap().1, 0);
    }
}

#[test]
fn steps_allocate_nothing() {
    let mut env = env(64, 60);
    // A first episode lets every buffer grow to its size; the second one is the same and counted.
    play(&mut env, 11, |_, _, _| {});
    let mut random = rng(11, Stream::Exploration);
    let mut observation = Observation::zeros(&env.layout());
    env.reset(Some(11), &ResetOptions::default(), observation.as_mut()).unwrap();
    let (mut steps, mut allocated) = (0, Vec::new());
    loop {
        let allowed = observation.mask.iter().filter(|&&allowed| allowed == 1).count();
        let pick = random.random_range(0..allowed);
        let (action, _) = observation.mask.iter().enumerate().filter(|(_, allowed)| **allowed == 1).nth(pick).unwrap();
        let before = ALLOCATIONS.with(Cell::get);
        let step = env.step(action, observation.as_mut()).unwrap();
        let after = ALLOCATIONS.with(Cell::get);
        if after > before {
            allocated.push((steps, after - before));
        }
        steps += 1;
        if step.terminated {
            break;
        }
    }
    assert!(steps > 300);
    assert_eq!(allocated, [], "(step, allocations) in {steps} steps");
}

#[test]
fn a_vector_resumes_from_its_cursors_bit_for_bit() {
    let build = || VecEnv::new(vec![env(16, 6), env(16, 6)], vec![100, 200], ResetOptions::default()).unwrap();
    let mut vector = build();
    let layout = vector.layout();
    let mut buffers = VecBuffers::new(2, &layout);
    vector.reset(&mut buffers).unwrap();
    let first = |buffers: &VecBuffers, env: usize, step: usize| {
        let mask = &buffers.mask[env * layout.actions()..(env + 1) * layout.actions()];
        let allowed: Vec<usize> = (0..mask.len()).filter(|&action| mask[action] == 1).collect();
        allowed[(step * 7 + env) % allowed.len()]
    };
    let mut ended = 0;
    for step in 0..2000 {
        let actions = [first(&buffers, 0, step), first(&buffers, 1, step)];
        vector.step(&actions, &mut buffers).unwrap();
        ended += buffers.terminated.iter().filter(|&&done| done).count();
    }
    assert!(ended > 2, "{ended}");
    let (mut copy, mut restored) = (build(), VecBuffers::new(2, &layout));
    copy.restore(&vector.cursors().cloned().collect::<Vec<_>>(), &mut restored).unwrap();
    assert_eq!((&restored.features, &restored.mask), (&buffers.features, &buffers.mask));
    assert!(copy.cursors().eq(vector.cursors()));
}

#[test]
fn a_forbidden_action_steps_no_environment_of_a_vector() {
    let build = || VecEnv::new(vec![env(16, 6), env(16, 6)], vec![100, 200], ResetOptions::default()).unwrap();
    let (mut vector, mut twin) = (build(), build());
    let layout = vector.layout();
    let (mut buffers, mut other) = (VecBuffers::new(2, &layout), VecBuffers::new(2, &layout));
    vector.reset(&mut buffers).unwrap();
    twin.reset(&mut other).unwrap();
    let allowed = |buffers: &VecBuffers, env: usize, bit: u8| {
        let mask = &buffers.mask[env * layout.actions()..(env + 1) * layout.actions()];
        mask.iter().position(|&allowed| allowed == bit).unwrap()
    };
    let good = [allowed(&buffers, 0, 1), allowed(&buffers, 1, 1)];
    let bad = [good[0], allowed(&buffers, 1, 0)];
    assert!(matches!(vector.step(&bad, &mut buffers), Err(EnvError::Forbidden { action }) if action == bad[1]));
    vector.step(&good, &mut buffers).unwrap();
    twin.step(&good, &mut other).unwrap();
    assert_eq!((&buffers.features, &buffers.mask), (&other.features, &other.mask));
    assert!(vector.cursors().eq(twin.cursors()));
}

#[test]
fn the_mask_and_the_question_agree() {
    let mut env = env(16, 12);
    let layout = env.layout();
    let mut observation = Observation::zeros(&layout);
    env.reset(Some(4), &ResetOptions::default(), observation.as_mut()).unwrap();
    for step in 0.. {
        let allowed: Vec<usize> = (0..layout.actions()).filter(|&action| env.allows(action)).collect();
        let masked: Vec<usize> = (0..layout.actions()).filter(|&action| observation.mask[action] == 1).collect();
        assert_eq!(allowed, masked);
        let outcome = env.step(allowed[step * 7 % allowed.len()], observation.as_mut()).unwrap();
        if outcome.terminated {
            assert!(step > 50 && (0..layout.actions()).all(|action| !env.allows(action)));
            break;
        }
    }
}

/// With decisions at every arrival and completion, the number of jobs is constant within a step.
#[test]
fn rewards_are_discounted_within_a_step() {
    let half_life = 600.0;
    let discount = Discount::with_half_life_secs(half_life).unwrap();
    let (mut plain, mut discounted) = (env(16, 12), env(16, 12).with_discount(Some(discount)));
    let mut observation = Observation::zeros(&plain.layout());
    let mut again = observation.clone();
    plain.reset(Some(4), &ResetOptions::default(), observation.as_mut()).unwrap();
    discounted.reset(Some(4), &ResetOptions::default(), again.as_mut()).unwrap();
    for step in 0.. {
        let allowed: Vec<usize> = (0..observation.mask.len()).filter(|&action| observation.mask[action] == 1).collect();
        let action = allowed[step * 7 % allowed.len()];
        let one = plain.step(action, observation.as_mut()).unwrap();
        let other = discounted.step(action, again.as_mut()).unwrap();
        assert_eq!((one.elapsed_secs, one.terminated), (other.elapsed_secs, other.terminated));
        assert!(other.reward >= one.reward - 1e-12, "{} {}", one.reward, other.reward);
        // The weight of a step lies between that of its end and that of its beginning.
        assert!(other.reward <= one.reward * discount.after(one.elapsed_secs) + 1e-12);
        if one.terminated {
            assert!(step > 50);
            break;
        }
    }
    let rate = std::f64::consts::LN_2 / half_life;
    let mean = (1.0 - (-rate * 900.0_f64).exp()) / (rate * 900.0);
    assert!((discount.mean_over(900.0) - mean).abs() < 1e-12);
    assert_eq!((discount.mean_over(0.0), discount.after(0.0)), (1.0, 1.0));
    assert!((discount.after(half_life) - 0.5).abs() < 1e-15);
    assert!([0.0, -1.0, f64::NAN, f64::INFINITY].map(Discount::with_half_life_secs).iter().all(Option::is_none));
}

#[test]
fn rounds_cannot_go_in_circles() {
    let mut env = env(64, 20);
    let mut in_round = 0;
    let wait = env.layout().wait();
    let mut longest = 0;
    play(&mut env, 5, |action, _, _| {
        in_round = if action == wait { 0 } else { in_round + 1 };
        longest = longest.max(in_round);
    });
    assert!(longest > 0 && longest <= 64 * 16, "{longest}");
}

/// Takes away whenever it may, gives only when it must. A round once could end with everything it
/// had started taken back.
#[test]
fn a_policy_that_takes_everything_back_still_finishes() {
    let mut env = env(4, 12);
    let layout = env.layout();
    let mut observation = Observation::zeros(&layout);
    env.reset(Some(1), &ResetOptions::default(), observation.as_mut()).unwrap();
    for step in 0.. {
        assert!(step < 200_000, "it goes on and on");
        let allowed = |verb: usize| (0..layout.slots).map(|slot| slot * 3 + verb).find(|&a| observation.mask[a] == 1);
        let wait = (observation.mask[layout.wait()] == 1).then_some(layout.wait());
        let action = allowed(2).or(allowed(1)).or(wait).or(allowed(0)).unwrap();
        if env.step(action, observation.as_mut()).unwrap().terminated {
            break;
        }
    }
}

#[test]
fn actions_have_one_number_each() {
    let layout = goodput_env::gym::layout(64);
    for number in 0..layout.actions() {
        assert_eq!(Action::decode(number, &layout).unwrap().encode(&layout), number);
    }
    assert_eq!(Action::decode(layout.actions(), &layout), None);
    assert_eq!(Action::decode(layout.wait(), &layout), Some(Action::Wait));
    assert_eq!(Action::decode(4, &layout), Some(Action::Change { slot: 1, verb: Verb::Shrink }));
}

/// Every waiting job on the first node that has an accelerator left.
struct First;

impl Policy for First {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free: Vec<u32> = view.cluster().node_ids().map(|node| view.free_on(node)).collect();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            let gpus = job.request().gpus;
            if let Some(node) = free.iter().position(|free| *free >= gpus) {
                free[node] -= gpus;
                plan.set(job.id(), Placement::on(NodeId::at(node), gpus));
            }
        }
        plan
    }
}

#[test]
fn warmed_up_episodes_begin_in_the_middle_and_keep_all_promises() {
    let warm_up = WarmUp { policy: Arc::new(|_| Box::new(First)), longest: SimTime::from_secs(3600) };
    let env = env(64, 40).with_warm_up(Some(warm_up));
    for finding in check(&env, 7, 3, 3000).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
    let begins = |seed: u64| {
        let (mut env, mut observation) = (env.clone(), Observation::zeros(&env.layout()));
        env.reset(Some(seed), &ResetOptions::default(), observation.as_mut()).unwrap();
        let running = env.view().unwrap().jobs().filter(|job| job.gpus() > 0).count();
        (env.simulator().unwrap().now(), running, observation)
    };
    let all: Vec<_> = (0..20).map(begins).collect();
    assert_eq!(all, (0..20).map(begins).collect::<Vec<_>>(), "each is a function of its seed");
    let late = all.iter().filter(|(now, running, _)| *now > SimTime::from_secs(600) && *running > 0).count();
    assert!(late >= 10, "{late} of 20 begin later than ten minutes, with jobs that run");
    let spread =
        all.iter().map(|(now, ..)| *now).max() > all.iter().map(|(now, ..)| *now + SimTime::from_secs(1200)).min();
    assert!(spread, "they begin at different times");
}
