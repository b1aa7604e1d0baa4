//! The wire to a real API server is cut: what happens meanwhile is learned afterwards, also where the API server has
//! forgotten the version that the engine had seen (410 Gone).
#![allow(clippy::print_stdout, reason = "a test, which prints what it counted")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use goodput_configs::live::engine::KubernetesConfig;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, Order, Submission};
use goodput_testkit::kubernetes::ControlPlane;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, ListParams, WatchEvent, WatchParams};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Site, buildable, job, runtime, until};

/// A wire to the API server that can be cut and mended.
struct Wire {
    near: SocketAddr,
    far: SocketAddr,
    passing: Option<JoinHandle<()>>,
}

impl Wire {
    async fn to(far: SocketAddr) -> Self {
        let near = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let mut wire = Self { near, far, passing: None };
        wire.mend().await;
        wire
    }

    async fn mend(&mut self) {
        let (listener, far) = (TcpListener::bind(self.near).await.unwrap(), self.far);
        self.passing = Some(tokio::spawn(async move {
            let mut wires = tokio::task::JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                wires.spawn(async move {
                    let mut far = TcpStream::connect(far).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        }));
    }

    /// Ends every connection, and takes no new one.
    async fn cut(&mut self) {
        let passing = self.passing.take().unwrap();
        passing.abort();
        let _ = passing.await;
    }
}

/// Whether the API server has forgotten `version` of the Jobs.
async fn is_gone(jobs: &Api<Job>, version: &str) -> bool {
    let gone = |code: u16| code == 410;
    match jobs.watch(&WatchParams::default().timeout(2), version).await {
        Err(kube::Error::Api(error)) => gone(error.code),
        Err(error) => panic!("{error}"),
        Ok(events) => match Box::pin(events).next().await {
            Some(Ok(WatchEvent::Error(error))) => gone(error.code),
            Some(Err(kube::Error::Api(error))) => gone(error.code),
            _ => false,
        },
    }
}

/// Has etcd drop every revision before `version`.
async fn compact(etcd: String, version: &str) {
    let body = format!(r#"{{"revision":"{version}","physical":true}}"#);
    let call = move || ureq::post(format!("{etcd}/v3/kv/compaction")).send(body).map(|answer| answer.status());
    tokio::task::spawn_blocking(call).await.unwrap().unwrap();
}

/// A job that runs until a file of its name is there.
fn waiting(site: &Site, name: &str) -> Submission {
    let file = site.directory.path().join(format!("{name}.ends"));
    let script = format!(
        "log=$DIR/$SCHED_JOB_ID.log; echo start >> $log; until [ -e {} ]; do sleep 0.05; done; echo end >> $log",
        file.display()
    );
    Submission { command: vec!["/bin/sh".into(), "-c".into(), script], ..site.submission(name, 2, 2, 600) }
}

fn place(site: &Site, key: &str, node: u32) -> Order {
    let action = EngineAction::Place { placement: vec![site.on(node, 2)], share: None };
    Order::named(&format!("place {key}"), key, 0, action)
}

#[test]
fn what_happens_while_the_wire_is_cut_is_learned_also_from_a_server_that_has_forgotten() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        // A control plane of its own: others could not use this one.
        let home = tempfile::tempdir().unwrap();
        let mut plane = ControlPlane::start(&home.path().join("plane")).unwrap();
        let mut site = Site::of(&plane, "gaps", 4, 8).await;
        let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
        let port: u16 = text.split("https://127.0.0.1:").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let mut wire = Wire::to(([127, 0, 0, 1], port).into()).await;
        let file = home.path().join("through-the-wire");
        std::fs::write(&file, text.replace(&format!("127.0.0.1:{port}"), &wire.near.to_string())).unwrap();
        let mut direct = KubernetesEngine::new(&site.settings);
        site.engine = KubernetesEngine::new(&KubernetesConfig { kubeconfig: Some(file), ..site.settings.clone() });
        let jobs = site.api::<Job>();

        let stays = site.engine.submit(&waiting(&site, "stays")).await.unwrap();
        site.phase(&stays, JobPhase::Held).await;
        site.carry_out(&place(&site, &stays, 0)).await;
        let (mut keys, mut unknown) = (vec![stays.clone()], Duration::ZERO);
        for (round, forgets) in [false, true, true].into_iter().enumerate() {
            let name = |what: &str| format!("{what}-{round}");
            let ends = site.engine.submit(&waiting(&site, &name("ends"))).await.unwrap();
            let goes = site.engine.submit(&waiting(&site, &name("goes"))).await.unwrap();
            site.phase(&goes, JobPhase::Held).await;
            site.carry_out(&place(&site, &ends, 1)).await;
            site.begun(&ends, 1).await;
            let version = jobs.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();

            wire.cut().await;
            let cut = Instant::now();
            while site.engine.snapshot().await.is_ok() {
                assert!(cut.elapsed() < Duration::from_secs(60), "a view that is broken is shown");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            // One job ends, one is deleted, and one is handed in.
            std::fs::write(site.directory.path().join(format!("{}.ends", name("ends"))), "").unwrap();
            jobs.delete(goes.split('.').nth(1).unwrap(), &DeleteParams::background()).await.unwrap();
            let comes = direct.submit(&waiting(&site, &name("comes"))).await.unwrap();
            until("the end of a job", || site.said(&ends, "end").len() == 1).await;
            if forgets {
                let newest = jobs.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
                plane.kill_api_server();
                compact(plane.etcd_url(), &newest).await;
                plane.start_api_server().unwrap();
                plane.wait_until_ready().unwrap();
            }
            assert_eq!(is_gone(&jobs, &version).await, forgets, "round {round}");
            wire.mend().await;
            unknown = unknown.max(cut.elapsed());

            let mended = Instant::now();
            let seen = loop {
                let over = |seen: &goodput_executor::engine::ClusterSnapshot| {
                    let phase = |key: &str| seen.jobs.iter().find(|job| job.key == key).map(|job| job.phase);
                    phase(&ends) == Some(JobPhase::Done)
                        && phase(&goes).is_none_or(JobPhase::is_over)
                        && phase(&comes) == Some(JobPhase::Held)
                };
                match site.engine.snapshot().await {
                    Ok(seen) if over(&seen) => break seen,
                    seen => assert!(mended.elapsed() < Duration::from_secs(60), "never learned: {seen:?}"),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            println!(
                "round {round}: forgotten {forgets}, all is known {:?} after the wire is mended",
                mended.elapsed()
            );
            let running = job(&seen, &stays);
            assert_eq!((running.phase, running.starts), (JobPhase::Running, 1), "it was left alone");
            // An order from before the cut that comes again starts nothing.
            for order in [place(&site, &stays, 0), place(&site, &ends, 1)] {
                site.engine.apply(&[order]).await.unwrap();
            }
            site.carry_out(&place(&site, &comes, 2)).await;
            site.begun(&comes, 1).await;
            std::fs::write(site.directory.path().join(format!("{}.ends", name("comes"))), "").unwrap();
            site.phase(&comes, JobPhase::Done).await;
            keys.extend([ends, comes]);
        }
        std::fs::write(site.directory.path().join("stays.ends"), "").unwrap();
        site.phase(&stays, JobPhase::Done).await;
        let history = site.kubelets.history();
        assert_eq!((history.doubled(), history.runs.len()), (vec![], keys.len()), "each job ran once");
        assert!(keys.iter().all(|key| site.said(key, "end").len() == 1), "a job is lost");
        println!("3 gaps of up to {unknown:?}, 2 of them with 410; {} jobs, 0 lost, 0 doubled", keys.len());
    });
}
