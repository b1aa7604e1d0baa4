//! The next step of an order by the state its job is in now. Every step can be taken twice.

use std::collections::BTreeMap;

use super::id::SlurmJobId;
use super::is_possible;
use super::read::{RawJob, RawState};
use crate::engine::{EngineAction, OnNode, Order, StepOutcome};

/// Lines for `scontrol`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlurmStep {
    /// The job, to find complaints about it; 0 for nodes.
    pub job: SlurmJobId,
    /// Lines that prepare the step.
    pub prepare: Vec<String>,
    /// Lines that carry the step out where its preparation was not refused.
    pub release: Vec<String>,
    /// A job to be cancelled.
    pub cancel: Option<SlurmJobId>,
}

/// The next step of `order`; an outcome where there is none to take.
pub(super) fn next(order: &Order, jobs: &BTreeMap<SlurmJobId, RawJob>) -> Result<SlurmStep, StepOutcome> {
    let refused = |reason: &str| Err(StepOutcome::Refused { reason: reason.into() });
    if !is_possible(&order.action) {
        return refused("Slurm lends no nodes between pools and gives no shares here");
    }
    match &order.action {
        EngineAction::Drain { node, reason } => {
            let reason: String =
                reason.chars().filter(|c| c.is_ascii_alphanumeric() || " ._:-".contains(*c)).take(80).collect();
            return on_node(node, &format!("State=DRAIN Reason=\"{reason}\""));
        }
        EngineAction::Undrain { node } => return on_node(node, "State=RESUME"),
        _ => {}
    }
    let id: SlurmJobId =
        order.job.parse().map_err(|_| StepOutcome::Refused { reason: "not the number of a job".into() })?;
    let Some(job) = jobs.get(&id) else { return refused("there is no such job") };
    if job.foreign {
        return refused("the job was not given to the daemon");
    }
    let step = |prepare: Vec<String>, release: Vec<String>| Ok(SlurmStep { job: id, prepare, release, cancel: None });
    let later = |reason: &str| Err(StepOutcome::Later { reason: reason.into() });
    match (&order.action, job.state) {
        (EngineAction::Cancel { .. }, _) => Ok(SlurmStep { job: id, cancel: Some(id), ..SlurmStep::default() }),
        (_, RawState::Completing) => later("the job is completing"),
        (_, RawState::Failed) if job.retry().is_some() => later("it failed, and is being put back into the queue"),
        (EngineAction::Suspend, RawState::Running) => step(vec![format!("suspend {id}")], vec![]),
        (EngineAction::Resume, RawState::Suspended) => step(vec![format!("resume {id}")], vec![]),
        (EngineAction::Stop { .. }, RawState::Running | RawState::Suspended) => {
            step(vec![format!("requeuehold {id}")], vec![])
        }
        (EngineAction::Stop { .. }, RawState::Pending { held: false }) => step(vec![format!("uhold {id}")], vec![]),
        (EngineAction::Resize { .. } | EngineAction::Migrate { .. }, RawState::Running | RawState::Suspended) => {
            // A later start means that the job has left and come back already.
            if job.starts() > order.starts {
                Err(StepOutcome::Accepted)
            } else {
                step(vec![format!("requeuehold {id}")], vec![])
            }
        }
        // It was started without accelerators, and waits to be put back.
        (EngineAction::Place { .. }, RawState::Running) if job.held.is_empty() && job.starts() == order.starts => {
            step(vec![], vec![format!("requeuehold {id}")])
        }
        (action, RawState::Pending { held }) => {
            let Some(placement) = action.placement() else { return Err(StepOutcome::Accepted) };
            if job.starts() != order.starts {
                return refused("the order is for another attempt");
            }
            // Released for somewhere else, or so that it cannot start: back, and anew in the next
            // cycle.
            let there = job.required_nodes == names(placement) && job.asked == total(placement);
            let wait_ms = job.retry().map_or(0, |retry| retry.not_before_ms - crate::machine::wall_ms());
            if wait_ms > 0 {
                return Err(StepOutcome::Later {
                    reason: format!("it failed, and waits {} s more", wait_ms / 1000 + 1),
                });
            }
            match (held, there && !job.is_stuck()) {
                (true, _) => step(vec![update(job, placement)?], vec![format!("release {id}")]),
                (false, true) => Err(StepOutcome::Accepted),
                (false, false) => step(vec![format!("uhold {id}")], vec![]),
            }
        }
        _ => Err(StepOutcome::Accepted),
    }
}

