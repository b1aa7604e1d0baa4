//! From one round to the next: which jobs run, and where.

use goodput_env::cluster::TypeId;
use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::view::ClusterView;

use super::config::{GavelObjective, TypeSpeeds};
use super::policy::{Gavel, of_types, runs};
use super::rounds::{ChosenTask, Combination, MayRun, RoundLedger, RoundTask, place_round};
use crate::heuristic::shockwave::forecast::PlannedJob;

impl Gavel {
    /// Time at which the next round is to be chosen, where that is before the present one ends and has not been done.
    pub(super) fn chooses_at(&self) -> Option<f64> {
        let open = self.next.is_none() && !self.tasks.is_empty();
        open.then(|| self.departures.chooses_at(self.end_secs, self.config.rounds.round_secs)).flatten()
    }

    /// Starts the next round.
    pub(super) fn next_round(&mut self, view: &ClusterView<'_>) -> Plan {
        let previous_end = (!self.tasks.is_empty()).then_some(self.end_secs);
        let start = self.departures.round_start(previous_end, view.now.as_secs_f64());
        let chosen = match self.next.take() {
            // Jobs that have completed since leave their accelerators idle.
            Some(mut chosen) => {
                if let Some(mut ledger) = self.ledger.take() {
                    self.enter_time(view, &mut ledger);
                    self.ledger = Some(ledger);
                }
                chosen.retain(|task| task.combination.jobs().all(|job| view.job(job).is_some()));
                chosen
            }
            None => self.choose(view, start),
        };
        (self.start_secs, self.entered_secs) = (start, start);
        self.start(view, &chosen)
    }

    /// Chooses what runs in the round after the present one, `now` seconds into the run.
    pub(super) fn choose(&mut self, view: &ClusterView<'_>, now: f64) -> Vec<ChosenTask> {
        // The ledger leaves `self` for the decision, since methods of `self` change it.
        let mut ledger = self
            .ledger
            .take()
            .unwrap_or_else(|| RoundLedger::new(view.cluster().types.len(), self.config.rounds.round_secs));
        self.close_round(view, &mut ledger);
        if matches!(self.config.objective, GavelObjective::Shockwave(_)) {
            self.ledger = Some(ledger);
            return self.choose_by_plan(view, now);
        }
        self.allocate_shares(view, &mut ledger, now);
        let order = self.order_of_types(view.cluster().types.len());
        // In first in, first out a job without a type waits; elsewhere idle accelerators go to jobs
        // without a share.
        let may_run = match self.config.objective {
            GavelObjective::Fifo(_) => MayRun::Allocated,
            _ => MayRun::All,
        };
        let mut chosen = ledger.choose(&order, of_types(view, &unheld(view)), may_run);
        chosen.retain(|task| ledger.account(task.combination).is_some_and(|account| self.departures.starts(account)));
        self.ledger = Some(ledger);
        chosen
    }

    /// Chooses the jobs of a round that Shockwave has planned, each on the first type where it runs and finds room.
    fn choose_by_plan(&mut self, view: &ClusterView<'_>, now: f64) -> Vec<ChosenTask> {
        self.stale = false;
        let GavelObjective::Shockwave(planner) = &mut self.config.objective else { return Vec::new() };
        let mut left = of_types(view, &unheld(view));
        let total = left.iter().sum();
        let mut planned = Vec::with_capacity(self.jobs.len());
        for job in self.jobs.iter().filter_map(|known| view.job(known.id)) {
            let kind = TypeId::at(runs(view, &job).iter().position(|runs| *runs).unwrap_or(0));
            let steps = self.departures.steps_left(&job);
            planned.extend(steps.and_then(|left| PlannedJob::new(&job, kind, left)).filter(|job| job.gpus <= total));
        }
        let chosen = planner.next_round(&planned, total, now).into_iter().filter_map(|id| {
            let job = view.job(id)?;
            let gpus = job.request().gpus;
            let kind = runs(view, &job).iter().zip(&left).position(|(runs, &left)| *runs && left >= gpus)?;
            left[kind] -= gpus;
            Some(ChosenTask { combination: Combination::single(id), gpus, kind: TypeId::at(kind) })
        });
        chosen.collect()
    }

    fn order_of_types(&mut self, count: usize) -> Vec<TypeId> {
        let mut order: Vec<TypeId> = TypeId::first(count).collect();
        if self.config.types == TypeSpeeds::Hidden && !self.config.sharing {
            self.departures.shuffle(&mut order);
        }
        order
    }

    /// Starts a round with what was chosen for it.
    fn start(&mut self, view: &ClusterView<'_>, chosen: &[ChosenTask]) -> Plan {
        let held = |combination: Combination| {
            let task = self.tasks.iter().find(|task| task.combination == combination)?;
            Some((task.kind, task.placement.clone()))
        };
        let placed = place_round(chosen, held, view.cluster(), unheld(view));
        let task = |(ChosenTask { combination, kind, .. }, placement)| RoundTask { combination, kind, placement };
        let tasks: Vec<RoundTask> = placed.into_iter().map(task).collect();
        let stays = |old: &&RoundTask| {
            tasks.iter().any(|task| task.combination == old.combination && task.placement == old.placement)
        };
        let leaving = self.tasks.len() - self.tasks.iter().filter(stays).count();
        self.tasks = tasks;
        self.end_secs = self.departures.start_round(view, &self.tasks, self.start_secs, self.config.rounds.round_secs)
            + self.departures.extension_secs(leaving);
        self.plan(view)
    }

    fn plan(&self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut moved: Vec<JobId> = Vec::new();
        for task in &self.tasks {
            let partner = task.combination.older.map(|older| (older, task.combination.younger));
            let stays = |job: JobId| {
                view.job(job).is_some_and(|job| {
                    let with = partner.map(|(one, other)| if one == job.id() { other } else { one });
                    job.state.placement == task.placement && job.state.partner == with
                })
            };
            moved.extend(task.combination.jobs());
            if task.combination.jobs().all(stays) {
                continue;
            }
            match partner {
                None => plan.set(task.combination.younger, task.placement.clone()),
                Some((one, other)) => plan.share(one, other, task.placement.clone()),
            }
        }
        moved.sort_unstable();
        for job in view.jobs().filter(|job| job.state.is_allocated()) {
            if moved.binary_search(&job.id()).is_err() {
                plan.set(job.id(), Placement::none());
            }
        }
        plan
    }
}

/// Accelerators by node that nothing but a job of a round holds. A round places all jobs anew, so what running jobs
/// hold counts as free.
fn unheld(view: &ClusterView<'_>) -> Vec<u32> {
    let mut free = view.free().to_vec();
    for job in view.jobs() {
        job.state.frees().iter().for_each(|slice| free[slice.node.index()] += slice.gpus);
    }
    free
}
