//! A learned choice between carrying out a change and holding it back, around a published policy.
//!
//! The published policy, the *teacher*, decides which jobs start, grow, shrink, move and stop. A net looks at every
//! change of a running job, which would restart or stop the job, and says what it would save to leave the job as it is.
//! Changes that save more than a threshold are held back, as far as all jobs that the teacher starts can still start.
//! The rest of the plan is carried out as far as it then fits. So a teacher without any idea of what a restart costs
//! learns one, and a net that holds nothing back is the teacher.
//!
//! - `features`: the observation of a change and of the cluster.
//! - `plan`: a plan without the changes that are held back.
//! - `policy`: the policy at work.

mod features;
mod plan;
mod policy;

pub use features::{CHANGE_FEATURES, GLOBALS, layout, schema_hash};
pub use policy::{ChangeMoment, HoldOrders, HoldPolicy};

use goodput_env::policy::Policy;

use crate::compose::{NamedPolicy, PolicyNameError};
use crate::nets::weights::Weights;

/// Learned choice around a published policy.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedHold {
    /// Name of the published policy, with its parameters.
    pub teacher: String,
    /// Set encoder over the changes of a plan.
    pub weights: Weights,
    /// Score above which a change is held back; an infinite one holds nothing back.
    pub threshold: f32,
}

impl LearnedHold {
    /// The published policy by itself, for a run of this seed.
    ///
    /// # Errors
    /// [`PolicyNameError`] where there is none of the name.
    pub fn teacher(&self, seed: u64) -> Result<Box<dyn Policy>, PolicyNameError> {
        Ok(self.teacher.parse::<NamedPolicy>()?.training(seed))
    }
}
