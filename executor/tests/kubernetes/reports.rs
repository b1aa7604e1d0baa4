//! Reports of jobs, and a trained policy that resizes a job by what it sees.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use goodput_configs::live::engine::KubernetesConfig;
use goodput_env::job::Work;
use goodput_env::time::SimTime;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, Order, Submission};
use goodput_executor::job::{Fence, JobReport, Refusal};

use super::drills::{open, settings};
use super::{Site, buildable, runtime, until};

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
        // With the attempt its word ends.
        site.carry_out(&Order::named("p2", &key, 1, EngineAction::Stop { grace_s: 1 })).await;
        assert_eq!(mailbox.take(&key, &line(&fence), 5000), Err(Refusal::NotSeen));
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
        let (mut keys, mut sizes) = (Vec::new(), BTreeSet::<(String, u32)>::new());
        let began = Instant::now();
        let resized = loop {
            // One job has the cluster for a while, and then shares it.
            let due = if began.elapsed() < Duration::from_secs(8) { 1 } else { 10 };
            while keys.len() < due {
                let job = site.submission(&format!("job-{}", keys.len()), 4, 16, 600);
                let mut job = Submission { grace_s: 2, ..job };
                job.spec.work = Work::Fixed { duration: SimTime::from_secs(3600) };
                keys.push(site.engine.submit(&job).await.unwrap());
            }
            let _ = daemon.cycle().await;
            let seen = site.engine.snapshot().await.unwrap();
            for job in seen.jobs.iter().filter(|job| job.phase == JobPhase::Running) {
                let gpus = job.attempt.iter().flat_map(|attempt| &attempt.placement).map(|on| on.gpus).sum();
                sizes.insert((job.key.clone(), gpus));
            }
            if let Some(key) = keys.iter().find(|key| sizes.iter().filter(|(of, _)| of == *key).count() > 1) {
                break key.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(120), "no size changes: {sizes:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let _ = daemon.cycle().await;
        let status = daemon.status();
        let status = status.lock().unwrap();
        assert_eq!((status.policy.as_str(), status.fallback.as_str()), ("zoo:elastic", ""));
        let row = status.queue.iter().find(|row| row.key == resized).unwrap();
        let audit = std::fs::read_to_string(site.directory.path().join("state/audit.jsonl")).unwrap();
        let orders: Vec<&str> = audit.lines().filter(|line| line.contains(&resized)).collect();
        assert!(orders.iter().any(|line| line.contains("resize")), "{orders:#?}");
        let resize = row.resize.as_ref().unwrap();
        assert!(!resize.in_place && resize.words().contains("with a restart"), "{}", resize.words());
        eprintln!("sizes seen: {sizes:?}; explained: {row:#?}");
    });
}
