//! Answers of `squeue --json`, `sinfo --json` and `scontrol show nodes --json`. Releases differ in the
//! types of fields, so little is demanded of a field.

mod job;
mod lists;
mod node;

use std::collections::BTreeMap;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::facts_key::FactsKey;
use crate::engine::EngineError;
pub use job::{RawJob, RawState};
pub(super) use lists::hostlist;
pub use node::{RawNode, natural};

/// Name of an answer about nodes, for errors.
const NODES: &str = "sinfo --json or scontrol show nodes --json";

/// An answer of `squeue`, `sinfo` or `scontrol`.
#[derive(Deserialize)]
struct SlurmAnswer {
    #[serde(default)]
    errors: Value,
    jobs: Option<StreamedEntries<RawJob>>,
    nodes: Option<StreamedEntries<RawNode>>,
}

/// Entries that are read one by one: a job has over a hundred fields, of which few are kept, and
/// thousands of jobs as they are told would be most of what the daemon holds of memory.
struct StreamedEntries<T>(Vec<T>);

impl<'de, T: for<'a> From<&'a Value>> Deserialize<'de> for StreamedEntries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);

        impl<'de, T: for<'a> From<&'a Value>> Visitor<'de> for Entries<T> {
            type Value = StreamedEntries<T>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element::<Value>()? {
                    entries.push(T::from(&entry));
                }
                Ok(StreamedEntries(entries))
            }
        }
        deserializer.deserialize_seq(Entries(std::marker::PhantomData))
    }
}

/// While slurmctld is away the commands end well, with an empty list and their errors beside it. An
/// empty list alone does not mean that there are no jobs.
fn parsed(text: &str, what: &'static str) -> Result<SlurmAnswer, EngineError> {
    let unreadable = |problem: String| EngineError::Unreadable { engine: "slurm", what, problem };
    let answer: SlurmAnswer = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    match answer.errors.as_array().and_then(|errors| errors.first()) {
        Some(error) => {
            let problem = format!("{what}: {}", error.get("description").unwrap_or(error));
            Err(EngineError::Unreachable { engine: "slurm", problem, remedy: super::commands::REMEDY })
        }
        None => Ok(answer),
    }
}

/// A number, also where it is an object with a flag beside it, as newer versions have it.
fn number(value: &Value) -> i64 {
    let inner = value.get("number").unwrap_or(value);
    inner.as_i64().or_else(|| inner.as_f64().map(|number| number as i64)).unwrap_or(0)
}

fn text(value: &Value) -> String {
    let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    first.as_str().unwrap_or_default().into()
}

/// Words in capitals: a single one, or a list of a base state and its flags, as 23.02 and later
/// have it.
fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(str::to_uppercase).collect()
}

/// Jobs of `squeue --json`, each task of an array for itself. `key` is the one with which comments are
/// signed.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is not JSON of that shape.
pub fn jobs(json: &str, key: &FactsKey) -> Result<Vec<RawJob>, EngineError> {
    let mut jobs = records(json)?;
    jobs.iter_mut().for_each(|job| job.believe(key));
    throttle(&mut jobs);
    Ok(jobs)
}

/// Jobs of `squeue --json`, each task of an array for itself, and the moment of the list, milliseconds of the Unix
/// epoch, where it tells one (from 23.11 on). No comment is believed.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is not JSON of that shape.
pub fn queue(json: &str) -> Result<(Vec<RawJob>, Option<i64>), EngineError> {
    #[derive(Deserialize)]
    struct Moment {
        #[serde(default)]
        last_update: Value,
    }
    let moment: Moment = serde_json::from_str(json).unwrap_or(Moment { last_update: Value::Null });
    let at_ms = Some(1000 * number(&moment.last_update)).filter(|at| *at > 0);
    Ok((records(json)?, at_ms))
}

fn records(json: &str) -> Result<Vec<RawJob>, EngineError> {
    let list = parsed(json, "squeue --json")?.jobs;
    let missing =
        || EngineError::Unreadable { engine: "slurm", what: "squeue --json", problem: "it has no list of jobs".into() };
    let StreamedEntries(records) = list.ok_or_else(missing)?;
    Ok(records.into_iter().flat_map(RawJob::tasks_apart).collect())
}

