//! Pollux's objective for one decision: speedups of all jobs relative to a fair share of the
//! cluster.
//!
//! A state gives each job a row of replicas by node. The model distinguishes one node from several
//! but not two from three (Pollux, equation 10). So a row counts through its number of replicas,
//! through whether it is distributed, and through whether the job would have to restart for it. The
//! objective is then a sum over jobs of terms from small tables, filled as the search asks for
//! them.

use std::collections::BTreeMap;

use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::model::GoodputModel;
use goodput_env::placement::Placement;
use goodput_env::view::ClusterView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entitlement::entitlements;
pub use super::lanes::Lanes;
use super::lanes::{NodeSpan, add, and, nonzero, same, span, sum};

/// Floor that keeps the mean finite while a job has no accelerators.
const FLOOR: f64 = 1e-3;
/// Table entry that has not been computed.
const UNKNOWN: [f64; 2] = [f64::NAN; 2];

/// Parameters of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveParameters {
    /// Fairness power `p` of the mean of speedups. The lower, the more one starving job weighs against fast ones.
    #[schemars(range(min = -10.0, max = -0.01), extend("x-source" = "OSDI 2021, p of equation 14; -1 as in its evaluation"))]
    pub power: f64,
    /// Time that a restart costs in the objective, whatever a restart costs in the run.
    #[schemars(range(min = 0.0, max = 1e7))]
    #[schemars(extend("x-unit" = "s", "x-source" = "OSDI 2021; pollux.py of its artifact"))]
    pub restart_secs: f64,
    /// Equality of tenants in the objective, from 0 (every job counts alike, as published) to 1 (tenants of equal
    /// weight get equal parts of the cluster, however many jobs they have).
    #[schemars(range(min = 0.0, max = 1.0))]
    #[schemars(extend("x-source" = "this project; a weighted form of OSDI 2021, equations 14 and 15"))]
    pub tenant_fairness: f64,
}

impl Default for ObjectiveParameters {
    fn default() -> Self {
        Self { power: -1.0, restart_secs: 30.0, tenant_fairness: 0.0 }
    }
}

impl ObjectiveParameters {
    /// Mean of `scaled` speedups to the power `p`: one starving job weighs more than many fast ones
    /// (Pollux, equation 14).
    pub fn fitness(&self, scaled: &[f64]) -> f64 {
        self.mean(scaled.iter().map(|&speedup| self.term(speedup)).sum(), scaled.len())
    }

    /// Factor on the speedup of a job that has to restart, of the given age in seconds: with `s` seconds a restart,
    /// `max(age - s restarts, 0) / (age + s)`.
    pub fn restart_factor(&self, age_secs: f64, restarts: u32) -> f64 {
        let after = age_secs + self.restart_secs;
        if after > 0.0 { (age_secs - f64::from(restarts) * self.restart_secs).max(0.0) / after } else { 1.0 }
    }

    /// Summand of a job: its speedup to the power `p`. The smaller the sum, the fitter.
    fn term(&self, scaled: f64) -> f64 {
        // The published power needs no logarithm.
        if self.power == -1.0 { 1.0 / (scaled + FLOOR) } else { (scaled + FLOOR).powf(self.power) }
    }

    /// Power mean of `jobs` speedups with the given sum of terms.
    fn mean(&self, terms: f64, jobs: usize) -> f64 {
        if self.power == -1.0 { jobs as f64 / terms } else { (terms / jobs as f64).powf(self.power.recip()) }
    }
}

/// Job as the search sees it.
#[derive(Clone, Debug)]
pub struct PolluxJob {
    /// Identifier of the job.
    pub job: JobId,
    /// Tenant that submitted the job.
    pub tenant: u32,
    /// Weight of the tenant, in thousandths.
    pub weight_milli: u32,
    /// Present placement of the job.
    pub held: Placement,
    /// Time since submission, seconds.
    pub age_secs: f64,
    /// Restarts so far.
    pub restarts: u32,
    /// Fewest replicas that the job runs on.
    pub min: u32,
    /// Most replicas that the job may get.
    pub max: u32,
    /// Goodput model; without one the job is taken to scale perfectly.
    pub model: Option<GoodputModel>,
}

/// Value of a state; both objectives are maximised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateValue {
    /// [`ObjectiveParameters::fitness`] of the speedups relative to the fair share, scaled so that a node's worth of
    /// accelerators counts 1.
    pub fitness: f64,
    /// Speedups per accelerator of the nodes in use.
    pub utility: f64,
}

