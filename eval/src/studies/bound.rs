//! A bound that no policy can beat: the least mean completion time on a workload, by Lagrangian
//! relaxation of the cluster's capacity.
//!
//! The relaxed problem is that of a clairvoyant: it knows all arrivals, all work and all speeds. It
//! has to keep within the capacity only at a price: `price(t)` seconds for an accelerator second at
//! time `t`. Jobs then no longer meet, and each looks for its own cheapest way to the end by
//! dynamic programming over its work, its size and time. For whatever prices the sum of these
//! costs, less what the whole cluster costs at these prices, is at most the least sum of completion
//! times (weak duality); prices rise where more is used than there is and fall elsewhere (Polyak,
//! "Minimization of unsmooth functionals", 1969), and the highest bound seen counts. For priced
//! shares in scheduling see Bertsimas and Nino-Mora, "Restless bandits, linear programming
//! relaxations, and a primal-dual index heuristic", Operations Research 48(1), 2000.
//!
//! A change of size stops the job as in the run. Where jobs choose their batch size by what they
//! have measured, they double up to their first size, one restart each, as Pollux's agent does
//! (OSDI'21, section 4.1); later changes are one restart to whatever size, which is less than they
//! may take. Placement costs nothing.
//!
//! A job changes its size only at the ends of [`PIECES`] pieces of its work and waits in whole
//! steps of time, which makes it dearer than it could be; finer pieces lower the bound by less than
//! two percent (`the_grid_is_fine_enough`).

use std::sync::Arc;

use goodput_env::cluster::TypeId;
use goodput_env::job::{JobId, WHOLE, Work};
use goodput_env::scenario::Scenario;
use rayon::prelude::*;

use crate::run::{RunHead, RunLayout};

/// Pieces of a job's work.
const PIECES: usize = 12;
/// Steps of time of a job; past the last one accelerators are free.
const STEPS: usize = 400;
/// Seconds for which a price holds.
const BIN_SECS: f64 = 300.0;
/// Rounds of prices.
const ROUNDS: usize = 60;

/// Lower bound of completion times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// No policy's mean completion time is below, seconds.
    pub jct_mean_secs: f64,
    /// Lower bound where jobs are never short of accelerators.
    pub alone_secs: f64,
}

/// The bound on a workload of applications on equal accelerators, all of which complete; `None` for
/// others. `reached_secs` is a mean completion time that some policy has: the closer, the faster
/// the bound rises.
pub fn mean_jct(scenario: &Scenario, reached_secs: f64) -> Option<Bound> {
    with(scenario, reached_secs, PIECES, STEPS)
}

/// The bounds of a comparison's scenarios by workload, each with the least mean completion time of
/// all policies there; workloads that have none are left out. `scenario` gives the scenario of a run by its index.
///
/// # Errors
/// The first error of `scenario`.
pub fn of<E>(
    layout: &RunLayout,
    heads: &[RunHead],
    scenario: impl Fn(usize) -> Result<Arc<Scenario>, E>,
) -> Result<Vec<(String, Bound, f64)>, E> {
    let mut bounds: Vec<(usize, Bound, f64)> = Vec::new();
    for at in 0..layout.scenarios.len() {
        let of_policies = (0..layout.policies.len()).map(|policy| &heads[layout.runs_of(policy).start + at]);
        let best = of_policies.filter_map(|head| head.complete_jct_secs).min_by(f64::total_cmp);
        if let Some(best) = best
            && let Some(bound) = mean_jct(&*scenario(at)?, best)
        {
            bounds.push((layout.scenarios[at].workload, bound, best));
        }
    }
    let of_workload = |(workload, name): (usize, &String)| {
        let of: Vec<_> = bounds.iter().filter(|(of, ..)| *of == workload).collect();
        let mean = |value: &dyn Fn(&Bound, f64) -> f64| {
            of.iter().map(|(_, bound, best)| value(bound, *best)).sum::<f64>() / of.len().max(1) as f64
        };
        let bound = Bound {
            jct_mean_secs: mean(&|bound, _| bound.jct_mean_secs),
            alone_secs: mean(&|bound, _| bound.alone_secs),
        };
        (!of.is_empty()).then(|| (name.clone(), bound, mean(&|_, best| best)))
    };
    Ok(layout.workloads.iter().enumerate().filter_map(of_workload).collect())
}

