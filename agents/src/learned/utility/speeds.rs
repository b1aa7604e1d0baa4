//! Speeds of jobs by size, asked for once for as long as a job's model stays the same.

use goodput_env::job::JobId;
use goodput_env::model::GoodputModel;
use goodput_env::view::{Batching, ClusterView, Information, JobView};

/// Past so many nodes sizes grow by a quarter at a time.
const WHOLE_NODES: u32 = 8;

/// The sizes worth considering for a job, ascending: powers of two within a node, then whole nodes, and the most it may have. They share nodes
/// without remainder.
pub(super) fn sizes(min: u32, max: u32, per_node: u32) -> impl Iterator<Item = u32> {
    let per_node = per_node.max(1);
    let next = move |size: &u32| {
        let size = *size;
        if size >= max {
            return None;
        }
        let up = match size {
            size if size < per_node => (size + 1).next_power_of_two().min(per_node),
            size if size < WHOLE_NODES * per_node => (size / per_node + 1) * per_node,
            size => (size + size / 4) / per_node * per_node,
        };
        Some(up.clamp(size + 1, max))
    };
    std::iter::successors((min <= max && min > 0).then_some(min), next)
}

/// Speeds of one job.
#[derive(Clone, Debug)]
struct Row {
    job: JobId,
    model: Option<GoodputModel>,
    /// By place among the sizes from the least up: accelerators, work per second.
    rates: Vec<(u32, f64)>,
}

/// Speeds of the active jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Speeds {
    rows: Vec<Row>,
    before: Vec<Row>,
}

impl Speeds {
    /// Takes over the jobs of `view`, in its order.
    pub fn load(&mut self, view: &ClusterView<'_>) {
        std::mem::swap(&mut self.rows, &mut self.before);
        self.rows.clear();
        let mut before = self.before.drain(..).peekable();
        for job in view.jobs() {
            while before.next_if(|row| row.job < job.id()).is_some() {}
            let model = job.goodput_model();
            let per_node = view.cluster().gpus_per_node_of(job.kind());
            let range = (job.min_gpus(), job.max_gpus().max(job.min_gpus()));
            let same = before.next_if(|row| {
                let ends = (row.rates.first().map(|rate| rate.0), row.rates.last().map(|rate| rate.0));
                row.job == job.id() && model.is_some() && row.model == model && ends == (Some(range.0), Some(range.1))
            });
            self.rows.push(same.unwrap_or_else(|| {
                let rate = |gpus: u32| (gpus, rate(view, &job, gpus, per_node, model.as_ref()).unwrap_or(0.0));
                Row { job: job.id(), model, rates: sizes(range.0, range.1, per_node).map(rate).collect() }
            }));
        }
    }

    /// Sizes and speeds of the job at `at`, ascending. Speeds are 0 where nothing is known.
    pub fn of(&self, at: usize) -> &[(u32, f64)] {
        &self.rows[at].rates
    }

    /// Speed of the job at `at` on its smallest size, where it is known.
    pub fn least(&self, at: usize) -> Option<f64> {
        self.of(at).first().map(|rate| rate.1).filter(|&rate| rate > 0.0)
    }

    /// Speed of the job at `at` on `gpus` relative to that on its smallest size, between sizes as on the next smaller one; a job of which
    /// nothing is known is believed to scale perfectly.
    pub fn speedup(&self, at: usize, gpus: u32) -> f64 {
        let rates = self.of(at);
        let Some(&(smallest, base)) = rates.first() else { return 0.0 };
        let place = rates.partition_point(|rate| rate.0 <= gpus);
        match place.checked_sub(1) {
            None => 0.0,
            Some(_) if base <= 0.0 => f64::from(gpus) / f64::from(smallest.max(1)),
            Some(place) => rates[place].1 / base,
        }
    }
}

fn rate(
    view: &ClusterView<'_>,
    job: &JobView<'_>,
    gpus: u32,
    per_node: u32,
    model: Option<&GoodputModel>,
) -> Option<f64> {
    match (view.batching, view.information, model) {
        (Batching::Agent, Information::Profiled, Some(model)) => {
            let best = model.best(gpus.div_ceil(per_node.max(1)), gpus)?;
            Some(best.goodput / f64::from(model.limits.init))
        }
        _ => job.rate(gpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_share_nodes() {
        assert_eq!(sizes(1, 64, 4).collect::<Vec<_>>(), [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 60, 64]);
        assert_eq!(sizes(1, 5, 4).collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(sizes(3, 3, 4).collect::<Vec<_>>(), [3]);
        assert_eq!(sizes(2, 1, 4).count(), 0);
        assert_eq!(sizes(1, 6, 6).collect::<Vec<_>>(), [1, 2, 4, 6]);
    }
}
