//! The object `Lease` of Kubernetes that the daemons of a cluster share, and how it is read and written.
//!
//! Every write names the version of the object that it was made from, so of two writers at one time one is refused.

use std::fmt;
use std::time::Duration;

use goodput_configs::live::leader::KubernetesLeaseConfig;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::engine::kubernetes::KubernetesAccess;

/// The object, as one daemon reaches it.
pub(super) struct LeaseObject {
    pub(super) config: KubernetesLeaseConfig,
    api: Option<Api<Lease>>,
}

impl fmt::Debug for LeaseObject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LeaseObject").field("config", &self.config).finish_non_exhaustive()
    }
}

impl LeaseObject {
    /// The object that `config` names; nothing is asked yet.
    pub(super) fn new(config: &KubernetesLeaseConfig) -> Self {
        Self { config: config.clone(), api: None }
    }

    /// The object behind a client that is there already.
    pub(super) fn with_client(config: &KubernetesLeaseConfig, client: Client) -> Self {
        let api = Api::namespaced(client, &config.namespace);
        Self { config: config.clone(), api: Some(api) }
    }

    async fn api(&mut self) -> Result<Api<Lease>, String> {
        if let Some(api) = &self.api {
            return Ok(api.clone());
        }
        let access = KubernetesAccess { file: self.config.kubeconfig.as_deref(), context: None };
        let client = access.connect(self.patience()).await.map_err(|error| error.to_string())?;
        let api = Api::namespaced(client, &self.config.namespace);
        self.api = Some(api.clone());
        Ok(api)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.config.patience_ms)
    }

    /// Answer to a call, in time.
    async fn answer<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, LeaseCall> {
        match tokio::time::timeout(self.patience(), call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(LeaseCall::Conflict),
            Ok(Err(error)) => Err(LeaseCall::Failed(error.to_string())),
            Err(_) => Err(LeaseCall::Failed(format!("no answer within {} ms", self.config.patience_ms))),
        }
    }

    /// The object as it is now; `None` where there is none yet.
    pub(super) async fn found(&mut self) -> Result<Option<Lease>, String> {
        let api = self.api().await?;
        self.answer(api.get_opt(&self.config.name)).await.map_err(LeaseCall::text)
    }

    /// Writes the object, which is made where `lease` has no version; `None` where another was faster.
    pub(super) async fn write(&mut self, lease: &Lease) -> Result<Option<Lease>, String> {
        let api = self.api().await?;
        let (name, how) = (self.config.name.as_str(), PostParams::default());
        let written = match lease.metadata.resource_version {
            Some(_) => self.answer(api.replace(name, &how, lease)).await,
            None => self.answer(api.create(&how, lease)).await,
        };
        match written {
            Ok(lease) => Ok(Some(lease)),
            Err(LeaseCall::Conflict) => Ok(None),
            Err(error) => Err(error.text()),
        }
    }
}

/// Failure of a call.
enum LeaseCall {
    /// The object is not what the change was made from.
    Conflict,
    /// The call failed, or its outcome is not known.
    Failed(String),
}

impl LeaseCall {
    fn text(self) -> String {
        match self {
            Self::Conflict => "the lease was written since".into(),
            Self::Failed(text) => text,
        }
    }
}
