//! Sia: its program against exhaustive search, its placement rules, figures of the public artifact,
//! and whole runs.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::program::least_cost;
use crate::support::random_workload;
use goodput_agents::allocation::knapsack::{Item, Knapsack};
use goodput_agents::compose::by_name;
use goodput_agents::heuristic::sia::program::{SiaColumn, WITHOUT, choose, total_cost};
use goodput_agents::heuristic::sia::restart_factor;
use goodput_agents::placement::whole_nodes::{Nodes, Wanted};
use goodput_env::cluster::{AcceleratorType, Cluster, Node, NodeId, TypeId};
use goodput_env::placement::{Placement, Slice};
use goodput_env::scenario::{Preset, Scenario};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::state::Phase;
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Least cost of any feasible choice.
fn exhaustive(jobs: &[Vec<SiaColumn>], capacity: &[u32]) -> f64 {
    let Some((first, rest)) = jobs.split_first() else { return 0.0 };
    let mut best = WITHOUT + exhaustive(rest, capacity);
    for column in first {
        let kind = column.kind.index();
        if column.gpus <= capacity[kind] {
            let mut left = capacity.to_vec();
            left[kind] -= column.gpus;
            best = best.min(column.cost + exhaustive(rest, &left));
        }
    }
    best
}

fn random_columns(rng: &mut ChaCha8Rng, kinds: u16, rounded: bool) -> Vec<SiaColumn> {
    let count = rng.random_range(0..=6);
    let cost = |rng: &mut ChaCha8Rng| {
        let cost: f64 = rng.random_range(0.1..1.5);
        if rounded { (cost * 10.0).round() / 10.0 } else { cost }
    };
    (0..count)
        .map(|_| SiaColumn { kind: TypeId(rng.random_range(0..kinds)), gpus: rng.random_range(1..=5), cost: cost(rng) })
        .collect()
}

/// Jobs of a few applications, on every type. Jobs of one application differ little in cost, as where measurements are
/// shared.
fn jobs_of_applications(rng: &mut ChaCha8Rng, count: usize, kinds: u16) -> Vec<Vec<SiaColumn>> {
    let mut kind = || (rng.random_range(1.0..4.0), rng.random_range(0.3..0.9));
    let applications: Vec<Vec<(f64, f64)>> = (0..4).map(|_| (0..kinds).map(|_| kind()).collect()).collect();
    let job = |at: usize| {
        let of = &applications[rng.random_range(0..applications.len())];
        let sizes = 0..rng.random_range(1..6);
        let order = 1.0 + 1e-6 * at as f64 / count as f64;
        let column = |(size, (kind, (fast, scaling)))| {
            let gpus = 1_u32 << size;
            let cost = f64::powf(fast * f64::from(gpus).powf(scaling), -0.5) * order;
            SiaColumn { kind: TypeId::at(kind), gpus, cost }
        };
        sizes.flat_map(|size| of.iter().copied().enumerate().map(move |of| (size, of))).map(column).collect()
    };
    (0..count).map(job).collect()
}

