//! Jobs that Slurm put back into the queue, of which `sacct --duplicates` lists every run.
//!
//! A record ends in `PREEMPTED`, `NODE_FAIL`, `BOOT_FAIL`, `REQUEUED` or `RESIZING` where the job went on in a later
//! record with that `JobID`; the submission of that record is the moment of the requeue or of the resize. The records
//! of a job become one job, which is reported as a repair with the line of the first record. So is a job of which the
//! last record ends in `REQUEUED` or `RESIZING`: a later run is not in the listing. A job that is refused is reported
//! with the line of its last record.
//!
//! | of the job | from |
//! |---|---|
//! | submission | the first record |
//! | accelerators, tenant | the last record that held accelerators |
//! | run time | the sum of the runs; a run on another number of accelerators counts by its accelerator time |
//! | time limit | the time of the runs before the last one, and what was left of the limit when that one began |
//!
//! A limit begins anew with each requeue. It does not with a resize: the limit of a resized run counts from the start
//! of the run that was resized first.
//!
//! Run times are added up, as those of the attempts of Philly are ([`super::philly_log`]): a job asks the cluster for
//! the accelerator time of all of its runs, and one that saves checkpoints goes on where it was. For a job that began
//! again from nothing, the sum is too much. A listing without `--duplicates` has the last run alone.
//!
//! A record that is later than one that has ended is refused as a repeated name: Slurm counts its jobs anew after 67
//! million. Without the column `State`, no record is known to have gone on, and all repeated names are refused. The
//! names of jobs that were put back, and the numbers of their records, are in memory, and no other job is.

use std::collections::{BTreeMap, BTreeSet};

use goodput_env::time::SimTime;

use super::recognise::has;
use super::rows::Each;
use super::sacct::{GPUS, JOB_ID, LEAST_SECS, RECORDS, RUN_TIME, Record, is_step, is_unended, record, state};
use super::{ReadRow, Repair, TraceSource};
use crate::csv_rows::first_line;
use crate::error::{DataError, RowProblem};

/// State of a run that a user put back into the queue.
const REQUEUED: &str = "REQUEUED";

/// State of a run that ended with a change of its size.
const RESIZING: &str = "RESIZING";

/// States of a run after which the job may go on. After the last two it does, and after the others where Slurm may put
/// it back into the queue.
const INTERRUPTED: [&str; 5] = ["PREEMPTED", "NODE_FAIL", "BOOT_FAIL", REQUEUED, RESIZING];

/// Reads a listing: the jobs of one record in the order of the file, and then those of several.
pub(super) fn read(source: &TraceSource<'_>, each: Each<'_>) -> Result<(), DataError> {
    let interrupted = interrupted(source)?;
    let mut runs: BTreeMap<&[u8], Vec<Record>> = BTreeMap::new();
    RECORDS.see(source, &mut |row| {
        let row = match row {
            Ok(row) => row,
            Err(problem) => return each(Err(problem)),
        };
        let Some(name) = interrupted.get(row.bytes(JOB_ID)) else {
            return each((RECORDS.job)(&row).map_err(|problem| (row.line, problem)));
        };
        match record(&row) {
            Ok(record) => runs.entry(&**name).or_default().push(record),
            Err(problem) => each(Err((row.line, problem)))?,
        }
        Ok(())
    })?;
    let mut runs: Vec<(&[u8], Vec<Record>)> = runs.into_iter().collect();
    runs.sort_by_key(|(_, records)| records[0].line);
    for (name, mut records) in runs {
        let name = String::from_utf8_lossy(name);
        let has_ended = |record: &Record| !INTERRUPTED.contains(&record.state.as_str());
        // Slurm counts in whole seconds: of the records of one second, the one that has ended is the last.
        records.sort_by_key(|record| (record.submit, has_ended(record), record.line));
        let ended = records.iter().position(has_ended);
        let others = records.split_off(ended.map_or(records.len(), |at| at + 1));
        let (line, last) = (records[0].line, records[records.len() - 1].line);
        each(joined(&name, &records).map_err(|problem| (last, problem)))?;
        for other in others {
            each(Err((other.line, RowProblem::Duplicate { name: name.clone().into_owned(), first: line })))?;
        }
    }
    Ok(())
}

/// Names of the jobs with a run that was interrupted.
fn interrupted(source: &TraceSource<'_>) -> Result<BTreeSet<Box<[u8]>>, DataError> {
    let mut names = BTreeSet::new();
    if !has(first_line(&source.head()?), RECORDS.delimiter, "State") {
        return Ok(names);
    }
    RECORDS.see(source, &mut |row| {
        // What is wrong with a row is said when it is read as a record.
        if let Ok(row) = row
            && INTERRUPTED.iter().any(|interrupted| interrupted.as_bytes() == state(&row))
            && !is_step(&row)
            && !row.bytes(JOB_ID).is_empty()
        {
            names.insert(row.bytes(JOB_ID).into());
        }
        Ok(())
    })?;
    Ok(names)
}

/// The job of some runs in the order of time, of which there is at least one.
fn joined(name: &str, runs: &[Record]) -> Result<ReadRow, RowProblem> {
    let (first, last) = (&runs[0], &runs[runs.len() - 1]);
    let wrong = |column, value, expected| RowProblem::Value { column, value, expected };
    if is_unended(&last.state) {
        return Err(wrong("State", last.state.clone(), "a job that has ended"));
    }
    let ran = |run: &&Record| run.gpus > 0 && run.secs >= LEAST_SECS;
    let Some(held) = runs.iter().rev().find(ran) else {
        return Err(match runs.iter().any(|run| run.gpus > 0) {
            true => wrong("ElapsedRaw", last.secs.to_string(), RUN_TIME),
            false => wrong("AllocTRES", String::new(), GPUS),
        });
    };
    let secs =
        |runs: &[Record]| -> f64 { runs.iter().map(|run| run.secs * f64::from(run.gpus) / f64::from(held.gpus)).sum() };
    let before = &runs[..runs.len() - 1];
    // Seconds of the last run's limit that had gone when it began: those of the runs that were resized into it.
    let anew = before.iter().rposition(|run| run.state != RESIZING).map_or(0, |at| at + 1);
    let elapsed: f64 = before[anew..].iter().map(|run| run.secs).sum();
    let limit = |limit: SimTime| SimTime::from_secs_f64(secs(before) + (limit.as_secs_f64() - elapsed).max(0.0));
    let limit = last.limit.map(limit).filter(|limit| *limit > SimTime::ZERO);
    let job = Record { line: first.line, submit: first.submit, secs: secs(runs), limit, ..held.clone() }.job(name);
    let mut said = Vec::new();
    if !before.is_empty() {
        let ended: Vec<&str> = before.iter().map(|run| run.state.as_str()).collect();
        let sizes = match runs.iter().filter(ran).all(|run| run.gpus == held.gpus) {
            true => String::new(),
            false => format!(", as if all held {} accelerators", held.gpus),
        };
        let (count, ended, secs) = (runs.len(), ended.join(", "), secs(runs));
        said.push(format!("{count} runs, put back after {ended}: their run times are added up to {secs:.0} s{sizes}"));
    }
    if [REQUEUED, RESIZING].contains(&last.state.as_str()) {
        said.push(format!("the last run ended in {}, and the listing has no later one", last.state));
    }
    let repair = (!said.is_empty()).then(|| Repair { kind: "requeues", what: said.join("; ") });
    Ok(ReadRow { job, repairs: repair.into_iter().collect() })
}
