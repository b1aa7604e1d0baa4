//! A segment of a running job: from a restart, an epoch's end or a new batch size to the next one,
//! at a constant rate.

use super::events::{Event, EventKind};
use super::{SimError, Simulator};
use crate::cluster::TypeId;
use crate::job::{JobId, Work};
use crate::model::{StepTime, slowdown};
use crate::scenario::{Batching, EpochEnd};
use crate::state::{ClusterState, Phase};
use crate::time::SimTime;

impl ClusterState {
    /// Chooses the batch size for the current placement.
    pub(super) fn choose_batch(&mut self, job: JobId) {
        let Work::Application { index, .. } = self.scenario.workload.jobs[job.index()].work else {
            return;
        };
        let scenario = &self.scenario;
        let app = &scenario.workload.applications[index as usize];
        let request = &scenario.workload.jobs[job.index()].request;
        let share = self.jobs.state(job).share();
        let kind = scenario.kind_of(share);
        let pace = scenario.speeds.pace(index, kind);
        let limits = pace.map_or(app.limits, |pace| pace.limits_on(&share.shape()));
        let state = self.jobs.state_mut(job);
        let (nodes, gpus) = (state.share().nodes(), state.share().gpus());
        state.stale = false;
        let requested = request.batch_size.unwrap_or(app.limits.init);
        let adapted = match (scenario.options.batching, app.fixed_batch) {
            (Batching::Requested, _) => Some(limits.split(requested, gpus)),
            (_, Some(total)) => Some(limits.split(total, gpus)),
            (batching @ (Batching::Agent | Batching::Throughput), None) => {
                let model = state.profile.model(kind, limits).map(|model| batching.objective(model));
                let best = model.and_then(|model| model.best(nodes, gpus));
                best.map(|best| limits.capped(best.batch, gpus))
            }
            (Batching::Catalog, None) => {
                let packed = nodes == gpus.div_ceil(scenario.speeds.gpus_per_node(kind));
                let tabled =
                    scenario.speeds.best(index, kind, state.epoch, gpus).filter(|_| packed).map(|best| best.batch);
                tabled.or_else(|| scenario.best_batch(index, kind, state.epoch, nodes, gpus))
            }
        };
        // Without a model yet, or where no batch size fits the limits: the smallest total the
        // replicas allow.
        let smallest = limits.smallest_total(gpus).min(u64::from(limits.max)) as u32;
        state.batch = adapted.unwrap_or_else(|| limits.split(smallest, gpus));
    }

    fn no_speed(&self, job: JobId, kind: TypeId) -> SimError {
        SimError::NoSpeed {
            application: self.scenario.workload.application_name(job).into(),
            accelerator: self.scenario.cluster.types.get(kind.index()).map_or("gpu", |kind| &kind.name).into(),
        }
    }

    pub(super) fn name(&self, job: JobId) -> &str {
        &self.scenario.workload.jobs[job.index()].request.name
    }
}

impl Simulator {
    /// Starts to run at the current batch size: measures it, sets the rate and queues the end of
    /// the epoch.
    pub(super) fn run_segment(&mut self, job: JobId) -> Result<(), SimError> {
        if let Some((rate, goal)) = self.mixed_segment(job) {
            self.set_rate(job, rate, goal);
            return Ok(());
        }
        let spec = &self.state.scenario.workload.jobs[job.index()];
        let state = self.state.jobs.state(job);
        let (rate, goal) = match spec.work {
            Work::Fixed { duration } => {
                (spec.request.linear_rate(state.share().gpus()).unwrap_or(1.0), duration.as_secs_f64())
            }
            Work::Steps { class, .. } => {
                let kind = self.state.scenario.kind_of(state.share());
                let rate = match state.partner {
                    Some(partner) => self.state.scenario.rate_beside(job, partner, kind),
                    None => self.state.scenario.speeds.work_per_sec(class, state.epoch, kind),
                };
                let rate = rate.ok_or_else(|| self.state.no_speed(job, kind))?;
                (rate, self.state.scenario.epoch_end(job, state.epoch))
            }
            Work::Application { index, .. } => {
                let app = self.state.scenario.workload.applications[index as usize].clone();
                let (epoch, batch, replicas) = (state.epoch, state.batch, state.share().gpus());
                let kind = self.state.scenario.kind_of(state.share());
                let step = self.true_step(job, index, kind)?;
                let total = batch.total(replicas) as f64;
                let stats = app.gradients.at(total, epoch);
                if self.state.scenario.options.batching.is_measured() {
                    let state = self.state.jobs.state_mut(job);
                    let nodes = state.share().nodes();
                    // Batch sizes are chosen again at decisions only, so a changed model is just
                    // noted here.
                    if state.profile.observe(kind, nodes, replicas, batch.atomic, step, stats) && !state.stale {
                        state.stale = true;
                        self.jobs.stale.push(job);
                    }
                    self.jobs.share_what_was_measured(&mut self.state, job);
                }
                (app.progress_rate(step, replicas, batch, epoch), self.state.scenario.epoch_end(job, epoch))
            }
        };
        self.set_rate(job, rate, goal);
        Ok(())
    }

