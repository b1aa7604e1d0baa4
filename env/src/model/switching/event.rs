//! What happens to a job's allocation: the events that a switch cost model tells apart.

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchEvent {
    /// The first accelerators of a job.
    Cold,
    /// More accelerators than before.
    Grow,
    /// Fewer accelerators, at least one.
    Shrink,
    /// As many accelerators in another place.
    Move,
    /// All accelerators are taken away. What that costs is charged when the job comes back, while it holds accelerators.
    Preempt,
    /// Accelerators again after a preemption.
    Resume,
}

impl SwitchEvent {
    /// All of them, in the order of a job's life.
    pub const ALL: [Self; 6] = [Self::Cold, Self::Grow, Self::Shrink, Self::Move, Self::Preempt, Self::Resume];
}

/// A change of one job's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch<'a> {
    /// Name of the application, or of the model that serves.
    pub application: &'a str,
    /// Accelerators before.
    pub from: u32,
    /// Accelerators after.
    pub to: u32,
    /// Whether other nodes are used; tells a move from no change where the count stays.
    pub moved: bool,
    /// Whether the job has held accelerators before; tells a resume from a cold start.
    pub started: bool,
}

impl Switch<'_> {
    /// What kind of change it is; `None` where nothing changes.
    #[must_use]
    pub fn event(&self) -> Option<SwitchEvent> {
        match (self.from, self.to) {
            (0, 0) => None,
            (_, 0) => Some(SwitchEvent::Preempt),
            (0, _) if self.started => Some(SwitchEvent::Resume),
            (0, _) => Some(SwitchEvent::Cold),
            (from, to) if from < to => Some(SwitchEvent::Grow),
            (from, to) if from > to => Some(SwitchEvent::Shrink),
            _ => self.moved.then_some(SwitchEvent::Move),
        }
    }
}
