//! Messages between the three schedulers of a shared cluster (Aryl, arXiv:2202.07896, figure 3:
//! inference scheduler, orchestrator, training scheduler).

use goodput_env::cluster::NodeId;
use goodput_env::time::SimTime;

/// Scheduler that sends or receives messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Inference scheduler: scales services.
    Inference,
    /// Lends servers and calls them back.
    Orchestrator,
    /// Schedules training jobs.
    Training,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Inference to orchestrator: accelerators that services will need, and how many the inference
    /// pool has.
    Need {
        /// Needed until the next decision about loans could take effect.
        gpus: u32,
        /// In the pool, lent or not.
        pool: u32,
    },
    /// Orchestrator to training: these servers may be used.
    Lent {
        /// Servers that the message is about.
        servers: Vec<NodeId>,
    },
    /// Orchestrator to training: these servers are to be left.
    CallBack {
        /// Servers that the message is about.
        servers: Vec<NodeId>,
        /// Jobs that lose all they hold.
        preempted: u32,
        /// Time at which the servers have to be empty.
        deadline: SimTime,
    },
    /// Orchestrator to inference: these servers are empty now.
    Returned {
        /// Servers that the message is about.
        servers: Vec<NodeId>,
    },
}

/// Message between two schedulers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Time of the message.
    pub at: SimTime,
    /// Scheduler that sends the message.
    pub from: Party,
    /// Scheduler that receives the message.
    pub to: Party,
    /// Content of the message.
    pub body: Body,
}
