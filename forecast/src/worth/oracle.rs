//! The least accelerators that any rule needs: an exact dynamic program over perfect foresight.
//!
//! The program chooses `s(t)`, the accelerators that serve at the end of step `t`, of the [`Fleet`](super::Fleet). An
//! accelerator is paid for while it serves and for the whole steps of its cold start. The step in which it begins to
//! serve is missed for the rest of the cold start, where the load needs it. Steps may be missed: a missed step costs a
//! price, and the greatest value over all prices of cost minus price times the steps that may be missed is a lower
//! bound of every rule that misses no more (Lagrangian duality: Everett, "Generalized Lagrange multiplier method",
//! Operations Research 11(3), 1963). Where no step may be missed, the bound is the exact least.

use super::ColdStart;

/// Rounds of the search for the best price.
const ROUNDS: usize = 30;

/// Lower bound of the mean number of accelerators over the steps of `need`, `None` for a gap, with at most the share
/// `missed` of the measured steps missed. The fleet may begin with any number.
pub fn least(need: &[Option<u32>], cold: ColdStart, missed: f64) -> f64 {
    let allowed = missed * need.iter().flatten().count() as f64;
    let most = need.iter().flatten().copied().max().unwrap_or(0);
    // At a price of a whole fleet that is held all the time, nothing is missed, or what can be missed is free.
    let (mut low, mut high) = (0.0, f64::from(most) * (cold.in_steps() + need.len() as f64) + 1.0);
    let mut best = if missed > 0.0 { 0.0 } else { LeastHours::solve(need, most, cold, high).cost };
    for _ in 0..if missed > 0.0 { ROUNDS } else { 0 } {
        let price = 0.5 * (low + high);
        let solved = LeastHours::solve(need, most, cold, price);
        best = f64::max(best, solved.cost - price * allowed);
        if solved.missed > allowed {
            low = price;
        } else {
            high = price;
        }
    }
    best / need.len().max(1) as f64
}

/// Optimum of the program at one price.
struct LeastHours {
    /// Accelerator-steps and prices of missed steps together.
    cost: f64,
    /// Number of missed steps.
    missed: f64,
}

impl LeastHours {
    /// Backward over the steps; a state is the number of accelerators that serve, 0 to `most`.
    fn solve(need: &[Option<u32>], most: u32, cold: ColdStart, price: f64) -> Self {
        let states = most as usize + 1;
        let start = cold.steps as f64;
        // Cost to go and missed steps to come, by the number that serves before the step.
        let mut before = vec![(0.0, 0.0); states];
        for (number, need) in need.iter().enumerate().rev() {
            let need = need.unwrap_or(0) as usize;
            // By the number that serves at the end of the step: the step itself and what comes after it.
            let mut within = before.clone();
            for (serving, (cost, missed)) in within.iter_mut().enumerate() {
                *cost += serving as f64;
                if serving < need {
                    *cost += price;
                    *missed += 1.0;
                }
            }
            if number == 0 {
                before = within;
                break;
            }
            // Giving back is free: the best of all smaller numbers.
            before.clone_from(&within);
            for serving in 1..states {
                if before[serving - 1].0 < before[serving].0 {
                    before[serving] = before[serving - 1];
                }
            }
            // Ordering costs the whole steps of a cold start each: the best of all larger numbers.
            let mut larger = (f64::INFINITY, 0.0);
            for serving in (0..states).rev() {
                // Orders that lift the fleet over the need serve after a part of the step.
                if serving + 1 == need {
                    larger = (larger.0 + cold.part * price, larger.1 + cold.part);
                }
                larger.0 += start;
                if within[serving].0 < larger.0 {
                    larger = within[serving];
                }
                if larger.0 < before[serving].0 {
                    before[serving] = larger;
                }
            }
        }
        let best = before.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0.0));
        Self { cost: best.0, missed: best.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worth::Fleet;

    /// Least mean over all courses of a small fleet that miss at most `allowed` steps, by enumeration of what is asked
    /// for at each step.
    fn brute(need: &[Option<u32>], most: u32, cold: ColdStart, allowed: f64) -> f64 {
        let states = (most + 1) as usize;
        let mut best = f64::INFINITY;
        for code in 0..states.pow(need.len() as u32 + 1) {
            let target = |step: usize| (code / states.pow(step as u32) % states) as u32;
            let mut fleet = Fleet::new(cold, target(need.len()));
            let (mut paid, mut missed) = (0.0, 0.0);
            for (step, need) in need.iter().enumerate() {
                fleet.scale(target(step));
                paid += f64::from(fleet.committed());
                missed += fleet.pass(need.unwrap_or(0));
            }
            if missed <= allowed + 1e-9 {
                best = f64::min(best, paid);
            }
        }
        best / need.len() as f64
    }

    const LOADS: [[Option<u32>; 6]; 4] = [
        [Some(1), Some(2), Some(0), Some(0), Some(2), Some(1)],
        [Some(0), Some(0), Some(2), Some(2), None, Some(1)],
        [Some(2), None, Some(2), None, Some(0), Some(2)],
        [None, Some(1), Some(0), None, Some(0), Some(2)],
    ];

    fn colds() -> [ColdStart; 5] {
        [0.0, 0.5, 1.0, 1.5, 2.0].map(|steps| ColdStart::new(steps, 1.0))
    }

    #[test]
    fn without_a_miss_it_is_the_least_of_all_courses_of_the_fleet() {
        for need in LOADS {
            for cold in colds() {
                let (exact, brute) = (least(&need, cold, 0.0), brute(&need, 2, cold, 0.0));
                assert!((exact - brute).abs() < 1e-9, "{need:?} {cold:?}: {exact} {brute}");
            }
        }
    }

    #[test]
    fn with_misses_it_is_a_bound_that_is_met_at_its_corners() {
        for need in LOADS {
            let measured = need.iter().flatten().count() as f64;
            for cold in colds() {
                let mut met = 0;
                for halves in 0..=8 {
                    let allowed = f64::from(halves) / 2.0;
                    let (bound, exact) = (least(&need, cold, allowed / measured), brute(&need, 2, cold, allowed));
                    assert!(bound <= exact + 1e-9, "{need:?} {cold:?} {allowed}: {bound} {exact}");
                    met += usize::from((bound - exact).abs() < 1e-6);
                }
                assert!(met >= 2, "{need:?} {cold:?}");
            }
        }
    }

    #[test]
    fn a_sawtooth_keeps_an_accelerator_over_a_gap_no_longer_than_a_cold_start() {
        let need: Vec<Option<u32>> = (0..40).map(|step| Some(u32::from(step % 4 == 0))).collect();
        // Of four steps one is needed: with a cold start of two it is ordered two steps before, with one of three kept.
        for steps in [2.0, 3.0] {
            let expected = (10.0 + 9.0 * steps) / 40.0;
            assert!((least(&need, ColdStart::new(steps, 1.0), 0.0) - expected).abs() < 1e-9);
        }
    }
}
