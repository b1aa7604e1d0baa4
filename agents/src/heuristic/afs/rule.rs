//! The rule of AFS: one accelerator at a time, to the winner of a scan over pairs of jobs.
//!
//! Of two jobs let `a` finish first at the present shares. With throughput `p` now and `p'` with one more accelerator, `b` gets it if
//! `(p'_b - p_b) / p'_b > (p'_a - p_a) / p_a`, else `a` does: the gain of `b` is counted at its later speed, since it enjoys the accelerator of `a` after
//! `a` has gone, and that of `a` at its present one. The relation is not transitive, so the order of the scan is part of the rule: a champion is
//! carried through the jobs in the order given, and keeps its place on ties.
//!
//! Two jobs without a share are compared by their time on the least they run on. A job without a share never finishes first.
//!
//! **Cost.** While no job more than doubles its speed with its next step, jobs without a share beat all others and are served in order of length
//! without a scan. After that each accelerator costs a scan over jobs with a share: `O(J log J + M min(J, M))` for `J` jobs on `M` accelerators; where
//! jobs do double, `O(J M)`.

/// Which of the published forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// AFS-L: who has less remaining time at its share finishes first.
    Lengths,
    /// AFS-P: who has run for less time is presumed to finish first; no length is known.
    Attained,
    /// `afs.py` of DeepBoot's simulator: both gains are counted at the later speed, so that the order of finishing no longer matters but
    /// on ties, where the job with fewer accelerators, of equal ones the later, wins.
    DeepBoot,
}

/// A job in the race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contender {
    /// Remaining work in the unit of its throughput; with [`Rule::Attained`] the seconds it has run. Infinite where unknown.
    pub length: f64,
    /// Fewest accelerators it runs on: its first step.
    pub min: u32,
    /// Most accelerators it can use; each step after the first is one.
    pub max: u32,
}

/// The shares, and what the race needs besides; kept across decisions for its memory.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    runners: Vec<Runner>,
    /// Runners without a share, the next in turn last.
    waiting: Vec<(u64, u32)>,
    /// Runners with a share that could use more, in scan order.
    running: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Runner {
    share: u32,
    /// Smallest share of the speed of `share`.
    enough: u32,
    speed: f64,
    /// Throughput after the next step.
    next_speed: f64,
    /// Presumed time of its end, infinite without a share.
    finish: f64,
    /// Time on the least it runs on, the order of those without a share.
    first: f64,
    /// Gain of the next step in units of the present and of the later speed.
    now_gain: f64,
    then_gain: f64,
    open: bool,
}

