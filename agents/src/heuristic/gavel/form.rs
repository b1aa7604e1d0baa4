//! Form of Gavel: the paper, or the simulator of its artifact.

/// Form of the policy that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GavelForm {
    /// The policy as the paper describes it.
    Published,
    /// The artifact's simulator, defects included.
    Artifact,
}
