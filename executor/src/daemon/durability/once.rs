//! Submissions that may be tried again: one job comes of all tries under one idempotency key.
//!
//! A try is on disk before the job is handed in, with the time of submission that names the job. A
//! later try finds the first one there. Where the first was cut off before the key of the job was
//! known, the engine is asked for a job of that time.

use crate::daemon::durability::journal::FirstTry;
use crate::daemon::durability::submissions::by_submission;
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{Engine, EngineError, Submission, digest};
use crate::machine::wall_ms;

/// Answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Key of the job.
    pub key: String,
    /// Whether an earlier try under the idempotency key had handed the job in.
    pub repeated: bool,
}

impl<E: Engine> Daemon<E> {
    /// Hands a job to the engine, once for all calls of `who` with the idempotency key `once`. It is written down when
    /// the call returns.
    ///
    /// # Errors
    /// As [`Daemon::submit`]; [`DaemonError::Refused`] where the key was used for another job.
    pub async fn submit_once(&mut self, who: &str, job: &Submission, once: &str) -> Result<Submitted, DaemonError> {
        let acting = self.may_accept()?;
        self.check_submission(job)?;
        let text = serde_json::to_string(job).map_err(|error| DaemonError::Refused(error.to_string()))?;
        let digest = digest(&[&text]);
        let first = self.journal.first_try(who, once)?;
        if first.as_ref().is_some_and(|first| first.digest != digest) {
            let text = format!("the idempotency key {once:?} was used for another job; a new job needs a new key");
            return Err(DaemonError::Refused(text));
        }
        if let Some(key) = first.as_ref().and_then(|first| first.job.clone()) {
            return Ok(Submitted { key, repeated: true });
        }
        let submit_ms = first.as_ref().map_or_else(|| self.next_submit_ms(), |first| first.submit_ms);
        let mut this = FirstTry { digest, submit_ms, job: None, at_ms: wall_ms() };
        if let Some(first) = &first
            && let Some(key) = self.handed_in(first)?
        {
            this.job = Some(key.clone());
            self.keep_try(who, once, &this).await?;
            return Ok(Submitted { key, repeated: true });
        }
        self.keep_try(who, once, &this).await?;
        self.pass("before-hand-in")?;
        let handed_in = self.hand_in(who, job, submit_ms).await;
        if let Err(DaemonError::Engine(EngineError::Refused { .. })) = handed_in {
            self.forget_try(who, once).await?;
        }
        let key = handed_in?;
        self.pass("after-hand-in")?;
        this.job = Some(key.clone());
        self.keep_try(who, once, &this).await?;
        drop(acting);
        Ok(Submitted { key, repeated: false })
    }

    /// Key of the job of a try that was cut off; `None` where the engine has no such job.
    fn handed_in(&self, first: &FirstTry) -> Result<Option<String>, DaemonError> {
        if let Some(key) = self.engine.submitted_at(first.submit_ms) {
            return Ok(Some(key));
        }
        let since = self.last.as_ref().filter(|(_, at)| wall_ms() - at.elapsed().as_millis() as i64 > first.at_ms);
        let Some((snapshot, _)) = since else {
            let text = "an earlier try of this submission was cut off, and the cluster was not looked at since: try again in some seconds";
            return Err(DaemonError::Unavailable(text.into()));
        };
        Ok(by_submission(snapshot).get(&first.submit_ms).map(|(key, _)| (*key).to_owned()))
    }
}
