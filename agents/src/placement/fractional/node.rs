//! One machine and what is left of it.

use super::{MILLI, Request};
use goodput_env::cluster::TypeId;

/// Sort of work on a node's accelerators: parts of one, or so many whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Shares one accelerator.
    Shared,
    /// Takes this many whole ones.
    Whole(u32),
}

/// Accelerators given to a request, by their index on the node.
pub type TakenAccelerators = Vec<u16>;

/// Free resources of a node; integers only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Accelerator type, by its index.
    pub kind: TypeId,
    /// Thousandths of processor cores left.
    pub cpu_milli: u32,
    /// Memory left, MiB.
    pub memory_mib: u32,
    /// Idle thousandths of each accelerator.
    pub idle: Vec<u16>,
    /// Number of requests of each class that run here, ascending; none with a count of zero.
    classes: Vec<(Class, u32)>,
}

impl Node {
    /// An idle node.
    pub fn idle(kind: TypeId, cpu_milli: u32, memory_mib: u32, accelerators: u32) -> Self {
        let idle = vec![MILLI as u16; accelerators as usize];
        Self { kind, cpu_milli, memory_mib, idle, classes: Vec::new() }
    }

    /// Idle thousandths of all accelerators.
    pub fn idle_milli(&self) -> u32 {
        self.idle.iter().map(|&milli| u32::from(milli)).sum()
    }

    /// Number of idle accelerators.
    pub fn wholly_idle(&self) -> u32 {
        self.idle.iter().filter(|&&milli| u32::from(milli) == MILLI).count() as u32
    }

    /// Whether the request's processors, accelerators and their type are here. Memory is asked
    /// apart, by [`Self::has_memory`].
    pub fn fits(&self, request: &Request) -> bool {
        if self.cpu_milli < request.cpu_milli {
            return false;
        }
        let fitting = || self.idle.iter().filter(|&&milli| u32::from(milli) >= request.milli).count() as u32;
        request.accelerators == 0 || (request.kinds.allow(self.kind) && fitting() >= request.accelerators)
    }

    /// Whether the request's memory is here.
    pub fn has_memory(&self, request: &Request) -> bool {
        self.memory_mib >= request.memory_mib
    }

    /// Classes of work that run here, ascending.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> {
        self.classes.iter().map(|&(class, _)| class)
    }

    /// The lowest idle accelerators, for a request of whole ones.
    pub fn whole(&self, request: &Request) -> TakenAccelerators {
        let free = (0..self.idle.len() as u16).filter(|&at| u32::from(self.idle[usize::from(at)]) == MILLI);
        free.take(request.accelerators as usize).collect()
    }

    /// The accelerator with least idle that still has enough to share, the lowest on ties.
    pub fn tightest(&self, request: &Request) -> Option<u16> {
        self.sharable(request).min_by_key(|&at| self.idle[usize::from(at)])
    }

    /// Accelerators with enough idle to share, ascending.
    pub fn sharable(&self, request: &Request) -> impl Iterator<Item = u16> {
        let milli = request.milli;
        (0..self.idle.len() as u16).filter(move |&at| u32::from(self.idle[usize::from(at)]) >= milli)
    }

    /// Gives `taken` accelerators, memory and processors to a request that fits.
    pub fn take(&mut self, request: &Request, taken: &[u16]) {
        self.cpu_milli -= request.cpu_milli;
        self.memory_mib -= request.memory_mib;
        for &at in taken {
            self.idle[usize::from(at)] -= request.milli as u16;
        }
        if let Some(class) = request.class() {
            match self.classes.binary_search_by_key(&class, |&(class, _)| class) {
                Ok(at) => self.classes[at].1 += 1,
                Err(at) => self.classes.insert(at, (class, 1)),
            }
        }
    }

    /// Takes back what [`Self::take`] gave.
    pub fn give_back(&mut self, request: &Request, taken: &[u16]) {
        self.cpu_milli += request.cpu_milli;
        self.memory_mib += request.memory_mib;
        for &at in taken {
            self.idle[usize::from(at)] += request.milli as u16;
        }
        let running = request.class().and_then(|class| self.classes.iter().position(|&(found, _)| found == class));
        if let Some(at) = running {
            self.classes[at].1 -= 1;
            if self.classes[at].1 == 0 {
                self.classes.remove(at);
            }
        }
    }

    /// The node as scores see it: without memory, accelerators in order of what is idle, classes
    /// without counts. Equal ones score equal.
    pub(super) fn key(&self) -> Self {
        let mut idle = self.idle.clone();
        idle.sort_unstable();
        let classes = self.classes.iter().map(|&(class, _)| (class, 1)).collect();
        Self { memory_mib: 0, idle, classes, ..*self }
    }
}

impl Request {
    /// Class of work of the request; `None` on processors only.
    pub fn class(&self) -> Option<Class> {
        match self.accelerators {
            0 => None,
            _ if self.shares() => Some(Class::Shared),
            count => Some(Class::Whole(count)),
        }
    }
}
