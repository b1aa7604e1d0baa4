//! Output of `squeue --json` and `sinfo --json`. Versions differ in the types of fields, so little
//! is demanded of them.

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::stated::CommentFacts;

use crate::engine::{Attempt, EngineError, JobPhase, JobSeen, NodeHealth, NodeSeen, OnNode};
use crate::job::Exit;

/// The state of a job, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawState {
    /// Waits; held: until it is released.
    Pending {
        /// Whether it is held.
        held: bool,
    },
    /// The job holds accelerators.
    Running,
    /// Leaves its nodes.
    Completing,
    /// The job stands still.
    Suspended,
    /// The job ended well.
    Completed,
    /// The job ended badly.
    #[default]
    Failed,
    /// The job was taken back.
    Cancelled,
}

/// A job as Slurm tells it.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each is Slurm's field of that name")]
pub struct RawJob {
    pub id: u64,
    pub name: String,
    pub user: String,
    pub partition: String,
    pub reservation: String,
    pub state: RawState,
    pub reason: String,
    pub restarts: u32,
    /// The second in which it was put back into the queue, of the Unix epoch; 0 where it never was.
    pub requeued_s: i64,
    pub submit_ms: i64,
    pub start_ms: i64,
    pub end_ms: i64,
    /// How its last attempt ended, where it did.
    pub exit: Option<Exit>,
    /// Minutes to seconds: its time limit, where it has one.
    pub limit_ms: Option<i64>,
    pub required_nodes: Vec<String>,
    /// Accelerators it asks for in all.
    pub asked: u32,
    /// Tasks that it asks for in all.
    pub tasks: u32,
    /// Processors that it asks for, for each task.
    pub cpus_per_task: u32,
    pub held: Vec<OnNode>,
    pub stated: CommentFacts,
    /// Whether the job was not given to the daemon: its comment does not begin with `goodput`.
    pub foreign: bool,
}

impl RawJob {
    /// Starts so far.
    pub fn starts(&self) -> u32 {
        match self.state {
            RawState::Pending { .. } => self.restarts,
            // An attempt without a start time never ran.
            RawState::Cancelled | RawState::Failed if self.start_ms == 0 => self.restarts,
            _ => self.restarts + 1,
        }
    }

    /// Whether it holds accelerators.
    pub fn holds(&self) -> bool {
        matches!(self.state, RawState::Running | RawState::Completing | RawState::Suspended)
    }

    /// Whether it is released and cannot start as it is.
    pub fn is_stuck(&self) -> bool {
        matches!(self.reason.as_str(), "BadConstraints" | "BeginTime" | "ReqNodeNotAvail")
    }

    /// In the terms of the seam.
    pub fn seen(&self) -> JobSeen {
        let phase = match self.state {
            RawState::Failed if self.retry().is_some() => JobPhase::Held,
            RawState::Pending { held: true } => JobPhase::Held,
            RawState::Pending { held: false } => JobPhase::Released,
            RawState::Running => JobPhase::Running,
            RawState::Completing => JobPhase::Stopping,
            RawState::Suspended => JobPhase::Suspended,
            RawState::Completed => JobPhase::Done,
            RawState::Failed => JobPhase::Failed,
            RawState::Cancelled => JobPhase::Cancelled,
        };
        let CommentFacts { gpus, min, max, priority, duration_ms, application, tenant, batch, .. } =
            self.stated.clone();
        let gpus = gpus.unwrap_or(self.asked).max(1);
        let (min, max) = (min.unwrap_or(gpus), max.unwrap_or(gpus));
        let elasticity = if min == max { Elasticity::Rigid } else { Elasticity::Elastic { min, max } };
        let request = JobRequest {
            name: self.name.clone(),
            submit: SimTime::from_millis(self.submit_ms),
            gpus,
            elasticity,
            priority: priority.unwrap_or(0),
            ..JobRequest::default()
        };
        let duration = SimTime::from_millis(duration_ms.or(self.limit_ms).unwrap_or(0));
        let number = self.starts().saturating_sub(1);
        let attempt = Attempt { number, placement: self.held.clone(), since_ms: self.start_ms };
        let none = phase == JobPhase::Running && self.held.is_empty();
        let failed = self.stated.failed.len() as u32;
        let note = match self.retry() {
            Some(retry) => retry.note,
            None if self.state == RawState::Failed && self.stated.retries.is_some() => {
                format!("{}: failed more often than was forgiven ({})", self.reason, self.stated.retries.unwrap_or(0))
            }
            None if self.foreign => "it was not given to the daemon: its comment does not begin with goodput".into(),
            None if none => "it runs, and no accelerator is allocated: see gres.conf".into(),
            None if self.reason == "None" => String::new(),
            None => self.reason.clone(),
        };
        JobSeen {
            key: self.id.to_string(),
            spec: JobSpec { request, work: Work::Fixed { duration } },
            application,
            tenant: tenant.unwrap_or_default(),
            phase,
            starts: self.starts(),
            attempt: phase.holds().then_some(attempt),
            failures: failed + u32::from(self.state == RawState::Failed && self.meaning().uses_budget()),
            hands_off: self.foreign || phase == JobPhase::Held && self.reason == "JobHeldAdmin",
            done: None,
            epoch: 0,
            batch,
            history: None,
            note,
        }
    }
}

