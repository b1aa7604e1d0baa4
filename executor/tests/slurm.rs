//! Drills on real Slurm: real processes, real faults.
//!
//! Where Slurm is not installed these tests say so and pass, but where `CI` is set they fail;
//! `cargo xtask test` installs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::failpoint::PLACES;
use goodput_executor::daemon::interface::audit;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::slurm::SlurmEngine;
use goodput_executor::engine::{Engine, NodeHealth};
use rand::RngExt;

use crate::slurm_site::*;

/// From, to, and by which job's word, milliseconds.
type Span = (u64, u64, PathBuf);

/// Log of one start of a job.
struct LifeOf {
    from: u64,
    to: u64,
    attempt: String,
    node: String,
    accelerators: String,
    /// Work done when it began.
    had: u32,
    ended: bool,
}

/// The lives of a job. One that says nothing at its end was killed: it lived until its last beat.
fn lives(path: &Path) -> Vec<LifeOf> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lives: Vec<LifeOf> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words[1].parse().unwrap();
        if words[0] == "start" {
            let beat = path.with_extension(format!("{}.beat", words[6]));
            let beat = std::fs::metadata(beat)
                .and_then(|data| data.modified())
                .map(|time| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64);
            lives.push(LifeOf {
                from: at,
                to: beat.unwrap_or(at),
                attempt: words[2].into(),
                node: words[3].into(),
                accelerators: words[4].into(),
                had: words[5].parse().unwrap(),
                ended: false,
            });
        } else {
            let life = lives.last_mut().unwrap();
            (life.to, life.ended) = (at, words[0] == "end");
        }
    }
    lives
}

/// By the jobs' own words: every job ended once, none ran twice at once, what was done stayed done, and
/// no accelerator was used by two. Without `forgetful` also: no attempt began twice.
fn witness(directory: &Path, jobs: usize, forgetful: bool) -> usize {
    let mut spans = BTreeMap::<(String, String), Vec<Span>>::new();
    let (mut ended, mut starts) = (0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let lives = lives(&path);
        starts += lives.len();
        let ends = lives.iter().filter(|life| life.ended).count();
        assert!(ends <= 1, "{} ended {ends} times", path.display());
        ended += ends;
        assert!(lives.windows(2).all(|pair| pair[0].to <= pair[1].from), "{} ran twice at once", path.display());
        assert!(lives.is_sorted_by_key(|life| life.had), "{}: progress went back", path.display());
        if !forgetful {
            let once = lives.windows(2).all(|pair| pair[0].attempt != pair[1].attempt);
            assert!(once, "{}: an attempt was started twice", path.display());
        }
        for life in lives {
            for index in life.accelerators.split(',') {
                let span = (life.from, life.to, path.clone());
                spans.entry((life.node.clone(), index.into())).or_default().push(span);
            }
        }
    }
    assert_eq!(ended, jobs, "a job is lost");
    for (accelerator, spans) in &mut spans {
        spans.sort();
        for pair in spans.windows(2) {
            assert!(pair[1].0 >= pair[0].1, "{accelerator:?} is used by two: {pair:?}");
        }
    }
    starts
}

fn submit_all(site: &mut Site, runtime: &tokio::runtime::Runtime, count: u32) {
    let mut random = rng(1, Stream::Workload);
    for index in 0..count {
        let (gpus, ticks) = (random.random_range(1..=8), random.random_range(10..40));
        let job = submission(site.directory.path(), &format!("job-{index}"), gpus, gpus, ticks);
        runtime.block_on(site.engine.submit(&job)).unwrap();
    }
}

