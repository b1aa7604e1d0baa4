//! Remaining work of a job, estimated from the work of completed jobs of its model and from the
//! progress of the job.
//!
//! A job that has done `d` is one of those that do more than `d`: of the completed ones only those
//! count that did, and what they did beyond `d` is what this one may have left (mean residual
//! life). Jobs that are still running are further along than some completed ones; leaving them out
//! would make every model look shorter than it is, so those beyond `d` count with what their own
//! progress promises. Where there are few, the job's own progress decides: it may go on in
//! proportion to what it did (the Pareto law of process lifetimes; Harchol-Balter and Downey,
//! SIGMETRICS 1996). Only what was seen enters, in this run and in the experience a policy brings
//! along; no catalogue.

use std::collections::BTreeMap;

use goodput_env::job::JobId;
use goodput_env::view::{ClusterView, JobView};

use super::{Experience, Theta};

/// Work that was seen, by model.
#[derive(Clone, Debug, Default)]
pub struct History {
    models: BTreeMap<String, Model>,
    /// Jobs of the decision before, ascending.
    seen: Vec<Seen>,
}

#[derive(Clone, Debug, Default)]
struct Model {
    /// Work of completed jobs, ascending.
    totals: Vec<f64>,
    /// Work so far of active jobs, ascending.
    active: Vec<f64>,
    /// Completed jobs and running jobs, ascending by the work that they have done.
    survivors: Vec<Survivor>,
    /// Speeds on the smallest size.
    rates: RateSum,
}

/// Job that is known to have done some work, and the total work of the jobs that did at least as much.
#[derive(Clone, Copy, Debug)]
struct Survivor {
    /// Work that the job has done.
    work: f64,
    /// Sum of the total work of this job and of all jobs after it. The total of a running job is a guess.
    tail_sum: f64,
}

/// Sum of speeds, and their number; both fade from decision to decision.
#[derive(Clone, Copy, Debug, Default)]
struct RateSum {
    sum: f64,
    count: f64,
}

#[derive(Clone, Debug)]
struct Seen {
    job: JobId,
    model: String,
    done: f64,
    at: f64,
    rate: f64,
}

/// Estimate of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// Accelerator seconds on its smallest size.
    pub gpu_secs: f64,
    /// Accelerator seconds on its smallest size that the job has done.
    pub done_gpu_secs: f64,
}

impl History {
    /// With what was seen in earlier runs.
    pub fn after(experience: &Experience) -> Self {
        let model =
            |works: &[f32]| Model { totals: works.iter().copied().map(f64::from).collect(), ..Model::default() };
        let models = experience.models().map(|(name, works)| (name.to_owned(), model(works))).collect();
        Self { models, seen: Vec::new() }
    }

    /// Records the jobs that are gone and the progress of the others. `rate` is a job's speed on
    /// its smallest size, where it is known.
    pub fn observe(
        &mut self,
        view: &ClusterView<'_>,
        theta: &Theta,
        rate: impl Fn(usize, &JobView<'_>) -> Option<f64>,
    ) {
        let now = view.now.as_secs_f64();
        // Policies are not told of completions: a job that is gone is taken to be complete.
        for seen in std::mem::take(&mut self.seen) {
            if view.job(seen.job).is_none() {
                // It went on at the speed it had until some moment since.
                let total = seen.done + seen.rate * 0.5 * (now - seen.at);
                let model = self.models.entry(seen.model).or_default();
                let place = model.totals.partition_point(|&other| other < total);
                model.totals.insert(place, total);
            }
        }
        self.models.values_mut().for_each(Model::clear_active);
        for (at, job) in view.jobs().enumerate() {
            let done = job.state.done(view.now);
            let name = job.model_name();
            if !self.models.contains_key(name) {
                self.models.insert(name.to_owned(), Model::default());
            }
            let Some(model) = self.models.get_mut(name) else { continue };
            if done > 0.0 {
                model.active.push(done);
            }
            if let Some(rate) = rate(at, &job).filter(|&rate| rate > 0.0) {
                model.rates = RateSum { sum: model.rates.sum + rate, count: model.rates.count + 1.0 };
            }
            // The speed at its present size tells how far a job got that is gone at the next
            // decision.
            let speed = job.rate(job.gpus()).unwrap_or(0.0);
            self.seen.push(Seen { job: job.id(), model: name.to_owned(), done, at: now, rate: speed });
        }
        self.models.values_mut().for_each(|model| model.prepare(theta.more()));
    }

    /// Remaining work that `job` may have, given its speed on its smallest size of `least` accelerators.
    pub fn left(
        &self,
        view: &ClusterView<'_>,
        theta: &Theta,
        job: &JobView<'_>,
        rate: Option<f64>,
        least: u32,
    ) -> Left {
        let done = job.state.done(view.now);
        let gpus = f64::from(least.max(1));
        let model = self.models.get(job.model_name());
        let usual =
            model.map(|model| model.rates).filter(|rates| rates.count > 0.0).map(|rates| rates.sum / rates.count);
        let Some(rate) = rate.filter(|&rate| rate > 0.0).or(usual) else {
            return Left { gpu_secs: theta.more() * theta.first_secs(), done_gpu_secs: 0.0 };
        };
        // The second term keeps a job that has just begun from having nothing left.
        let own = theta.more() * (done + theta.first_secs() * rate / gpus);
        let (count, excess) = model.map_or((0.0, 0.0), |model| model.beyond(done));
        // This is a mean over the completed jobs and `peer_uncertainty` copies of the own guess.
        let left = (excess + theta.peer_uncertainty() * own) / (count + theta.peer_uncertainty());
        Left { gpu_secs: left / rate * gpus, done_gpu_secs: done / rate * gpus }
    }
}

impl Model {
    fn clear_active(&mut self) {
        self.active.clear();
        self.rates = RateSum { sum: self.rates.sum * 0.5, count: self.rates.count * 0.5 };
    }

    fn prepare(&mut self, more: f64) {
        self.survivors.clear();
        let alone = |work: f64, total: f64| Survivor { work, tail_sum: total };
        self.survivors.extend(self.totals.iter().map(|&total| alone(total, total)));
        self.survivors.extend(self.active.iter().map(|&done| alone(done, done * (1.0 + more))));
        self.survivors.sort_unstable_by(|a, b| a.work.total_cmp(&b.work).then(a.tail_sum.total_cmp(&b.tail_sum)));
        // Each `tail_sum` is the total of one job so far. Suffix sums answer any later question by one search.
        let mut sum = 0.0;
        for survivor in self.survivors.iter_mut().rev() {
            sum += survivor.tail_sum;
            survivor.tail_sum = sum;
        }
    }

    /// Number of jobs that did more than `done`, and the sum of their work beyond `done`.
    fn beyond(&self, done: f64) -> (f64, f64) {
        let first = self.survivors.partition_point(|survivor| survivor.work <= done);
        let count = (self.survivors.len() - first) as f64;
        (count, self.survivors.get(first).map_or(0.0, |survivor| survivor.tail_sum - count * done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_did_more_count() {
        let mut model = Model { totals: vec![10.0, 20.0, 40.0], active: vec![30.0], ..Model::default() };
        model.prepare(1.0);
        assert_eq!(model.beyond(0.0), (4.0, 10.0 + 20.0 + 40.0 + 60.0));
        assert_eq!(model.beyond(10.0), (3.0, 10.0 + 30.0 + 50.0));
        assert_eq!(model.beyond(30.0), (1.0, 10.0), "not itself");
        assert_eq!(model.beyond(40.0), (0.0, 0.0));
    }
}
