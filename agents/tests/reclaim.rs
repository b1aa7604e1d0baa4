//! Return of lent servers, against the worked table, the naive rule and brute force.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::compose::loaning::{Occupant, Prices, Returned, cheapest};
use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::seed::{Stream, keyed};
use proptest::prelude::*;
use rand::RngExt;

fn rigid(job: u32, servers: &[u32]) -> Occupant {
    Occupant {
        job: JobId(job),
        servers: servers.iter().map(|&node| (NodeId(node), 1)).collect(),
        spare: 0,
        prices: Prices::default(),
    }
}

fn nodes<const COUNT: usize>(ids: [u32; COUNT]) -> [NodeId; COUNT] {
    ids.map(NodeId)
}

/// A:{1,2} B:{2} C:{3,4,5} D:{5} E:{6} F:{6}
fn table() -> Vec<Occupant> {
    let servers: [&[u32]; 6] = [&[1, 2], &[2], &[3, 4, 5], &[5], &[6], &[6]];
    servers.iter().zip(0..).map(|(servers, job)| rigid(job, servers)).collect()
}

#[test]
fn the_worked_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/oracles/oracles.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (count, expected) in all["aryl_reclaim"].as_object().unwrap() {
        let returned = cheapest(&nodes([1, 2, 3, 4, 5, 6]), &table(), count.parse().unwrap());
        let mut names: Vec<String> =
            returned.preempted.iter().map(|job| char::from(b'A' + job.0 as u8).to_string()).collect();
        names.sort();
        assert_eq!(serde_json::json!(returned.servers), expected["greedy"][0], "{count} servers");
        assert_eq!(serde_json::json!(names), expected["greedy"][1], "{count} servers");
    }
}

#[test]
fn it_is_a_heuristic() {
    // The naive rule would preempt b and c; a alone would do.
    let jobs = [rigid(0, &[3]), rigid(1, &[1, 2, 4]), rigid(2, &[1, 2, 4])];
    let returned = cheapest(&nodes([0, 1, 2, 3, 4]), &jobs, 2);
    assert_eq!(returned, Returned { servers: nodes([0, 1]).into(), preempted: vec![JobId(1), JobId(2)] });
}

#[test]
fn flexible_workers_go_before_any_job_is_preempted() {
    // Job 0 runs on 2 and holds 6; job 1 cannot do without its one accelerator.
    let elastic = Occupant {
        job: JobId(0),
        servers: nodes([0, 1, 2]).map(|node| (node, 2)).into(),
        spare: 4,
        prices: Prices::default(),
    };
    let jobs = [elastic, rigid(1, &[3])];
    let of = |count| cheapest(&nodes([0, 1, 2, 3]), &jobs, count);
    assert_eq!(of(2), Returned { servers: nodes([0, 1]).into(), preempted: vec![] });
    assert_eq!(
        of(3),
        Returned { servers: nodes([0, 1, 2]).into(), preempted: vec![JobId(0)] },
        "its base is on the last server"
    );
    // An idle server costs less than scaling in.
    assert_eq!(cheapest(&nodes([0, 1, 9]), &jobs, 1).servers, nodes([9]));
}

#[test]
fn prices_decide_the_preempted_jobs() {
    // One job a server; the first is dear. By number they are alike.
    let priced = |job: u32, times: f64| Occupant { prices: Prices::relative(times, 0.0), ..rigid(job, &[job]) };
    let jobs = [priced(0, 4.0), priced(1, 1.0), priced(2, 2.0)];
    assert_eq!(cheapest(&nodes([0, 1, 2]), &jobs, 2).servers, nodes([1, 2]));
    assert_eq!(
        cheapest(&nodes([0, 1, 2]), &[rigid(0, &[0]), rigid(1, &[1]), rigid(2, &[2])], 2).servers,
        nodes([0, 1])
    );
    // Scaling three jobs in is nothing as published, and more than preempting one at half its
    // price.
    let flexible = |job: u32, part: f64| Occupant {
        job: JobId(job),
        servers: vec![(NodeId(0), 1), (NodeId(9), 1)],
        spare: 1,
        prices: Prices::relative(1.0, part),
    };
    let choose = |part: f64| {
        let jobs = [flexible(0, part), flexible(1, part), flexible(2, part), rigid(3, &[1])];
        cheapest(&nodes([0, 1]), &jobs, 1).servers
    };
    assert_eq!((choose(0.0), choose(0.5)), (vec![NodeId(0)], vec![NodeId(1)]));
}

