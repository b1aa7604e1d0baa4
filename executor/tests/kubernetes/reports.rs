//! Reports of jobs, and a trained policy that resizes a job by what it sees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use goodput_env::job::Work;
use goodput_env::model::BatchLimits;
use goodput_env::time::SimTime;
use goodput_executor::daemon::interface::api::{Api, router};
use goodput_executor::daemon::interface::health::DaemonHealth;
use goodput_executor::daemon::interface::metrics::Metrics;
use goodput_executor::daemon::interface::status::QueueRow;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, JobSeen, Order, Submission};
use goodput_executor::http::{self, Door};
use goodput_executor::job::adaptdl::Supervisor;
use goodput_executor::job::{Fence, JobReport, Refusal};

use super::drills::{open, settings};
use super::{Site, buildable, runtime, until};

/// Hints as AdaptDL sends them.
const HINTS: &str = r#"{"initBatchSize":256,"maxBatchSize":4096,"localBszBounds":[32,160],"perfParams":{"alpha_c":0.1,
"beta_c":0.002,"alpha_n":0.05,"beta_n":0.001,"alpha_r":0.02,"beta_r":0.0005,"gamma":1.6}}"#;

#[test]
fn a_job_reports_with_its_own_token_and_no_other() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("reports").await;
        let url = "http://goodput.test:7070".to_owned();
        site.engine =
            KubernetesEngine::new(&KubernetesConfig { report_url: Some(url.clone()), ..site.settings.clone() });
        let told = site.directory.path().join("told");
        let command = format!("env > {0}.new; mv {0}.new {0}; sleep 600", told.display());
        let quiet = site.submission("talks", 4, 4, 600);
        let quiet = Submission { command: vec!["/bin/sh".into(), "-c".into(), command], ..quiet };
        let key = site.engine.submit(&quiet).await.unwrap();
        let placement = vec![site.on(1, 4)];
        site.carry_out(&Order::named("p1", &key, 0, EngineAction::Place { placement, share: None })).await;
        until("the environment", || told.exists()).await;
        let text = std::fs::read_to_string(&told).unwrap();
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
        assert_eq!((of("SCHED_URL"), of("SCHED_JOB_ID"), of("SCHED_ATTEMPT")), (url.as_str(), key.as_str(), "0"));
        let mailbox = site.engine.mailbox().unwrap();
        let line = |fence: &Fence| {
            let report = JobReport::new(fence.clone(), 0, 3);
            serde_json::to_vec(&JobReport { step_time_s: Some(0.5), batch_size: Some(64), ..report }).unwrap()
        };
        let fence = Fence::try_from(of("SCHED_FENCE").to_owned()).unwrap();
        assert_eq!(mailbox.take(&key, &line(&Fence::from_text("another's")), 0), Err(Refusal::OldFence));
        mailbox.take(&key, &line(&fence), 0).unwrap();
        let said = site.engine.snapshot().await.unwrap().said;
        assert_eq!((said.len(), said[0].job.as_str(), said[0].accelerator.as_str()), (1, key.as_str(), "a100"));
        // What AdaptDL asks is below an address with the secret of the attempt.
        let secret = of("ADAPTDL_SUPERVISOR_URL").strip_prefix(&format!("{url}/adaptdl/")).unwrap().to_owned();
        let (token, attempt) = secret.split_once('.').unwrap();
        assert_eq!((token, attempt), (fence.supervisor_key().as_str(), "0"), "the token does not follow from it");
        let api = Api {
            health: Arc::new(DaemonHealth::new(Duration::from_secs(60))),
            status: Arc::default(),
            metrics: Arc::new(Metrics::new()),
            calls: tokio::sync::mpsc::channel(1).0,
            tokens: [].into(),
            mailbox: Some(mailbox.clone()),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(http::serve(listener, Door::Plain, router(api)));
        let call = |method: &'static str, secret: &str, path: &str| {
            let url = format!("{root}/adaptdl/{secret}/{path}");
            tokio::task::spawn_blocking(move || {
                let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
                let request = ureq::http::Request::builder().method(method).uri(url);
                let mut answer = agent.run(request.body(HINTS).unwrap()).unwrap();
                (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
            })
        };
        let adaptdl_job = of("ADAPTDL_JOB_ID");
        let (hints, discover) = (format!("hints/{adaptdl_job}"), format!("discover/{adaptdl_job}"));
        let names = |_: &_| mailbox.addresses(&secret, adaptdl_job.strip_prefix("goodput/").unwrap(), 0).is_some();
        site.snapshot_where("the addresses of the pods", names).await;
        assert_eq!(call("PUT", &secret, &hints).await.unwrap().0, 200);
        let next = format!("{token}.1");
        for (wrong, path) in [
            (next.as_str(), hints.as_str()),
            ("x.0", &hints),
            (&format!("{}.0", fence.as_str()), &hints),
            (&secret, "hints/goodput/other"),
        ] {
            assert_eq!(call("PUT", wrong, path).await.unwrap().0, 404, "{wrong} {path}");
        }
        let answer = call("GET", &secret, &format!("{discover}/0")).await.unwrap();
        assert_eq!(answer, (200, r#"["127.0.0.1","127.0.0.1","127.0.0.1","127.0.0.1"]"#.to_owned()));
        assert_eq!(call("GET", &next, &format!("{discover}/1?timeout=60")).await.unwrap().0, 408, "a stranger");
        let seen = site.engine.snapshot().await.unwrap();
        let sizes: Vec<u32> = seen.said.iter().filter_map(|said| Some(said.measured.sample?.atomic)).collect();
        assert_eq!((sizes, seen.jobs[0].batch), (vec![64, 128], BatchLimits::new(256, 4096, 32, 160).ok()));
        // With the attempt its word ends.
        site.carry_out(&Order::named("p2", &key, 1, EngineAction::Stop { grace_s: 1 })).await;
        assert_eq!(mailbox.take(&key, &line(&fence), 5000), Err(Refusal::NotSeen));
        assert_eq!(call("PUT", &secret, &hints).await.unwrap().0, 404, "that attempt is over");
        server.abort();
    });
}

