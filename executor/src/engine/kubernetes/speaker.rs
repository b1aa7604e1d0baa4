//! A job that runs as the mailbox has it: the attempt that its pods were told of, and their addresses.

use super::jobs::JobRead;
use super::pods::PodRead;
use crate::engine::mailbox::Speaker;
use crate::engine::{JobPhase, JobSeen};

impl JobRead {
    /// The job, `seen` now, where it runs and has a token. A job that is resized in place runs on. Its pods know the
    /// attempt that they were started with.
    pub(in crate::engine) fn speaker(&self, seen: &JobSeen) -> Option<Speaker> {
        let runs = seen.phase == JobPhase::Running || self.changes_in_place(false);
        let mut attempt = seen.attempt.clone().filter(|_| runs)?;
        let told = self.current().filter(|pod| pod.holds()).filter_map(|pod| pod.attempt).max();
        attempt.number = told.unwrap_or(attempt.number);
        let token = self.facts.token.clone()?;
        let (supervisor, addresses) = (self.facts.supervisor.clone(), self.addresses().unwrap_or_default());
        Some(Speaker { key: self.key.clone(), attempt, token, supervisor, addresses })
    }

    /// Addresses of the replicas by rank, one for each accelerator, once every pod has an address.
    fn addresses(&self) -> Option<Vec<String>> {
        let mut pods: Vec<&PodRead> = self.current().filter(|pod| pod.holds() && !pod.leaving).collect();
        pods.sort_by_key(|pod| pod.index);
        let each = |pod: &&PodRead| Some(vec![pod.address.clone()?; pod.gpus as usize]);
        let known = pods.iter().map(each).collect::<Option<Vec<_>>>()?;
        (pods.len() as u32 == self.pods_wanted).then(|| known.concat())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::facts::JobNotes;
    use super::*;
    use crate::engine::{Attempt, OnNode};

    /// Four pods after a resize in place: all were made from the template of the first start.
    #[test]
    fn pods_speak_for_the_attempt_that_they_were_told_and_have_addresses_by_rank() {
        let pod = |index: u32, address: Option<&str>| PodRead {
            index: Some(index),
            attempt: Some(0),
            gpus: 2,
            node: Some(format!("n{index}")),
            address: address.map(str::to_owned),
            ..PodRead::default()
        };
        let token = Some("hash".to_owned());
        let mut job = JobRead {
            key: "site.a.1".into(),
            pods_wanted: 2,
            facts: JobNotes { starts: 3, in_place: true, token, ..JobNotes::default() },
            pods: vec![pod(1, Some("10.0.0.2")), pod(0, Some("10.0.0.1"))],
            ..JobRead::default()
        };
        let placement = vec![OnNode { node: "n0".into(), gpus: 2, ..OnNode::default() }];
        let mut seen = job.seen(true);
        (seen.phase, seen.attempt) = (JobPhase::Running, Some(Attempt { number: 2, placement, ..Attempt::default() }));
        let speaker = job.speaker(&seen).unwrap();
        assert_eq!((speaker.attempt.number, speaker.key.as_str()), (0, "site.a.1"));
        assert_eq!(speaker.addresses, ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"]);
        job.pods[0].address = None;
        assert!(job.speaker(&seen).unwrap().addresses.is_empty(), "a pod has no address yet");
        // A third pod is on its way: the job holds the number of its attempt, and with it what its processes reported.
        (job.pods_wanted, seen.phase) = (3, JobPhase::Stopping);
        assert_eq!(job.speaker(&seen).map(|speaker| speaker.attempt.number), Some(0));
        (job.suspended, seen.phase) = (true, JobPhase::Held);
        assert!(job.speaker(&seen).is_none());
    }
}
