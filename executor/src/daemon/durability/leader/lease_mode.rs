//! The mode that a call set, and the name of the policy that rules, as annotations of the Lease in Kubernetes: one
//! mode for the daemons of all hosts.
//!
//! Any daemon may write the mode, because a person told it to. The leader alone writes the name of the policy. A write
//! that meets the renewal of a leader is made anew from the object as it is then.

use goodput_configs::live::deployment::Mode;
use goodput_configs::live::leader::KubernetesLeaseConfig;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Client;

use super::kubernetes::TERM;
use super::lease_object::LeaseObject;

/// Annotation with the mode.
const MODE: &str = "goodput.dev/mode";
/// Annotation with the time at which the mode was set. With it every write changes the object, so that a call that
/// was given up and goes through late is refused.
const SET: &str = "goodput.dev/mode-set";
/// Annotations with the change of the policy that rules.
const POLICY_NUMBER: &str = "goodput.dev/policy-number";
const POLICY_NAME: &str = "goodput.dev/policy-name";
const POLICY_SHA256: &str = "goodput.dev/policy-sha256";
/// Annotation with the time at which a leader made sure of the policy. The write refuses earlier ones that are late.
const POLICY_READ: &str = "goodput.dev/policy-read";
/// Number of times that a write is tried against other writers.
const TRIES: u32 = 6;

/// The policy that rules. The Lease has its name, and not its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// Number of the change, from 1.
    pub number: u64,
    /// Name of the policy.
    pub name: String,
    /// SHA-256 of the bundle; empty for a heuristic.
    pub sha256: String,
}

/// The mode and the policy in the Lease.
#[derive(Debug)]
pub struct LeaseMode {
    object: LeaseObject,
}

impl LeaseMode {
    /// The mode in the Lease that `config` names; nothing is asked yet.
    pub fn new(config: &KubernetesLeaseConfig) -> Self {
        Self { object: LeaseObject::new(config) }
    }

    /// The mode in a Lease behind a client that is there already.
    pub fn with_client(config: &KubernetesLeaseConfig, client: Client) -> Self {
        Self { object: LeaseObject::with_client(config, client) }
    }

    /// Mode that a call has set; `None` where none has. A word that is no mode counts as `observe`, which does no
    /// harm.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be read.
    pub async fn mode(&mut self) -> Result<Option<Mode>, String> {
        Ok(self.object.found().await?.as_ref().and_then(read))
    }

    /// Sets the mode of all daemons.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be written, and where another call set the mode meanwhile. A stop is written
    /// whatever another call has set.
    pub async fn set(&mut self, mode: Mode) -> Result<(), String> {
        let mut first = None;
        for _ in 0..TRIES {
            let found = self.object.found().await?.unwrap_or_default();
            let kept = (annotation(&found, MODE), annotation(&found, SET));
            if mode != Mode::Observe && first.as_ref().is_some_and(|first| *first != kept) {
                return Err("the mode was set by another call just now; look at it and set it again".into());
            }
            first.get_or_insert(kept);
            if self.write(found, mode).await? {
                return Ok(());
            }
        }
        Err(format!("the Lease was written by others {TRIES} times in a row; set the mode again"))
    }

    /// Has `mode` in the Lease where no call has set one yet.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be used.
    pub async fn begin(&mut self, mode: Mode) -> Result<(), String> {
        for _ in 0..TRIES {
            let found = self.object.found().await?.unwrap_or_default();
            if read(&found).is_some() || self.write(found, mode).await? {
                return Ok(());
            }
        }
        Err(format!("the Lease was written by others {TRIES} times in a row"))
    }

    /// Policy that a call has set; `None` where none has.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be read.
    pub async fn policy(&mut self) -> Result<Option<LeasePolicy>, String> {
        Ok(self.object.found().await?.as_ref().and_then(read_policy))
    }

    /// Policy that a call has set, as no earlier write of the leader of `term` can change it any more.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be written, and where another daemon has been elected since.
    pub async fn settled_policy(&mut self, term: u64) -> Result<Option<LeasePolicy>, String> {
        let read = |lease: &mut Lease| {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(POLICY_READ.into(), Timestamp::now().to_string());
        };
        self.write_as_leader(term, read).await.map(|lease| read_policy(&lease))
    }

    /// Has another policy rule, in the name of the leader of `term`; returns it with its number.
    ///
    /// # Errors
    /// A sentence where the Lease cannot be written, and where another daemon has been elected since.
    pub async fn set_policy(&mut self, term: u64, name: &str, sha256: &str) -> Result<LeasePolicy, String> {
        let set = |lease: &mut Lease| {
            let number = read_policy(lease).map_or(0, |policy| policy.number) + 1;
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(POLICY_NUMBER.into(), number.to_string());
            annotations.insert(POLICY_NAME.into(), name.into());
            annotations.insert(POLICY_SHA256.into(), sha256.into());
        };
        let written = self.write_as_leader(term, set).await?;
        read_policy(&written).ok_or_else(|| "the Lease lost the policy that was written".into())
    }

    /// Writes what `change` makes of the Lease, in the name of the leader of `term`; the Lease as it was written.
    async fn write_as_leader(&mut self, term: u64, change: impl Fn(&mut Lease)) -> Result<Lease, String> {
        for _ in 0..TRIES {
            let mut lease = self.object.found().await?.unwrap_or_default();
            if annotation(&lease, TERM).is_none_or(|found| found != term.to_string()) {
                return Err(format!("term {term} is over: another daemon leads since; nothing was written"));
            }
            change(&mut lease);
            if let Some(written) = self.object.write(&lease).await? {
                return Ok(written);
            }
        }
        Err(format!("the Lease was written by others {TRIES} times in a row; set the policy again"))
    }

    /// Writes the mode into the Lease as it was found; `false` where another was faster.
    async fn write(&mut self, mut lease: Lease, mode: Mode) -> Result<bool, String> {
        lease.metadata.name = Some(self.object.config.name.clone());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(MODE.into(), mode.name().into());
        annotations.insert(SET.into(), Timestamp::now().to_string());
        Ok(self.object.write(&lease).await?.is_some())
    }
}

fn annotation(lease: &Lease, name: &str) -> Option<String> {
    lease.metadata.annotations.as_ref()?.get(name).cloned()
}

fn read(lease: &Lease) -> Option<Mode> {
    annotation(lease, MODE).map(|name| Mode::by_name(&name).unwrap_or_default())
}

fn read_policy(lease: &Lease) -> Option<LeasePolicy> {
    let name = annotation(lease, POLICY_NAME)?;
    let number = annotation(lease, POLICY_NUMBER).and_then(|text| text.parse().ok()).unwrap_or_default();
    Some(LeasePolicy { number, name, sha256: annotation(lease, POLICY_SHA256).unwrap_or_default() })
}
