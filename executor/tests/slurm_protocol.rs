//! The job protocol on real Slurm, the resources of jobs, and the jobs that are the daemon's.
//!
//! Each scenario also runs on later releases of Slurm (`slurm_releases`).
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use goodput_configs::live::engine::EngineConfig;
use goodput_configs::live::node_agent::Fencing;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use goodput_executor::engine::slurm::SlurmEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, JobResources, OnNode, Order, Submission};
use goodput_executor::job::RetryBudget;

use crate::slurm_site::*;
use crate::{engine_agents as agents, slurm_site};

/// Every scenario of this file.
pub fn scenarios() -> [fn(&mut Site); 9] {
    [
        nodes_are_told_as_agents_tell_them,
        the_failure_of_one_node_counts,
        the_environment_of_the_daemon_stays_with_it,
        a_job_that_ended_well_is_not_run_again,
        tasks_of_an_array_are_placed,
        resources_follow_the_accelerators,
        who_does_not_say_gets_a_part_of_the_node,
        claims_of_comments_are_not_believed,
        a_given_partition_is_the_daemons,
    ]
}

macro_rules! on_the_installed_release {
    ($($scenario:ident => $test:ident),* $(,)?) => { $(
        #[test]
        fn $test() {
            if let Some(mut site) = site() {
                $scenario(&mut site);
            }
        }
    )* };
}

on_the_installed_release! {
    nodes_are_told_as_agents_tell_them => a_program_is_told_the_same_on_slurm_and_on_agents,
    the_failure_of_one_node_counts => a_failure_on_one_of_two_nodes_is_a_failure,
    the_environment_of_the_daemon_stays_with_it => jobs_have_no_environment_of_the_daemon,
    a_job_that_ended_well_is_not_run_again => a_job_that_slurm_runs_again_ends_at_once,
    tasks_of_an_array_are_placed => tasks_of_an_array_are_jobs,
    resources_follow_the_accelerators => processors_and_memory_follow_the_accelerators,
    who_does_not_say_gets_a_part_of_the_node => processors_and_memory_are_in_proportion_to_accelerators,
    claims_of_comments_are_not_believed => tenant_and_priority_of_a_comment_are_not_believed,
    a_given_partition_is_the_daemons => jobs_of_a_given_partition_are_taken_and_holds_of_users_stay,
}

/// A shell command on `gpus` accelerators in `directory`, which is not tried again.
fn shell(directory: &Path, name: &str, gpus: u32, command: &str) -> Submission {
    let request = JobRequest { name: name.into(), gpus, ..JobRequest::default() };
    let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::from_millis(1000) } };
    Submission {
        environment: [("DIR".to_string(), directory.display().to_string())].into(),
        directory: Some(directory.into()),
        grace_s: 5,
        retry: RetryBudget { failures: 0, ..RetryBudget::default() },
        ..Submission::new(spec, ["/bin/sh", "-c", command].map(Into::into).into())
    }
}

fn place(name: &str, key: &str, starts: u32, placement: Vec<OnNode>) -> Order {
    Order::named(name, key, starts, EngineAction::Place { placement, share: None })
}

