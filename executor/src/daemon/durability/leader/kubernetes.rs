//! The lease in Kubernetes: an object `Lease` of `coordination.k8s.io/v1`, as its own controllers
//! use one.
//!
//! The object names its holder, and how long the lease lasts after the last renewal. A daemon that stands by
//! takes it over when it has seen no change of the object for the whole time, by a clock of its own;
//! the holder's time begins before it asks, so the holder's lease ends first. Every write names the
//! version of the object that it was made from, so of two that take over at one time one is refused.

use std::fmt;
use std::time::Duration;

use goodput_configs::live::leader::KubernetesLeaseConfig;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;

use super::DaemonName;
use super::outside::{Campaign, KeeperAnswer, OutsideLease, TakenLease};
use crate::agent::boot_ms;
use crate::engine::kubernetes::KubernetesAccess;
use crate::machine::wall_ms;

/// Annotation with the number of the last leadership; it stays.
const TERM: &str = "goodput.dev/term";
/// Annotation with the URL of the holder's interface.
const ADDRESS: &str = "goodput.dev/address";

/// A daemon's lease in Kubernetes.
pub struct KubernetesLease {
    config: KubernetesLeaseConfig,
    lease_s: i32,
    api: Option<Api<Lease>>,
    /// The object as this daemon wrote it last, while it holds the lease.
    held: Option<Lease>,
    /// Version of the object that another daemon holds, and when it was first seen, milliseconds
    /// since the machine started.
    watched: Option<(String, i64)>,
}

impl fmt::Debug for KubernetesLease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KubernetesLease").field("config", &self.config).field("held", &self.held).finish()
    }
}

impl KubernetesLease {
    /// A lease of `lease_s` seconds; nothing is asked yet.
    pub fn new(config: &KubernetesLeaseConfig, lease_s: u32) -> Self {
        let lease_s = i32::try_from(lease_s).unwrap_or(i32::MAX);
        Self { config: config.clone(), lease_s, api: None, held: None, watched: None }
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
    async fn found(&self, api: &Api<Lease>) -> Result<Option<Lease>, String> {
        self.answer(api.get_opt(&self.config.name)).await.map_err(LeaseCall::text)
    }

    /// Writes the object; `None` where another was faster.
    async fn write(&self, api: &Api<Lease>, lease: &Lease) -> Result<Option<Lease>, String> {
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

    async fn try_campaign(&mut self, me: &DaemonName, floor: u64) -> Result<Campaign, String> {
        let api = self.api().await?;
        let found = self.found(&api).await?.unwrap_or_default();
        let spec = found.spec.clone().unwrap_or_default();
        let version = found.metadata.resource_version.clone().unwrap_or_default();
        // The object was seen before this, and is written after it.
        let now = boot_ms();
        if let Some(holder) = spec.holder_identity.filter(|holder| !holder.is_empty()) {
            let since = match &self.watched {
                Some((seen, since)) if *seen == version => *since,
                _ => now,
            };
            self.watched = Some((version, since));
            // Whatever the object says, a lease of this daemon's own length has passed as well.
            let lasts_s = i64::from(spec.lease_duration_seconds.unwrap_or(0).max(self.lease_s));
            if now - since < lasts_s * 1000 {
                let address = found.metadata.annotations.as_ref().and_then(|all| all.get(ADDRESS)).cloned();
                return Ok(Campaign::Held(DaemonName { name: holder, address }));
            }
        }
        let noted = |name: &str| found.metadata.annotations.as_ref().and_then(|all| all.get(name));
        let before: u64 = noted(TERM).and_then(|term| term.parse().ok()).unwrap_or(0);
        let term = before.max(floor) + 1;
        let mut annotations = found.metadata.annotations.clone().unwrap_or_default();
        annotations.insert(TERM.into(), term.to_string());
        annotations.insert(ADDRESS.into(), me.address.clone().unwrap_or_default());
        annotations.retain(|name, value| name != ADDRESS || !value.is_empty());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.config.name.clone()),
                annotations: Some(annotations),
                ..found.metadata.clone()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(me.name.clone()),
                lease_duration_seconds: Some(self.lease_s),
                acquire_time: clock(),
                renew_time: clock(),
                lease_transitions: Some(spec.lease_transitions.unwrap_or(0).saturating_add(1)),
                ..LeaseSpec::default()
            }),
        };
        let Some(taken) = self.write(&api, &lease).await? else { return Ok(Campaign::Lost) };
        (self.held, self.watched) = (Some(taken), None);
        Ok(Campaign::Won(TakenLease { term, before, until_boot_ms: now + i64::from(self.lease_s) * 1000 }))
    }

    async fn try_renew(&mut self) -> Result<Option<i64>, String> {
        let (api, Some(mut lease)) = (self.api().await?, self.held.clone()) else { return Ok(None) };
        let asked = boot_ms();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = clock();
        }
        let Some(renewed) = self.write(&api, &lease).await? else {
            // The lease is another's, or only its annotations were changed, or an answer was lost.
            let found = self.found(&api).await?;
            let acquired = |lease: &Lease| {
                let spec = lease.spec.clone().unwrap_or_default();
                (spec.holder_identity, spec.acquire_time, spec.lease_transitions)
            };
            let mine = found.filter(|found| acquired(found) == acquired(&lease));
            let Some(mine) = mine else {
                self.held = None;
                return Ok(None);
            };
            self.held = Some(mine);
            return Err("the lease was written since; the next try renews it".into());
        };
        self.held = Some(renewed);
        Ok(Some(asked + i64::from(self.lease_s) * 1000))
    }

    async fn try_give_up(&mut self) -> Result<(), String> {
        let (api, Some(mut lease)) = (self.api().await?, self.held.take()) else { return Ok(()) };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
        }
        self.write(&api, &lease).await.map(|_| ())
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

/// The wall clock, for people: no daemon goes by it.
fn clock() -> Option<MicroTime> {
    Timestamp::from_millisecond(wall_ms()).ok().map(MicroTime)
}

impl OutsideLease for KubernetesLease {
    fn campaign<'a>(&'a mut self, me: &'a DaemonName, floor: u64) -> KeeperAnswer<'a, Campaign> {
        Box::pin(self.try_campaign(me, floor))
    }

    fn renew(&mut self) -> KeeperAnswer<'_, Option<i64>> {
        Box::pin(self.try_renew())
    }

    fn give_up(&mut self) -> KeeperAnswer<'_, ()> {
        Box::pin(self.try_give_up())
    }
}
