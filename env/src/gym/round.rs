//! Decision round: a working allocation that actions change one job at a time, until it becomes a
//! plan.
//!
//! The environment and a deployed policy share this code, so that a policy sees in production
//! exactly what it saw in training.

use crate::cluster::{NodeId, TypeId};
use crate::gym::action::{Action, Ladder, LoanVerb, ScaleVerb, Verb};
use crate::gym::layout::Layout;
use crate::gym::quota_room::QuotaRoom;
use crate::gym::shared_round::SharedRound;
use crate::job::JobId;
use crate::placement::{Slice, pack};
use crate::plan::Plan;
use crate::view::ClusterView;

/// Job slot in a round.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Job in the slot.
    pub job: JobId,
    /// Number of accelerators that the job holds.
    pub held: u32,
    /// Number of accelerators that the job is to hold after this round.
    pub working: u32,
    /// Sizes that the job can be moved through.
    pub ladder: Ladder,
    /// Accelerator type on which the job is to run; for a job without accelerators only the type of
    /// its speeds.
    pub accelerator: TypeId,
    /// Accelerator type of the job when the round began; without accelerators the first type on
    /// which it runs.
    pub(crate) home: TypeId,
    /// Next larger size on the ladder.
    pub(crate) up: Option<u32>,
    /// Next smaller size on the ladder.
    pub(crate) down: Option<u32>,
    /// Last change to the job in this round, which determines the verbs that are allowed next.
    moved: Option<Verb>,
    /// Bit set of the accelerator types on which the job runs.
    runs_on: u32,
    /// Whether the job is on a server that returns to the inference pool.
    pinned: bool,
    /// Index of the tenant that owns the job.
    tenant: u32,
    /// Version of the job's state; while job and version are unchanged, only time has passed.
    pub(crate) version: (u32, u32),
}

impl Slot {
    /// Whether the job is to hold another allocation after this round.
    pub fn changed(&self) -> bool {
        self.working != self.held || (self.working > 0 && self.accelerator != self.home)
    }

    /// Whether the job runs on an accelerator type.
    pub fn runs_on(&self, kind: TypeId) -> bool {
        1u32.checked_shl(u32::from(kind.0)).is_some_and(|bit| self.runs_on & bit != 0)
    }

    /// Verbs that would give the job more than it held when the round began, whether or not there
    /// is room. A job grows; where the layout distinguishes types, a job without accelerators is
    /// placed on one of its types instead.
    pub fn openings(&self, layout: &Layout) -> impl Iterator<Item = Verb> {
        let places = self.held == 0 && layout.types > 0;
        let kinds = TypeId::first(if places { layout.types } else { 0 });
        let grows = (!places).then_some(Verb::Grow);
        kinds.filter(|&kind| self.runs_on(kind)).map(Verb::Place).chain(grows)
    }
}

/// Working allocation of one round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    slots: Vec<Slot>,
    /// Free accelerators by type under the working allocation.
    free: Vec<u32>,
    /// Number of accelerators that jobs hold or may take.
    total: u32,
    hidden: usize,
    actions: usize,
    /// Allowed verbs, slot by slot in the order of their numbers; always consistent with the
    /// working allocation.
    allowed: Vec<u8>,
    shared: SharedRound,
    quotas: QuotaRoom,
    layout: Layout,
    // Buffers that are reused, so that a round allocates no memory.
    before: Vec<Slot>,
    order: Vec<(f64, u32)>,
    chosen: Vec<bool>,
    nodes: Vec<u32>,
    largest_first: Vec<u32>,
}

