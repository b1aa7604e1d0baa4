//! From shares of time to who runs where in the next round (Gavel, section 5).
//!
//! A job's priority on an accelerator type is its share there over the part of that type's time it has received. Each round, type by
//! type, the highest priorities run, ties going to whoever is further behind what its share promised. So over many rounds the time
//! received approaches the shares, whatever they are; the objective that made them is not this file's business.

use goodput_env::cluster::Cluster;
use goodput_env::job::JobId;
use goodput_env::placement::{Placement, pack};

/// One job, or two that share accelerators. Ordered by the younger one, a job alone first: the order in which the artifact knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// The job, or the younger of two.
    pub younger: JobId,
    /// The older of two.
    pub older: Option<JobId>,
}

impl Combination {
    /// A job alone.
    pub fn single(job: JobId) -> Self {
        Self { younger: job, older: None }
    }

    /// Two jobs.
    pub fn pair(one: JobId, other: JobId) -> Self {
        Self { younger: one.max(other), older: Some(one.min(other)) }
    }

    /// The jobs in it, the older one first.
    pub fn jobs(self) -> impl Iterator<Item = JobId> {
        self.older.into_iter().chain([self.younger])
    }
}

/// What a combination was promised and what it has received, by accelerator type.
#[derive(Clone, Debug)]
pub struct Account {
    /// Whose.
    pub combination: Combination,
    /// Accelerators it needs.
    pub gpus: u32,
    /// Whether it can run, by type.
    pub runs: Vec<bool>,
    /// Share of time; `None` until the first allocation that knows it.
    pub share: Option<Vec<f64>>,
    /// Time received since the last reset, seconds, half a round of credit included.
    pub received: Vec<f64>,
    /// Time promised less time received, up to the last reset, seconds.
    pub deficit: Vec<f64>,
}

/// Accounts of all combinations.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Half of a round, seconds: what a new job counts as having received, so that nobody's part is zero.
    credit: f64,
    /// In the order of combinations.
    accounts: Vec<Account>,
    /// Time that all combinations have received on each type since the last reset, seconds.
    total: Vec<f64>,
    last_reset: f64,
}

/// A choice for one round: which account on which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Index of the account.
    pub account: usize,
    /// The type.
    pub kind: usize,
}

impl Ledger {
    /// Empty accounts for `kinds` types and rounds of `round_secs`.
    pub fn new(kinds: usize, round_secs: f64) -> Self {
        Self { credit: round_secs / 2.0, accounts: Vec::new(), total: vec![0.0; kinds], last_reset: 0.0 }
    }

    /// All accounts, in order.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Sets the shares of account `at`.
    pub fn promise(&mut self, at: usize, share: &[f64]) {
        self.accounts[at].share = Some(share.to_vec());
    }

    /// Seconds of the run at the last reset; zero before the first.
    pub fn last_reset(&self) -> f64 {
        self.last_reset
    }

    /// Opens an account. `credited`: with half a round received, as everybody has after a reset.
    pub fn open(&mut self, combination: Combination, gpus: u32, runs: Vec<bool>, credited: bool) {
        let kinds = self.total.len();
        let received = vec![if credited { self.credit } else { 0.0 }; kinds];
        let account = Account { combination, gpus, runs, share: None, received, deficit: vec![0.0; kinds] };
        let at = self.accounts.partition_point(|other| other.combination < combination);
        self.accounts.insert(at, account);
    }

    /// Closes all accounts of jobs that are not active any more.
    pub fn close(&mut self, active: impl Fn(JobId) -> bool) {
        self.accounts.retain(|account| account.combination.jobs().all(&active));
    }

    /// Enters time received on type `kind`, seconds.
    pub fn receive(&mut self, combination: Combination, kind: usize, secs: f64) {
        if let Ok(at) = self.accounts.binary_search_by_key(&combination, |account| account.combination) {
            self.accounts[at].received[kind] += secs;
            self.total[kind] += secs;
        }
    }

