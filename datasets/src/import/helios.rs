//! Slurm logs of SenseTime's Helios clusters (Hu et al., SC'21; S-Lab-System-Group/HeliosData, `cluster_log.csv`) and
//! of Shanghai AI Lab's Acme clusters (Hu et al., NSDI'24; InternLM/AcmeTrace, `trace_seren.csv`, `trace_kalos.csv`).
//!
//! Both have `job_id,user,gpu_num,submit_time,duration` among their columns. A job is rigid and lasts as long as it
//! did, however it ended. The virtual cluster of Helios becomes the tenant, and the user where there is none. Jobs
//! without accelerators are refused.

use std::path::Path;

use goodput_env::time::SimTime;

use super::dates::seconds;
use super::{Body, Clock, Csv, Imported, ReadRow, RowFormat, WorkloadFormat};
use crate::csv_rows::CsvRow;
use crate::error::{DataError, RowProblem};
use crate::jobs::JobRow;

/// Columns that are read, the required ones first.
pub const COLUMNS: &[&str] = &["job_id", "user", "gpu_num", "submit_time", "duration", "vc"];

/// Number of columns that must be there.
const REQUIRED: usize = 5;

/// The format as one job a row.
pub(super) const ROWS: RowFormat = RowFormat {
    format: WorkloadFormat::Helios,
    clock: Clock::Unix,
    body: Body::Csv(Csv { columns: COLUMNS, required: REQUIRED, delimiter: b',', job }),
};

/// Reads the bytes of a log; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    ROWS.parse(path, text)
}

fn job(row: &CsvRow<'_, '_>) -> Result<ReadRow, RowProblem> {
    let tenant = if row.bytes(5).is_empty() { row.text(1)? } else { row.text(5)? };
    let submit = seconds(row.bytes(3)).ok_or_else(|| row.problem(3, "a time as 2020-06-09 18:41:01"))?;
    Ok(JobRow {
        line: row.line,
        job_id: row.text(0)?.to_owned(),
        submit: SimTime::from_secs(submit),
        duration: Some(SimTime::from_secs_f64(row.at_least(4, 0.001, "a duration in seconds above 0")?)),
        gpus: row.count(2)?,
        tenant: Some(tenant.to_owned()),
        ..JobRow::default()
    }
    .into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Rows in the schema of Helios, made up.
    const HELIOS: &str = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
        7,u1,vc1,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n\
        8,u2,vc1,0,16,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:45:36,248,0\n\
        9,u2,vc2,1,16,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:41:02,1,0\n";

    /// Rows in the schema of Acme, made up.
    const ACME: &str = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
        a,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n";

    #[test]
    fn logs_of_both_clusters_become_jobs() {
        let imported = parse(Path::new("t"), HELIOS.as_bytes()).unwrap();
        let jobs: Vec<_> = imported
            .jobs
            .iter()
            .map(|job| (job.job_id.as_str(), job.gpus, job.submit.as_millis() / 1000, job.tenant.as_deref().unwrap()))
            .collect();
        assert_eq!(jobs, [("7", 4, 26, "vc1"), ("9", 1, 0, "vc2")]);
        assert_eq!(imported.report.refused.count, 1);
        let imported = parse(Path::new("t"), ACME.as_bytes()).unwrap();
        assert_eq!((imported.jobs[0].gpus, imported.jobs[0].tenant.as_deref()), (8, Some("u1")));
        assert_eq!(imported.origin_unix_secs, Some(1_677_601_102));
    }
}
