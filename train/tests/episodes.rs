//! Tests of training episodes: circumstances are drawn by seed, a curriculum ends where the
//! experiment is, and validation never sees either.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::experiment::{Curriculum, Experiment, Randomise, WarmUpConfig};
use goodput_configs::seeds::training_seed;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_eval::entries;
use goodput_train::episodes::Episodes;

const ELASTIC: &str = include_str!("../../configs/experiment/elastic.toml");
const SET_ENCODER: &str = include_str!("../../configs/experiment/set-encoder.toml");

fn experiment(text: &str) -> Experiment {
    toml::from_str(text).unwrap()
}

#[test]
fn without_circumstances_episodes_are_the_experiments_own() {
    let experiment = experiment(ELASTIC);
    let episodes = Episodes::new(&experiment).unwrap();
    for (number, load) in experiment.train.loads.iter().enumerate() {
        let (seed, number) = (training_seed(1, 0) + number as u64, number as u64);
        let expected = experiment.at_load(*load).setup().unwrap().scenario(seed);
        let found = episodes.at(seed, number);
        assert_eq!((&found.workload.jobs, &found.options), (&expected.workload.jobs, &expected.options), "load {load}");
    }
}

#[test]
fn sizes_take_turns_with_loads_and_are_recorded() {
    let mut experiment = experiment(ELASTIC);
    let loads = experiment.train.loads.len() as u64;
    experiment.train.sizes = vec![0.5, 1.0, 2.0];
    let whole = Episodes::new(&Experiment { train: Default::default(), ..experiment.clone() }).unwrap().at(0, 0);
    let episodes = Episodes::new(&experiment).unwrap();
    let gpus = |number: u64| episodes.at(0, number).cluster.total_gpus();
    assert_eq!([0, loads, 2 * loads, 3 * loads].map(gpus), [32, 64, 128, 32]);
    assert_eq!(experiment.trained_accelerators(), [32, 128]);
    // The load stays what it is, relative to the cluster.
    let jobs = |number: u64| episodes.at(0, number).workload.jobs.len() as f64 / whole.workload.jobs.len() as f64;
    let [half, one, two] = [0, loads, 2 * loads].map(jobs);
    assert!((half / one - 0.5).abs() < 0.02 && (two / one - 2.0).abs() < 0.02, "{half} {one} {two}");
    experiment.train.sizes = vec![0.0];
    assert!(experiment.setup().unwrap_err().to_string().contains("train.sizes"));
    // A linear policy is scored on whole workloads of one cluster.
    let linear = include_str!("../../configs/experiment/linear.toml");
    let sized = linear.replace("\n[train]\n", "\n[train]\nsizes = [0.5, 1.0]\n");
    assert!(sized != linear);
    let refused = toml::from_str::<Experiment>(&sized).unwrap().setup().unwrap_err().to_string();
    assert!(refused.contains("train.sizes") && refused.contains("[agent.evolution]"), "{refused}");
}

#[test]
fn switching_costs_take_turns_with_loads() {
    let mut experiment = experiment(ELASTIC);
    let loads = experiment.train.loads.len() as u64;
    experiment.train.switch_costs = vec!["zero".into(), "600s".into()];
    let episodes = Episodes::new(&experiment).unwrap();
    let cost = |number: u64| episodes.at(0, number).options.switch_cost;
    let [zero, long] = ["zero", "600s"].map(|name| SwitchCost::by_name(name).unwrap());
    assert_eq!([0, loads - 1, loads, 2 * loads - 1, 2 * loads].map(cost), [zero, zero, long, long, zero]);
    let jobs = |number: u64| episodes.at(7, number).workload.jobs.clone();
    assert_eq!(jobs(1), jobs(loads + 1), "the load and the seed alone make the jobs");
    // What is compared at the end has the cost of the environment.
    let held_out = entries::held_out(&experiment, 1).unwrap();
    assert_eq!(held_out[0].scenario.options.switch_cost, experiment.setup().unwrap().scenario(0).options.switch_cost);
}

#[test]
fn circumstances_are_drawn_by_seed_with_the_spread_that_was_asked_for() {
    let mut experiment = experiment(ELASTIC);
    let names = ["pollux_const", "zero", "sia_full"];
    let costs = names.map(|name| SwitchCost::by_name(name).unwrap());
    let randomise = Randomise { compute: 0.3, network: 0.0, switch_costs: names.map(Into::into).to_vec(), faults: 0.0 };
    let plain = Episodes::new(&experiment).unwrap().at(0, 0);
    experiment.train.randomise = Some(randomise);
    let episodes = Episodes::new(&experiment).unwrap();
    let (mut factors, mut met) = (Vec::new(), [0; 3]);
    for seed in 0..200 {
        let drawn = episodes.at(seed, 0);
        assert_eq!(drawn.options, episodes.at(seed, 0).options);
        met[costs.iter().position(|cost| *cost == drawn.options.switch_cost).unwrap()] += 1;
        for (drawn, plain) in drawn.workload.applications.iter().zip(&plain.workload.applications) {
            for (kind, params) in &drawn.params {
                let was = plain.params[kind];
                assert_eq!((params.alpha_n, params.beta_r, params.gamma), (was.alpha_n, was.beta_r, was.gamma));
                assert!((params.alpha_c / was.alpha_c - params.beta_c / was.beta_c).abs() < 1e-9, "one factor");
            }
            let (params, was) = (drawn.params.values().next().unwrap(), plain.params.values().next().unwrap());
            factors.push((params.beta_c / was.beta_c).ln());
        }
    }
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    let spread = (factors.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / factors.len() as f64).sqrt();
    assert!(mean.abs() < 0.03 && (spread - 0.3).abs() < 0.03, "mean {mean}, spread {spread}");
    assert!(met.iter().all(|count| (40..100).contains(count)), "{met:?}");
}