/// Applies an order and waits until its job is over.
async fn run_to_its_end(engine: &mut SlurmEngine, order: &Order) -> JobPhase {
    let began = Instant::now();
    loop {
        let seen = engine.snapshot().await.unwrap();
        let seen = job(&seen, &order.job);
        if seen.phase.is_over() && seen.starts > order.starts {
            return seen.phase;
        }
        engine.apply(std::slice::from_ref(order)).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{seen:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Prints the variables of the protocol, one file for each node.
const PRINT: &str = "env | grep -E '^(SCHED_|NODE_RANK|NNODES|NPROC_|FIRST_RANK|WORLD_|MASTER_|TORCHELASTIC_|ADAPTDL_|CUDA_)' \
                     > $DIR/told.$NODE_RANK.new; mv $DIR/told.$NODE_RANK.new $DIR/told.$NODE_RANK; sleep 0.5";

/// Variables that a node was told, without those that one engine alone tells. Those that name the job
/// or a way to it are only there.
fn told(directory: &Path, rank: usize) -> BTreeMap<String, String> {
    let began = Instant::now();
    let path = directory.join(format!("told.{rank}"));
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} is never written", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = std::fs::read_to_string(path).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| {
        let value = match name {
            "CUDA_VISIBLE_DEVICES" => value.split(',').count().to_string(),
            "SCHED_JOB_ID"
            | "SCHED_FENCE"
            | "MASTER_PORT"
            | "ADAPTDL_MASTER_PORT"
            | "TORCHELASTIC_RUN_ID"
            | "ADAPTDL_JOB_ID" => "told".to_string(),
            _ => value.to_string(),
        };
        (name.to_string(), value)
    });
    let alone = ["SCHED_SOCKET", "SCHED_URL", "ADAPTDL_SUPERVISOR_URL", "SCHED_GPUS", "CUDA_MPS_PIPE_DIRECTORY"];
    pairs.filter(|(name, _)| !alone.contains(&name.as_str())).collect()
}

