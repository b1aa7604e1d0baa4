//! `multi-dlas-gpu` of the public Tiresias simulator: jobs are served by class, a class being all
//! jobs of one width. For reproduction only.
//!
//! Each class has two queues of its own and accelerators reserved for it. Every 600 s the
//! reservations follow the demand. In between, accelerators that a class does not use stay idle,
//! and before the first reservation no job runs at all. Neither the paper nor the simulator's notes
//! describe it further: the rules below follow its code.

use goodput_env::job::JobId;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::heuristic::gittins::rounded;
use crate::placement::{Free, Packer};

/// GPU-seconds at which a job leaves the first queue of its class.
const LIMIT: i64 = 3600;

/// Time between reservations.
const INTERVAL: SimTime = SimTime::from_secs(600);

/// `multi-dlas-gpu` over a cluster.
#[derive(Clone, Debug)]
pub struct ReservedQueues {
    classes: Vec<WidthClass>,
    unseen: JobId,
    next_reserve: SimTime,
    next_demotion: SimTime,
    free: Free,
}

#[derive(Clone, Debug)]
struct WidthClass {
    gpus: i64,
    total: i64,
    free: i64,
    queues: [Vec<ReservedJob>; 2],
}

#[derive(Clone, Copy, Debug)]
struct ReservedJob {
    job: JobId,
    running: bool,
    /// Whole seconds run, as of the last decision.
    executed: i64,
}

impl ReservedQueues {
    /// A policy for jobs of these widths, in the order in which the trace first has them. Classes
    /// of equal demand are served in the order of a hash table that was filled in this order.
    pub fn new(widths: impl IntoIterator<Item = u32>) -> Self {
        let class = |gpus: u32| WidthClass { gpus: gpus.into(), total: 0, free: 0, queues: [Vec::new(), Vec::new()] };
        Self {
            classes: hashed(widths).into_iter().map(class).collect(),
            unseen: JobId(0),
            next_reserve: INTERVAL,
            next_demotion: SimTime::NEVER,
            free: Free::default(),
        }
    }

    fn admit(&mut self, view: &ClusterView<'_>) {
        let first = view.jobs().rev().take_while(|job| job.id() >= self.unseen).last().map(|job| job.id());
        for job in view.jobs().filter(|job| first.is_some_and(|first| job.id() >= first)) {
            let gpus = i64::from(job.request().gpus);
            let entry = ReservedJob { job: job.id(), running: false, executed: 0 };
            if let Some(class) = self.classes.iter_mut().find(|class| class.gpus == gpus) {
                class.queues[0].push(entry);
            }
            self.unseen = JobId(job.id().0 + 1);
        }
    }

    /// Divides the accelerators among the classes by demand, without taking any from running jobs.
    fn reserve(&mut self, capacity: i64) {
        let demand = |class: &WidthClass| class.jobs() * class.gpus;
        let demands: i64 = self.classes.iter().map(demand).sum();
        if demands == 0 {
            return;
        }
        let mut left = capacity - self.classes.iter().map(WidthClass::used).sum::<i64>();
        let mut reserved = vec![0; self.classes.len()];
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        // The sort is stable, so classes of equal demand keep the order of the hash table.
        order.sort_by_key(|&at| demand(&self.classes[at]));
        for &at in &order {
            let class = &self.classes[at];
            if demand(class) == 0 {
                continue;
            }
            // The simulator rounds shares to two digits.
            let share = rounded(demand(class) as f64 / demands as f64, 2) * capacity as f64;
            let fair = (share / class.gpus as f64).floor() as i64 * class.gpus;
            let mut extra = (fair.min(demand(class)) - class.used()).max(0);
            if extra > left {
                extra = left / class.gpus * class.gpus;
            }
            reserved[at] = class.used() + extra;
            left -= extra;
        }
        order.sort_by_key(|&at| self.classes[at].gpus);
        let mut full = 0;
        // What is left is given out one job's width at a time, the narrowest class first.
        while left > 0 && full < order.len() {
            full = 0;
            for &at in &order {
                let class = &self.classes[at];
                if demand(class) <= reserved[at] || left < class.gpus {
                    full += 1;
                    continue;
                }
                left -= class.gpus;
                reserved[at] += class.gpus;
                if left <= 0 {
                    break;
                }
            }
        }
        for (class, reserved) in self.classes.iter_mut().zip(reserved) {
            class.free = reserved - class.used();
            class.total = reserved;
        }
    }

