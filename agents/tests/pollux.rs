//! Both searches against every state of small instances, and against each other on larger ones.

use crate::support::random_model;
use goodput_agents::heuristic::pollux::fast::Fast;
use goodput_agents::heuristic::pollux::genetic::{FrontReuse, Genetic, GeneticConfig};
use goodput_agents::heuristic::pollux::objective::{Lanes, ObjectiveParameters, PolluxJob, PolluxProblem};
use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::seed::{Stream, rng};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Jobs where a scheduler left them: some wait, some run, and no node has two distributed jobs.
fn instance(rng: &mut ChaCha8Rng, jobs: u32, nodes: u32, gpus: u32) -> PolluxProblem {
    let mut free = vec![gpus; nodes as usize];
    let contenders = (0..jobs).map(|job| {
        let node = rng.random_range(0..nodes);
        let here = rng.random_range(0..=free[node as usize]);
        free[node as usize] -= here;
        let known = here > 0 || rng.random_range(0..3) == 0;
        PolluxJob {
            job: JobId(job),
            tenant: 0,
            weight_milli: 1000,
            held: Placement::on(NodeId(node), here),
            age_secs: rng.random_range(0..20_000) as f64,
            restarts: rng.random_range(0..10),
            min: 1,
            max: if known { rng.random_range(here.max(1)..=(nodes * gpus).min(64)) } else { 1 },
            model: known.then(|| random_model(rng)),
        }
    });
    let contenders = contenders.collect();
    let mut problem = PolluxProblem::default();
    problem.reset(&vec![gpus; nodes as usize], contenders);
    problem
}

/// Best fitness of all states of `jobs` jobs on 2 nodes of 2.
fn exhaustive(problem: &mut PolluxProblem, jobs: usize, most: &[u32]) -> f64 {
    let mut best = 0.0;
    for code in 0..3_u32.pow(2 * jobs as u32) {
        let mut state = vec![[0; 16]; jobs];
        for cell in 0..2 * jobs {
            state[cell / 2][cell % 2] = (code / 3_u32.pow(cell as u32) % 3) as u8;
        }
        if valid(&state, &[2, 2], most) {
            best = f64::max(best, problem.value(&state).fitness);
        }
    }
    best
}

fn valid(state: &[Lanes], capacity: &[u32], most: &[u32]) -> bool {
    let on = |row: &Lanes, node: usize| u32::from(row[node]);
    let distributed = |row: &Lanes| row.iter().filter(|&&replicas| replicas > 0).count() > 1;
    let nodes = capacity.iter().enumerate().all(|(node, &capacity)| {
        let sharing = state.iter().filter(|row| distributed(row) && row[node] > 0).count();
        state.iter().map(|row| on(row, node)).sum::<u32>() <= capacity && sharing <= 1
    });
    let rows =
        state.iter().zip(most).all(|(row, &most)| row.iter().map(|&replicas| u32::from(replicas)).sum::<u32>() <= most);
    nodes && rows
}

#[test]
fn both_searches_come_within_a_percent_of_the_best_state() {
    let mut rng = rng(1, Stream::Workload);
    for case in 0..60 {
        let jobs = 1 + case % 3;
        let mut problem = instance(&mut rng, jobs, 2, 2);
        let most: Vec<u32> = problem.jobs().iter().map(|job| job.max).collect();
        let best = exhaustive(&mut problem, jobs as usize, &most);
        let mut genetic = Genetic::new(GeneticConfig::default());
        let (state, value) = genetic.search(&mut problem, &mut rng);
        assert!(valid(state, &[2, 2], &most));
        assert!(value.fitness >= 0.99 * best, "case {case}: genetic {} of {best}", value.fitness);
        let mut fast = Fast::default();
        let (state, value) = fast.search(&mut problem);
        assert!(valid(state, &[2, 2], &most));
        assert!(value.fitness >= 0.99 * best, "case {case}: fast {} of {best}", value.fitness);
    }
}

#[test]
fn on_a_real_cluster_the_fast_search_is_no_worse_than_the_genetic_one() {
    let mut rng = rng(2, Stream::Workload);
    let capacity = [4; 16];
    let mut logs = Vec::new();
    for jobs in [4, 10, 20, 35, 50, 80] {
        for _ in 0..3 {
            let mut problem = instance(&mut rng, jobs, 16, 4);
            let most: Vec<u32> = problem.jobs().iter().map(|job| job.max).collect();
            let mut genetic = Genetic::new(GeneticConfig::default());
            // Three rounds on the same jobs: the search is meant to start from its last front.
            for _ in 0..2 {
                genetic.search(&mut problem, &mut rng);
            }
            let (state, published) = genetic.search(&mut problem, &mut rng);
            assert!(valid(state, &capacity, &most));
            assert_eq!(problem.clone().value(state), published, "the score of the search is the objective");
            let mut fast = Fast::default();
            let (state, ours) = fast.search(&mut problem);
            assert!(valid(state, &capacity, &most));
            println!("{jobs} jobs: genetic {:.5}, fast {:.5}", published.fitness, ours.fitness);
            assert!(ours.fitness >= 0.98 * published.fitness, "{jobs} jobs: {} of {}", ours.fitness, published.fitness);
            logs.push((ours.fitness / published.fitness).ln());
        }
    }
    let ratio = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    assert!(ratio >= 1.0, "the fast search finds {ratio} of the genetic one's fitness");
}

