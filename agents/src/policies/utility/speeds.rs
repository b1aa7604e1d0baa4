//! Speeds of jobs by accelerator type and size, asked for once for as long as what a job's agent
//! knows stays the same.
//!
//! A type that a job has run on has a fitted model. Another one is taken to be as much faster or
//! slower at every size as it is on one accelerator, which a job measures on each type before it is
//! placed; so is the first guess of a job that never ran (Sia, SOSP'23, section 3.3). How far these
//! ratios are believed is learned ([`Theta`]).

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::model::{GoodputModel, GradientStats};
use goodput_env::scenario::{Batching, Information};
use goodput_env::view::{ClusterView, JobView};

use super::siblings::Siblings;
use super::{Theta, Utility};

/// Past so many nodes sizes grow by a quarter at a time.
const WHOLE_NODES: u32 = 8;

/// The sizes worth considering for a job, ascending: powers of two within a node, then whole nodes,
/// and the most it may have. They share nodes without remainder.
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
        // Rounding down to whole nodes must not stop the ladder or step past the most.
        Some(up.clamp(size + 1, max))
    };
    std::iter::successors((min <= max && min > 0).then_some(min), next)
}

/// Speeds of one job.
#[derive(Clone, Debug)]
struct Row {
    job: JobId,
    /// Knowledge of the job's agent about each type.
    models: Vec<Option<GoodputModel>>,
    /// Smallest and largest size.
    range: (u32, u32),
    /// Speeds by accelerator type.
    curves: Vec<SpeedCurve>,
    /// Type with the most measurements of the job. Ratios to this type stand for types without any.
    most_measured: TypeId,
    /// Speed of the smallest size on the slowest type; 0 where nothing is known.
    base: f64,
}

/// Speeds on one type.
#[derive(Clone, Debug, Default)]
struct SpeedCurve {
    /// By place among the sizes from the least up: accelerators, work per second. Empty where the
    /// job does not run.
    rates: Vec<(u32, f64)>,
    /// Speed of the smallest size relative to the slowest type, of a job of which nothing is known.
    guess: f64,
}

/// Speeds of the active jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Speeds {
    rows: Vec<Row>,
    before: Vec<Row>,
    kinds: Vec<Kind>,
    /// Measurements of jobs of the same model, where the policy believes them.
    siblings: Option<Siblings>,
    /// Whether what gradients say of large batches is left out.
    blind_to_noise: bool,
}

/// Accelerators of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    per_node: u32,
    /// Most that a job may have; no limit where there is one type.
    total: u32,
}

impl Speeds {
    /// As `utility` believes them.
    pub fn new(utility: &Utility) -> Self {
        let siblings = utility.siblings.then(Siblings::default);
        Self { siblings, blind_to_noise: !utility.efficiency, ..Self::default() }
    }

    /// Takes over the jobs of `view`, in its order.
    pub fn load(&mut self, view: &ClusterView<'_>, theta: &Theta) {
        let kinds = std::mem::take(&mut self.kinds);
        self.count(view);
        if kinds != self.kinds {
            // Sizes and speeds are those of the machines that there are.
            self.rows.clear();
        }
        if let Some(siblings) = &mut self.siblings {
            siblings.observe(view);
        }
        let (siblings, blind) = (self.siblings.as_ref(), self.blind_to_noise);
        std::mem::swap(&mut self.rows, &mut self.before);
        self.rows.clear();
        let mut before = self.before.drain(..).peekable();
        for job in view.jobs() {
            while before.next_if(|row| row.job < job.id()).is_some() {}
            let model = |kind: TypeId| {
                let model = match siblings {
                    Some(siblings) => siblings.model(&job, kind),
                    None => job.goodput_model_on(kind),
                };
                // Without a gradient everything is noise, and larger batches are as efficient as
                // small ones.
                model.map(|model| {
                    if blind { GoodputModel { stats: GradientStats { sqr: 0.0, var: 1.0 }, ..model } } else { model }
                })
            };
            let models = TypeId::first(self.kinds.len()).map(model);
            let measured = job.state.profile.max_replicas();
            let explored = siblings.map_or(measured, |siblings| siblings.replicas(&job).max(measured));
            let range = (job.min_gpus(), job.max_gpus_explored(explored).max(job.min_gpus()));
            // Speeds follow from the models and the range alone, so an equal row is reused.
            let same = before.next_if(|row| {
                let known = row.models.iter().any(Option::is_some) && models.clone().eq(row.models.iter().copied());
                row.job == job.id() && row.range == range && known
            });
            self.rows.push(same.unwrap_or_else(|| row(view, &job, &self.kinds, theta, models.collect(), range)));
        }
    }

    fn count(&mut self, view: &ClusterView<'_>) {
        let cluster = view.cluster();
        let kinds = cluster.types.len().max(1);
        let of = |kind: TypeId| {
            let nodes = cluster.nodes.iter().filter(|node| node.accelerator == kind);
            let total = if kinds > 1 { nodes.map(|node| node.gpus).sum() } else { u32::MAX };
            Kind { per_node: cluster.gpus_per_node_of(kind), total }
        };
        self.kinds = TypeId::first(kinds).map(of).collect();
    }

    /// Sizes and speeds of the job at `at` on a type, ascending. Speeds are 0 where nothing is
    /// known.
    pub fn on(&self, at: usize, kind: TypeId) -> &[(u32, f64)] {
        self.rows[at].curves.get(kind.index()).map_or(&[], |curve| &curve.rates)
    }

