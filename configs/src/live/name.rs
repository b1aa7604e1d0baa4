//! Names that may become parts of paths, sockets and addresses.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name of a job or node: 1 to 63 letters, digits, `-`, `_` and `.`, the first a letter or digit.
///
/// It becomes a folder and a part of URLs, so nothing in it may lead out of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct JobName(String);

/// Reason why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("name {0:?} is refused: use 1 to 63 letters, digits, `-`, `_` and `.`, the first a letter or digit")]
pub struct NameError(String);

impl JobName {
    /// Checks a name.
    ///
    /// # Errors
    /// Anything that could be more than one part of a path.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text: String = text.into();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let good = (1..=63).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(plain);
        if good { Ok(Self(text)) } else { Err(NameError(text.chars().take(80).collect())) }
    }

    /// Name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TryFrom<String> for JobName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<JobName> for String {
    fn from(name: JobName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for good in ["a", "resnet-18", "user_7.run2", "9"] {
            assert_eq!(JobName::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(64);
        for bad in ["", ".", "..", "../etc", "a/b", "a\\b", ".hidden", "a b", "a\0", "-rf", "é", &long] {
            assert!(JobName::new(bad).is_err(), "{bad:?}");
        }
        assert!(toml::Value::from("../../etc/passwd").try_into::<JobName>().is_err());
    }
}