    /// Rate and goal of a job on accelerators of several types; `None` on one type.
    fn mixed_segment(&self, job: JobId) -> Option<(f64, f64)> {
        let (scenario, state) = (&self.state.scenario, self.state.jobs.state(job));
        scenario.options.mixing?;
        let share = state.share();
        let rate = scenario.mixed_rate(job, state.epoch, share).filter(|_| scenario.is_mixed(share))?;
        Some((rate, scenario.epoch_end(job, state.epoch)))
    }

    pub(super) fn true_step(&self, job: JobId, index: u16, kind: TypeId) -> Result<StepTime, SimError> {
        let app = &self.state.scenario.workload.applications[index as usize];
        let state = self.state.jobs.state(job);
        let pace = self.state.scenario.speeds.pace(index, kind).ok_or_else(|| self.state.no_speed(job, kind))?;
        let factor = self.sync_factor(state.share());
        pace.step_time_slowed(&state.share().shape(), state.batch.atomic, factor).map_err(|source| SimError::Profile {
            at: self.state.now,
            name: self.state.name(job).into(),
            application: app.name.clone(),
            source,
        })
    }

    /// Sets a settled job's undisturbed rate and queues the event at which it reaches `goal`.
    pub(super) fn set_rate(&mut self, job: JobId, rate: f64, goal: f64) {
        let now = self.state.now;
        let whole_seconds = self.state.scenario.options.epoch_end == EpochEnd::WholeSecond;
        let period = self.state.scenario.options.rounds.period;
        let state = self.state.jobs.state_mut(job);
        state.rate = rate * state.kept_speed * state.shared_speed;
        // The end that was queued for the old rate is void from now on.
        state.generation += 1;
        state.segment = now;
        if state.rate <= 0.0 {
            return;
        }
        let left = ((goal - state.progress) / state.rate).max(0.0);
        let done = |left: f64| state.saving.when_done(now, SimTime::from_secs_f64(left));
        let (at, kind) = if whole_seconds {
            // The artifact rounds as Python does, halves to even.
            let at = done(left.round_ties_even());
            // An end that really falls after a round but is rounded onto it happens after the
            // round.
            let on_round = period.is_some_and(|period| at.next_multiple_of(period) == at);
            let after = on_round && left > left.round_ties_even();
            (at, if after { EventKind::PhaseAfterRound } else { EventKind::Phase })
        } else {
            (done(left), EventKind::Phase)
        };
        self.queue.push(Event::of_job(at, kind, job, state.generation));
    }

    /// Chooses batch sizes again at an event that is no decision, where the conventions of the run have it so.
    pub(super) fn choose_batches_at_event(&mut self) -> Result<(), SimError> {
        if self.state.scenario.options.batches_at_events { self.rechoose_batches() } else { Ok(()) }
    }

    /// Chooses batch sizes again where an agent's model has changed.
    pub(super) fn rechoose_batches(&mut self) -> Result<(), SimError> {
        // Segments that start here may become stale again and queue behind the ones looked at now.
        let count = self.jobs.stale.len();
        for at in 0..count {
            let job = self.jobs.stale[at];
            let Some(state) = self.state.jobs.get(job) else {
                continue;
            };
            if !state.stale || state.phase != Phase::Running {
                continue;
            }
            let before = state.batch;
            self.state.choose_batch(job);
            if self.state.jobs.state(job).batch != before {
                let now = self.state.now;
                self.state.jobs.state_mut(job).settle(now);
                self.run_segment(job)?;
            }
        }
        self.jobs.stale.drain(..count);
        Ok(())
    }

    /// Slows distributed jobs that share nodes, speeds up those that no longer do.
    pub(super) fn update_interference(&mut self) -> Result<(), SimError> {
        let penalty = self.state.scenario.options.interference;
        if penalty == 0.0 {
            return Ok(());
        }
        let mut next = self.state.jobs.next_active(JobId(0));
        while let Some(job) = next {
            next = self.state.jobs.next_active(JobId::at(job.index() + 1));
            let state = self.state.jobs.state(job);
            let shared = state.placement.slices().iter().map(|slice| self.jobs.distributed[slice.node.index()]);
            let kept = slowdown(&shared.collect::<smallvec::SmallVec<[u32; 16]>>(), penalty);
            if kept != state.kept_speed {
                let (running, now) = (state.phase == Phase::Running, self.state.now);
                let state = self.state.jobs.state_mut(job);
                state.settle(now);
                state.kept_speed = kept;
                if running {
                    self.run_segment(job)?;
                }
            }
        }
        Ok(())
    }
}
