//! Jobs on parts of accelerators under node agents: real sockets and processes, the stand-in for NVML, and a stand-in
//! for the control daemon of CUDA MPS.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::live::node_agent::Fencing;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;
use goodput_executor::bench_job::{BenchJob, Misbehaviour};
use goodput_executor::engine::{
    AcceleratorShare, ClusterSnapshot, Engine, EngineAction, EngineError, JobPhase, OnNode, StepOutcome, Submission,
};

use crate::engine_agents::{Site, carry_out, job, look, order};
use crate::nodes::*;

fn part(name: &str, gpus: u32, compute_percent: u32, memory_mib: u32) -> Submission {
    let share = Some(ShareRequest { compute_percent, memory_mib });
    let request = JobRequest { name: name.to_owned(), gpus, share, ..JobRequest::default() };
    let work = Work::Fixed { duration: SimTime::from_secs(60) };
    Submission { grace_s: 1, ..Submission::new(JobSpec { request, work }, bench(&lasting(60.0))) }
}

fn on_part(number: &[&str], compute_percent: u8, memory_mib: u32) -> EngineAction {
    let accelerators: Vec<String> = number.iter().map(|&number| number.to_owned()).collect();
    let placement = vec![OnNode { node: "n1".into(), gpus: number.len() as u32, accelerators }];
    EngineAction::Place { placement, share: Some(AcceleratorShare { compute_percent, memory_mib }) }
}

fn with_mps(names: &[&str]) -> Site {
    let site = Site::new(names, Fencing::Keep);
    Site { nodes: site.nodes.into_iter().map(Node::with_mps).collect(), shared: site.shared }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_share_an_accelerator_up_to_the_whole_with_the_limits_of_mps() {
    let site = with_mps(&["n1"]);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let mut keys = Vec::new();
    for (name, percent) in [("a", 60), ("b", 40), ("c", 1)] {
        keys.push(engine.submit(&part(name, 1, percent, 30_000)).await.unwrap());
    }
    carry_out(&mut engine, &order(&keys[0], 0, on_part(&["1"], 60, 30_000))).await;
    let seen = carry_out(&mut engine, &order(&keys[1], 0, on_part(&["1"], 40, 30_000))).await;
    let cards = |key: &str| job(&seen, key).attempt.as_ref().unwrap().cards.clone();
    assert_eq!((cards(&keys[0]), cards(&keys[1])), (vec![1], vec![1]));
    // The other accelerator is free, and each has the memory of the stand-in's A100.
    assert_eq!((seen.nodes[0].free, seen.nodes[0].memory_mib), (1, Some(81_920)));

    // Compute of accelerator 1 is given away, so the third job comes to the other one.
    let seen = carry_out(&mut engine, &order(&keys[2], 0, on_part(&["1"], 1, 30_000))).await;
    assert_eq!(job(&seen, &keys[2]).attempt.as_ref().unwrap().cards, [0]);
    // Memory for a fourth job is left on neither.
    let big = engine.submit(&part("big", 1, 10, 60_000)).await.unwrap();
    let receipts = engine.apply(&[order(&big, 0, on_part(&["0"], 10, 60_000))]).await.unwrap();
    let reason = "node n1 has no 1 accelerators with room for 10 % and 60000 MiB";
    assert_eq!(receipts[0].outcome, StepOutcome::Later { reason: reason.into() });

    let running = |key: &String| job(&seen, key).phase == JobPhase::Running;
    assert!(keys.iter().all(running));
    let of = |key: &str| {
        let id = format!("{key}.0");
        let folder = site.nodes[0].config.state_dir.join("attempts").join(id);
        std::fs::read_to_string(folder.join("order.json")).unwrap()
    };
    for (key, percent) in keys.iter().zip([60, 40, 1]) {
        let order: serde_json::Value = serde_json::from_str(&of(key)).unwrap();
        assert_eq!(order["env"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], percent.to_string());
        assert_eq!(order["env"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=30000M");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_two_accelerators_is_a_limit_on_each() {
    let site = with_mps(&["n1"]);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let key = engine.submit(&part("wide", 2, 150, 40_000)).await.unwrap();
    let seen = carry_out(&mut engine, &order(&key, 0, on_part(&["0", "1"], 75, 20_000))).await;
    assert_eq!(job(&seen, &key).attempt.as_ref().unwrap().cards, [0, 1]);
    let folder = site.nodes[0].config.state_dir.join("attempts").join(format!("{key}.0"));
    let text = std::fs::read_to_string(folder.join("order.json")).unwrap();
    let order: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(order["env"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], "75");
    assert_eq!(order["env"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=20000M,1=20000M");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_refused_where_a_node_has_no_mps() {
    let site = Site::new(&["n1", "n2"], Fencing::Keep);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let refused = engine.submit(&part("a", 1, 30, 4_096)).await.unwrap_err();
    let EngineError::Refused { problem, .. } = refused else { panic!("{refused:?}") };
    assert!(problem.starts_with("node n1 gives no parts of accelerators"), "{problem}");
    // Whole accelerators are given as ever.
    let whole = part("whole", 1, 30, 4_096);
    let spec = JobSpec { request: JobRequest { share: None, ..whole.spec.request.clone() }, ..whole.spec.clone() };
    engine.submit(&Submission { spec, ..whole }).await.unwrap();
}

/// Failed accelerators are numbered after those that may be given, each by itself.
#[tokio::test(flavor = "multi_thread")]
async fn two_failed_accelerators_of_a_node_have_two_numbers() {
    let site = with_mps(&["n1"]);
    let agents = site.agents().await;
    let mut engine = site.engine(&agents).await;
    let deaf = BenchJob { misbehave: Some(Misbehaviour::IgnoreTerm), ..lasting(60.0) };
    let wide = Submission { command: bench(&deaf), grace_s: 5, ..part("wide", 2, 150, 40_000) };
    let key = engine.submit(&wide).await.unwrap();
    carry_out(&mut engine, &order(&key, 0, on_part(&["0", "1"], 75, 20_000))).await;
    let cards = |seen: &ClusterSnapshot| job(seen, &key).attempt.as_ref().map(|attempt| attempt.cards.clone());
    for (index, left) in [(0, 1), (1, 0)] {
        site.nodes[0].xid(index, 79);
        let seen = look(&mut engine, "a failed accelerator", |seen| seen.nodes[0].gpus == left).await;
        let mut numbers = cards(&seen).unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1]);
    }
}
