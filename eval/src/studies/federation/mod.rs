//! Clusters that lend each other servers, run with and without a coordinator on the same jobs and
//! loads.

use std::sync::atomic::{AtomicUsize, Ordering};

use goodput_agents::compose::coordinator;
use goodput_env::sim::{Outcome, SimError};
use ndarray::Array2;
use rayon::prelude::*;
use thiserror::Error;

use crate::run::summary::Statistics;
use crate::stats::{Bootstrap, Estimate, difference};
use goodput_configs::federation::{FederationConfig, OutlookConfig};
use goodput_configs::scenario::{Setup, SetupError};

/// A federation that can be run.
#[derive(Clone, Debug)]
pub struct Federation {
    config: FederationConfig,
    /// One per cluster.
    setups: Vec<Setup>,
}

/// Totals under one coordinator in one cluster, or in all, over all seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoordinatorTotals {
    /// Jobs that came.
    pub jobs: u64,
    /// Sum of their completion times, seconds; of those that were cut off, the time until then.
    pub jct_secs: f64,
    /// Times that a job that ran was stopped: it lost its accelerators, or got others.
    pub preemptions: u64,
    /// Servers that came from other clusters.
    pub servers_in: u64,
    /// Servers that went to other clusters.
    pub servers_out: u64,
    /// Requests of services, micro-requests.
    pub requests: u64,
    /// Of those, the ones that missed their objective.
    pub violated: u64,
}

/// A line of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FederationRow {
    /// The cluster; `None` for all together.
    pub cluster: Option<String>,
    /// Coordinator of the runs.
    pub outlook: OutlookConfig,
    /// Totals of the runs.
    pub tally: CoordinatorTotals,
    /// Mean completion time of a seed, less that under the first coordinator of the file, seconds;
    /// `None` for the first itself.
    pub difference: Option<Estimate>,
}

/// A run that failed.
#[derive(Debug, Error)]
#[error("coordinator {outlook}, seed {seed}: {source}")]
pub struct FederationError {
    /// Name of the coordinator.
    pub outlook: &'static str,
    /// Seed of the run.
    pub seed: u64,
    /// Error of the simulator.
    pub source: Box<SimError>,
}

impl CoordinatorTotals {
    /// Mean completion time, seconds; `None` without jobs.
    pub fn jct_mean_secs(&self) -> Option<f64> {
        (self.jobs > 0).then(|| self.jct_secs / self.jobs as f64)
    }

    /// Share of requests that kept their objective; `None` without requests.
    pub fn attainment(&self) -> Option<f64> {
        (self.requests > 0).then(|| 1.0 - self.violated as f64 / self.requests as f64)
    }

    fn sum(tallies: &[Self]) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            sum.jobs += tally.jobs;
            sum.jct_secs += tally.jct_secs;
            sum.preemptions += tally.preemptions;
            sum.servers_in += tally.servers_in;
            sum.servers_out += tally.servers_out;
            sum.requests += tally.requests;
            sum.violated += tally.violated;
        }
        sum
    }

    fn of(outcome: &Outcome) -> Self {
        let mut tally = Self::default();
        for job in outcome.jobs.iter().filter(|job| job.submit <= outcome.end) {
            tally.jobs += 1;
            tally.jct_secs += (job.left().unwrap_or(outcome.end) - job.submit).as_secs_f64();
            tally.preemptions += u64::from(job.restarts);
        }
        for service in &outcome.services {
            tally.requests += service.requests;
            tally.violated += service.violated;
        }
        tally
    }
}

impl Federation {
    /// Federation of the clusters of a file.
    ///
    /// # Errors
    /// [`SetupError`] naming the key, and the cluster where it is one's.
    pub fn new(config: FederationConfig) -> Result<Self, SetupError> {
        let setups = config.setups()?;
        Ok(Self { config, setups })
    }

    /// Runs every coordinator of the file on the same seeds, on rayon's current thread pool.
    /// `progress` is told how many runs are done and how many there are. Rows come cluster by
    /// cluster and then for all together, of each the coordinators in the order of the file.
    ///
    /// # Errors
    /// Of the runs that failed the first in order.
    pub fn compare(&self, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Vec<FederationRow>, FederationError> {
        let (outlooks, seeds) = (&self.config.coordinator.outlook, self.config.seeds as usize);
        let (total, done) = (outlooks.len() * seeds, AtomicUsize::new(0));
        // All runs end before errors are looked at: the first error is then the first in order and
        // not in time.
        let runs: Vec<Result<Vec<CoordinatorTotals>, FederationError>> = (0..total)
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                let (outlook, seed) = (outlooks[index / seeds], self.config.seed + (index % seeds) as u64);
                let failed = |source| FederationError { outlook: outlook.name(), seed, source: Box::new(source) };
                let run = self.run(outlook, seed).map_err(failed);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                run
            })
            .collect();
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let statistics = Statistics::default();
        let bootstrap = Bootstrap::of_seeds(seeds, statistics.resamples, statistics.coverage(), statistics.seed);
        let names = self.config.clusters.iter().map(|cluster| Some(cluster.name.clone()));
        let mut rows = Vec::new();
        for (at, cluster) in names.chain([None]).enumerate() {
            let clusters = if cluster.is_some() { at..at + 1 } else { 0..at };
            let by_seed: Vec<CoordinatorTotals> =
                runs.iter().map(|run| CoordinatorTotals::sum(&run[clusters.clone()])).collect();
            let mean_jcts = |tallies: &[CoordinatorTotals]| {
                let mean = |(seed, _): (usize, usize)| tallies[seed].jct_mean_secs().unwrap_or(0.0);
                Array2::from_shape_fn((seeds, 1), mean)
            };
            let first = mean_jcts(&by_seed[..seeds]);
            for ((index, &outlook), tallies) in outlooks.iter().enumerate().zip(by_seed.chunks(seeds)) {
                let against_first = || difference(&bootstrap, mean_jcts(tallies).view(), first.view());
                rows.push(FederationRow {
                    cluster: cluster.clone(),
                    outlook,
                    tally: CoordinatorTotals::sum(tallies),
                    difference: (index > 0).then(against_first),
                });
            }
        }
        Ok(rows)
    }

    /// One coordinator on one seed: a tally for each cluster.
    fn run(&self, outlook: OutlookConfig, seed: u64) -> Result<Vec<CoordinatorTotals>, SimError> {
        let clusters = &self.config.clusters;
        // Each cluster of each seed draws for itself.
        let own = |index: usize| seed * clusters.len() as u64 + index as u64;
        let members = self.setups.iter().zip(clusters).enumerate().filter_map(|(index, (setup, cluster))| {
            Some((setup.scenario(own(index)), cluster.composite(own(index), setup.sharing())?))
        });
        let owned: Vec<u32> = clusters.iter().map(|cluster| cluster.movable).collect();
        let coordinator =
            self.config.coordinator.build(outlook, self.setups.iter().map(|setup| &setup.sharing().forecasting));
        let (outcomes, transfers) =
            coordinator::Federation::new(members.collect(), &owned, coordinator).run(|_, _| {})?;
        let mut tallies: Vec<CoordinatorTotals> = outcomes.iter().map(CoordinatorTotals::of).collect();
        for transfer in transfers {
            tallies[transfer.from].servers_out += 1;
            tallies[transfer.to].servers_in += 1;
        }
        Ok(tallies)
    }
}
