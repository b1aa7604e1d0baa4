//! Judgement of learned orders beside the repaired heuristics, on the two traces.
//!
//! - The last third of the jobs of a trace is held out: 20 windows at even distances. They overlap, because 3,334 jobs
//!   have no room for 20 windows of 1,024.
//! - A learned order is compared with each of the nine heuristics, job by job (`difference`). Its nine p-values are
//!   corrected together.
//! - The heuristic to beat is the one with the least mean on 20 windows of the first two thirds, where learned orders
//!   are trained and chosen too.
//! - The ten windows of the artifact reach into both parts, as in the publication.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::heuristic::backfill::JobOrder;
use goodput_agents::policies::queue::{LearnedQueue, QueueRule};
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::sim::{SimError, Simulator};
use rayon::prelude::*;

use super::difference::{ComparedOrder, OrderDifference};
use super::{LENGTH, TRACES, WINDOWS, read, window};
use crate::metrics::bounded_slowdown;
use crate::reproduce::ReproduceError;

/// Windows of each part of a trace.
const COUNT: usize = 20;

/// Learned order with its name in the table.
#[derive(Clone, Debug)]
pub struct JudgedOrder {
    /// Name in the table.
    pub label: String,
    /// Policy of the order.
    pub queue: LearnedQueue,
}

/// Mean bounded slowdowns of one order by one rule on one trace.
#[derive(Clone, Debug)]
pub struct JudgedRow {
    /// Name of the trace.
    pub trace: &'static str,
    /// Rule of the queue.
    pub rule: QueueRule,
    /// Name of the order.
    pub order: String,
    /// On the windows of the first two thirds.
    pub known: f64,
    /// On the ten windows of the artifact.
    pub published: f64,
    /// On the windows of the last third.
    pub held_out: f64,
    /// Less the heuristics: of a learned order all nine, of a heuristic the one to beat, of that one none.
    pub against: Vec<OrderDifference>,
}

/// First jobs of `COUNT` windows at even distances between two jobs.
fn even(from: usize, to: usize) -> Vec<usize> {
    (0..COUNT).map(|index| from + index * (to - LENGTH - from) / (COUNT - 1)).collect()
}

/// Bounded slowdowns of the jobs of windows, window by window.
#[derive(Debug)]
pub(super) struct Slowdowns {
    /// First job of each window, by its place in the trace.
    pub firsts: Vec<usize>,
    pub windows: Vec<Vec<f64>>,
}

impl Slowdowns {
    fn of(trace: &Workload, firsts: Vec<usize>, make: &(dyn Fn() -> Box<dyn Policy> + Sync)) -> Result<Self, SimError> {
        let of_window = |first: &usize| {
            let outcome = Simulator::new(Arc::clone(&window(trace, *first))).run(&mut *make())?;
            Ok(outcome.jobs.iter().filter_map(bounded_slowdown).collect())
        };
        let windows = firsts.par_iter().map(of_window).collect::<Result<_, SimError>>()?;
        Ok(Self { firsts, windows })
    }

    /// Mean of each window.
    pub fn means(&self) -> Vec<f64> {
        self.windows.iter().map(|jobs| jobs.iter().sum::<f64>() / jobs.len() as f64).collect()
    }

    fn mean(&self) -> f64 {
        self.means().iter().sum::<f64>() / self.windows.len() as f64
    }
}

/// Slowdowns of one order on all windows of a trace.
struct PlayedWindow {
    order: String,
    known: Slowdowns,
    published: Slowdowns,
    held_out: Slowdowns,
}

impl PlayedWindow {
    fn of(
        trace: &Workload,
        order: String,
        make: &(dyn Fn() -> Box<dyn Policy> + Sync),
    ) -> Result<Self, ReproduceError> {
        let (jobs, known) = (trace.jobs.len(), trace.jobs.len() * 2 / 3);
        let on = |firsts| {
            Slowdowns::of(trace, firsts, make).map_err(|source| ReproduceError::Run { case: order.clone(), source })
        };
        let (on_known, published, held_out) = (on(even(0, known))?, on(WINDOWS.to_vec())?, on(even(known, jobs))?);
        Ok(Self { order, known: on_known, published, held_out })
    }

    fn compared(&self) -> ComparedOrder<'_> {
        ComparedOrder { published: &self.published, held_out: &self.held_out }
    }

    fn less(&self, heuristic: &Self) -> OrderDifference {
        OrderDifference::of(self.compared(), &heuristic.order, heuristic.compared())
    }

    fn row(&self, trace: &'static str, rule: QueueRule, against: Vec<OrderDifference>) -> JudgedRow {
        JudgedRow {
            trace,
            rule,
            order: self.order.clone(),
            known: self.known.mean(),
            published: self.published.mean(),
            held_out: self.held_out.mean(),
            against,
        }
    }
}

/// Judges learned orders: by trace and rule, the heuristics and then the learned orders of this rule. Without orders,
/// the heuristics by the two rules of the artifact.
///
/// # Errors
/// [`ReproduceError`] where a trace below `data` is absent or unusable, or a run fails.
pub fn judge(data: &Path, orders: &[JudgedOrder]) -> Result<Vec<JudgedRow>, ReproduceError> {
    let asked = |rule: &QueueRule| match orders.is_empty() {
        true => matches!(rule, QueueRule::Artifact | QueueRule::ArtifactBackfill),
        false => orders.iter().any(|order| order.queue.rule == *rule),
    };
    let mut rows = Vec::new();
    for (trace, file) in TRACES {
        let workload = read(data, file)?;
        for rule in QueueRule::ALL.into_iter().filter(asked) {
            let heuristic = |order: &JobOrder| {
                let name = format!("{order:?}").to_lowercase();
                PlayedWindow::of(&workload, name, &|| rule.policy(*order))
            };
            let heuristics = JobOrder::ALL.par_iter().map(heuristic).collect::<Result<Vec<PlayedWindow>, _>>()?;
            let best = heuristics.iter().min_by(|a, b| a.known.mean().total_cmp(&b.known.mean()));
            for played in &heuristics {
                let best = best.filter(|best| best.order != played.order);
                rows.push(played.row(trace, rule, best.map(|best| played.less(best)).into_iter().collect()));
            }
            for JudgedOrder { label, queue } in orders.iter().filter(|order| order.queue.rule == rule) {
                let played = PlayedWindow::of(&workload, label.clone(), &|| queue.policy())?;
                let mut against: Vec<_> = heuristics.par_iter().map(|heuristic| played.less(heuristic)).collect();
                OrderDifference::correct(&mut against);
                rows.push(played.row(trace, rule, against));
            }
        }
    }
    Ok(rows)
}