fn on_node(node: &str, change: &str) -> Result<SlurmStep, StepOutcome> {
    plain(node)?;
    Ok(SlurmStep { prepare: vec![format!("update NodeName={node} {change}")], ..SlurmStep::default() })
}

/// Names go into command lines: none may end the line or begin another word.
pub(super) fn plain(name: &str) -> Result<(), StepOutcome> {
    let plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if plain { Ok(()) } else { Err(StepOutcome::Refused { reason: format!("{name:?} is no name of a node") }) }
}

/// Everything a placement says: nodes, their number, tasks and accelerators. Where all nodes get as
/// many, Slurm is told how many each.
///
/// A job of `live submit` has one task a node. Every other job keeps the tasks and the processors
/// that its user asked for, unless it comes to more nodes than it has tasks. Processors that are asked
/// for each accelerator follow the accelerators.
fn update(job: &RawJob, placement: &[OnNode]) -> Result<String, StepOutcome> {
    placement.iter().try_for_each(|on| plain(&on.node))?;
    let (nodes, gpus) = (placement.len(), total(placement));
    let first = placement.first().map_or(0, |on| on.gpus);
    let even = placement.iter().all(|on| on.gpus == first);
    let each = if even { format!("gres:gpu:{first}") } else { String::new() };
    let least = nodes as u32;
    let as_asked = job.stated.token.is_none() && job.tasks >= least;
    // Slurm shares them out by accelerator, but on a job that ran before it does not multiply.
    let cpus = match job.cpus_per_gpu {
        0 if as_asked => String::new(),
        0 => format!("NumCPUs={} ", least * job.cpus_per_task.max(1)),
        each => format!("NumCPUs={} ", gpus * each),
    };
    let tasks = if as_asked { cpus } else { format!("{cpus}NumTasks={nodes} ") };
    let list = placement.iter().map(|on| on.node.as_str()).collect::<Vec<_>>().join(",");
    Ok(format!(
        "update JobId={} ReqNodeList={list} NumNodes={nodes}-{nodes} {tasks}\
         TresPerJob=gres:gpu:{gpus} TresPerNode={each} StartTime=now",
        job.id
    ))
}

fn names(placement: &[OnNode]) -> Vec<String> {
    let mut names: Vec<String> = placement.iter().map(|on| on.node.clone()).collect();
    names.sort_unstable();
    names
}

