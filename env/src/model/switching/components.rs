//! Parts of the time that a switch takes.

/// Parts of one switch, milliseconds; their sum is the time without progress of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Components {
    /// Deleting and creating the container.
    pub container: i64,
    /// Building the model and joining the other workers.
    pub model_init: i64,
    /// Loading training data.
    pub data_load: i64,
    /// Writing the checkpoint.
    pub save: i64,
    /// Reading the checkpoint.
    pub restore: i64,
    /// First iterations, until the job runs at full speed.
    pub warm_up: i64,
    /// Time that the source publishes as one number only.
    pub unsplit: i64,
    /// Whether the split is derived here from published totals; false for a published measurement.
    pub derived: bool,
}

/// Names of the parts, in the order of [`Components::parts`].
pub const PARTS: [&str; 7] = ["container", "model_init", "data_load", "save", "restore", "warm_up", "unsplit"];

impl Components {
    /// Switch with a published total and no published parts.
    #[must_use]
    pub fn unsplit(millis: i64) -> Self {
        Self { unsplit: millis, ..Self::default() }
    }

    /// Values of the parts, milliseconds, in the order of [`PARTS`].
    #[must_use]
    pub fn parts(&self) -> [i64; 7] {
        [self.container, self.model_init, self.data_load, self.save, self.restore, self.warm_up, self.unsplit]
    }

    /// Sum of all parts, milliseconds.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.parts().iter().sum()
    }
}
