//! Large multiple-choice knapsacks: of each group's choices only those on the upper hull of value
//! over cost are kept, and steps along the hulls are taken in order of value per unit of cost while
//! they fit (Dyer 1984; Zemel 1984; Kellerer et al., chapter 11.2).
//!
//! **One type** of capacity: cost is weight. The first step that does not fit is where the linear
//! relaxation is optimal, so what is lost to the optimum is at most that step's gain: little where
//! a cluster has many jobs. The cost is a sort of the steps, `O(N log N)` for `N` choices whatever
//! the capacity; the dynamic program of [`super::Knapsack`] takes `N` times the capacity.
//!
//! **Several types**, of which a choice takes one: cost is weight times the [`prices`] at which
//! what groups would take on their own is about what there is (Lagrangian relaxation; Fisher,
//! Management Science 1981). A step may then lead from one type to another and frees what it
//! leaves. Of the last prices tried the best climb is kept and mended by [`exchange`]s. Linear in
//! choices but for the sort, a fixed number of passes.

mod exchange;
mod prices;

use super::Item;
use goodput_env::cluster::TypeId;

/// One choice of a group, of one of several types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Index of the type.
    pub kind: TypeId,
    /// Capacity of that type that it takes, above 0.
    pub weight: u32,
    /// Value of the offer; taking none is worth 0.
    pub value: f64,
}

impl From<Item> for Offer {
    fn from(item: Item) -> Self {
        Self { kind: TypeId(0), weight: item.weight, value: item.value }
    }
}

/// Number of last price vectors for which climbs are compared.
const CLIMBS: usize = 4;

/// A solver with its buffers, so that solving again allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Hull {
    groups: Groups,
    prices: prices::TypePrices,
    exchange: exchange::HullExchange,
    steps: Vec<HullStep>,
    /// Offers of the group at hand, in order of cost.
    order: Vec<(f64, u32)>,
    /// Upper hull of the group at hand: cost, value, offer.
    upper: Vec<(f64, f64, u32)>,
    chosen: Vec<Option<u32>>,
    left: Vec<u32>,
    best: Vec<Option<u32>>,
    best_left: Vec<u32>,
    /// Gain by unit of capacity of the first step of the last climb that did not fit; 0 where all did.
    margin: f64,
}

/// Offers that may be chosen, group by group.
#[derive(Clone, Debug, Default)]
struct Groups {
    offers: Vec<Offer>,
    /// End of each group's offers.
    ends: Vec<usize>,
}

impl Groups {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(&self, group: usize) -> &[Offer] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.offers[start..self.ends[group]]
    }

    fn chosen(&self, group: usize, item: Option<u32>) -> Option<Offer> {
        item.map(|item| self.of(group)[item as usize])
    }

    fn value(&self, chosen: &[Option<u32>]) -> f64 {
        let offers = chosen.iter().enumerate().filter_map(|(group, &item)| self.chosen(group, item));
        offers.map(|offer| offer.value).sum()
    }
}

#[derive(Clone, Copy, Debug)]
struct HullStep {
    slope: f64,
    group: u32,
    item: u32,
}

impl Hull {
    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.groups.offers.clear();
        self.groups.ends.clear();
    }

    /// Adds a group, of which at most one offer is chosen; taking none is worth 0. Groups are
    /// numbered from 0 in this order.
    pub fn group<O: Into<Offer>>(&mut self, offers: impl IntoIterator<Item = O>) {
        self.groups.offers.extend(offers.into_iter().map(Into::into));
        self.groups.ends.push(self.groups.offers.len());
    }

    /// For each group the index of the chosen offer among its own, or `None`. `capacity` is by
    /// type. Of equal steps the earlier group's comes first.
    pub fn solve(&mut self, capacity: &[u32]) -> &[Option<u32>] {
        if capacity.len() == 1 {
            // With one type a price would scale all slopes alike, so any will do.
            self.climb(&[1.0], capacity);
            self.prices.set(&[self.margin]);
            return &self.chosen;
        }
        let mut prices = std::mem::take(&mut self.prices);
        let mut most: Option<f64> = None;
        // The last prices come first, so they win where climbs are worth the same.
        for tried in prices.find(&self.groups, capacity).rchunks(capacity.len().max(1)).take(CLIMBS) {
            self.climb(tried, capacity);
            let value = self.groups.value(&self.chosen);
            if most.is_none_or(|most| value > most) {
                most = Some(value);
                std::mem::swap(&mut self.best, &mut self.chosen);
                std::mem::swap(&mut self.best_left, &mut self.left);
            }
        }
        self.prices = prices;
        self.exchange.improve(&self.groups, &mut self.best, &mut self.best_left);
        &self.best
    }

    /// Prices by type of the last solution, which give a tight bound on the value of every solution: the
    /// largest surplus of each group over what its offers cost, or 0, and the price of all capacity. With
    /// one type the bound is that of the linear relaxation (Sinha and Zoltners, Operations Research 1979).
    pub fn prices(&self) -> &[f64] {
        self.prices.tightest()
    }

    /// Steps along the hulls of value over what offers cost at `prices`, the most worthwhile first.
    fn climb(&mut self, prices: &[f64], capacity: &[u32]) {
        self.steps.clear();
        for group in 0..self.groups.len() {
            self.hull(group, prices, capacity);
            self.steps.extend(self.upper.windows(2).map(|pair| {
                let slope = (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
                HullStep { slope, group: group as u32, item: pair[1].2 }
            }));
        }
        self.steps
            .sort_unstable_by(|a, b| b.slope.total_cmp(&a.slope).then(a.group.cmp(&b.group)).then(a.item.cmp(&b.item)));
        self.chosen.clear();
        self.chosen.resize(self.groups.len(), None);
        self.left.clear();
        self.left.extend_from_slice(capacity);
        self.margin = 0.0;
        for step in &self.steps {
            let group = step.group as usize;
            let next = self.groups.of(group)[step.item as usize];
            let held = self.groups.chosen(group, self.chosen[group]);
            // A step that does not fit is passed over; a later one of its group may still fit.
            if take(held, next, &mut self.left) {
                self.chosen[group] = Some(step.item);
            } else {
                self.margin = self.margin.max(step.slope);
            }
        }
    }

    fn hull(&mut self, group: usize, prices: &[f64], capacity: &[u32]) {
        let offers = self.groups.of(group);
        let several = capacity.len() > 1;
        // What can never be had must not hide what can.
        let fits = |offer: &Offer| !several || offer.weight <= capacity[offer.kind.index()];
        self.order.clear();
        let costs = offers.iter().zip(0..).filter(|(offer, _)| fits(offer));
        self.order.extend(costs.map(|(offer, at)| (prices[offer.kind.index()] * f64::from(offer.weight), at)));
        if several {
            let value = |at: u32| offers[at as usize].value;
            self.order.sort_unstable_by(|a, b| {
                a.0.total_cmp(&b.0).then(value(b.1).total_cmp(&value(a.1))).then(a.1.cmp(&b.1))
            });
        }
        self.upper.clear();
        self.upper.push((0.0, 0.0, u32::MAX));
        for &(cost, at) in &self.order {
            let value = offers[at as usize].value;
            extend(&mut self.upper, (cost, value, at));
        }
    }
}

