//! Learned orders of batch queues: what they see, how they choose, and what a bundle keeps of them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::num::NonZeroUsize;
use std::path::Path;

use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::heuristic::backfill::{JobOrder, OrderedJob, QueueMoment, QueueOrder};
use goodput_agents::nets::weights::{NetConfig, SetConfig, Weights};
use goodput_agents::policies::queue::{
    ChoiceLog, JOB_FEATURES, LearnedOrder, LearnedQueue, QueueRule, QueueScore, layout, schema_hash,
};
use goodput_env::cluster::Cluster;
use goodput_env::job::{JobRequest, JobSpec, Workload};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::support::{fixed, frictionless, random_jobs, run};

fn random_weights(seed: u64) -> [f32; JOB_FEATURES.len()] {
    let mut random = rng(seed, Stream::Initialisation);
    std::array::from_fn(|_| random.random_range(-1.0f32..1.0))
}

fn net(seed: u64) -> QueueScore {
    let config = NetConfig::Set(SetConfig::new(NonZeroUsize::new(8).unwrap()));
    let mut weights = Weights::new(&config, layout(4), seed);
    // The first scores of a net are nearly equal. These are not.
    weights.data_mut().iter_mut().for_each(|weight| *weight *= 3.0);
    QueueScore::Net(weights)
}

fn scores(seed: u64) -> [QueueScore; 2] {
    [QueueScore::Linear(random_weights(seed)), net(seed)]
}

fn starts(mut policy: Box<dyn goodput_env::policy::Policy>, jobs: Vec<JobSpec>) -> Vec<SimTime> {
    let outcome = run(&mut *policy, Cluster::homogeneous(1, 8), Workload::new(Vec::new(), jobs), frictionless());
    outcome.jobs.iter().map(|job| job.start.unwrap()).collect()
}

/// The oracle of the whole path: a score that falls with the requested run time alone is shortest job first.
#[test]
fn a_weight_on_the_requested_run_time_alone_is_shortest_job_first() {
    let mut weights = [0.0; JOB_FEATURES.len()];
    weights[1] = -1.0;
    for rule in QueueRule::ALL {
        for seed in 0..5 {
            let jobs = random_jobs(seed, 80);
            let learned = LearnedQueue { score: QueueScore::Linear(weights), rule };
            let expected = starts(rule.policy(JobOrder::Sjf), jobs.clone());
            assert_eq!(starts(learned.policy(), jobs), expected, "{rule:?}, seed {seed}");
        }
    }
}

/// Jobs with requested run times wait behind one that holds the cluster. The first decision about them does not
/// depend on their true run times.
#[test]
fn true_run_times_of_waiting_jobs_change_no_decision() {
    let workload = |spans: &[i64]| {
        let mut jobs = vec![limited("first", 8, 1000, 1000, 0)];
        let waiting = |(at, span): (usize, &i64)| {
            let (width, limit) = (1 + at as u32 % 3, 300 + 100 * (at as i64 % 7));
            limited(&format!("j{at}"), width, limit, *span, 1 + at as i64)
        };
        jobs.extend(spans.iter().enumerate().map(waiting));
        jobs
    };
    let mut spans: Vec<i64> = (1..=24).map(|at| 12 * at).collect();
    let (given, mut random) = (workload(&spans), rng(5, Stream::Workload));
    spans.shuffle(&mut random);
    let permuted = workload(&spans);
    for rule in QueueRule::ALL {
        for score in (0..4).flat_map(scores) {
            let began = |jobs: &[JobSpec]| {
                let policy = LearnedQueue { score: score.clone(), rule }.policy();
                let starts = starts(policy, jobs.to_vec());
                starts.into_iter().map(|start| start == SimTime::from_secs(1000)).collect::<Vec<bool>>()
            };
            let first = began(&given);
            assert!(first.iter().filter(|began| **began).count() > 1, "{rule:?}: the decision is about several jobs");
            assert_eq!(first, began(&permuted), "{rule:?}");
        }
    }
}