#[test]
fn many_jobs_of_few_applications_are_served_at_least_cost() {
    let mut rng = rng(11, Stream::Policy);
    let mut proven = [0; 2];
    for case in 0..60 {
        let kinds = 1 + 2 * (case % 2);
        // The number of branches grows fast with the number of jobs that differ little in cost.
        let count = if kinds == 1 { 5 + case } else { 3 + case / 10 };
        let jobs = jobs_of_applications(&mut rng, count, kinds as u16);
        let capacity: Vec<u32> = (0..kinds).map(|_| rng.random_range(4..40)).collect();
        let found = total_cost(&jobs, &choose(&jobs, &capacity, WITHOUT, 0.0), WITHOUT);
        if kinds == 1 {
            // The table of all columns is exact.
            let mut table = Knapsack::default();
            for columns in &jobs {
                table.group(columns.iter().map(|column| Item { weight: column.gpus, value: WITHOUT - column.cost }));
            }
            table.solve(capacity[0]);
            let least = WITHOUT * jobs.len() as f64 - table.value();
            assert!((found - least).abs() < 1e-12 * least, "{found} {least}");
            proven[0] += 1;
        } else if let Some(least) = least_cost(&jobs, &capacity, WITHOUT) {
            assert!((found - least).abs() < 1e-7, "{found} {least}");
            proven[1] += 1;
        }
    }
    assert!(proven[0] == 30 && proven[1] > 15, "{proven:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_program_finds_the_optimum_within_capacity(seed in any::<u64>(), jobs in 1_usize..7, kinds in 1_u16..4, rounded in any::<bool>()) {
        let mut rng = rng(seed, Stream::Policy);
        let rows: Vec<_> = (0..jobs).map(|_| random_columns(&mut rng, kinds, rounded)).collect();
        let capacity: Vec<u32> = (0..kinds).map(|_| rng.random_range(0..8)).collect();
        let choice = choose(&rows, &capacity, WITHOUT, 0.0);
        let mut used = vec![0; capacity.len()];
        for (columns, chosen) in rows.iter().zip(&choice) {
            if let Some(column) = chosen.map(|at| columns[at]) {
                used[column.kind.index()] += column.gpus;
            }
        }
        prop_assert!(used.iter().zip(&capacity).all(|(used, all)| used <= all));
        let best = exhaustive(&rows, &capacity);
        let found = total_cost(&rows, &choice, WITHOUT);
        prop_assert!((found - best).abs() < 1e-9, "{found} {best}");
        prop_assert_eq!(&choice, &choose(&rows, &capacity, WITHOUT, 0.0));
    }

    #[test]
    fn sizes_that_fit_in_total_fit_their_nodes(seed in any::<u64>(), nodes in 1_u32..6, rounds in 1_usize..6) {
        let mut rng = rng(seed, Stream::Policy);
        let size = 8;
        let mut held: Vec<Wanted> = Vec::new();
        for _ in 0..rounds {
            // Some jobs leave, some change their size, some stay, some arrive.
            held.retain(|_| rng.random_bool(0.8));
            for job in &mut held {
                job.pinned = rng.random_bool(0.2);
                if !job.pinned && rng.random_bool(0.4) {
                    *job = wanted(&mut rng, nodes, size);
                }
            }
            held.extend((0..4).map(|_| wanted(&mut rng, nodes, size)));
            held.sort_by_key(|job| !job.pinned);
            let mut left = nodes * size;
            held.retain(|job| {
                let fits = job.gpus <= left;
                left -= if fits { job.gpus } else { 0 };
                fits
            });
            for (places, stays) in [(of(nodes, size).ring(&held), false), (of(nodes, size).stay(&held), true)] {
                let mut used = vec![0; nodes as usize];
                for (job, place) in held.iter().zip(&places) {
                    prop_assert_eq!(place.gpus(), job.gpus);
                    place.slices().iter().for_each(|slice| used[slice.node.index()] += slice.gpus);
                    prop_assert!(!stays || !job.pinned || *place == job.held, "who must stay stays");
                    let packed = place.nodes() == job.gpus.div_ceil(size);
                    prop_assert!(packed || held.iter().any(|job| job.pinned), "{place:?} is split");
                }
                prop_assert!(used.iter().all(|used| *used <= size));
            }
            let places = of(nodes, size).stay(&held);
            held.iter_mut().zip(places).for_each(|(job, place)| job.held = place);
            prop_assert_eq!(
                of(nodes, size).stay(&held),
                held.iter().map(|job| job.held.clone()).collect::<Vec<_>>(),
                "nobody moves where nothing changes"
            );
        }
    }
}

#[test]
fn a_job_that_has_to_be_split_stays_where_it_is() {
    let job = |gpus, slices: &[(u32, u32)], pinned| Wanted {
        gpus,
        held: slices.iter().map(|&(node, gpus)| (NodeId(node), gpus)).collect(),
        pinned,
    };
    // No node is empty, for pinned jobs are everywhere; the emptiest nodes are 1 and 2.
    let held =
        [job(4, &[(0, 4)], true), job(2, &[(1, 2)], true), job(2, &[(2, 2)], true), job(8, &[(0, 4), (2, 4)], false)];
    assert_eq!(of(3, 8).stay(&held)[3], held[3].held);
}

fn of(nodes: u32, size: u32) -> Nodes {
    Nodes::new(NodeId::first(nodes as usize).map(|node| (node, size)), size)
}

