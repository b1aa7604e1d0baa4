//! Job as `squeue --json` tells it.

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use serde_json::Value;

use super::lists::{gres, hostlist, indices, indices_of};
use super::{number, text, words};
use crate::engine::slurm::facts_key::FactsKey;
use crate::engine::slurm::id::SlurmJobId;
use crate::engine::slurm::stated::CommentFacts;
use crate::engine::{Attempt, JobPhase, JobSeen, OnNode};
use crate::job::Exit;

/// The state of a job, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawState {
    /// The job waits; a held job waits until a release.
    Pending {
        /// Whether the user or an operator holds the job back.
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

impl RawState {
    /// Whether the job never runs again by itself.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A job as Slurm tells it.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each is Slurm's field of that name")]
pub struct RawJob {
    pub id: SlurmJobId,
    /// Number of the record in slurmctld.
    pub number: u64,
    /// Name of the record for `scontrol`: the array's for a task that waits with others.
    pub record: SlurmJobId,
    /// Tasks of an array that wait together in one record, which has the number of the array.
    pub waiting_tasks: Vec<u32>,
    /// Most tasks of its array that may run at once; 0 where there is no such limit.
    pub array_limit: u32,
    /// Whether as many tasks of its array run or start as may.
    pub throttled: bool,
    pub name: String,
    pub user: String,
    /// Number of the user.
    pub uid: u32,
    pub account: String,
    pub qos: String,
    pub partition: String,
    pub reservation: String,
    pub state: RawState,
    pub reason: String,
    /// Whether Slurm put it back into the queue, held, because its nodes could not launch it.
    pub launch_failed: bool,
    pub restarts: u32,
    /// The second in which it was put back into the queue, of the Unix epoch; 0 where it never was.
    pub requeued_s: i64,
    pub submit_ms: i64,
    pub start_ms: i64,
    pub end_ms: i64,
    /// End of the job's latest attempt, if that attempt has ended.
    pub exit: Option<Exit>,
    /// Minutes to seconds: its time limit, where it has one.
    pub limit_ms: Option<i64>,
    pub required_nodes: Vec<String>,
    /// Number of accelerators that the job asks for in all.
    pub asked: u32,
    /// Tasks that it asks for in all.
    pub tasks: u32,
    /// Processors that it asks for, for each task.
    pub cpus_per_task: u32,
    /// Processors that it asks for, for each accelerator; 0 where it does not ask that way.
    pub cpus_per_gpu: u32,
    pub held: Vec<OnNode>,
    /// Types of the accelerators of `held`, entry by entry; empty where `gres.conf` names none.
    pub held_types: Vec<String>,
    pub comment: String,
    pub admin_comment: String,
    pub stated: CommentFacts,
    /// Whether the job was not given to the daemon: its comment does not begin with `goodput`, and no
    /// queue of the daemon has it.
    pub foreign: bool,
}

/// Beginnings of the reasons for which a job waits that do not pass when accelerators become free.
const OTHER_REASONS: [&str; 18] = [
    "Account",
    "Assoc",
    "BadConstraints",
    "BeginTime",
    "BurstBuffer",
    "DeadLine",
    "Dependency",
    "Invalid",
    "JobArrayTaskLimit",
    "JobHeld",
    "JobHoldMaxRequeue",
    "JobLaunchFailure",
    "Licenses",
    "NodeDown",
    "Partition",
    "QOS",
    "ReqNodeNotAvail",
    "Reservation",
];

/// Reason why a job is left alone.
const FOREIGN: &str =
    "it was not given to the daemon: its comment does not begin with goodput, or its user holds it in a given queue";

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

    /// Takes up what its comments say, as far as they are believed.
    pub(super) fn believe(&mut self, key: &FactsKey) {
        let said = key.read(&self.comment, self.uid);
        // Operators alone write this one.
        let ordered = CommentFacts::parse(&self.admin_comment);
        self.stated = CommentFacts {
            submit_ms: ordered.submit_ms.or(said.submit_ms),
            tenant: ordered.tenant.or(said.tenant),
            owner: ordered.owner.or(said.owner),
            priority: ordered.priority.or(said.priority),
            ..said
        };
        self.foreign = !CommentFacts::gives(&self.comment);
    }

    /// The tasks of an array that wait in this record, or the job itself.
    pub(super) fn tasks_apart(mut self) -> Vec<Self> {
        let (tasks, array) = (std::mem::take(&mut self.waiting_tasks), self.id.number());
        if tasks.is_empty() {
            return vec![self];
        }
        tasks.into_iter().map(|task| Self { id: SlurmJobId::task(array, task), ..self.clone() }).collect()
    }

    /// Whether the job holds accelerators.
    pub fn holds(&self) -> bool {
        matches!(self.state, RawState::Running | RawState::Completing | RawState::Suspended)
    }

    /// Whether the job is released and cannot start as it is.
    pub fn is_stuck(&self) -> bool {
        matches!(self.reason.as_str(), "BadConstraints" | "BeginTime" | "ReqNodeNotAvail")
    }

    /// Whether the job waits for something other than free accelerators: a person holds it, or it waits for another
    /// job, a time, a limit, a reservation or a partition.
    pub fn waits_for_else(&self) -> bool {
        let is_other = || OTHER_REASONS.iter().any(|reason| self.reason.starts_with(reason));
        match self.state {
            RawState::Pending { held } => held || is_other(),
            _ => false,
        }
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
        let CommentFacts { gpus, min, max, priority, duration_ms, application, tenant, owner, batch, .. } =
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
            limit: self.limit_ms.map(SimTime::from_millis),
            ..JobRequest::default()
        };
        let duration = SimTime::from_millis(duration_ms.or(self.limit_ms).unwrap_or(0));
        let number = self.starts().saturating_sub(1);
        let attempt = Attempt { number, placement: self.held.clone(), since_ms: self.start_ms, ..Attempt::default() };
        let none = phase == JobPhase::Running && self.held.is_empty();
        let failed = self.stated.failed.len() as u32;
        let note = match self.retry() {
            Some(retry) => retry.note,
            None if self.state == RawState::Failed && self.stated.retries.is_some() => {
                format!("{}: failed more often than was forgiven ({})", self.reason, self.stated.retries.unwrap_or(0))
            }
            None if self.foreign => FOREIGN.into(),
            None if self.throttled => {
                format!("as many tasks of its array run as may: {} by its own --array", self.array_limit)
            }
            None if none => "it runs, and no accelerator is allocated: see gres.conf".into(),
            None if self.reason == "None" => String::new(),
            None => self.reason.clone(),
        };
        JobSeen {
            key: self.id.to_string(),
            spec: JobSpec { request, work: Work::Fixed { duration } },
            application,
            tenant: tenant.unwrap_or_else(|| self.account.clone()),
            // The daemon hands jobs of its callers in as its own user.
            owner: owner.unwrap_or_else(|| self.user.clone()),
            phase,
            starts: self.starts(),
            attempt: phase.holds().then_some(attempt),
            failures: failed + u32::from(self.state == RawState::Failed && self.meaning().uses_budget()),
            hands_off: self.foreign || self.throttled || phase == JobPhase::Held && self.reason == "JobHeldAdmin",
            // What Slurm put back itself, because a node could not launch it, is pending already.
            ended_itself: phase == JobPhase::Held && (self.state == RawState::Failed || self.launch_failed),
            members: None,
            done: None,
            epoch: 0,
            batch,
            history: None,
            note,
        }
    }
}

