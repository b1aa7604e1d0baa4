//! Rounds: from shares of time to placements in the next round (Gavel, section 5).
//!
//! The priority of a job combination on an accelerator type is its share of that type's time over
//! the fraction of that type's time that it has received. Each round, type by type, the highest
//! priorities run; ties go to the combination that is further behind its share. So over many rounds
//! the time received approaches the shares, whatever objective they come from.

use goodput_env::cluster::{Cluster, TypeId};
use goodput_env::job::JobId;
use goodput_env::placement::{Placement, pack};

/// Job combination: one job, or two that share accelerators. Ordered by the younger job, a job
/// alone first, as the artifact orders combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// Identifier of the job, or of the younger of two.
    pub younger: JobId,
    /// Identifier of the older of two.
    pub older: Option<JobId>,
}

impl Combination {
    /// One job alone.
    pub fn single(job: JobId) -> Self {
        Self { younger: job, older: None }
    }

    /// A pair of jobs.
    pub fn pair(one: JobId, other: JobId) -> Self {
        Self { younger: one.max(other), older: Some(one.min(other)) }
    }

    /// Jobs of the combination, the older one first.
    pub fn jobs(self) -> impl Iterator<Item = JobId> {
        self.older.into_iter().chain([self.younger])
    }
}

/// Job combination that runs in the present round, with its placement.
#[derive(Clone, Debug)]
pub(super) struct RoundTask {
    pub(super) combination: Combination,
    pub(super) kind: TypeId,
    pub(super) placement: Placement,
}

/// Account of a job combination: the share it was allocated and the time it has received, by
/// accelerator type.
#[derive(Clone, Debug)]
pub struct CombinationAccount {
    /// Owner of the account.
    pub combination: Combination,
    /// Number of accelerators that the combination needs.
    pub gpus: u32,
    /// Whether the combination can run, by type.
    pub runs: Vec<bool>,
    /// Share of time; `None` until the first allocation with this combination.
    pub share: Option<Vec<f64>>,
    /// Time received since the last reset, seconds, half a round of credit included.
    pub received: Vec<f64>,
    /// Allocated less received time, up to the last reset, seconds.
    pub deficit: Vec<f64>,
}

/// Accounts of all combinations.
#[derive(Clone, Debug)]
pub struct RoundLedger {
    /// Half of a round, seconds: time that a new job counts as having received, so that no fraction
    /// is zero.
    credit: f64,
    /// All accounts, in the order of combinations.
    accounts: Vec<CombinationAccount>,
    /// Time that all combinations have received on each type since the last reset, seconds.
    total: Vec<f64>,
    last_reset: f64,
}

/// Time that a new account counts as having received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningCredit {
    /// The account starts empty.
    Nothing,
    /// Half a round, as every account has after a reset.
    HalfRound,
}

/// Combinations that may run in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayRun {
    /// All combinations; those without a share come last.
    All,
    /// Combinations with a share of time only.
    Allocated,
}

/// Combination chosen for one round, and on which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenTask {
    /// Combination that runs.
    pub combination: Combination,
    /// Number of accelerators that it needs.
    pub gpus: u32,
    /// Accelerator type that this worker is of.
    pub kind: TypeId,
}

impl RoundLedger {
    /// A ledger without accounts for `kinds` types and rounds of `round_secs`.
    pub fn new(kinds: usize, round_secs: f64) -> Self {
        Self { credit: round_secs / 2.0, accounts: Vec::new(), total: vec![0.0; kinds], last_reset: 0.0 }
    }

    /// All accounts, in the order of combinations.
    pub fn accounts(&self) -> &[CombinationAccount] {
        &self.accounts
    }

    /// Sets the shares of account `at`.
    pub fn set_share(&mut self, at: usize, share: &[f64]) {
        self.accounts[at].share = Some(share.to_vec());
    }

    /// Time of the last reset, seconds; zero before the first.
    pub fn last_reset(&self) -> f64 {
        self.last_reset
    }

    /// Opens an account.
    pub fn open(&mut self, combination: Combination, gpus: u32, runs: Vec<bool>, credit: OpeningCredit) {
        let kinds = self.total.len();
        let received = match credit {
            OpeningCredit::HalfRound => vec![self.credit; kinds],
            OpeningCredit::Nothing => vec![0.0; kinds],
        };
        let account = CombinationAccount { combination, gpus, runs, share: None, received, deficit: vec![0.0; kinds] };
        // Accounts stay in the order of combinations, which settles ties and lets `receive` search them.
        let at = self.accounts.partition_point(|other| other.combination < combination);
        self.accounts.insert(at, account);
    }

    /// Closes all accounts of jobs that are not active any more.
    pub fn close(&mut self, active: impl Fn(JobId) -> bool) {
        self.accounts.retain(|account| account.combination.jobs().all(&active));
    }

    /// Adds time received on type `kind`, seconds.
    pub fn receive(&mut self, combination: Combination, kind: TypeId, secs: f64) {
        if let Ok(at) = self.accounts.binary_search_by_key(&combination, |account| account.combination) {
            self.accounts[at].received[kind.index()] += secs;
            self.total[kind.index()] += secs;
        }
    }

