//! Release of Slurm, as its commands tell it.

use std::fmt;

use super::SlurmEngine;
use crate::engine::EngineError;

/// Release of Slurm: year and month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlurmRelease {
    year: u32,
    month: u32,
}

/// Oldest release with answers that are understood.
const OLDEST: SlurmRelease = SlurmRelease { year: 22, month: 5 };
/// Newest release that the tests start.
const NEWEST: SlurmRelease = SlurmRelease { year: 26, month: 5 };

/// Support of a release by the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The release lies between those that the tests start.
    Known,
    /// The release is newer than every one that was tested; the text warns of that.
    Newer(String),
    /// The release is too old; the text says what to do.
    Refused(String),
}

impl SlurmRelease {
    /// Release in the answer of `sinfo --version`, such as `slurm-wlm 22.05.8` or `slurm 24.11.5`.
    pub fn parse(answer: &str) -> Option<Self> {
        let word = answer.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = word.split('.').map_while(|part| part.parse().ok());
        Some(Self { year: parts.next()?, month: parts.next()? })
    }

    /// Whether `squeue --json` heeds its filters.
    pub(super) fn filters_json(self) -> bool {
        self >= Self { year: 23, month: 2 }
    }

    /// Whether the release is understood.
    pub fn support(self) -> Support {
        if self < OLDEST {
            return Support::Refused(format!(
                "Slurm {self} is too old: its answers lack JSON that is read; upgrade Slurm to {OLDEST} or later"
            ));
        }
        if self > NEWEST {
            return Support::Newer(format!(
                "Slurm {self} is newer than the newest tested release {NEWEST}; run in mode observe first and compare \
                 `goodput live nodes` with `sinfo`"
            ));
        }
        Support::Known
    }
}

impl fmt::Display for SlurmRelease {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:02}", self.year, self.month)
    }
}

impl SlurmEngine {
    /// Finds the release of Slurm, once.
    ///
    /// # Errors
    /// [`EngineError::Refused`] where the release is too old; else what keeps `sinfo` from answering.
    pub async fn find_release(&mut self) -> Result<(), EngineError> {
        if self.release.is_some() {
            return Ok(());
        }
        let answer = self.commands.run("sinfo", &["--version"], "").await?;
        let unreadable =
            || EngineError::Unreadable { engine: "slurm", what: "sinfo --version", problem: answer.trim().into() };
        let release = SlurmRelease::parse(&answer).ok_or_else(unreadable)?;
        match release.support() {
            Support::Refused(problem) => return Err(EngineError::Refused { engine: "slurm", problem }),
            Support::Newer(warning) => tracing::warn!("{warning}"),
            Support::Known => {}
        }
        tracing::info!(release = answer.trim(), "Slurm");
        self.release = Some(release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn releases_are_told_apart() {
        let support = |answer: &str| SlurmRelease::parse(answer).unwrap().support();
        assert_eq!(support("slurm-wlm 22.05.8\n"), Support::Known);
        assert_eq!(support("slurm 24.11.5"), Support::Known);
        assert!(matches!(support("slurm 21.08.8-2"), Support::Refused(text) if text.contains("22.05 or later")));
        assert!(matches!(support("slurm 99.05.0-rc1"), Support::Newer(text) if text.contains("observe")));
        assert_eq!(SlurmRelease::parse("command not found"), None);
        assert_eq!(SlurmRelease::parse("slurm 26.05.3").unwrap().to_string(), "26.05");
    }
}
