//! Cost of a run from a moment on: its negated rewards, as they fall due over time.

/// Cost from any moment of a finished run on.
#[derive(Clone, Debug)]
pub struct CostToGo {
    /// Rate of discounting, per second.
    beta: f64,
    /// Seconds at which the cost per second changes, ascending.
    moments: Vec<f64>,
    /// Cost per second from each of them on.
    rates: Vec<f64>,
    /// Cost from each of them on.
    costs: Vec<f64>,
}

impl CostToGo {
    /// Of a run that costs `steps[i].1` evenly over `steps[i].0` seconds, step after step. A cost that lies `t` seconds
    /// ahead counts `exp(-beta t)`.
    pub fn new(steps: impl IntoIterator<Item = (f64, f64)>, beta: f64) -> Self {
        let (mut moments, mut rates, mut now) = (Vec::new(), Vec::new(), 0.0);
        for (secs, cost) in steps {
            if secs > 0.0 {
                moments.push(now);
                rates.push(cost / secs);
                now += secs;
            }
        }
        moments.push(now);
        rates.push(0.0);
        let mut all = Self { beta, costs: vec![0.0; moments.len()], moments, rates };
        // Backwards, because the cost from a moment on contains the cost from the next one on.
        for at in (0..all.moments.len() - 1).rev() {
            all.costs[at] = all.before(at + 1, all.moments[at]);
        }
        all
    }

    /// From `secs` after the beginning on.
    pub fn at(&self, secs: f64) -> f64 {
        self.before(self.moments.partition_point(|&moment| moment <= secs), secs)
    }

    /// From `secs` on, the next change being that at `next`.
    fn before(&self, next: usize, secs: f64) -> f64 {
        let Some(moment) = self.moments.get(next) else { return 0.0 };
        let (ahead, rate) = (moment - secs, next.checked_sub(1).map_or(0.0, |now| self.rates[now]));
        // `exp_m1` keeps its digits where the discount over the span is tiny.
        let held = if self.beta > 0.0 { -(-self.beta * ahead).exp_m1() / self.beta } else { ahead };
        rate * held + (-self.beta * ahead).exp() * self.costs[next]
    }
}

/// Advantage of run `own` from `secs` on: the cost of the other runs on average, less its own.
pub fn advantage(runs: &[&CostToGo], own: usize, secs: f64) -> f64 {
    let others = runs.iter().enumerate().filter(|(run, _)| *run != own).map(|(_, run)| run.at(secs));
    others.sum::<f64>() / (runs.len() - 1).max(1) as f64 - runs[own].at(secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undiscounted_it_is_the_sum_of_later_costs() {
        let run = CostToGo::new([(4.0, 4.0), (0.0, 0.0), (2.0, 6.0), (10.0, 10.0)], 0.0);
        assert!((run.at(0.0) - 20.0).abs() < 1e-9);
        assert!((run.at(5.0) - (3.0 + 10.0)).abs() < 1e-9);
        assert!(run.at(16.0).abs() < 1e-9 && run.at(99.0).abs() < 1e-9);
    }

    #[test]
    fn discounted_it_is_the_integral() {
        let (beta, grid) = (0.2, 1e-3);
        let run = CostToGo::new([(4.0, 4.0), (2.0, 6.0), (4.0, 2.0)], beta);
        let rate = |secs: f64| match secs {
            secs if secs < 4.0 => 1.0,
            secs if secs < 6.0 => 3.0,
            _ => 0.5,
        };
        for from in [0.0, 1.0, 4.0, 5.5, 9.9] {
            let moments = (0..10_000).map(|at| from + (f64::from(at) + 0.5) * grid).filter(|now| *now < 10.0);
            let integral: f64 = moments.map(|now| rate(now) * (-beta * (now - from)).exp() * grid).sum();
            assert!((run.at(from) - integral).abs() < 1e-3, "{from}: {} {integral}", run.at(from));
        }
    }

    #[test]
    fn an_advantage_is_what_the_others_cost_more() {
        let runs = [10.0, 12.0, 17.0].map(|secs| CostToGo::new([(secs, secs)], 0.0));
        let found: Vec<f64> = (0..3).map(|own| advantage(&runs.each_ref(), own, 0.0)).collect();
        assert!((found[0] - 4.5).abs() < 1e-9 && (found[2] + 6.0).abs() < 1e-9, "{found:?}");
        assert!(found.iter().sum::<f64>().abs() < 1e-9);
    }
}
