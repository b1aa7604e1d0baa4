//! Snapshots that were recorded, shown again one after the other. Nothing can be done to them.

use super::{Capabilities, ClusterSnapshot, Engine, EngineError, Order, Receipt, Submission};

/// Engine that shows a recording of snapshots.
#[derive(Clone, Debug)]
pub struct Recorded {
    snapshots: std::vec::IntoIter<ClusterSnapshot>,
    last: ClusterSnapshot,
}

impl Recorded {
    /// Shows `snapshots` in their order, and the last one for ever.
    pub fn new(snapshots: Vec<ClusterSnapshot>) -> Self {
        Self { snapshots: snapshots.into_iter(), last: ClusterSnapshot::default() }
    }

    /// Version of the snapshot shown last.
    pub fn version(&self) -> u64 {
        self.last.version
    }
}

impl Engine for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { hold: true, ..Capabilities::default() }
    }

    async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
        if let Some(next) = self.snapshots.next() {
            self.last = next;
        }
        Ok(self.last.clone())
    }

    async fn apply(&mut self, _orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
        Err(EngineError::Refused { engine: "recorded", problem: "what was recorded cannot be changed".into() })
    }

    async fn submit(&mut self, _job: &Submission) -> Result<String, EngineError> {
        Err(EngineError::Refused { engine: "recorded", problem: "what was recorded cannot be changed".into() })
    }
}