/// Marks the held tasks for which the limits of their arrays leave no room.
pub(super) fn throttle(jobs: &mut [RawJob]) {
    let limited = |job: &RawJob| job.id.array().filter(|_| job.array_limit > 0);
    let mut started: BTreeMap<u64, u32> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.holds() || job.state == (RawState::Pending { held: false })) {
        if let Some(array) = limited(job) {
            *started.entry(array).or_default() += 1;
        }
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&at| jobs[at].id);
    for at in order {
        let job = &mut jobs[at];
        let Some(array) = limited(job).filter(|_| job.state == (RawState::Pending { held: true })) else { continue };
        let started = started.entry(array).or_default();
        job.throttled = *started >= job.array_limit;
        *started += 1;
    }
}

/// Nodes that have accelerators: of `sinfo --json`, which lists nodes up to 22.05 only, or of
/// `scontrol show nodes --json`.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is not JSON of that shape.
pub fn nodes(json: &str) -> Result<Vec<RawNode>, EngineError> {
    let list = parsed(json, NODES)?.nodes;
    let missing =
        || EngineError::Unreadable { engine: "slurm", what: NODES, problem: "it has no list of nodes".into() };
    let StreamedEntries(mut nodes) = list.ok_or_else(missing)?;
    nodes.retain(|node| node.gpus > 0);
    nodes.sort_by_key(|node| natural(&node.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::engine::{JobPhase, NodeHealth, OnNode};
    use crate::job::Exit;

    #[test]
    fn that_nothing_is_told_is_not_that_there_is_nothing() {
        let jobs = |json: &str| super::jobs(json, &FactsKey::random().unwrap());
        let told = r#"{"errors":[{"description":"Failed while looking for jobs","error_number":-1}],"jobs":[]}"#;
        assert!(matches!(jobs(told), Err(EngineError::Unreachable { .. })));
        assert!(matches!(jobs(r#"{"errors":[],"jobs":[]}"#), Ok(list) if list.is_empty()));
        assert!(matches!(jobs("slurm_load_jobs error"), Err(EngineError::Unreadable { .. })));
    }

    #[test]
    fn accelerators_of_an_idle_node_that_count_as_used_have_leaked() {
        let told = |state: &str, flags: &str, used: &str| {
            let node = format!(
                r#"{{"name":"n1","gres":"gpu:a100:8","gres_used":"{used}","state":"{state}","state_flags":[{flags}]}}"#
            );
            nodes(&format!(r#"{{"errors":[],"nodes":[{node}]}}"#)).unwrap().remove(0)
        };
        let used = "gpu:a100:8(IDX:0-7)";
        for (state, flags, used) in [
            ("idle", "", "gpu:a100:0(IDX:N/A)"),
            ("mixed", "", used),
            ("idle", r#""COMPLETING""#, used),
            ("down", "", used),
        ] {
            assert!(!told(state, flags, used).leaks(&[]), "{state} {flags} {used}");
        }
        let mut leaking = told("idle", "", used);
        assert!(leaking.leaks(&[]));
        let suspended =
            |gpus| RawJob { held: vec![OnNode { node: "n1".into(), gpus, ..OnNode::default() }], ..RawJob::default() };
        assert!(leaking.leaks(&[suspended(2)]) && !leaking.leaks(&[suspended(2), suspended(6)]));
        leaking.set_aside();
        let seen = leaking.seen(&[], |_| true);
        assert_eq!((seen.health, seen.free), (NodeHealth::Drained, 0));
        assert!(seen.note.contains("counts 8 accelerators"), "{}", seen.note);
    }

    #[test]
    fn a_job_is_foreign_unless_its_comment_gives_it_to_the_daemon() {
        let told = |comment: &str| {
            let job = format!(r#"{{"job_id":7,"job_state":"RUNNING","priority":1,"comment":"{comment}"}}"#);
            jobs(&format!(r#"{{"errors":[],"jobs":[{job}]}}"#), &FactsKey::random().unwrap()).unwrap().remove(0)
        };
        assert!(told("").foreign && told("mine").seen().hands_off);
        assert!(!told("goodput").foreign && !told("goodput;gpus=2").seen().hands_off);
        let node = r#"{"name":"n1","gres":"gpu:8","gres_used":"gpu:6","state":"mixed"}"#;
        let node = nodes(&format!(r#"{{"errors":[],"nodes":[{node}]}}"#)).unwrap().remove(0);
        let holds =
            |gpus, job: RawJob| RawJob { held: vec![OnNode { node: "n1".into(), gpus, ..OnNode::default() }], ..job };
        let both = [holds(4, told("")), holds(2, told("goodput"))];
        let seen = node.seen(&both, |job| !job.foreign);
        assert_eq!((seen.gpus, seen.free), (4, 2), "{}", seen.note);
        assert!(seen.note.starts_with("4 of 8"), "{}", seen.note);
    }

    /// Records of an array as 22.05.8 and 24.11.5 tell them: a task that was altered is apart, and
    /// those that wait untouched are together.
    #[test]
    fn tasks_of_an_array_are_jobs() {
        let told = |array: &str, task: &str, none: &str, limit: &str| {
            let apart = format!(
                r#"{{"job_id":8,"array_job_id":{array},"array_task_id":{task},"job_state":"RUNNING",
                "array_task_string":"","array_max_tasks":{limit},"priority":1,"comment":"goodput"}}"#
            );
            let rest = format!(
                r#"{{"job_id":7,"array_job_id":{array},"array_task_id":{none},"job_state":"PENDING",
                "array_task_string":"0,2-3","array_max_tasks":{limit},"priority":0,"tres_per_job":"gres:gpu:2",
                "comment":"goodput"}}"#
            );
            let text = format!(r#"{{"errors":[],"jobs":[{apart},{rest}]}}"#);
            let jobs = jobs(&text, &FactsKey::random().unwrap()).unwrap();
            jobs.iter().map(|job| (job.id.to_string(), job.seen().phase, job.throttled)).collect::<Vec<_>>()
        };
        let held = |task: u32, throttled| (format!("7_{task}"), JobPhase::Held, throttled);
        let running = ("7_1".to_owned(), JobPhase::Running, false);
        assert_eq!(told("7", "1", "null", "0"), [running.clone(), held(0, false), held(2, false), held(3, false)]);
        let number = |number: u32, set: bool| format!(r#"{{"set":{set},"infinite":false,"number":{number}}}"#);
        assert_eq!(
            told(&number(7, true), &number(1, true), &number(0, false), &number(2, true)),
            [running, held(0, false), held(2, true), held(3, true)],
            "two at once"
        );
    }

    /// Answers of Slurm 24.11.5 (Debian 13), recorded from a slurmctld with two nodes, with the
    /// fields that are not read left out.
    #[test]
    fn answers_of_later_releases_are_understood() {
        let number = |number: i64| format!(r#"{{"set":true,"infinite":false,"number":{number}}}"#);
        let told = |states: &str| {
            let job = format!(
                r#"{{"job_id":1,"job_state":[{states}],"priority":{},"nodes":"n[0-1]","node_count":{},
                "gres_detail":["gpu:a100:4(IDX:0-3)","gpu:a100:4(IDX:0-3)"],"tres_per_job":"gres/gpu:8",
                "tres_per_node":"gres/gpu:4","required_nodes":"","restart_cnt":0,"submit_time":{},
                "exit_code":{{"status":["SUCCESS"],"return_code":{},"signal":{{"id":{{"set":false,"infinite":false,
                "number":0}},"name":""}}}},"time_limit":{{"set":false,"infinite":true,"number":0}},
                "comment":"goodput;gpus=8","state_reason":"None"}}"#,
                number(1),
                number(2),
                number(1_795_536_653),
                number(0)
            );
            let text = format!(r#"{{"jobs":[{job}],"errors":[],"warnings":[]}}"#);
            jobs(&text, &FactsKey::random().unwrap()).unwrap().remove(0)
        };
        let job = told(r#""RUNNING""#);
        assert_eq!((job.state, job.asked, job.submit_ms), (RawState::Running, 8, 1_795_536_653_000));
        assert_eq!(job.held.iter().map(|on| on.gpus).collect::<Vec<_>>(), [4, 4]);
        assert_eq!((job.exit, job.limit_ms, job.foreign), (Some(Exit::Code(0)), None, false));
        assert_eq!(told(r#""RUNNING","COMPLETING""#).state, RawState::Completing);
        assert_eq!(told(r#""PENDING""#).state, RawState::Pending { held: false });
        let node = |states: &str| {
            let node = format!(
                r#"{{"name":"n0","gres":"gpu:a100:8","gres_used":"gpu:a100:4(IDX:0-3)","state":[{states}],
                "partitions":["train"],"reason":"","slurmd_start_time":{}}}"#,
                number(1_795_536_645)
            );
            nodes(&format!(r#"{{"nodes":[{node}],"errors":[]}}"#)).unwrap().remove(0)
        };
        assert_eq!((node(r#""MIXED""#).health, node(r#""MIXED""#).used), (NodeHealth::Up, 4));
        assert_eq!(node(r#""MIXED","DRAIN""#).health, NodeHealth::Drained);
        assert_eq!(node(r#""IDLE","NOT_RESPONDING""#).health, NodeHealth::Suspect);
        assert!(matches!(nodes(r#"{"sinfo":[],"errors":[]}"#), Err(EngineError::Unreadable { .. })));
    }
}
