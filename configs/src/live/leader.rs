//! Leadership of a deployment: where the daemons of one cluster keep the lease of the leader.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::engine::is_label;
use super::times::check_millis;
use super::tls::TlsFiles;
use crate::error::CheckError;

/// Shortest lease outside the host, seconds: a leader renews three times in a lease, over a network.
const SHORTEST_OUTSIDE_SECS: u32 = 3;

/// Leadership among the daemons of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeaderConfig {
    /// URL at which clients reach the interface of this daemon, such as `http://head1:7070`. Other
    /// daemons of the cluster name the URL to clients while this one leads.
    pub address: Option<String>,
    /// Keeper of the lease.
    pub lease: LeaseKeeper,
}

/// Keeper of the lease of the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LeaseKeeper {
    /// The journal in the state directory: daemons of one host.
    #[default]
    Journal,
    /// An etcd cluster: daemons of several hosts elect one leader. Accepted submissions, idempotency keys and the jobs
    /// of node agents are in etcd as well, so that a leader on another host knows of them.
    Etcd(EtcdConfig),
    /// An object `Lease` of Kubernetes: daemons of several hosts or pods elect one leader. Accepted submissions still
    /// lie in the state directory of each.
    Kubernetes(KubernetesLeaseConfig),
}

/// An object `Lease` of `coordination.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesLeaseConfig {
    /// File with the address of the API server and the credentials for it. Where the key is absent,
    /// the daemon goes by its service account inside a pod, and by `KUBECONFIG` or `~/.kube/config`
    /// elsewhere.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object; no two clusters of daemons share one. The daemon makes the object, and its annotation
    /// `goodput.dev/term` must outlive every leader: do not delete the object.
    pub name: String,
    /// Longest time of one call, milliseconds.
    pub patience_ms: u64,
}

impl Default for KubernetesLeaseConfig {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            namespace: "goodput-system".into(),
            name: "goodput".into(),
            patience_ms: patience_ms(),
        }
    }
}

/// An etcd cluster, by its JSON gateway (version 3.4 and later).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EtcdConfig {
    /// Client URLs of the members, such as `https://10.0.0.1:2379`.
    pub endpoints: Vec<String>,
    /// First part of the keys of this cluster; no two clusters share one.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// Certificates of the daemon for `https` endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Longest time of one call to one member, milliseconds.
    #[serde(default = "patience_ms")]
    pub patience_ms: u64,
}

fn prefix() -> String {
    "goodput".to_owned()
}
const fn patience_ms() -> u64 {
    1000
}

impl LeaderConfig {
    /// The etcd cluster that keeps the lease; `None` where another keeper does.
    #[must_use]
    pub fn etcd(&self) -> Option<&EtcdConfig> {
        match &self.lease {
            LeaseKeeper::Etcd(etcd) => Some(etcd),
            LeaseKeeper::Journal | LeaseKeeper::Kubernetes(_) => None,
        }
    }

    /// Whether the lease is kept outside the host.
    #[must_use]
    pub fn outside(&self) -> bool {
        self.lease != LeaseKeeper::Journal
    }

    pub(super) fn check(&self, lease_secs: u32) -> Result<(), CheckError> {
        if let Some(address) = &self.address
            && !["http://", "https://"].iter().any(|scheme| address.starts_with(scheme))
        {
            return Err(CheckError::value("leader.address", format!("{address:?}"), "a URL such as http://head1:7070"));
        }
        let (key, patience_ms) = match &self.lease {
            LeaseKeeper::Journal => return Ok(()),
            LeaseKeeper::Etcd(etcd) => {
                etcd.check()?;
                ("leader.lease.etcd.patience_ms", etcd.patience_ms)
            }
            LeaseKeeper::Kubernetes(kubernetes) => {
                kubernetes.check()?;
                ("leader.lease.kubernetes.patience_ms", kubernetes.patience_ms)
            }
        };
        if lease_secs < SHORTEST_OUTSIDE_SECS {
            let expected = format!("{SHORTEST_OUTSIDE_SECS} or more where the lease is kept outside the host");
            return Err(CheckError::value("state.lease_secs", lease_secs, expected));
        }
        // A keeper that is silent must leave time to ask again before the lease is over.
        let longest_ms = u64::from(lease_secs) * 1000 / 6;
        if patience_ms == 0 || patience_ms > longest_ms {
            let expected = format!("1 to {longest_ms}, a sixth of state.lease_secs");
            return Err(CheckError::value(key, patience_ms, expected));
        }
        Ok(())
    }
}

