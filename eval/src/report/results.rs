//! Results of a comparison: what the page shows, and the files with the tables.
//!
//! Runs come one at a time, so that a study of any size needs the memory of one run and of the heads of all.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use goodput_datasets::DataError;
use goodput_datasets::store::{Table, TableWriter};

use super::page_data::CompletionOfRun;
use super::picture::Picture;
use super::plots::CompletionTimes;
use super::rows::{RunRows, SideTable};
use super::tables::{RunName, run_table, with_parts};
use crate::run::summary::{Statistics, Summary};
use crate::run::{Evaluation, RunHead, RunLayout};

/// Parts of a comparison that the page shows.
#[derive(Clone, Debug)]
pub struct ComparisonResults {
    /// Names of the policies, the workloads and the scenarios.
    pub layout: RunLayout,
    /// Heads of the runs, in the order of the layout.
    pub heads: Vec<RunHead>,
    /// Means, intervals and differences.
    pub summary: Summary,
    /// Completion times of all jobs under each policy.
    pub completion: Vec<CompletionTimes>,
    /// Completion times of the jobs of each run, in the order of the layout.
    pub completion_of_runs: Vec<CompletionOfRun>,
    /// Run of each policy on the first scenario.
    pub pictures: Vec<Picture>,
}

impl ComparisonResults {
    /// Results of runs by their heads, with the rows that `read` gives for the run at an index. Each run is read once,
    /// in order, and handed to `write`.
    ///
    /// # Errors
    /// The first error of `read` or `write`.
    pub fn collect<E>(
        layout: RunLayout,
        heads: Vec<RunHead>,
        statistics: Statistics,
        read: impl Fn(usize) -> Result<RunRows, E>,
        mut write: impl FnMut(&RunRows) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (mut completion, mut completion_of_runs, mut pictures) = (Vec::new(), Vec::new(), Vec::new());
        for policy in 0..layout.policies.len() {
            let mut jct_secs = Vec::new();
            for index in layout.runs_of(policy) {
                let rows = read(index)?;
                jct_secs.extend(rows.jct_secs());
                completion_of_runs.push(CompletionOfRun::of(rows.jct_secs().collect()));
                write(&rows)?;
                pictures.extend(rows.picture);
            }
            completion.push(CompletionTimes::of(jct_secs));
        }
        let summary = Summary::new(&layout, &heads, statistics);
        Ok(Self { layout, heads, summary, completion, completion_of_runs, pictures })
    }
}

impl Evaluation {
    /// Rows of the run at an index.
    pub fn rows(&self, index: usize) -> RunRows {
        let (run, layout) = (&self.runs[index], &self.layout);
        let (policy, workload) = (&layout.policies[run.policy], &layout.workloads[run.workload]);
        RunRows::of(run, RunName { policy, workload, seed: run.seed }, layout.is_shown(index))
    }

    /// Parts of the comparison that the page shows.
    pub fn results(&self) -> ComparisonResults {
        let heads = self.runs.iter().map(RunHead::of).collect();
        let read = |index| Ok::<_, std::convert::Infallible>(self.rows(index));
        match ComparisonResults::collect(self.layout.clone(), heads, self.summary.statistics, read, |_| Ok(())) {
            Ok(results) => results,
            Err(never) => match never {},
        }
    }
}

/// Files of the tables of a comparison in a directory, while they grow by runs. A file has its name only once it is
/// whole.
#[derive(Debug)]
pub struct ResultFiles {
    dir: PathBuf,
    parts: bool,
    jobs: Option<TableWriter>,
    sides: [Option<TableWriter>; 4],
    tenants: Csv,
    jobs_csv: Option<Csv>,
}

/// Side tables in Parquet; that of tenants is csv.
const PARQUET: [SideTable; 4] = [SideTable::Events, SideTable::Timeseries, SideTable::Usage, SideTable::Services];

