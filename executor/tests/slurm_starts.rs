//! Predicted starts beside those of a real Slurm that schedules its jobs itself: `squeue --start` goes by time limits,
//! and users ask for far more time than they need.
//!
//! Where Slurm is not installed the test says so and passes, but where `CI` is set it fails.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stdout, reason = "the test prints its figures")]

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use goodput_configs::live::engine::EngineConfig;
use goodput_env::seed::{Stream, rng};
use goodput_executor::daemon::Daemon;
use goodput_executor::daemon::predict::PredictedStart;
use goodput_executor::daemon::predict::answer::StartBasis;
use goodput_executor::engine::slurm::SlurmEngine;
use rand::RngExt;

use crate::slurm_site::*;

/// Longest time that the queue takes.
const PATIENCE: Duration = Duration::from_secs(400);

/// Start of one job as it was predicted at one moment, seconds from then on, and as it came.
struct Asked {
    key: String,
    at_ms: i64,
    slurm: Option<f64>,
    predicted: PredictedStart,
}

struct Watched {
    site: Site,
    daemon: Daemon<SlurmEngine>,
    runtime: tokio::runtime::Runtime,
}

impl Watched {
    /// Submits a job that runs for `secs` and asks for `minutes`.
    fn sbatch(&self, gpus: u32, secs: u32, minutes: u32) -> String {
        let (gpus, wrap) = (format!("--gpus={gpus}"), format!("--wrap=sleep {secs}"));
        let time = format!("--time={minutes}");
        let words = ["--parsable", "--chdir=/tmp", "--output=/dev/null", "--nodes=1", &gpus, &time, &wrap];
        self.site.cluster.ask("sbatch", &words).trim().to_owned()
    }

