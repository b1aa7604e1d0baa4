//! Scheduler log of the MIT Supercloud (Samsi et al., HPEC 2021; MIT-AI-Accelerator/MIT-Supercloud-Dataset,
//! `slurm-log.csv`): a table of Slurm's database with
//! `id_job,id_user,time_submit,time_start,time_end,timelimit,tres_req` among its columns.
//!
//! Times are seconds since 1970, shifted by the publishers. `tres_req` lists resources by number: 1001 and 1002 are the
//! two kinds of accelerators; `tres_alloc`, where it is there and not empty, counts in its place. The limit is in
//! minutes. A job is rigid and lasts as long as it did, and its user is its tenant. Jobs without accelerators, and jobs
//! that never ran, are refused.

use goodput_env::time::SimTime;

use super::{Body, Clock, Csv, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::RowProblem;
use crate::jobs::JobRow;

/// Columns that are read, the required ones first.
pub const COLUMNS: &[&str] =
    &["id_job", "time_submit", "time_start", "time_end", "tres_req", "id_user", "timelimit", "tres_alloc"];

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Supercloud,
    clock: Clock::Unix,
    body: Body::Csv(Csv { columns: COLUMNS, required: 5, delimiter: b',', job }),
};

/// Numbers of the accelerators among Slurm's trackable resources.
const ACCELERATORS: [&str; 2] = ["1001", "1002"];

/// Limits in minutes that mean none: Slurm's largest number, and the year that is the default.
const UNLIMITED: [f64; 2] = [4_294_967_295.0, 525_600.0];

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let time = |column| row.at_least(column, 0.0, "seconds since 1970");
    let submit = time(1)?;
    let start = time(2)?;
    if start == 0.0 {
        return Err(row.problem(2, "a time: the job never ran"));
    }
    let end = row.at_least(3, start + 0.001, "a time after time_start")?;
    let resources = if row.bytes(7).is_empty() { 4 } else { 7 };
    let gpus = gpus(row.bytes(resources)).ok_or_else(|| row.problem(resources, "accelerators as 1002=2"))?;
    let limit = row.float(6, "minutes").ok().filter(|minutes| *minutes > 0.0 && !UNLIMITED.contains(minutes));
    let user = row.bytes(5);
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(submit),
        duration: Some(SimTime::from_secs_f64(end - start)),
        gpus,
        limit: limit.map(|minutes| SimTime::from_secs_f64(60.0 * minutes)),
        tenant: if user.is_empty() { None } else { Some(row.text(5)?.to_owned()) },
        ..JobRow::default()
    }
    .into())
}

/// Accelerators of a list of resources as `1=20,2=170000,4=1,1002=2`.
fn gpus(resources: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(resources).ok()?;
    let pairs = text.split(',').filter_map(|resource| resource.split_once('='));
    let counts = pairs.filter(|(name, _)| ACCELERATORS.contains(&name.trim())).map(|(_, count)| count.trim().parse());
    let sum = counts.collect::<Result<Vec<u32>, _>>().ok()?.into_iter().try_fold(0_u32, u32::checked_add)?;
    (sum > 0).then_some(sum)
}
