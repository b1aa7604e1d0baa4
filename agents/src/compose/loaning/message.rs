//! What the three schedulers of a shared cluster tell each other (Aryl, arXiv:2202.07896, figure 3: inference scheduler, orchestrator, training
//! scheduler).

use goodput_env::cluster::NodeId;
use goodput_env::time::SimTime;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Scales services.
    Inference,
    /// Lends servers and calls them back.
    Orchestrator,
    /// Schedules training jobs.
    Training,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Inference to orchestrator: accelerators that services will need, and how many the inference pool has.
    Need {
        /// Needed until the next decision about loans could take effect.
        gpus: u32,
        /// In the pool, lent or not.
        pool: u32,
    },
    /// Orchestrator to training: these servers may be used.
    Lent {
        /// The servers.
        servers: Vec<NodeId>,
    },
    /// Orchestrator to training: these servers are to be left.
    CallBack {
        /// The servers.
        servers: Vec<NodeId>,
        /// Jobs that lose all they hold.
        preempted: u32,
        /// When they have to be empty.
        deadline: SimTime,
    },
    /// Orchestrator to inference: these servers are empty now.
    Returned {
        /// The servers.
        servers: Vec<NodeId>,
    },
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// When.
    pub at: SimTime,
    /// From whom.
    pub from: Party,
    /// To whom.
    pub to: Party,
    /// What.
    pub body: Body,
}