impl KubernetesLeaseConfig {
    fn check(&self) -> Result<(), CheckError> {
        check_millis("leader.lease.kubernetes.patience_ms", self.patience_ms)?;
        for (key, name) in
            [("leader.lease.kubernetes.namespace", &self.namespace), ("leader.lease.kubernetes.name", &self.name)]
        {
            if !is_label(name) {
                let expected = "at most 63 of a-z, 0-9 and -, with a letter or digit at each end";
                return Err(CheckError::value(key, format!("{name:?}"), expected));
            }
        }
        Ok(())
    }
}

impl EtcdConfig {
    fn check(&self) -> Result<(), CheckError> {
        check_millis("leader.lease.etcd.patience_ms", self.patience_ms)?;
        let key = "leader.lease.etcd.endpoints";
        if self.endpoints.is_empty() {
            return Err(CheckError::value(key, "empty", "client URLs of etcd such as \"https://10.0.0.1:2379\""));
        }
        for endpoint in &self.endpoints {
            let Some((tls, ..)) = address(endpoint) else {
                return Err(CheckError::value(key, format!("{endpoint:?}"), "http://HOST:PORT or https://HOST:PORT"));
            };
            if tls && self.tls.is_none() {
                let expected = "given for https endpoints: ca, cert and key of the daemon";
                return Err(CheckError::value("leader.lease.etcd.tls", "absent", expected));
            }
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        if self.prefix.is_empty() || self.prefix.ends_with('/') || !self.prefix.bytes().all(plain) {
            let expected = "letters, digits, '-', '_', '.' and '/', without a '/' at the end";
            return Err(CheckError::value("leader.lease.etcd.prefix", format!("{:?}", self.prefix), expected));
        }
        Ok(())
    }
}

/// Whether an endpoint is asked over TLS, its host, and its port; `None` where it is no such URL.
#[must_use]
pub fn address(endpoint: &str) -> Option<(bool, String, u16)> {
    let (tls, rest) = match endpoint.split_once("://")? {
        ("http", rest) => (false, rest),
        ("https", rest) => (true, rest),
        _ => return None,
    };
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty() && !host.contains('/')).then_some((tls, host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_scheme_host_and_port() {
        assert_eq!(address("https://etcd1:2379"), Some((true, "etcd1".into(), 2379)));
        assert_eq!(address("http://[::1]:2379/"), Some((false, "::1".into(), 2379)));
        for wrong in ["etcd1:2379", "http://etcd1", "ftp://etcd1:1", "http://:2379", "http://a/b:1"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_cannot_work_is_said_with_its_key() {
        let etcd = EtcdConfig {
            endpoints: vec!["http://127.0.0.1:2379".into()],
            prefix: prefix(),
            tls: None,
            patience_ms: 1000,
        };
        let problem = |change: &dyn Fn(&mut EtcdConfig), lease_secs| {
            let mut etcd = etcd.clone();
            change(&mut etcd);
            let config = LeaderConfig { address: None, lease: LeaseKeeper::Etcd(etcd) };
            config.check(lease_secs).err().and_then(|error| error.key).unwrap_or_default()
        };
        assert_eq!(problem(&|_| {}, 15), "");
        assert_eq!(problem(&|_| {}, 2), "state.lease_secs");
        assert_eq!(problem(&|etcd| etcd.patience_ms = 3000, 15), "leader.lease.etcd.patience_ms");
        assert_eq!(problem(&|etcd| etcd.endpoints.clear(), 15), "leader.lease.etcd.endpoints");
        assert_eq!(problem(&|etcd| etcd.endpoints = vec!["https://a:1".into()], 15), "leader.lease.etcd.tls");
        assert_eq!(problem(&|etcd| etcd.prefix = "a/".into(), 15), "leader.lease.etcd.prefix");
    }
    #[test]
    fn a_lease_in_kubernetes_is_checked_like_one_in_etcd() {
        let problem = |change: &dyn Fn(&mut KubernetesLeaseConfig), lease_secs| {
            let mut kubernetes = KubernetesLeaseConfig::default();
            change(&mut kubernetes);
            let config = LeaderConfig { address: None, lease: LeaseKeeper::Kubernetes(kubernetes) };
            assert!(config.outside());
            config.check(lease_secs).err().and_then(|error| error.key).unwrap_or_default()
        };
        assert_eq!(problem(&|_| {}, 15), "");
        assert_eq!(problem(&|_| {}, 2), "state.lease_secs");
        assert_eq!(problem(&|lease| lease.patience_ms = 3000, 15), "leader.lease.kubernetes.patience_ms");
        assert_eq!(problem(&|lease| lease.namespace = "Team A".into(), 15), "leader.lease.kubernetes.namespace");
        assert_eq!(problem(&|lease| lease.name.clear(), 15), "leader.lease.kubernetes.name");
    }
}
