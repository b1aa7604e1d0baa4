//! The HTTP interface of a deployment.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::token::Token;
use crate::error::CheckError;
use crate::tenants::TenantConfig;

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

impl ApiConfig {
    pub(super) fn check(&self, tenants: &[TenantConfig]) -> Result<(), CheckError> {
        let port = self.listen.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        if !self.listen.is_empty() && port.is_none_or(|(host, _)| host.is_empty()) {
            let expected = "HOST:PORT, such as \"127.0.0.1:7070\", or an empty text for no interface";
            return Err(CheckError::value("api.listen", format!("{:?}", self.listen), expected));
        }
        for (index, token) in self.tokens.iter().enumerate() {
            token.check()?;
            token.check_tenants(tenants)?;
            let earlier = self.tokens.iter().take(index);
            if earlier.into_iter().any(|other| other.name == token.name) {
                // The name is the holder in the audit log, and the scope of idempotency keys.
                let expected = "a name that no other token has";
                let value = format!("{:?}", token.name);
                return Err(CheckError::value("api.tokens.name", value, expected).within("tokens", &token.name));
            }
        }
        Ok(())
    }
}
