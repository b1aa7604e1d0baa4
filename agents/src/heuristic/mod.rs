//! Published scheduling policies, one file a paper, named by the paper's name, and the list of them by the names users type.

pub mod fifo;
pub mod optimus;
pub mod pollux;
pub mod srtf;
pub mod tiresias;

use goodput_env::policy::Policy;
use goodput_env::view::{Batching, Information};

use fifo::Fifo;
use optimus::Optimus;
use pollux::Pollux;
use pollux::fast::PolluxFast;
use pollux::genetic::GeneticConfig;
use srtf::{Shortest, Srtf};
use tiresias::Tiresias;

/// A policy in the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What users type.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it was published.
    pub source: &'static str,
    build: fn(u64) -> Box<dyn Policy>,
}

impl Entry {
    /// The policy in its published settings; `seed` matters only to those that draw random numbers.
    pub fn build(&self, seed: u64) -> Box<dyn Policy> {
        (self.build)(seed)
    }

    /// What it is told about jobs in its publication.
    pub fn information(&self) -> Information {
        self.build(0).information()
    }

    /// The least it must be told about jobs to run at all.
    pub fn needs(&self) -> Information {
        self.build(0).needs()
    }

    /// How jobs choose their batch size under it.
    pub fn batching(&self) -> Batching {
        self.build(0).batching()
    }
}

/// All of them.
pub const POLICIES: [Entry; 10] = [
    Entry {
        name: "fifo",
        about: "oldest first, at the requested size; nobody passes a job that does not fit",
        source: "common practice",
        build: |_| Box::new(Fifo::strict()),
    },
    Entry {
        name: "fifo-backfill",
        about: "oldest first, at the requested size; whoever fits may pass",
        source: "common practice",
        build: |_| Box::new(Fifo::backfill()),
    },
    Entry {
        name: "srtf",
        about: "preemptive, least remaining time first, at the requested size",
        source: "Schrage, Operations Research 1968",
        build: |_| Box::new(Srtf::new(Shortest::Time)),
    },
    Entry {
        name: "srsf",
        about: "preemptive, least remaining accelerator time first, at the requested size",
        source: "Gu et al. (Tiresias), NSDI 2019",
        build: |_| Box::new(Srtf::new(Shortest::Service)),
    },
    Entry {
        name: "srtf-elastic",
        about: "preemptive, least remaining time first, each job as large as it can be",
        source: "Hwang et al. (AFS), NSDI 2021",
        build: |_| Box::new(Srtf::new(Shortest::ElasticTime)),
    },
    Entry {
        name: "tiresias",
        about: "least attained accelerator time first, in two queues of 16 GPU-hours",
        source: "Gu et al., NSDI 2019; settings of the Pollux artifact",
        build: |_| Box::new(Tiresias::pollux_artifact()),
    },
    Entry {
        name: "optimus",
        about: "accelerators one by one to the job whose remaining time they cut most",
        source: "Peng et al., EuroSys 2018; oracle form of the Pollux artifact",
        build: |_| Box::new(Optimus::default()),
    },
    Entry {
        name: "pollux",
        about: "goodput relative to a fair share, batch sizes adapted; the published genetic search",
        source: "Qiao et al., OSDI 2021",
        build: |seed| Box::new(Pollux::new(GeneticConfig::default(), seed)),
    },
    Entry {
        name: "pollux-noavoid",
        about: "pollux without keeping distributed jobs on different nodes",
        source: "Qiao et al., OSDI 2021, section 5.3.2",
        build: |seed| {
            Box::new(Pollux::new(GeneticConfig { avoid_interference: false, ..GeneticConfig::default() }, seed))
        },
    },
    Entry {
        name: "pollux-fast",
        about: "the objective of pollux, searched by dynamic programming over counts",
        source: "this project; objective of Qiao et al., OSDI 2021",
        build: |_| Box::new(PolluxFast::default()),
    },
];

/// Names in the order of [`POLICIES`].
pub const NAMES: [&str; POLICIES.len()] = {
    let mut names = [""; POLICIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = POLICIES[at].name;
        at += 1;
    }
    names
};

/// The policy that users call `name`, in its published settings.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    POLICIES.iter().find(|entry| entry.name == name).map(|entry| entry.build(seed))
}