/// A node as Slurm tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawNode {
    /// Partitions it is in.
    pub partitions: Vec<String>,
    /// Name of the node.
    pub name: String,
    accelerator: String,
    gpus: u32,
    used: u32,
    health: NodeHealth,
    /// Whether no job is on it.
    idle: bool,
    /// Whether its slurmd has reported since slurmctld started.
    heard: bool,
    note: String,
}

impl RawNode {
    /// Whether slurmctld waits for it to say what runs there.
    pub fn awaits_report(&self) -> bool {
        self.health == NodeHealth::Suspect && !self.heard
    }

    /// Whether slurmctld counts more accelerators of an idle node as used than jobs hold there;
    /// suspended ones hold theirs on nodes that are called idle.
    pub fn leaks(&self, jobs: &[RawJob]) -> bool {
        let held = jobs.iter().flat_map(|job| &job.held).filter(|on| on.node == self.name).map(|on| on.gpus).sum();
        self.idle && self.used > held
    }

    /// Takes it for one that is drained: no job that is placed there would start.
    pub fn set_aside(&mut self) {
        self.health = NodeHealth::Drained;
        self.note =
            format!("slurmctld counts {} accelerators as used though no job is here; start it again", self.used);
    }

    /// In the terms of the seam. What running jobs hold is not free, whatever the node says, and
    /// what the jobs of others hold is not in service for the daemon.
    pub fn seen(&self, jobs: &[RawJob], managed: impl Fn(&RawJob) -> bool) -> NodeSeen {
        let (mut held, mut gone) = (0, 0);
        for job in jobs.iter().filter(|job| job.holds()) {
            let here: u32 = job.held.iter().filter(|on| on.node == self.name).map(|on| on.gpus).sum();
            held += here;
            gone += if managed(job) { 0 } else { here };
        }
        let gpus = self.gpus.saturating_sub(gone);
        let mut note = self.note.clone();
        if gone > 0 && note.is_empty() {
            note = format!("{gone} of {} accelerators are held by jobs that were not given to the daemon", self.gpus);
        }
        NodeSeen {
            name: self.name.clone(),
            accelerator: self.accelerator.clone(),
            gpus,
            free: self.gpus.saturating_sub(self.used.max(held)).min(gpus),
            health: self.health,
            note,
            ..NodeSeen::default()
        }
    }
}

/// An answer of `squeue` or `sinfo`.
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

/// Jobs of `squeue --json`.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is not JSON of that shape.
pub fn jobs(json: &str) -> Result<Vec<RawJob>, EngineError> {
    let list = parsed(json, "squeue --json")?.jobs;
    let missing =
        || EngineError::Unreadable { engine: "slurm", what: "squeue --json", problem: "it has no list of jobs".into() };
    list.map(|StreamedEntries(jobs)| jobs).ok_or_else(missing)
}

impl From<&Value> for RawJob {
    fn from(json: &Value) -> Self {
        job(json)
    }
}

impl From<&Value> for RawNode {
    fn from(json: &Value) -> Self {
        node(json)
    }
}

