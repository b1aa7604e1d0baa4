//! Aryl's two phases and its placement, against worked tables and simpler rules.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use goodput_agents::heuristic::aryl::{
    Aryl, ArylDemand, ArylPhases, ArylServer, ArylServers, WorkerRole, fragmentation, workers,
};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::{Elasticity, JobId, Work, Workload};
use goodput_env::placement::Placement;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed, rng};
use goodput_env::sim::{Simulator, Status};
use rand::RngExt;

use crate::support::{applications, fixed, frictionless, on_slow_and_fast};

fn demand(job: u32, base: u32, most: u32, secs: f64) -> ArylDemand {
    ArylDemand { job: JobId(job), base, most, secs, running: false }
}

/// Linear scaling: seconds on `gpus` where it would be `secs` on the base.
fn linear(demands: &[ArylDemand]) -> impl Fn(usize, u32) -> Option<f64> + '_ {
    |at, gpus| Some(demands[at].secs * f64::from(demands[at].base) / f64::from(gpus))
}

fn granted(demands: &[ArylDemand], capacity: u32) -> Vec<u32> {
    ArylPhases::default().allocate(demands, capacity, linear(demands))
}

#[test]
fn extra_workers_go_where_they_save_most() {
    // A runs 60 s on its base of 2 and can have 5, B 40 s on 1 and can have 4.
    let jobs = [demand(0, 2, 5, 60.0), demand(1, 1, 4, 40.0)];
    let extra = [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (3, 3)];
    for (spare, (a, b)) in (0..).zip(extra) {
        assert_eq!(granted(&jobs, 3 + spare), [2 + a, 1 + b], "{spare} to spare");
    }
}

#[test]
fn the_shortest_start_first_and_flexible_workers_wait_for_base_demands() {
    let jobs = [demand(0, 4, 4, 100.0), demand(1, 2, 6, 50.0), demand(2, 3, 3, 10.0), demand(3, 1, 1, 1000.0)];
    assert_eq!(granted(&jobs, 5), [0, 2, 3, 0], "the shortest, then the next, then none fits");
    assert_eq!(granted(&jobs, 6), [0, 2, 3, 1], "the wide job is passed over");
    assert_eq!(granted(&jobs, 10), [4, 2, 3, 1], "nothing is flexible before everybody runs");
    assert_eq!(granted(&jobs, 12), [4, 4, 3, 1]);
}

#[test]
fn a_running_job_keeps_its_base_demand() {
    let mut jobs = [demand(0, 4, 4, 1000.0), demand(1, 2, 2, 1.0)];
    jobs[0].running = true;
    assert_eq!(granted(&jobs, 4), [4, 0]);
}

#[test]
fn unknown_lengths_come_last_and_stay_at_their_base() {
    let jobs = [demand(0, 1, 4, f64::INFINITY), demand(1, 1, 4, 10.0)];
    assert_eq!(granted(&jobs, 1), [0, 1]);
    assert_eq!(granted(&jobs, 8), [1, 4]);
}

#[test]
fn gains_that_grow_are_solved_exactly_too() {
    // The third accelerator of job 0 is worth more than its second; taking steps greedily would
    // stop before it.
    let jobs = [demand(0, 1, 3, 30.0), demand(1, 1, 3, 12.0)];
    let table = [[30.0, 29.0, 10.0], [12.0, 9.0, 8.0]];
    let secs = |at: usize, gpus: u32| Some(table[at][gpus as usize - 1]);
    assert_eq!(ArylPhases::default().allocate(&jobs, 4, secs), [3, 1]);
    assert_eq!(ArylPhases::default().allocate(&jobs, 3, secs), [1, 2]);
}

fn server(free: u32, lent: bool) -> ArylServer {
    ArylServer { free, gpus: 8, kind: TypeId(0), lent, base: 8 - free, flexible: 0 }
}

fn placed(servers: &mut ArylServers, role: WorkerRole, sizes: &[u32]) -> Option<Vec<(u32, u32)>> {
    let mut placement = Placement::none();
    let fits = servers.place(&mut placement, TypeId(0), role, sizes);
    fits.then(|| placement.slices().iter().map(|slice| (slice.node.0, slice.gpus)).collect())
}

#[test]
fn best_fit_on_started_servers_first() {
    let fresh = || ArylServers(vec![server(8, false), server(3, false), server(5, false), server(4, false)]);
    assert_eq!(placed(&mut fresh(), WorkerRole::Inelastic, &[4]), Some(vec![(3, 4)]));
    assert_eq!(placed(&mut fresh(), WorkerRole::Inelastic, &[2]), Some(vec![(1, 2)]));
    assert_eq!(placed(&mut fresh(), WorkerRole::Inelastic, &[6]), Some(vec![(0, 6)]), "only the idle one has room");
    let mut servers = fresh();
    assert_eq!(placed(&mut servers, WorkerRole::Inelastic, &[8, 8]), None);
    assert_eq!(servers, fresh(), "all workers or none");
    assert_eq!(workers(20, 8), [8, 8, 4]);
    assert_eq!(workers(3, 8), [3]);
}

