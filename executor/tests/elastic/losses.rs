//! Members, agents and daemons that are killed: the job goes on.

use goodput_executor::agent::api::AttemptState;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::*;

impl Lab {
    /// Process of the member `number`, once it runs.
    async fn process(&mut self, node: usize, number: u32) -> Pid {
        let name = format!("{}.0.{number}", self.key);
        let file = self.site.nodes[node].config.state_dir.join("attempts").join(name).join("processes.json");
        let began = std::time::Instant::now();
        loop {
            self.engine.snapshot().await.unwrap();
            let read = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if let Some(pid) = read.and_then(|processes| processes["job"]["pid"].as_i64()) {
                return Pid::from_raw(pid as i32).unwrap();
            }
            assert!(began.elapsed().as_secs() < 60, "{} never runs", file.display());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Waits until `count` members train together and no other one is there.
    async fn settled(&mut self, count: u32) {
        let key = self.key.clone();
        let settled = |seen: &ClusterSnapshot| {
            let one = job(seen, &key);
            let gpus = one.attempt.iter().flat_map(|attempt| &attempt.placement).map(|on| on.gpus).sum::<u32>();
            one.members == Some(MembersSeen::Settled) && gpus == count
        };
        look(&mut self.engine, "settled", settled).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_others_go_on_when_the_member_that_leads_is_killed() {
    let mut lab = Lab::new(0.0).await;
    lab.on(vec![on("n1", 1), on("n2", 1), on("n3", 1)]).await;
    let leader = lab.process(0, 0).await;
    kill_process(leader, Signal::KILL).unwrap();
    lab.settled(2).await;
    let seen = lab.engine.snapshot().await.unwrap();
    let one = job(&seen, &lab.key);
    assert_eq!((one.phase, one.starts, one.failures), (JobPhase::Running, 1, 0));
    assert!(one.note.contains("member 0 on n1 was lost"), "{}", one.note);
    let again = EngineAction::Resize { placement: vec![on("n1", 1), on("n2", 1), on("n3", 1)], grace_s: 30 };
    let receipts = lab.engine.apply(&[order(&lab.key, 1, again)]).await.unwrap();
    assert!(matches!(&receipts[0].outcome, StepOutcome::Later { reason } if reason.contains("lost")), "{receipts:?}");
    lab.finish(1).await;
    assert!(lab.log.sizes().ends_with(&[2]), "{:?}", lab.log.sizes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_killed_while_it_joins_does_not_hold_up_the_others() {
    let mut lab = Lab::new(1.0).await;
    lab.on(vec![on("n1", 1), on("n2", 1)]).await;
    let placement = vec![on("n1", 1), on("n2", 1), on("n3", 1)];
    let resize = order(&lab.key, 1, EngineAction::Resize { placement, grace_s: 30 });
    lab.engine.apply(std::slice::from_ref(&resize)).await.unwrap();
    let joining = lab.process(2, 2).await;
    kill_process(joining, Signal::KILL).unwrap();
    lab.settled(2).await;
    lab.finish(1).await;
    assert_eq!(lab.log.sizes().last(), Some(&2));
    assert!(lab.log.longest_gap() < 10.0, "{}", lab.log.longest_gap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_resized_by_another_daemon_and_over_an_agent_that_was_killed() {
    let site = Site::new(&["n1", "n2", "n3"], Fencing::Keep);
    let mut processes: Vec<_> = site.nodes.iter().map(crate::nodes::Node::spawn).collect();
    let addresses =
        |processes: &[crate::nodes::AgentProcess]| processes.iter().map(|one| one.address).collect::<Vec<_>>();
    let open = |addresses: &[std::net::SocketAddr]| AgentsEngine::open(site.settings(addresses)).unwrap();
    let mut engine = open(&addresses(&processes));
    engine.lead(1).await.unwrap();
    look(&mut engine, "all nodes", |seen| seen.nodes.iter().all(|node| node.gpus == 2)).await;
    let log = SampleLog::of(site.shared.path().join("samples"), 240);
    let key = engine.submit(&submission(&log, 0.3)).await.unwrap();
    carry_out(&mut engine, &order(&key, 0, place(vec![on("n1", 1), on("n2", 1)]))).await;
    let settled = |seen: &ClusterSnapshot| job(seen, &key).members == Some(MembersSeen::Settled);
    look(&mut engine, "settled", settled).await;

    // The agent of the member that leads dies, and so does the daemon; the members train on.
    processes[0].kill();
    drop(engine);
    processes[0] = site.nodes[0].spawn();
    let mut engine = open(&addresses(&processes));
    engine.lead(2).await.unwrap();
    look(&mut engine, "found again", settled).await;
    let resize = EngineAction::Resize { placement: vec![on("n2", 1), on("n3", 2)], grace_s: 30 };
    carry_out(&mut engine, &order(&key, 1, resize)).await;
    log.enough();
    let seen = look(&mut engine, "ends", |seen| job(seen, &key).phase.is_over()).await;
    let one = job(&seen, &key);
    assert_eq!((one.phase, one.starts, one.failures), (JobPhase::Done, 1, 0), "{}", one.note);
    log.check();
    assert!(log.sizes().ends_with(&[3]), "{:?}", log.sizes());
}

/// The stop and the restart are the way out where no member is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_loses_all_members_waits_with_one_failure() {
    let mut lab = Lab::new(0.0).await;
    lab.on(vec![on("n1", 1), on("n2", 1)]).await;
    for (node, number) in [(0, 0), (1, 1)] {
        let pid = lab.process(node, number).await;
        kill_process(pid, Signal::KILL).unwrap();
    }
    let key = lab.key.clone();
    let seen = look(&mut lab.engine, "given up", |seen| job(seen, &key).phase == JobPhase::Held).await;
    assert_eq!((job(&seen, &key).starts, job(&seen, &key).failures), (1, 1), "one failure, not one for each member");
    let ended = |state: &AttemptState| matches!(state, AttemptState::Ended { .. });
    assert!(lab.agents.iter().all(|agent| agent.agent.status().attempts.iter().all(|one| ended(&one.state))));
}

/// A member that ends before it has loaded the state leaves the others nothing to train on. That is a failure of the
/// job, or a job with a damaged checkpoint would be started without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_ends_before_it_begins_costs_a_failure() {
    let mut lab = Lab::new(60.0).await;
    carry_out(&mut lab.engine, &order(&lab.key, 0, place(vec![on("n1", 1), on("n2", 1)]))).await;
    let pid = lab.process(0, 0).await;
    kill_process(pid, Signal::KILL).unwrap();
    let key = lab.key.clone();
    let seen = look(&mut lab.engine, "given up", |seen| job(seen, &key).phase == JobPhase::Held).await;
    assert_eq!((job(&seen, &key).starts, job(&seen, &key).failures), (1, 1), "{}", job(&seen, &key).note);
}
