//! Ends that an engine forgets: a job that was seen to be over is not run again.
//!
//! An engine that is killed before a job's end is on its disk comes back with the job as it was:
//! waiting, or running on accelerators on which nothing runs any more. By its own state it is right to
//! start such a job (again). So ends are written down when they are seen, for as long as the engine
//! shows them and may yet forget them, and a job that is not over any more under an engine that has
//! started since is taken back. Under one that has not, a person put it back into the queue, and
//! that holds.
//!
//! Unseen ends are beyond this: a job that starts and ends while no daemon looks, under an engine
//! that then forgets both, runs twice, one after the other.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::daemon::durability::journal::{JobEnd, Stage};
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{ClusterSnapshot, Engine, EngineAction, JobSeen, Order};
use crate::machine::wall_ms;

impl<E: Engine> Daemon<E> {
    /// Writes down which jobs are over, and takes those back that were.
    pub(in crate::daemon) async fn keep_ends(
        &mut self,
        snapshot: &ClusterSnapshot,
        term: u64,
        acts: bool,
    ) -> Result<(), DaemonError> {
        let Some(durability) = self.engine.capabilities().durability else { return Ok(()) };
        let now_ms = wall_ms();
        let durable_ms = durability.durable_after.as_millis() as i64;
        let shown: BTreeMap<JobEnd, &JobSeen> = snapshot.jobs.iter().map(|job| (end(job), job)).collect();
        // Jobs of others are never taken back, so their ends need not be known.
        let own = shown.iter().filter(|(_, job)| !job.hands_off);
        let over = own.filter(|(end, job)| job.phase.is_over() && !self.ends.contains_key(*end));
        let new: Vec<(JobEnd, i64)> = over.map(|(end, _)| (end.clone(), now_ms)).collect();

        let (mut again, mut old) = (Vec::new(), Vec::new());
        for (end, &seen_ms) in &self.ends {
            match shown.get(end) {
                Some(job) if job.phase.is_over() => {}
                Some(job) => again.push((end.clone(), seen_ms, *job)),
                // Until an end is durable the engine may come back without it, so the entry stays.
                None if now_ms - seen_ms > durable_ms => old.push(end.clone()),
                None => {}
            }
        }
        if acts
            && !again.is_empty()
            && let Some(since_ms) = self.engine.remembers_since().await?
        {
            for (end, seen_ms, job) in again {
                // Engines tell the second in which they started.
                if seen_ms < since_ms + 1000 {
                    self.take_back(job, term)?;
                } else {
                    // The engine has run on since, so a person put the job back and its end no
                    // longer holds.
                    old.push(end);
                }
            }
        }
        self.write_ends(&new, &old).await?;
        self.ends.extend(new);
        self.ends.retain(|end, _| !old.contains(end));
        Ok(())
    }

    /// Cancels a job that had ended.
    fn take_back(&mut self, job: &JobSeen, term: u64) -> Result<(), DaemonError> {
        let cancels = |under_way: &UnderWay| matches!(under_way.order.action, EngineAction::Cancel { .. });
        if self.open.iter().any(|under_way| under_way.order.job == job.key && cancels(under_way)) {
            return Ok(());
        }
        self.void(&job.key, "the job had ended")?;
        let name = format!("ended {}", wall_ms());
        let new = Order::named(&name, &job.key, job.starts, EngineAction::Cancel { grace_s: 0 });
        self.journal.intend(term, "recovery", std::slice::from_ref(&new), wall_ms())?;
        self.open.push(UnderWay { order: new, since: Instant::now(), note: String::new() });
        let text = format!("{} forgot that job {} had ended; it is not run again", self.engine.name(), job.key);
        self.alert("ended", &text);
        Ok(())
    }

    /// Closes what is under way for a job: it is another's turn to say what becomes of it.
    pub(in crate::daemon) fn void(&mut self, key: &str, why: &str) -> Result<(), DaemonError> {
        let void = self.open.iter().filter(|under_way| under_way.order.job == key);
        let void: Vec<_> = void.map(|u| (u.order.id.clone(), Stage::Lost, why.to_owned())).collect();
        self.journal.close(&void, wall_ms())?;
        self.open.retain(|under_way| under_way.order.job != key);
        self.watch.released(key);
        Ok(())
    }
}

fn end(job: &JobSeen) -> JobEnd {
    JobEnd { submit_ms: job.spec.request.submit.as_millis(), key: job.key.clone() }
}
