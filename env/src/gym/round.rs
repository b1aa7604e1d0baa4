//! One decision round: a working allocation that actions change one job at a time, until it becomes a plan.
//!
//! The same code serves the environment and a deployed policy, so a policy meets in production exactly what it met in
//! training.

use crate::cluster::NodeId;
use crate::gym::action::{Ladder, Verb};
use crate::gym::layout::Layout;
use crate::gym::pack::pack;
use crate::gym::quota_room::QuotaRoom;
use crate::gym::shared_round::{LoanVerb, ScaleVerb, SharedRound};
use crate::job::JobId;
use crate::placement::Slice;
use crate::plan::Plan;
use crate::view::ClusterView;

/// A job in a slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The job.
    pub job: JobId,
    /// Accelerators it holds.
    pub held: u32,
    /// Accelerators it is to hold after this round.
    pub working: u32,
    /// Sizes it can be moved through.
    pub ladder: Ladder,
    /// Accelerator type it runs on, or would start on.
    pub accelerator: u16,
    /// The next larger size.
    pub(crate) up: Option<u32>,
    /// The next smaller size.
    pub(crate) down: Option<u32>,
    /// The direction it has been moved in during this round; it cannot be moved back.
    moved: Option<Verb>,
    /// It is on a server that goes back to inference.
    pinned: bool,
    /// Whose job it is.
    tenant: u32,
    /// With the job names a state in which nothing but time has passed.
    pub(crate) generation: u32,
}

/// The working allocation of one round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    slots: Vec<Slot>,
    /// Free accelerators by type under the working allocation.
    free: Vec<u32>,
    /// Accelerators that jobs hold or may take.
    total: u32,
    hidden: usize,
    actions: usize,
    /// Which verbs are allowed, slot by slot in the order of [`Verb::ALL`]; true of the working allocation at all times.
    allowed: Vec<u8>,
    shared: SharedRound,
    quotas: QuotaRoom,
    layout: Layout,
    // Buffers, kept so that a round allocates nothing.
    before: Vec<Slot>,
    order: Vec<(f64, u32)>,
    chosen: Vec<bool>,
    nodes: Vec<u32>,
    largest_first: Vec<u32>,
}

impl Round {
    /// Starts a round on `view`. Where more jobs are active than there are slots, half the slots show the jobs with the least
    /// known remaining work (or the least attained service), the other half the oldest of the rest.
    pub fn begin(&mut self, view: &ClusterView<'_>, layout: &Layout) {
        self.free.clear();
        self.free.resize(view.cluster().types.len(), 0);
        for (node, &free) in view.cluster().nodes.iter().zip(view.free()) {
            self.free[node.accelerator as usize] += free;
        }
        self.total = self.free.iter().sum();
        self.actions = 0;
        self.layout = *layout;
        self.shared.begin(view, layout.services, layout.pools);
        self.quotas.begin(view);
        std::mem::swap(&mut self.slots, &mut self.before);
        self.slots.clear();
        self.hidden = view.active().saturating_sub(layout.slots);
        if self.hidden > 0 {
            self.choose(view, layout.slots);
        }
        let per_node = view.cluster().gpus_per_node();
        let mut before = self.before.iter().peekable();
        for (at, job) in view.jobs().enumerate() {
            self.total += if job.state.counts() { job.gpus() } else { 0 };
            if self.hidden > 0 && !self.chosen[at] {
                continue;
            }
            // Both rounds are in ascending order of id, so the slot of the round before is found by walking along.
            while before.next_if(|slot| slot.job < job.id()).is_some() {}
            let generation = job.state.generation;
            let held = job.gpus();
            if let Some(&same) = before.peek().filter(|slot| (slot.job, slot.generation) == (job.id(), generation))
                && same.moved.is_none()
                && same.held == held
            {
                self.slots.push(*same);
                continue;
            }
            let ladder = Ladder::of(&job, per_node);
            self.slots.push(Slot {
                job: job.id(),
                held,
                working: held,
                ladder,
                accelerator: job.kind(),
                up: ladder.up(held),
                down: ladder.down(held),
                moved: None,
                pinned: false,
                tenant: job.request().tenant,
                generation,
            });
        }
        if view.cluster().has_pools() {
            self.pin(view);
        }
        self.refresh();
    }

