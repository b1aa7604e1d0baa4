//! The rule of AFS: one accelerator at a time, to the winner of a scan over pairs of jobs.
//!
//! Of two jobs let `a` finish first at the present shares. With throughput `p` now and `p'` with
//! one more accelerator, `b` gets the accelerator if `(p'_b - p_b) / p'_b > (p'_a - p_a) / p_a`,
//! else `a` does. The gain of `b` is relative to its later throughput, since `b` still holds the
//! accelerator after `a` has finished; the gain of `a` is relative to its present throughput. The
//! relation is not transitive, so the order of the scan is part of the rule: the winner so far is
//! carried through the jobs in the order given, and keeps its place on ties.
//!
//! Two jobs without a share are compared by their time on their smallest sizes. A job without a
//! share never finishes first.
//!
//! **Cost.** While no job more than doubles its throughput with its next step, jobs without a share
//! beat all others and are served in order of length without a scan. After that each accelerator
//! costs a scan over jobs with a share: `O(J log J + M min(J, M))` for `J` jobs on `M`
//! accelerators. Where throughputs do double, the cost is `O(J M)`.

use super::departures::AfsDepartures;

/// Published form of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfsRule {
    /// AFS-L: the job with less remaining time at its share finishes first.
    Lengths,
    /// AFS-P: the job that has run for less time is presumed to finish first; lengths are unknown.
    Attained,
}

/// Job that competes for accelerators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AfsContender {
    /// Remaining work in the unit of its throughput; with [`AfsRule::Attained`] the seconds that
    /// the job has run. Infinite where unknown.
    pub length: f64,
    /// Fewest accelerators that the job runs on: the first step of its share.
    pub min: u32,
    /// Most accelerators that the job can use. Each step after the first is one accelerator.
    pub max: u32,
}

/// Division of accelerators among contenders. Kept across decisions for its buffers.
#[derive(Clone, Debug, Default)]
pub struct AfsShares {
    runners: Vec<AfsRunner>,
    /// Runners without a share, by the bits of `first` and index; the next in turn last.
    waiting: Vec<(u64, u32)>,
    /// Runners with a share that could use more, in scan order.
    running: Vec<u32>,
}

/// Standing of one contender in a division.
#[derive(Clone, Copy, Debug, Default)]
pub struct AfsRunner {
    /// Accelerators that the job has been given so far.
    pub(super) share: u32,
    /// Smallest share with the throughput of `share`: what the job gets in the end.
    useful_share: u32,
    speed: f64,
    /// Throughput after the next step.
    next_speed: f64,
    /// Presumed end, infinite without a share.
    finish: f64,
    /// Time on the smallest size, which orders jobs without a share.
    pub(super) first: f64,
    /// Gain of the next step relative to the present throughput.
    gain_over_present: f64,
    /// Gain of the next step relative to the throughput after the step.
    pub(super) gain_over_next: f64,
    open: bool,
}

impl AfsShares {
    /// Divides `gpus` accelerators among `contenders`, in scan order. `throughput(job, n)` is the
    /// throughput on `n` accelerators, `None` where it is unknown or the job cannot run on `n`.
    /// Each size is asked for at most once.
    pub fn allocate(
        &mut self,
        rule: AfsRule,
        departures: &impl AfsDepartures,
        gpus: u32,
        contenders: &[AfsContender],
        mut throughput: impl FnMut(usize, u32) -> Option<f64>,
    ) {
        self.enter(rule, departures, gpus, contenders, &mut throughput);
        let mut left = gpus;
        let mut doubling = 0_u32;
        while left > 0 {
            // Jobs further up that do not fit any more are dropped when their turn comes.
            self.waiting.retain_last(|&(_, at)| contenders[at as usize].min <= left);
            let turn = self.waiting.last().map(|&(_, at)| at);
            // Without a job that doubles, a waiting job wins every comparison, and no scan is
            // needed.
            let winner = match turn {
                Some(first) if doubling == 0 => Some(first),
                Some(_) => self.champion(departures, 0..self.runners.len() as u32, contenders, left),
                None => self.champion(departures, self.running.iter().copied(), contenders, left),
            };
            let Some(winner) = winner else { break };
            let runner = &mut self.runners[winner as usize];
            let contender = &contenders[winner as usize];
            let starts = runner.share == 0;
            left -= if starts { contender.min } else { 1 };
            doubling -= u32::from(!starts && runner.doubles());
            runner.step(rule, departures, contender, |gpus| throughput(winner as usize, gpus));
            doubling += u32::from(runner.open && runner.doubles());
            let open = runner.open;
            if starts {
                match self.waiting.last() {
                    Some(&(_, last)) if last == winner => drop(self.waiting.pop()),
                    _ => self.waiting.retain(|&(_, at)| at != winner),
                }
            }
            match (self.running.binary_search(&winner), open) {
                (Err(at), true) => self.running.insert(at, winner),
                (Ok(at), false) => drop(self.running.remove(at)),
                _ => {}
            }
        }
    }