/// The daemon as a process of its own, to be killed: `drill_one` starts this very test.
#[test]
#[ignore = "a part of the drill below"]
fn child() {
    let directory = PathBuf::from(std::env::var("GOODPUT_DRILL").unwrap());
    let settings = reader::read::<Deployment>(&directory.join("drill.toml"), &[]).unwrap().0;
    let EngineConfig::Slurm(slurm) = &settings.engine else { panic!("it drives Slurm") };
    let engine = SlurmEngine::new(slurm, key(&directory));
    let daemon = daemon::open(engine, settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap();
    let (_stop, stopped) = tokio::sync::oneshot::channel();
    runtime().block_on(daemon::interface::api::run(daemon, stopped)).unwrap();
}

fn start_child(directory: &Path, failpoint: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["slurm::child", "--exact", "--ignored", "--nocapture"]);
    command.env("GOODPUT_DRILL", directory).env("GOODPUT_FAILPOINT", failpoint);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// Drill 1: the daemon is killed by SIGKILL at seeded places while it works. `GOODPUT_KILLS` says
/// how often; 8 in the suite.
#[test]
fn killed_for_real_it_goes_on() {
    let Some(mut site) = site() else { return };
    let kills: u32 = std::env::var("GOODPUT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8);
    let runtime = runtime();
    let count = 12 + 3 * kills;
    submit_all(&mut site, &runtime, count);
    let directory = site.directory.path().to_path_buf();
    let settings = settings(&site, &directory, "");
    std::fs::write(directory.join("drill.toml"), toml::to_string(&settings).unwrap()).unwrap();
    let mut random = rng(2, Stream::Faults);
    let mut killed = 0;
    let began = Instant::now();
    while killed < kills {
        let failpoint = format!("{}:{}", PLACES[random.random_range(0..PLACES.len())], random.random_range(1..4));
        let mut child = start_child(&directory, &failpoint);
        let born = Instant::now();
        while child.try_wait().unwrap().is_none() && born.elapsed() < Duration::from_secs(8) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let died = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        let _ = child.wait();
        killed += u32::from(died);
        let left = site.cluster.ask("squeue", &["-h", "-t", "PD,R,CG"]);
        if left.trim().is_empty() {
            break;
        }
    }
    let mut child = start_child(&directory, "");
    let limit = Duration::from_secs(120);
    while !site.cluster.ask("squeue", &["-h", "-t", "PD,R,CG"]).trim().is_empty() {
        assert!(began.elapsed() < limit + Duration::from_secs(10 * u64::from(kills)), "it does not converge");
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let _ = child.wait();
    let starts = witness(&directory, count as usize, false);
    let lines = audit::verify(&directory.join("state/audit.jsonl")).unwrap().lines;
    eprintln!("{killed} kills, {count} jobs, {starts} starts, {lines} lines of audit, {:?}", began.elapsed());
    assert!(killed >= kills.min(6).max(kills * 9 / 10), "only {killed} kills");
}

/// Drill 2: slurmctld is killed within moments of what it has acknowledged, submissions, starts and
/// stops alike, and forgets. No job is lost, none runs twice at once, and all orders are carried
/// out within 30 s of its answer, without the time in which every open order waits for a job that Slurm shows as
/// completing, which is a minute more at most. `GOODPUT_CONTROLLERS` says how often; 3 in the suite.
#[test]
fn the_controller_may_forget_what_it_acknowledged() {
    let Some(mut site) = site() else { return };
    let kills: u32 = std::env::var("GOODPUT_CONTROLLERS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3);
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let mut daemon = open(&site, settings(&site, &directory, ""));
    let mut random = rng(3, Stream::Faults);
    let (mut jobs, mut slowest) = (0, Duration::ZERO);
    runtime.block_on(daemon.cycle()).unwrap();
    for _ in 0..kills {
        for late in [false, false, false, true, true] {
            if late && random.random_bool(0.5) {
                let _ = runtime.block_on(daemon.cycle());
            }
            let (gpus, ticks) = (random.random_range(1..=8), random.random_range(10..60));
            let job = submission(&directory, &format!("job-{jobs}"), gpus, gpus, ticks);
            runtime.block_on(daemon.submit("drill", &job)).unwrap();
            jobs += 1;
        }
        for _ in 0..random.random_range(0..4) {
            let _ = runtime.block_on(daemon.cycle());
        }
        std::thread::sleep(Duration::from_millis(random.random_range(0..1500)));
        site.cluster.kill_controller();
        assert!(runtime.block_on(daemon.cycle()).is_err(), "it says that Slurm does not answer");
        site.cluster.start_controller().unwrap();
        while runtime.block_on(daemon.engine_mut().snapshot()).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let answered = Instant::now();
        let (mut waited_for_slurm, mut cycled) = (Duration::ZERO, answered);
        while runtime.block_on(daemon.cycle()).map_or(true, |report| report.open > 0) {
            let queue = daemon.status().lock().unwrap().queue.clone();
            let mut ordered = queue.iter().filter(|row| row.reason == "ordered").peekable();
            if ordered.peek().is_some() && ordered.all(|row| row.detail.ends_with("(the job is completing)")) {
                waited_for_slurm += cycled.elapsed();
            }
            cycled = Instant::now();
            let own = answered.elapsed() - waited_for_slurm;
            assert!(
                own < Duration::from_secs(30) && waited_for_slurm < Duration::from_secs(60),
                "not converged: {own:?} and {waited_for_slurm:?} of Slurm: {queue:?}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
        slowest = slowest.max(answered.elapsed());
    }
    runtime.block_on(run_to_end(&mut daemon, Duration::from_secs(60 + 20 * u64::from(kills))));
    let starts = witness(&directory, jobs, true);
    let log = std::fs::read_to_string(directory.join("state/audit.jsonl")).unwrap();
    let alerts = |kind: &str| log.matches(&format!(r#""kind":"{kind}""#)).count();
    eprintln!(
        "{kills} controllers killed, {jobs} jobs, {starts} starts, {} handed in again, {} nodes taken back, at most {slowest:?} to converge",
        alerts("forgotten"),
        alerts("drained")
    );
}

/// Drill 2 once more: slurmctld is killed before the end of a job is on its disk, and comes back
/// with the job running where nothing runs. Another daemon, which has read that it had ended, takes
/// it back.
#[test]
fn a_job_whose_end_is_forgotten_is_not_run_again() {
    let Some(mut site) = site() else { return };
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let mut daemon = open(&site, settings(&site, &directory, ""));
    runtime.block_on(daemon.cycle()).unwrap();
    // slurmctld writes its state down within seconds of a change: most ends are not on disk when
    // they are seen.
    let forgotten = (0..5).find_map(|index| {
        let job = submission(&directory, &format!("job-{index}"), 4, 4, 65 + index);
        let key = runtime.block_on(daemon.submit("drill", &job)).unwrap();
        runtime.block_on(run_to_end(&mut daemon, Duration::from_secs(60)));
        runtime.block_on(daemon.cycle()).unwrap();
        site.cluster.kill_controller();
        site.cluster.start_controller().unwrap();
        let seen = loop {
            match runtime.block_on(daemon.engine_mut().snapshot()) {
                Ok(seen) => break seen,
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        seen.jobs.iter().any(|job| job.key == key && !job.phase.is_over()).then_some(key)
    });
    let key = forgotten.expect("slurmctld forgets one of five ends");
    runtime.block_on(daemon.resign());
    drop(daemon);
    let mut daemon = open(&site, settings(&site, &directory, ""));
    runtime.block_on(run_to_end(&mut daemon, Duration::from_secs(60)));
    let log = std::fs::read_to_string(directory.join(format!("{key}.log"))).unwrap();
    assert_eq!(log.matches("start ").count(), 1, "{log}");
    let audit = std::fs::read_to_string(directory.join("state/audit.jsonl")).unwrap();
    assert!(audit.contains(&format!("slurm forgot that job {key} had ended")), "{audit}");
}

/// Drill 15: an administrator works by hand; the daemon takes note within two cycles and does not
/// fight.
#[test]
fn administrators_are_not_fought() {
    let Some(mut site) = site() else { return };
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let keys: Vec<String> = (0..3)
        .map(|index| {
            let job = submission(&directory, &format!("job-{index}"), 4, 4, 500);
            runtime.block_on(site.engine.submit(&job)).unwrap()
        })
        .collect();
    let mut daemon = open(&site, settings(&site, &directory, ""));
    let settle = |daemon: &mut Daemon<SlurmEngine>| {
        for _ in 0..60 {
            runtime.block_on(daemon.cycle()).unwrap();
            std::thread::sleep(Duration::from_millis(150));
            let status = daemon.status();
            let status = status.lock().unwrap();
            if status.open_orders == 0
                && status.queue.iter().all(|row| row.phase == "running" || row.reason == "hands-off")
            {
                return;
            }
        }
        panic!("not settled: {:?}", daemon.status().lock().unwrap().queue);
    };
    settle(&mut daemon);
    // A job is cancelled by hand.
    site.cluster.ask("scancel", &[&keys[0]]);
    std::thread::sleep(Duration::from_millis(600));
    runtime.block_on(daemon.cycle()).unwrap();
    runtime.block_on(daemon.cycle()).unwrap();
    assert_eq!(daemon.status().lock().unwrap().queue.len(), 2);
    // A node is drained by hand: nothing starts there.
    site.cluster.ask("scontrol", &["update", "NodeName=n3", "State=DRAIN", "Reason=byhand"]);
    runtime.block_on(daemon.cycle()).unwrap();
    assert_eq!(daemon.status().lock().unwrap().nodes[3].health, NodeHealth::Drained);
    // A job is put back into the queue by hand, twice; after that it is left alone.
    for round in 0..2 {
        site.cluster.ask("scontrol", &["requeuehold", &keys[1]]);
        std::thread::sleep(Duration::from_millis(1500));
        if round == 0 {
            settle(&mut daemon);
        }
    }
    for _ in 0..8 {
        runtime.block_on(daemon.cycle()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    let status = daemon.status();
    let status = status.lock().unwrap();
    let row = status.queue.iter().find(|row| row.key == keys[1]).unwrap();
    assert_eq!((row.phase.as_str(), row.reason.as_str()), ("held", "hands-off"), "{row:?}");
    assert!(status.alerts.iter().any(|alert| alert.starts_with("hands-off")), "{:?}", status.alerts);
}