    /// Brings service up to date, demotes jobs, and chooses the jobs that run.
    fn step(&mut self, view: &ClusterView<'_>) {
        let now = view.now.as_millis() / 1000;
        self.next_demotion = SimTime::NEVER;
        for class in &mut self.classes {
            class.update(view);
            if class.jobs() > 0 {
                class.schedule();
            }
            let waits = class.queues[0].iter().filter(|entry| entry.running);
            let demotion = waits.map(|entry| SimTime::from_secs(now + (LIMIT - entry.executed) / class.gpus)).min();
            self.next_demotion = self.next_demotion.min(demotion.unwrap_or(SimTime::NEVER));
        }
    }

    fn plan(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.free.reset(view);
        let entries =
            || self.classes.iter().flat_map(|class| class.queues.iter().flatten().map(|entry| (class.gpus, entry)));
        let changed = |entry: &ReservedJob| view.job(entry.job).filter(|job| job.state.is_allocated() != entry.running);
        for (_, entry) in entries().filter(|(_, entry)| !entry.running) {
            if let Some(job) = changed(entry) {
                self.free.release(&job.state.placement);
                plan.set(entry.job, Placement::none());
            }
        }
        for (gpus, entry) in entries().filter(|(_, entry)| entry.running) {
            if changed(entry).is_some() {
                let placement = Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus as u32);
                plan.set(entry.job, placement.unwrap_or_default());
            }
        }
        plan
    }
}

impl WidthClass {
    fn jobs(&self) -> i64 {
        self.queues.iter().map(|queue| queue.len() as i64).sum()
    }

    fn used(&self) -> i64 {
        self.total - self.free
    }

    fn update(&mut self, view: &ClusterView<'_>) {
        let mut demoted = Vec::new();
        for (at, queue) in self.queues.iter_mut().enumerate() {
            queue.retain_mut(|entry| {
                let Some(job) = view.job(entry.job) else {
                    self.free += self.gpus;
                    return false;
                };
                if entry.running {
                    entry.executed = job.executed().as_millis() / 1000;
                    if at == 0 && entry.executed * self.gpus >= LIMIT {
                        demoted.push(*entry);
                        return false;
                    }
                }
                true
            });
        }
        demoted.sort_unstable_by_key(|entry| entry.job);
        self.queues[1].append(&mut demoted);
    }

    fn schedule(&mut self) {
        self.free = self.total;
        for entry in self.queues.iter_mut().flatten() {
            entry.running = self.gpus <= self.free;
            self.free -= if entry.running { self.gpus } else { 0 };
        }
        for queue in &mut self.queues {
            queue.sort_by_key(|entry| !entry.running);
        }
    }
}

impl Policy for ReservedQueues {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        while self.next_reserve < view.now {
            self.next_reserve += INTERVAL;
        }
        self.admit(view);
        // Events at the instant of a reservation come before it, as a step of their own.
        let churned = view.trigger.arrival || view.trigger.completion || view.trigger.fault;
        if churned || self.next_demotion == view.now {
            self.step(view);
        }
        if self.next_reserve == view.now {
            self.reserve(view.cluster().total_gpus().into());
            self.next_reserve += INTERVAL;
            self.step(view);
        }
        self.plan(view)
    }

    fn wake_at(&self) -> Option<SimTime> {
        Some(self.next_demotion.min(self.next_reserve))
    }
}

/// Order in which Python 2 iterates a dictionary with these small integers as keys, inserted in
/// this order (open addressing, hash of a number is the number, table of 8 slots grown fourfold the
/// number of keys at two thirds).
fn hashed(keys: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut slots = vec![None; 8];
    let mut count = 0;
    for key in keys {
        if slots.contains(&Some(key)) {
            continue;
        }
        insert(&mut slots, key);
        count += 1;
        if count * 3 >= slots.len() * 2 {
            let old = std::mem::take(&mut slots);
            slots = vec![None; (count * 4 + 1).next_power_of_two()];
            old.into_iter().flatten().for_each(|key| insert(&mut slots, key));
        }
    }
    slots.into_iter().flatten().collect()
}

fn insert(slots: &mut [Option<u32>], key: u32) {
    let mask = slots.len() - 1;
    let (mut at, mut perturb) = (key as usize, key as usize);
    while slots[at & mask].is_some() {
        at = at.wrapping_mul(5).wrapping_add(perturb).wrapping_add(1);
        perturb >>= 5;
    }
    slots[at & mask] = Some(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_the_order_of_their_slots() {
        assert_eq!(hashed([1, 2, 4, 8, 2]), [8, 1, 2, 4]);
        assert_eq!(hashed([1, 2, 4, 8, 16]), [8, 1, 2, 4, 16]);
        assert_eq!(hashed([32, 1, 2, 4, 8, 16]), [32, 1, 2, 4, 8, 16]);
    }
}