fn job(json: &Value) -> RawJob {
    let nodes = hostlist(&text(&json["nodes"]));
    let node_count = number(&json["node_count"]).max(1) as u32;
    let (per_job, per_node) = (gres(&text(&json["tres_per_job"])).1, gres(&text(&json["tres_per_node"])).1);
    let detail = json["gres_detail"].as_array().cloned().unwrap_or_default();
    let held = nodes.iter().zip(detail.iter()).filter_map(|(node, detail)| {
        let (_, gpus) = gres(detail.as_str().unwrap_or_default());
        (gpus > 0).then(|| OnNode {
            node: node.clone(),
            gpus,
            accelerators: indices(detail.as_str().unwrap_or_default()),
        })
    });
    let reason = text(&json["state_reason"]);
    let held_now = number(&json["priority"]) == 0;
    let states = words(&json["job_state"]);
    let leaving = ["COMPLETING", "REQUEUED", "REQUEUE_HOLD", "STOPPED", "SIGNALING"];
    let state = match states.iter().find(|state| leaving.contains(&state.as_str())).or(states.first()) {
        None => "",
        Some(state) => state,
    };
    let state = match state {
        "PENDING" => RawState::Pending { held: held_now },
        "RUNNING" | "CONFIGURING" => RawState::Running,
        "COMPLETING" | "REQUEUED" | "REQUEUE_HOLD" | "STOPPED" | "SIGNALING" => RawState::Completing,
        "SUSPENDED" => RawState::Suspended,
        "COMPLETED" => RawState::Completed,
        "CANCELLED" => RawState::Cancelled,
        _ => RawState::Failed,
    };
    let mut required_nodes = hostlist(&text(&json["required_nodes"]));
    required_nodes.sort_unstable();
    let limit = number(&json["time_limit"]);
    RawJob {
        id: number(&json["job_id"]) as u64,
        name: text(&json["name"]),
        user: text(&json["user_name"]),
        partition: text(&json["partition"]),
        reservation: text(&json["resv_name"]),
        state,
        reason,
        restarts: number(&json["restart_cnt"]) as u32,
        // Slurm sets the time of submission anew when it requeues a job.
        requeued_s: if number(&json["restart_cnt"]) > 0 { number(&json["submit_time"]) } else { 0 },
        submit_ms: 1000 * number(&json["submit_time"]),
        start_ms: 1000 * number(&json["start_time"]),
        end_ms: 1000 * number(&json["end_time"]),
        exit: exit(&json["exit_code"]),
        // No limit is told as 0 or as a huge number.
        limit_ms: (1..=100_000).contains(&limit).then_some(60_000 * limit),
        required_nodes,
        tasks: number(&json["tasks"]).max(0) as u32,
        cpus_per_task: number(&json["cpus_per_task"]).max(0) as u32,
        asked: if per_job > 0 { per_job } else { per_node * node_count },
        held: held.collect(),
        stated: CommentFacts::parse(&text(&json["comment"])),
        foreign: !CommentFacts::gives(&text(&json["comment"])),
    }
}

/// Of a wait status, or of an object that tells its parts, as newer versions have it.
fn exit(value: &Value) -> Option<Exit> {
    if let Some(code) = value.get("return_code") {
        let signal = number(value["signal"].get("id").or(value["signal"].get("signal_id")).unwrap_or(&Value::Null));
        return Some(if signal > 0 { Exit::Signal(signal as i32) } else { Exit::Code(number(code) as i32) });
    }
    let status = value.as_i64()?;
    Some(if status & 0x7f > 0 { Exit::Signal((status & 0x7f) as i32) } else { Exit::Code((status >> 8) as i32) })
}

/// Nodes that have accelerators: of `sinfo --json`, which lists nodes up to 22.05 only, or of
/// `scontrol show nodes --json`.
///
/// # Errors
/// [`EngineError::Unreadable`] where it is not JSON of that shape.
pub fn nodes(json: &str) -> Result<Vec<RawNode>, EngineError> {
    let list = parsed(json, "sinfo --json")?.nodes;
    let missing =
        || EngineError::Unreadable { engine: "slurm", what: "sinfo --json", problem: "it has no list of nodes".into() };
    let StreamedEntries(mut nodes) = list.ok_or_else(missing)?;
    nodes.retain(|node| node.gpus > 0);
    nodes.sort_by_key(|node| natural(&node.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    Ok(nodes)
}

fn node(json: &Value) -> RawNode {
    let (accelerator, gpus) = gres(&text(&json["gres"]));
    let states = words(&json["state"]);
    let state = states.first().map(|state| state.to_lowercase()).unwrap_or_default();
    let flags = [words(&json["state_flags"]), states].concat();
    let flagged = |flag: &str| flags.iter().any(|known| known == flag);
    // The worst state comes first, because a node may have several flags.
    let health = match () {
        () if state.contains("down") || flagged("FAIL") || flagged("POWERED_DOWN") => NodeHealth::Down,
        () if flagged("NOT_RESPONDING") => NodeHealth::Suspect,
        () if flagged("DRAIN") || flagged("MAINTENANCE") || state.contains("drain") => NodeHealth::Drained,
        () if state.contains("unknown") => NodeHealth::Suspect,
        () => NodeHealth::Up,
    };
    let partitions = json["partitions"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into);
    RawNode {
        partitions: partitions.collect(),
        name: text(&json["name"]),
        accelerator: if accelerator.is_empty() { "gpu".into() } else { accelerator },
        gpus,
        used: gres(&text(&json["gres_used"])).1,
        health,
        idle: state == "idle" && health == NodeHealth::Up && !flagged("COMPLETING"),
        heard: number(&json["slurmd_start_time"]) > 0,
        note: text(&json["reason"]),
    }
}

/// Type and number of accelerators in `gpu:a100:8(S:0-1),mps:a100:800`, `gres:gpu:4`, `gpu:2`.
fn gres(text: &str) -> (String, u32) {
    let mut depth = 0;
    // Commas within brackets are part of a list of indices.
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    let (mut name, mut total) = (String::new(), 0);
    for part in parts {
        let part = part.split('(').next().unwrap_or_default();
        let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
        let words: Vec<&str> = part.split([':', '=']).collect();
        if words.first() != Some(&"gpu") {
            continue;
        }
        total += words.last().and_then(|word| word.parse().ok()).unwrap_or(u32::from(words.len() == 1));
        if let [_, kind, _] = words[..]
            && name.is_empty()
        {
            name = kind.into();
        }
    }
    (name, total)
}

/// The indices in `gpu:a100:3(IDX:0-1,5)`.
fn indices(text: &str) -> Vec<String> {
    let list = text.split_once("IDX:").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(list, _)| list);
    list.split(',').flat_map(range).collect()
}

/// `3-5` or `4`, with the zeros in front kept.
fn range(text: &str) -> Vec<String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u32>(), last.parse::<u32>()) {
        // The bound keeps a damaged range from filling the memory.
        (Ok(from), Ok(to)) if to >= from && to - from < 100_000 => {
            (from..=to).map(|number| format!("{number:0width$}", width = first.len())).collect()
        }
        _ => Vec::new(),
    }
}