fn wanted(rng: &mut ChaCha8Rng, nodes: u32, size: u32) -> Wanted {
    let gpus = match rng.random_range(0..5) {
        4 => size * rng.random_range(1..=nodes),
        power => 1 << power,
    };
    Wanted { gpus, held: Placement::none(), pinned: false }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_of_nodes_find_what_a_look_at_all_of_them_finds(seed in any::<u64>(), nodes in 1_u32..14, size in 1_u32..9, rounds in 1_usize..7) {
        let mut rng = rng(seed, Stream::Policy);
        let mut held: Vec<Wanted> = Vec::new();
        for _ in 0..rounds {
            // Nodes that lack accelerators, sizes of any kind, and now and then more than fit.
            let free: Vec<(NodeId, u32)> = (0..nodes).map(|node| (NodeId(3 * node), size - u32::from(rng.random_bool(0.1)))).collect();
            held.retain(|_| rng.random_bool(0.85));
            for job in &mut held {
                job.pinned = rng.random_bool(0.1);
                if rng.random_bool(0.3) {
                    *job = Wanted { gpus: rng.random_range(0..=2 * size), held: Placement::none(), pinned: false };
                }
            }
            let new = rng.random_range(0..6);
            held.extend((0..new).map(|_| wanted(&mut rng, nodes, size)));
            let mut left = free.iter().map(|node| node.1).sum::<u32>();
            let over = rng.random_bool(0.1);
            held.retain(|job| {
                let fits = over || job.gpus <= left;
                left = left.saturating_sub(job.gpus);
                fits
            });
            let places = Nodes::new(free.clone(), size).stay(&held);
            prop_assert_eq!(&places, &plain::stay(&free, size, &held));
            held.iter_mut().zip(places).for_each(|(job, place)| (job.gpus, job.held) = (place.gpus(), place));
        }
    }
}

/// Reference form of the placement rules, each step by a look at every node and job.
mod plain {
    use super::*;

    pub fn stay(nodes: &[(NodeId, u32)], size: u32, jobs: &[Wanted]) -> Vec<Placement> {
        let mut free: Vec<u32> = nodes.iter().map(|node| node.1).collect();
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.0).collect();
        let mut places = vec![Placement::none(); jobs.len()];
        let mut waiting: Vec<usize> = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let tidy = job.held.nodes() == job.held.gpus().div_ceil(size);
            if job.held.gpus() == job.gpus && (job.pinned || tidy) {
                take(&ids, &mut free, &job.held);
                places[at] = job.held.clone();
            } else {
                waiting.push(at);
            }
        }
        while let Some(next) =
            (0..waiting.len()).min_by_key(|&next| (std::cmp::Reverse(jobs[waiting[next]].gpus), waiting[next]))
        {
            let at = waiting.remove(next);
            let gpus = jobs[at].gpus;
            while find(&ids, &free, size, gpus).is_none() {
                let wanted = gpus.min(size);
                let movable = |node: usize| {
                    let on = |at: &usize| places[*at].slices().iter().any(|slice| slice.node == ids[node]);
                    let small = |at: &usize| !jobs[*at].pinned && jobs[*at].gpus < wanted;
                    (0..jobs.len()).filter(|at| small(at) && on(at)).collect::<Vec<usize>>()
                };
                let candidates = (0..free.len()).filter(|&node| free[node] < wanted).filter_map(|node| {
                    let movable = movable(node);
                    let freed: u32 = movable.iter().map(|&at| jobs[at].gpus).sum();
                    (free[node] + freed >= wanted).then_some((wanted - free[node], node, movable))
                });
                let Some((mut missing, _, mut movable)) = candidates.min_by_key(|c| (c.0, c.1)) else { break };
                movable.sort_by_key(|&at| jobs[at].gpus);
                for at in movable {
                    if missing == 0 {
                        break;
                    }
                    missing = missing.saturating_sub(jobs[at].gpus);
                    for slice in std::mem::take(&mut places[at]).slices() {
                        free[ids.binary_search(&slice.node).unwrap()] += slice.gpus;
                    }
                    waiting.push(at);
                }
            }
            let held = &jobs[at].held;
            let is_free = |slice: &Slice| slice.gpus <= free[ids.binary_search(&slice.node).unwrap()];
            let stays = held.gpus() == gpus && held.slices().iter().all(is_free);
            let place = find(&ids, &free, size, gpus).or_else(|| stays.then(|| held.clone()));
            let place = place.unwrap_or_else(|| place_on_fragments(&ids, &free, gpus));
            take(&ids, &mut free, &place);
            places[at] = place;
        }
        places
    }

    fn take(ids: &[NodeId], free: &mut [u32], place: &Placement) {
        for slice in place.slices() {
            let node = ids.binary_search(&slice.node).unwrap();
            free[node] = free[node].saturating_sub(slice.gpus);
        }
    }

    fn find(ids: &[NodeId], free: &[u32], size: u32, gpus: u32) -> Option<Placement> {
        let mut place = Placement::none();
        let empty: Vec<usize> = (0..free.len()).filter(|&node| free[node] == size).collect();
        let used = empty.get(..(gpus / size) as usize)?;
        used.iter().for_each(|&node| place.push(ids[node], size));
        let rest = gpus % size;
        if rest > 0 {
            let fits = (0..free.len()).filter(|node| !used.contains(node) && free[*node] >= rest);
            place.push(ids[fits.min_by_key(|&node| (free[node], node))?], rest);
        }
        Some(place)
    }

    fn place_on_fragments(ids: &[NodeId], free: &[u32], gpus: u32) -> Placement {
        let mut order: Vec<usize> = (0..free.len()).collect();
        order.sort_by_key(|&node| (std::cmp::Reverse(free[node]), node));
        let mut left = gpus;
        let here = order.into_iter().map(|node| {
            let here = left.min(free[node]);
            left -= here;
            (ids[node], here)
        });
        here.collect()
    }
}

