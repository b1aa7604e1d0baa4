//! User of the system as which a job runs.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::engine::EngineError;

/// A user of the system, as the directories of the system know the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SystemUser {
    pub name: String,
    pub number: u32,
    pub home: PathBuf,
}

impl SystemUser {
    /// The user called `name`.
    ///
    /// # Errors
    /// There is no such user on this machine, which is then to be said to the caller.
    pub async fn find(name: &str) -> Result<Self, EngineError> {
        let unknown = |problem: String| EngineError::Refused {
            engine: "slurm",
            problem: format!(
                "{problem}: jobs run as the owner of their token (run_as_owner), so `user` of the token has to name a \
                 user of this machine and of the nodes"
            ),
        };
        let mut getent = Command::new("getent");
        let getent = getent.args(["passwd", "--", name]).stdin(Stdio::null()).kill_on_drop(true);
        let output = getent.output().await.map_err(|error| unknown(format!("getent: {error}")))?;
        let entry = String::from_utf8_lossy(&output.stdout).into_owned();
        Self::parse(entry.trim_end())
            .filter(|user| user.name == name)
            .ok_or_else(|| unknown(format!("no user {name:?}")))
    }

    /// The user of a line of passwd(5).
    fn parse(entry: &str) -> Option<Self> {
        let fields: Vec<&str> = entry.split(':').collect();
        let [name, _, number, _, _, home, _] = fields[..] else { return None };
        Some(Self { name: name.to_owned(), number: number.parse().ok()?, home: home.into() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn a_user_is_found_by_name_and_by_nothing_else() {
        let root = SystemUser::find("root").await.unwrap();
        assert_eq!((root.number, root.name.as_str()), (0, "root"));
        for name in ["0", "", "no-such-user", "-s"] {
            assert!(SystemUser::find(name).await.unwrap_err().to_string().contains("run_as_owner"), "{name:?}");
        }
    }
}