    /// Forgets the jobs of the round before, so that a round of another run takes nothing from it.
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
        self.order.select_nth_unstable_by(half, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.chosen.clear();
        self.chosen.resize(view.active(), false);
        for &(_, at) in &self.order[..half] {
            self.chosen[at as usize] = true;
        }
        let oldest = (0..self.chosen.len()).filter(|&at| !self.chosen[at]).take(slots - half);
        self.order.clear();
        self.order.extend(oldest.map(|at| (0.0, at as u32)));
        for &(_, at) in &self.order {
            self.chosen[at as usize] = true;
        }
    }

    /// The jobs on show, in ascending order of (submission, id).
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Number of active jobs that have no slot; they keep what they hold.
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

    /// Scales a service. Returns whether it was allowed; nothing happens otherwise.
    pub fn scale(&mut self, view: &ClusterView<'_>, service: usize, verb: ScaleVerb) -> bool {
        let done = self.shared_is_open() && self.shared.scale(view, service, verb, self.layout.pools);
        if done {
            self.actions += 1;
            self.recount(view);
        }
        done
    }

    /// Lends a server or calls one back. Returns whether it was allowed; nothing happens otherwise.
    pub fn loan(&mut self, view: &ClusterView<'_>, verb: LoanVerb) -> bool {
        let done = self.shared_is_open() && self.shared.loan(view, verb).is_some();
        if done {
            self.actions += 1;
            self.recount(view);
        }
        done
    }

    /// Replicas and loans come before jobs in a round, so that what jobs may take does not change under them.
    fn shared_is_open(&self) -> bool {
        self.slots.iter().all(|slot| slot.moved.is_none())
    }

    /// Counts what training may take anew, after a change of replicas or loans.
    fn recount(&mut self, view: &ClusterView<'_>) {
        self.total -= self.free.iter().sum::<u32>();
        self.free.fill(0);
        for (node, machine) in view.cluster().nodes.iter().enumerate() {
            self.free[machine.accelerator as usize] += self.shared.open_on(view, node as NodeId);
        }
        self.total += self.free.iter().sum::<u32>();
        self.pin(view);
        self.refresh();
    }

    /// Marks the jobs that are on servers which go back to inference: they run on until the deadline, and only then can be placed elsewhere.
    fn pin(&mut self, view: &ClusterView<'_>) {
        for slot in &mut self.slots {
            let held = view.job(slot.job).map(|job| &job.state.placement);
            let goes = |slice: &Slice| !self.shared.may_train(view, slice.node);
            slot.pinned = held.is_some_and(|placement| placement.slices().iter().any(goes));
        }
    }

    /// Actions taken in this round.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Whether the round's changes so far could be carried out with `verb` done to `slot` as well.
    pub fn allows(&self, slot: usize, verb: Verb) -> bool {
        self.allowed.get(slot * Verb::ALL.len() + verb as usize) == Some(&1)
    }

    /// Works out what is allowed now.
    fn refresh(&mut self) {
        let roomiest = self.roomiest();
        self.allowed.clear();
        for job in &self.slots {
            // A job started in this round may still be given less than it asked for.
            let started = job.held == 0 && job.moved == Some(Verb::Grow);
            let grow = matches!(job.moved, None | Some(Verb::Grow)) && self.grown(job, roomiest).is_some();
            let shrink = (started || matches!(job.moved, None | Some(Verb::Shrink))) && job.down.is_some();
            // What was started in this round stays started, or a round could end with nothing done.
            let preempt = job.held > 0 && job.working > 0 && matches!(job.moved, None | Some(Verb::Shrink));
            self.allowed.extend([grow, shrink, preempt].map(|allowed| u8::from(allowed && !job.pinned)));
        }
    }

    /// The accelerator type with most free, the first of those, and how many.
    fn roomiest(&self) -> (u16, u32) {
        let types = self.free.iter().enumerate();
        let most = types.max_by_key(|&(index, &free)| (free, std::cmp::Reverse(index)));
        most.map_or((0, 0), |(kind, &free)| (kind as u16, free))
    }