    /// Moves allocated but not received time into the deficits and starts to count anew.
    pub fn reset(&mut self, now: f64) {
        let elapsed = now - self.last_reset;
        for (kind, total) in self.total.iter_mut().enumerate() {
            *total = 0.0;
            for account in &mut self.accounts {
                let allocated = account.share.as_ref().map_or(0.0, |share| share[kind] * elapsed);
                // The credit was never received, so it must not count as time that was served.
                account.deficit[kind] += allocated - (account.received[kind] - self.credit);
                account.received[kind] = self.credit;
                *total += self.credit;
            }
        }
        self.last_reset = now;
    }

    fn priority(&self, account: &CombinationAccount, kind: TypeId) -> f64 {
        let Some(share) = &account.share else { return 0.0 };
        let part = if self.total[kind.index()] > 0.0 {
            account.received[kind.index()] / self.total[kind.index()]
        } else {
            0.0
        };
        match share[kind.index()] {
            0.0 => 0.0,
            share if part > 0.0 => share / part,
            // One that had no time yet comes before all others, and by share among its like.
            share => share * 1e9,
        }
    }

    /// Account of `combination`; `None` where there is none.
    pub fn account(&self, combination: Combination) -> Option<&CombinationAccount> {
        let at = self.accounts.binary_search_by_key(&combination, |account| account.combination).ok()?;
        Some(&self.accounts[at])
    }

    /// Combinations that run in the next round, types in the order of `kinds`, given the
    /// accelerators of each type. A job runs once, and a combination that does not fit is passed
    /// over.
    pub fn choose(&self, kinds: &[TypeId], mut left: Vec<u32>, may_run: MayRun) -> Vec<ChosenTask> {
        let mut taken: Vec<JobId> = Vec::new();
        let mut chosen = Vec::new();
        let mut ranked: Vec<(f64, f64, f64, usize)> = Vec::with_capacity(self.accounts.len());
        for &kind in kinds {
            ranked.clear();
            ranked.extend(self.accounts.iter().enumerate().filter(|(_, account)| account.runs[kind.index()]).map(
                |(at, account)| {
                    let share = account.share.as_ref().map_or(0.0, |share| share[kind.index()]);
                    (self.priority(account, kind), account.deficit[kind.index()], share, at)
                },
            ));
            // The sort is stable: equal entries keep the order of combinations, as in the artifact.
            ranked.sort_by(descending);
            for &(priority, _, _, at) in &ranked {
                if left[kind.index()] == 0 {
                    break;
                }
                let account = &self.accounts[at];
                let fits = account.gpus <= left[kind.index()] && !(may_run == MayRun::Allocated && priority <= 0.0);
                if fits && account.combination.jobs().all(|job| taken.binary_search(&job).is_err()) {
                    left[kind.index()] -= account.gpus;
                    // `taken` stays sorted: every later combination of every type searches it.
                    for job in account.combination.jobs() {
                        let position = taken.partition_point(|&other| other < job);
                        taken.insert(position, job);
                    }
                    chosen.push(ChosenTask { combination: account.combination, gpus: account.gpus, kind });
                }
            }
        }
        chosen
    }
}

/// Places the chosen combinations into `free` accelerators by node: largest first, on the nodes
/// of the last round where those are still free, else on as few nodes as possible. `held` gives
/// a combination's type and placement in the last round.
pub fn place_round(
    chosen: &[ChosenTask],
    held: impl Fn(Combination) -> Option<(TypeId, Placement)>,
    cluster: &Cluster,
    mut free: Vec<u32>,
) -> Vec<(ChosenTask, Placement)> {
    let mut order: Vec<ChosenTask> = chosen.to_vec();
    // A large combination finds whole nodes only while they are empty.
    order.sort_by_key(|chosen| std::cmp::Reverse(chosen.gpus));
    let mut placed = Vec::with_capacity(order.len());
    // Of one size, combinations that can stay are placed first, so that no other takes their
    // nodes.
    for same in order.chunk_by(|a, b| a.gpus == b.gpus) {
        let mut new = Vec::new();
        for &chosen in same {
            let before = held(chosen.combination).filter(|(kind, _)| *kind == chosen.kind);
            let whole = before
                .map(|(_, placement)| placement)
                .filter(|placement| placement.slices().iter().all(|slice| free[slice.node.index()] >= slice.gpus));
            match whole {
                Some(placement) => {
                    placement.slices().iter().for_each(|slice| free[slice.node.index()] -= slice.gpus);
                    placed.push((chosen, placement));
                }
                None => new.push(chosen),
            }
        }
        for chosen in new {
            placed.extend(pack(cluster, &mut free, chosen.kind, chosen.gpus).map(|at| (chosen, at)));
        }
    }
    placed
}

/// Descending by priority, deficit and share; equal entries keep their order.
fn descending(one: &(f64, f64, f64, usize), other: &(f64, f64, f64, usize)) -> std::cmp::Ordering {
    let key = |entry: &(f64, f64, f64, usize)| (entry.0, entry.1, entry.2);
    key(other).partial_cmp(&key(one)).unwrap_or(std::cmp::Ordering::Equal)
}
