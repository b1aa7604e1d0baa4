//! Aryl's two phases and its placement, against worked tables and simpler rules.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::heuristic::aryl::{
    ArylDemand, ArylPhases, ArylServer, ArylServers, WorkerRole, fragmentation, workers,
};
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::seed::{Stream, keyed};
use rand::RngExt;

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
