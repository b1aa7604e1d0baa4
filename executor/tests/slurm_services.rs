//! Services on a private Slurm: replicas are jobs in a reservation, and a training job that runs
//! there has borrowed its node.
//!
//! Where Slurm is not installed the test says so and passes, but where `CI` is set it fails.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::replica::{CLIENTS, REPLICA, ready};
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::cluster::Pool;
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::interface::api;
use goodput_executor::daemon::interface::status::DaemonStatus;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_executor::engine::{DeclaredService, ReplicaStage};
use goodput_testkit::slurm::{PrivateCluster, missing};

fn settings(cluster: &PrivateCluster, directory: &Path, port: u16) -> Deployment {
    let place = |name: &str| directory.join(name).display().to_string();
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\nconf = {:?}\nreservation = \"web\"\nreport_url = \"http://127.0.0.1:{port}\"\n\
         [policy]\nname = \"fifo+reactive\"\n[reliance]\ntimeout_ms = 5000\n[state]\ndirectory = {:?}\nname = \"d1\"\n\
         [api]\nlisten = \"127.0.0.1:{port}\"\n[cycle]\npoll_secs = 0.2\nround_secs = 60\nspeedup = 60\n\
         [[services]]\nname = \"web\"\ncommand = [\"python3\", \"-c\", {REPLICA:?}]\n\
         environment = {{ LOAD = {:?}, PYTHONPATH = {CLIENTS:?}, PYTHONDONTWRITEBYTECODE = \"1\" }}\n\
         directory = {:?}\nprofiles = {{ a100 = [[1, 10.0]] }}\nslo = {{ latency_ms = 100 }}\ncold_start_secs = 300\n\
         max_replicas = 3\n",
        cluster.settings().conf.unwrap().display().to_string(),
        place("state"),
        place("load"),
        directory.display().to_string(),
    );
    reader::parse("live.toml", &text).unwrap()
}

fn open(settings: &Deployment) -> Daemon<SlurmEngine> {
    let EngineConfig::Slurm(slurm) = &settings.engine else { panic!("it drives Slurm") };
    let key = FactsKey::in_directory(&settings.state.directory).unwrap();
    let engine = SlurmEngine::new(slurm, key).with_services(DeclaredService::of(settings).unwrap(), "web");
    daemon::open(engine, settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap()
}

/// A daemon in this process that serves its interface, for replicas to report to.
struct Served {
    status: Arc<std::sync::Mutex<DaemonStatus>>,
    stop: tokio::sync::oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Daemon<SlurmEngine>>,
}

impl Served {
    fn start(runtime: &tokio::runtime::Runtime, settings: &Deployment) -> Self {
        let daemon = open(settings);
        let status = daemon.status();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let ended = runtime.spawn(async move { api::run(daemon, stopped).await.unwrap() });
        Self { status, stop, ended }
    }

    fn end(self, runtime: &tokio::runtime::Runtime) {
        self.stop.send(()).unwrap();
        drop(runtime.block_on(self.ended).unwrap());
    }

    fn until(&self, what: &str, wanted: impl Fn(&DaemonStatus) -> bool) -> DaemonStatus {
        let began = Instant::now();
        loop {
            let status = self.status.lock().unwrap().clone();
            if wanted(&status) {
                return status;
            }
            let text = format!("{:?} {:?} {:?}", status.services, status.nodes, status.alerts);
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: {text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn replicas_are_jobs_of_a_reservation_and_what_trains_there_is_a_loan() {
    if let Some(program) = missing() {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed; `cargo xtask test` installs Slurm");
        eprintln!("NOT TESTED: {program} is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start(&directory.path().join("slurm"), 3, 2, "a100", 5).unwrap();
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let users = format!("Users={}", String::from_utf8(user).unwrap().trim());
    let made = ["create", "reservation", "ReservationName=web", "Nodes=n[1-2]", "StartTime=now", "Duration=UNLIMITED"];
    cluster.ask("scontrol", &[made.as_slice(), &[users.as_str()]].concat());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = settings(&cluster, directory.path(), port);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let share = |qps: f64| {
        let new = directory.path().join("load.new");
        std::fs::write(&new, qps.to_string()).unwrap();
        std::fs::rename(new, directory.path().join("load")).unwrap();
    };

    // A training job that the daemon did not start runs in the reservation before the daemon looks. No order
    // could call its node back, so the replica has to start elsewhere.
    let there = ["--reservation=web", "--nodelist=n2", "--gpus=1", "--job-name=borrows", "--wrap=sleep 600"];
    let borrows = cluster.ask("sbatch", &[["--parsable", "--chdir=/tmp"].as_slice(), &there].concat());
    let began = Instant::now();
    while cluster.ask("squeue", &["-h", "-j", borrows.trim(), "-o", "%t"]).trim() != "R" {
        assert!(began.elapsed() < Duration::from_secs(60), "the borrowing job does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let served = Served::start(&runtime, &settings);
    let status = served.until("one replica", |status| {
        status.services.first().is_some_and(|web| web.seen.replicas.len() == 1)
            && status.nodes.iter().any(|node| node.lent)
    });
    let web = &status.services[0].seen;
    assert_eq!((web.replicas[0].node.as_str(), web.rate), ("n1", None), "it has not reported");
    assert!(matches!(web.replicas[0].phase, ReplicaStage::Starting { .. }));
    let pools: Vec<Pool> = status.nodes.iter().map(|node| node.pool).collect();
    assert_eq!(pools, [Pool::Training, Pool::Inference, Pool::Inference]);
    let lent: Vec<&str> = status.nodes.iter().filter(|node| node.lent).map(|node| node.name.as_str()).collect();
    assert_eq!(lent, ["n2"]);
    let keys: Vec<&str> = status.queue.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, [borrows.trim()], "replicas are no training jobs");

    // The load decides about replicas; the node that is lent gets none.
    share(90.0);
    let status = served.until("scales up", |status| ready(&status.services[0].seen) == 2);
    assert!(status.services[0].seen.replicas.iter().all(|replica| replica.node == "n1"), "{:?}", status.services);
    served.until("measures", |status| status.services[0].seen.rate == Some(180.0));
    served.end(&runtime);

    // Another daemon finds the replicas; when the loan ends, the service grows onto the node.
    let replicas = cluster.ask("squeue", &["-h", "-n", "web", "-t", "R", "-o", "%i"]);
    let served = Served::start(&runtime, &settings);
    served.until("taken over", |status| {
        status.services.first().is_some_and(|web| ready(&web.seen) == 2 && web.seen.rate == Some(180.0))
    });
    assert_eq!(cluster.ask("squeue", &["-h", "-n", "web", "-t", "R", "-o", "%i"]), replicas);
    cluster.ask("scancel", &[borrows.trim()]);
    share(100.0);
    served.until("grows", |status| ready(&status.services[0].seen) == 3 && status.nodes.iter().all(|node| !node.lent));
    share(5.0);
    let status = served.until("shrinks", |status| status.services[0].seen.replicas.len() == 1);
    assert_eq!(status.fallback, "", "{:?}", status.alerts);
    served.end(&runtime);
}