    /// Size and accelerator type of a job moved one rung up, where there is room. A job runs on one type: its own if it holds
    /// any, otherwise the one with most free; it starts with what it asked for, or with less where there is no more.
    fn grown(&self, job: &Slot, (most, free): (u16, u32)) -> Option<(u32, u16)> {
        let next = job.up?;
        if job.working > 0 {
            let more = next - job.working;
            let fits = self.free[job.accelerator as usize] >= more;
            let granted = fits && self.quotas.allows(job.tenant, job.accelerator, more);
            return granted.then_some((next, job.accelerator));
        }
        let start = job.ladder.snap(next.min(free));
        (start > 0 && self.quotas.allows(job.tenant, most, start)).then_some((start, most))
    }

    /// Whether the round may end: not while everything would stand still although a job could be started.
    pub fn may_end(&self) -> bool {
        let idle = self.free.iter().sum::<u32>() == self.total;
        !(idle && (0..self.slots.len()).any(|slot| self.allows(slot, Verb::Grow)))
    }

    /// Does one thing to one job. Returns whether it was allowed; nothing happens otherwise.
    pub fn change(&mut self, slot: usize, verb: Verb) -> bool {
        if !self.allows(slot, verb) {
            return false;
        }
        let job = self.slots[slot];
        let (working, accelerator) = match verb {
            Verb::Grow => self.grown(&job, self.roomiest()).unwrap_or((job.working, job.accelerator)),
            Verb::Shrink => (job.down.unwrap_or(job.working), job.accelerator),
            Verb::Preempt => (0, job.accelerator),
        };
        self.free[accelerator as usize] = self.free[accelerator as usize] + job.working - working;
        self.quotas.change(job.tenant, accelerator, job.working, working);
        let (up, down) = (job.ladder.up(working), job.ladder.down(working));
        self.slots[slot] = Slot { working, accelerator, up, down, moved: Some(verb), ..job };
        self.actions += 1;
        self.refresh();
        true
    }

    /// Writes which actions are allowed, 1 or 0 each; at least one always is.
    pub fn mask(&self, layout: &Layout, mask: &mut [u8]) {
        // Action numbers run slot by slot in the order of the verbs, as `allowed` does.
        let (known, rest) = mask.split_at_mut(self.allowed.len());
        known.copy_from_slice(&self.allowed);
        rest.fill(0);
        if self.shared_is_open() {
            self.shared.mask(&mut mask[layout.first_other()..layout.wait()]);
        }
        mask[layout.wait()] = u8::from(self.may_end() || !self.has_choice());
    }

    /// Whether anything but ending the round is allowed.
    pub fn has_choice(&self) -> bool {
        self.allowed.contains(&1) || (self.shared_is_open() && self.shared.has_choice())
    }

    /// The plan that carries the working allocation out: jobs whose size is unchanged stay where they are, the others are
    /// packed, largest first.
    pub fn plan(&mut self, view: &ClusterView<'_>, plan: &mut Plan) {
        plan.clear();
        self.shared.plan(view, plan);
        self.nodes.clear();
        if self.layout.others() > 1 {
            let nodes = 0..view.cluster().nodes.len();
            self.nodes.extend(nodes.map(|node| self.shared.open_on(view, node as NodeId)));
        } else {
            self.nodes.extend_from_slice(view.free());
        }
        self.largest_first.clear();
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.working != slot.held) {
            if let Some(job) = view.job(slot.job) {
                for held in job.state.placement.slices() {
                    self.nodes[held.node as usize] += held.gpus;
                }
            }
            self.largest_first.push(at as u32);
        }
        let slots = &self.slots;
        self.largest_first.sort_unstable_by_key(|&at| (std::cmp::Reverse(slots[at as usize].working), at));
        for &at in &self.largest_first {
            let slot = &slots[at as usize];
            // By construction the counts fit; a job that still finds no room waits rather than breaking the plan.
            let placement = pack(view.cluster(), &mut self.nodes, slot.accelerator, slot.working);
            plan.set(slot.job, placement.unwrap_or_default());
        }
    }
}
