//! Job as `squeue --json` tells it.

use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use serde_json::Value;

use super::lists::{gres, hostlist, indices};
use super::{number, text, words};
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

    /// Whether the job holds accelerators.
    pub fn holds(&self) -> bool {
        matches!(self.state, RawState::Running | RawState::Completing | RawState::Suspended)
    }

    /// Whether the job is released and cannot start as it is.
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
            // The daemon hands jobs of its callers in as its own user.
            owner: owner.unwrap_or_else(|| self.user.clone()),
            phase,
            starts: self.starts(),
            attempt: phase.holds().then_some(attempt),
            failures: failed + u32::from(self.state == RawState::Failed && self.meaning().uses_budget()),
            hands_off: self.foreign || phase == JobPhase::Held && self.reason == "JobHeldAdmin",
            // What Slurm put back itself, because a node could not launch it, is pending already.
            ended_itself: phase == JobPhase::Held && (self.state == RawState::Failed || self.launch_failed),
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
