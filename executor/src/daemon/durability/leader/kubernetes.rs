//! The lease in Kubernetes: an object `Lease` of `coordination.k8s.io/v1`, as its own controllers
//! use one.
//!
//! The object names its holder, and how long the lease lasts after the last renewal. A daemon that stands by
//! takes it over when it has seen no change of the object for the whole time, by a clock of its own;
//! the holder's time begins before it asks, so the holder's lease ends first. Every write names the
//! version of the object that it was made from, so of two that take over at one time one is refused.

use goodput_configs::live::leader::KubernetesLeaseConfig;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;

use super::DaemonName;
use super::lease_object::LeaseObject;
use super::outside::{Campaign, KeeperAnswer, OutsideLease, TakenLease};
use crate::agent::boot_ms;
use crate::machine::wall_ms;

/// Annotation with the number of the last leadership; it stays.
pub(super) const TERM: &str = "goodput.dev/term";
/// Annotation with the URL of the holder's interface.
const ADDRESS: &str = "goodput.dev/address";

/// Number of times that a renewal is tried at once where annotations were changed since the last one.
const RENEWALS: u32 = 2;

/// A daemon's lease in Kubernetes.
#[derive(Debug)]
pub struct KubernetesLease {
    object: LeaseObject,
    lease_s: i32,
    /// The object as this daemon wrote it last, while it holds the lease.
    held: Option<Lease>,
    /// Version of the object that another daemon holds, and when it was first seen, milliseconds
    /// since the machine started.
    watched: Option<(String, i64)>,
}

impl KubernetesLease {
    /// A lease of `lease_s` seconds; nothing is asked yet.
    pub fn new(config: &KubernetesLeaseConfig, lease_s: u32) -> Self {
        let lease_s = i32::try_from(lease_s).unwrap_or(i32::MAX);
        Self { object: LeaseObject::new(config), lease_s, held: None, watched: None }
    }

    async fn try_campaign(&mut self, me: &DaemonName, floor: u64) -> Result<Campaign, String> {
        let found = self.object.found().await?.unwrap_or_default();
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
                name: Some(self.object.config.name.clone()),
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
        let Some(taken) = self.object.write(&lease).await? else { return Ok(Campaign::Lost) };
        (self.held, self.watched) = (Some(taken), None);
        Ok(Campaign::Won(TakenLease { term, before, until_boot_ms: now + i64::from(self.lease_s) * 1000 }))
    }

    async fn try_renew(&mut self) -> Result<Option<i64>, String> {
        for _ in 0..RENEWALS {
            let Some(mut lease) = self.held.clone() else { return Ok(None) };
            let asked = boot_ms();
            if let Some(spec) = &mut lease.spec {
                spec.renew_time = clock();
            }
            if let Some(renewed) = self.object.write(&lease).await? {
                self.held = Some(renewed);
                return Ok(Some(asked + i64::from(self.lease_s) * 1000));
            }
            self.look_again(&lease).await?;
        }
        if self.held.is_none() {
            return Ok(None);
        }
        Err("the lease was written since; the next try renews it".into())
    }

    /// Learns why a write was refused: the lease is another's, or only its annotations were changed, or an answer was
    /// lost. Annotations are changed by a daemon that was told another mode.
    async fn look_again(&mut self, lease: &Lease) -> Result<(), String> {
        let acquired = |lease: &Lease| {
            let spec = lease.spec.clone().unwrap_or_default();
            (spec.holder_identity, spec.acquire_time, spec.lease_transitions)
        };
        let found = self.object.found().await?;
        self.held = found.filter(|found| acquired(found) == acquired(lease));
        Ok(())
    }

    async fn try_give_up(&mut self) -> Result<(), String> {
        for _ in 0..RENEWALS {
            let Some(held) = self.held.clone() else { return Ok(()) };
            let mut lease = held.clone();
            if let Some(spec) = &mut lease.spec {
                spec.holder_identity = None;
            }
            if self.object.write(&lease).await?.is_some() {
                break;
            }
            self.look_again(&held).await?;
        }
        self.held = None;
        Ok(())
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