/// Jobs, nodes and tables of one decision.
#[derive(Clone, Debug, Default)]
pub struct PolluxProblem {
    parameters: ObjectiveParameters,
    /// In order of attained service: the order in which jobs keep contested accelerators.
    pub(super) jobs: Vec<PolluxJob>,
    pub(super) nodes: usize,
    /// Groups of 16 nodes.
    pub(super) width: usize,
    /// Accelerators to share out, by node.
    pub(super) capacity: Vec<Lanes>,
    /// Present state: `width` lanes a job.
    pub(super) current: Vec<Lanes>,
    /// Replicas of each job in the present state.
    held: Vec<u32>,
    /// Scale of speedups: nodes over accelerators.
    scale: f64,
    /// Accelerators of each job's fair share, and the weight of its term; the weights are 1 on average.
    entitled: Vec<(f64, f64)>,
    base: Vec<f64>,
    factor: Vec<f64>,
    /// Term and speedup if the job stays as it is.
    kept: Vec<[f64; 2]>,
    /// Offsets and rows that are read for every row of every state, close together.
    tables: Vec<SpeedupOffsets>,
    /// Term and speedup if the job has to restart.
    moved: Vec<[f64; 2]>,
    /// Best goodputs by job, kept for as long as its model stays the same.
    goodputs: BTreeMap<JobId, GoodputTables>,
}

#[derive(Clone, Copy, Debug)]
struct SpeedupOffsets {
    min: u32,
    max: u32,
    /// Start of the job's table in `moved`: by replicas on one node, then by replicas on several.
    single: u32,
    distributed: u32,
}

#[derive(Clone, Debug)]
struct GoodputTables {
    model: GoodputModel,
    single: Vec<f64>,
    distributed: Vec<f64>,
}

