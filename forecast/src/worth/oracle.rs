//! The least accelerators that any rule needs: an exact dynamic program over perfect foresight.
//!
//! An accelerator that is given back and ordered again is paid for the cold start without serving. With `s(t)`
//! accelerators serving in step `t`, the accelerator-steps are `sum s(t) + cold * sum max(0, s(t) - s(t - 1))`. The
//! program chooses `s(t)`. Steps may be missed: a missed step costs a price, and the greatest value over all prices of
//! cost minus price times the steps that may be missed is a lower bound of every rule that misses no more (Lagrangian
//! duality: Everett, "Generalized Lagrange multiplier method", Operations Research 11(3), 1963). Where no step may be
//! missed, the bound is the exact least.

/// Rounds of the search for the best price.
const ROUNDS: usize = 30;

/// Lower bound of the mean number of accelerators over the measured steps of `need`, `None` for a gap, with at most the
/// share `missed` of them missed and a cold start of `cold` steps. The fleet may begin with any number.
pub fn least(need: &[Option<u32>], cold: f64, missed: f64) -> f64 {
    let measured = need.iter().flatten().count();
    if measured == 0 {
        return 0.0;
    }
    let allowed = missed * measured as f64;
    let most = need.iter().flatten().copied().max().unwrap_or(0);
    // At a price of a whole fleet started for one step, nothing is missed.
    let (mut low, mut high) = (0.0, f64::from(most) * (cold + 1.0) + 1.0);
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
    best / measured as f64
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
    fn solve(need: &[Option<u32>], most: u32, cold: f64, price: f64) -> Self {
        let states = most as usize + 1;
        // Cost to go and number of missed steps to come, by the number that serves.
        let mut after = vec![(0.0, 0.0); states];
        for need in need.iter().rev() {
            // Giving back is free: the best of all smaller numbers.
            let mut now = after.clone();
            for serving in 1..states {
                if now[serving - 1].0 < now[serving].0 {
                    now[serving] = now[serving - 1];
                }
            }
            // Ordering costs a cold start each: the best of all larger numbers.
            let mut larger = (f64::INFINITY, 0.0);
            for serving in (0..states).rev() {
                larger.0 += cold;
                if after[serving].0 < larger.0 {
                    larger = after[serving];
                }
                if larger.0 < now[serving].0 {
                    now[serving] = larger;
                }
            }
            for (serving, (cost, missed)) in now.iter_mut().enumerate() {
                let short = need.is_some_and(|need| (serving as u32) < need);
                // In a gap nothing is counted, and nothing is paid.
                *cost += if need.is_some() { serving as f64 } else { 0.0 };
                if short {
                    *cost += price;
                    *missed += 1.0;
                }
            }
            after = now;
        }
        let best = after.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0.0));
        Self { cost: best.0, missed: best.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Least cost over all courses of a small fleet, by enumeration.
    fn brute(need: &[u32], most: u32, cold: f64, allowed: usize) -> f64 {
        let states = (most + 1) as usize;
        let mut best = f64::INFINITY;
        for code in 0..states.pow(need.len() as u32) {
            let course: Vec<usize> = (0..need.len()).map(|step| code / states.pow(step as u32) % states).collect();
            let missed = course.iter().zip(need).filter(|(serving, need)| (**serving as u32) < **need).count();
            let ups: usize = course.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).sum();
            if missed <= allowed {
                best = f64::min(best, course.iter().sum::<usize>() as f64 + cold * ups as f64);
            }
        }
        best / need.len() as f64
    }

    #[test]
    fn without_a_miss_it_is_the_least_of_all_courses() {
        let loads = [[1, 3, 0, 0, 2, 1], [0, 0, 3, 3, 0, 1], [2, 0, 2, 0, 2, 0], [3, 1, 0, 0, 0, 3]];
        for need in loads {
            let known: Vec<Option<u32>> = need.iter().copied().map(Some).collect();
            for cold in [0.0, 0.5, 1.0, 2.0, 4.0] {
                let (exact, brute) = (least(&known, cold, 0.0), brute(&need, 3, cold, 0));
                assert!((exact - brute).abs() < 1e-9, "{need:?} {cold}: {exact} {brute}");
            }
        }
    }

    #[test]
    fn with_misses_it_is_a_bound_that_is_met_at_its_corners() {
        let need = [1, 3, 0, 0, 2, 1];
        let known: Vec<Option<u32>> = need.iter().copied().map(Some).collect();
        let bounds: Vec<f64> = (0..=6).map(|allowed| least(&known, 1.0, f64::from(allowed) / 6.0)).collect();
        let exact: Vec<f64> = (0..=6).map(|allowed| brute(&need, 3, 1.0, allowed)).collect();
        assert!(bounds.iter().zip(&exact).all(|(bound, exact)| *bound <= exact + 1e-9), "{bounds:?} {exact:?}");
        let met = bounds.iter().zip(&exact).filter(|(bound, exact)| (*bound - *exact).abs() < 1e-6).count();
        assert!(met >= 3, "{bounds:?} {exact:?}");
    }

    #[test]
    fn a_sawtooth_keeps_an_accelerator_over_a_gap_no_longer_than_a_cold_start() {
        let need: Vec<Option<u32>> = (0..40).map(|step| Some(u32::from(step % 4 == 0))).collect();
        // Of four steps one is needed: with a cold start of two it is ordered two steps before, with one of three kept.
        assert!((least(&need, 2.0, 0.0) - (10.0 + 9.0 * 2.0) / 40.0).abs() < 1e-9);
        assert!((least(&need, 3.0, 0.0) - (10.0 + 9.0 * 3.0) / 40.0).abs() < 1e-9);
    }
}