    /// Shares of the last division, in the order of its contenders, without accelerators that make
    /// a job no faster.
    pub fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.runners.iter().map(|runner| runner.useful_share)
    }

    fn enter(
        &mut self,
        rule: AfsRule,
        departures: &impl AfsDepartures,
        gpus: u32,
        contenders: &[AfsContender],
        throughput: &mut impl FnMut(usize, u32) -> Option<f64>,
    ) {
        self.runners.clear();
        self.running.clear();
        self.waiting.clear();
        for (at, contender) in contenders.iter().enumerate() {
            let possible = (1..=gpus).contains(&contender.min) && contender.min <= contender.max;
            let speed = if possible { throughput(at, contender.min).unwrap_or(0.0) } else { 0.0 };
            let first = match rule {
                AfsRule::Attained => contender.length,
                AfsRule::Lengths if speed > 0.0 => contender.length / speed,
                AfsRule::Lengths => f64::INFINITY,
            };
            self.runners.push(AfsRunner {
                next_speed: speed,
                finish: f64::INFINITY,
                first,
                gain_over_present: f64::INFINITY,
                gain_over_next: 1.0,
                open: possible,
                ..AfsRunner::default()
            });
            if possible {
                // Bits of non-negative floats order as the floats do, and integers have a total
                // order.
                self.waiting.push((first.max(0.0).to_bits(), at as u32));
            }
        }
        // The next in turn is at the end, where it can be taken without moving the others.
        self.waiting.sort_unstable_by_key(|&(first, at)| std::cmp::Reverse(departures.turn(first, at)));
    }

    /// Winner of a scan over `order`; jobs with a smallest size above `left` take no part.
    fn champion(
        &self,
        departures: &impl AfsDepartures,
        order: impl Iterator<Item = u32>,
        contenders: &[AfsContender],
        left: u32,
    ) -> Option<u32> {
        let mut champion: Option<(u32, &AfsRunner)> = None;
        for at in order {
            let runner = &self.runners[at as usize];
            if !runner.open || (runner.share == 0 && contenders[at as usize].min > left) {
                continue;
            }
            if champion.is_none_or(|(_, champion)| departures.prefers(champion, runner)) {
                champion = Some((at, runner));
            }
        }
        champion.map(|(at, _)| at)
    }
}

impl AfsRunner {
    /// Whether the `challenger`, which comes later in the scan, takes the place of this champion as published.
    pub(super) fn gives_way_to(&self, challenger: &Self) -> bool {
        if self.share == 0 && challenger.share == 0 {
            challenger.first < self.first
        } else if challenger.finish < self.finish {
            // The champion would hold the accelerator after the challenger has finished, so its gain is judged
            // by its later throughput.
            self.gain_over_next <= challenger.gain_over_present
        } else {
            challenger.gain_over_next > self.gain_over_present
        }
    }

    /// Whether the next step of this job would beat every job without a share.
    fn doubles(&self) -> bool {
        self.share > 0 && self.gain_over_present >= 1.0
    }

    /// Takes the next step and prepares the one after it.
    fn step(
        &mut self,
        rule: AfsRule,
        departures: &impl AfsDepartures,
        contender: &AfsContender,
        mut throughput: impl FnMut(u32) -> Option<f64>,
    ) {
        self.share = if self.share == 0 { contender.min } else { self.share + 1 };
        if departures.keeps_useless() || self.useful_share == 0 || self.next_speed > self.speed {
            self.useful_share = self.share;
        }
        self.speed = self.next_speed;
        self.finish = match rule {
            AfsRule::Attained => contender.length,
            AfsRule::Lengths => contender.length / self.speed,
        };
        let next = if self.share < contender.max { throughput(self.share + 1) } else { None };
        self.open = next.is_some();
        self.next_speed = departures.next_speed(next.unwrap_or(0.0), self.speed);
        let gain = self.next_speed - self.speed;
        self.gain_over_present = if self.speed > 0.0 { gain / self.speed } else { f64::INFINITY };
        self.gain_over_next = if self.next_speed > 0.0 { gain / self.next_speed } else { 0.0 };
    }
}

/// Removal of entries from the end as long as they do not pass.
trait RetainLast<T> {
    fn retain_last(&mut self, passes: impl Fn(&T) -> bool);
}

impl<T> RetainLast<T> for Vec<T> {
    fn retain_last(&mut self, passes: impl Fn(&T) -> bool) {
        while self.last().is_some_and(|last| !passes(last)) {
            self.pop();
        }
    }
}
