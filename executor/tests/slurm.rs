//! Real Slurm: a private cluster of four nodes with eight accelerators each, real processes, real
//! faults.
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
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::daemon::failpoint::PLACES;
use goodput_executor::daemon::interface::audit;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::slurm::SlurmEngine;
use goodput_executor::engine::{
    ClusterSnapshot, Engine, EngineAction, JobPhase, NodeHealth, OnNode, Order, OrderProgress, Submission,
};
use goodput_testkit::slurm::{PrivateCluster, missing};
use rand::RngExt;

/// Does work in ticks of a tenth of a second, faster on more accelerators; checkpoints when told to
/// stop and at the end. The time of its file `beat` is when it was last alive.
const JOB: &str = r#"#!/bin/sh
state=$DIR/$SCHED_JOB_ID.ckpt; log=$DIR/$SCHED_JOB_ID.log
done=$(cat $state 2>/dev/null || echo 0)
say() { echo "$1 $(date +%s%3N) $SCHED_ATTEMPT $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-none} $done $$" >> $log; }
say start
trap 'echo $done > $state.new; mv $state.new $state; say stop; exit 143' TERM
while [ $done -lt $WORK ]; do : > $DIR/$SCHED_JOB_ID.$$.beat; sleep 0.1; done=$((done + SCHED_GPUS)); done
echo $done > $state.new; mv $state.new $state
say end
"#;

struct Site {
    cluster: PrivateCluster,
    engine: SlurmEngine,
    directory: tempfile::TempDir,
}