impl Shares {
    /// Divides `gpus` accelerators among `contenders`, in scan order. `throughput(job, n)` is its speed on `n` accelerators, `None` where
    /// it is unknown or the job cannot run so; it is asked for each size at most once.
    pub fn allocate(
        &mut self,
        rule: Rule,
        gpus: u32,
        contenders: &[Contender],
        mut throughput: impl FnMut(usize, u32) -> Option<f64>,
    ) {
        self.enter(rule, gpus, contenders, &mut throughput);
        let mut left = gpus;
        let mut doubling = 0_u32;
        while left > 0 {
            self.waiting.retain_last(|&(_, at)| contenders[at as usize].min <= left);
            let turn = self.waiting.last().map(|&(_, at)| at);
            let winner = match turn {
                Some(first) if doubling == 0 => Some(first),
                Some(_) => self.champion(rule, 0..self.runners.len() as u32, contenders, left),
                None => self.champion(rule, self.running.iter().copied(), contenders, left),
            };
            let Some(winner) = winner else { break };
            let runner = &mut self.runners[winner as usize];
            let contender = &contenders[winner as usize];
            let starts = runner.share == 0;
            left -= if starts { contender.min } else { 1 };
            doubling -= u32::from(!starts && runner.doubles());
            runner.step(rule, contender, |gpus| throughput(winner as usize, gpus));
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

    /// The shares of the last division, in the order of its contenders. Where some accelerators make a job no faster it is not given them.
    pub fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.runners.iter().map(|runner| runner.enough)
    }

    fn enter(
        &mut self,
        rule: Rule,
        gpus: u32,
        contenders: &[Contender],
        throughput: &mut impl FnMut(usize, u32) -> Option<f64>,
    ) {
        self.runners.clear();
        self.running.clear();
        self.waiting.clear();
        for (at, contender) in contenders.iter().enumerate() {
            let possible = (1..=gpus).contains(&contender.min) && contender.min <= contender.max;
            let speed = if possible { throughput(at, contender.min).unwrap_or(0.0) } else { 0.0 };
            let first = match rule {
                Rule::Attained => contender.length,
                Rule::Lengths | Rule::DeepBoot if speed > 0.0 => contender.length / speed,
                Rule::Lengths | Rule::DeepBoot => f64::INFINITY,
            };
            self.runners.push(Runner {
                next_speed: speed,
                finish: f64::INFINITY,
                first,
                now_gain: f64::INFINITY,
                then_gain: 1.0,
                open: possible,
                ..Runner::default()
            });
            if possible {
                self.waiting.push((first.max(0.0).to_bits(), at as u32));
            }
        }
        // In turn from the end: the shortest, and of equal ones the first, or for DeepBoot the last.
        match rule {
            Rule::DeepBoot => {
                self.waiting.sort_unstable_by_key(|&(first, at)| std::cmp::Reverse((first, u32::MAX - at)))
            }
            Rule::Lengths | Rule::Attained => self.waiting.sort_unstable_by_key(|&entry| std::cmp::Reverse(entry)),
        }
    }

    /// Carries the champion through `order`.
    fn champion(
        &self,
        rule: Rule,
        order: impl Iterator<Item = u32>,
        contenders: &[Contender],
        left: u32,
    ) -> Option<u32> {
        let mut champion: Option<(u32, &Runner)> = None;
        for at in order {
            let runner = &self.runners[at as usize];
            if !runner.open || (runner.share == 0 && contenders[at as usize].min > left) {
                continue;
            }
            if champion.is_none_or(|(_, champion)| rule.prefers(champion, runner)) {
                champion = Some((at, runner));
            }
        }
        champion.map(|(at, _)| at)
    }
}

impl Rule {
    /// Whether the `challenger`, who comes later in the scan, takes the `champion`'s place.
    fn prefers(self, champion: &Runner, challenger: &Runner) -> bool {
        let idle = champion.share == 0 && challenger.share == 0;
        match self {
            Self::Lengths | Self::Attained if idle => challenger.first < champion.first,
            Self::Lengths | Self::Attained if challenger.finish < champion.finish => {
                champion.then_gain <= challenger.now_gain
            }
            Self::Lengths | Self::Attained => challenger.then_gain > champion.now_gain,
            Self::DeepBoot if idle => champion.first >= challenger.first,
            Self::DeepBoot if champion.share >= challenger.share => champion.then_gain <= challenger.then_gain,
            Self::DeepBoot => challenger.then_gain > champion.then_gain,
        }
    }
}

impl Runner {
    /// Whether its next step would be given to it rather than to a job without a share.
    fn doubles(&self) -> bool {
        self.share > 0 && self.now_gain >= 1.0
    }

    /// Takes the next step and looks at the one after it.
    fn step(&mut self, rule: Rule, contender: &Contender, mut throughput: impl FnMut(u32) -> Option<f64>) {
        self.share = if self.share == 0 { contender.min } else { self.share + 1 };
        if rule == Rule::DeepBoot || self.enough == 0 || self.next_speed > self.speed {
            self.enough = self.share;
        }
        self.speed = self.next_speed;
        self.finish = match rule {
            Rule::Attained => contender.length,
            Rule::Lengths | Rule::DeepBoot => contender.length / self.speed,
        };
        let next = if self.share < contender.max { throughput(self.share + 1) } else { None };
        self.open = next.is_some();
        // What more accelerators slow down can leave them alone.
        self.next_speed = match rule {
            Rule::DeepBoot => next.unwrap_or(0.0),
            Rule::Lengths | Rule::Attained => next.unwrap_or(0.0).max(self.speed),
        };
        let gain = self.next_speed - self.speed;
        self.now_gain = if self.speed > 0.0 { gain / self.speed } else { f64::INFINITY };
        self.then_gain = if self.next_speed > 0.0 { gain / self.next_speed } else { 0.0 };
    }
}

/// Drops entries from the end while they do not pass.
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
