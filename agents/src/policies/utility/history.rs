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
    /// Running jobs with their possible work, and completed jobs: work, and the sum of this work
    /// and all greater work.
    lives: Vec<(f64, f64)>,
    /// Sum and number of speeds on the smallest size.
    rates: (f64, f64),
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
                model.rates = (model.rates.0 + rate, model.rates.1 + 1.0);
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
        let usual = model.filter(|model| model.rates.1 > 0.0).map(|model| model.rates.0 / model.rates.1);
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
        self.rates = (self.rates.0 * 0.5, self.rates.1 * 0.5);
    }

    fn prepare(&mut self, more: f64) {
        self.lives.clear();
        self.lives.extend(self.totals.iter().map(|&total| (total, total)));
        self.lives.extend(self.active.iter().map(|&done| (done, done * (1.0 + more))));
        self.lives.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        // Suffix sums answer any later question by one search.
        let mut sum = 0.0;
        for life in self.lives.iter_mut().rev() {
            sum += life.1;
            life.1 = sum;
        }
    }

    /// How many did more than `done`, and the sum of what they did beyond it.
    fn beyond(&self, done: f64) -> (f64, f64) {
        let first = self.lives.partition_point(|life| life.0 <= done);
        let count = (self.lives.len() - first) as f64;
        (count, self.lives.get(first).map_or(0.0, |life| life.1 - count * done))
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
