//! Patience with a program that fails.

/// Treatment of the program at one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The program is asked.
    Asked,
    /// The program is not asked.
    Skipped,
}

/// Number of faults in a row, where a round without a fault ends the row, and the rest after the last fault.
#[derive(Debug)]
pub(super) struct Patience {
    /// Faults in a row after which the program is not asked any more; `None`: it is asked again and again.
    most_faults: Option<u32>,
    /// Most decisions that go by before a program that has failed is asked again.
    longest_rest: u32,
    faults: u32,
    rest: u32,
}

impl Patience {
    /// Patience of one simulated run, which gives up after 20 faults in a row.
    pub fn of_run() -> Self {
        Self { most_faults: Some(20), longest_rest: 1024, faults: 0, rest: 0 }
    }

    /// Patience of a live cluster, which has no end: the fallback decides while the program rests.
    pub fn of_cluster() -> Self {
        Self { most_faults: None, longest_rest: 64, faults: 0, rest: 0 }
    }

    /// The turn of the next decision.
    pub fn turn(&mut self) -> Turn {
        if self.given_up() {
            return Turn::Skipped;
        }
        match self.rest.checked_sub(1) {
            Some(rest) => {
                self.rest = rest;
                Turn::Skipped
            }
            None => Turn::Asked,
        }
    }

    /// Notes that a round has ended without a fault.
    pub fn record_success(&mut self) {
        self.faults = 0;
    }

    /// Notes that the program has failed. After the first fault it is asked at the next decision, and then after 1, 2,
    /// 4, ... decisions more.
    pub fn record_fault(&mut self) {
        self.rest = ((1 << self.faults.min(30)) / 2).min(self.longest_rest);
        self.faults = self.faults.saturating_add(1);
    }

    /// Whether the program is not asked any more.
    pub fn given_up(&self) -> bool {
        self.most_faults.is_some_and(|most| self.faults >= most)
    }
}

#[cfg(test)]
mod tests {
    use super::{Patience, Turn};

    /// Decisions that go by before the program is asked again.
    fn rests(patience: &mut Patience) -> u32 {
        let mut rests = 0;
        while patience.turn() == Turn::Skipped {
            rests += 1;
        }
        rests
    }

    #[test]
    fn a_program_rests_longer_from_fault_to_fault_until_it_is_given_up() {
        let mut patience = Patience::of_run();
        let mut found = Vec::new();
        for _ in 1..20 {
            patience.record_fault();
            found.push(rests(&mut patience));
        }
        assert_eq!(found[..6], [0, 1, 2, 4, 8, 16]);
        assert_eq!(found.last(), Some(&1024));
        patience.record_fault();
        assert!(patience.given_up() && patience.turn() == Turn::Skipped);
    }

    #[test]
    fn a_live_program_is_asked_again_and_again() {
        let mut patience = Patience::of_cluster();
        (0..100).for_each(|_| patience.record_fault());
        assert_eq!((patience.given_up(), rests(&mut patience)), (false, 64));
    }

    #[test]
    fn only_a_round_without_a_fault_shortens_the_rest() {
        let mut patience = Patience::of_run();
        (0..3).for_each(|_| patience.record_fault());
        assert_eq!(rests(&mut patience), 2);
        patience.record_success();
        patience.record_fault();
        assert_eq!(rests(&mut patience), 0);
    }
}