fn total(placement: &[OnNode]) -> u32 {
    placement.iter().map(|on| on.gpus).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::engine::OrderId;
    use crate::engine::slurm::stated::CommentFacts;

    fn on(node: &str, gpus: u32) -> OnNode {
        OnNode { node: node.into(), gpus, ..OnNode::default() }
    }

    fn order(action: EngineAction, starts: u32) -> Order {
        Order { id: OrderId("x".into()), job: "7".into(), starts, action }
    }

    fn job(state: RawState, restarts: u32) -> BTreeMap<SlurmJobId, RawJob> {
        [(7.into(), RawJob { id: 7.into(), state, restarts, ..RawJob::default() })].into()
    }

    #[test]
    fn a_resize_goes_requeue_update_release_whatever_comes_between() {
        let resize = order(EngineAction::Resize { placement: vec![on("n1", 4), on("n3", 4)], grace_s: 1 }, 2);
        let lines =
            |state, restarts| next(&resize, &job(state, restarts)).map(|step| [step.prepare, step.release].concat());
        assert_eq!(lines(RawState::Running, 1).unwrap(), ["requeuehold 7"]);
        assert!(matches!(lines(RawState::Completing, 1), Err(StepOutcome::Later { .. })));
        let update = "update JobId=7 ReqNodeList=n1,n3 NumNodes=2-2 NumCPUs=2 NumTasks=2 TresPerJob=gres:gpu:8 TresPerNode=gres:gpu:4 StartTime=now";
        assert_eq!(lines(RawState::Pending { held: true }, 2).unwrap(), [update, "release 7"]);
        assert_eq!(lines(RawState::Pending { held: false }, 2).unwrap(), ["uhold 7"], "released for somewhere else");
        assert_eq!(lines(RawState::Running, 2), Err(StepOutcome::Accepted), "it runs again");
        assert!(
            matches!(lines(RawState::Pending { held: true }, 3), Err(StepOutcome::Refused { .. })),
            "another attempt"
        );
    }

    #[test]
    fn tasks_and_processors_stay_as_asked() {
        let placement = [on("n1", 2), on("n3", 2)];
        let asked = RawJob { id: 7.into(), tasks: 4, cpus_per_task: 8, ..RawJob::default() };
        assert!(update(&asked, &placement).unwrap().contains("NumNodes=2-2 TresPerJob"));
        let submitted = CommentFacts { token: Some("x".into()), ..CommentFacts::default() };
        let submitted = RawJob { stated: submitted, ..asked };
        assert!(update(&submitted, &placement).unwrap().contains("NumNodes=2-2 NumCPUs=16 NumTasks=2 "));
        let by_gpu = RawJob { cpus_per_gpu: 6, ..submitted };
        assert!(update(&by_gpu, &placement).unwrap().contains("NumNodes=2-2 NumCPUs=24 NumTasks=2 "));
    }

    #[test]
    fn no_step_is_taken_on_a_job_of_others() {
        let foreign =
            |state| BTreeMap::from([(7.into(), RawJob { id: 7.into(), state, foreign: true, ..RawJob::default() })]);
        let actions = [
            EngineAction::Place { placement: vec![on("n1", 4)], share: None },
            EngineAction::Resize { placement: vec![on("n1", 4)], grace_s: 1 },
            EngineAction::Stop { grace_s: 1 },
            EngineAction::Suspend,
            EngineAction::Cancel { grace_s: 1 },
        ];
        for action in actions {
            for state in [RawState::Pending { held: true }, RawState::Pending { held: false }, RawState::Running] {
                let step = next(&order(action.clone(), 0), &foreign(state));
                assert!(matches!(step, Err(StepOutcome::Refused { .. })), "{action:?} {state:?}: {step:?}");
            }
        }
    }

    #[test]
    fn a_start_without_accelerators_is_taken_back() {
        let place = order(EngineAction::Place { placement: vec![on("n1", 4)], share: None }, 2);
        let mut jobs = job(RawState::Running, 1);
        assert_eq!(next(&place, &jobs).unwrap().release, ["requeuehold 7"]);
        jobs.get_mut(&7.into()).unwrap().held = vec![on("n1", 4)];
        assert_eq!(next(&place, &jobs), Err(StepOutcome::Accepted));
    }

    #[test]
    fn names_cannot_smuggle_commands() {
        for name in ["n1 State=DOWN", "n1\nshutdown", "", "n1;x"] {
            let place = order(EngineAction::Place { placement: vec![on(name, 1)], share: None }, 0);
            assert!(
                matches!(next(&place, &job(RawState::Pending { held: true }, 0)), Err(StepOutcome::Refused { .. })),
                "{name}"
            );
            let drain = order(EngineAction::Drain { node: name.into(), reason: "\"\nshutdown".into() }, 0);
            assert!(matches!(next(&drain, &BTreeMap::new()), Err(StepOutcome::Refused { .. })), "{name}");
        }
        let drain = order(EngineAction::Drain { node: "n1".into(), reason: "a\"\nshutdown".into() }, 0);
        assert_eq!(
            next(&drain, &BTreeMap::new()).unwrap().prepare,
            ["update NodeName=n1 State=DRAIN Reason=\"ashutdown\""]
        );
    }
}
