//! Fragmentation: the idle part of a node's accelerators that the typical request cannot use (Weng
//! et al., ATC'23, section 4).
//!
//! The measure is an expectation over the requests that the workload is known to bring. Weights are
//! counts of requests, so it is a whole number: thousandths of an accelerator times requests.
//! Divide by [`Fragmentation::weight`] for thousandths.

use goodput_env::cluster::TypeId;
use std::collections::BTreeMap;

use super::{Node, Request};

/// A request that the workload brings often, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typical {
    /// The request, without its memory.
    pub request: Request,
    /// Number of jobs with this request.
    pub count: u32,
}

/// The typical requests of a workload, ready to measure nodes.
#[derive(Clone, Debug)]
pub struct Fragmentation {
    typical: Vec<Typical>,
    /// Distinct thousandths asked of one accelerator, ascending.
    levels: Vec<u16>,
    /// Level of each typical request.
    level: Vec<u8>,
    /// Accelerators needed by each typical request.
    weight: i32,
}

/// Distinct thousandths are multiples of at least this in practice; more levels than this are
/// refused.
const MOST_LEVELS: usize = 64;

impl Fragmentation {
    /// The most frequent requests until they make up `percent` of all; memory does not tell
    /// requests apart. Equally frequent ones go by larger processors, thousandths, number, types
    /// first, as in the artifact.
    pub fn of_requests(requests: &[Request], percent: u32) -> Self {
        let mut counts: BTreeMap<(u32, u32, u32, super::Kinds), u32> = BTreeMap::new();
        for request in requests {
            *counts.entry((request.cpu_milli, request.milli, request.accelerators, request.kinds)).or_default() += 1;
        }
        let mut all: Vec<_> = counts.into_iter().map(|(key, count)| (count, key)).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let enough = requests.len() as u64 * u64::from(percent);
        let mut seen = 0;
        let few = all.into_iter().take_while(|&(count, _)| {
            let wanted = seen * 100 < enough;
            seen += u64::from(count);
            wanted
        });
        let typical = few.map(|(count, (cpu_milli, milli, accelerators, kinds))| Typical {
            request: Request { cpu_milli, memory_mib: 0, accelerators, milli, kinds },
            count,
        });
        Self::new(typical.collect())
    }

    /// The given typical requests.
    pub fn new(typical: Vec<Typical>) -> Self {
        let mut levels: Vec<u16> = typical.iter().map(|typical| typical.request.milli as u16).collect();
        levels.sort_unstable();
        levels.dedup();
        assert!(levels.len() <= MOST_LEVELS, "at most {MOST_LEVELS} different shares, not {}", levels.len());
        let level = |typical: &Typical| levels.partition_point(|&level| u32::from(level) < typical.request.milli) as u8;
        let level = typical.iter().map(level).collect();
        let weight = typical.iter().map(|typical| typical.count).sum::<u32>() as i32;
        Self { typical, levels, level, weight }
    }

    /// The typical requests, most frequent first.
    pub fn typical(&self) -> &[Typical] {
        &self.typical
    }

    /// Requests that the typical ones stand for.
    pub fn weight(&self) -> i32 {
        self.weight
    }

    /// Fragmentation of a node in thousandths times [`Self::weight`].
    pub fn of(&self, node: &Node) -> i32 {
        self.measure(node.kind, node.cpu_milli, node.idle.iter().copied())
    }

    /// Fragmentation of a node of type `kind` with so much left.
    ///
    /// For one typical request it is all that is idle where the request cannot run here or needs no
    /// accelerator, else what is idle on the accelerators that have too little left for it.
    pub fn measure(&self, kind: TypeId, cpu_milli: u32, idle: impl Iterator<Item = u16>) -> i32 {
        // By level: accelerators with enough idle for it, and thousandths idle on the others.
        let (mut enough, mut short, mut total) = ([0_u32; MOST_LEVELS], [0_i32; MOST_LEVELS], 0_i32);
        for milli in idle {
            total += i32::from(milli);
            for (at, &level) in self.levels.iter().enumerate() {
                match milli >= level {
                    true => enough[at] += 1,
                    false => short[at] += i32::from(milli),
                }
            }
        }
        if total == 0 {
            return 0;
        }
        let lost = |(typical, &level): (&Typical, &u8)| {
            let (request, level) = (&typical.request, usize::from(level));
            let runs = request.accelerators > 0
                && cpu_milli >= request.cpu_milli
                && enough[level] >= request.accelerators
                && request.kinds.allow(kind);
            typical.count as i32 * if runs { short[level] } else { total }
        };
        self.typical.iter().zip(&self.level).map(lost).sum()
    }
}
