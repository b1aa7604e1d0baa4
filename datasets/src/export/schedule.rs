//! The schedule of one run, from the tables in its run directory.

use std::path::{Path, PathBuf};

use crate::error::DataError;
use crate::store::{Table, Values};

/// A job with the times of a schedule, seconds since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduledJob {
    /// Name of the job.
    pub name: String,
    /// Application that the job trains; empty where it is not known.
    pub application: String,
    /// Tenant that submitted the job; empty where it is not known.
    pub tenant: String,
    /// Moment at which the job was submitted.
    pub submit_secs: f64,
    /// First start; `None` where the job never ran, and for a trace.
    pub start_secs: Option<f64>,
    /// Run time from the first start to the end; `None` where the job has no end.
    pub run_secs: Option<f64>,
    /// Accelerators asked for.
    pub gpus: u32,
    /// Mean number of accelerators while any were held, where a run tells it.
    pub gpus_mean: Option<f64>,
    /// Run time that the user asked for.
    pub limit_secs: Option<f64>,
}

/// A change of the number of accelerators that a job holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldingChange {
    /// Moment, seconds since the start.
    pub at_secs: f64,
    /// Name of the job.
    pub job: String,
    /// Accelerators held from then on.
    pub gpus: u32,
    /// Nodes by number, with the accelerators held on each from then on; `None` where the run did not log them.
    pub placement: Option<Vec<(u32, u32)>>,
}

/// Selection of one run of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunChoice {
    /// Name of the policy.
    pub policy: Option<String>,
    /// Name of the workload.
    pub workload: Option<String>,
    /// Seed of the run.
    pub seed: Option<i64>,
}

/// Jobs and changes of one run.
#[derive(Clone, Debug)]
pub struct RunSchedule {
    /// Rows of the run in `jobs.parquet`.
    pub table: Table,
    /// Jobs in the order of the table.
    pub jobs: Vec<ScheduledJob>,
    /// Changes in order of time; empty where the run did not log them.
    pub changes: Vec<HoldingChange>,
}

impl RunSchedule {
    /// Reads the run that is chosen.
    ///
    /// # Errors
    /// Where a table cannot be read or lacks a column, and where the choice fits no run or several: the runs are named.
    pub fn read(dir: &Path, choice: &RunChoice) -> Result<Self, DataError> {
        let path = dir.join("jobs.parquet");
        let all = Table::read_parquet(&path)?;
        let runs = Runs::of(&path, &all)?;
        let run = runs.chosen(&path, choice)?;
        let table = all.rows_of(&runs.rows_of(&run));
        let jobs = jobs(&path, &table)?;
        let path = dir.join("events.parquet");
        let changes = match path.is_file() {
            true => {
                let all = Table::read_parquet(&path)?;
                let rows = Runs::of(&path, &all)?.rows_of(&run);
                changes(&path, &all.rows_of(&rows))?
            }
            false => Vec::new(),
        };
        Ok(Self { table, jobs, changes })
    }
}

/// Name of a run: policy, workload and seed.
type RunId = (String, String, i64);

/// The run of each row.
struct Runs(Vec<RunId>);

impl Runs {
    fn of(path: &Path, table: &Table) -> Result<Self, DataError> {
        let (policies, workloads) = (texts(path, table, "policy")?, texts(path, table, "workload")?);
        let seeds = numbers(path, table, "seed")?;
        let names = policies.into_iter().zip(workloads).zip(seeds);
        Ok(Self(names.map(|((policy, workload), seed)| (policy, workload, seed.unwrap_or(0.0) as i64)).collect()))
    }

    fn chosen(&self, path: &Path, choice: &RunChoice) -> Result<RunId, DataError> {
        let mut runs: Vec<&RunId> = self.0.iter().collect();
        runs.sort();
        runs.dedup();
        let fits = |run: &&RunId| {
            choice.policy.as_ref().is_none_or(|policy| *policy == run.0)
                && choice.workload.as_ref().is_none_or(|workload| *workload == run.1)
                && choice.seed.is_none_or(|seed| seed == run.2)
        };
        let fitting: Vec<&RunId> = runs.iter().copied().filter(fits).collect();
        match fitting[..] {
            [run] => Ok(run.clone()),
            _ => {
                let named = if fitting.is_empty() { &runs } else { &fitting };
                let names: Vec<String> = named
                    .iter()
                    .take(12)
                    .map(|(policy, workload, seed)| format!("{policy} on {workload}, seed {seed}"))
                    .collect();
                Err(DataError::Runs { path: PathBuf::from(path), found: fitting.len(), known: names.join("; ") })
            }
        }
    }

