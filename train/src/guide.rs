//! Guide: a policy that gives the right action for every state of an episode. It is a teacher to
//! imitate, or the behaviour to be logged.

use goodput_agents::learning::teacher::Teacher;
use goodput_env::gym::{ClusterEnv, EnvError};

/// Source of actions for one episode. It is asked before every action, whether or not its answer is
/// played.
pub trait Guide<E>: Send {
    /// The action to take in `env` as it stands.
    ///
    /// # Errors
    /// [`EnvError`] where no episode is under way.
    fn action(&mut self, env: &E) -> Result<usize, EnvError>;
}

/// Makes a fresh guide for an episode.
pub type MakeGuide<'a, E> = &'a (dyn Fn() -> Box<dyn Guide<E>> + Sync);

/// A scheduling policy as a guide: it is asked for a plan once a round, and the plan becomes the
/// actions of that round.
impl Guide<ClusterEnv> for Teacher {
    fn action(&mut self, env: &ClusterEnv) -> Result<usize, EnvError> {
        self.advise(env)
    }
}