#[test]
fn inelastic_on_training_servers_and_base_apart_from_flexible() {
    let mut servers = ArylServers(vec![server(8, false), server(8, true), server(8, true)]);
    assert_eq!(placed(&mut servers, WorkerRole::Inelastic, &[4]), Some(vec![(0, 4)]));
    assert_eq!(placed(&mut servers, WorkerRole::Base, &[1, 1]), Some(vec![(1, 2)]));
    assert_eq!(placed(&mut servers, WorkerRole::Flexible, &[1, 1]), Some(vec![(2, 2)]));
    assert_eq!(placed(&mut servers, WorkerRole::Base, &[1]), Some(vec![(1, 1)]));
    assert_eq!(placed(&mut servers, WorkerRole::Inelastic, &[8]), None);
    assert_eq!(
        placed(&mut servers, WorkerRole::Inelastic, &[6]),
        Some(vec![(2, 6)]),
        "borrowed ones where training's are full"
    );
    assert_eq!(placed(&mut servers, WorkerRole::Flexible, &[1; 9]), Some(vec![(1, 5), (0, 4)]));
}

#[test]
fn flexible_workers_leave_from_the_end() {
    let mut servers = ArylServers(vec![server(4, true), server(6, true)]);
    servers.0.iter_mut().for_each(|server| server.base = 0);
    let held = Placement::from_iter([(NodeId(0), 4), (NodeId(1), 2)]);
    servers.occupy(&held, 3);
    assert_eq!((servers.0[0].base, servers.0[0].flexible, servers.0[1].flexible), (3, 1, 2));
    assert_eq!(servers.scale_in(&held, 5), Placement::from_iter([(NodeId(0), 4), (NodeId(1), 1)]));
    assert_eq!((servers.0[1].free, servers.0[1].flexible), (7, 1));
}

/// Fills servers with random jobs, some of which leave; mean share of stranded accelerators.
fn stranded(seed: u64, best_fit: bool) -> f64 {
    let mut rng = keyed(seed, Stream::Workload, 0);
    let mut servers = ArylServers(vec![server(8, false); 20]);
    let mut running: Vec<(u32, u32)> = Vec::new();
    let mut sum = 0.0;
    for _ in 0..100 {
        let mut batch: Vec<u32> = (0..6).map(|_| [1, 1, 1, 2, 2, 4][rng.random_range(0..6_usize)]).collect();
        if best_fit {
            batch.sort_unstable_by(|a, b| b.cmp(a));
        }
        for gpus in batch {
            let node = match best_fit {
                true => placed(&mut servers, WorkerRole::Inelastic, &[gpus]).map(|slices| slices[0].0),
                false => servers.0.iter().position(|server| server.free >= gpus).map(|node| {
                    servers.0[node].free -= gpus;
                    node as u32
                }),
            };
            running.extend(node.map(|node| (node, gpus)));
        }
        while running.len() > 40 || rng.random::<f64>() < 0.8 && !running.is_empty() {
            let (node, gpus) = running.swap_remove(rng.random_range(0..running.len()));
            servers.0[node as usize].free += gpus;
        }
        let free: Vec<u32> = servers.0.iter().map(|server| server.free).collect();
        sum += fragmentation(&free, 8);
    }
    sum / 100.0
}

#[test]
fn less_is_stranded_than_with_the_first_fit() {
    let pairs: Vec<(f64, f64)> = (0..10).map(|seed| (stranded(seed, true), stranded(seed, false))).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / 10.0;
    assert!(mean(|pair| pair.0) < mean(|pair| pair.1), "{pairs:?}");
    assert_eq!(fragmentation(&[8, 3, 1, 0], 8), 4.0 / 12.0);
    assert_eq!(fragmentation(&[0, 0], 8), 0.0);
}

/// One elastic job of 4 to 8 workers on a node of 4 fast accelerators beside two nodes of 4 slow ones, a third as fast.
/// Without mixing it stays on 4. With all of the ideal speed it takes the slow ones as fractions of workers and ends the
/// sooner; where a job of two types keeps half of its speed, it would be the slower for them and takes none.
#[test]
fn a_job_borrows_slow_accelerators_as_fractions_of_workers_where_it_is_the_faster_for_them() {
    let mut random = rng(3, Stream::Workload);
    let mut workload = on_slow_and_fast(Workload::new(applications(&mut random), Vec::new()));
    let app = workload.applications[0].clone();
    let mut job = fixed("elastic", 4, 1, 0);
    job.work = Work::application(0);
    job.request.batch_size = Some(app.limits.init);
    job.request.elasticity = Elasticity::Elastic { min: 4, max: 8 };
    workload.jobs = vec![job];
    let workload = Arc::new(workload);
    let run = |mixing: Option<f64>| {
        let cluster = Arc::new(Cluster::parse("fast:1x4,slow:2x4").unwrap());
        let information = Information::Oracle;
        let options = SimOptions { mixing, batching: Batching::Catalog, information, ..frictionless() };
        let mut simulator = Simulator::new(Arc::new(Scenario::new(cluster, workload.clone(), options, 0)));
        let (mut policy, mut most) = (Aryl::default(), (0, 0.0));
        while simulator.run_until_decision().unwrap() == Status::Decision {
            let plan = policy.decide(&simulator.view());
            simulator.apply(&plan).unwrap();
            for job in simulator.view().jobs() {
                let workers = job.normalised_workers(&job.state.placement).unwrap_or(0.0);
                most = (job.gpus().max(most.0), workers.max(most.1));
            }
        }
        (simulator.outcome().jobs[0].jct().unwrap().as_secs_f64(), most)
    };
    let (alone, held) = run(None);
    assert_eq!(held, (4, 4.0));
    let (mixed, (gpus, workers)) = run(Some(1.0));
    assert_eq!(gpus, 12, "all eight slow ones");
    assert!(workers > 4.0 && workers < 8.0, "{workers}");
    assert!(mixed < 0.95 * alone, "{mixed} and {alone}");
    assert_eq!(run(Some(0.5)), (alone, (4, 4.0)));
}
