//! The numbers of a run that metrics are made of, collected in one pass.

use goodput_env::scenario::Scenario;
use goodput_env::sim::{JobRecord, Outcome};

use super::cards::card_facts;
use super::{
    CardFacts, DeadlineFacts, Expenses, IsolatedReference, Reliability, RentalFacts, TenantFacts, bounded_slowdown,
    deadline_facts, finish_time_fairness, isolated_secs, jct_secs, productive_gpu_millis, queueing_delay_secs,
    reference_gpu_secs, tenant_facts,
};

/// A run, ready to be measured. Lists over jobs hold completed jobs in order of their ids, unless
/// said otherwise.
#[derive(Clone, Debug)]
pub struct RunFacts<'a> {
    /// Outcome of the run, as the simulator gave it.
    pub outcome: &'a Outcome,
    /// Completion times, seconds.
    pub jct_secs: Vec<f64>,
    /// Delays to the first accelerator, seconds, of all jobs that started.
    pub queueing_secs: Vec<f64>,
    /// Bounded slowdown of each completed job.
    pub slowdowns: Vec<f64>,
    /// Finish-time fairness of each job with a known isolated time.
    pub rho: Vec<f64>,
    /// Restarts, of all jobs.
    pub restarts: Vec<f64>,
    /// GPU time held, all jobs, GPU-seconds.
    pub held_gpu_secs: f64,
    /// GPU time held and not restarting, all jobs, GPU-seconds.
    pub productive_gpu_secs: f64,
    /// Least GPU time for the work of completed jobs, GPU-seconds; `None` where one of them has no
    /// known speed.
    pub reference_gpu_secs: Option<f64>,
    /// From the first submission to the last completion, or to the end of a run that was cut off,
    /// seconds.
    pub makespan_secs: f64,
    /// Accelerators of the cluster.
    pub capacity_gpus: u32,
    /// Jobs that are not complete.
    pub unfinished: usize,
    /// Number of decisions of the policy.
    pub decisions: u64,
    /// Losses by faults and costs of checkpoints; `None` where there are neither.
    pub reliability: Option<Reliability>,
    /// Cost of rented nodes; `None` where nodes are not rented.
    pub rental: Option<RentalFacts>,
    /// Service that each tenant received; empty where the tenants are not known.
    pub tenants: Vec<TenantFacts>,
    /// Use of accelerators by jobs on parts of them; `None` where no job asks for a part.
    pub cards: Option<CardFacts>,
    /// Jobs that have a deadline; empty where the requests are not known.
    pub deadlines: Vec<DeadlineFacts>,
    /// Energy and price of the training.
    pub expenses: Expenses,
    /// Energy and price of the replicas of services.
    pub serving: Expenses,
}

impl<'a> RunFacts<'a> {
    /// Collects the numbers of a run of `scenario`; isolated times come from the scenario's own
    /// speeds.
    pub fn new(scenario: &Scenario, outcome: &'a Outcome) -> Self {
        let reference = IsolatedReference::new(scenario);
        let isolated = isolated_secs(scenario, &reference, outcome);
        let work = outcome.jobs.iter().filter(|job| job.finish.is_some());
        let work = work.map(|job| reference_gpu_secs(scenario, &reference, job.job)).sum();
        let options = &scenario.options;
        let reliability = (options.faults.is_some() || options.checkpoint.is_some()).then(|| Reliability::new(outcome));
        let rental = options.rental.map(|terms| RentalFacts::new(&terms, scenario.cluster.gpus_per_node(), outcome));
        let facts = Self::with_isolated(outcome, scenario.cluster.total_gpus(), &isolated, work);
        let (tenants, deadlines) = (tenant_facts(scenario, outcome), deadline_facts(scenario, outcome));
        let cards = card_facts(scenario, outcome, facts.makespan_secs);
        let mut expenses = Expenses::of_training(&scenario.cluster, outcome);
        let serving = Expenses::of_services(&scenario.cluster, outcome);
        // Rented nodes have a price of their own.
        expenses.dollars = expenses.dollars.filter(|_| scenario.options.rental.is_none());
        Self { reliability, rental, tenants, deadlines, cards, expenses, serving, ..facts }
    }

    /// As [`Self::new`] with given isolated times by job, seconds, and given work of the completed
    /// jobs, GPU-seconds.
    pub fn with_isolated(
        outcome: &'a Outcome,
        capacity_gpus: u32,
        isolated: &[Option<f64>],
        reference_gpu_secs: Option<f64>,
    ) -> Self {
        let jobs = &outcome.jobs;
        let rho = |(job, alone): (_, &Option<f64>)| Some(finish_time_fairness(jct_secs(job)?, (*alone)?));
        let gpu_secs = |millis: f64| millis / 1000.0;
        Self {
            jct_secs: jobs.iter().filter_map(jct_secs).collect(),
            queueing_secs: jobs.iter().filter_map(queueing_delay_secs).collect(),
            slowdowns: jobs.iter().filter_map(bounded_slowdown).collect(),
            rho: jobs.iter().zip(isolated).filter_map(rho).filter(|rho| rho.is_finite()).collect(),
            restarts: jobs.iter().map(|job| f64::from(job.restarts)).collect(),
            held_gpu_secs: gpu_secs(jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>() as f64),
            productive_gpu_secs: gpu_secs(jobs.iter().map(productive_gpu_millis).sum()),
            reference_gpu_secs,
            makespan_secs: makespan_secs(outcome),
            capacity_gpus,
            unfinished: jobs.iter().filter(|job| job.left().is_none()).count(),
            decisions: outcome.decisions,
            reliability: None,
            rental: None,
            tenants: Vec::new(),
            deadlines: Vec::new(),
            cards: None,
            expenses: Expenses::default(),
            serving: Expenses::default(),
            outcome,
        }
    }

    /// Jobs submitted before the run ended.
    pub fn arrived(&self) -> impl Iterator<Item = &'a JobRecord> + use<'a> {
        let outcome = self.outcome;
        outcome.jobs.iter().filter(|job| job.submit <= outcome.end)
    }

    /// `gpu_secs` over capacity times makespan; `None` for a run without extent. Where nodes are rented, the capacity
    /// is that of the nodes for as long as they are paid.
    pub fn share_of_capacity(&self, gpu_secs: f64) -> Option<f64> {
        let capacity = match self.rental {
            Some(rental) => rental.gpu_secs,
            None => f64::from(self.capacity_gpus) * self.makespan_secs,
        };
        (capacity > 0.0).then(|| gpu_secs / capacity)
    }
}

fn makespan_secs(outcome: &Outcome) -> f64 {
    let Some(first) = outcome.jobs.iter().map(|job| job.submit).min() else { return 0.0 };
    let last = match outcome.truncated {
        true => Some(outcome.end),
        // A job that was given up held accelerators until then, and one that was refused held none.
        false => outcome.jobs.iter().filter(|job| job.refused.is_none()).filter_map(JobRecord::left).max(),
    };
    last.map_or(0.0, |last| (last - first).as_secs_f64().max(0.0))
}
