//! Tables with one row for each job, change of an allocation, tenant, run, or level of the cluster.
//!
//! The job table has the columns of batsim's `jobs.csv` under their names, so that evalys and its
//! kin read it, and our own beside them. Times there are seconds since the start of the run;
//! columns of ours carry their unit in the name.

use goodput_datasets::store::{Column, Table};
use goodput_env::placement::ShareRequest;
use goodput_env::sim::JobRecord;

use crate::metrics::{Level, LevelRow, METRICS, TenantFacts, levels, tenant_facts};
use crate::run::{Evaluation, PolicyRun};

/// One row per job and run, in the order of the runs.
///
/// `execution_time` is batsim's: from the first start to completion; `executed_secs` leaves out the
/// time a preempted job waited. `stretch` is turnaround over execution time.
/// `requested_number_of_resources` counts accelerators, and `gpus_mean` is their mean number while
/// any were held; `allocated_resources`, which in batsim lists machines by number, stays empty
/// because placements move during a run and are not recorded.
pub fn job_table(evaluation: &Evaluation) -> Table {
    job_rows(
        evaluation
            .runs
            .iter()
            .map(|run| (run, evaluation.policies[run.policy].as_str(), evaluation.workloads[run.workload].as_str())),
    )
}

fn job_rows<'a>(runs: impl Iterator<Item = (&'a PolicyRun, &'a str, &'a str)>) -> Table {
    let rows: Vec<(&PolicyRun, &JobRecord, &str, &str)> = runs
        .flat_map(|(run, policy, workload)| run.outcome.jobs.iter().map(move |job| (run, job, policy, workload)))
        .collect();
    let text = |of: &dyn Fn(&PolicyRun, &JobRecord) -> String| {
        rows.iter().map(|(run, job, ..)| of(run, job)).collect::<Vec<String>>()
    };
    let secs =
        |of: &dyn Fn(&JobRecord) -> Option<f64>| rows.iter().map(|(_, job, ..)| of(job)).collect::<Vec<Option<f64>>>();
    let whole = |of: &dyn Fn(&PolicyRun, &JobRecord) -> i64| {
        rows.iter().map(|(run, job, ..)| of(run, job)).collect::<Vec<i64>>()
    };
    let request = |run: &PolicyRun, job: &JobRecord| run.scenario.workload.jobs[job.job.index()].request.clone();
    let execution = |job: &JobRecord| Some((job.finish? - job.start?).as_secs_f64());
    let turnaround = |job: &JobRecord| Some(job.jct()?.as_secs_f64());
    let state = |_: &PolicyRun, job: &JobRecord| match (job.finish, job.start) {
        (Some(_), _) => "COMPLETED_SUCCESSFULLY".to_owned(),
        (None, _) if job.faults.failed.is_some() => "COMPLETED_FAILED".to_owned(),
        (None, Some(_)) => "RUNNING".to_owned(),
        (None, None) => "SUBMITTED".to_owned(),
    };
    let gpus_mean = |job: &JobRecord| {
        let millis = job.executed.as_millis();
        (millis > 0).then(|| job.attained_gpu_millis as f64 / millis as f64)
    };
    let mut columns = vec![
        Column::new("job_id", text(&|run, job| request(run, job).name)),
        Column::new("policy", rows.iter().map(|(_, _, policy, _)| (*policy).to_owned()).collect::<Vec<String>>()),
        Column::new("workload", rows.iter().map(|(.., workload)| (*workload).to_owned()).collect::<Vec<String>>()),
        Column::new("seed", whole(&|run, _| run.seed as i64)),
        Column::new("application", text(&|run, job| run.scenario.workload.application_name(job.job).to_owned())),
        Column::new("tenant", whole(&|run, job| i64::from(request(run, job).tenant))),
        Column::new("submission_time", secs(&|job| Some(job.submit.as_secs_f64()))),
        Column::new("requested_number_of_resources", whole(&|run, job| i64::from(request(run, job).gpus))),
        Column::new("final_state", text(&state)),
        Column::new("starting_time", secs(&|job| Some(job.start?.as_secs_f64()))),
        Column::new("execution_time", secs(&execution)),
        Column::new("finish_time", secs(&|job| Some(job.finish?.as_secs_f64()))),
        Column::new("waiting_time", secs(&crate::metrics::queueing_delay_secs)),
        Column::new("turnaround_time", secs(&turnaround)),
        Column::new(
            "stretch",
            secs(&|job| Some(turnaround(job)? / execution(job)?).filter(|stretch| stretch.is_finite())),
        ),
        Column::new("allocated_resources", vec![None::<String>; rows.len()]),
        Column::new("gpus_mean", secs(&gpus_mean)),
        Column::new("gpu_secs", secs(&|job| Some(job.attained_gpu_millis as f64 / 1000.0))),
        Column::new("executed_secs", secs(&|job| Some(job.executed.as_secs_f64()))),
        Column::new("restarting_secs", secs(&|job| Some(job.restarting.as_secs_f64()))),
        Column::new("restarts", whole(&|_, job| i64::from(job.restarts))),
    ];
    // Only jobs on parts of accelerators have these, so other tables stay without.
    let share = |run: &PolicyRun, job: &JobRecord| run.scenario.workload.jobs[job.job.index()].request.share;
    if rows.iter().any(|(run, job, ..)| share(run, job).is_some()) {
        let asked = |of: fn(ShareRequest) -> u32| {
            rows.iter().map(|(run, job, ..)| share(run, job).map(of).map(f64::from)).collect::<Vec<Option<f64>>>()
        };
        columns.push(Column::new("compute_percent", asked(|share| share.compute_percent)));
        columns.push(Column::new("memory_mib", asked(|share| share.memory_mib)));
    }
    Table::new(columns)
}

