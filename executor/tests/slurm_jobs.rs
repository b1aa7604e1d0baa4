//! Jobs on real Slurm: their accelerators, their resources, and the jobs of others.
//!
//! Each scenario also runs on later releases of Slurm (`slurm_releases`).
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::{Duration, Instant};

use goodput_env::job::Elasticity;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, NodeHealth, Order};

use crate::slurm_site::*;

/// Runs a scenario on a cluster of the installed release.
fn on_a_site(scenario: impl FnOnce(&mut Site)) {
    // The cluster is dropped before its directory.
    if let Some(mut site) = site() {
        scenario(&mut site);
    }
}

#[test]
fn orders_are_carried_out_to_the_accelerator() {
    on_a_site(orders_are_carried_out);
}

/// Every order on a job and on a node, on a cluster where nothing else runs.
pub fn orders_are_carried_out(site: &mut Site) {
    let Site { engine, directory, .. } = site;
    runtime().block_on(async {
        let key = engine.submit(&submission(directory.path(), "one", 4, 8, 600)).await.unwrap();
        let seen = engine.snapshot().await.unwrap();
        assert_eq!((job(&seen, &key).phase, job(&seen, &key).starts), (JobPhase::Held, 0), "it waits for an order");
        assert_eq!(job(&seen, &key).spec.request.elasticity, Elasticity::Elastic { min: 1, max: 8 });
        assert_eq!(seen.nodes.iter().map(|node| node.free).collect::<Vec<_>>(), [8; 4]);
        assert!(engine.release().is_some_and(|release| release.contains('.')));

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

#[test]
fn jobs_of_others_are_left_alone() {
    on_a_site(others_are_left_alone);
}

/// Jobs without goodput's comment are not the daemon's: neither those that run nor one that its user
/// holds is touched, though a shorter job of the daemon waits for accelerators.
pub fn others_are_left_alone(site: &mut Site) {
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
    let mut daemon = open(site, settings(site, &directory, ""));
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

#[test]
fn resources_stay_as_asked() {
    on_a_site(|site| resources_stay(site));
}

/// A user's tasks, processors and memory stay as asked when the daemon starts the job.
pub fn resources_stay(site: &Site) {
    let runtime = runtime();
    let directory = site.directory.path().to_path_buf();
    let asked = ["-n", "4", "-c", "8", "--mem=64G", "--gpus=4", "--nodes=1", "--time=30"];
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--wrap=sleep 300"];
    let key = site.cluster.ask("sbatch", &[&job[..], &asked[..]].concat()).trim().to_string();
    let mut daemon = open(site, settings(site, &directory, ""));
    let told = || site.cluster.ask("scontrol", &["show", "job", &key]);
    let began = Instant::now();
    while !told().contains("JobState=RUNNING") {
        runtime.block_on(daemon.cycle()).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{}", told());
        std::thread::sleep(Duration::from_millis(150));
    }
    for words in ["NumCPUs=32 NumTasks=4 CPUs/Task=8", "MinMemoryNode=64G", "TimeLimit=00:30:00", "gpu:4"] {
        assert!(told().contains(words), "{words}: {}", told());
    }
}
