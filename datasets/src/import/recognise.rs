//! The format of a file, by what stands at its start.

use super::{
    Csv, RowFormat, WorkloadFormat, deepboot, elasticflow, helios, job_csv, kubernetes, kueue, openb_jobs, pai, philly,
    philly_log, pollux, sacct, shockwave, supercloud, swf, tiresias,
};
use crate::csv_rows::{first_line, split};
use crate::store::jobs;

/// Share of the required columns of a format by which a header is taken for one of it: a file that lacks a column is
/// told which one it is.
const LEAST: f64 = 0.6;

/// Tables with a header. Of two that a header fits as well, the earlier one is taken.
const TABLES: &[RowFormat] = &[
    job_csv::ROWS,
    pollux::ROWS,
    philly::ROWS,
    tiresias::ROWS,
    elasticflow::ROWS,
    openb_jobs::ROWS,
    helios::ROWS,
    supercloud::ROWS,
    sacct::ROWS,
];

impl RowFormat {
    /// The format of a file that begins with `head`; `None` where it is of no format in which a job is a row.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PAR1") {
            return Some(jobs::ROWS);
        }
        match head.trim_ascii_start().first() {
            Some(b'{') => Some(list(head)),
            Some(b'[') => philly_log::recognises(head).then_some(philly_log::ROWS),
            _ => table(first_line(head)).or_else(|| lines(head)),
        }
    }
}

/// The format without a header that the first line is of.
fn lines(head: &[u8]) -> Option<RowFormat> {
    let first = first_line(head);
    let known = [
        (shockwave::recognises(first), shockwave::ROWS),
        (pai::recognises(first), pai::ROWS),
        (swf::recognises(head), swf::ROWS),
    ];
    known.into_iter().find_map(|(is, format)| is.then_some(format))
}

/// Format of a list of Kubernetes, by the kind of the first object in it.
fn list(head: &[u8]) -> RowFormat {
    let text = String::from_utf8_lossy(head);
    let first = text.split_once("\"items\"").map_or("", |(_, items)| items);
    // Kubernetes writes the keys of an object in order, so that the version of its API stands first.
    let version = first.split_once("\"apiVersion\"").map_or("", |(_, version)| version);
    let kueue = version.trim_start_matches([':', ' ', '"']).starts_with("kueue.x-k8s.io/");
    if kueue { kueue::ROWS } else { kubernetes::ROWS }
}

/// The table that a header fits best.
fn table(header: &[u8]) -> Option<RowFormat> {
    let mut best: Option<(f64, RowFormat)> = None;
    for format in TABLES {
        let Some(csv) = format.body.table() else { continue };
        let share = share(header, csv);
        if share >= LEAST && best.as_ref().is_none_or(|(before, _)| share > *before) {
            best = Some((share, format.clone()));
        }
    }
    let (_, format) = best?;
    match format.format {
        WorkloadFormat::JobCsv => Some(job_csv::rows(header)),
        // DeepBoot's workloads are Pollux's with a column more, and some of their rows are no jobs.
        WorkloadFormat::Pollux if deepboot::recognises(header) => None,
        _ => Some(format),
    }
}

/// Share of the required columns that a header has.
fn share(header: &[u8], csv: Csv) -> f64 {
    let required = &csv.columns[..csv.required];
    let found = required.iter().filter(|column| has(header, csv.delimiter, column)).count();
    found as f64 / required.len() as f64
}

/// Whether a header has a column.
pub(super) fn has(header: &[u8], delimiter: u8, column: &str) -> bool {
    let mut fields = Vec::new();
    split(header, delimiter, &mut fields);
    fields.iter().any(|field| field.trim_ascii() == column.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_of_the_format_that_it_fits_best() {
        let named = |header: &str| RowFormat::of(header.as_bytes()).map(|format| format.format.name());
        assert_eq!(named("job_id,user,vc,gpu_num,cpu_num,submit_time,start_time,duration,queue"), Some("helios"));
        assert_eq!(named("job_id,num_gpu,submit_time,iterations,model_name,duration,interval"), Some("tiresias"));
        assert_eq!(
            named("job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"),
            Some("elasticflow")
        );
        assert_eq!(named("timestamp,duration,num_gpus,gpu_time,cluster"), Some("philly"));
        assert_eq!(named("JobID|Submit|ElapsedRaw|AllocTRES"), Some("sacct"));
        assert_eq!(named("name,time,application,num_replicas,batch_size"), Some("pollux"));
        assert_eq!(named("name,time,application,num_replicas,batch_size,duration"), None, "DeepBoot");
        assert_eq!(named("job_id,submit_secs,duration_secs"), Some("job-csv"), "a missing column is named later");
        assert_eq!(named("; a comment\n1 0 5 100 4 -1 -1 8 3600 -1 1 7 1 1 1 -1 -1 -1"), Some("swf"));
        assert_eq!(named("a,b,c"), None);
        assert_eq!(named(""), None);
    }
}
