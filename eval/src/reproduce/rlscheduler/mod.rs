//! The heuristics of RLScheduler (SC'20) on its two Lublin traces: mean bounded slowdown over its ten windows, with its
//! backfill and without.
//!
//! Rows without a note behave as the artifact. `waits repaired` takes the present time in WFP3 and UNICEP, where the
//! artifact has -1. `by the rule` has no choice that is kept until it runs, and EASY and conservative backfill as
//! published. The windows overlap, and the artifact trains on the file that it judges by.
//!
//! `judgement` compares learned orders with the heuristics on jobs that nothing was trained or chosen by.

mod difference;
mod judgement;

use std::path::Path;
use std::sync::Arc;

use goodput_agents::heuristic::backfill::{ArtifactQueue, Backfill, BatchQueue, JobOrder, QueueClock};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Rounds, Scenario, SimOptions};
use goodput_env::sim::{SimError, Simulator};
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};

use crate::metrics::bounded_slowdown;
pub use difference::OrderDifference;
pub use judgement::{JudgedOrder, JudgedRow, judge};

/// Reproduction of the published table of heuristics.
pub const TABLE: Reproduction = Reproduction {
    name: "rlscheduler",
    about: "batch queues on two Lublin traces of 256 processors, mean bounded slowdown; heuristics, and backfill by rule",
    source: "Zhang et al., SC 2020; DIR-LAB/deep-batch-scheduler",
    files: &["data/rlscheduler/lublin_256.swf.gz", "data/rlscheduler/lublin_256_new2.swf.gz"],
    run,
};

const TRACES: [(&str, &str); 2] = [("Lublin-1", "lublin_256.swf.gz"), ("Lublin-2", "lublin_256_new2.swf.gz")];

/// First jobs of the windows: ten draws of the artifact's generator under seed 1.
const WINDOWS: [usize; 10] = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085];

/// Jobs of a window.
const LENGTH: usize = 1024;

/// A heuristic with its published figures by trace, without backfill and with.
type Published = (&'static str, JobOrder, [[f64; 2]; 2]);

const PUBLISHED: [Published; 5] = [
    ("FCFS", JobOrder::Fcfs, [[7273.77, 235.82], [7842.47, 247.61]]),
    ("WFP3", JobOrder::Wfp3, [[19753.53, 133.87], [9523.18, 318.35]]),
    ("UNICEP", JobOrder::Unicep, [[22274.74, 307.23], [11265.31, 379.59]]),
    ("SJF", JobOrder::Sjf, [[277.35, 73.31], [787.89, 91.99]]),
    ("F1", JobOrder::F1, [[258.37, 75.07], [698.34, 148.25]]),
];

/// Maker of the policy of a row.
type RowPolicy = Box<dyn Fn() -> Box<dyn Policy> + Sync>;

struct TableRow {
    case: String,
    theirs: Option<f64>,
    make: RowPolicy,
}

impl TableRow {
    fn artifact(case: String, theirs: Option<f64>, order: JobOrder, backfill: bool, clock: QueueClock) -> Self {
        Self { case, theirs, make: Box::new(move || Box::new(ArtifactQueue::new(order, backfill, clock))) }
    }

    fn by_the_rule(case: String, order: JobOrder, backfill: Backfill) -> Self {
        Self { case, theirs: None, make: Box::new(move || Box::new(BatchQueue::new(order, backfill))) }
    }
}

fn rows(trace: usize) -> Vec<TableRow> {
    let name = TRACES[trace].0;
    let mut rows = Vec::new();
    for (index, backfill) in [false, true].into_iter().enumerate() {
        let setting = if backfill { "backfill" } else { "no backfill" };
        for (heuristic, order, figures) in PUBLISHED {
            let case = format!("{name}, {setting}, {heuristic}");
            rows.push(TableRow::artifact(case, Some(figures[trace][index]), order, backfill, QueueClock::Stopped));
        }
        for (heuristic, order, _) in PUBLISHED.into_iter().filter(|(_, order, _)| order.ages()) {
            let case = format!("{name}, {setting}, {heuristic}, waits repaired");
            rows.push(TableRow::artifact(case, None, order, backfill, QueueClock::Running));
        }
        let case = format!("{name}, {setting}, smallest area first");
        rows.push(TableRow::artifact(case, None, JobOrder::Saf, backfill, QueueClock::Stopped));
    }
    let rules = [("no backfill", Backfill::None), ("EASY", Backfill::First), ("conservative", Backfill::Every)];
    for (setting, backfill) in rules {
        for order in JobOrder::ALL {
            let order_name = format!("{order:?}").to_uppercase();
            let case = format!("{name}, {setting} by the rule, {order_name}");
            rows.push(TableRow::by_the_rule(case, order, backfill));
        }
    }
    rows
}

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let mut figures = Vec::new();
    for (trace, (_, file)) in TRACES.into_iter().enumerate() {
        let workload = read(data, file)?;
        let windows: Vec<Arc<Scenario>> = WINDOWS.into_iter().map(|first| window(&workload, first)).collect();
        let figure = |row: &TableRow| {
            let ours = mean_slowdown(&windows, &row.make);
            let ours = ours.map_err(|source| ReproduceError::Run { case: row.case.clone(), source })?;
            Ok(ReproducedFigure { case: row.case.clone(), metric: "bounded_slowdown_mean", theirs: row.theirs, ours })
        };
        figures.extend(rows(trace).par_iter().map(figure).collect::<Result<Vec<_>, ReproduceError>>()?);
    }
    Ok(figures)
}

fn read(data: &Path, file: &str) -> Result<Workload, ReproduceError> {
    Ok(read_workload(&data.join("data/rlscheduler").join(file), Catalog::shipped())?.workload)
}

/// Scenario of the jobs of a trace from `first` on. Jobs keep their times, because F1 to F4 go by them.
fn window(trace: &Workload, first: usize) -> Arc<Scenario> {
    let jobs = trace.jobs[first..first + LENGTH].to_vec();
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        switch_cost: SwitchCost::Zero,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    let cluster = Cluster::homogeneous(1, 256);
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(Workload::new(Vec::new(), jobs)), options, 1))
}

fn mean_slowdown(windows: &[Arc<Scenario>], make: &RowPolicy) -> Result<f64, SimError> {
    let of_window = |scenario: &Arc<Scenario>| {
        let outcome = Simulator::new(scenario.clone()).run(&mut *make())?;
        Ok(outcome.jobs.iter().filter_map(bounded_slowdown).sum::<f64>() / LENGTH as f64)
    };
    let all = windows.iter().map(of_window).collect::<Result<Vec<f64>, SimError>>()?;
    Ok(all.iter().sum::<f64>() / all.len() as f64)
}