impl From<&Value> for RawJob {
    fn from(json: &Value) -> Self {
        job(json)
    }
}

fn job(json: &Value) -> RawJob {
    let nodes = hostlist(&text(&json["nodes"]));
    let node_count = number(&json["node_count"]).max(1) as u32;
    let (per_job, per_node) = (gres(&text(&json["tres_per_job"])).1, gres(&text(&json["tres_per_node"])).1);
    let detail = json["gres_detail"].as_array().cloned().unwrap_or_default();
    let held = nodes.iter().zip(detail.iter()).filter_map(|(node, detail)| {
        let detail = detail.as_str().unwrap_or_default();
        let (kind, gpus) = gres(detail);
        (gpus > 0).then(|| (OnNode { node: node.clone(), gpus, accelerators: indices(detail) }, kind))
    });
    let (held, held_types) = held.unzip();
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
    let (array, task) = (number(&json["array_job_id"]).max(0) as u64, index(&json["array_task_id"]));
    let id = task.filter(|_| array > 0).map(|task| SlurmJobId::task(array, task));
    let waiting = if id.is_none() { indices_of(&text(&json["array_task_string"])) } else { Vec::new() };
    let record = number(&json["job_id"]).max(0) as u64;
    let id = id.unwrap_or_else(|| SlurmJobId::from(record));
    RawJob {
        id,
        number: record,
        record: id,
        waiting_tasks: waiting,
        array_limit: number(&json["array_max_tasks"]).max(0) as u32,
        throttled: false,
        name: text(&json["name"]),
        user: text(&json["user_name"]),
        uid: number(&json["user_id"]) as u32,
        account: text(&json["account"]),
        qos: text(&json["qos"]),
        partition: text(&json["partition"]),
        reservation: text(&json["resv_name"]),
        state,
        reason,
        launch_failed: text(&json["state_description"]).starts_with("launch failed"),
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
        cpus_per_gpu: gres(&text(&json["cpus_per_tres"])).1,
        asked: [per_job, per_node * node_count].into_iter().find(|gpus| *gpus > 0).unwrap_or_else(|| counted(json)),
        held,
        held_types,
        comment: text(&json["comment"]),
        admin_comment: text(&json["admin_comment"]),
        stated: CommentFacts::default(),
        foreign: true,
    }
}

/// Accelerators that a job asks for by task or by socket: those of its list of all resources, `cpu=2,gres/gpu=4`.
fn counted(json: &Value) -> u32 {
    let all = text(&json["tres_req_str"]);
    all.split(',').find_map(|resource| resource.strip_prefix("gres/gpu=")?.parse().ok()).unwrap_or(0)
}

/// A number that may be absent, as an object with a flag or as `null`.
fn index(value: &Value) -> Option<u32> {
    let told = value.get("set").is_none_or(|set| set == &Value::Bool(true));
    (told && !value.is_null()).then(|| number(value) as u32)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_waiting_jobs_do_not_wait_for_accelerators() {
        let waits = |held: bool, reason: &str| {
            let state = RawState::Pending { held };
            RawJob { state, reason: reason.into(), ..RawJob::default() }.waits_for_else()
        };
        for reason in ["None", "Priority", "Resources", ""] {
            assert!(!waits(false, reason) && waits(true, reason), "{reason}");
        }
        for reason in [
            "Dependency",
            "DependencyNeverSatisfied",
            "BeginTime",
            "QOSMaxGRESPerUser",
            "AssocGrpGRES",
            "JobArrayTaskLimit",
            "Licenses",
            "Reservation",
            "BadConstraints",
            "ReqNodeNotAvail, UnavailableNodes:n1",
            "PartitionInactive",
            "PartitionTimeLimit",
        ] {
            assert!(waits(false, reason), "{reason}");
        }
        let runs = RawJob { state: RawState::Running, reason: "Dependency".into(), ..RawJob::default() };
        assert!(!runs.waits_for_else());
    }
}
