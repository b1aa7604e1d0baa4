//! A second policy beside the one that acts: what would come of either, by simulation from what is
//! seen now.
//!
//! Both are rolled forward from the same observation with fresh instances: jobs keep their age,
//! what they have attained and the speeds that were fitted to their reports, and a change of
//! accelerators costs a restart. Unknown facts are assumed, and said with every result
//! ([`Assumed`]): no job arrives, nothing fails, and remaining work is what users stated; a job
//! that said nothing has an hour, and one that has outlived its time is thought to be half way. So
//! a result compares two policies on the jobs at hand; it foretells nothing.

mod differences;
mod rollout;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use goodput_agents::policies::external::ExternalProgram;
use goodput_configs::live::policy::ShadowConfig;
use goodput_env::cluster::Cluster;
use goodput_env::policy::Policy;
use goodput_env::scenario::Information;
use serde::{Deserialize, Serialize};

use crate::engine::OnNode;
pub use differences::{JobDifference, JobDifferences};
pub use rollout::{Assumed, RolloutOutcome, RolloutStart};

/// Comparison of two policies by simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShadowComparison {
    /// Time of the comparison, seconds of the policy's clock.
    pub at_secs: f64,
    /// Horizon of the comparison, seconds.
    pub horizon_secs: f64,
    /// Assumptions of the simulation.
    pub assumed: Assumed,
    /// Of the policy that acts.
    pub incumbent: RolloutOutcome,
    /// Of the other.
    pub candidate: RolloutOutcome,
    /// Placements of the candidate now that differ from those of the incumbent, by key of the job;
    /// empty where the candidate lets the job wait.
    pub differs: BTreeMap<String, Vec<OnNode>>,
    /// Jobs that one of the two completes earlier.
    #[serde(default)]
    pub completions: JobDifferences,
    /// Duration of the comparison, milliseconds.
    pub took_ms: f64,
}

impl ShadowComparison {
    /// In one line.
    pub fn words(&self) -> String {
        let one = |rolled: &RolloutOutcome| {
            let left = if rolled.unfinished > 0 { format!(", {} left", rolled.unfinished) } else { String::new() };
            format!("{} {:.0} s, {} restarts{left}", rolled.policy, rolled.mean_jct_secs, rolled.restarts)
        };
        let change = 100.0 * (self.candidate.mean_jct_secs / self.incumbent.mean_jct_secs.max(1e-9) - 1.0);
        format!(
            "mean completion of {} jobs by simulation over {:.0} s: {}; {} ({change:+.1} %); {}",
            self.assumed.jobs,
            self.horizon_secs,
            one(&self.incumbent),
            one(&self.candidate),
            self.assumed.words(),
        )
    }
}

/// A fresh instance of a policy.
pub struct RolloutPolicy {
    /// Policy that decides in the run.
    pub policy: Box<dyn Policy>,
    /// Knowledge of jobs that is shown to the policy.
    pub information: Information,
    /// Program that the policy asks, where it is one in another process.
    pub program: Option<ExternalProgram>,
}

/// Makes a fresh instance of a policy for a cluster, or says why there can be none.
pub type Maker = Box<dyn Fn(&Cluster) -> Result<RolloutPolicy, String> + Send>;

/// Compares on a thread of its own, one question at a time.
#[derive(Debug)]
pub struct Shadow {
    settings: ShadowConfig,
    ask: mpsc::Sender<RolloutStart>,
    answers: mpsc::Receiver<Result<ShadowComparison, String>>,
    /// A question is under way.
    busy: bool,
    asked: Option<Instant>,
}

impl Shadow {
    /// Compares `incumbent` and `candidate`, each with its name.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(
        settings: ShadowConfig,
        incumbent: (String, Maker),
        candidate: (String, Maker),
    ) -> std::io::Result<Self> {
        let (ask, questions) = mpsc::channel::<RolloutStart>();
        let (answer, answers) = mpsc::channel();
        std::thread::Builder::new().name("shadow".into()).spawn(move || {
            for scene in questions {
                let compared = catch_unwind(AssertUnwindSafe(|| rollout::compare(&scene, &incumbent, &candidate)));
                let compared = compared.unwrap_or_else(|_| Err("a policy panicked".into()));
                if answer.send(compared).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { settings, ask, answers, busy: false, asked: None })
    }

    /// Whether another comparison is due.
    pub fn is_due(&self, now: Instant) -> bool {
        let every = Duration::from_secs_f64(self.settings.every_secs);
        !self.busy && self.asked.is_none_or(|asked| now.duration_since(asked) >= every)
    }

    /// Settings of the comparisons.
    pub fn settings(&self) -> &ShadowConfig {
        &self.settings
    }

    /// Asks for a comparison from `scene` on.
    pub fn ask(&mut self, scene: RolloutStart, now: Instant) {
        (self.busy, self.asked) = (self.ask.send(scene).is_ok(), Some(now));
    }

    /// The answer, where there is one.
    pub fn answer(&mut self) -> Option<Result<ShadowComparison, String>> {
        let answer = self.answers.try_recv().ok()?;
        self.busy = false;
        Some(answer)
    }
}