#[test]
fn whole_nodes_make_small_jobs_move() {
    let held = |node, gpus| Wanted { gpus, held: Placement::on(node, gpus), pinned: false };
    let new = |gpus| Wanted { gpus, held: Placement::none(), pinned: false };
    let places = of(2, 4).stay(&[held(NodeId(0), 1), held(NodeId(1), 2), new(4)]);
    assert_eq!(
        places,
        [Placement::on(NodeId(1), 1), Placement::on(NodeId(1), 2), Placement::on(NodeId(0), 4)],
        "the one that moves is the smallest"
    );
    let places = of(2, 4).ring(&[held(NodeId(0), 1), held(NodeId(1), 2), new(4)]);
    assert_eq!(
        places,
        [Placement::on(NodeId(1), 1), Placement::on(NodeId(1), 2), Placement::on(NodeId(0), 4)],
        "packed anew, by size"
    );
}

#[test]
fn the_restart_factor_is_the_artifacts() {
    // A line of its log: age 5176, restart penalty 250, 3 restarts (reference/sia/summary.json).
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/sia/summary.json");
    let log = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let factor = restart_factor(5176.0, 3, 250.0);
    assert!(log.contains(&format!("Realloc factor: imagenet-11 --> {factor}, age: 5176")), "{factor}");
    // Moving a job at its least useful size would then cost 1.107, more than leaving it without.
    assert!(factor.powf(-0.5) > WITHOUT);
    assert_eq!(restart_factor(100.0, 4, 30.0), 0.0);
}

fn mixed() -> Cluster {
    let kind = |name: &str| AcceleratorType::named(name);
    let nodes = [(0, 4), (0, 4), (1, 8), (1, 8)].map(|(accelerator, gpus)| Node::new(TypeId(accelerator), gpus));
    Cluster { types: vec![kind("slow"), kind("fast")], nodes: nodes.into() }
}

fn run_mixed(name: &str, seed: u64) -> Outcome {
    let mut workload = random_workload(&mut rng(seed, Stream::Workload), 20, 8);
    for app in &mut workload.applications {
        let app = Arc::get_mut(app).unwrap();
        let params = app.params["gpu"];
        let fast = goodput_env::model::ThroughputParams {
            alpha_c: params.alpha_c / 3.0,
            beta_c: params.beta_c / 3.0,
            ..params
        };
        app.params = [("slow".to_owned(), params), ("fast".to_owned(), fast)].into();
    }
    let mut policy = by_name(name, seed).unwrap();
    let options = Preset::SiaSosp23.options_for(&*policy);
    let scenario = Arc::new(Scenario::new(Arc::new(mixed()), Arc::new(workload), options, seed));
    let mut simulator = Simulator::new(scenario);
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let view = simulator.view();
        let pinned: Vec<_> = view.jobs().filter(|job| matches!(job.state.phase, Phase::Starting { .. })).collect();
        let pinned: Vec<_> = pinned.iter().map(|job| (job.id(), job.kind(), job.gpus())).collect();
        let plan = policy.decide(&view);
        simulator.apply(&plan).unwrap();
        let view = simulator.view();
        for (id, kind, gpus) in pinned {
            let job = view.job(id).unwrap();
            assert_eq!((job.kind(), job.gpus()), (kind, gpus), "a job that restarts is left alone");
        }
        let held: u32 = view.jobs().map(|job| job.gpus()).sum();
        assert_eq!(held + view.total_free(), view.cluster().total_gpus());
    }
    simulator.outcome()
}

#[test]
fn both_readings_finish_everything_and_decide_the_same_twice() {
    for seed in 0..6 {
        for name in ["sia", "sia@replica"] {
            let outcome = run_mixed(name, seed);
            assert!(!outcome.truncated, "{name} {seed}");
            assert_eq!(outcome, run_mixed(name, seed), "{name} {seed}");
        }
    }
}