    fn rows_of(&self, run: &RunId) -> Vec<usize> {
        (0..self.0.len()).filter(|&row| self.0[row] == *run).collect()
    }
}

fn jobs(path: &Path, table: &Table) -> Result<Vec<ScheduledJob>, DataError> {
    let (names, applications) = (texts(path, table, "job_id")?, texts(path, table, "application")?);
    let column = |name| numbers(path, table, name);
    let (tenants, submits, asked) =
        (column("tenant")?, column("submission_time")?, column("requested_number_of_resources")?);
    let (starts, runs, means) = (column("starting_time")?, column("execution_time")?, column("gpus_mean")?);
    let job = |(row, (name, application)): (usize, (String, String))| ScheduledJob {
        name,
        application,
        tenant: tenants[row].map(|tenant| (tenant as i64).to_string()).unwrap_or_default(),
        submit_secs: submits[row].unwrap_or_default(),
        start_secs: starts[row],
        run_secs: runs[row],
        gpus: asked[row].unwrap_or(1.0) as u32,
        gpus_mean: means[row],
        limit_secs: None,
    };
    Ok(names.into_iter().zip(applications).enumerate().map(job).collect())
}

fn changes(path: &Path, table: &Table) -> Result<Vec<HoldingChange>, DataError> {
    let (times, jobs) = (numbers(path, table, "time_secs")?, texts(path, table, "job_id")?);
    let gpus = numbers(path, table, "gpus")?;
    // Runs of earlier versions do not have the column.
    let logged = table.column("placement").map(|_| texts(path, table, "placement")).transpose()?;
    let change = |(row, job): (usize, String)| HoldingChange {
        at_secs: times[row].unwrap_or_default(),
        job,
        gpus: gpus[row].unwrap_or_default() as u32,
        placement: logged.as_ref().and_then(|logged| placement(&logged[row])),
    };
    Ok(jobs.into_iter().enumerate().map(change).collect())
}

/// Nodes and accelerators of a placement, `node:accelerators` each; `None` where it is written in another way.
fn placement(text: &str) -> Option<Vec<(u32, u32)>> {
    let slice = |part: &str| {
        let (node, gpus) = part.split_once(':')?;
        Some((node.parse().ok()?, gpus.parse().ok()?))
    };
    text.split_whitespace().map(slice).collect()
}

fn column<'a>(path: &Path, table: &'a Table, name: &str) -> Result<&'a Values, DataError> {
    let found = || table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let missing = || DataError::MissingColumn { path: path.to_owned(), column: name.to_owned(), found: found() };
    table.column(name).ok_or_else(missing)
}

fn texts(path: &Path, table: &Table, name: &str) -> Result<Vec<String>, DataError> {
    match column(path, table, name)? {
        Values::Utf8(values) => Ok(values.iter().map(|text| text.clone().unwrap_or_default()).collect()),
        Values::TextChoice(values) => Ok(values.iter().map(|text| text.unwrap_or_default().to_owned()).collect()),
        other => Err(wrong_type(path, name, "text", other)),
    }
}

fn numbers(path: &Path, table: &Table, name: &str) -> Result<Vec<Option<f64>>, DataError> {
    match column(path, table, name)? {
        Values::Float64(values) => Ok(values.clone()),
        Values::Int64(values) => Ok(values.iter().map(|value| value.map(|value| value as f64)).collect()),
        other => Err(wrong_type(path, name, "numbers", other)),
    }
}

fn wrong_type(path: &Path, name: &str, expected: &str, found: &Values) -> DataError {
    DataError::ColumnType {
        path: path.to_owned(),
        column: name.to_owned(),
        expected: expected.to_owned(),
        found: found.kind().to_owned(),
    }
}