fn limited(name: &str, gpus: u32, limit: i64, span: i64, submit: i64) -> JobSpec {
    let job = fixed(name, gpus, span, submit);
    JobSpec { request: JobRequest { limit: Some(SimTime::from_secs(limit)), ..job.request }, ..job }
}

#[test]
fn a_longer_queue_is_scored_by_the_weights_of_a_short_one() {
    // The net was made for 4 slots; 80 jobs wait at times.
    let jobs = random_jobs(3, 120);
    let QueueScore::Net(weights) = net(1) else { unreachable!() };
    let wide = Weights::from_data(weights.config(), layout(512), weights.data().to_vec()).unwrap();
    let of = |weights| LearnedQueue { score: QueueScore::Net(weights), rule: QueueRule::Easy }.policy();
    assert_eq!(starts(of(weights), jobs.clone()), starts(of(wide), jobs));
}

#[test]
fn choices_are_drawn_from_the_softmax_of_the_scores() {
    let requests: Vec<JobRequest> =
        [10, 1000, 100_000].map(|secs| limited("", 1, secs, secs, 0).request).into_iter().collect();
    let jobs: Vec<OrderedJob<'_>> = requests
        .iter()
        .map(|request| OrderedJob { request, planned: request.limit.unwrap(), waited_secs: 0.0 })
        .collect();
    let mut weights = [0.0; JOB_FEATURES.len()];
    weights[1] = -2.0;
    let log = ChoiceLog::default();
    let mut order = LearnedOrder::exploring(&QueueScore::Linear(weights), 7, log.clone());
    let moment = QueueMoment { now: SimTime::from_secs(0), gpus: 8, free: 8, running: &[] };
    let mut counts = [[0u32; 3]; 2];
    let mut likely = [0.0f64; 3];
    for _ in 0..20_000 {
        order.numbers(&moment, &jobs);
        order.took_turns(3);
        let choices = log.take();
        assert_eq!(choices.len(), 2, "the last job is no choice");
        counts[0][choices[0].chosen] += 1;
        if choices[0].chosen == 0 {
            counts[1][choices[1].chosen] += 1;
        }
        likely[choices[0].chosen] = f64::from(choices[0].log_probability().exp());
        assert_eq!(choices[1].before, [choices[0].chosen]);
    }
    let share = |count: u32, of: u32| f64::from(count) / f64::from(of);
    for job in 0..3 {
        assert!((share(counts[0][job], 20_000) - likely[job]).abs() < 0.015, "{counts:?} {likely:?}");
    }
    assert!((likely.iter().sum::<f64>() - 1.0).abs() < 1e-5);
    // After the first job has had its turn, the others are drawn from what is left.
    let second = likely[1] / (likely[1] + likely[2]);
    assert!((share(counts[1][1], counts[0][0]) - second).abs() < 0.02, "{counts:?} {likely:?}");
}

#[test]
fn a_bundle_keeps_score_and_rule() {
    for (score, rule) in scores(2).into_iter().zip([QueueRule::ArtifactBackfill, QueueRule::Easy]) {
        let model = Model::Queue(LearnedQueue { score, rule });
        let card = Card { schema_hash: schema_hash(), ..Card::default() };
        let bundle = PolicyBundle { model, normaliser: None, card };
        let path = Path::new("a.bundle");
        let read = PolicyBundle::from_bytes(&bundle.to_bytes(), path).unwrap().checked(path).unwrap();
        assert_eq!((read.kind(), read.plays_rounds()), ("queue", false));
        assert_eq!(read.to_bytes(), bundle.to_bytes());
        let jobs = random_jobs(9, 60);
        let policy = |bundle: &PolicyBundle| bundle.policy(Default::default()).unwrap();
        assert_eq!(starts(policy(&read), jobs.clone()), starts(policy(&bundle), jobs));
        let other = PolicyBundle { card: Card::default(), ..read };
        assert!(other.checked(path).is_err(), "another schema is refused");
    }
}