    /// Cycles for a while, or until `done`.
    fn cycle_for(&mut self, time: Duration, done: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while began.elapsed() < time && !done(self) {
            self.runtime.block_on(self.daemon.cycle()).unwrap();
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    fn ended(&self) -> usize {
        self.daemon.status().lock().unwrap().ended.len()
    }

    fn in_queue(&self) -> usize {
        self.daemon.status().lock().unwrap().queue.len()
    }

    /// Keys of the jobs that wait, oldest first.
    fn waiting(&self) -> Vec<String> {
        let status = self.daemon.status();
        let status = status.lock().unwrap();
        status.queue.iter().filter(|row| row.placement.is_empty()).map(|row| row.key.clone()).collect()
    }

    fn predicted(&self, key: &str) -> Option<PredictedStart> {
        let (reply, replied) = mpsc::channel();
        self.daemon.predict_start(key, Box::new(move |predicted| reply.send(predicted).unwrap()));
        replied.recv_timeout(Duration::from_secs(60)).unwrap().ok()
    }

    /// Starts that Slurm expects of jobs that wait, milliseconds of the Unix epoch.
    fn expected_by_slurm(&self) -> BTreeMap<String, i64> {
        let told = self.site.cluster.ask("squeue", &["--noheader", "--start", "--format=%i %S"]);
        let expected = told.lines().filter_map(|line| {
            let (key, start) = line.trim().split_once(' ')?;
            let start: jiff::civil::DateTime = start.trim().parse().ok()?;
            Some((key.to_owned(), start.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond()))
        });
        expected.collect()
    }

    /// Starts as they came, by key.
    fn came(&self) -> BTreeMap<String, i64> {
        let starts = self.daemon.journal().starts(0, i64::MAX, 10_000).unwrap();
        starts.into_iter().map(|start| (start.key, start.start_ms)).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Errors of a prediction and of Slurm's expectation of one start, seconds, and whether the start lies between the
/// quantiles 0.1 and 0.9 of the prediction.
struct Judged {
    predicted: f64,
    slurm: Option<f64>,
    holds: bool,
    calibrated: bool,
    late: f64,
    wait: f64,
}

/// Users ask for two, five or ten minutes, and their jobs run for four to sixteen seconds. The daemon only looks: the
/// backfill of Slurm starts the jobs.
#[test]
fn starts_are_predicted_beside_those_that_squeue_expects() {
    let Some(site) = site() else { return };
    let mut settings = settings(&site, site.directory.path(), "");
    (settings.mode, settings.cycle.round_secs) = (Mode::Observe, 1.0);
    settings.policy.name = Some("conservative".to_owned());
    let EngineConfig::Slurm(slurm) = &mut settings.engine else { panic!("it drives Slurm") };
    slurm.given_partitions = vec!["train".to_owned()];
    let daemon = open(&site, settings);
    let mut watched = Watched { site, daemon, runtime: runtime() };
    watched.cycle_for(Duration::from_secs(1), |_| false);

    let mut random = rng(1, Stream::Workload);
    for _ in 0..80 {
        let (gpus, minutes) = ([4, 5, 8][random.random_range(0..3)], [2, 5, 10][random.random_range(0..3)]);
        let key = watched.sbatch(gpus, random.random_range(4..=16), minutes);
        assert!(!key.is_empty(), "sbatch takes the job");
    }
    watched.cycle_for(PATIENCE, |watched| watched.ended() >= 30);
    let mut asked: Vec<Asked> = Vec::new();
    for _ in 0..5 {
        watched.cycle_for(Duration::from_secs(10), |_| false);
        // Both are asked about the cluster as the last cycle saw it.
        watched.runtime.block_on(watched.daemon.cycle()).unwrap();
        let expected = watched.expected_by_slurm();
        for key in watched.waiting() {
            let Some(predicted) = watched.predicted(&key) else { continue };
            assert!(matches!(predicted.basis, StartBasis::Futures { .. }), "{predicted:?}");
            let at_ms = predicted.at_ms;
            let slurm = expected.get(&key).map(|start| (start - at_ms) as f64 / 1e3);
            asked.push(Asked { key, at_ms, slurm, predicted });
        }
    }
    watched.cycle_for(PATIENCE, |watched| watched.in_queue() == 0);

    let came = watched.came();
    let judged = asked.iter().filter_map(|asked| {
        let wait = (came.get(&asked.key)? - asked.at_ms) as f64 / 1e3;
        let wait = wait.max(0.0);
        let late = wait - asked.predicted.wait.median?;
        let calibrated = !matches!(asked.predicted.basis, StartBasis::Futures { calibrated_on: 0, .. });
        // Slurm tells whole seconds, and a start that is due lies a moment back.
        let slurm = asked.slurm.map(|expected| (expected.max(0.0) - wait).abs());
        let holds = asked.predicted.wait.holds(wait);
        Some(Judged { predicted: late.abs(), slurm, holds, calibrated, late, wait })
    });
    let judged: Vec<Judged> = judged.collect();
    let both: Vec<&Judged> = judged.iter().filter(|judged| judged.slurm.is_some()).collect();
    assert!(both.len() >= 20, "{} questions of {} that Slurm answers too", both.len(), asked.len());
    let ours = median(both.iter().map(|judged| judged.predicted).collect());
    let slurms = median(both.iter().filter_map(|judged| judged.slurm).collect());
    let coverage = |of: &dyn Fn(&Judged) -> bool| {
        let asked = judged.iter().filter(|judged| of(judged));
        let (count, held) = asked.fold((0, 0), |(count, held), judged| (count + 1, held + u32::from(judged.holds)));
        format!("{held} of {count}")
    };
    let (before, after) = (coverage(&|judged| !judged.calibrated), coverage(&|judged| judged.calibrated));
    println!(
        "{} starts asked about, of which squeue --start expects {}; median wait {:.1} s",
        judged.len(),
        both.len(),
        median(judged.iter().map(|judged| judged.wait).collect()),
    );
    println!("median absolute error: {ours:.1} s predicted, {slurms:.1} s by squeue --start");
    println!("starts between the quantiles 0.1 and 0.9: {before} before calibration, {after} with it");
    println!(
        "median of the start less the prediction: {:.1} s",
        median(judged.iter().map(|judged| judged.late).collect())
    );
    assert!(ours < slurms, "run times of jobs that have ended say more than time limits: {ours} s and {slurms} s");
}
