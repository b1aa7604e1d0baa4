//! Tables with one row for each job, change of an allocation, tenant, run, or level of the cluster.
//!
//! The job table has the columns of batsim's `jobs.csv` under their names, so that evalys and its
//! kin read it, and our own beside them. Times there are seconds since the start of the run;
//! columns of ours carry their unit in the name.

use goodput_datasets::store::{Column, Table, TextChoice};
use goodput_env::model::serving::LateTokens;
use goodput_env::placement::ShareRequest;
use goodput_env::sim::JobRecord;
use goodput_env::state::ServiceRecord;

use super::timeseries::{Moment, moments};
use crate::metrics::{Level, LevelRow, METRICS, TenantFacts, levels, tenant_facts};
use crate::run::{PolicyRun, RunHead, RunLayout};

/// Names of a run in the rows of tables.
#[derive(Clone, Copy, Debug)]
pub struct RunName<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// Name of the workload.
    pub workload: &'a str,
    /// Seed of the repetition.
    pub seed: u64,
}

impl RunName<'_> {
    /// The columns that begin the tables of runs.
    fn columns(&self, rows: usize) -> Vec<Column> {
        vec![
            Column::new("policy", vec![self.policy.to_owned(); rows]),
            Column::new("workload", vec![self.workload.to_owned(); rows]),
            Column::new("seed", vec![self.seed as i64; rows]),
        ]
    }
}

fn whole<T>(rows: &[T], of: impl Fn(&T) -> i64) -> Vec<i64> {
    rows.iter().map(of).collect()
}

fn number<T>(rows: &[T], of: impl Fn(&T) -> f64) -> Vec<f64> {
    rows.iter().map(of).collect()
}

fn some<T>(rows: &[T], of: impl Fn(&T) -> Option<f64>) -> Vec<Option<f64>> {
    rows.iter().map(of).collect()
}

/// One row per job of a run.
///
/// `execution_time` is batsim's: from the first start to completion; `executed_secs` leaves out the
/// time a preempted job waited. `stretch` is turnaround over execution time.
/// `requested_number_of_resources` counts accelerators, and `gpus_mean` is their mean number while
/// any were held; `allocated_resources`, which in batsim lists machines by number, stays empty,
/// because a job moves during a run and the table has one row for it.
pub fn job_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let (jobs, workload) = (&run.outcome.jobs, &run.scenario.workload);
    let request = |job: &JobRecord| &workload.jobs[job.job.index()].request;
    let secs = |of: &dyn Fn(&JobRecord) -> Option<f64>| some(jobs, of);
    let execution = |job: &JobRecord| Some((job.finish? - job.start?).as_secs_f64());
    let turnaround = |job: &JobRecord| Some(job.jct()?.as_secs_f64());
    let state = |job: &JobRecord| match (job.finish, job.start) {
        (Some(_), _) => "COMPLETED_SUCCESSFULLY",
        (None, _) if job.faults.failed.is_some() => "COMPLETED_FAILED",
        (None, _) if job.refused.is_some() => "REJECTED",
        (None, Some(_)) => "RUNNING",
        (None, None) => "SUBMITTED",
    };
    let gpus_mean = |job: &JobRecord| {
        let millis = job.executed.as_millis();
        (millis > 0).then(|| job.attained_gpu_millis as f64 / millis as f64)
    };
    let mut columns = vec![
        Column::new("job_id", jobs.iter().map(|job| request(job).name.clone()).collect::<Vec<String>>()),
        Column::new("policy", jobs.iter().map(|_| name.policy).collect::<TextChoice>()),
        Column::new("workload", jobs.iter().map(|_| name.workload).collect::<TextChoice>()),
        Column::new("seed", whole(jobs, |_| name.seed as i64)),
        Column::new("application", jobs.iter().map(|job| workload.application_name(job.job)).collect::<TextChoice>()),
        Column::new("tenant", whole(jobs, |job| i64::from(request(job).tenant))),
        Column::new("submission_time", secs(&|job| Some(job.submit.as_secs_f64()))),
        Column::new("requested_number_of_resources", whole(jobs, |job| i64::from(request(job).gpus))),
        Column::new("final_state", jobs.iter().map(state).collect::<TextChoice>()),
        Column::new("starting_time", secs(&|job| Some(job.start?.as_secs_f64()))),
        Column::new("execution_time", secs(&execution)),
        Column::new("finish_time", secs(&|job| Some(job.finish?.as_secs_f64()))),
        Column::new("waiting_time", secs(&crate::metrics::queueing_delay_secs)),
        Column::new("turnaround_time", secs(&turnaround)),
        Column::new(
            "stretch",
            secs(&|job| Some(turnaround(job)? / execution(job)?).filter(|stretch| stretch.is_finite())),
        ),
        Column::new("allocated_resources", vec![None::<String>; jobs.len()]),
        Column::new("gpus_mean", secs(&gpus_mean)),
        Column::new("gpu_secs", secs(&|job| Some(job.attained_gpu_millis as f64 / 1000.0))),
        Column::new("executed_secs", secs(&|job| Some(job.executed.as_secs_f64()))),
        Column::new("restarting_secs", secs(&|job| Some(job.restarting.as_secs_f64()))),
        Column::new("restarts", whole(jobs, |job| i64::from(job.restarts))),
    ];
    // Only jobs on parts of accelerators have these, so other tables stay without.
    if jobs.iter().any(|job| request(job).share.is_some()) {
        let asked = |of: fn(ShareRequest) -> u32| some(jobs, |job| request(job).share.map(of).map(f64::from));
        columns.push(Column::new(PARTS[0], asked(|share| share.compute_percent)));
        columns.push(Column::new(PARTS[1], asked(|share| share.memory_mib)));
    }
    Table::new(columns)
}

