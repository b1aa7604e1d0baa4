//! Drills on a real control plane: the API server, etcd, the followers and the daemon are killed at
//! random while jobs run; no job is lost and none runs twice at one time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::failpoint::PLACES;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{ClusterSnapshot, Engine, EngineAction, Order};
use goodput_testkit::kubelet::{IDLE, SITE};
use goodput_testkit::kubernetes::ControlPlane;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use rand::RngExt;

use super::{Site, buildable, free, runtime, shared, until};

/// A deployment that acts on the site at once and often.
pub(super) fn settings(site: &Site, policy: &str) -> Deployment {
    let text = format!(
        "mode = \"act\"\n[engine.kubernetes]\nkubeconfig = {:?}\nimage = \"job:test\"\npatience_ms = 3000\n\
         namespace = {name:?}\nnamespaces = [{name:?}]\nnodes = {{ {SITE:?} = {name:?} }}\n[policy]\n{policy}\n[reliance]\ntimeout_ms = 5000\nfallback = \"fifo\"\n\
         [state]\ndirectory = {:?}\nname = \"drill\"\n[api]\nlisten = \"\"\n[cycle]\npoll_secs = 0.2\nround_secs = 5\n\
         order_timeout_secs = 20\n[guard]\nmin_run_secs = 1\npreempt_every_secs = 2\npreempt_percent = 100\n",
        site.settings.kubeconfig.as_ref().unwrap().display().to_string(),
        site.directory.path().join("state").display().to_string(),
        name = site.name,
    );
    reader::parse("drill.toml", &text).unwrap()
}

fn engine_of(settings: &Deployment) -> KubernetesEngine {
    let EngineConfig::Kubernetes(kubernetes) = &settings.engine else { panic!("it drives Kubernetes") };
    KubernetesEngine::new(kubernetes)
}

pub(super) fn open(settings: &Deployment) -> Daemon<KubernetesEngine> {
    daemon::open(engine_of(settings), settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap()
}

async fn submit_all(site: &mut Site, count: u32) -> Vec<String> {
    let mut random = rng(1, Stream::Workload);
    let mut keys = Vec::new();
    for index in 0..count {
        let (gpus, ticks) = (random.random_range(1..=8), random.random_range(10..40));
        let max = if random.random_bool(0.3) { 16 } else { gpus };
        let job = site.submission(&format!("job-{index}"), gpus, max, ticks);
        keys.push(site.engine.submit(&job).await.unwrap());
    }
    keys
}

/// Jobs of the site that ended well, by the API server itself.
async fn completed(site: &Site) -> usize {
    let Ok(jobs) = site.api::<Job>().list(&ListParams::default()).await else { return 0 };
    let done = |job: &Job| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    jobs.items.iter().filter(|job| done(job)).count()
}

/// The daemon as a process of its own, to be killed: the drill starts this very test.
#[test]
#[ignore = "a part of the drill below"]
fn child() {
    let directory = PathBuf::from(std::env::var("GOODPUT_DRILL").unwrap());
    let settings = reader::read::<Deployment>(&directory.join("drill.toml"), &[]).unwrap().0;
    let (_stop, stopped) = tokio::sync::oneshot::channel();
    runtime().block_on(async { daemon::interface::api::run(open(&settings), stopped).await }).unwrap();
}

fn start_child(directory: &Path, failpoint: &str) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["kubernetes::drills::child", "--exact", "--ignored", "--nocapture"]);
    command.env("GOODPUT_DRILL", directory).env("GOODPUT_FAILPOINT", failpoint);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Daemon, API server, etcd, and the job controller with kube-scheduler are killed by SIGKILL at
