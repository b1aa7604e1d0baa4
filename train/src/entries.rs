//! Published policies that learners imitate or log.

use goodput_agents::compose::NamedPolicy;
use goodput_eval::entries::named;

use crate::error::TrainError;

/// A published training policy by name, with its parameters, and without services and requests beside it.
///
/// # Errors
/// [`TrainError::Entry`] where there is none; [`TrainError::Composed`] where the name says how a cluster is
/// shared.
pub fn published(name: &str) -> Result<NamedPolicy, TrainError> {
    let named = named(name)?;
    if !named.is_of_training() {
        return Err(TrainError::Composed { name: name.into() });
    }
    Ok(named)
}