/// Columns of jobs on parts of accelerators, the last ones of a table of jobs.
const PARTS: [&str; 2] = ["compute_percent", "memory_mib"];

/// Job table with the columns of jobs on parts of accelerators, empty where the run has no such job.
pub(super) fn with_parts(mut jobs: Table) -> Table {
    for name in PARTS.into_iter().filter(|name| jobs.column(name).is_none()).collect::<Vec<_>>() {
        let rows = jobs.rows();
        jobs.columns.push(Column::new(name, vec![None::<f64>; rows]));
    }
    jobs
}

/// One row per change of an allocation in a run that logged them. `placement` has `node:accelerators` for each node
/// that the job holds from then on.
pub fn allocation_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let (changes, jobs) = (&run.outcome.allocations, &run.scenario.workload.jobs);
    // A run logs the placement of each change beside the change.
    let placements = run.outcome.placements.iter().map(|change| {
        let held = change.slices.iter().map(|slice| format!("{}:{}", slice.node.index(), slice.gpus));
        held.collect::<Vec<_>>().join(" ")
    });
    let mut columns = name.columns(changes.len());
    columns.extend([
        Column::new("time_secs", number(changes, |change| change.at.as_secs_f64())),
        Column::new(
            "job_id",
            changes.iter().map(|change| jobs[change.job.index()].request.name.clone()).collect::<Vec<String>>(),
        ),
        Column::new("gpus", whole(changes, |change| i64::from(change.gpus))),
        Column::new("nodes", whole(changes, |change| i64::from(change.nodes))),
        Column::new("placement", placements.collect::<Vec<String>>()),
    ]);
    Table::new(columns)
}

/// One row per tenant of a run: what each got.
pub fn tenant_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let rows: Vec<TenantFacts> = tenant_facts(&run.scenario, &run.outcome);
    let tenant = |facts: &TenantFacts| match run.scenario.workload.tenants.get(facts.tenant) {
        Some(declared) => declared.name.clone(),
        None => facts.tenant.to_string(),
    };
    let mut columns = name.columns(rows.len());
    columns.extend([
        Column::new("tenant", rows.iter().map(tenant).collect::<Vec<String>>()),
        Column::new("weight", number(&rows, |facts| facts.weight)),
        Column::new("jobs", whole(&rows, |facts| facts.jobs as i64)),
        Column::new("completed", whole(&rows, |facts| facts.completed as i64)),
        Column::new("gpu_secs", number(&rows, |facts| facts.gpu_secs)),
        Column::new("share", number(&rows, |facts| facts.share)),
        Column::new("jct_mean_secs", some(&rows, |facts| facts.jct_mean_secs)),
        Column::new("slowdown_mean", some(&rows, |facts| facts.slowdown_mean)),
        Column::new("wait_max_secs", number(&rows, |facts| facts.max_wait_secs)),
    ]);
    Table::new(columns)
}

/// One row per run with all metrics that mean something in some run.
pub fn run_table(layout: &RunLayout, heads: &[RunHead]) -> Table {
    let names = || (0..heads.len()).map(|index| layout.run(index));
    let mut columns = vec![
        Column::new("policy", names().map(|(policy, _)| layout.policies[policy].clone()).collect::<Vec<String>>()),
        Column::new(
            "workload",
            names().map(|(_, scenario)| layout.workloads[scenario.workload].clone()).collect::<Vec<String>>(),
        ),
        Column::new("seed", names().map(|(_, scenario)| scenario.seed as i64).collect::<Vec<i64>>()),
        Column::new("information", heads.iter().map(|head| head.information.clone()).collect::<Vec<String>>()),
    ];
    for metric in METRICS {
        let values: Vec<Option<f64>> = heads.iter().map(|head| head.measures.get(metric.key)).collect();
        if values.iter().any(Option::is_some) {
            columns.push(Column::new(metric.key, values));
        }
    }
    Table::new(columns)
}