/// Extends the upper hull of points of cost and value, which begins at the origin, by a point that
/// costs no less than those before.
fn extend(upper: &mut Vec<(f64, f64, u32)>, (cost, value, at): (f64, f64, u32)) {
    let slope = |from: &(f64, f64, u32)| (value - from.1) / (cost - from.0);
    // A point on the line goes too, so slopes fall strictly and steps of a group stay in order.
    while let [.., before, last] = upper[..]
        && cost > last.0
        && slope(&last) >= (last.1 - before.1) / (last.0 - before.0)
    {
        upper.pop();
    }
    if upper.last().is_some_and(|last| cost > last.0 && value > last.1) {
        upper.push((cost, value, at));
    }
}

/// Goes from `held` to `next` where that fits in what is left, by type.
fn take(held: Option<Offer>, next: Offer, left: &mut [u32]) -> bool {
    let back = held.filter(|held| held.kind == next.kind).map_or(0, |held| held.weight);
    let kind = next.kind.index();
    if next.weight > left[kind] + back {
        return false;
    }
    if let Some(held) = held {
        left[held.kind.index()] += held.weight;
    }
    left[kind] -= next.weight;
    true
}

#[cfg(test)]
mod tests {
    use super::super::Knapsack;
    use super::*;
    use proptest::prelude::*;

    fn solve(groups: &[Vec<Item>], capacity: u32) -> (f64, u32) {
        let mut hull = Hull::default();
        groups.iter().for_each(|group| hull.group(group.iter().copied()));
        let chosen = hull.solve(&[capacity]).to_vec();
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
    fn prices_are_those_of_the_last_solution_and_bound_every_value() {
        let mut hull = Hull::default();
        let groups = [
            vec![(0, 1, 2.0), (1, 2, 5.0), (2, 4, 6.0)],
            vec![(0, 2, 3.0), (1, 1, 2.5)],
            vec![(0, 1, 1.0), (2, 2, 4.0)],
        ];
        for capacity in [&[2, 2, 4][..], &[3], &[1, 1, 1], &[0]] {
            hull.clear();
            let offers = |group: &[(u16, u32, f64)]| -> Vec<Offer> {
                let known = group.iter().filter(|(kind, ..)| usize::from(*kind) < capacity.len());
                known.map(|&(kind, weight, value)| Offer { kind: TypeId(kind), weight, value }).collect()
            };
            let groups: Vec<Vec<Offer>> = groups.iter().map(|group| offers(group)).collect();
            groups.iter().for_each(|group| hull.group(group.iter().copied()));
            let chosen = hull.solve(capacity).to_vec();
            let value: f64 =
                chosen.iter().zip(&groups).filter_map(|(at, group)| Some(group[(*at)? as usize].value)).sum();
            let prices = hull.prices();
            assert_eq!(prices.len(), capacity.len());
            let surplus = |offer: &Offer| offer.value - prices[offer.kind.index()] * f64::from(offer.weight);
            let largest = |group: &Vec<Offer>| group.iter().map(surplus).fold(0.0, f64::max);
            let stock: f64 = prices.iter().zip(capacity).map(|(price, &units)| price * f64::from(units)).sum();
            assert!(groups.iter().map(largest).sum::<f64>() + stock >= value - 1e-9, "{prices:?} {value}");
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
