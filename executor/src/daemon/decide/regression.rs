//! Regression of the queueing delay after a change of the policy, and the policy before again.
//!
//! The mark is a percentile of the delays before the change, plus a slack. A job that was submitted since the
//! change is judged once the mark is behind it: late where it had not started by then. So a policy that lets
//! jobs starve is found out too, and no job is counted before it could be late. Without a change about one
//! job in ten is late where the percentile is 90; with at least 30 jobs, more than 30 % of them come about by
//! chance in one case of two thousand.

use goodput_configs::live::rollback::RollbackConfig;

use crate::daemon::durability::journal::{ChangeVerb, JobStart, PolicyChange};
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{ClusterSnapshot, Engine};

/// Starts before a change that make the mark, at most.
const BEFORE: usize = 1000;
/// Jobs since a change that are judged, at most.
const SINCE: usize = 5000;

/// Queueing delays before and after a change of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Delays of the jobs that began before the change, milliseconds of the engine's clock.
    pub before_ms: Vec<i64>,
    /// Jobs submitted since: time since submission, and the delay where the job has begun.
    pub since_ms: Vec<(i64, Option<i64>)>,
}

/// Judgement of the delays since a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayVerdict {
    /// Too few jobs before the change, or since, to judge.
    TooFew {
        /// Jobs before the change.
        before: usize,
        /// Jobs since the change that could be judged.
        since: usize,
    },
    /// Jobs are judged: `late` of `judged` waited past the mark.
    Judged {
        /// The mark, milliseconds.
        mark_ms: i64,
        /// Jobs that waited past the mark.
        late: usize,
        /// Jobs that could be judged.
        judged: usize,
        /// Whether that is a regression.
        regression: bool,
    },
}

/// Judges delays by a rule; `slack_ms` is the slack on the engine's clock.
pub fn judge(rule: &RollbackConfig, slack_ms: i64, delays: &Delays) -> DelayVerdict {
    let mut before = delays.before_ms.clone();
    before.sort_unstable();
    let least = rule.jobs;
    if before.len() < least {
        return DelayVerdict::TooFew { before: before.len(), since: delays.since_ms.len() };
    }
    let at = (rule.percentile / 100.0 * before.len() as f64).ceil() as usize;
    let mark_ms = before[at.clamp(1, before.len()) - 1] + slack_ms;
    let ripe = delays.since_ms.iter().filter(|(age, _)| *age > mark_ms);
    let (mut judged, mut late) = (0, 0);
    for (_, delay) in ripe {
        judged += 1;
        late += usize::from(delay.is_none_or(|delay| delay > mark_ms));
    }
    if judged < least {
        return DelayVerdict::TooFew { before: before.len(), since: judged };
    }
    let regression = late as f64 > rule.late_percent / 100.0 * judged as f64;
    DelayVerdict::Judged { mark_ms, late, judged, regression }
}

impl<E: Engine> Daemon<E> {
    /// Goes back to the policy before where jobs wait longer since an operator set the present one.
    pub(super) async fn watch_delays(&mut self, snapshot: &ClusterSnapshot) -> Result<(), DaemonError> {
        let rule = self.settings.rollback.clone();
        let Some(change) = self.kept_policy.clone().filter(|change| change.verb == ChangeVerb::Set) else {
            return Ok(());
        };
        let on_engine = |secs: f64| (1e3 * secs / self.settings.cycle.speedup) as i64;
        if !rule.automatic || snapshot.at_ms - change.engine_ms > on_engine(rule.watch_secs) {
            return Ok(());
        }
        let slack_ms = on_engine(rule.slack_secs);
        let delays = self.delays(&change, snapshot.at_ms)?;
        let DelayVerdict::Judged { mark_ms, late, judged, regression: true } = judge(&rule, slack_ms, &delays) else {
            return Ok(());
        };
        let secs = mark_ms as f64 / 1e3 * self.settings.cycle.speedup;
        let text = format!(
            "{late} of {judged} jobs submitted since {} decides waited for more than {secs:.0} s, which {:.0} % of the jobs before did not",
            change.name, rule.percentile
        );
        match self.roll_back_policy("daemon", &text, ChangeVerb::Regression).await {
            Ok(back) => self.alert("regression", &format!("{text}; {} decides again", back.name)),
            // What rules is not known; the next cycle finds out, and a regression is judged again.
            Err(error @ (DaemonError::Etcd(_) | DaemonError::LeaseMode(_))) => return Err(error),
            Err(error) => {
                // One alert a change: the operator decides now.
                self.kept_policy = Some(PolicyChange { verb: ChangeVerb::Regression, ..change });
                self.alert("regression", &format!("{text}; the policy before cannot decide: {error}"));
            }
        }
        Ok(())
    }

    fn delays(&self, change: &PolicyChange, now_ms: i64) -> Result<Delays, DaemonError> {
        let delay = |job: &JobStart| job.start_ms - job.submit_ms;
        let before = self.journal.starts(i64::MIN, change.engine_ms, BEFORE)?;
        let before = before.iter().filter(|job| job.start_ms <= change.engine_ms);
        let started = self.journal.starts(change.engine_ms, i64::MAX, SINCE)?;
        let begun = started.iter().map(|job| (now_ms - job.submit_ms, Some(delay(job))));
        let waiting = self.clocks.values().filter(|clock| !clock.started && clock.submit_ms >= change.engine_ms);
        let waiting = waiting.map(|clock| (now_ms - clock.submit_ms, None));
        Ok(Delays { before_ms: before.map(delay).collect(), since_ms: begun.chain(waiting).collect() })
    }
}
