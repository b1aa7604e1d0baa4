//! One attempt on several nodes: it runs where all its parts run, and ends when all have ended.

use super::live::{AttemptProcess, LiveJob};
use super::nodes::AgentNodes;
use crate::agent::api::AttemptState;
use crate::engine::JobPhase;
use crate::job::{EndCause, Exit, ExitMeaning, RetryDecision};

/// Longest time that the parts of an attempt may take to begin, milliseconds.
const BEGIN_MS: i64 = 30_000;

/// State of one part of a gang.
pub enum GangPart {
    /// The agent of the part has not begun it.
    Missing,
    /// The part runs, or may run: its node is silent.
    Alive,
    /// The part ended; without an exit where it never began.
    Ended(ExitMeaning, Option<Exit>),
}

/// Brings a job a step on by what its nodes said.
pub fn advance(job: &mut LiveJob, nodes: &AgentNodes, now_ms: i64) {
    let Some(current) = &job.current else { return };
    let processes = current.parts(&job.key);
    let parts: Vec<GangPart> = processes.iter().map(|process| part(process, nodes)).collect();
    for AttemptProcess { on, id, .. } in &processes {
        if let Some(report) = nodes.attempt(&on.node, id).and_then(|status| status.report.as_ref()) {
            job.steps = Some(report.step);
            job.epoch = report.epoch.map_or(job.epoch, |epoch| epoch as u32);
        }
    }
    let ended = parts.iter().filter_map(|part| match part {
        GangPart::Ended(meaning, _) => Some(*meaning),
        GangPart::Missing | GangPart::Alive => None,
    });
    let worst = ended.clone().max_by_key(|meaning| severity(*meaning));
    let missing = || current.placement.iter().zip(&parts).filter(|(_, part)| matches!(part, GangPart::Missing));
    let late = missing().any(|(on, _)| is_late(current.since_ms, &on.node, nodes, now_ms));
    match worst {
        Some(worst) if ended.count() == parts.len() => {
            let how = current.placement.iter().zip(&parts).find_map(|(on, part)| match part {
                GangPart::Ended(meaning, Some(exit)) if *meaning == worst => Some(format!(": {exit} on {}", on.node)),
                _ => None,
            });
            close(job, worst, &how.unwrap_or_default(), now_ms);
        }
        // One part ended other than well, or never began: the others cannot go on.
        Some(ExitMeaning::Done) | None if !late => job.phase = JobPhase::Running,
        _ => {
            if let Some(current) = &mut job.current {
                current.leaving = true;
            }
            job.note = if late { "a part of it did not begin".to_owned() } else { "a part of it ended".to_owned() };
        }
    }
}

/// Whether a part that is to begin since `since_ms` has taken too long.
pub fn is_late(since_ms: i64, node: &str, nodes: &AgentNodes, now_ms: i64) -> bool {
    // A node that can write nothing down begins nothing, so waiting for it is of no use.
    now_ms - since_ms > BEGIN_MS || nodes.cannot_write(node)
}

/// State of a process of an attempt.
pub fn part(process: &AttemptProcess<'_>, nodes: &AgentNodes) -> GangPart {
    let on = process.on;
    match nodes.attempt(&on.node, &process.id).map(|status| status.state) {
        Some(AttemptState::Ended { meaning, exit, .. }) => GangPart::Ended(meaning, Some(exit)),
        _ if nodes.is_fenced(&on.node) => {
            let meaning = ExitMeaning::of(Exit::Unseen, EndCause { stopping: false, fault: true });
            GangPart::Ended(meaning, Some(Exit::Unseen))
        }
        Some(_) => GangPart::Alive,
        // A start that was sent may still arrive, unless the node answers and does not know of it.
        None if process.leaving && nodes.answers(&on.node) => GangPart::Ended(ExitMeaning::Preempted, None),
        None => GangPart::Missing,
    }
}

/// Of several ends the one that tells most: a fault of the machine explains failures of the others,
/// and a failure explains that others were stopped.
pub fn severity(meaning: ExitMeaning) -> u8 {
    match meaning {
        ExitMeaning::Done => 0,
        ExitMeaning::Preempted => 1,
        ExitMeaning::TryAgain => 2,
        ExitMeaning::Failed => 3,
        ExitMeaning::Infrastructure => 4,
    }
}

/// Closes the attempt that runs; `how` it ended is a text for the note of the job, with a colon before it.
pub fn close(job: &mut LiveJob, meaning: ExitMeaning, how: &str, now_ms: i64) {
    job.current = None;
    // A replica answers until it is told to go: one that ends by itself has failed.
    let meaning = match meaning {
        ExitMeaning::Done if job.replica_of.is_some() && !job.cancelled => ExitMeaning::Failed,
        meaning => meaning,
    };
    let budget = job.budget();
    job.failures += u32::from(meaning.uses_budget());
    let verdict = job.retry.judge(meaning, &budget, now_ms);
    (job.phase, job.note) = match verdict {
        RetryDecision::Done => (JobPhase::Done, String::new()),
        _ if job.cancelled => (JobPhase::Cancelled, "taken back".to_owned()),
        RetryDecision::GiveUp => (
            JobPhase::Failed,
            format!("failed more than the {} times forgiven in {} s{how}", budget.failures, budget.window_s),
        ),
        RetryDecision::Requeue { not_before_ms } => {
            job.not_before_ms = not_before_ms;
            let (failures, forgiven) = (job.retry.failures(), budget.failures);
            let note = match meaning {
                ExitMeaning::Infrastructure => format!("its machine failed{how}"),
                ExitMeaning::Preempted => "it gave way".to_owned(),
                _ => format!("it failed {failures} times ({forgiven} forgiven in an hour), and is tried again{how}"),
            };
            (JobPhase::Held, note)
        }
    };
    if job.phase.is_over() {
        job.ended_ms = Some(now_ms);
    }
}