/// One row per service of a run with a language model among its services; a table without columns for other runs.
pub fn service_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let services = &run.scenario.workload.services;
    if !services.iter().any(|service| service.runs_tokens()) {
        return Table::new(Vec::new());
    }
    let rows: Vec<_> = services.iter().zip(&run.outcome.services).collect();
    let kept =
        |record: &ServiceRecord, late: u64| (record.requests > 0).then(|| 1.0 - late as f64 / record.requests as f64);
    let tokens = |of: fn(&LateTokens) -> u64| some(&rows, |(_, record)| kept(record, of(record.late.as_ref()?)));
    let mut columns = name.columns(rows.len());
    columns.extend([
        Column::new("service", rows.iter().map(|(service, _)| service.name.clone()).collect::<Vec<String>>()),
        Column::new("requests_micro", whole(&rows, |(_, record)| record.requests as i64)),
        Column::new("slo_attainment", some(&rows, |(_, record)| kept(record, record.violated))),
        Column::new("ttft_attainment", tokens(|late| late.ttft)),
        Column::new("tpot_attainment", tokens(|late| late.tpot)),
        Column::new("gpu_secs", number(&rows, |(_, record)| record.gpu_millis as f64 / 1e3)),
        Column::new("starts", whole(&rows, |(_, record)| record.starts as i64)),
        Column::new("waiting_micro", whole(&rows, |(_, record)| record.waiting as i64)),
    ]);
    Table::new(columns)
}

/// The rows of a run for `usage.parquet`.
pub fn level_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let rows: Vec<LevelRow> = levels(&run.scenario, &run.outcome);
    let text = |of: &dyn Fn(&Level) -> String| rows.iter().map(|row| of(&row.level)).collect::<Vec<String>>();
    let node = |level: &Level| match level {
        Level::Cluster => None,
        Level::Node(node) | Level::Application(node, _) => Some(i64::from(node.0)),
    };
    let mut columns = name.columns(rows.len());
    columns.extend([
        Column::new(
            "level",
            text(&|level| {
                let name = match level {
                    Level::Cluster => "cluster",
                    Level::Node(_) => "node",
                    Level::Application(..) => "application",
                };
                name.into()
            }),
        ),
        Column::new("node", rows.iter().map(|row| node(&row.level)).collect::<Vec<Option<i64>>>()),
        Column::new(
            "application",
            text(&|level| match level {
                Level::Application(_, name) => name.clone(),
                Level::Cluster | Level::Node(_) => String::new(),
            }),
        ),
        Column::new("capacity_gpu_millis", whole(&rows, |row| row.capacity_gpu_millis)),
        Column::new("training_gpu_millis", whole(&rows, |row| row.training_gpu_millis)),
        Column::new("serving_gpu_millis", whole(&rows, |row| row.serving_gpu_millis)),
        Column::new("requests_micro", whole(&rows, |row| row.requests as i64)),
        Column::new("violated_micro", whole(&rows, |row| row.violated as i64)),
    ]);
    Table::new(columns)
}

/// The course of a run that logged its allocations, one row per moment; no rows for others.
pub fn moment_rows(run: &PolicyRun, name: RunName<'_>) -> Table {
    let logged = !run.outcome.allocations.is_empty() || !run.outcome.serving.is_empty();
    let rows: Vec<Moment> = if logged { moments(&run.outcome) } else { Vec::new() };
    let mut columns = name.columns(rows.len());
    columns.extend([
        Column::new("time_secs", number(&rows, |moment| moment.at.as_secs_f64())),
        Column::new("jobs_in_system", whole(&rows, |moment| moment.jobs)),
        Column::new("jobs_allocated", whole(&rows, |moment| moment.allocated)),
        Column::new("gpus_held", whole(&rows, |moment| moment.gpus)),
        Column::new("gpus_serving", whole(&rows, |moment| moment.serving)),
        Column::new("instances_running", whole(&rows, |moment| moment.running)),
        Column::new("instances_protected", whole(&rows, |moment| moment.protected)),
        Column::new("gpus_fragmented", whole(&rows, |moment| moment.fragmented)),
    ]);
    Table::new(columns)
}
