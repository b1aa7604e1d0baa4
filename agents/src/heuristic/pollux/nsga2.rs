//! Survival in NSGA-II (Deb et al., 2002) for two objectives, both maximised: non-dominated fronts,
//! then crowding distance.
//!
//! With two objectives a front is a staircase, so sorting once is enough to find all fronts.

use rand::Rng;

use super::objective::StateValue;

/// Selection by fronts and crowding, with the crowding distance of each slot as of the last
/// selection.
#[derive(Clone, Debug, Default)]
pub(super) struct FrontSelection {
    pub crowding: Vec<f64>,
    /// Bits of (fitness, utility), and slot. Non-negative floats sort as their bits.
    sorted: Vec<(u64, u64, u16)>,
    /// Of each front the last point that rose above those before it.
    tops: Vec<(u64, u64)>,
    /// Front of each sorted point.
    front_of: Vec<u16>,
    /// End of each front in `by_front`.
    ends: Vec<u16>,
    by_front: Vec<u16>,
    ties: Vec<(u64, u32, u16)>,
}

impl FrontSelection {
    /// Reduces `pool`, slots into `values`, to the best `keep` in order of fronts and hands the
    /// others to `dropped`. Returns the number of survivors in the first front.
    pub fn select(
        &mut self,
        values: &[StateValue],
        pool: &mut Vec<u16>,
        keep: usize,
        dropped: &mut Vec<u16>,
        rng: &mut impl Rng,
    ) -> usize {
        self.crowding.resize(values.len(), 0.0);
        self.sort(values, pool);
        pool.clear();
        let (mut begin, mut first) = (0, 0);
        for &end in &self.ends {
            let front = &self.by_front[begin..usize::from(end)];
            begin = usize::from(end);
            if pool.len() == keep {
                dropped.extend_from_slice(front);
                continue;
            }
            crowd(front, values, &mut self.crowding);
            let missing = keep - pool.len();
            // Fronts join whole; of the one that does not fit, the least crowded points, ties at
            // random.
            if front.len() <= missing {
                pool.extend_from_slice(front);
            } else {
                self.ties.clear();
                self.ties
                    .extend(front.iter().map(|&slot| (!self.crowding[slot as usize].to_bits(), rng.next_u32(), slot)));
                self.ties.sort_unstable();
                pool.extend(self.ties[..missing].iter().map(|&(_, _, slot)| slot));
                dropped.extend(self.ties[missing..].iter().map(|&(_, _, slot)| slot));
            }
            first = if first == 0 { pool.len() } else { first };
        }
        first
    }

    /// Fills `by_front`, each front in descending order of fitness.
    fn sort(&mut self, values: &[StateValue], pool: &[u16]) {
        let key =
            // The slot makes keys unique, so an unstable sort has only one result.
            |slot: u16| (!values[slot as usize].fitness.to_bits(), !values[slot as usize].utility.to_bits(), slot);
        self.sorted.clear();
        self.sorted.extend(pool.iter().map(|&slot| key(slot)));
        self.sorted.sort_unstable();
        self.tops.clear();
        self.front_of.clear();
        self.ends.clear();
        // Keys are complemented: the smaller is the better.
        for &(fitness, utility, _) in &self.sorted {
            let dominated = |&(top_fitness, top_utility): &(u64, u64)| {
                top_utility < utility || (top_utility == utility && top_fitness < fitness)
            };
            // Points come in descending fitness, so a front dominates a point if its top has at
            // least the point's utility. Tops descend in utility from front to front, hence a
            // binary search.
            let front = self.tops.partition_point(dominated);
            match self.tops.get_mut(front) {
                None => {
                    self.tops.push((fitness, utility));
                    self.ends.push(0);
                }
                Some(top) if utility < top.1 => *top = (fitness, utility),
                Some(_) => {}
            }
            self.ends[front] += 1;
            self.front_of.push(front as u16);
        }
        let mut end = 0;
        for count in &mut self.ends {
            // Counts become starts, and, filled in order, ends.
            (end, *count) = (end + *count, end);
        }
        self.by_front.clear();
        self.by_front.resize(pool.len(), 0);
        for (&front, &(_, _, slot)) in self.front_of.iter().zip(&self.sorted) {
            let at = &mut self.ends[usize::from(front)];
            self.by_front[usize::from(*at)] = slot;
            *at += 1;
        }
    }

