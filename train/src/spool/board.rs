//! Board: the runs of a generation that are claimed, and those that have their costs.
//!
//! A process claims a run by making a file. A claim does not expire by a clock. A process that finds nothing else to do
//! plays a run again that takes longer than it should: its worker may be dead, or slow (backup tasks; Dean and
//! Ghemawat, "MapReduce: simplified data processing on large clusters", OSDI 2004, section 3.6). A run that is played
//! twice does no harm, since both costs have equal bytes, and different bytes are an error.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use goodput_eval::sweep::SharedFolder;

use super::error::SpoolError;
use super::pause;
use crate::evolution::EpisodeCost;

/// Longest run of this process so far, from which it judges the runs of others.
#[derive(Debug, Default)]
pub(super) struct RunPace(AtomicU64);

impl RunPace {
    /// Least time after which a run is played again.
    const LEAST: Duration = Duration::from_secs(1);

    pub fn note(&self, run: Duration) {
        self.0.fetch_max(run.as_micros() as u64, Ordering::Relaxed);
    }

    /// Time after which a claimed run is played again: twice the longest run.
    fn patience(&self) -> Duration {
        Self::LEAST.max(2 * Duration::from_micros(self.0.load(Ordering::Relaxed)))
    }
}

/// Folder of a generation.
pub(super) struct Board<'a> {
    folder: SharedFolder,
    runs: usize,
    /// Run with which this process begins, so that processes do not all reach for one run.
    first: usize,
    pace: &'a RunPace,
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Default)]
struct BoardState {
    /// Whether there is nothing left to play.
    over: bool,
    /// Time of the latest look at the folder.
    looked: Option<Instant>,
    /// Runs to claim, each with the number of earlier claims.
    open: VecDeque<(usize, u32)>,
    /// Runs that this process has claimed.
    own: BTreeSet<usize>,
    /// Claims of others: the number of claims, and the time at which this process first saw the latest.
    others: BTreeMap<usize, (u32, Instant)>,
}

fn cost_file(run: usize) -> String {
    format!("{run:06}.json")
}

impl<'a> Board<'a> {
    pub fn new(folder: SharedFolder, runs: usize, pace: &'a RunPace) -> Self {
        let first = RandomState::new().hash_one(0) as usize % runs;
        Self { folder, runs, first, pace, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a run. It waits while all runs are claimed by others; `None` once all have their costs.
    pub fn claim(&self) -> Result<Option<usize>, SpoolError> {
        let (mut state, began) = (self.state(), Instant::now());
        let mut wait = Duration::ZERO;
        loop {
            if !state.over && state.looked.is_none_or(|at| at.elapsed() >= wait) {
                self.look(&mut state)?;
            }
            while let Some((run, claims)) = state.open.pop_front().filter(|_| !state.over) {
                if self.folder.take(&format!("{run:06}.claim.{claims}"))? {
                    state.own.insert(run);
                    return Ok(Some(run));
                }
            }
            if state.over {
                self.changed.notify_all();
                return Ok(None);
            }
            wait = pause(began.elapsed());
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads the folder, where no run is known to be open.
    fn look(&self, state: &mut BoardState) -> Result<(), SpoolError> {
        if !state.open.is_empty() {
            return Ok(());
        }
        state.looked = Some(Instant::now());
        let (mut costs, mut claims) = (vec![false; self.runs], vec![0_u32; self.runs]);
        for name in self.folder.names()? {
            let mut parts = name.split('.');
            let run = parts.next().and_then(|run| run.parse::<usize>().ok()).filter(|run| *run < self.runs);
            match (run, parts.next(), parts.next()) {
                (Some(run), Some("json"), None) => costs[run] = true,
                (Some(run), Some("claim"), Some(number)) => {
                    claims[run] = claims[run].max(number.parse::<u32>().unwrap_or(0) + 1);
                }
                _ => {}
            }
        }
        state.over = costs.iter().all(|stored| *stored);
        let patience = self.pace.patience();
        for run in (self.first..self.runs).chain(0..self.first).filter(|run| !costs[*run]) {
            let number = claims[run];
            let seen = state.others.entry(run).or_insert((number, Instant::now()));
            if seen.0 != number {
                *seen = (number, Instant::now());
            }
            let overdue = seen.1.elapsed() >= patience && !state.own.contains(&run);
            if number == 0 || overdue {
                state.open.push_back((run, number));
            }
        }
        Ok(())
    }

    /// Stores the cost of a run.
    pub fn store(&self, run: usize, cost: &EpisodeCost) -> Result<(), SpoolError> {
        let text = serde_json::to_vec(cost).expect("a cost is plain data");
        self.folder.put(&cost_file(run), &text)?;
        Ok(())
    }

    /// Lets all threads of this process stop.
    pub fn close(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Costs of all runs in their order.
    pub fn costs(&self) -> Result<Vec<EpisodeCost>, SpoolError> {
        if let Some(name) = self.folder.names()?.into_iter().find(|name| name.contains(".differs.")) {
            let kept = self.folder.path(name.split(".differs.").next().unwrap_or(&name));
            return Err(SpoolError::Disagreement { kept, refused: self.folder.path(&name) });
        }
        let read = |run| {
            let bytes = self.folder.read(&cost_file(run))?;
            serde_json::from_slice(&bytes).map_err(|error| SpoolError::Damaged {
                path: self.folder.path(&cost_file(run)),
                problem: error.to_string(),
            })
        };
        (0..self.runs).map(read).collect()
    }
}