impl Round {
    /// Starts a round on `view`. Where more jobs are active than there are slots, half the slots
    /// show the jobs with the least known remaining work (or the least attained service), and the
    /// other half the oldest of the remaining jobs.
    pub fn begin(&mut self, view: &ClusterView<'_>, layout: &Layout) {
        self.free.clear();
        self.free.resize(view.cluster().types.len(), 0);
        for (node, &free) in view.cluster().nodes.iter().zip(view.free()) {
            self.free[node.accelerator.index()] += free;
        }
        self.total = self.free.iter().sum();
        self.actions = 0;
        self.layout = *layout;
        self.shared.begin(view, layout);
        self.quotas.begin(view);
        std::mem::swap(&mut self.slots, &mut self.before);
        self.slots.clear();
        self.hidden = view.active().saturating_sub(layout.slots);
        if self.hidden > 0 {
            self.choose(view, layout.slots);
        }
        let per_node = view.cluster().gpus_per_node();
        let types = self.free.len().min(Layout::MOST_TYPES);
        let mut before = self.before.iter().peekable();
        for (at, job) in view.jobs().enumerate() {
            // Of two jobs that share accelerators only one counts.
            self.total += if job.state.counts() { job.gpus() } else { 0 };
            if self.hidden > 0 && !self.chosen[at] {
                continue;
            }
            // Both rounds are in ascending order of id, so one linear merge finds the previous slot
            // of each job.
            while before.next_if(|slot| slot.job < job.id()).is_some() {}
            let version = job.state.version();
            let held = job.gpus();
            // Reusing an unchanged slot saves the ladder and the types of most jobs.
            if let Some(&same) = before.peek().filter(|slot| (slot.job, slot.version) == (job.id(), version))
                && same.moved.is_none()
                && same.held == held
                && same.ladder.per_node() == per_node
            {
                self.slots.push(*same);
                continue;
            }
            let ladder = Ladder::of(&job, per_node);
            let runs_on = TypeId::first(types).filter(|&kind| job.runs_on(kind));
            let home = if held > 0 { job.kind() } else { runs_on.clone().next().unwrap_or_else(|| job.kind()) };
            self.slots.push(Slot {
                job: job.id(),
                held,
                working: held,
                ladder,
                accelerator: home,
                home,
                up: ladder.up(held),
                down: ladder.down(held),
                moved: None,
                runs_on: runs_on.fold(0, |all, kind| all | 1 << kind.0),
                pinned: false,
                tenant: job.request().tenant,
                version,
            });
        }
        if view.cluster().has_pools() {
            self.pin(view);
        }
        self.refresh();
    }

    /// Clears the slots of the previous round, so that a round of another run does not reuse any of
    /// them.
    pub fn reset(&mut self) {
        self.slots.clear();
    }