#[test]
fn the_genetic_search_obeys_every_rule_on_awkward_clusters() {
    let mut rng = rng(3, Stream::Workload);
    for (nodes, gpus) in [(1, 1), (1, 8), (3, 5), (17, 2), (40, 3)] {
        for warm_start in [FrontReuse::ByPosition, FrontReuse::ByJob] {
            let config = GeneticConfig { population: 20, generations: 15, warm_start, ..GeneticConfig::default() };
            let mut genetic = Genetic::new(config);
            for jobs in [1, 6, 13] {
                let mut problem = instance(&mut rng, jobs, nodes, gpus);
                let width = nodes.div_ceil(16) as usize;
                let (state, value) = genetic.search(&mut problem, &mut rng);
                let state = state.to_vec();
                assert_eq!(problem.value(&state), value);
                let mut used = vec![0; nodes as usize];
                let mut guests = vec![0; nodes as usize];
                for (row, job) in state.chunks(width).zip(problem.jobs()) {
                    let replicas: Vec<u32> = row.iter().flatten().map(|&replicas| u32::from(replicas)).collect();
                    let nodes_used = replicas.iter().filter(|&&replicas| replicas > 0).count();
                    assert!(nodes_used <= 16 && replicas.iter().sum::<u32>() <= job.max);
                    for node in 0..nodes as usize {
                        used[node] += replicas[node];
                        guests[node] += u32::from(nodes_used > 1 && replicas[node] > 0);
                    }
                }
                assert!(used.iter().all(|&used| used <= gpus) && guests.iter().all(|&guests| guests <= 1));
            }
        }
    }
}

#[test]
fn the_same_seed_finds_the_same_state() {
    let search = |seed: u64| {
        let mut problem = instance(&mut rng(9, Stream::Workload), 12, 4, 4);
        let mut genetic = Genetic::new(GeneticConfig { generations: 20, ..GeneticConfig::default() });
        let mut draws = rng(seed, Stream::Policy);
        genetic.search(&mut problem, &mut draws);
        genetic.search(&mut problem, &mut draws).0.to_vec()
    };
    assert_eq!(search(5), search(5));
}

/// Accelerators of each tenant in the best state: `flood` jobs of one tenant beside four of another, of the given
/// weight. Jobs without a model scale perfectly, so the best state is known: each tenant has its part.
fn of_tenants(flood: u32, weight_milli: u32, tenant_fairness: f64) -> [u32; 2] {
    let mut problem = PolluxProblem::new(ObjectiveParameters { tenant_fairness, ..ObjectiveParameters::default() });
    let jobs = (0..flood + 4).map(|job| PolluxJob {
        job: JobId(job),
        tenant: u32::from(job >= flood),
        weight_milli: if job >= flood { weight_milli } else { 1000 },
        held: Placement::default(),
        age_secs: 10_000.0,
        restarts: 0,
        min: 1,
        max: 16,
        model: None,
    });
    problem.reset(&[4; 4], jobs.collect());
    let mut fast = Fast::default();
    let (state, _) = fast.search(&mut problem);
    let held: Vec<u32> = state.iter().map(|row| row.iter().map(|&gpus| u32::from(gpus)).sum()).collect();
    [held[..flood as usize].iter().sum(), held[flood as usize..].iter().sum()]
}

#[test]
fn tenants_have_equal_parts_however_many_jobs_they_have() {
    for flood in [1, 2, 4, 8, 40] {
        assert_eq!(of_tenants(flood, 1000, 1.0), [8, 8], "{flood} jobs");
        assert_eq!(of_tenants(flood, 3000, 1.0), [4, 12], "{flood} jobs, weights 1 and 3");
    }
    // As published, every job counts alike: a tenant gains by numbers.
    assert_eq!([1, 2, 4, 8].map(|flood| of_tenants(flood, 1000, 0.0)[0]), [3, 5, 8, 11]);
    let [flood, _] = of_tenants(40, 1000, 0.0);
    assert!(flood >= 12, "{flood}");
}