/// The names in `n[1-3,07],login,gpu2`.
pub(super) fn hostlist(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (prefix, after) = rest.split_at(end);
        match after.strip_prefix('[').and_then(|after| after.split_once(']')) {
            Some((list, after)) => {
                names.extend(list.split(',').flat_map(range).map(|number| format!("{prefix}{number}")));
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            None => {
                names.extend((!prefix.is_empty()).then(|| prefix.to_string()));
                rest = after.strip_prefix(',').unwrap_or_default();
            }
        }
    }
    names
}

/// So that n10 comes after n9.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    // The name itself tells n1 from n01.
    (stem.into(), number.parse().unwrap_or(0), name.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn that_nothing_is_told_is_not_that_there_is_nothing() {
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
            jobs(&format!(r#"{{"errors":[],"jobs":[{job}]}}"#)).unwrap().remove(0)
        };
        assert!(told("").foreign && told("mine").seen().hands_off);
        assert!(!told("goodput").foreign && !told("goodput;gpus=2").seen().hands_off);
        let node = RawNode { name: "n1".into(), gpus: 8, used: 6, ..RawNode::default() };
        let holds =
            |gpus, job: RawJob| RawJob { held: vec![OnNode { node: "n1".into(), gpus, ..OnNode::default() }], ..job };
        let both = [holds(4, told("")), holds(2, told("goodput"))];
        let seen = node.seen(&both, |job| !job.foreign);
        assert_eq!((seen.gpus, seen.free), (4, 2), "{}", seen.note);
        assert!(seen.note.starts_with("4 of 8"), "{}", seen.note);
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
            jobs(&format!(r#"{{"jobs":[{job}],"errors":[],"warnings":[]}}"#)).unwrap().remove(0)
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

    #[test]
    fn lists_of_slurm_are_understood() {
        assert_eq!(hostlist("n[1-3,07],login,gpu2"), ["n1", "n2", "n3", "n07", "login", "gpu2"]);
        assert_eq!(hostlist(""), Vec::<String>::new());
        assert_eq!(indices("gpu:a100:3(IDX:0-1,5)"), ["0", "1", "5"]);
        assert_eq!(indices("gpu:a100:3(IDX:N/A)"), Vec::<String>::new());
        for (text, expected) in [
            ("gpu:a100:8(S:0-1),mps:a100:800", ("a100", 8)),
            ("gpu:a100:2(IDX:0,3),gpu:a100:1(IDX:5),mps:a100:0(IDX:N/A)", ("a100", 3)),
            ("gres:gpu:4", ("", 4)),
            ("gpu", ("", 1)),
            ("mps:100", ("", 0)),
            ("gres/gpu=16", ("", 16)),
        ] {
            assert_eq!(gres(text), (expected.0.to_string(), expected.1), "{text}");
        }
        assert!(natural("n9") < natural("n10"));
    }
}
