//! Large multiple-choice knapsacks: of each group's choices only those on the upper hull of value over weight are kept, and steps along the
//! hulls are taken in order of value per unit of weight while they fit (Dyer 1984; Zemel 1984; Kellerer et al., chapter 11.2).
//!
//! The first step that does not fit is where the linear relaxation is optimal, so what is lost to the optimum is at most that step's gain:
//! little where a cluster has many jobs. The cost is a sort of the steps, `O(N log N)` for `N` choices whatever the capacity; the
//! dynamic program of [`super::Knapsack`] takes `N` times the capacity.

use super::Item;

/// A solver with its buffers, so that solving again allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Hull {
    /// Steps: gain per unit of weight, weight, group, the item that is reached.
    steps: Vec<Step>,
    upper: Vec<(u32, f64, u32)>,
    chosen: Vec<Option<u32>>,
    stopped: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    slope: f64,
    weight: u32,
    group: u32,
    item: u32,
}

impl Hull {
    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.chosen.clear();
        self.stopped.clear();
    }

    /// Adds a group, of which at most one item is chosen; taking none is worth 0. Items are in ascending order of weight, each above 0.
    pub fn group(&mut self, items: impl IntoIterator<Item = Item>) {
        let group = self.chosen.len() as u32;
        self.chosen.push(None);
        self.stopped.push(false);
        self.upper.clear();
        self.upper.push((0, 0.0, u32::MAX));
        for (at, item) in items.into_iter().enumerate() {
            let slope = |from: &(u32, f64, u32)| (item.value - from.1) / f64::from(item.weight - from.0);
            while let [.., before, last] = self.upper[..]
                && slope(&last) >= (last.1 - before.1) / f64::from(last.0 - before.0)
            {
                self.upper.pop();
            }
            if self.upper.last().is_some_and(|last| item.weight > last.0 && item.value > last.1) {
                self.upper.push((item.weight, item.value, at as u32));
            }
        }
        self.steps.extend(self.upper.windows(2).map(|pair| {
            let weight = pair[1].0 - pair[0].0;
            Step { slope: (pair[1].1 - pair[0].1) / f64::from(weight), weight, group, item: pair[1].2 }
        }));
    }

    /// For each group the index of the chosen item among its own, or `None`. Of equal steps the earlier group's comes first.
    pub fn solve(&mut self, capacity: u32) -> &[Option<u32>] {
        self.steps
            .sort_unstable_by(|a, b| b.slope.total_cmp(&a.slope).then(a.group.cmp(&b.group)).then(a.item.cmp(&b.item)));
        let mut left = capacity;
        for step in &self.steps {
            let group = step.group as usize;
            if self.stopped[group] {
                continue;
            }
            if step.weight <= left {
                left -= step.weight;
                self.chosen[group] = Some(step.item);
            } else {
                self.stopped[group] = true;
            }
        }
        &self.chosen
    }
}

#[cfg(test)]
mod tests {
    use super::super::Knapsack;
    use super::*;
    use proptest::prelude::*;

    fn solve(groups: &[Vec<Item>], capacity: u32) -> (f64, u32) {
        let mut hull = Hull::default();
        groups.iter().for_each(|group| hull.group(group.iter().copied()));
        let chosen = hull.solve(capacity).to_vec();
        let taken = chosen.iter().zip(groups).filter_map(|(item, group)| Some(group[(*item)? as usize]));
        taken.fold((0.0, 0), |(value, weight), item| (value + item.value, weight + item.weight))
    }

    proptest! {
        #[test]
        fn no_more_is_lost_than_the_best_single_item(
            groups in prop::collection::vec(prop::collection::vec((1u32..6, -2.0f64..9.0), 1..5), 1..7),
            capacity in 0u32..25,
        ) {
            let groups: Vec<Vec<Item>> = groups
                .into_iter()
                .map(|steps| {
                    let mut weight = 0;
                    steps.into_iter().map(|(more, value)| { weight += more; Item { weight, value } }).collect()
                })
                .collect();
            let mut exact = Knapsack::default();
            groups.iter().for_each(|group| exact.group(group.iter().copied()));
            exact.solve(capacity);
            let (value, weight) = solve(&groups, capacity);
            let largest = groups.iter().flatten().map(|item| item.value).fold(0.0, f64::max);
            prop_assert!(weight <= capacity);
            prop_assert!(value <= exact.value() + 1e-9);
            prop_assert!(value >= exact.value() - largest - 1e-9, "{value} of {}", exact.value());
        }

        #[test]
        fn equal_steps_of_one_are_solved_exactly(
            groups in prop::collection::vec(prop::collection::vec(0.0f64..9.0, 1..6), 1..7),
            capacity in 0u32..20,
        ) {
            // Gains that shrink, in steps of one accelerator: here greedy is exact.
            let groups: Vec<Vec<Item>> = groups
                .into_iter()
                .map(|mut gains| {
                    gains.sort_by(|a, b| b.total_cmp(a));
                    let mut value = 0.0;
                    (1..).zip(gains).map(|(weight, gain)| { value += gain; Item { weight, value } }).collect()
                })
                .collect();
            let mut exact = Knapsack::default();
            groups.iter().for_each(|group| exact.group(group.iter().copied()));
            exact.solve(capacity);
            prop_assert!((solve(&groups, capacity).0 - exact.value()).abs() < 1e-9);
        }
    }

    #[test]
    fn what_lies_under_the_hull_is_never_chosen() {
        let group = [(1, 1.0), (2, 1.5), (3, 6.0), (4, 6.0)].map(|(weight, value)| Item { weight, value });
        assert_eq!(solve(&[group.to_vec()], 4), (6.0, 3));
        assert_eq!(solve(&[group.to_vec()], 2), (0.0, 0), "its first step is three wide");
        assert_eq!(solve(&[vec![Item { weight: 1, value: -1.0 }]], 4), (0.0, 0));
    }
}
