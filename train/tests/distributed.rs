//! Evolution with workers: whatever they do, the search is that of one process, bit for bit.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use goodput_configs::experiment::{AgentConfig, EvolutionAgent, Experiment};
use goodput_eval::sweep::SharedFolderError;
use goodput_train::evaluator::{Evaluator, ThreadEvaluator};
use goodput_train::evolution::{EpisodeCost, Generation, Objective};
use goodput_train::run_dir::RunDir;
use goodput_train::spool::{CoordinatorWatch, SearchCoordinator, SpoolError, work};
use goodput_train::{Hooks, TrainError, Trained, train, train_distributed};

const PATIENCE: Duration = Duration::from_secs(60);

/// An evolution of a second.
fn experiment() -> Experiment {
    let text = include_str!("../../configs/experiment/mixed.toml");
    let mut experiment: Experiment = toml::from_str(&text.replace("jobs = 200", "jobs = 20")).unwrap();
    (experiment.train.validation_seeds, experiment.train.loads) = (1, vec![1.0]);
    let Some(AgentConfig::Evolution(agent)) = &mut experiment.agent else { panic!("not an evolution") };
    (agent.population, agent.generations, agent.episodes, agent.validate_every) = (4, 2, 2, 2);
    experiment
}

fn agent(experiment: &Experiment) -> &EvolutionAgent {
    goodput_train::distributable(experiment).unwrap()
}

fn run_dir(path: &Path) -> RunDir {
    let dir = RunDir::create(path).unwrap();
    dir.write("config.toml", b"equal in all runs").unwrap();
    dir
}

/// A worker with one thread of its own.
fn worker(dir: &RunDir, build: &str) -> Result<u64, TrainError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let watch = CoordinatorWatch::begin(&dir.path(""), PATIENCE)?;
    pool.install(|| work(&experiment(), dir, build, watch))
}

/// Bytes of everything that a search leaves.
fn left(trained: Trained, dir: &RunDir) -> [Vec<u8>; 3] {
    let Trained::Complete(bundle) = trained else { panic!("stopped") };
    [bundle.to_bytes(), dir.read("progress.csv").unwrap(), dir.read("checkpoints/evolution.json").unwrap()]
}

#[test]
fn workers_change_no_bit() {
    let (experiment, folder) = (experiment(), tempfile::tempdir().unwrap());
    let hooks = Hooks { stop: &AtomicBool::new(false), progress: &|_| (), argv: vec!["test".into()] };
    let dir = run_dir(&folder.path().join("threads"));
    let whole = left(train(&experiment, &dir, &hooks).unwrap(), &dir);
    for workers in [0, 3] {
        let dir = run_dir(&folder.path().join(workers.to_string()));
        let spool = dir.path("spool");
        let played: u64 = thread::scope(|scope| {
            let work = |index: u64| {
                // Workers come before the training, with it, and late.
                let dir = &dir;
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(400 * index));
                    worker(dir, "a build").unwrap()
                })
            };
            let workers: Vec<_> = (0..workers).map(work).collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let trained = pool.install(|| train_distributed(&experiment, &dir, &hooks, "a build")).unwrap();
            assert!(left(trained, &dir) == whole, "with {} workers", workers.len());
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(played > 0, workers > 0, "{played} runs were played by workers");
        let names: Vec<_> = fs::read_dir(spool).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["now.json"], "nothing but the last word of the coordinator is left");
    }
}

/// A generation of two candidates.
fn generation(objective: &Objective<'_>) -> Generation {
    let (centre, scales) = objective.begin();
    let moved = centre.iter().zip(scales).map(|(value, scale)| value + 0.1 * scale).collect();
    Generation { number: 1, candidates: vec![centre, moved] }
}

/// Ends of a worker of `build` that joins after `spoil`, and of the generation that it joins.
fn joined(build: &str, spoil: impl Fn(&Path)) -> (Result<u64, TrainError>, Result<Vec<EpisodeCost>, TrainError>) {
    let (experiment, folder) = (experiment(), tempfile::tempdir().unwrap());
    let dir = run_dir(&folder.path().join("run"));
    let objective = Objective::new(&experiment, agent(&experiment)).unwrap();
    let coordinator = SearchCoordinator::start(&objective, &dir, "a build").unwrap();
    spoil(&dir.path("spool"));
    thread::scope(|scope| {
        let worker = scope.spawn(|| worker(&dir, build));
        let costs = coordinator.costs(&generation(&objective));
        if let (true, Ok(found)) = (build == "a build", &costs) {
            assert_eq!(found, &ThreadEvaluator(&objective).costs(&generation(&objective)).unwrap());
        }
        // A worker that is refused says so while the coordinator lives.
        let began = Instant::now();
        while !worker.is_finished() && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(5));
        }
        drop(coordinator);
        (worker.join().unwrap(), costs)
    })
}

