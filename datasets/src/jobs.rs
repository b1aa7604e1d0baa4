//! Job table, which every importer fills and every generator makes, and the workload made from it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use goodput_env::application::Application;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, WHOLE, Work, Workload};
use goodput_env::placement::ShareRequest;
use goodput_env::tenant::UNIT_WEIGHT;
use goodput_env::time::SimTime;

use crate::catalog::Catalog;
use crate::error::RowProblem;

/// Row of the job table: one job as a trace describes it. Missing values stay missing: what they
/// default to depends on the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRow {
    /// Line in the source file, from 1 (row number for Parquet); for messages only.
    pub line: u64,
    /// The trace's own name, unique in the table.
    pub job_id: String,
    /// Time of submission since the start of the trace.
    pub submit: SimTime,
    /// Run time on `gpus` accelerators; missing where the application determines it.
    pub duration: Option<SimTime>,
    /// Accelerators asked for, at least 1.
    pub gpus: u32,
    /// Fewest accelerators it runs on; missing: 1 with an application, `gpus` without.
    pub gpu_min: Option<u32>,
    /// Most accelerators it can use; missing: what the application can use, `gpus` without one.
    pub gpu_max: Option<u32>,
    /// Total batch size asked for, samples.
    pub batch_size: Option<u32>,
    /// Application that the job trains.
    pub application: Option<String>,
    /// Fraction of the application's work that the job does, in thousandths; missing: 1000.
    pub work_milli: Option<u32>,
    /// Tenant that submitted the job.
    pub tenant: Option<String>,
    /// Priority, higher first; missing: 0.
    pub priority: Option<i32>,
    /// Weight of the job in fair sharing, in thousandths; missing: 1000.
    pub weight_milli: Option<u32>,
    /// Deadline, since the start of the trace; missing: none.
    pub deadline: Option<SimTime>,
    /// Run time that the user asks for; missing: none.
    pub limit: Option<SimTime>,
    /// Share of `gpus` accelerators of one node that is enough; missing: whole accelerators.
    pub share: Option<ShareRequest>,
}

/// Turns rows into a workload over the applications of `catalog`; also gives the names of the
/// tenants, sorted, that the jobs' `tenant` fields index. An application in the catalog decides
/// what a job does; otherwise its duration does.
///
/// # Errors
/// The line and problem of the first row that cannot be simulated.
pub fn into_workload(rows: Vec<JobRow>, catalog: &Catalog) -> Result<(Workload, Vec<String>), (u64, RowProblem)> {
    let tenants = tenants(&rows);
    let models = models(&rows, catalog);
    let mut jobs = Vec::with_capacity(rows.len());
    for row in rows {
        let tenant = tenant_index(&tenants, &row);
        jobs.push(job(row, tenant, catalog)?);
    }
    Ok((Workload { models, ..Workload::new(catalog.applications_of(&jobs), jobs) }, tenants))
}

/// Models that the trace names and the catalog does not have, by job.
fn models(rows: &[JobRow], catalog: &Catalog) -> BTreeMap<String, Arc<str>> {
    let mut names: BTreeMap<&str, Arc<str>> = BTreeMap::new();
    let mut models = BTreeMap::new();
    for row in rows {
        if let Some(name) = row.application.as_deref().filter(|name| catalog.index(name).is_none()) {
            let name = names.entry(name).or_insert_with(|| name.into());
            models.insert(row.job_id.clone(), name.clone());
        }
    }
    models
}

/// Checks that a row is a job over `catalog`.
pub(crate) fn check(row: &JobRow, catalog: &Catalog) -> Result<(), RowProblem> {
    resolve(row, catalog).map(drop)
}

fn job(row: JobRow, tenant: u32, catalog: &Catalog) -> Result<JobSpec, (u64, RowProblem)> {
    let (work, elasticity) = resolve(&row, catalog).map_err(|problem| (row.line, problem))?;
    let request = JobRequest {
        name: row.job_id,
        tenant,
        submit: row.submit,
        gpus: row.gpus,
        batch_size: row.batch_size,
        elasticity,
        priority: row.priority.unwrap_or_default(),
        weight_milli: row.weight_milli.unwrap_or(UNIT_WEIGHT),
        deadline: row.deadline,
        limit: row.limit,
        share: row.share,
    };
    Ok(JobSpec { request, work })
}

fn resolve(row: &JobRow, catalog: &Catalog) -> Result<(Work, Elasticity), RowProblem> {
    if let Some(share) = row.share {
        check_share(row, share)?;
    }
    let application = row.application.as_deref();
    let known = application.and_then(|name| catalog.index(name));
    match (known, application, row.duration) {
        (Some(index), ..) => {
            let trained = &*catalog.applications[usize::from(index)];
            check_plans(row, trained, catalog.sizes(index))?;
            let elasticity = match (row.gpu_min, row.gpu_max) {
                _ if row.share.is_some() => Elasticity::Rigid,
                (None, None) => application_elasticity(trained, row.gpus),
                (min, max) => {
                    let most = trained.max_replicas.max(row.gpus);
                    elasticity(row, min.unwrap_or(trained.min_replicas()), max.unwrap_or(most))?
                }
            };
            let by_duration = || catalog.work_by_duration(index, row.gpus, row.batch_size, row.duration?);
            let work_milli = row.work_milli.or_else(by_duration).unwrap_or(WHOLE);
            Ok((Work::Application { index, work_milli }, elasticity))
        }
        (None, _, Some(duration)) => {
            let elasticity = elasticity(row, row.gpu_min.unwrap_or(row.gpus), row.gpu_max.unwrap_or(row.gpus))?;
            Ok((Work::Fixed { duration }, elasticity))
        }
        (None, Some(name), None) => {
            Err(RowProblem::UnknownApplication { name: name.to_owned(), known: catalog.names().join(", ") })
        }
        (None, None, None) => Err(RowProblem::NoWork),
    }
}

