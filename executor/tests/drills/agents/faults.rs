//! Drill 20: machines fail one job again and again, and it is placed again each time.

use super::*;
use goodput_executor::engine::NodeHealth;
use serde_json::Value;

/// Three errors of accelerators, two deaths of the keeper and an end by the job's own 143: none of them is the work of
/// an administrator.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_loses_its_machine_again_and_again_is_not_left_alone() {
    let mut site = Site::new(&["n0", "n1"], Fencing::Keep);
    for node in &mut site.nodes {
        // None comes back before the end of the drill.
        node.config.pace.back_after_ms = 600_000;
    }
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    all_up(&mut daemon).await;
    // It gives way by itself at its last attempt but one, and is done at its last.
    let script = "cd \"$SCHED_CHECKPOINT_DIR\"; exec 9>lock; flock -n 9 || echo x >> twice; echo x >> starts; \
        starts=$(wc -l < starts); [ $starts -eq 6 ] && exit 143; [ $starts -ge 7 ] || sleep 600; echo x >> ends";
    let key = daemon.submit("drill", &told("unlucky", 1, script)).await.unwrap();
    let runs = |status: &DaemonStatus, starts: u32| {
        status.queue.iter().find(|row| row.key == key && row.phase == "running" && row.starts == starts).cloned()
    };
    let (mut hit, mut status) = (0, DaemonStatus::default());
    for fault in 1..=5 {
        status = until(&mut daemon, &format!("start {fault}"), |status| runs(status, fault).is_some()).await;
        let row = runs(&status, fault).unwrap();
        let node = site.nodes.iter().position(|node| node.config.node.as_str() == row.placement[0].node).unwrap();
        let began = Instant::now();
        while site.lines(&key, "starts") < fault as usize {
            assert!(began.elapsed() < PATIENCE, "attempt {fault} does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if hit < 3 {
            let held = &row.placement[0].accelerators[0];
            let devices = agents[node].agent.status().accelerators;
            site.nodes[node].xid(devices.iter().position(|device| device.uuid == *held).unwrap(), 79);
            hit += 1;
        } else {
            let attempt = site.nodes[node].config.state_dir.join(format!("attempts/{key}.{}", fault - 1));
            let processes: Value = serde_json::from_slice(&fs::read(attempt.join("processes.json")).unwrap()).unwrap();
            let keeper = processes["keeper"]["pid"].as_u64().unwrap() as i32;
            let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        }
    }
    let ended = all_over(&mut daemon).await;
    let out: u32 = status.nodes.iter().filter(|node| node.health == NodeHealth::Up).map(|node| 2 - node.gpus).sum();
    assert_eq!(out, 3, "three accelerators are out of service: {:?}", status.nodes);
    assert_eq!((alerts(&ended, "hands-off"), site.lines(&key, "starts")), (vec![], 7));
    let row = ended.ended.iter().find(|row| row.key == key).unwrap();
    assert_eq!((row.phase.as_str(), row.failures), ("done", 0), "none of it was the job's own failure");
    assert_eq!(site.doubled_and_lost(&[key]), (0, 0));
}