#[test]
fn a_machine_that_computes_differently_is_refused_before_it_plays() {
    let (worker, costs) = joined("a build", |spool| {
        let file = spool.join("sample/000000.json");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replacen("{\"cost\":", "{\"cost\":1", 1)).unwrap();
    });
    let error = worker.unwrap_err();
    assert!(error.to_string().starts_with("this machine computes differently"), "{error}");
    assert!(matches!(error, TrainError::Spool(SpoolError::Shared(SharedFolderError::Differs { .. }))));
    costs.unwrap();
}

#[test]
fn another_program_and_other_input_are_refused() {
    let error = joined("another build", |_| ()).0.unwrap_err().to_string();
    assert!(error.starts_with("build a build coordinates this training, and this is build another build"), "{error}");
    let other = |spool: &Path| fs::write(spool.parent().unwrap().join("config.toml"), "of another run").unwrap();
    let error = joined("a build", other).0.unwrap_err();
    assert!(matches!(error, TrainError::Spool(SpoolError::Input { what: "config.toml" })), "{error}");
}

#[test]
fn different_costs_of_one_run_end_the_search() {
    let (experiment, folder) = (experiment(), tempfile::tempdir().unwrap());
    let dir = run_dir(&folder.path().join("run"));
    let objective = Objective::new(&experiment, agent(&experiment)).unwrap();
    let coordinator = SearchCoordinator::start(&objective, &dir, "a build").unwrap();
    coordinator.costs(&generation(&objective)).unwrap();
    let mut folders = fs::read_dir(dir.path("spool")).unwrap().map(|entry| entry.unwrap().path());
    let posted = folders.find(|path| path.is_dir() && !path.ends_with("sample")).unwrap();
    assert!(posted.join("000003.json").exists() && posted.join("000003.claim.0").exists());
    fs::write(posted.join("000003.json.differs.77"), "{}").unwrap();
    let error = coordinator.costs(&generation(&objective)).unwrap_err();
    assert!(matches!(error, TrainError::Spool(SpoolError::Disagreement { .. })), "{error}");
}

#[test]
fn a_run_of_a_dead_worker_is_played_again() {
    let (experiment, folder) = (experiment(), tempfile::tempdir().unwrap());
    let dir = run_dir(&folder.path().join("run"));
    let objective = Objective::new(&experiment, agent(&experiment)).unwrap();
    let coordinator = SearchCoordinator::start(&objective, &dir, "a build").unwrap();
    let whole = coordinator.costs(&generation(&objective)).unwrap();
    let mut folders = fs::read_dir(dir.path("spool")).unwrap().map(|entry| entry.unwrap().path());
    let posted = folders.find(|path| path.is_dir() && !path.ends_with("sample")).unwrap();
    // The costs of two runs are gone, and their claims are there.
    for run in ["000001", "000004"] {
        fs::remove_file(posted.join(format!("{run}.json"))).unwrap();
    }
    assert_eq!(coordinator.costs(&generation(&objective)).unwrap(), whole);
    assert!(posted.join("000001.claim.1").exists() && posted.join("000004.claim.1").exists());
    assert!(!posted.join("000002.claim.1").exists(), "what is stored is not played again");
}

#[test]
fn a_worker_ends_where_there_is_no_sign_of_life() {
    let (experiment, folder) = (experiment(), tempfile::tempdir().unwrap());
    let dir = run_dir(&folder.path().join("run"));
    let short = Duration::from_secs(1);
    let begin = || CoordinatorWatch::begin(&dir.path(""), short);
    let write = |text: &str| dir.write("spool/now.json", text.as_bytes()).unwrap();
    assert!(matches!(begin(), Err(SpoolError::Absent { .. })), "there was never one");
    // A coordinator that was killed leaves its last notice.
    write(r#"{"beat":9,"notice":{"generation":"07"}}"#);
    assert!(matches!(begin(), Err(SpoolError::Absent { .. })), "it is dead");
    let watch = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(short / 2);
            write(r#"{"beat":10,"notice":{"generation":"07"}}"#);
        });
        begin().unwrap()
    });
    let error = work(&experiment, &dir, "a build", watch).unwrap_err();
    assert!(matches!(error, TrainError::Spool(SpoolError::Silent { .. })), "{error}");
    write(r#"{"beat":11,"notice":"ended"}"#);
    assert_eq!(work(&experiment, &dir, "a build", begin().unwrap()).unwrap(), 0);
}

#[test]
fn other_learners_are_refused() {
    let text = include_str!("../../configs/experiment/set-encoder.toml");
    let experiment: Experiment = toml::from_str(text).unwrap();
    let error = goodput_train::distributable(&experiment).unwrap_err().to_string();
    assert!(error.starts_with("[agent.ppo] learns in one process: --distributed takes an experiment with"), "{error}");
}
