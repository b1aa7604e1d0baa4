//! A job, as it is wanted.

use goodput_configs::live::name::JobName;
use serde::{Deserialize, Serialize};

use super::membership::{ElasticMember, Membership};
use super::nodes::AgentNodes;
use crate::agent::api::AttemptState;
use crate::engine::{AcceleratorShare, Attempt, JobPhase, JobSeen, MembersSeen, OnNode, Submission};
use crate::job::{Fence, NodeLimits, Program, RetryBudget, RetryHistory, adaptdl};

/// A job of the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveJob {
    /// Permanent identity of the job: its name and the time of its submission.
    pub key: String,
    /// Submission of the user.
    pub submission: Submission,
    /// Service that the job is a replica of; `None` for a training job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_of: Option<String>,
    /// Time of submission, milliseconds since the Unix epoch.
    pub submitted_ms: i64,
    /// Phase of the job.
    pub phase: JobPhase,
    /// Starts so far.
    pub starts: u32,
    /// The attempt that is to run.
    pub current: Option<Current>,
    /// Part of each accelerator it was placed on last.
    pub share: Option<AcceleratorShare>,
    /// Failures of the job.
    pub retry: RetryHistory,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Earliest time of the next start, milliseconds since the Unix epoch.
    pub not_before_ms: i64,
    /// Whether its user cancelled the job.
    pub cancelled: bool,
    /// Time at which the job was over.
    pub ended_ms: Option<i64>,
    /// Number of steps that the job reported.
    pub steps: Option<u64>,
    /// Number of epochs that the job reported.
    pub epoch: u32,
    /// Reason why the job waits or ended as it did.
    pub note: String,
}

/// An attempt that is to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Current {
    /// Number of the attempt.
    pub number: u32,
    /// Fence of the attempt.
    pub fence: Fence,
    /// Placement of the attempt, with the accelerators by UUID; rank 0 first.
    pub placement: Vec<OnNode>,
    /// Address and port of rank 0.
    pub master: (String, u16),
    /// Since when, milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// Whether the attempt is to end: nodes that have not started it must not.
    pub leaving: bool,
    /// Members of an elastic attempt; `None` where the attempt runs once a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
}

/// One process of an attempt: an elastic attempt has one for each member, any other attempt one on each node.
pub struct AttemptProcess<'a> {
    /// Name of the process on its node.
    pub id: String,
    /// Accelerators of the process.
    pub on: &'a OnNode,
    /// Whether the process is to end: a node that has not started it must not.
    pub leaving: bool,
    /// Member that the process is; `None` where the attempt runs once a node.
    pub member: Option<&'a ElasticMember>,
}

impl Current {
    /// Processes of the attempt of the job `key`, rank 0 first.
    pub fn parts<'a>(&'a self, key: &str) -> Vec<AttemptProcess<'a>> {
        let number = self.number;
        let Some(membership) = &self.membership else {
            let process =
                |on| AttemptProcess { id: format!("{key}.{number}"), on, leaving: self.leaving, member: None };
            return self.placement.iter().map(process).collect();
        };
        let process = |member: &'a ElasticMember| {
            let ElasticMember { number: of, on, .. } = member;
            let leaving = self.leaving || membership.stops(member);
            AttemptProcess { id: format!("{key}.{number}.{of}"), on, leaving, member: Some(member) }
        };
        membership.members().iter().map(process).collect()
    }
}

impl LiveJob {
    /// A job that is handed in.
    pub fn new(submission: &Submission, now_ms: i64, number: usize) -> Result<Self, String> {
        let name = &submission.spec.request.name;
        let key = format!("{}-{now_ms:x}-{number:x}", name.chars().take(40).collect::<String>());
        JobName::new(key.as_str()).map_err(|error| error.to_string())?;
        let live = Self {
            key,
            submission: submission.clone(),
            replica_of: None,
            submitted_ms: now_ms,
            phase: JobPhase::Held,
            starts: 0,
            current: None,
            share: None,
            retry: RetryHistory::default(),
            failures: 0,
            not_before_ms: 0,
            cancelled: false,
            ended_ms: None,
            steps: None,
            epoch: 0,
            note: String::new(),
        };
        live.program()?.check().map_err(|error| error.to_string())?;
        Ok(live)
    }