fn with(scenario: &Scenario, reached_secs: f64, pieces: usize, steps: usize) -> Option<Bound> {
    if scenario.cluster.types.len() > 1 || scenario.workload.jobs.is_empty() {
        return None;
    }
    let capacity = f64::from(scenario.cluster.total_gpus());
    let jobs: Option<Vec<BoundedJob>> =
        (0..scenario.workload.jobs.len()).map(|at| BoundedJob::new(scenario, at, pieces, steps)).collect();
    let jobs = jobs?;
    let count = jobs.len() as f64;
    let alone: f64 = jobs.iter().map(BoundedJob::alone_secs).sum();
    let horizon = jobs.iter().map(|job| job.submit + job.step_secs * job.steps as f64).fold(0.0, f64::max);
    let mut prices = AcceleratorPrices::new(horizon);
    // At prices of 0 the bound is the sum of what jobs take when each is alone.
    let mut best = alone;
    for _ in 0..ROUNDS {
        let ways: Vec<(f64, Vec<Span>)> = jobs.par_iter().map(|job| job.cheapest(&prices)).collect();
        let sum = ways.iter().map(|way| way.0).sum::<f64>() - capacity * prices.total();
        best = best.max(sum);
        let mut over = vec![-capacity; prices.rates.len()];
        for span in ways.iter().flat_map(|way| &way.1) {
            span.add(&mut over);
        }
        // Where a price is 0 already, room to spare says nothing.
        let moved = over.iter().zip(&prices.rates).filter(|(over, rate)| **over > 0.0 || **rate > 0.0);
        let length: f64 = moved.map(|(over, _)| over * over * BIN_SECS).sum();
        // Polyak's step: the gap to a value that is known to be reached, over the squared length of
        // the subgradient.
        let missing = (reached_secs * count - sum).max(0.0);
        if length <= 0.0 || missing <= 1e-6 * sum {
            break;
        }
        prices.raise(&over, missing / length);
    }
    Some(Bound { jct_mean_secs: best / count, alone_secs: alone / count })
}

/// Accelerators held for a while.
struct Span {
    from: f64,
    to: f64,
    gpus: f64,
}

impl Span {
    /// Adds the mean number held in each bin.
    fn add(&self, bins: &mut [f64]) {
        let first = (self.from / BIN_SECS) as usize;
        let last = ((self.to / BIN_SECS) as usize).min(bins.len().saturating_sub(1));
        for (at, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let (start, end) = (at as f64 * BIN_SECS, (at + 1) as f64 * BIN_SECS);
            *bin += self.gpus * (self.to.min(end) - self.from.max(start)).max(0.0) / BIN_SECS;
        }
    }
}

/// Price of an accelerator second, by time.
struct AcceleratorPrices {
    rates: Vec<f64>,
    /// Sum of the prices before each bin, times its length.
    before: Vec<f64>,
}

impl AcceleratorPrices {
    fn new(horizon_secs: f64) -> Self {
        let bins = (horizon_secs / BIN_SECS).ceil() as usize + 1;
        Self { rates: vec![0.0; bins], before: vec![0.0; bins + 1] }
    }

    /// Price of one accelerator from time 0 to `at` seconds.
    fn until(&self, at: f64) -> f64 {
        let bin = (at / BIN_SECS) as usize;
        match self.rates.get(bin) {
            Some(rate) => self.before[bin] + rate * (at - bin as f64 * BIN_SECS),
            None => self.total(),
        }
    }

    fn total(&self) -> f64 {
        self.before.last().copied().unwrap_or(0.0)
    }

    fn raise(&mut self, over: &[f64], step: f64) {
        let mut sum = 0.0;
        for (bin, (rate, over)) in self.rates.iter_mut().zip(over).enumerate() {
            // Capacity may be left unused, so its price is never negative.
            *rate = (*rate + step * over).max(0.0);
            self.before[bin] = sum;
            sum += *rate * BIN_SECS;
        }
        if let Some(last) = self.before.last_mut() {
            *last = sum;
        }
    }
}

/// A job on its own.
struct BoundedJob {
    submit: f64,
    /// Sizes worth considering, ascending.
    sizes: Vec<f64>,
    /// For each piece and size its seconds.
    pieces: Vec<Vec<f64>>,
    /// Seconds that a restart takes.
    restart: f64,
    /// The first size is reached by doubling.
    doubles: bool,
    step_secs: f64,
    steps: usize,
}

/// Least costs from the beginning of a piece to the end of the job, by step of time.
struct Costs {
    /// On each size, going on with it for now.
    on: Vec<Vec<f64>>,
    /// Values of a job that holds no accelerator.
    off: Vec<f64>,
}