/// One row per change of an allocation, of the runs that logged them.
pub fn allocation_table(evaluation: &Evaluation) -> Table {
    let rows =
        || evaluation.runs.iter().flat_map(|run| run.outcome.allocations.iter().map(move |change| (run, change)));
    let text = |of: &dyn Fn(&PolicyRun) -> String| rows().map(|(run, _)| of(run)).collect::<Vec<String>>();
    Table::new(vec![
        Column::new("policy", text(&|run| evaluation.policies[run.policy].clone())),
        Column::new("workload", text(&|run| evaluation.workloads[run.workload].clone())),
        Column::new("seed", rows().map(|(run, _)| run.seed as i64).collect::<Vec<i64>>()),
        Column::new("time_secs", rows().map(|(_, change)| change.at.as_secs_f64()).collect::<Vec<f64>>()),
        Column::new(
            "job_id",
            rows()
                .map(|(run, change)| run.scenario.workload.jobs[change.job.index()].request.name.clone())
                .collect::<Vec<String>>(),
        ),
        Column::new("gpus", rows().map(|(_, change)| i64::from(change.gpus)).collect::<Vec<i64>>()),
        Column::new("nodes", rows().map(|(_, change)| i64::from(change.nodes)).collect::<Vec<i64>>()),
    ])
}

/// One row per tenant and run: what each got.
pub fn tenant_table(evaluation: &Evaluation) -> Table {
    let rows: Vec<(&PolicyRun, TenantFacts)> = evaluation
        .runs
        .iter()
        .flat_map(|run| tenant_facts(&run.scenario, &run.outcome).into_iter().map(move |facts| (run, facts)))
        .collect();
    let text = |of: &dyn Fn(&PolicyRun, &TenantFacts) -> String| {
        rows.iter().map(|(run, facts)| of(run, facts)).collect::<Vec<String>>()
    };
    let number = |of: &dyn Fn(&TenantFacts) -> f64| rows.iter().map(|(_, facts)| of(facts)).collect::<Vec<f64>>();
    let some = |of: &dyn Fn(&TenantFacts) -> Option<f64>| {
        rows.iter().map(|(_, facts)| of(facts)).collect::<Vec<Option<f64>>>()
    };
    let count =
        |of: &dyn Fn(&TenantFacts) -> usize| rows.iter().map(|(_, facts)| of(facts) as i64).collect::<Vec<i64>>();
    let name = |run: &PolicyRun, facts: &TenantFacts| match run.scenario.workload.tenants.get(facts.tenant) {
        Some(declared) => declared.name.clone(),
        None => facts.tenant.to_string(),
    };
    Table::new(vec![
        Column::new("policy", text(&|run, _| evaluation.policies[run.policy].clone())),
        Column::new("workload", text(&|run, _| evaluation.workloads[run.workload].clone())),
        Column::new("seed", rows.iter().map(|(run, _)| run.seed as i64).collect::<Vec<i64>>()),
        Column::new("tenant", text(&name)),
        Column::new("weight", number(&|facts| facts.weight)),
        Column::new("jobs", count(&|facts| facts.jobs)),
        Column::new("completed", count(&|facts| facts.completed)),
        Column::new("gpu_secs", number(&|facts| facts.gpu_secs)),
        Column::new("share", number(&|facts| facts.share)),
        Column::new("jct_mean_secs", some(&|facts| facts.jct_mean_secs)),
        Column::new("slowdown_mean", some(&|facts| facts.slowdown_mean)),
        Column::new("wait_max_secs", number(&|facts| facts.max_wait_secs)),
    ])
}