impl ResultFiles {
    /// Files in `dir`, which exists, for runs with these heads; `jobs.csv` among them where it is asked for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(dir: &Path, heads: &[RunHead], jobs_csv: bool) -> Result<Self, DataError> {
        Ok(Self {
            dir: dir.to_owned(),
            parts: heads.iter().any(|head| head.parts),
            jobs: None,
            sides: [const { None }; 4],
            tenants: Csv::create(draft(dir, "tenants.csv"))?,
            jobs_csv: jobs_csv.then(|| Csv::create(draft(dir, "jobs.csv"))).transpose()?,
        })
    }

    /// Appends the rows of the next run.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, rows: &RunRows) -> Result<(), DataError> {
        let completed = self.parts.then(|| with_parts(rows.jobs.clone()));
        let jobs = completed.as_ref().unwrap_or(&rows.jobs);
        append(&mut self.jobs, &draft(&self.dir, "jobs.parquet"), jobs)?;
        if let Some(csv) = &mut self.jobs_csv {
            csv.append(jobs)?;
        }
        let sides = SideTable::ALL.into_iter().zip(&rows.sides).filter(|(_, rows)| !rows.columns.is_empty());
        for (table, rows) in sides {
            match PARQUET.iter().position(|known| *known == table) {
                Some(at) => append(&mut self.sides[at], &draft(&self.dir, &parquet(table)), rows)?,
                None => self.tenants.append(rows)?,
            }
        }
        Ok(())
    }

    /// Ends the files, and writes those that follow from all runs: `runs.parquet` and `summary.json`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(self, results: &ComparisonResults) -> Result<(), DataError> {
        let mut names = vec!["jobs.parquet".to_owned(), "tenants.csv".to_owned()];
        self.jobs.map_or(Ok(()), TableWriter::finish)?;
        self.tenants.finish()?;
        if let Some(csv) = self.jobs_csv {
            csv.finish()?;
            names.push("jobs.csv".to_owned());
        }
        for (table, writer) in PARQUET.into_iter().zip(self.sides) {
            if let Some(writer) = writer {
                writer.finish()?;
                names.push(parquet(table));
            }
        }
        run_table(&results.layout, &results.heads).write_parquet(&draft(&self.dir, "runs.parquet"))?;
        let summary = draft(&self.dir, "summary.json");
        fs::write(&summary, results.summary.to_json()).map_err(|source| DataError::Write { path: summary, source })?;
        names.extend(["runs.parquet".to_owned(), "summary.json".to_owned()]);
        for name in names {
            let path = self.dir.join(&name);
            fs::rename(draft(&self.dir, &name), &path).map_err(|source| DataError::Write { path, source })?;
        }
        Ok(())
    }
}

fn parquet(table: SideTable) -> String {
    format!("{}.parquet", table.name())
}

fn draft(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.draft"))
}

/// Appends to a Parquet file, which the first rows begin.
fn append(writer: &mut Option<TableWriter>, path: &Path, rows: &Table) -> Result<(), DataError> {
    match writer {
        Some(writer) => writer.write(rows),
        None => {
            *writer = Some(TableWriter::create(path, rows)?);
            Ok(())
        }
    }
}

/// Comma-separated file that grows by tables of equal columns.
#[derive(Debug)]
struct Csv {
    path: PathBuf,
    out: BufWriter<File>,
    begun: bool,
}

impl Csv {
    fn create(path: PathBuf) -> Result<Self, DataError> {
        let file = File::create(&path).map_err(|source| DataError::Write { path: path.clone(), source })?;
        Ok(Self { path, out: BufWriter::new(file), begun: false })
    }

    fn append(&mut self, rows: &Table) -> Result<(), DataError> {
        match std::mem::replace(&mut self.begun, true) {
            false => rows.write_csv(&self.path, &mut self.out),
            true => rows.write_csv_rows(&self.path, &mut self.out),
        }
    }

    fn finish(mut self) -> Result<(), DataError> {
        self.out.flush().map_err(|source| DataError::Write { path: self.path, source })
    }
}
