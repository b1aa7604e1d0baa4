//! Random choices of the genetic search, and the states that it has seen.

use rand::Rng;

/// Uniform in `0..bound`, by multiplication; off by less than `bound / 2^32`.
#[inline]
pub(super) fn below(rng: &mut impl Rng, bound: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(bound)) >> 32) as u32
}

/// Gaps between successes of independent trials with probability 1/`jobs`, so that failures cost no
/// draws.
#[derive(Clone, Debug, Default)]
pub(super) struct Skips {
    per_log: f64,
}

impl Skips {
    pub fn new(jobs: u32) -> Self {
        Self { per_log: 1.0 / (1.0 - 1.0 / f64::from(jobs)).ln() }
    }

    /// Failures before the next success.
    #[inline]
    pub fn next(&self, rng: &mut impl Rng) -> usize {
        // In (0, 1], so that the logarithm is finite; a certain success has `per_log` of -0 and
        // never fails.
        let uniform = (f64::from(rng.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0);
        (uniform.ln() * self.per_log) as usize
    }
}

/// Numbers drawn in random order without replacement, again and again, so that each takes part in
/// equally many tournaments.
#[derive(Clone, Debug, Default)]
pub(super) struct Deck {
    cards: Vec<u16>,
    dealt: usize,
}

impl Deck {
    /// Shuffles before the next draw.
    pub fn restart(&mut self) {
        self.dealt = self.cards.len();
    }

    /// One of `0..count`.
    pub fn draw(&mut self, count: u16, rng: &mut impl Rng) -> u16 {
        if self.dealt >= self.cards.len() || self.cards.len() != usize::from(count) {
            self.cards.clear();
            self.cards.extend(0..count);
            self.dealt = 0;
        }
        let other = self.dealt + below(rng, (self.cards.len() - self.dealt) as u32) as usize;
        self.cards.swap(self.dealt, other);
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

/// Slots of states by hash: open addressing, cleared every generation.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenStates(Vec<u16>);

impl SeenStates {
    const EMPTY: u16 = u16::MAX;

    /// Makes room for `slots`.
    pub fn clear(&mut self, slots: u16) {
        self.0.clear();
        self.0.resize((usize::from(slots) * 4).next_power_of_two(), Self::EMPTY);
    }

    pub fn insert(&mut self, hash: u64, slot: u16) {
        let at = self.probe(hash, |other| other == Self::EMPTY);
        self.0[at] = slot;
    }

    /// Whether a slot with this hash is `same`, which is also asked of a few with other hashes.
    pub fn contains(&self, hash: u64, same: impl Fn(u16) -> bool) -> bool {
        let at = self.probe(hash, |other| other == Self::EMPTY || same(other));
        self.0[at] != Self::EMPTY
    }

    fn probe(&self, hash: u64, stop: impl Fn(u16) -> bool) -> usize {
        let mask = self.0.len() - 1;
        let mut at = (hash >> 20) as usize & mask;
        while !stop(self.0[at]) {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::seed::{Stream, rng};

    #[test]
    fn skips_have_the_mean_of_a_geometric_distribution() {
        let mut rng = rng(1, Stream::Policy);
        for jobs in [1, 2, 35] {
            let skips = Skips::new(jobs);
            let mean = (0..100_000).map(|_| skips.next(&mut rng)).sum::<usize>() as f64 / 1e5;
            assert!((mean - f64::from(jobs - 1)).abs() < 0.02 * f64::from(jobs), "{mean} for {jobs}");
        }
    }

    #[test]
    fn a_deck_deals_everyone_before_anyone_twice() {
        let mut rng = rng(2, Stream::Policy);
        let mut deck = Deck::default();
        for _ in 0..3 {
            let mut hand: Vec<u16> = (0..7).map(|_| deck.draw(7, &mut rng)).collect();
            hand.sort_unstable();
            assert_eq!(hand, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}
