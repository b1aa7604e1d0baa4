//! The secret of one attempt.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Random token of one attempt of one job: 32 hexadecimal digits.
///
/// Token of an attempt. A process that shows it speaks for that attempt and for no other; a process
/// of an earlier attempt that lives on has an old one and is refused. Its `Debug` shows the first
/// digits only, so that logs do not give it away.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fence(String);

impl Fence {
    /// A new one, from the system's generator.
    ///
    /// # Errors
    /// There is no generator at `/dev/urandom`.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(hex(&bytes)))
    }

    /// Fence that follows from `text`: for replays and tests, where equal runs must give equal
    /// tokens.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(hex(&Sha256::digest(text.as_bytes())[..16]))
    }

    /// Path segment under which jobs of AdaptDL find their supervisor. AdaptDL sends no token of its
    /// own, so that the address contains this key; the fence does not follow from the key.
    #[must_use]
    pub fn supervisor_key(&self) -> String {
        Self::from_text(&format!("supervisor {}", self.0)).0
    }

    /// Token as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Fence({}..)", &self.0[..4])
    }
}

impl TryFrom<String> for Fence {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let good = text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if good { Ok(Self(text)) } else { Err("a fence is 32 hexadecimal digits in lower case".to_owned()) }
    }
}

impl From<Fence> for String {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_differ_and_do_not_show() {
        let (a, b) = (Fence::random().unwrap(), Fence::random().unwrap());
        assert_ne!(a, b);
        assert!(!format!("{a:?}").contains(a.as_str()));
        assert_eq!(Fence::from_text("x"), Fence::from_text("x"));
        assert!(a.supervisor_key() != b.supervisor_key() && a.supervisor_key() != a.as_str());
        assert_eq!(serde_json::from_str::<Fence>(&serde_json::to_string(&a).unwrap()).unwrap(), a);
        assert!(serde_json::from_str::<Fence>(r#""short""#).is_err());
    }
}