#[test]
fn a_curriculum_begins_with_fewer_jobs_for_a_shorter_time_and_ends_where_the_experiment_is() {
    let mut experiment = experiment(SET_ENCODER);
    let whole = experiment.setup().unwrap();
    experiment.train.curriculum = Some(Curriculum { from_load: 0.5, from_horizon: 0.5, episodes: 10 });
    let episodes = Episodes::new(&experiment).unwrap();
    let jobs: Vec<usize> = (0..12).map(|number| episodes.at(number, number).workload.jobs.len()).collect();
    assert!(jobs.windows(2).all(|pair| pair[0] <= pair[1]), "{jobs:?}");
    assert_eq!((jobs[0], jobs[10]), (30, 120), "half of the load for half of the time");
    assert_eq!(episodes.at(11, 11).workload.jobs, whole.scenario(11).workload.jobs);

    let by_seed = episodes.clone().of_environments(1, 8);
    for (index, number) in [(0, 0), (7, 3), (3, 11)] {
        let seed = training_seed(1, index) + number;
        assert_eq!(by_seed(seed).workload.jobs, episodes.at(seed, number).workload.jobs, "environment {index}");
    }
}

#[test]
fn what_is_compared_is_as_the_experiment_says() {
    let plain = experiment(SET_ENCODER);
    let mut eased = plain.clone();
    eased.train.randomise = Some(Randomise { compute: 0.5, network: 0.5, ..Randomise::default() });
    eased.train.curriculum = Some(Curriculum { from_load: 0.5, from_horizon: 0.5, episodes: 10 });
    eased.train.warm_up = Some(WarmUpConfig { policy: "pollux-fast".into(), longest_secs: 3600.0 });
    let (expected, found) = (entries::held_out(&plain, 2).unwrap(), entries::held_out(&eased, 2).unwrap());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected.scenario.workload.jobs, found.scenario.workload.jobs);
        let speeds =
            |workload: &Workload| -> Vec<_> { workload.applications.iter().map(|app| app.params.clone()).collect() };
        assert_eq!(speeds(&expected.scenario.workload), speeds(&found.scenario.workload));
        assert_eq!(expected.scenario.options, found.scenario.options);
    }
}

#[test]
fn circumstances_that_nobody_meets_are_refused_by_their_key() {
    let refused = |text: &str, more: &str| {
        let text = text.replace("[train]\n", &format!("[train]\n{more}\n"));
        experiment(&text).setup().unwrap_err().to_string()
    };
    for (text, more, key) in [
        (ELASTIC, "warm_up = { policy = \"fifo\", longest_secs = 60.0 }", "train.warm_up"),
        (SET_ENCODER, "warm_up = { policy = \"fifo\", longest_secs = -1.0 }", "train.warm_up.longest_secs"),
        (SET_ENCODER, "randomise = { compute = -1.0 }", "train.randomise.compute"),
        (SET_ENCODER, "randomise = { switch_costs = [\"none\"] }", "train.randomise.switch_costs"),
        (ELASTIC, "switch_costs = [\"none\"]", "train.switch_costs"),
        (ELASTIC, "switch_costs = [\"zero\", \"zero\"]", "zero twice"),
        (
            include_str!("../../configs/experiment/expert-iteration.toml"),
            "switch_costs = [\"zero\"]",
            "none with [agent.expert_iteration]",
        ),
        (
            ELASTIC,
            "switch_costs = [\"zero\"]\nrandomise = { switch_costs = [\"zero\"] }",
            "train.randomise.switch_costs",
        ),
        (include_str!("../../configs/experiment/linear.toml"), "switch_costs = [\"zero\"]", "train.switch_costs"),
        (SET_ENCODER, "randomise = { faults = 0.5 }", "train.randomise.faults"),
        (SET_ENCODER, "curriculum = { from_load = 0.0, episodes = 3 }", "train.curriculum.from_load"),
        (SET_ENCODER, "curriculum = { from_load = 0.5, episodes = 0 }", "train.curriculum.episodes"),
    ] {
        let error = refused(text, more);
        assert!(error.contains(key), "{more}: {error}");
    }
}