/// A bundle of the zoo drives the cluster; its clock runs sixty times as fast.
#[test]
fn a_learned_resize_is_seen_and_explained() {
    if !buildable() {
        return;
    }
    runtime().block_on(async {
        let mut site = Site::start("learned").await;
        let mut settings = settings(&site, "bundle = \"zoo:elastic\"");
        (settings.cycle.round_secs, settings.cycle.speedup) = (60.0, 60.0);
        let mut daemon = open(&settings);
        let mut keys = Vec::new();
        let began = Instant::now();
        let row = loop {
            // One job has the cluster for a while, and then shares it.
            let due = if began.elapsed() < Duration::from_secs(8) { 1 } else { 10 };
            while keys.len() < due {
                let job = site.submission(&format!("job-{}", keys.len()), 4, 16, 600);
                let mut job = Submission { grace_s: 2, ..job };
                job.spec.work = Work::Fixed { duration: SimTime::from_secs(3600) };
                keys.push(site.engine.submit(&job).await.unwrap());
            }
            let _ = daemon.cycle().await;
            let status = daemon.status().lock().unwrap().clone();
            if status.term.is_some() {
                assert_eq!((status.policy.as_str(), status.fallback.as_str()), ("zoo:elastic", ""));
            }
            // A job makes way for others: the reason is one of several jobs, and not of a job that is alone.
            let makes_way = |row: &&QueueRow| {
                let at_ms = row.change.as_ref().map(|change| change.at_ms);
                row.resize.as_ref().is_some_and(|resize| resize.to < resize.from && Some(resize.at_ms) == at_ms)
            };
            if let Some(row) = status.queue.iter().find(makes_way) {
                break row.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(120), "no job makes way: {:#?}", status.queue);
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let resized = row.key.clone();
        // The job goes on with the size that the explanation names.
        let (from, to) = row.resize.as_ref().map(|resize| (resize.from, resize.to)).unwrap();
        let has = |seen: &goodput_executor::engine::ClusterSnapshot, wanted: u32| {
            let placement =
                |job: &JobSeen| job.attempt.iter().flat_map(|one| &one.placement).map(|on| on.gpus).sum::<u32>();
            seen.jobs.iter().any(|job| job.key == resized && job.phase == JobPhase::Running && placement(job) == wanted)
        };
        let mut to = to;
        while !has(&site.engine.snapshot().await.unwrap(), to) {
            let _ = daemon.cycle().await;
            // The policy may resize the job again before the next snapshot.
            let status = daemon.status().lock().unwrap().clone();
            let last = status.queue.iter().find(|row| row.key == resized).and_then(|row| row.resize.as_ref());
            to = last.map_or(to, |resize| resize.to);
            assert!(began.elapsed() < Duration::from_secs(150), "it never runs on {to} in place of {from}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let audit = std::fs::read_to_string(site.directory.path().join("state/audit.jsonl")).unwrap();
        let orders: Vec<&str> = audit.lines().filter(|line| line.contains(&resized)).collect();
        assert!(orders.iter().any(|line| line.contains("resize")), "{orders:#?}");
        let resize = row.resize.as_ref().unwrap();
        assert!(!resize.in_place && resize.words().contains("with a restart"), "{}", resize.words());
        let why = row.change.as_ref().unwrap();
        assert!(why.parts.iter().any(|part| part.contribution.abs() > 1e-6), "it differs from the usual job: {why:?}");
        crate::explained::the_bundle_says_why("Kubernetes", &row, "zoo:elastic");
    });
}