    /// Carries what was promised and not received over into deficits and starts to count anew.
    pub fn reset(&mut self, now: f64) {
        let elapsed = now - self.last_reset;
        for (kind, total) in self.total.iter_mut().enumerate() {
            *total = 0.0;
            for account in &mut self.accounts {
                let promised = account.share.as_ref().map_or(0.0, |share| share[kind] * elapsed);
                account.deficit[kind] += promised - (account.received[kind] - self.credit);
                account.received[kind] = self.credit;
                *total += self.credit;
            }
        }
        self.last_reset = now;
    }

    fn priority(&self, account: &Account, kind: usize) -> f64 {
        let Some(share) = &account.share else { return 0.0 };
        let part = if self.total[kind] > 0.0 { account.received[kind] / self.total[kind] } else { 0.0 };
        match share[kind] {
            0.0 => 0.0,
            share if part > 0.0 => share / part,
            // Before all others, and among each other by share.
            share => share * 1e9,
        }
    }

    /// Who runs in the next round, types in the order of `kinds`, given the accelerators of each type. A job runs once; a combination
    /// that does not fit is passed over. `only_promised`: nobody runs without a share.
    pub fn choose(&self, kinds: &[usize], mut left: Vec<u32>, only_promised: bool) -> Vec<Chosen> {
        let mut taken: Vec<JobId> = Vec::new();
        let mut chosen = Vec::new();
        let mut ranked: Vec<(f64, f64, f64, usize)> = Vec::with_capacity(self.accounts.len());
        for &kind in kinds {
            ranked.clear();
            ranked.extend(self.accounts.iter().enumerate().filter(|(_, account)| account.runs[kind]).map(
                |(at, account)| {
                    let share = account.share.as_ref().map_or(0.0, |share| share[kind]);
                    (self.priority(account, kind), account.deficit[kind], share, at)
                },
            ));
            ranked.sort_by(descending);
            for &(priority, _, _, at) in &ranked {
                if left[kind] == 0 {
                    break;
                }
                let account = &self.accounts[at];
                let fits = account.gpus <= left[kind] && !(only_promised && priority <= 0.0);
                if fits && account.combination.jobs().all(|job| taken.binary_search(&job).is_err()) {
                    left[kind] -= account.gpus;
                    for job in account.combination.jobs() {
                        let position = taken.partition_point(|&other| other < job);
                        taken.insert(position, job);
                    }
                    chosen.push(Chosen { account: at, kind });
                }
            }
        }
        chosen
    }

    /// Places what was chosen into `free` accelerators by node: largest first, on what it held in the last round where that is still
    /// whole, else on as few nodes as possible. `held` says what a combination held and on which type.
    pub fn place(
        &self,
        chosen: &[Chosen],
        held: impl Fn(Combination) -> Option<(usize, Placement)>,
        cluster: &Cluster,
        mut free: Vec<u32>,
    ) -> Vec<(Chosen, Placement)> {
        let gpus = |chosen: &Chosen| self.accounts[chosen.account].gpus;
        let mut order: Vec<Chosen> = chosen.to_vec();
        order.sort_by_key(|chosen| std::cmp::Reverse(gpus(chosen)));
        let mut placed = Vec::with_capacity(order.len());
        for same in order.chunk_by(|a, b| gpus(a) == gpus(b)) {
            let mut new = Vec::new();
            for &chosen in same {
                let before = held(self.accounts[chosen.account].combination).filter(|(kind, _)| *kind == chosen.kind);
                let whole = before
                    .map(|(_, placement)| placement)
                    .filter(|placement| placement.slices().iter().all(|slice| free[slice.node as usize] >= slice.gpus));
                match whole {
                    Some(placement) => {
                        placement.slices().iter().for_each(|slice| free[slice.node as usize] -= slice.gpus);
                        placed.push((chosen, placement));
                    }
                    None => new.push(chosen),
                }
            }
            for chosen in new {
                placed.extend(pack(cluster, &mut free, chosen.kind as u16, gpus(&chosen)).map(|at| (chosen, at)));
            }
        }
        placed
    }
}

/// Descending by priority, deficit and share; equal ones keep their order.
fn descending(one: &(f64, f64, f64, usize), other: &(f64, f64, f64, usize)) -> std::cmp::Ordering {
    let key = |entry: &(f64, f64, f64, usize)| (entry.0, entry.1, entry.2);
    key(other).partial_cmp(&key(one)).unwrap_or(std::cmp::Ordering::Equal)
}