    /// Whether slot `a` wins a tournament against `b`; `None` for a draw.
    pub fn better(&self, values: &[StateValue], a: u16, b: u16) -> Option<bool> {
        let (a_value, b_value) = (values[a as usize], values[b as usize]);
        let crowding = || {
            let (a, b) = (self.crowding[a as usize], self.crowding[b as usize]);
            a.partial_cmp(&b).filter(|order| order.is_ne()).map(|order| order.is_gt())
        };
        match (dominates(a_value, b_value), dominates(b_value, a_value)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => crowding(),
        }
    }
}

fn dominates(a: StateValue, b: StateValue) -> bool {
    a.fitness >= b.fitness && a.utility >= b.utility && a != b
}

/// Crowding distance within one front, given in descending order of fitness and so in ascending
/// order of utility. Of equal points the first counts and the others get 0; a front of one or two
/// points is not crowded at all (pymoo 0.4.2).
fn crowd(front: &[u16], values: &[StateValue], crowding: &mut [f64]) {
    if front.len() <= 2 {
        front.iter().for_each(|&slot| crowding[slot as usize] = f64::INFINITY);
        return;
    }
    let value = |at: usize| values[front[at] as usize];
    let (best, worst) = (value(0), value(front.len() - 1));
    let (fitness, utility) = (best.fitness - worst.fitness, worst.utility - best.utility);
    // On one front, equal fitness means equal utility: neither range may be divided by.
    if fitness == 0.0 {
        front.iter().for_each(|&slot| crowding[slot as usize] = 0.0);
        return;
    }
    let mut before: Option<StateValue> = None;
    let mut at = 0;
    while at < front.len() {
        let here = value(at);
        let next = (at + 1..front.len()).find(|&next| value(next) != here);
        crowding[front[at] as usize] = match (before, next.map(value)) {
            (Some(before), Some(after)) => {
                ((before.fitness - after.fitness) / fitness + (after.utility - before.utility) / utility) / 2.0
            }
            _ => f64::INFINITY,
        };
        let end = next.unwrap_or(front.len());
        front[at + 1..end].iter().for_each(|&slot| crowding[slot as usize] = 0.0);
        before = Some(here);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    fn random_values(count: usize, levels: u32, seed: u64) -> Vec<StateValue> {
        let mut rng = rng(seed, Stream::Policy);
        let mut draw = || f64::from(rng.random_range(0..levels));
        (0..count).map(|_| StateValue { fitness: draw(), utility: draw() }).collect()
    }

    #[test]
    fn fronts_equal_the_quadratic_definition() {
        for (seed, levels) in (0..40).zip([3, 10, 1000].into_iter().cycle()) {
            let values = random_values(60, levels, seed);
            let mut survival = FrontSelection::default();
            let mut pool: Vec<u16> = (0..60).collect();
            let first = survival.select(&values, &mut pool, 60, &mut Vec::new(), &mut rng(seed, Stream::Policy));
            let undominated = |among: &[u16]| -> Vec<u16> {
                let beaten = |a: u16| among.iter().any(|&b| dominates(values[b as usize], values[a as usize]));
                among.iter().copied().filter(|&a| !beaten(a)).collect()
            };
            let mut left: Vec<u16> = (0..60).collect();
            let mut at = 0;
            while !left.is_empty() {
                let front = undominated(&left);
                let mut found = pool[at..at + front.len()].to_vec();
                found.sort_unstable();
                assert_eq!(found, front);
                if at == 0 {
                    assert_eq!(first, front.len());
                }
                at += front.len();
                left.retain(|slot| !front.contains(slot));
            }
        }
    }

    #[test]
    fn crowding_is_the_published_one() {
        let points = [(5.0, 0.0), (4.0, 1.0), (4.0, 1.0), (2.0, 3.0), (1.0, 4.0)];
        let values: Vec<StateValue> = points.map(|(fitness, utility)| StateValue { fitness, utility }).into();
        let mut survival = FrontSelection::default();
        let mut pool: Vec<u16> = (0..5).collect();
        survival.select(&values, &mut pool, 5, &mut Vec::new(), &mut rng(0, Stream::Policy));
        // (5 - 2) / 4 and (3 - 0) / 4, halved; (4 - 1) / 4 and (4 - 1) / 4, halved.
        assert_eq!(survival.crowding, [f64::INFINITY, 0.75, 0.0, 0.75, f64::INFINITY]);
    }
}
