//! Published policies as experts: the action that each would take in every state of an environment.

use std::sync::{Mutex, PoisonError};

use goodput_agents::compose::NamedPolicy;
use goodput_agents::learning::teacher::Teacher;
use goodput_configs::policies;
use goodput_env::gym::{ClusterEnv, Player};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::environments::Environments;

/// A published policy that says what it would do in environments.
#[pyclass(module = "goodput_gym._core")]
pub struct Expert {
    policy: NamedPolicy,
    /// By environment: the number of the episode among those that its player has begun, and the policy that has watched
    /// the episode from its beginning.
    /// Behind a lock because Python may share an object between threads, and a policy is not made for that.
    teachers: Mutex<Vec<Option<(u64, Teacher)>>>,
}

#[pymethods]
impl Expert {
    /// Expert that does as the policy `name` does, parameters included: `gandiva(quantum_secs=60)`.
    #[new]
    fn new(envs: &Environments, name: &str) -> PyResult<Self> {
        let policy: NamedPolicy = name.parse().map_err(|error| PyValueError::new_err(policies::explain(&error)))?;
        let (needs, given) = (policy.training(0).needs(), envs.facts().decoder.information);
        if !given.allows(needs) {
            return Err(PyValueError::new_err(format!(
                "{name} needs information level {needs}, and the experiment gives {given}: set environment.information"
            )));
        }
        Ok(Self { policy, teachers: Mutex::default() })
    }

    /// The action of every environment. An environment without an episode under way gets the action that waits.
    ///
    /// The lock of the interpreter is released meanwhile.
    fn actions(&mut self, py: Python<'_>, envs: &Environments) -> PyResult<Vec<usize>> {
        py.detach(|| self.advised(envs))
    }
}

impl Expert {
    fn advised(&mut self, envs: &Environments) -> PyResult<Vec<usize>> {
        let wait = envs.shape().wait();
        let Self { policy, teachers } = self;
        let teachers = teachers.get_mut().unwrap_or_else(PoisonError::into_inner);
        teachers.resize_with(envs.players().len(), || None);
        let advise = |(player, place): (&Player<ClusterEnv>, &mut Option<(u64, Teacher)>)| {
            if player.is_over() {
                return Ok(wait);
            }
            let seed = player.seed().wrapping_add(player.cursor().episode).wrapping_sub(1);
            let fresh = || (player.begun(), Teacher::new(policy.build(seed, &envs.facts().sharing)));
            let (known, teacher) = place.get_or_insert_with(fresh);
            if *known != player.begun() {
                (*known, *teacher) = fresh();
            }
            teacher.advise(player.env()).map_err(|error| PyRuntimeError::new_err(error.to_string()))
        };
        envs.players().zip(teachers).map(advise).collect()
    }
}