    /// Type with the most measurements of the job at `at`.
    pub fn most_measured(&self, at: usize) -> TypeId {
        self.rows[at].most_measured
    }

    /// Smallest size of the job at `at`.
    pub fn smallest(&self, at: usize) -> u32 {
        self.rows[at].range.0
    }

    /// Speed of the job at `at` on its smallest size on the slowest type, where it is known.
    pub fn least(&self, at: usize) -> Option<f64> {
        Some(self.rows[at].base).filter(|&rate| rate > 0.0)
    }

    /// Speed of the job at `at` on `gpus` of a type relative to [`Self::least`], between sizes as
    /// on the next smaller one; a job of which nothing is known is believed to scale perfectly.
    pub fn speedup(&self, at: usize, kind: TypeId, gpus: u32) -> f64 {
        let row = &self.rows[at];
        let Some(curve) = row.curves.get(kind.index()) else { return 0.0 };
        let place = curve.rates.partition_point(|rate| rate.0 <= gpus);
        match place.checked_sub(1) {
            None => 0.0,
            Some(_) if row.base <= 0.0 => f64::from(gpus) / f64::from(row.range.0.max(1)) * curve.guess,
            Some(place) => curve.rates[place].1 / row.base,
        }
    }

    /// Speed relative to that of the smallest size on that type.
    pub fn scaling(&self, at: usize, kind: TypeId, gpus: u32) -> f64 {
        self.speedup(at, kind, gpus) / self.speedup(at, kind, self.smallest(at)).max(f64::MIN_POSITIVE)
    }

    /// Speed of the job at `at` on its smallest size on the fastest type relative to the slowest.
    pub fn spread(&self, at: usize) -> f64 {
        let row = &self.rows[at];
        TypeId::first(row.curves.len()).map(|kind| self.speedup(at, kind, row.range.0)).fold(1.0, f64::max)
    }
}

fn row(
    view: &ClusterView<'_>,
    job: &JobView<'_>,
    kinds: &[Kind],
    theta: &Theta,
    models: Vec<Option<GoodputModel>>,
    range: (u32, u32),
) -> Row {
    let runs = |kind: TypeId| job.runs_on(kind);
    let sizes = |kind: TypeId| sizes(range.0, range.1.min(kinds[kind.index()].total), kinds[kind.index()].per_node);
    let mut curves: Vec<SpeedCurve> = TypeId::first(kinds.len())
        .map(|kind| {
            let speed = |gpus: u32| (gpus, rate(view, job, kind, gpus, kinds, &models).unwrap_or(0.0));
            let rates = if runs(kind) { sizes(kind).map(speed).collect() } else { Vec::new() };
            SpeedCurve { rates, guess: 1.0 }
        })
        .collect();
    let known = |curve: &SpeedCurve| curve.rates.iter().any(|rate| rate.1 > 0.0);
    let measured = |kind: TypeId| job.state.profile.on(kind).map_or(0, |seen| seen.max_replicas());
    let candidates = TypeId::first(kinds.len()).filter(|&kind| known(&curves[kind.index()]));
    let most_measured = candidates.reduce(|best, next| if measured(next) > measured(best) { next } else { best });
    let single = |kind: TypeId| job.single_throughput(kind);
    match most_measured {
        Some(most_measured) => {
            for kind in TypeId::first(kinds.len()).filter(|&kind| runs(kind)) {
                if known(&curves[kind.index()]) {
                    continue;
                }
                let ratio =
                    single(kind).zip(single(most_measured)).map(|(other, own)| theta.trusted_after_run(other / own));
                let speed = |gpus: u32| Some(ratio? * rate(view, job, most_measured, gpus, kinds, &models)?);
                curves[kind.index()].rates = sizes(kind).map(|gpus| (gpus, speed(gpus).unwrap_or(0.0))).collect();
            }
        }
        None => {
            // Nothing has been measured of this job, so only ratios of single accelerators are
            // known.
            let slowest =
                TypeId::first(kinds.len()).filter(|&kind| runs(kind)).filter_map(single).fold(f64::INFINITY, f64::min);
            for (kind, curve) in TypeId::first(kinds.len()).zip(&mut curves) {
                curve.guess = single(kind).map_or(1.0, |speed| theta.trusted_before_run(speed / slowest));
            }
        }
    }
    let firsts = curves.iter().filter_map(|curve| curve.rates.first()).map(|rate| rate.1);
    let base = firsts.filter(|&rate| rate > 0.0).fold(f64::INFINITY, f64::min);
    let home = TypeId::first(kinds.len()).find(|&kind| runs(kind)).unwrap_or(TypeId(0));
    let base = if base.is_finite() { base } else { 0.0 };
    Row { job: job.id(), models, range, curves, most_measured: most_measured.unwrap_or(home), base }
}

fn rate(
    view: &ClusterView<'_>,
    job: &JobView<'_>,
    kind: TypeId,
    gpus: u32,
    kinds: &[Kind],
    models: &[Option<GoodputModel>],
) -> Option<f64> {
    match (view.batching, view.information, models.get(kind.index()).copied().flatten()) {
        (Batching::Agent, Information::Profiled, Some(model)) => {
            let best = model.best(gpus.div_ceil(kinds[kind.index()].per_node.max(1)), gpus)?;
            Some(best.goodput / f64::from(model.limits.init))
        }
        _ => job.rate_on(kind, gpus),
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
