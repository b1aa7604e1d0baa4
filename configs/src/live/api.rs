//! The HTTP interface of a deployment, and the tokens that callers show.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;

/// The HTTP interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// Address on which the interface listens. An empty text turns the interface off.
    pub listen: String,
    /// Certificate and key of the interface. Where the key is absent, the interface speaks plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ApiTls>,
    /// Tokens that callers may show. `goodput live token` makes their hashes.
    pub tokens: Vec<Token>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7070".into(), tls: None, tokens: Vec::new() }
    }
}

/// Files by which the interface speaks HTTPS. Files that change are read again without a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiTls {
    /// Certificate of the interface in PEM, followed by those between it and the authority.
    pub certificate: PathBuf,
    /// Private key of the certificate in PEM.
    pub key: PathBuf,
}

/// A bearer token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the owner in the audit log.
    pub name: String,
    /// SHA-256 of the token, hexadecimal.
    pub sha256: String,
    /// Calls that the token allows.
    pub role: Role,
}

/// Role of a token: the calls that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reading calls only.
    Read,
    /// Reading calls, and calls that submit, cancel, drain or change the mode.
    Write,
}

impl ApiConfig {
    pub(super) fn check(&self) -> Result<(), CheckError> {
        for Token { name, sha256, .. } in &self.tokens {
            if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let expected = "64 hexadecimal digits; `goodput live token` makes them";
                return Err(
                    CheckError::value("api.tokens.sha256", format!("{sha256:?}"), expected).within("tokens", name)
                );
            }
        }
        Ok(())
    }
}
