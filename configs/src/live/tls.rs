//! Paths of certificates for mutual TLS.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Certificate and key of one party, and the authority that signs both parties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificate of the authority.
    pub ca: PathBuf,
    /// Certificate of the party.
    pub cert: PathBuf,
    /// Private key of the party.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Paths as `goodput live certs` names the files: `ca.pem`, `NAME.pem` and `NAME.key` in
    /// `folder`.
    #[must_use]
    pub fn of(folder: &Path, name: &str) -> Self {
        let file = |name: String| folder.join(name);
        Self { ca: file("ca.pem".to_owned()), cert: file(format!("{name}.pem")), key: file(format!("{name}.key")) }
    }
}