/// One row per run with all metrics that mean something in some run.
pub fn run_table(evaluation: &Evaluation) -> Table {
    let runs = &evaluation.runs;
    let mut columns = vec![
        Column::new("policy", runs.iter().map(|run| evaluation.policies[run.policy].clone()).collect::<Vec<String>>()),
        Column::new(
            "workload",
            runs.iter().map(|run| evaluation.workloads[run.workload].clone()).collect::<Vec<String>>(),
        ),
        Column::new("seed", runs.iter().map(|run| run.seed as i64).collect::<Vec<i64>>()),
        Column::new(
            "information",
            runs.iter().map(|run| run.scenario.options.information.to_string()).collect::<Vec<String>>(),
        ),
    ];
    for metric in METRICS {
        let values: Vec<Option<f64>> = runs.iter().map(|run| run.measures.get(metric.key)).collect();
        if values.iter().any(Option::is_some) {
            columns.push(Column::new(metric.key, values));
        }
    }
    Table::new(columns)
}

/// The rows of every run, for `usage.parquet`.
pub fn levels_table<'a>(evaluation: &'a Evaluation) -> Table {
    let of_run = |run: &'a PolicyRun| levels(&run.scenario, &run.outcome).into_iter().map(move |row| (run, row));
    let rows: Vec<(&PolicyRun, LevelRow)> = evaluation.runs.iter().flat_map(of_run).collect();
    let whole = |of: &dyn Fn(&LevelRow) -> i64| rows.iter().map(|(_, row)| of(row)).collect::<Vec<i64>>();
    let text = |of: &dyn Fn(&Level) -> String| rows.iter().map(|(_, row)| of(&row.level)).collect::<Vec<String>>();
    let named = |names: &[String], of: &dyn Fn(&PolicyRun) -> usize| {
        rows.iter().map(|(run, _)| names[of(run)].clone()).collect::<Vec<String>>()
    };
    let node = |level: &Level| match level {
        Level::Cluster => None,
        Level::Node(node) | Level::Application(node, _) => Some(i64::from(node.0)),
    };
    Table::new(vec![
        Column::new("policy", named(&evaluation.policies, &|run| run.policy)),
        Column::new("workload", named(&evaluation.workloads, &|run| run.workload)),
        Column::new("seed", rows.iter().map(|(run, _)| run.seed as i64).collect::<Vec<i64>>()),
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
        Column::new("node", rows.iter().map(|(_, row)| node(&row.level)).collect::<Vec<Option<i64>>>()),
        Column::new(
            "application",
            text(&|level| match level {
                Level::Application(_, name) => name.clone(),
                Level::Cluster | Level::Node(_) => String::new(),
            }),
        ),
        Column::new("capacity_gpu_millis", whole(&|row| row.capacity_gpu_millis)),
        Column::new("training_gpu_millis", whole(&|row| row.training_gpu_millis)),
        Column::new("serving_gpu_millis", whole(&|row| row.serving_gpu_millis)),
        Column::new("requests_micro", whole(&|row| row.requests as i64)),
        Column::new("violated_micro", whole(&|row| row.violated as i64)),
    ])
}
