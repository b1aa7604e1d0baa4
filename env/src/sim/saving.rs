//! Cycle of work and checkpoints of a running job: the cycle that the run's options choose for it.

use super::Simulator;
use crate::cluster::NodeId;
use crate::job::JobId;
use crate::model::checkpoint::{daly, young};
use crate::model::{Checkpointing, Interval};
use crate::time::SimTime;

impl Simulator {
    /// A job begins to run: from now on it writes checkpoints.
    pub(super) fn begin_saving(&mut self, job: JobId) {
        let now = self.state.now;
        let cycle = self.state.scenario.options.checkpoint.and_then(|checkpoint| self.cycle(job, checkpoint));
        let saving = &mut self.state.jobs.state_mut(job).saving;
        saving.from = now;
        (saving.work, saving.write) = cycle.unwrap_or((0, 0));
    }

    /// Milliseconds of work and of a write; `None` where it does not pay to write at all.
    fn cycle(&self, job: JobId, checkpoint: Checkpointing) -> Option<(i64, i64)> {
        let placement = &self.state.jobs.state(job).placement;
        let write = checkpoint.write_secs(self.state.scenario.workload.application_name(job), placement.gpus());
        let work = match checkpoint.interval {
            Interval::Fixed { secs } => secs,
            Interval::Young => young(write, self.job_mtbf_secs(job)),
            Interval::Daly => daly(write, self.job_mtbf_secs(job)),
            Interval::Adaptive => young(write, self.seen_mtbf_secs(job)),
        };
        let [work, write] = [work, write].map(|secs| SimTime::from_secs_f64(secs).as_millis());
        // This is longer than any run, but sums of such times stay far from overflow.
        (work < i64::MAX / 1024).then_some((work.max(1), write))
    }

    /// Seconds between faults of what a job holds, by the run's own model.
    fn job_mtbf_secs(&self, job: JobId) -> f64 {
        let gpus_of = |node: NodeId| self.state.scenario.cluster.nodes[node.index()].gpus;
        let placement = &self.state.jobs.state(job).placement;
        let faults = self.state.scenario.options.faults.as_ref();
        faults.map_or(f64::INFINITY, |faults| faults.job_mtbf_secs(placement, gpus_of))
    }

    /// Seconds between faults of a job by the faults so far: faults of the hardware, and the job's
    /// own failures in the time it ran.
    fn seen_mtbf_secs(&self, job: JobId) -> f64 {
        let state = self.state.jobs.state(job);
        let cluster = &self.state.scenario.cluster;
        let all = (cluster.nodes.len() as u32, cluster.total_gpus());
        let held = (state.placement.nodes(), state.placement.gpus());
        let by_hardware =
            self.health.as_ref().map_or(f64::INFINITY, |health| health.seen().job_mtbf_secs(self.state.now, all, held));
        let ran = (state.executed(self.state.now) - state.restarting(self.state.now)).as_secs_f64();
        // The rates of independent causes add up.
        1.0 / (1.0 / by_hardware + f64::from(state.saving.failures) / ran.max(1.0))
    }
}