    fn choose(&mut self, view: &ClusterView<'_>, slots: usize) {
        self.order.clear();
        self.order.extend(view.jobs().enumerate().map(|(at, job)| {
            let shortest = job.remaining_secs(job.min_gpus()).unwrap_or(job.attained_gpu_millis() as f64 / 1000.0);
            (shortest, at as u32)
        }));
        let half = slots / 2;
        // Partial selection suffices: the order within each half does not matter.
        self.order.select_nth_unstable_by(half, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.chosen.clear();
        self.chosen.resize(view.active(), false);
        for &(_, at) in &self.order[..half] {
            self.chosen[at as usize] = true;
        }
        // Jobs are listed in order of submission, so the first that are not chosen are the oldest.
        let oldest = (0..self.chosen.len()).filter(|&at| !self.chosen[at]).take(slots - half);
        self.order.clear();
        self.order.extend(oldest.map(|at| (0.0, at as u32)));
        for &(_, at) in &self.order {
            self.chosen[at as usize] = true;
        }
    }

    /// Slots of the round, in ascending order of (submission, id).
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Number of active jobs that have no slot; they keep their accelerators.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Free accelerators under the working allocation, by type.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// Services and pools under the working state.
    pub fn shared(&self) -> &SharedRound {
        &self.shared
    }

    /// Scales a service. Returns whether the change was allowed; a forbidden change has no effect.
    pub fn scale(&mut self, view: &ClusterView<'_>, service: usize, verb: ScaleVerb) -> bool {
        let done = self.shared_is_open() && self.shared.scale(view, service, verb);
        if done {
            self.actions += 1;
            self.recount(view);
        }
        done
    }

    /// Lends or reclaims a server. Returns whether the change was allowed; a forbidden change has
    /// no effect.
    pub fn loan(&mut self, view: &ClusterView<'_>, verb: LoanVerb) -> bool {
        let done = self.shared_is_open() && self.shared.loan(view, verb).is_some();
        if done {
            self.actions += 1;
            self.recount(view);
        }
        done
    }

    /// Whether replicas and loans may still change. They come before jobs in a round, so that the
    /// accelerators available to jobs do not change afterwards.
    fn shared_is_open(&self) -> bool {
        self.slots.iter().all(|slot| slot.moved.is_none())
    }

    /// Recounts the accelerators available to training, after a change of replicas or loans.
    fn recount(&mut self, view: &ClusterView<'_>) {
        // What jobs hold stays in the total; only the free part is counted anew.
        self.total -= self.free.iter().sum::<u32>();
        self.free.fill(0);
        for (node, machine) in view.cluster().nodes.iter().enumerate() {
            self.free[machine.accelerator.index()] += self.shared.open_on(view, NodeId::at(node));
        }
        self.total += self.free.iter().sum::<u32>();
        self.pin(view);
        self.refresh();
    }

    /// Marks the jobs on servers that return to the inference pool: these jobs run until the
    /// deadline and can be placed elsewhere only then.
    fn pin(&mut self, view: &ClusterView<'_>) {
        for slot in &mut self.slots {
            let held = view.job(slot.job).map(|job| &job.state.placement);
            let goes = |slice: &Slice| !self.shared.may_train(view, slice.node);
            slot.pinned = held.is_some_and(|placement| placement.slices().iter().any(goes));
        }
    }

    /// Number of actions taken in this round.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Whether `verb` may be applied to `slot` after the changes of this round so far.
    pub fn allows(&self, slot: usize, verb: Verb) -> bool {
        let (number, verbs) = (verb.number(), self.layout.verbs);
        number < verbs && self.allowed.get(slot * verbs + number) == Some(&1)
    }

    /// Whether an action may be taken after the changes of this round so far.
    pub fn allows_action(&self, action: Action) -> bool {
        match action {
            Action::Change { slot, verb } => self.allows(slot, verb),
            Action::Scale { service, verb } => self.shared_is_open() && self.shared.allows_scale(service, verb),
            Action::Loan(verb) => self.shared_is_open() && self.shared.allows_loan(verb),
            Action::Wait => self.may_end(),
        }
    }

    /// Whether a job without accelerators could be started by any verb.
    fn can_start(&self, slot: usize) -> bool {
        let places = TypeId::first(self.layout.types).map(Verb::Place);
        self.slots[slot].working == 0 && places.chain([Verb::Grow]).any(|verb| self.allows(slot, verb))
    }

    /// Recomputes the allowed verbs of all slots.
    fn refresh(&mut self) {
        let mut allowed = std::mem::take(&mut self.allowed);
        allowed.clear();
        for job in &self.slots {
            let placed = matches!(job.moved, Some(Verb::Place(_)));
            // A job that was started in this round may still be given fewer accelerators than it
            // requested.
            let started = job.held == 0 && job.moved == Some(Verb::Grow);
            let grow = (placed || matches!(job.moved, None | Some(Verb::Grow))) && self.grown(job).is_some();
            let shrink = (placed || started || matches!(job.moved, None | Some(Verb::Shrink))) && job.down.is_some();
            // A job that was started or moved in this round cannot be preempted, or a round could
            // end without any effect.
            let stays = job.working == 0 || job.accelerator != job.home;
            let preempt = job.held > 0 && !stays && matches!(job.moved, None | Some(Verb::Shrink));
            allowed.extend([grow, shrink, preempt].map(|allowed| u8::from(allowed && !job.pinned)));
            let kinds = TypeId::first(self.layout.types);
            allowed.extend(kinds.map(|kind| u8::from(!job.pinned && self.placed(job, kind).is_some())));
        }
        self.allowed = allowed;
    }

    /// Size of a job that is started on a type or moved there, where there is room.
    ///
    /// The size is the requested or current one, or the largest that fits. A job is moved at most
    /// once a round.
    fn placed(&self, job: &Slot, kind: TypeId) -> Option<u32> {
        if !job.runs_on(kind) {
            return None;
        }
        let wanted = match job.working {
            0 if job.held == 0 && job.moved.is_none() => job.ladder.start(),
            0 => return None,
            working => {
                let moves = job.held > 0 && job.accelerator == job.home && job.home != kind;
                (moves && matches!(job.moved, None | Some(Verb::Shrink))).then_some(working)?
            }
        };
        let size = job.ladder.snap(wanted.min(self.free[kind.index()]));
        (size > 0 && self.quotas.allows(job.tenant, kind, size)).then_some(size)
    }

    /// Accelerator type with most free accelerators among the types on which the job runs, and
    /// their number; the first type on ties.
    fn roomiest(&self, job: &Slot) -> Option<(TypeId, u32)> {
        let types = self.free.iter().enumerate().map(|(kind, &free)| (TypeId::at(kind), free));
        types.filter(|&(kind, _)| job.runs_on(kind)).max_by_key(|&(kind, free)| (free, std::cmp::Reverse(kind)))
    }

    /// Size and accelerator type of a job that is moved one rung up, where there is room.
    ///
    /// A job with accelerators stays on its type. A job without starts on the type with most free
    /// accelerators, at its requested size or the largest size that fits.
    fn grown(&self, job: &Slot) -> Option<(u32, TypeId)> {
        let next = job.up?;
        if job.working > 0 {
            let more = next - job.working;
            let fits = self.free[job.accelerator.index()] >= more;
            let granted = fits && self.quotas.allows(job.tenant, job.accelerator, more);
            return granted.then_some((next, job.accelerator));
        }
        if self.layout.types > 0 {
            // Where the layout distinguishes types, jobs start by a placement verb.
            return None;
        }
        let (most, free) = self.roomiest(job)?;
        let start = job.ladder.snap(next.min(free));
        (start > 0 && self.quotas.allows(job.tenant, most, start)).then_some((start, most))
    }

    /// Whether the round may end: not while no accelerator is in use although a job could be
    /// started.
    pub fn may_end(&self) -> bool {
        // Where all accelerators are free no job runs, so time would pass for nothing.
        let idle = self.free.iter().sum::<u32>() == self.total;
        !(idle && (0..self.slots.len()).any(|slot| self.can_start(slot)))
    }

    /// Applies one verb to one job. Returns whether the change was allowed; a forbidden change has
    /// no effect.
    pub fn change(&mut self, slot: usize, verb: Verb) -> bool {
        if !self.allows(slot, verb) {
            return false;
        }
        let job = self.slots[slot];
        let (working, accelerator) = match verb {
            Verb::Place(kind) => (self.placed(&job, kind).unwrap_or(job.working), kind),
            Verb::Grow => self.grown(&job).unwrap_or((job.working, job.accelerator)),
            Verb::Shrink => (job.down.unwrap_or(job.working), job.accelerator),
            Verb::Preempt => (0, job.accelerator),
        };
        // Release the old accelerators before the new ones are taken, because both may be of one
        // type.
        self.free[job.accelerator.index()] += job.working;
        self.quotas.change(job.tenant, job.accelerator, job.working, 0);
        self.free[accelerator.index()] -= working;
        self.quotas.change(job.tenant, accelerator, 0, working);
        let (up, down) = (job.ladder.up(working), job.ladder.down(working));
        self.slots[slot] = Slot { working, accelerator, up, down, moved: Some(verb), ..job };
        self.actions += 1;
        self.refresh();
        true
    }

    /// Writes the mask of allowed actions, 1 or 0 each; at least one action is always allowed.
    pub fn mask(&self, layout: &Layout, mask: &mut [u8]) {
        // Action numbers run slot by slot in the order of the verbs, as `allowed` does.
        let (known, rest) = mask.split_at_mut(self.allowed.len());
        known.copy_from_slice(&self.allowed);
        rest.fill(0);
        if self.shared_is_open() {
            self.shared.mask(&mut mask[layout.first_other()..layout.wait()]);
        }
        // A mask without any action would leave a policy without a way on.
        mask[layout.wait()] = u8::from(self.may_end() || !self.has_choice());
    }

    /// Whether any action other than the end of the round is allowed.
    pub fn has_choice(&self) -> bool {
        self.allowed.contains(&1) || (self.shared_is_open() && self.shared.has_choice())
    }

    /// Writes the plan of the working allocation: jobs of unchanged size keep their placement, and
    /// the other jobs are packed, largest first.
    pub fn plan(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        plan.clear();
        self.shared.plan(view, plan);
        self.nodes.clear();
        // Replicas and loans of this round have changed what is free on a node.
        if self.layout.others() > 1 {
            let nodes = 0..view.cluster().nodes.len();
            self.nodes.extend(nodes.map(|node| self.shared.open_on(view, NodeId::at(node))));
        } else {
            self.nodes.extend_from_slice(view.free());
        }
        self.largest_first.clear();
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.changed()) {
            // A changed job may reuse its own accelerators, so count them as free before packing. Others may still hold
            // an accelerator that the job shares.
            if let Some(job) = view.job(slot.job).filter(|job| job.state.placement.share().is_none()) {
                for held in job.state.placement.slices() {
                    self.nodes[held.node.index()] += held.gpus;
                }
            }
            self.largest_first.push(at as u32);
        }
        let slots = &self.slots;
        // Large jobs come first because they need whole nodes, which small ones would break up.
        self.largest_first.sort_unstable_by_key(|&at| (std::cmp::Reverse(slots[at as usize].working), at));
        for &at in &self.largest_first {
            let slot = &slots[at as usize];
            // The counts fit by construction. A job that still finds no room waits, so that the
            // plan stays valid.
            let placement = pack(view.cluster(), &mut self.nodes, slot.accelerator, slot.working);
            plan.set(slot.job, placement.unwrap_or_default());
        }
    }
}