/// One program, unevenly on two nodes, by both engines.
fn nodes_are_told_as_agents_tell_them(site: &mut Site) {
    let directory = site.directory.path().join("slurm-told");
    let shared = site.directory.path().join("shared");
    let uneven = || vec![on("n0", 2), on("n1", 1)];
    std::fs::create_dir_all(&directory).unwrap();
    let job =
        |directory: &Path| Submission { checkpoint_dir: Some(shared.clone()), ..shell(directory, "told", 3, PRINT) };
    runtime().block_on(async {
        let key = site.engine.submit(&job(&directory)).await.unwrap();
        let phase = run_to_its_end(&mut site.engine, &place("told", &key, 0, uneven())).await;
        assert_eq!(phase, JobPhase::Done);
    });
    let ports: Vec<String> = (0..2)
        .map(|rank| std::fs::read_to_string(directory.join(format!("told.{rank}"))).unwrap())
        .map(|text| text.lines().find(|line| line.starts_with("MASTER_PORT=")).unwrap().to_string())
        .collect();
    assert_eq!(ports[0], ports[1], "both nodes meet on one port");

    let nodes = agents::Site::new(&["n0", "n1"], Fencing::Keep);
    let by_agents = nodes.shared.path().to_path_buf();
    runtime().block_on(async {
        let running = nodes.agents().await;
        let mut engine = nodes.engine(&running).await;
        let key = engine.submit(&job(&by_agents)).await.unwrap();
        agents::carry_out(&mut engine, &place("told", &key, 0, uneven())).await;
        let began = Instant::now();
        while !(0..2).all(|rank| by_agents.join(format!("told.{rank}")).exists()) {
            engine.snapshot().await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(60), "agents never run it");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    for rank in 0..2 {
        let (slurm, agents) = (told(&directory, rank), told(&by_agents, rank));
        assert_eq!(slurm, agents, "node {rank}");
        assert_eq!(slurm["FIRST_RANK"], ["0", "2"][rank]);
    }
}

/// One node fails, and the other one is told to stop and gives way: that is a failure, not a way given.
fn the_failure_of_one_node_counts(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let command = "trap 'exit 143' TERM; [ $NODE_RANK -eq 1 ] && sleep 1 && exit 2; while :; do sleep 0.1; done";
    runtime().block_on(async {
        let key = site.engine.submit(&shell(&directory, "fails", 2, command)).await.unwrap();
        let order = place("fails", &key, 0, vec![on("n2", 1), on("n3", 1)]);
        assert_eq!(run_to_its_end(&mut site.engine, &order).await, JobPhase::Failed);
        let seen = site.engine.snapshot().await.unwrap();
        assert_eq!(job(&seen, &key).failures, 1);
        let told = site.cluster.ask("scontrol", &["show", "job", &key]);
        assert!(told.contains("ExitCode=2:0"), "{told}");
    });
}

/// A daemon with a secret in its environment submits a job.
#[test]
#[ignore = "a part of the scenario below"]
fn submits() {
    let directory = std::path::PathBuf::from(std::env::var("GOODPUT_SUBMITS").unwrap());
    let conf: goodput_configs::live::deployment::Deployment =
        goodput_configs::reader::read(&directory.join("submits.toml"), &[]).unwrap().0;
    let EngineConfig::Slurm(slurm) = &conf.engine else { panic!("it drives Slurm") };
    let mut engine = SlurmEngine::new(slurm, key(&directory));
    let command = "env > $DIR/env.new; mv $DIR/env.new $DIR/env";
    let key = runtime().block_on(engine.submit(&shell(&directory, "env", 1, command))).unwrap();
    std::fs::write(directory.join("env.key"), key).unwrap();
}

fn the_environment_of_the_daemon_stays_with_it(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let settings = settings(site, &directory, "");
    std::fs::write(directory.join("submits.toml"), toml::to_string(&settings).unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["slurm_protocol::submits", "--exact", "--ignored"]).stdout(Stdio::null());
    command.env("GOODPUT_SUBMITS", &directory).env("SECRET_OF_DAEMON", "hunter2").env("USER", "root");
    assert!(command.status().unwrap().success());
    let key = std::fs::read_to_string(directory.join("env.key")).unwrap();
    let phase = runtime().block_on(run_to_its_end(&mut site.engine, &place("env", &key, 0, vec![on("n0", 1)])));
    assert_eq!(phase, JobPhase::Done);
    let told = std::fs::read_to_string(directory.join("env")).unwrap();
    for name in ["hunter2", "GOODPUT_SUBMITS", "SLURM_JWT", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"] {
        assert!(!told.contains(name), "{name}: {told}");
    }
    for name in ["HOME=", "PATH=", "USER=", "DIR=", "WORLD_SIZE=1"] {
        assert!(told.lines().any(|line| line.starts_with(name)), "{name}: {told}");
    }
}

/// slurmctld may forget that a job has ended, and start it again.
fn a_job_that_ended_well_is_not_run_again(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let marked = Submission {
        checkpoint_dir: Some(directory.join("marked")),
        ..shell(&directory, "once", 1, "echo run >> $DIR/once")
    };
    runtime().block_on(async {
        let key = site.engine.submit(&marked).await.unwrap();
        let first = place("first", &key, 0, vec![on("n0", 1)]);
        assert_eq!(run_to_its_end(&mut site.engine, &first).await, JobPhase::Done);
        site.cluster.ask("scontrol", &["requeuehold", &key]);
        let began = Instant::now();
        while job(&site.engine.snapshot().await.unwrap(), &key).phase != JobPhase::Held {
            assert!(began.elapsed() < Duration::from_secs(60), "it is never back");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let again = place("again", &key, 1, vec![on("n0", 1)]);
        assert_eq!(run_to_its_end(&mut site.engine, &again).await, JobPhase::Done);
    });
    assert_eq!(std::fs::read_to_string(directory.join("once")).unwrap(), "run\n");
}

/// `--array=0-19`: each task is placed for itself, on all nodes and at once.
fn tasks_of_an_array_are_placed(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--array=0-19", "--gpus=1"];
    let array = site.cluster.ask("sbatch", &[&job[..], &["--wrap=sleep 300"]].concat()).trim().to_string();
    let limited = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--array=0-3%2", "--gpus=1"];
    let limited = site.cluster.ask("sbatch", &[&limited[..], &["--wrap=sleep 300"]].concat()).trim().to_string();
    let mut daemon = slurm_site::open(site, settings(site, &directory, ""));
    let runtime = runtime();
    let running = |array: &str| {
        let told = site.cluster.ask("squeue", &["-h", "-r", "-t", "R", "-o", "%i"]);
        told.lines().filter(|id| id.starts_with(&format!("{array}_"))).count()
    };
    let began = Instant::now();
    while running(&array) < 20 || running(&limited) < 2 {
        runtime.block_on(daemon.cycle()).unwrap();
        let queue = daemon.status().lock().unwrap().queue.clone();
        assert!(began.elapsed() < Duration::from_secs(90), "{queue:?}");
        std::thread::sleep(Duration::from_millis(150));
    }
    runtime.block_on(daemon.cycle()).unwrap();
    let status = daemon.status();
    let status = status.lock().unwrap();
    let row = |key: String| {
        let row = status.queue.iter().find(|row| row.key == key);
        row.unwrap_or_else(|| panic!("{key} is not shown: {:?}", status.queue))
    };
    for task in 0..20 {
        let row = row(format!("{array}_{task}"));
        assert_eq!((row.phase.as_str(), row.placement.iter().map(|on| on.gpus).sum()), ("running", 1), "{row:?}");
    }
    let waiting = row(format!("{limited}_3"));
    assert_eq!((waiting.phase.as_str(), waiting.reason.as_str()), ("held", "hands-off"), "{waiting:?}");
    assert_eq!(running(&limited), 2, "its user allowed two at once");
}

/// Processors and memory are those asked for each accelerator, also after a resize onto two nodes.
fn resources_follow_the_accelerators(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let resources = JobResources {
        cpus_per_gpu: Some(3),
        memory_per_gpu_mib: Some(2000),
        time_limit_mins: Some(90),
        partition: Some("train".into()),
        ..JobResources::default()
    };
    let asked =
        Submission { resources, ..shell(&directory, "asks", 2, "trap 'exit 143' TERM; while :; do sleep 0.1; done") };
    runtime().block_on(async {
        let key = site.engine.submit(&asked).await.unwrap();
        let told = || site.cluster.ask("scontrol", &["show", "job", &key]);
        carry_out(&mut site.engine, &place("asks", &key, 0, vec![on("n0", 2)])).await;
        assert!(told().contains("NumCPUs=6 ") && told().contains("TimeLimit=01:30:00"), "{}", told());
        assert!(told().contains("cpu=6,mem=4000M"), "{}", told());
        let uneven = EngineAction::Resize { placement: vec![on("n1", 3), on("n2", 1)], grace_s: 5 };
        carry_out(&mut site.engine, &Order::named("more", &key, 1, uneven)).await;
        assert!(told().contains("NumCPUs=12 ") && told().contains("cpu=12,mem=8000M"), "{}", told());
    });
}

/// A job that does not ask for processors and memory gets an eighth of a node of eight accelerators for each. A key of
/// the deployment overrides that, and 0 leaves the choice to Slurm.
fn who_does_not_say_gets_a_part_of_the_node(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let sleeps = |name: &str, gpus| shell(&directory, name, gpus, "trap 'exit 143' TERM; while :; do sleep 0.1; done");
    let told = |site: &Site, key: &str| site.cluster.ask("scontrol", &["show", "job", key]);
    runtime().block_on(async {
        // The engine knows the nodes once it has looked.
        site.engine.snapshot().await.unwrap();
        let key = site.engine.submit(&sleeps("silent", 2)).await.unwrap();
        carry_out(&mut site.engine, &place("silent", &key, 0, vec![on("n0", 2)])).await;
        assert!(told(site, &key).contains("cpu=16,mem=125G"), "{}", told(site, &key));
        let uneven = EngineAction::Resize { placement: vec![on("n1", 3), on("n2", 1)], grace_s: 5 };
        carry_out(&mut site.engine, &Order::named("more", &key, 1, uneven)).await;
        assert!(told(site, &key).contains("cpu=32,mem=250G"), "{}", told(site, &key));
        // A whole node is filled by jobs that do not say.
        for (name, gpus) in [("five", 5), ("three", 3)] {
            let key = site.engine.submit(&sleeps(name, gpus)).await.unwrap();
            carry_out(&mut site.engine, &place(name, &key, 0, vec![on("n3", gpus)])).await;
        }
        let mut settings = site.cluster.settings();
        (settings.cpus_per_gpu, settings.memory_per_gpu_mib) = (Some(3), Some(0));
        let mut other = SlurmEngine::new(&settings, slurm_site::key(&directory));
        other.snapshot().await.unwrap();
        let keys = other.submit(&sleeps("keys", 2)).await.unwrap();
        carry_out(&mut other, &place("keys", &keys, 0, vec![on("n0", 2)])).await;
        assert!(told(site, &keys).contains("cpu=6,mem=6000M"), "{}", told(site, &keys));
    });
}

/// Tenant, priority and time of submission are the account's and the daemon's word, and no user's.
fn claims_of_comments_are_not_believed(site: &mut Site) {
    let forged = "--comment=goodput;tenant=rich;priority=2000000000;submit_ms=1;max=2";
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--gpus=1", "--account=poor", forged, "--wrap=sleep 1"];
    let key = site.cluster.ask("sbatch", &job).trim().to_string();
    let directory = site.directory.path().to_path_buf();
    runtime().block_on(async {
        let honest = Submission { tenant: "rich".into(), ..shell(&directory, "honest", 1, "true") };
        let honest = site.engine.submit(&honest).await.unwrap();
        let seen = site.engine.snapshot().await.unwrap();
        let forged = slurm_site::job(&seen, &key);
        assert_eq!((forged.tenant.as_str(), forged.spec.request.priority), ("poor", 0));
        assert!(forged.spec.request.submit > SimTime::from_millis(1_000_000));
        assert_eq!(forged.spec.request.max_gpus(), 2, "its own sizes are its own");
        assert_eq!(slurm_site::job(&seen, &honest).tenant, "rich");
    });
}

/// Plain jobs of a partition that is given as a whole: what waits is held and then placed, and what its
/// user holds stays held.
fn a_given_partition_is_the_daemons(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let plain = ["--parsable", "--chdir=/tmp", "--requeue", "--nodes=1", "--gpus=8", "--wrap=sleep 300"];
    let sbatch = |more: &[&str]| site.cluster.ask("sbatch", &[&plain[..], more].concat()).trim().to_string();
    let running: Vec<String> = (0..4).map(|_| sbatch(&[])).collect();
    let told = |key: &str| site.cluster.ask("scontrol", &["show", "job", key]);
    // Slurm starts them before there is a daemon, which would hold one that still waits and start another one.
    let all_run = || running.iter().all(|key| told(key).contains("JobState=RUNNING"));
    let began = Instant::now();
    while !all_run() {
        assert!(began.elapsed() < Duration::from_secs(90), "{running:?} do not run");
        std::thread::sleep(Duration::from_millis(150));
    }
    let (waits, held) = (sbatch(&["--comment=mine"]), sbatch(&["--hold"]));
    let mut settings = settings(site, &directory, "");
    let EngineConfig::Slurm(slurm) = &mut settings.engine else { panic!("it drives Slurm") };
    slurm.given_partitions = vec!["train".into()];
    let mut daemon = slurm_site::open(site, settings);
    let runtime = runtime();
    let mut until = |wanted: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !wanted() {
            runtime.block_on(daemon.cycle()).unwrap();
            assert!(began.elapsed() < Duration::from_secs(90), "{} {}", told(&waits), told(&held));
            std::thread::sleep(Duration::from_millis(150));
        }
    };
    let taken = |key: &str| told(key).contains("AdminComment=goodput;submit_ms=");
    until(&|| taken(&waits) && told(&waits).contains("Reason=JobHeldUser"));
    assert!(told(&waits).contains("Comment=mine"), "{}", told(&waits));
    site.cluster.ask("scancel", &[&running[0]]);
    until(&|| told(&waits).contains("JobState=RUNNING"));
    assert!(!taken(&held) && told(&held).contains("Reason=JobHeldUser"), "{}", told(&held));
    assert!(running[1..].iter().all(|key| told(key).contains("Restarts=0")), "nothing was preempted");
}