    /// Program that the agents are to run.
    pub fn program(&self) -> Result<Program, String> {
        let name = JobName::new(self.key.as_str()).map_err(|error| error.to_string())?;
        let submission = &self.submission;
        Ok(Program {
            env: submission.environment.clone(),
            cwd: submission.directory.clone(),
            grace_s: submission.grace_s,
            checkpoint_dir: submission.checkpoint_dir.clone(),
            ..Program::new(name, submission.command.clone())
        })
    }

    /// Limits of an attempt on a node where it holds `gpus` accelerators.
    pub fn limits(&self, gpus: u32) -> NodeLimits {
        let asked = &self.submission.resources;
        NodeLimits {
            cpus: asked.cpus_per_gpu.map(|cpus| cpus.saturating_mul(gpus)),
            memory_mib: asked.memory_per_gpu_mib.map(|mib| mib.saturating_mul(u64::from(gpus))),
        }
    }

    /// Number of failures that the job may have.
    pub fn budget(&self) -> RetryBudget {
        self.submission.retry
    }

    /// Whether members of the current attempt join and leave while it runs.
    pub fn changes_in_place(&self) -> bool {
        self.current.as_ref().is_some_and(|current| !current.leaving && current.membership.is_some())
    }

    /// Name of the current attempt of a replica on its node.
    pub fn attempt_id(&self) -> Option<String> {
        self.current.as_ref().map(|current| format!("{}.{}", self.key, current.number))
    }

    /// As the daemon is told.
    pub fn seen(&self, nodes: &AgentNodes) -> JobSeen {
        let mut spec = self.submission.spec.clone();
        spec.request.submit = goodput_env::time::SimTime::from_millis(self.submitted_ms);
        let processes = self.current.iter().flat_map(|current| current.parts(&self.key));
        let states: Vec<_> = processes.map(|process| nodes.attempt(&process.on.node, &process.id)).collect();
        let is = |wanted: fn(&AttemptState) -> bool| states.iter().flatten().any(|status| wanted(&status.state));
        let membership = self.current.as_ref().and_then(|current| current.membership.as_ref());
        let phase = match &self.current {
            None => self.phase,
            Some(current) if current.leaving => JobPhase::Stopping,
            // An elastic attempt runs while its members come and go.
            Some(_) if membership.is_some() && states.iter().any(Option::is_some) => JobPhase::Running,
            Some(_) if is(|state| *state == AttemptState::Stopping) => JobPhase::Stopping,
            Some(_) if states.iter().all(Option::is_some) => JobPhase::Running,
            Some(_) => JobPhase::Released,
        };
        let attempt = self.current.as_ref().map(|current| Attempt {
            number: current.number,
            placement: current.placement.clone(),
            cards: self
                .share
                .map_or_else(Vec::new, |_| current.placement.first().map_or(Vec::new(), |on| nodes.numbers(on))),
            since_ms: current.since_ms,
        });
        let hints = states.iter().flatten().find_map(|status| status.hints.as_ref());
        let steps = matches!(spec.work, goodput_env::job::Work::Steps { .. });
        JobSeen {
            key: self.key.clone(),
            spec,
            application: self.submission.application.clone(),
            tenant: self.submission.tenant.clone(),
            owner: self.submission.owner.clone(),
            phase,
            starts: self.starts,
            attempt,
            failures: self.failures,
            hands_off: false,
            // No hand but the daemon's reaches an attempt under agents.
            ended_itself: self.current.is_none() && self.starts > 0,
            done: self.steps.filter(|_| steps).map(|steps| steps as f64),
            epoch: self.epoch,
            members: membership.map(|all| if all.is_settled() { MembersSeen::Settled } else { MembersSeen::Changing }),
            batch: self.submission.batch.or(hints.and_then(adaptdl::limits)),
            history: None,
            note: self.note.clone(),
        }
    }
}