impl BoundedJob {
    fn new(scenario: &Scenario, at: usize, pieces: usize, steps: usize) -> Option<Self> {
        let spec = &scenario.workload.jobs[at];
        let all = scenario.cluster.total_gpus();
        let share = |piece: usize| piece as f64 / pieces as f64;
        let secs_of = |piece: usize, gpus: u32| match spec.work {
            Work::Application { index, work_milli } => {
                let app = &scenario.workload.applications[usize::from(index)];
                let work = app.total_work() * f64::from(work_milli) / f64::from(WHOLE);
                let within = gpus <= app.max_replicas;
                within.then(|| secs(scenario, index, gpus, work * share(piece), work * share(piece + 1))).flatten()
            }
            Work::Fixed { duration } => Some(duration.as_secs_f64() * share(1) / spec.request.linear_rate(gpus)?),
            Work::Steps { .. } => None,
        };
        let table = |piece: usize| {
            let size = |gpus: u32| Some((gpus, secs_of(piece, gpus)?));
            (1..=all).filter_map(size).collect::<Vec<_>>()
        };
        let tables: Vec<Vec<(u32, f64)>> = (0..pieces).map(table).collect();
        let mut sizes: Vec<u32> = tables.iter().flat_map(|table| worthwhile(table)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let of = |table: &Vec<(u32, f64)>| -> Option<Vec<f64>> {
            let find = |size: &u32| table.iter().find(|row| row.0 == *size).map(|row| row.1);
            sizes.iter().map(find).collect()
        };
        let name = scenario.workload.application_name(JobId(at as u32));
        let mut job = Self {
            submit: spec.request.submit.as_secs_f64(),
            pieces: tables.iter().map(of).collect::<Option<_>>()?,
            sizes: sizes.into_iter().map(f64::from).collect(),
            restart: scenario.options.switch_cost.cost_millis(name, 1, 1) as f64 / 1e3,
            doubles: scenario.options.batching.is_measured() && !scenario.options.shared_profiles,
            step_secs: 100.0,
            steps,
        };
        if job.sizes.is_empty() {
            return None;
        }
        job.step_secs = (job.alone_secs() / 10.0).clamp(20.0, 300.0) * STEPS as f64 / steps as f64;
        Some(job)
    }

    /// Seconds from submission to completion on an otherwise empty cluster.
    fn alone_secs(&self) -> f64 {
        self.cheapest(&AcceleratorPrices::new(0.0)).0
    }

    /// Restarts until the first accelerators of this number are held.
    fn starts(&self, gpus: f64) -> u32 {
        if self.doubles { 1 + gpus.log2().ceil() as u32 } else { 1 }
    }

    /// Seconds and cost of a start on `gpus` accelerators at `now`.
    fn start(&self, prices: &AcceleratorPrices, gpus: f64, now: f64) -> (f64, f64) {
        let starts = self.starts(gpus);
        let held = |start: u32| if start + 1 == starts { gpus } else { f64::from(1_u32 << start) };
        let mut cost = 0.0;
        for start in 0..starts {
            let from = now + f64::from(start) * self.restart;
            cost += self.restart + held(start) * (prices.until(from + self.restart) - prices.until(from));
        }
        (f64::from(starts) * self.restart, cost)
    }

    /// Seconds and cost of a change to `gpus` accelerators.
    fn change(&self, prices: &AcceleratorPrices, gpus: f64, now: f64) -> (f64, f64) {
        let price = prices.until(now + self.restart) - prices.until(now);
        (self.restart, self.restart + gpus * price)
    }

    /// Seconds from submission to the end and the price of what is held meanwhile, at the least,
    /// and what is held.
    fn cheapest(&self, prices: &AcceleratorPrices) -> (f64, Vec<Span>) {
        let costs = self.costs(prices);
        let (mut now, mut held, mut spans) = (self.submit, None, Vec::new());
        for piece in 0..self.pieces.len() {
            let mut chosen = self.choice(prices, &costs, piece, held, now).1;
            let size = loop {
                match chosen {
                    Some(size) => break size,
                    None => {
                        (now, held) = (self.next(now), None);
                        chosen = self.choice(prices, &costs, piece, None, now).1;
                    }
                }
            };
            let gpus = self.sizes[size];
            if held != Some(size) {
                let (secs, _) = match piece {
                    0 => self.start(prices, gpus, now),
                    _ => self.change(prices, gpus, now),
                };
                spans.push(Span { from: now, to: now + secs, gpus });
                now += secs;
            }
            let secs = self.pieces[piece][size];
            spans.push(Span { from: now, to: now + secs, gpus });
            now += secs;
            held = Some(size);
        }
        (costs[0].off[0], spans)
    }

    /// Best choice at the start of a piece at `now` with `held` accelerators: its cost, and a size
    /// or a wait.
    fn choice(
        &self,
        prices: &AcceleratorPrices,
        costs: &[Costs],
        piece: usize,
        held: Option<usize>,
        now: f64,
    ) -> (f64, Option<usize>) {
        let next = self.next(now);
        let step = ((next - self.submit) / self.step_secs).round() as usize;
        let wait = if step <= self.steps { next - now + self.at(&costs[piece].off, next) } else { f64::INFINITY };
        let mut best = (wait, None);
        for (size, &gpus) in self.sizes.iter().enumerate() {
            let (secs, cost) = match (held == Some(size), piece) {
                (true, _) => (0.0, 0.0),
                (false, 0) => self.start(prices, gpus, now),
                (false, _) => self.change(prices, gpus, now),
            };
            let cost = cost + self.run(prices, costs, piece, size, now + secs);
            if cost <= best.0 {
                best = (cost, Some(size));
            }
        }
        best
    }

    /// The cost of a piece that begins at `now` on a size, and of all after.
    fn run(&self, prices: &AcceleratorPrices, costs: &[Costs], piece: usize, size: usize, now: f64) -> f64 {
        let secs = self.pieces[piece][size];
        let price = prices.until(now + secs) - prices.until(now);
        let after = if piece + 1 == self.pieces.len() { 0.0 } else { self.at(&costs[piece + 1].on[size], now + secs) };
        secs + self.sizes[size] * price + after
    }

    /// Least costs by piece.
    fn costs(&self, prices: &AcceleratorPrices) -> Vec<Costs> {
        let empty = || Costs { on: vec![vec![0.0; self.steps + 1]; self.sizes.len()], off: vec![0.0; self.steps + 1] };
        let mut costs: Vec<Costs> = self.pieces.iter().map(|_| empty()).collect();
        // Backwards in work and in time: running leads to the next piece, waiting to the next step.
        for piece in (0..self.pieces.len()).rev() {
            let mut here = empty();
            for step in (0..=self.steps).rev() {
                let now = self.submit + step as f64 * self.step_secs;
                let mut off = if step < self.steps { self.step_secs + here.off[step + 1] } else { f64::INFINITY };
                for (size, &gpus) in self.sizes.iter().enumerate() {
                    let (secs, cost) =
                        if piece == 0 { self.start(prices, gpus, now) } else { self.change(prices, gpus, now) };
                    off = off.min(cost + self.run(prices, &costs, piece, size, now + secs));
                }
                here.off[step] = off;
                for size in 0..self.sizes.len() {
                    // A job may also let go of what it holds and choose anew.
                    here.on[size][step] = self.run(prices, &costs, piece, size, now).min(off);
                }
            }
            costs[piece] = here;
        }
        costs
    }

    /// The step of time after `now`.
    fn next(&self, now: f64) -> f64 {
        // The margin keeps a time that is a step up to rounding from counting as the step before.
        self.submit + (((now - self.submit) / self.step_secs + 1e-9).floor() + 1.0) * self.step_secs
    }

    /// Between steps of time costs are taken to be linear.
    fn at(&self, costs: &[f64], time: f64) -> f64 {
        let step = ((time - self.submit) / self.step_secs).min(self.steps as f64);
        let whole = step as usize;
        let next = costs[(whole + 1).min(self.steps)];
        costs[whole] + (step - whole as f64) * (next - costs[whole])
    }
}

/// Seconds that application `index` takes from `from` to `to` of its work on `gpus` packed
/// accelerators, at the best batch sizes.
fn secs(scenario: &Scenario, index: u16, gpus: u32, from: f64, to: f64) -> Option<f64> {
    let app = &scenario.workload.applications[usize::from(index)];
    let (mut done, mut secs, mut epoch) = (from, 0.0, app.epochs_by(from));
    while done < to {
        let end = app.epoch_end(epoch).min(to);
        if end > done {
            secs += (end - done) / scenario.speeds.best(index, TypeId(0), epoch, gpus)?.rate;
            done = end;
        }
        epoch += 1;
    }
    Some(secs)
}

/// The sizes that are cheapest at some price: the lower hull of seconds over accelerator seconds.
fn worthwhile(table: &[(u32, f64)]) -> Vec<u32> {
    let mut points: Vec<(f64, f64, u32)> =
        table.iter().map(|&(gpus, secs)| (f64::from(gpus) * secs, secs, gpus)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<(f64, f64, u32)> = Vec::new();
    for point in points {
        // No price makes a size worth its accelerator time when it is no faster than a cheaper one.
        if hull.last().is_some_and(|last| point.1 >= last.1) {
            continue;
        }
        let slope = |from: &(f64, f64, u32), to: &(f64, f64, u32)| (to.1 - from.1) / (to.0 - from.0).max(1e-12);
        while let [.., before, last] = &hull[..]
            && slope(last, &point) <= slope(before, last)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull.into_iter().map(|point| point.2).collect()
}

#[cfg(test)]
mod tests {
    use goodput_env::cluster::Cluster;
    use goodput_env::job::{Elasticity, JobRequest, JobSpec, Workload};
    use goodput_env::model::SwitchCost;
    use goodput_env::scenario::SimOptions;
    use goodput_env::time::SimTime;

    use super::*;

    fn scenario(gpus: u32, most: u32, jobs: &[(u64, u64)]) -> Scenario {
        let job = |&(submit, secs): &(u64, u64)| JobSpec {
            request: JobRequest {
                submit: SimTime::from_secs(submit as i64),
                elasticity: Elasticity::Elastic { min: 1, max: most },
                ..JobRequest::default()
            },
            work: Work::Fixed { duration: SimTime::from_secs(secs as i64) },
        };
        let options = SimOptions { switch_cost: SwitchCost::Zero, ..SimOptions::standard() };
        let workload = Workload { jobs: jobs.iter().map(job).collect(), ..Workload::default() };
        Scenario::new(Cluster::homogeneous(1, gpus).into(), workload.into(), options, 0)
    }

    fn bound(scenario: &Scenario, reached: f64) -> Bound {
        mean_jct(scenario, reached).expect("there is one")
    }

    #[test]
    fn who_is_never_short_of_accelerators_is_as_fast_as_can_be() {
        let found = bound(&scenario(8, 4, &[(0, 4000), (100, 8000)]), 2000.0);
        assert!((found.alone_secs - 1500.0).abs() < 1e-6 && (found.jct_mean_secs - 1500.0).abs() < 1e-6, "{found:?}");
    }

    /// One machine: the least sum of completion times is that of the shortest remaining time first
    /// (Schrage, 1968).
    #[test]
    fn it_is_close_to_the_optimum_of_one_machine_and_not_above() {
        // The first runs to 1000, the second to 3000, the fourth to 4000, the third to 8000, the
        // first to 13000.
        let optimum = (13_000.0 + 2000.0 + 6500.0 + 2000.0) / 4.0;
        let found = bound(&scenario(1, 1, &[(0, 6000), (1000, 2000), (1500, 4000), (2000, 1000)]), optimum);
        assert!(found.jct_mean_secs <= optimum * 1.01 && found.jct_mean_secs > 0.93 * optimum, "{found:?}");
    }

    /// On accelerators that all jobs can use at once, too.
    #[test]
    fn elastic_jobs_are_served_in_order_of_size() {
        let found = bound(&scenario(10, 10, &[(0, 10_000), (0, 20_000), (0, 40_000)]), 3666.7);
        assert!((found.alone_secs - 7000.0 / 3.0).abs() < 1e-6);
        assert!(found.jct_mean_secs <= 3666.7 * 1.01 && found.jct_mean_secs > 0.93 * 3666.7, "{found:?}");
    }

    #[test]
    fn the_grid_is_fine_enough() {
        let scenario =
            scenario(6, 4, &[(0, 6000), (600, 9000), (700, 3000), (1200, 20_000), (4000, 2000), (4100, 7000)]);
        let coarse = bound(&scenario, 3000.0).jct_mean_secs;
        let fine = with(&scenario, 3000.0, 2 * PIECES, 2 * STEPS).expect("there is one").jct_mean_secs;
        assert!((fine / coarse - 1.0).abs() < 0.02, "{coarse} {fine}");
    }

    #[test]
    fn only_sizes_that_are_cheapest_at_some_price_are_looked_at() {
        // Accelerators, seconds: 3 is slower than a mixture of 2 and 4, 5 is slower than 4.
        assert_eq!(worthwhile(&[(1, 100.0), (2, 55.0), (3, 45.0), (4, 30.0), (5, 31.0)]), [1, 2, 4]);
    }
}
