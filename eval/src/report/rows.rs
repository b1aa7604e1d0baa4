//! Rows of one run in every table, and what figures take from it.

use goodput_datasets::store::{Table, Values};

use super::picture::Picture;
use super::tables::{RunName, allocation_rows, job_rows, level_rows, moment_rows, service_rows, tenant_rows};
use crate::run::PolicyRun;

/// Tables that hold rows of several kinds for each run, beside the table of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideTable {
    /// Service that each tenant received.
    Tenants,
    /// Changes of allocations, of runs that logged them.
    Events,
    /// State of the cluster over time, of runs that logged their allocations.
    Timeseries,
    /// Accelerator time of the cluster, its nodes and their applications.
    Usage,
    /// Requests of each service and its objectives, of runs with language models; without columns for others.
    Services,
}

impl SideTable {
    /// Every side table.
    pub const ALL: [Self; 5] = [Self::Tenants, Self::Events, Self::Timeseries, Self::Usage, Self::Services];

    /// Name of the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenants => "tenants",
            Self::Events => "events",
            Self::Timeseries => "timeseries",
            Self::Usage => "usage",
            Self::Services => "services",
        }
    }

    fn rows(self, run: &PolicyRun, name: RunName<'_>) -> Table {
        match self {
            Self::Tenants => tenant_rows(run, name),
            Self::Events => allocation_rows(run, name),
            Self::Timeseries => moment_rows(run, name),
            Self::Usage => level_rows(run, name),
            Self::Services => service_rows(run, name),
        }
    }
}

/// Everything that tables and figures take from a run, beside its head.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRows {
    /// One row per job.
    pub jobs: Table,
    /// The side tables, in the order of [`SideTable::ALL`].
    pub sides: [Table; 5],
    /// Picture of the run, where figures show it.
    pub picture: Option<Picture>,
}

impl RunRows {
    /// Rows of a finished run. Only a run that is `shown` has a picture.
    pub fn of(run: &PolicyRun, name: RunName<'_>, shown: bool) -> Self {
        Self {
            jobs: job_rows(run, name),
            sides: SideTable::ALL.map(|table| table.rows(run, name)),
            picture: shown.then(|| Picture::of(&run.scenario, &run.outcome)),
        }
    }

    /// Completion times of the completed jobs, seconds.
    pub fn jct_secs(&self) -> impl Iterator<Item = f64> {
        let values = match self.jobs.column("turnaround_time") {
            Some(Values::Float64(values)) => values.as_slice(),
            _ => &[],
        };
        values.iter().copied().flatten()
    }
}
