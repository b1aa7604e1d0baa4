//! Access to an API server: its address and the credentials for it.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::engine::EngineError;

/// Longest silence of a connection: a watch is silent for as long as nothing happens.
const SILENCE: Duration = Duration::from_secs(60);

/// The API server cannot be used now.
pub(super) fn unreachable(problem: impl ToString) -> EngineError {
    EngineError::Unreachable {
        engine: "kubernetes",
        problem: problem.to_string(),
        remedy: "check that the API server answers (kubectl get --raw /readyz) and [engine.kubernetes]",
    }
}

/// Place of the address and the credentials.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesAccess<'a> {
    /// The file of `kubectl`; the service account of the pod, or the usual file, where absent.
    pub file: Option<&'a Path>,
    /// Context of that file; the current one where absent.
    pub context: Option<&'a str>,
}

impl KubernetesAccess<'_> {
    /// A client that gives up a connection after `patience`; nothing is asked yet.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] where the file or the credentials cannot be used.
    pub async fn connect(self, patience: Duration) -> Result<Client, EngineError> {
        let options = KubeConfigOptions { context: self.context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = match self.file {
            Some(path) => {
                let file =
                    Kubeconfig::read_from(path).map_err(|error| unreachable(format!("{}: {error}", path.display())))?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(unreachable)
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.map_err(unreachable),
            None => Config::infer().await.map_err(unreachable),
        };
        let mut config = config?;
        config.connect_timeout = Some(patience);
        config.read_timeout = Some(SILENCE);
        config.write_timeout = Some(patience);
        // A refusal is tried again by what is seen then.
        config.default_retry = false;
        Client::try_from(config).map_err(unreachable)
    }
}
