//! Standard Workload Format of the Parallel Workloads Archive (Chapin et al., JSSPP 1999), version 2.2; the importer is
//! [`crate::import::swf`]. Accelerators are processors.
//!
//! A field that is not known is -1. A job keeps its name where all names are whole numbers above 0, and is numbered in
//! the order of submission otherwise. A tenant `user-N` is user N; any other one is numbered, and a comment names it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::ScheduledJob;

/// Status of a job that completed, and of one that has no end.
const STATUS: [i8; 2] = [1, -1];

/// Writes jobs in order of submission.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(jobs: &[ScheduledJob], out: &mut dyn Write) -> io::Result<()> {
    let mut order: Vec<&ScheduledJob> = jobs.iter().collect();
    order.sort_by(|job, other| job.submit_secs.total_cmp(&other.submit_secs));
    let number = |job: &ScheduledJob| job.name.parse::<u64>().ok().filter(|&number| number > 0);
    let numbered = jobs.iter().all(|job| number(job).is_some_and(|number| number.to_string() == job.name));
    let users = users(&order);
    writeln!(out, "; Version: 2.2\n; Computer: exported by goodput {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "; MaxJobs: {}\n; MaxRecords: {}", jobs.len(), jobs.len())?;
    for (name, user) in users.iter().filter(|(name, user)| **name != format!("user-{user}")) {
        writeln!(out, "; Note: user {user} is {name}")?;
    }
    for (job, at) in order.into_iter().zip(1_u64..) {
        let name = number(job).filter(|_| numbered).unwrap_or(at);
        let submit = job.submit_secs;
        let wait = job.start_secs.map_or(-1.0, |start| start - submit);
        let run = job.run_secs.unwrap_or(-1.0);
        let limit = job.limit_secs.unwrap_or(-1.0);
        let [status, gpus, user] = [
            i64::from(STATUS[usize::from(job.run_secs.is_none())]),
            i64::from(job.gpus),
            users.get(job.tenant.as_str()).map_or(-1, |&user| user as i64),
        ];
        writeln!(out, "{name} {submit} {wait} {run} {gpus} -1 -1 {gpus} {limit} -1 {status} {user} -1 -1 -1 -1 -1 -1")?;
    }
    Ok(())
}

/// Number of each tenant; a number that a name has is kept for it.
fn users<'a>(jobs: &[&'a ScheduledJob]) -> BTreeMap<&'a str, u64> {
    let own = |name: &str| name.strip_prefix("user-")?.parse::<u64>().ok().filter(|&user| user > 0);
    let mut users = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.tenant.is_empty()) {
        users.insert(job.tenant.as_str(), own(&job.tenant));
    }
    let mut next = users.values().flatten().max().map_or(1, |last| last + 1);
    let numbered = users.into_iter().map(|(name, user)| {
        let user = user.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        (name, user)
    });
    numbered.collect()
}