fn preempted_by(jobs: &[Occupant], servers: &[NodeId]) -> usize {
    jobs.iter().filter(|job| job.servers.iter().any(|(node, _)| servers.contains(node))).count()
}

/// Servers with the fewest jobs first, whatever else those jobs are on.
fn fewest_jobs_first(servers: u32, jobs: &[Occupant], count: usize) -> Vec<NodeId> {
    let mut order: Vec<NodeId> = NodeId::first(servers as usize).collect();
    order.sort_by_key(|&node| (preempted_by(jobs, &[node]), node));
    order.truncate(count);
    order
}

fn random_jobs(rng: &mut impl RngExt, servers: u32) -> Vec<Occupant> {
    let jobs = 1 + rng.random_range(0..8_u32);
    let job = |job| {
        let mut on: Vec<u32> = (0..servers).filter(|_| rng.random::<f64>() < 0.3).collect();
        if on.is_empty() {
            on.push(rng.random_range(0..servers));
        }
        rigid(job, &on)
    };
    (0..jobs).map(job).collect()
}

#[test]
fn fewer_preemptions_than_by_number_of_jobs_and_near_the_fewest() {
    let (mut greedy, mut naive, mut optimum, mut worse) = (0, 0, 0, 0);
    for case in 0..1000 {
        let mut rng = keyed(7, Stream::Workload, case);
        let servers = rng.random_range(3..9_u32);
        let jobs = random_jobs(&mut rng, servers);
        let count = rng.random_range(1..=servers) as usize;
        let all: Vec<NodeId> = NodeId::first(servers as usize).collect();
        let found = cheapest(&all, &jobs, count);
        assert_eq!(found.preempted.len(), preempted_by(&jobs, &found.servers));
        let subsets = (0_u32..1 << servers).filter(|set| set.count_ones() as usize == count);
        let chosen = |set: u32| -> Vec<NodeId> { all.iter().copied().filter(|node| set >> node.0 & 1 == 1).collect() };
        let best = subsets.map(|set| preempted_by(&jobs, &chosen(set))).min().unwrap();
        greedy += found.preempted.len();
        naive += preempted_by(&jobs, &fewest_jobs_first(servers, &jobs, count));
        optimum += best;
        worse += usize::from(found.preempted.len() > best);
    }
    assert!(greedy <= naive, "{greedy} preemptions against {naive} of the naive rule");
    assert!(worse < 100 && greedy as f64 <= optimum as f64 * 1.05, "{worse} of 1000 worse, {greedy} against {optimum}");
}

proptest! {
    #[test]
    fn every_job_on_a_returned_server_is_scaled_in_or_preempted(
        seed in 0_u64..1000, spares in prop::collection::vec(0_u32..4, 9), count in 0_usize..9,
    ) {
        let mut rng = keyed(seed, Stream::Workload, 1);
        let mut jobs = random_jobs(&mut rng, 6);
        jobs.iter_mut().zip(spares).for_each(|(job, spare)| job.spare = spare.min(job.servers.len() as u32));
        let found = cheapest(&nodes([0, 1, 2, 3, 4, 5]), &jobs, count);
        prop_assert_eq!(found.servers.len(), count.min(6));
        let mut unique = found.servers.clone();
        unique.sort_unstable();
        unique.dedup();
        prop_assert_eq!(unique.len(), found.servers.len());
        for job in &jobs {
            let lost: u32 = job.servers.iter().filter(|(node, _)| found.servers.contains(node)).map(|held| held.1).sum();
            prop_assert_eq!(found.preempted.contains(&job.job), lost > job.spare);
        }
    }
}
