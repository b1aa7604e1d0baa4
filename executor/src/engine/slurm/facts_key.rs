//! Key with which a daemon signs the comments of its jobs.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::stated::CommentFacts;
use crate::job::Fence;

/// File of the key in the state directory.
const FILE: &str = "slurm.key";
/// Begins the signature in a comment, which is the last word of the comment.
const SIGNATURE: &str = ";mac=";

/// Key with which a daemon signs the facts in comments. Daemons that may lead share the key by their
/// state directory.
#[derive(Clone)]
pub struct FactsKey(String);

impl std::fmt::Debug for FactsKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("FactsKey(..)")
    }
}

impl FactsKey {
    /// Key of no other daemon.
    ///
    /// # Errors
    /// There is no generator at `/dev/urandom`.
    pub fn random() -> io::Result<Self> {
        Ok(Self(Fence::random()?.as_str().to_owned()))
    }

    /// Key in the state directory `directory`, made where there is none. The owner alone may read it.
    ///
    /// # Errors
    /// The directory or the file cannot be read or made.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(FILE);
        let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match made {
            Ok(mut file) => {
                let key = Self::random()?;
                io::Write::write_all(&mut file, key.0.as_bytes())?;
                file.sync_all()?;
                Ok(key)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = fs::read_to_string(&path)?;
                let short =
                    || io::Error::new(io::ErrorKind::InvalidData, format!("{} is no key; remove it", path.display()));
                Fence::try_from(text).map(|key| Self(key.into())).map_err(|_| short())
            }
            Err(error) => Err(error),
        }
    }

    /// Key in `directory` where there is one, else a key of no other daemon: for a reader that makes no
    /// state directory.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn found(directory: &Path) -> io::Result<Self> {
        if directory.join(FILE).exists() { Self::in_directory(directory) } else { Self::random() }
    }

    /// Signed comment of `facts` for a job of the user with the number `uid`. On a job of another user
    /// the signature says nothing.
    pub(super) fn signed(&self, facts: &CommentFacts, uid: u32) -> String {
        let text = facts.text();
        let signature = self.signature(&text, uid);
        format!("{text}{SIGNATURE}{signature}")
    }

    /// Facts of the comment of a job of the user `uid`, without those that are not believed.
    pub(super) fn read(&self, comment: &str, uid: u32) -> CommentFacts {
        let facts = CommentFacts::parse(comment);
        let signed = |(text, signature)| self.signature(text, uid) == signature;
        if comment.rsplit_once(SIGNATURE).is_some_and(signed) { facts } else { facts.of_a_user() }
    }

    fn signature(&self, text: &str, uid: u32) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else { return String::new() };
        mac.update(&uid.to_le_bytes());
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().iter().take(16).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_weighs_against_others_is_believed_when_signed() {
        let key = FactsKey::random().unwrap();
        let facts = CommentFacts {
            gpus: Some(4),
            max: Some(8),
            tenant: Some("rich".into()),
            owner: Some("anna".into()),
            priority: Some(5),
            submit_ms: Some(7),
            ..CommentFacts::default()
        };
        let comment = key.signed(&facts, 0);
        assert_eq!(key.read(&comment, 0), facts);
        let of_user = CommentFacts { tenant: None, owner: None, priority: None, submit_ms: None, ..facts.clone() };
        assert_eq!(key.read(&facts.text(), 0), of_user, "a user wrote it");
        assert_eq!(key.read(&comment.replace("rich", "poor"), 0), of_user, "a user changed it");
        assert_eq!(key.read(&comment, 1000), of_user, "a user copied it");
        assert_eq!(FactsKey::random().unwrap().read(&comment, 0), of_user, "another daemon wrote it");
    }

    #[test]
    fn daemons_of_one_state_directory_share_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let facts = CommentFacts { tenant: Some("rich".into()), ..CommentFacts::default() };
        let comment = FactsKey::in_directory(&state).unwrap().signed(&facts, 0);
        assert_eq!(FactsKey::in_directory(&state).unwrap().read(&comment, 0), facts);
        std::fs::write(state.join(FILE), "x").unwrap();
        assert!(FactsKey::in_directory(&state).unwrap_err().to_string().contains("remove it"));
    }
}
