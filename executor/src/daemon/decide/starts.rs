//! Questions that change nothing: when a job will start, and what would become of a submission.

use std::time::Instant;

use goodput_configs::live::deployment::Mode;

use crate::daemon::predict::answer::TriedSubmission;
use crate::daemon::predict::predictor::PredictorReply;
use crate::daemon::predict::{AskedStart, StartScene};
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{ClusterSnapshot, Engine, JobPhase, JobSeen, NodeHealth, Submission};

/// Key under which a job is predicted that is not submitted: engines give no such key.
const NOT_SUBMITTED: &str = "(not submitted)";

impl<E: Engine> Daemon<E> {
    /// Predicts the start of the job with this key. The loop goes on meanwhile; the answer goes to `reply`.
    /// Only the daemon that leads keeps the past that it goes by.
    pub fn predict_start(&self, key: &str, reply: PredictorReply) {
        if self.leader.term().is_none() {
            return reply(Err("this daemon stands by: ask the one that leads".to_owned()));
        }
        self.predict(AskedStart::Waits(key), None, reply);
    }

    /// Says what would become of a submission, and changes nothing. The answer goes to `reply`.
    /// It is [`DaemonError::Standby`] where this daemon does not lead.
    pub async fn try_submission(
        &mut self,
        job: &Submission,
        reply: impl FnOnce(Result<TriedSubmission, DaemonError>) + Send + 'static,
    ) {
        if self.leader.term().is_none() {
            return reply(Err(self.stands_by()));
        }
        let checked = self.check_submission(job).err().map(|error| error.to_string());
        let by_engine = self.engine.try_out(job).await.err().map(|error| error.to_string());
        let refused: Vec<String> = [checked, by_engine, self.health.refusal()].into_iter().flatten().collect();
        if !refused.is_empty() {
            return reply(Ok(TriedSubmission { refused, ..TriedSubmission::default() }));
        }
        let seen = JobSeen {
            application: job.application.clone(),
            tenant: job.tenant.clone(),
            owner: job.owner.clone(),
            batch: job.batch,
            ..JobSeen::held(NOT_SUBMITTED, job.spec.clone())
        };
        let note = self.last.as_ref().and_then(|(snapshot, _)| too_large(snapshot, seen.spec.request.min_gpus()));
        let reply: PredictorReply = Box::new(move |predicted| {
            reply(Ok(match predicted {
                Ok(start) => TriedSubmission { start: Some(start), ..TriedSubmission::default() },
                Err(no_start) => TriedSubmission { no_start, ..TriedSubmission::default() },
            }));
        });
        self.predict(AskedStart::New(&seen), note, reply);
    }

    /// Asks about the job that was submitted last and waits, so that later predictions are calibrated.
    pub(super) fn sample_start(&mut self, snapshot: &ClusterSnapshot, now: Instant) {
        let waits = |job: &&JobSeen| matches!(job.phase, JobPhase::Held | JobPhase::Released) && !job.hands_off;
        let waiting = snapshot.jobs.iter().filter(waits);
        let Some(latest) = waiting.max_by_key(|job| (job.spec.request.submit, &job.key)) else { return };
        if self.starts.as_mut().is_some_and(|starts| starts.may_sample(now)) {
            self.predict(AskedStart::Waits(&latest.key), None, Box::new(|_| {}));
        }
    }

    fn predict(&self, asked: AskedStart<'_>, note: Option<String>, reply: PredictorReply) {
        let Some(starts) = &self.starts else {
            return reply(Err("the policy is a program of its own, and no futures are played with it".to_owned()));
        };
        let Some((snapshot, _)) = &self.last else {
            return reply(Err("the cluster was not observed yet".to_owned()));
        };
        let mode = match self.mode() {
            Mode::Act => None,
            mode => Some(format!("the mode is {}: the prediction is as if the policy acted on all jobs", mode.name())),
        };
        match StartScene::new(&self.observer, snapshot, &self.settings, asked) {
            Ok(scene) => {
                let scene = note.into_iter().chain(mode).fold(scene, StartScene::noting);
                starts.ask(scene, reply);
            }
            Err(why) => reply(Err(why)),
        }
    }
}

/// Sentence on a job that is too large for the accelerators in service of any one type.
fn too_large(snapshot: &ClusterSnapshot, gpus: u32) -> Option<String> {
    let mut by_type = std::collections::BTreeMap::<&str, u32>::new();
    for node in snapshot.nodes.iter().filter(|node| node.health == NodeHealth::Up) {
        *by_type.entry(&node.accelerator).or_default() += node.gpus;
    }
    let most = by_type.into_values().max().unwrap_or(0);
    (gpus > most).then(|| format!("it needs {gpus} accelerators of one type, and the cluster has {most} in service"))
}