/// Checks that the sizes of a job that trains by published plans are within those of the plans: it cannot run on fewer
/// accelerators than the smallest plan, and its speed on more than the largest plan has is unknown.
fn check_plans(row: &JobRow, application: &Application, (least, most): (u32, u32)) -> Result<(), RowProblem> {
    let sizes = [Some(row.gpus), row.gpu_min, row.gpu_max];
    match sizes.into_iter().flatten().find(|size| !(least..=most).contains(size)) {
        Some(found) => Err(RowProblem::Plans { application: application.name.clone(), found, least, most }),
        None => Ok(()),
    }
}

/// Checks that a share fits the number of accelerators that it is of, and that the job does not change its size.
fn check_share(row: &JobRow, share: ShareRequest) -> Result<(), RowProblem> {
    if share.compute_percent > 100 * row.gpus {
        let expected = "at most 100 for each of the job's gpus";
        return Err(RowProblem::Value {
            column: "compute_percent",
            value: share.compute_percent.to_string(),
            expected,
        });
    }
    let rigid = |size: Option<u32>| size.is_none_or(|size| size == row.gpus);
    if !rigid(row.gpu_min) || !rigid(row.gpu_max) {
        let (min, max) = (row.gpu_min.unwrap_or(row.gpus), row.gpu_max.unwrap_or(row.gpus));
        return Err(RowProblem::SharedSizes { gpus: row.gpus, min, max });
    }
    Ok(())
}

/// Sizes of a job that trains `application` and asks for `gpus`: any that the application can use.
/// A request beyond what it scales to stands, because schedulers without elasticity grant it as it
/// is.
pub(crate) fn application_elasticity(application: &Application, gpus: u32) -> Elasticity {
    match (application.min_replicas(), application.max_replicas.max(gpus)) {
        (min, max) if min == max => Elasticity::Rigid,
        (min, max) => Elasticity::Elastic { min, max },
    }
}

fn elasticity(row: &JobRow, min: u32, max: u32) -> Result<Elasticity, RowProblem> {
    if min == 0 || !(min..=max).contains(&row.gpus) {
        return Err(RowProblem::Sizes { gpus: row.gpus, min, max });
    }
    Ok(if min == max { Elasticity::Rigid } else { Elasticity::Elastic { min, max } })
}

/// Share of a row that says compute, memory or both; what it does not say is 0.
pub(crate) fn share_of(compute_percent: Option<u32>, memory_mib: Option<u32>) -> Option<ShareRequest> {
    let (compute, memory) = (compute_percent.unwrap_or(0), memory_mib.unwrap_or(0));
    (compute > 0 || memory > 0).then_some(ShareRequest { compute_percent: compute, memory_mib: memory })
}

/// Names of tenants, sorted; a job without one belongs to `default`.
fn tenants(rows: &[JobRow]) -> Vec<String> {
    let names: BTreeSet<&str> = rows.iter().map(tenant_name).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn tenant_name(row: &JobRow) -> &str {
    row.tenant.as_deref().unwrap_or("default")
}

fn tenant_index(tenants: &[String], row: &JobRow) -> u32 {
    let name = tenant_name(row);
    tenants.binary_search_by(|tenant| tenant.as_str().cmp(name)).map_or(0, |index| index as u32)
}

/// Hash of a name, equal in every run.
pub(crate) fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Lines of job names, to find the second use of one. Names themselves are not kept, except for the few of which
/// another has the hash.
#[derive(Default)]
pub(crate) struct Names {
    /// By hash of a name: the line of its first use.
    first: BTreeMap<u64, u64>,
    others: BTreeMap<String, u64>,
}

impl Names {
    /// Records the name of a job; the jobs before it are in order of their lines.
    pub(crate) fn insert(&mut self, jobs: &[JobRow], job: &JobRow) -> Result<(), RowProblem> {
        let name = &job.job_id;
        let is_at = |line| jobs.binary_search_by_key(&line, |job| job.line).is_ok_and(|at| jobs[at].job_id == *name);
        let first = match self.first.entry(hash(name)) {
            Entry::Vacant(vacant) => {
                vacant.insert(job.line);
                return Ok(());
            }
            Entry::Occupied(first) if is_at(*first.get()) => *first.get(),
            Entry::Occupied(_) => match self.others.get(name) {
                Some(&first) => first,
                None => {
                    self.others.insert(name.clone(), job.line);
                    return Ok(());
                }
            },
        };
        Err(RowProblem::Duplicate { name: name.clone(), first })
    }
}
