//! Reasons why jobs wait. A pending job always has a reason.

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::tenant::Usage;
use goodput_env::view::ClusterView;
use serde::{Deserialize, Serialize};

use crate::daemon::guard::rules::Rule;

/// Reason for the state of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// The job runs.
    Running,
    /// An order for it is under way.
    Ordered(String),
    /// The daemon leaves the job alone, because an administrator works on it.
    HandsOff,
    /// The policy starts it, and the mode keeps the daemon from acting.
    Mode(String),
    /// The policy starts it, and the guard left that out.
    Guard(Rule),
    /// The job asks for more accelerators than the cluster has in service.
    TooLarge {
        /// Fewest accelerators it runs on.
        min: u32,
        /// Accelerators of one type that the cluster has.
        most: u32,
    },
    /// No type of accelerator has enough free.
    NoCapacity {
        /// Fewest accelerators it runs on.
        min: u32,
        /// Most that are free of one type.
        free: u32,
    },
    /// The quota of the job's tenant is used up.
    Quota,
    /// There is room, and the policy keeps it for others or for later.
    Policy(String),
    /// The job came after the last decision.
    NotDecided,
    /// The job is over: how it ended, and in the engine's words why.
    Ended(String, String),
}

impl WaitReason {
    /// The code that programs go by.
    pub fn code(&self) -> String {
        match self {
            Self::Running => "running".into(),
            Self::Ordered(_) => "ordered".into(),
            Self::HandsOff => "hands-off".into(),
            Self::Mode(_) => "mode".into(),
            Self::Guard(rule) => format!("guard:{}", rule.name()),
            Self::TooLarge { .. } => "too-large".into(),
            Self::NoCapacity { .. } => "no-capacity".into(),
            Self::Quota => "quota".into(),
            Self::Policy(_) => "policy".into(),
            Self::NotDecided => "not-decided".into(),
            Self::Ended(how, _) => how.clone(),
        }
    }

    /// Reason as a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Running => "it runs".into(),
            Self::Ordered(what) => format!("an order is under way: {what}"),
            Self::HandsOff => {
                "the daemon leaves the job alone: an administrator works on it, or the job was not given to the daemon"
                    .into()
            }
            Self::Mode(mode) => format!("the policy starts it; the daemon does not act in mode {mode}"),
            Self::Guard(rule) => format!("the policy changes it; the guard left that out: {}", rule.name()),
            Self::TooLarge { min, most } => {
                format!("it needs {min} accelerators of one type; the cluster has {most} in service")
            }
            Self::NoCapacity { min, free } => format!("it needs {min} accelerators of one type; {free} are free"),
            Self::Quota => "its tenant's quota is used up".into(),
            Self::Policy(name) => format!("there is room; {name} keeps it for other jobs or for later"),
            Self::NotDecided => "it came after the last decision".into(),
            Self::Ended(how, why) => {
                let end = match how.as_str() {
                    "done" => "it ran to its end",
                    "cancelled" => "it was cancelled",
                    _ => "it failed, and is not tried again",
                };
                if why.is_empty() { end.into() } else { format!("{end}: {why}") }
            }
        }
    }
}

/// Room in a cluster, worked out once for all jobs that wait.
pub struct FreeRoom<'a> {
    view: ClusterView<'a>,
    /// Most accelerators of one type that are in service, and most that are free.
    most: u32,
    free: u32,
    /// Accelerators that tenants hold; `None` without quotas.
    usage: Option<Usage>,
}

impl<'a> FreeRoom<'a> {
    /// The room that `view` shows.
    pub fn of(view: ClusterView<'a>) -> Self {
        let kinds = view.cluster().type_ids();
        let of_kind = |kind: TypeId, what: &dyn Fn(NodeId) -> u32| -> u32 {
            let nodes = view.cluster().node_ids();
            nodes.filter(|&node| view.cluster().type_of(node) == kind).map(what).sum()
        };
        let in_service = kinds.clone().map(|kind| of_kind(kind, &|at| view.cluster().nodes[at.index()].gpus));
        let most = in_service.max().unwrap_or(0);
        let free = kinds.map(|kind| of_kind(kind, &|at| view.free_on(at))).max().unwrap_or(0);
        let usage = view.quotas().map(|tree| {
            let mut usage = Usage::default();
            usage.reset(tree);
            for job in view.jobs().filter(|job| job.gpus() > 0 && (job.request().tenant as usize) < tree.tenants()) {
                tree.add(&mut usage, job.request().tenant as usize, job.kind(), u64::from(job.gpus()));
            }
            usage
        });
        Self { view, most, free, usage }
    }

    /// Reason why `job` waits after a decision of `policy` that gave it nothing.
    pub fn why_waiting(&self, job: JobId, policy: &str) -> WaitReason {
        let Some(job) = self.view.job(job) else { return WaitReason::NotDecided };
        let (min, most, free) = (job.min_gpus(), self.most, self.free);
        match () {
            () if min > most => WaitReason::TooLarge { min, most },
            () if min > free => WaitReason::NoCapacity { min, free },
            () if !self.has_quota(job.request().tenant, min) => WaitReason::Quota,
            () => WaitReason::Policy(policy.into()),
        }
    }

    /// Whether a tenant may hold so many accelerators more, of some type.
    fn has_quota(&self, tenant: u32, gpus: u32) -> bool {
        let (Some(tree), Some(usage)) = (self.view.quotas(), &self.usage) else { return true };
        let (tenant, mut kinds) = (tenant as usize, self.view.cluster().type_ids());
        tenant < tree.tenants() && kinds.any(|kind| tree.available(usage, tenant, kind) >= i64::from(gpus))
    }
}
