//! Reasons why a decision is due.

/// Reasons why a decision is due; several may hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// A job arrived.
    pub arrival: bool,
    /// A job completed.
    pub completion: bool,
    /// A scheduling round is due.
    pub round: bool,
    /// The policy asked to be woken now.
    pub wake: bool,
    /// The rate of a service changed, a replica became ready or went, or a lent server came home.
    pub load: bool,
    /// An inference request came, or something became free that a request or, where decisions fall
    /// on churn, a job may want.
    pub request: bool,
    /// Something broke or came back, a job failed, or the scheduler itself was away.
    pub fault: bool,
}

impl Trigger {
    /// Whether what there is to decide about has changed, rather than that it is time to.
    pub fn is_churn(self) -> bool {
        self.arrival || self.completion || self.load || self.fault
    }
}