/// random. `GOODPUT_KILLS` says how often; 10 in the suite.
#[test]
fn whatever_is_killed_no_job_is_lost_and_none_runs_twice() {
    if !buildable() {
        return;
    }
    let kills: u32 = std::env::var("GOODPUT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10);
    runtime().block_on(async {
        // A control plane of its own: others could not use this one.
        let home = tempfile::tempdir().unwrap();
        let mut plane = ControlPlane::start(&home.path().join("plane")).unwrap();
        let mut site = Site::of(&plane, "killed", 4, 8).await;
        let keys = submit_all(&mut site, 10 + 2 * kills).await;
        let settings = settings(&site, "name = \"srtf\"");
        let directory = site.directory.path().to_path_buf();
        std::fs::write(directory.join("drill.toml"), toml::to_string(&settings).unwrap()).unwrap();
        let mut random = rng(2, Stream::Faults);
        let mut killed = [0; 4];
        let mut child = start_child(&directory, "");
        for _ in 0..kills {
            let which = random.random_range(0..4);
            killed[which] += 1;
            tokio::time::sleep(Duration::from_millis(random.random_range(200..2500))).await;
            match which {
                0 => {
                    // The daemon ends itself at a place of its cycle; where it does not come by, it is killed.
                    let _ = child.kill();
                    let _ = child.wait();
                    let place = PLACES[random.random_range(0..PLACES.len())];
                    child = start_child(&directory, &format!("{place}:{}", random.random_range(1..4)));
                    let born = Instant::now();
                    while child.try_wait().unwrap().is_none() && born.elapsed() < Duration::from_secs(5) {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    let _ = child.kill();
                    let _ = child.wait();
                    child = start_child(&directory, "");
                }
                1 => {
                    plane.kill_api_server();
                    tokio::time::sleep(Duration::from_millis(random.random_range(0..1500))).await;
                    plane.start_api_server().unwrap();
                    plane.wait_until_ready().unwrap();
                }
                2 => {
                    plane.restart_etcd().unwrap();
                    plane.wait_until_ready().unwrap();
                }
                _ => plane.restart_followers().unwrap(),
            }
        }
        let began = Instant::now();
        loop {
            if child.try_wait().unwrap().is_some() {
                child = start_child(&directory, "");
            }
            if keys.iter().all(|key| !site.said(key, "end").is_empty()) && completed(&site).await == keys.len() {
                break;
            }
            let left = || keys.iter().filter(|key| site.said(key, "end").is_empty()).count();
            assert!(began.elapsed() < Duration::from_secs(240), "{} of {} jobs have not ended", left(), keys.len());
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let _ = child.kill();
        let _ = child.wait();
        let history = site.kubelets.history();
        for key in keys.iter().filter(|key| site.said(key, "end").len() > 1) {
            let name = key.split('.').nth(1).unwrap();
            let runs: Vec<_> = history.runs.iter().filter(|run| run.pod.starts_with(name)).collect();
            // The job controller does not count a pod that it has told to go, also where the pod ends well after that,
            // or had ended well and its end was not reported yet.
            let counted = runs.iter().position(|run| run.index == 0 && run.code == Some(0) && !run.told);
            let last = runs.iter().rposition(|run| run.index == 0);
            assert!(counted.is_none() || counted == last, "{key} had ended and ran again: {runs:#?}");
        }
        assert_eq!(history.doubled(), [], "a pod ran twice at one time");
        assert!(history.crowded.is_empty(), "{:?}", history.crowded);
        let [daemons, api_servers, etcds, followers] = killed;
        eprintln!(
            "killed: daemon {daemons}, API server {api_servers}, etcd {etcds}, job controller and kube-scheduler {followers}; \
             {} jobs, {} pods run, 0 lost, 0 doubled",
            keys.len(),
            history.runs.len()
        );
    });
}

/// Writers that change the jobs all the time make most versions old before the daemon's change
/// arrives.
#[test]
fn a_storm_of_conflicts_delays_orders_and_doubles_nothing() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("storm").await;
        let keys = submit_all(&mut site, 12).await;
        let names: Vec<String> = keys.iter().map(|key| key.split('.').nth(1).unwrap().to_owned()).collect();
        let jobs = site.api::<Job>();
        let storm = tokio::spawn(async move {
            let mut written = 0;
            while written < 600 {
                for name in &names {
                    let patch = serde_json::json!({ "metadata": { "annotations": { "storm": written.to_string() } } });
                    let patch = kube::api::Patch::Merge(patch);
                    written += u32::from(jobs.patch(name, &kube::api::PatchParams::default(), &patch).await.is_ok());
                }
            }
        });
        let mut daemon = open(&settings(&site, "name = \"fifo\""));
        let began = Instant::now();
        loop {
            let _ = daemon.cycle().await;
            if completed(&site).await == keys.len() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{:#?}", site.engine.snapshot().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        storm.await.unwrap();
        let history = site.kubelets.history();
        assert_eq!((history.doubled(), history.crowded.len()), (Vec::new(), 0));
    });
}

/// 500 pods are bound to the nodes that orders name, in one go.
#[test]
fn five_hundred_pods_come_to_the_nodes_that_are_named() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::of(shared(), "wide", 75, 8).await;
        let jobs = site.api::<Job>();
        for index in 0..50 {
            let job = serde_json::json!({
                "metadata": { "name": format!("wide-{index}"), "labels": { "goodput.dev/managed": "true" },
                    "annotations": { "goodput.dev/gpus-per-pod": "1" } },
                "spec": { "suspend": true, "completionMode": "Indexed", "completions": 10, "parallelism": 10,
                    "template": { "spec": { "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
                        { "name": "x", "image": IDLE, "resources": { "limits": { "nvidia.com/gpu": "1" } } }
                    ] } } },
            });
            let job = serde_json::from_value(job).unwrap();
            jobs.create(&kube::api::PostParams::default(), &job).await.unwrap();
        }
        let all = |seen: &ClusterSnapshot| seen.jobs.len() == 50 && seen.nodes.len() == 75;
        let seen = site.snapshot_where("50 jobs on 75 nodes", all).await;
        // Each job on three nodes: ten pods of one accelerator.
        let order = |(at, job): (u32, &goodput_executor::engine::JobSeen)| {
            let nodes = [(at, 4), ((at + 1) % 50, 3), (50 + at % 25, 3)];
            let placement = nodes.map(|(node, gpus)| site.on(node, gpus)).to_vec();
            Order::named("wide", &job.key, 0, EngineAction::Place { placement, share: None })
        };
        let orders: Vec<Order> = (0..).zip(&seen.jobs).map(order).collect();
        let wanted: u32 = orders.iter().flat_map(|order| order.action.placement().unwrap()).map(|on| on.gpus).sum();
        let began = Instant::now();
        loop {
            let seen = site.engine.snapshot().await.unwrap();
            let done = orders.iter().filter(|order| {
                site.engine.verify(order, &seen) == goodput_executor::engine::OrderProgress::Done
            });
            if done.count() == orders.len() {
                assert_eq!((wanted, free(&seen).iter().sum::<u32>()), (500, 100));
                break;
            }
            site.engine.apply(&orders).await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(120), "{:?}", free(&seen));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let took = began.elapsed();
        let began = Instant::now();
        let mut looks = 0;
        while began.elapsed() < Duration::from_secs(2) {
            site.engine.snapshot().await.unwrap();
            looks += 1;
        }
        until("the last kubelet", || site.kubelets.history().runs.len() == 500).await;
        let history = site.kubelets.history();
        assert!(history.crowded.is_empty() && history.doubled().is_empty());
        eprintln!(
            "{} pods bound in {took:.1?}; a snapshot takes {:.1} ms; {} MiB resident beside etcd",
            history.runs.len(),
            2000.0 / f64::from(looks),
            shared().resident_kib() / 1024
        );
    });
}
