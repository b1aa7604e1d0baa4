//! Patience with a program that fails.

/// Faults in a row after which a program is given up for the run.
const MOST_FAULTS: u32 = 20;

/// Most decisions that go by before a program that has failed is asked again.
const LONGEST_REST: u32 = 1024;

/// Treatment of the program at one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The program is asked.
    Asked,
    /// The decision goes by.
    Rested,
}

/// Most decisions that a live program rests: the fallback decides meanwhile, and nobody starts the run anew.
const LONGEST_LIVE_REST: u32 = 64;

/// Number of faults in a row, where a round without a fault ends the row, and the rest after the last one.
#[derive(Debug, Default)]
pub(super) struct Patience {
    faults: u32,
    rest: u32,
    endless: bool,
}

impl Patience {
    /// Patience that never gives up, and rests for 64 decisions at most: that of a live cluster.
    pub fn endless() -> Self {
        Self { endless: true, ..Self::default() }
    }

    /// The turn of the next decision.
    pub fn turn(&mut self) -> Turn {
        if self.given_up() {
            return Turn::Rested;
        }
        match self.rest.checked_sub(1) {
            Some(rest) => {
                self.rest = rest;
                Turn::Rested
            }
            None => Turn::Asked,
        }
    }

    /// A round has ended without a fault.
    pub fn reward(&mut self) {
        self.faults = 0;
    }

    /// The program has failed. After the first fault it is asked at the next decision, and then after 1, 2, 4, ...
    /// decisions more.
    pub fn strain(&mut self) {
        let longest = if self.endless { LONGEST_LIVE_REST } else { LONGEST_REST };
        self.rest = (1 << self.faults.min(31) >> 1).min(longest);
        self.faults = self.faults.saturating_add(1);
    }

    /// Whether the program is not asked any more.
    pub fn given_up(&self) -> bool {
        !self.endless && self.faults >= MOST_FAULTS
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_REST, MOST_FAULTS, Patience, Turn};

    /// Decisions that go by before the program is asked again.
    fn rests(patience: &mut Patience) -> u32 {
        let mut rests = 0;
        while patience.turn() == Turn::Rested {
            rests += 1;
        }
        rests
    }

    #[test]
    fn a_program_rests_longer_from_fault_to_fault_until_it_is_given_up() {
        let mut patience = Patience::default();
        let mut found = Vec::new();
        for _ in 1..MOST_FAULTS {
            patience.strain();
            found.push(rests(&mut patience));
        }
        assert_eq!(found[..6], [0, 1, 2, 4, 8, 16]);
        assert_eq!(found.last(), Some(&LONGEST_REST));
        patience.strain();
        assert!(patience.given_up() && patience.turn() == Turn::Rested);
    }

    #[test]
    fn endless_patience_asks_again_and_again() {
        let mut patience = Patience::endless();
        (0..100).for_each(|_| patience.strain());
        assert_eq!((patience.given_up(), rests(&mut patience)), (false, 64));
    }

    #[test]
    fn only_a_round_without_a_fault_shortens_the_rest() {
        let mut patience = Patience::default();
        (0..3).for_each(|_| patience.strain());
        assert_eq!(rests(&mut patience), 2);
        patience.reward();
        patience.strain();
        assert_eq!(rests(&mut patience), 0);
    }
}
