//! Changes of a job's allocation: the events that a switch cost model distinguishes.

/// Kind of change of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SwitchEvent {
    /// First accelerators of a job.
    Cold,
    /// More accelerators than before.
    Grow,
    /// Fewer accelerators, at least one.
    Shrink,
    /// As many accelerators in another place.
    Move,
    /// No accelerators any more. The cost is charged when the job resumes, while it holds
    /// accelerators.
    Preempt,
    /// Accelerators again after a preemption.
    Resume,
}

impl SwitchEvent {
    /// All events, in the order of a job's life.
    pub const ALL: [Self; 6] = [Self::Cold, Self::Grow, Self::Shrink, Self::Move, Self::Preempt, Self::Resume];
}

/// Change of one job's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch<'a> {
    /// Name of the application, or of the served model.
    pub application: &'a str,
    /// Number of accelerators before the change.
    pub from: u32,
    /// Number of accelerators after the change.
    pub to: u32,
    /// Whether other nodes are used; distinguishes a move from no change where the count stays.
    pub moved: bool,
    /// Whether the job has held accelerators before; distinguishes a resume from a cold start.
    pub started: bool,
}

impl Switch<'_> {
    /// Kind of the change; `None` where nothing changes.
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