impl PolluxProblem {
    /// An empty problem with the given objective.
    pub fn new(parameters: ObjectiveParameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// Jobs in the order of a state's rows.
    pub fn jobs(&self) -> &[PolluxJob] {
        &self.jobs
    }

    /// Takes over a view: jobs in order of (attained service, submission, id); nodes of the most
    /// frequent type of accelerator, because the model knows only one.
    pub fn load(&mut self, view: &ClusterView<'_>) {
        let cluster = view.cluster();
        let gpus_of =
            |kind: TypeId| cluster.nodes.iter().filter(|node| node.accelerator == kind).map(|node| node.gpus).sum();
        let most = cluster.type_ids().map(|kind| (gpus_of(kind), kind));
        let (_, kind) = most
            .reduce(|best: (u32, TypeId), next| if next.0 > best.0 { next } else { best })
            .unwrap_or((0, TypeId(0)));

        let mut capacity: Vec<u32> = view.free().to_vec();
        let mut order: Vec<(i64, JobId)> = view.jobs().map(|job| (job.attained_gpu_millis(), job.id())).collect();
        order.sort_unstable();
        let contenders = order.into_iter().filter_map(|(_, id)| view.job(id)).map(|job| {
            for slice in job.state.frees() {
                capacity[slice.node.index()] += slice.gpus;
            }
            // The model knows whole accelerators: a job that holds a part of a card has none of them.
            let part = job.state.placement.share().is_some();
            let held = if part { Placement::none() } else { job.state.placement.clone() };
            let tenant = job.request().tenant;
            PolluxJob {
                job: job.id(),
                tenant,
                weight_milli: view.tenants().weight_milli(tenant),
                held,
                age_secs: job.age().as_secs_f64(),
                restarts: job.state.restarts,
                min: job.min_gpus(),
                max: job.max_gpus(),
                model: job.goodput_model(),
            }
        });
        let contenders = contenders.collect();
        for (capacity, _) in capacity.iter_mut().zip(&cluster.nodes).filter(|(_, node)| node.accelerator != kind) {
            *capacity = 0;
        }
        self.reset(&capacity, contenders);
    }

    /// Takes over jobs, in the order in which they keep contested accelerators, and the
    /// accelerators of each node that are free or held by them. Accelerators beyond 255 a node are
    /// left unused.
    pub fn reset(&mut self, capacity: &[u32], jobs: Vec<PolluxJob>) {
        self.nodes = capacity.len();
        self.width = capacity.len().div_ceil(16).max(1);
        self.capacity.clear();
        self.capacity.resize(self.width, [0; 16]);
        for (node, &gpus) in capacity.iter().enumerate() {
            self.capacity[node / 16][node % 16] = gpus.min(255) as u8;
        }
        let total: u32 = self.capacity.iter().flatten().map(|&gpus| u32::from(gpus)).sum();
        // The artifact scales by nodes times the share of one accelerator in the total.
        self.scale = self.nodes as f64 / f64::from(total.max(1));
        self.entitle(total, &jobs);

        self.current.clear();
        self.current.resize(jobs.len() * self.width, [0; 16]);
        for (job, row) in jobs.iter().zip(self.current.chunks_mut(self.width)) {
            for slice in job.held.slices() {
                row[slice.node.index() / 16][slice.node.index() % 16] = slice.gpus.min(255) as u8;
            }
        }
        self.held.clear();
        self.held.extend(self.current.chunks(self.width).map(sum));
        self.jobs = jobs;
        self.prepare_tables(total);
    }

    /// Fair share and vote of each job: equal as published, or by tenant ([`entitlements`]).
    fn entitle(&mut self, total: u32, jobs: &[PolluxJob]) {
        let fairness = self.parameters.tenant_fairness;
        self.entitled.clear();
        if fairness == 0.0 {
            let fair = total.div_ceil(jobs.len().max(1) as u32).max(1);
            self.entitled.resize(jobs.len(), (f64::from(fair), 1.0));
            return;
        }
        let entitled = entitlements(total, jobs, fairness);
        let mean = entitled.iter().sum::<f64>() / jobs.len() as f64;
        self.entitled.extend(entitled.iter().map(|&of| (of, of / mean)));
    }

    fn prepare_tables(&mut self, total: u32) {
        let jobs = &self.jobs;
        let models: BTreeMap<JobId, GoodputModel> =
            jobs.iter().filter_map(|contender| Some((contender.job, contender.model?))).collect();
        self.goodputs.retain(|job, table| models.get(job).is_some_and(|model| *model == table.model));
        self.factor.clear();
        let parameters = self.parameters;
        self.factor.extend(jobs.iter().map(|job| parameters.restart_factor(job.age_secs, job.restarts)));
        self.tables.clear();
        let mut end = 0;
        for job in jobs {
            let most = job.max.max(job.held.gpus()).min(total);
            self.tables.push(SpeedupOffsets { min: job.min, max: job.max, single: end, distributed: end + most + 1 });
            end += 2 * (most + 1);
        }
        self.moved.clear();
        self.moved.resize(end as usize, UNKNOWN);
        // The published fair share is on a single node, however many accelerators that takes.
        self.base.clear();
        for job in 0..self.jobs.len() {
            let (fair, _) = self.entitled[job];
            let base = match self.jobs[job].model {
                None => fair,
                Some(model) => {
                    let whole = (fair.ceil() as u32).min(model.limits.most_replicas()).max(1);
                    // A part of an accelerator counts in proportion.
                    self.goodput(job, NodeSpan::OneNode, whole) * (fair / fair.ceil())
                }
            };
            // A job that cannot run on its fair share has a speedup of 0 everywhere.
            self.base.push(if base > 0.0 { base } else { f64::INFINITY });
        }
        self.kept.clear();
        for job in 0..self.jobs.len() {
            let held = &self.jobs[job].held;
            let speedup = self.speedup(job, NodeSpan::of(held), held.gpus());
            self.kept.push([self.entitled[job].1 * self.parameters.term(speedup * self.scale), speedup]);
        }
    }

    /// Best goodput of the job; without a model its number of replicas.
    fn goodput(&mut self, job: usize, span: NodeSpan, replicas: u32) -> f64 {
        let contender = &self.jobs[job];
        let Some(model) = contender.model else { return f64::from(replicas) };
        let table = self.goodputs.entry(contender.job).or_insert_with(|| GoodputTables {
            model,
            single: Vec::new(),
            distributed: Vec::new(),
        });
        let row = match span {
            NodeSpan::OneNode => &mut table.single,
            NodeSpan::ManyNodes => &mut table.distributed,
        };
        if row.len() <= replicas as usize {
            row.resize(replicas as usize + 1, f64::NAN);
        }
        let entry = &mut row[replicas as usize];
        if entry.is_nan() {
            *entry = model.best(span.nodes(), replicas).map_or(0.0, |best| best.goodput);
        }
        *entry
    }

    fn speedup(&mut self, job: usize, span: NodeSpan, replicas: u32) -> f64 {
        if replicas == 0 { 0.0 } else { self.goodput(job, span, replicas) / self.base[job] }
    }

    /// Term and speedup of a job that restarts on `replicas`, at most its maximum.
    #[inline]
    pub(super) fn moved(&mut self, job: usize, span: NodeSpan, replicas: u32) -> [f64; 2] {
        let table = &self.tables[job];
        let row = match span {
            NodeSpan::OneNode => table.single,
            NodeSpan::ManyNodes => table.distributed,
        };
        let at = (row + replicas) as usize;
        let known = self.moved[at];
        if known[0].is_nan() { self.ask(job, span, replicas, at) } else { known }
    }

    /// Term and speedup of a job without accelerators.
    #[inline]
    pub(super) fn stopped(&mut self, job: usize) -> [f64; 2] {
        self.moved(job, NodeSpan::OneNode, 0)
    }

    #[cold]
    fn ask(&mut self, job: usize, span: NodeSpan, replicas: u32, at: usize) -> [f64; 2] {
        let speedup = self.speedup(job, span, replicas);
        let term = self.parameters.term(speedup * self.scale * self.factor[job]);
        self.moved[at] = [self.entitled[job].1 * term, speedup];
        self.moved[at]
    }

    /// Value of `state`.
    pub fn value(&mut self, state: &[Lanes]) -> StateValue {
        let mut sums = [0.0; 2];
        let mut used = vec![[0u8; 16]; self.width];
        for job in 0..self.jobs.len() {
            let row = &state[job * self.width..(job + 1) * self.width];
            let [term, speedup] = match same(row, self.row(job)) {
                true => self.kept(job),
                false => self.moved(job, span(row), sum(row)),
            };
            sums = [sums[0] + term, sums[1] + speedup];
            used.iter_mut().zip(row).for_each(|(used, row)| *used = add(*used, *row));
        }
        let active = self.active(used.iter().map(|lanes| nonzero(*lanes)));
        self.total(sums, active)
    }

    /// Present row of the job.
    #[inline]
    pub(super) fn row(&self, job: usize) -> &[Lanes] {
        &self.current[job * self.width..(job + 1) * self.width]
    }

    /// Replicas of the job's present row.
    #[inline]
    pub(super) fn held(&self, job: usize) -> u32 {
        self.held[job]
    }

    /// Fewest and most replicas of a job.
    #[inline]
    pub(super) fn bounds(&self, job: usize) -> (u32, u32) {
        (self.tables[job].min, self.tables[job].max)
    }

    /// Term and speedup of a job that stays as it is.
    #[inline]
    pub(super) fn kept(&self, job: usize) -> [f64; 2] {
        self.kept[job]
    }

    /// Number of accelerators of the nodes with their byte in `masks` set.
    pub(super) fn active(&self, masks: impl Iterator<Item = u128>) -> u32 {
        masks.zip(&self.capacity).map(|(mask, capacity)| sum(&[and(*capacity, mask)])).sum()
    }

    /// Value from summed terms and speedups, and the accelerators of nodes in use.
    pub(super) fn total(&self, [terms, speedups]: [f64; 2], active: u32) -> StateValue {
        let utility = if active > 0 { speedups / f64::from(active) } else { 0.0 };
        StateValue { fitness: self.parameters.mean(terms, self.jobs.len()), utility }
    }

    /// Number of accelerators to share out.
    pub(super) fn total_gpus(&self) -> u32 {
        sum(&self.capacity)
    }

    /// Accelerators of the largest node, at least 1.
    pub(super) fn largest_node(&self) -> u32 {
        self.capacity.iter().flatten().copied().max().map_or(1, |gpus| u32::from(gpus).max(1))
    }

    /// Numbers of replicas worth considering for a job, ascending: up to two nodes' worth each,
    /// then whole nodes; the job's maximum and its present number.
    pub(super) fn sizes(&self, job: usize) -> impl Iterator<Item = u32> + use<> {
        let (node, min, max) =
            (self.largest_node(), self.jobs[job].min.max(1), self.jobs[job].max.min(self.total_gpus()));
        let special = [max, self.jobs[job].held.gpus()];
        (min..=max).filter(move |replicas| {
            *replicas <= 2 * node || replicas.is_multiple_of(node) || special.contains(replicas)
        })
    }

    /// The row as a placement, in order of nodes.
    pub(super) fn placement(&self, row: &[Lanes]) -> Placement {
        row.iter().flatten().enumerate().map(|(node, &gpus)| (NodeId::at(node), u32::from(gpus))).collect()
    }
}
