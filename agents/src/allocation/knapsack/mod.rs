//! The multiple-choice knapsack that elastic schedulers solve: of each job's possible sizes one or
//! none, within so many accelerators, for the largest sum of values (Kellerer et al., Knapsack
//! Problems, chapter 11; used by Aryl, arXiv:2202.07896, and DeepBoot, TPDS'23).
//!
//! [`Knapsack::solve`] is the dynamic program, exact for any values: `groups x capacity` cells,
//! each tried with every item of its group. [`Hull`] is for clusters where that is too much, and
//! for several types of accelerators: a sort of all choices, nearly exact with many groups.
//! [`concave`] is for gains that shrink with each step, as remaining time under linear scaling
//! does, and needs only a sort. Both are deterministic, and their ties are part of the contract
//! because published schedules depend on them.

mod concave;
mod hull;

pub use concave::{GainLadder, concave};
pub use hull::{Hull, Offer};

/// One choice of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// Capacity that the item takes.
    pub weight: u32,
    /// Value of the item; an item that is worth less than nothing is never chosen over the empty
    /// choice.
    pub value: f64,
}

/// A solver with its buffers, so that solving again allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Knapsack {
    items: Vec<Item>,
    /// End of each group's items.
    ends: Vec<usize>,
    /// Best value by groups considered and capacity.
    best: Vec<f64>,
    chosen: Vec<Option<usize>>,
}

impl Knapsack {
    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }

    /// Adds a group, of which at most one item is chosen. Groups are numbered from 0 in this order.
    pub fn group(&mut self, items: impl IntoIterator<Item = Item>) {
        self.items.extend(items);
        self.ends.push(self.items.len());
    }

    /// For each group the index of the chosen item among its own, or `None`.
    ///
    /// Of several optima: going from the last group to the first, each takes the first of its items
    /// that an optimum for the capacity left over can contain, and no item only where none of them
    /// can be. So ties favour taking something, and the last group (DeepBoot artifact, `dp`
    /// policy).
    pub fn solve(&mut self, capacity: u32) -> &[Option<usize>] {
        let heaviest: u64 = (0..self.ends.len()).map(|group| self.heaviest(group)).sum();
        // Capacity beyond the heaviest choices would cost cells and change nothing.
        let capacity = u64::from(capacity).min(heaviest) as usize;
        let row = capacity + 1;
        self.best.clear();
        self.best.resize(row * (self.ends.len() + 1), 0.0);
        for group in 0..self.ends.len() {
            let (before, after) = self.best.split_at_mut(row * (group + 1));
            let (before, after) = (&before[row * group..], &mut after[..row]);
            after.copy_from_slice(before);
            // Items add to the row without this group, so at most one of them is taken.
            for item in group_of(&self.items, &self.ends, group) {
                let weight = item.weight as usize;
                for (cell, from) in after.iter_mut().skip(weight).zip(before) {
                    let value = from + item.value;
                    if value > *cell {
                        *cell = value;
                    }
                }
            }
        }
        self.trace_back(capacity);
        &self.chosen
    }

    /// The value of the last solution.
    pub fn value(&self) -> f64 {
        self.best.last().copied().unwrap_or(0.0)
    }

    fn trace_back(&mut self, capacity: usize) {
        let row = capacity + 1;
        self.chosen.clear();
        self.chosen.resize(self.ends.len(), None);
        let mut left = capacity;
        for group in (0..self.ends.len()).rev() {
            let target = self.best[row * (group + 1) + left];
            let reaches = |item: &Item| {
                let weight = item.weight as usize;
                // This is the sum that set the cell, so the floats are equal to the last bit.
                weight <= left && self.best[row * group + left - weight] + item.value == target
            };
            let items = group_of(&self.items, &self.ends, group);
            self.chosen[group] = items.iter().position(reaches);
            left -= self.chosen[group].map_or(0, |at| items[at].weight as usize);
        }
    }

    fn heaviest(&self, group: usize) -> u64 {
        let weights = group_of(&self.items, &self.ends, group).iter().map(|item| item.weight);
        u64::from(weights.max().unwrap_or(0))
    }
}

fn group_of<'a>(items: &'a [Item], ends: &[usize], group: usize) -> &'a [Item] {
    let start = group.checked_sub(1).map_or(0, |before| ends[before]);
    &items[start..ends[group]]
}