/// A cluster with the script; `None`, said loudly, where there is no Slurm.
fn site() -> Option<Site> {
    if let Some(program) = missing() {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed; `cargo xtask test` installs Slurm");
        eprintln!(
            "NOT TESTED: {program} is not installed; apt-get install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
        );
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start(&directory.path().join("slurm"), 4, 8, "a100", 5).unwrap();
    std::fs::write(directory.path().join("job.sh"), JOB).unwrap();
    let engine = SlurmEngine::new(&cluster.settings());
    Some(Site { cluster, engine, directory })
}

fn submission(directory: &Path, name: &str, gpus: u32, max: u32, ticks: u32) -> Submission {
    let elasticity = if max > gpus { Elasticity::Elastic { min: 1, max } } else { Elasticity::Rigid };
    let request = JobRequest { name: name.into(), gpus, elasticity, ..JobRequest::default() };
    let place = directory.display().to_string();
    let work = Work::Fixed { duration: SimTime::from_millis(i64::from(ticks) * 100) };
    let command = vec!["/bin/sh".into(), format!("{place}/job.sh")];
    Submission {
        environment: [("DIR".to_string(), place), ("WORK".to_string(), (ticks * gpus).to_string())].into(),
        directory: Some(directory.into()),
        grace_s: 5,
        ..Submission::new(JobSpec { request, work }, command)
    }
}

fn on(node: &str, gpus: u32) -> OnNode {
    OnNode { node: node.into(), gpus, ..OnNode::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Applies an order again and again until it is carried out.
async fn carry_out(engine: &mut SlurmEngine, order: &Order) -> ClusterSnapshot {
    let began = Instant::now();
    loop {
        let snapshot = engine.snapshot().await.unwrap();
        match engine.verify(order, &snapshot) {
            OrderProgress::Done => return snapshot,
            OrderProgress::Lost { reason } => panic!("{order:?}: {reason}"),
            OrderProgress::Pending => {}
        }
        engine.apply(std::slice::from_ref(order)).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(40), "not carried out: {order:?}: {:?}", snapshot.jobs);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until the program itself has begun for the `count`th time: Slurm calls a job running
/// before its first line runs.
async fn begun(directory: &Path, key: &str, count: usize) {
    let began = Instant::now();
    let starts = || {
        let text = std::fs::read_to_string(directory.join(format!("{key}.log"))).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("start")).count()
    };
    while starts() < count {
        assert!(began.elapsed() < Duration::from_secs(20), "start {count} of {key} is never heard of");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn job<'a>(snapshot: &'a ClusterSnapshot, key: &str) -> &'a goodput_executor::engine::JobSeen {
    snapshot.jobs.iter().find(|job| job.key == key).unwrap()
}

#[test]
fn orders_are_carried_out_to_the_accelerator() {
    // The cluster is dropped before its directory.
    let Some(mut site) = site() else { return };
    let Site { engine, directory, .. } = &mut site;
    runtime().block_on(async {
        let key = engine.submit(&submission(directory.path(), "one", 4, 8, 600)).await.unwrap();
        let seen = engine.snapshot().await.unwrap();
        assert_eq!((job(&seen, &key).phase, job(&seen, &key).starts), (JobPhase::Held, 0), "it waits for an order");
        assert_eq!(job(&seen, &key).spec.request.elasticity, Elasticity::Elastic { min: 1, max: 8 });
        assert_eq!(seen.nodes.iter().map(|node| node.free).collect::<Vec<_>>(), [8; 4]);

        let place = Order::named("p1", &key, 0, EngineAction::Place { placement: vec![on("n2", 4)], share: None });
        let seen = carry_out(engine, &place).await;
        begun(directory.path(), &key, 1).await;
        assert_eq!(job(&seen, &key).attempt.as_ref().unwrap().placement[0].accelerators, ["0", "1", "2", "3"]);
        assert_eq!(seen.nodes[2].free, 4);

        let wanted = vec![on("n0", 4), on("n3", 4)];
        let resize = Order::named("p2", &key, 1, EngineAction::Resize { placement: wanted, grace_s: 5 });
        let seen = carry_out(engine, &resize).await;
        begun(directory.path(), &key, 2).await;
        assert_eq!(job(&seen, &key).starts, 2);
        assert_eq!(seen.nodes.iter().map(|node| node.free).collect::<Vec<_>>(), [4, 8, 8, 4]);

        let uneven = vec![on("n1", 1), on("n2", 2)];
        let migrate = Order::named("p3", &key, 2, EngineAction::Migrate { placement: uneven, grace_s: 5 });
        let seen = carry_out(engine, &migrate).await;
        begun(directory.path(), &key, 3).await;
        let held: Vec<&str> =
            job(&seen, &key).attempt.as_ref().unwrap().placement.iter().map(|on| on.node.as_str()).collect();
        assert_eq!(held, ["n1", "n2"]);

        let seen = carry_out(engine, &Order::named("p4", &key, 3, EngineAction::Stop { grace_s: 5 })).await;
        assert_eq!(job(&seen, &key).phase, JobPhase::Held);
        let place = Order::named("p5", &key, 3, EngineAction::Place { placement: vec![on("n1", 1)], share: None });
        carry_out(engine, &place).await;
        begun(directory.path(), &key, 4).await;

        let drained = carry_out(
            engine,
            &Order::named("p6", "", 0, EngineAction::Drain { node: "n3".into(), reason: "a drill".into() }),
        )
        .await;
        assert_eq!(drained.nodes[3].health, NodeHealth::Drained);
        carry_out(engine, &Order::named("p7", "", 0, EngineAction::Undrain { node: "n3".into() })).await;

        carry_out(engine, &Order::named("p8", &key, 4, EngineAction::Cancel { grace_s: 5 })).await;
        let log = std::fs::read_to_string(directory.path().join(format!("{key}.log"))).unwrap();
        let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
        let starts: Vec<[&str; 2]> =
            lines.iter().filter(|line| line[0] == "start").map(|line| [line[2], line[3]]).collect();
        assert_eq!(starts, [["0", "n2"], ["1", "n0"], ["2", "n1"], ["3", "n1"]], "{log}");
        // What was done is never done again.
        let done: Vec<u32> = lines.iter().map(|line| line[5].parse().unwrap()).collect();
        assert!(done.is_sorted(), "{log}");
    });
}

fn settings(site: &Site, directory: &Path, extra: &str) -> Deployment {
    let conf = site.cluster.settings().conf.unwrap();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\nconf = {:?}\n[policy]\nname = \"srtf\"\n[reliance]\ntimeout_ms = 5000\nfallback = \"fifo\"\n\
         [state]\ndirectory = {:?}\nname = \"drill\"\n[api]\nlisten = \"\"\n[cycle]\npoll_secs = 0.2\nround_secs = 5\n\
         [guard]\nmin_run_secs = 1\npreempt_every_secs = 2\npreempt_percent = 100\n{extra}",
        conf.display().to_string(),
        directory.join("state").display().to_string(),
    );
    reader::parse("drill.toml", &text).unwrap()
}

fn open(site: &Site, settings: Deployment) -> Daemon<SlurmEngine> {
    daemon::open(SlurmEngine::new(&site.cluster.settings()), settings, Vec::new(), Arc::new(Tenants::default()))
        .unwrap()
}

/// Runs the daemon until every job is over.
async fn run_to_end(daemon: &mut Daemon<SlurmEngine>, limit: Duration) {
    let began = Instant::now();
    loop {
        let _ = daemon.cycle().await;
        let seen = daemon.engine_mut().snapshot().await;
        if seen.is_ok_and(|seen| seen.jobs.iter().all(|job| job.phase.is_over())) {
            return;
        }
        assert!(began.elapsed() < limit, "not at the end after {limit:?}: {:?}", daemon.status().lock().unwrap().queue);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

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

/// By the jobs' own words: every job ended, none ran twice at once, what was done stayed done, and
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
        ended += usize::from(lives.iter().any(|life| life.ended));
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
    let engine = SlurmEngine::new(slurm);
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
/// out within 30 s of its answer. `GOODPUT_CONTROLLERS` says how often; 3 in the suite.
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
        while runtime.block_on(daemon.cycle()).map_or(true, |report| report.open > 0) {
            assert!(
                answered.elapsed() < Duration::from_secs(30),
                "not converged: {:?}",
                daemon.status().lock().unwrap().queue
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

/// Jobs without goodput's comment are not the daemon's: neither those that run nor one that its user
/// holds is touched, though a shorter job of the daemon waits for accelerators.
#[test]
fn jobs_of_others_are_left_alone() {
    let Some(mut site) = site() else { return };
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let plain = ["--parsable", "--chdir=/tmp", "--requeue", "--nodes=1", "--gpus=8", "--wrap=sleep 300"];
    let sbatch = |more: &[&str]| site.cluster.ask("sbatch", &[&plain[..], more].concat()).trim().to_string();
    let foreign = [sbatch(&[]), sbatch(&[]), sbatch(&[]), sbatch(&["--hold"])];
    let running = || site.cluster.ask("squeue", &["-h", "-t", "R", "-o", "%i"]).lines().count();
    let began = Instant::now();
    while running() < 3 {
        assert!(began.elapsed() < Duration::from_secs(60), "the jobs of others never start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let own: Vec<String> = (0..3)
        .map(|index| {
            let job = submission(&directory, &format!("job-{index}"), 8, 8, 10);
            runtime.block_on(site.engine.submit(&job)).unwrap()
        })
        .collect();
    let mut daemon = open(&site, settings(&site, &directory, ""));
    let began = Instant::now();
    loop {
        runtime.block_on(daemon.cycle()).unwrap();
        let seen = runtime.block_on(daemon.engine_mut().snapshot()).unwrap();
        if own.iter().all(|key| job(&seen, key).phase.is_over()) {
            assert!(foreign.iter().all(|key| job(&seen, key).hands_off));
            assert_eq!(seen.nodes.iter().map(|node| node.gpus).sum::<u32>(), 8, "three nodes are gone");
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", daemon.status().lock().unwrap().queue);
        std::thread::sleep(Duration::from_millis(150));
    }
    let told = |key: &str| site.cluster.ask("scontrol", &["show", "job", key]);
    for key in &foreign {
        assert!(told(key).contains("Restarts=0"), "{}", told(key));
    }
    assert!(foreign[..3].iter().all(|key| told(key).contains("JobState=RUNNING")));
    assert!(told(&foreign[3]).contains("Reason=JobHeldUser"), "{}", told(&foreign[3]));
}

/// A user's tasks, processors and memory stay as asked when the daemon starts the job.
#[test]
fn resources_stay_as_asked() {
    let Some(site) = site() else { return };
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let asked = ["-n", "4", "-c", "8", "--mem=64G", "--gpus=4", "--nodes=1", "--time=30"];
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--wrap=sleep 300"];
    let key = site.cluster.ask("sbatch", &[&job[..], &asked[..]].concat()).trim().to_string();
    let mut daemon = open(&site, settings(&site, &directory, ""));
    let told = || site.cluster.ask("scontrol", &["show", "job", &key]);
    let began = Instant::now();
    while !told().contains("JobState=RUNNING") {
        runtime.block_on(daemon.cycle()).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{}", told());
        std::thread::sleep(Duration::from_millis(150));
    }
    for words in
        ["NumCPUs=32 NumTasks=4 CPUs/Task=8", "MinMemoryNode=64G", "TimeLimit=00:30:00", "TresPerJob=gres:gpu:4"]
    {
        assert!(told().contains(words), "{words}: {}", told());
    }
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
