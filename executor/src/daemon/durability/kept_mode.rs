//! Mode that a call set: the journal keeps it, so that it outlives the daemon.

use goodput_configs::live::deployment::Mode;
use serde_json::json;

use crate::daemon::{Daemon, DaemonError};
use crate::engine::Engine;
use crate::machine::wall_ms;

use super::journal::{Journal, JournalError};

/// Name of the fact in the journal.
const FACT: &str = "mode";

/// Mode that the journal keeps; `None` where no call has set one. A word that is no mode counts as
/// `observe`, which does no harm.
pub(in crate::daemon) fn read(journal: &Journal) -> Result<Option<Mode>, JournalError> {
    Ok(journal.fact(FACT)?.map(|name| Mode::by_name(&name).unwrap_or_default()))
}

impl<E: Engine> Daemon<E> {
    /// Changes the mode, and has it on disk when it returns. The mode `observe` holds at once, even
    /// where it cannot be written down.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where the engine's settings do not allow the mode. [`DaemonError::Audit`],
    /// [`DaemonError::Journal`] or [`DaemonError::Etcd`] where it cannot be written down; another mode than `observe`
    /// is not taken up then.
    pub async fn set_mode(&mut self, who: &str, mode: Mode) -> Result<(), DaemonError> {
        let from = self.mode;
        self.settings.check_mode(mode).map_err(|error| DaemonError::Refused(error.to_string()))?;
        if mode == Mode::Observe {
            self.mode = mode;
        }
        self.audit.write(wall_ms(), "mode", json!({ "who": who, "from": from.name(), "to": mode.name() }))?;
        if let Some(shared) = &self.shared {
            shared.set_mode(mode).await?;
        }
        self.journal.remember(FACT, mode.name())?;
        (self.mode, self.kept_mode) = (mode, Some(mode));
        self.show_kept_mode();
        Ok(())
    }

    /// Begins in the mode `observe`, whatever mode the journal keeps, until a call sets another one.
    pub fn observe_only(&mut self) {
        self.mode = Mode::Observe;
        self.show_kept_mode();
    }

    /// Takes up a mode that a call to another daemon of the cluster has set since the last look.
    pub(in crate::daemon) async fn follow_kept_mode(&mut self) -> Result<(), DaemonError> {
        let kept = match &self.shared {
            None => read(&self.journal)?,
            // What cannot be asked now is asked at the next look.
            Some(_) if self.leader.trouble().is_some() => return Ok(()),
            Some(shared) => shared.mode().await.unwrap_or(self.kept_mode),
        };
        if let Some(mode) = kept.filter(|_| kept != self.kept_mode) {
            tracing::info!(mode = mode.name(), "another daemon was told to change the mode");
            (self.mode, self.kept_mode) = (mode, kept);
            self.show_kept_mode();
        }
        Ok(())
    }

    /// Sentence that says which mode rules, where the kept mode is another one than the mode of the
    /// deployment file; empty where they agree.
    pub fn mode_note(&self) -> String {
        let file = self.settings.mode.name();
        match self.kept_mode {
            Some(kept) if kept == self.mode && kept != self.settings.mode => format!(
                "mode {} was set by `goodput live mode` and rules; the deployment file says {file}: \
                 `goodput live mode {file}` changes it",
                kept.name()
            ),
            _ => String::new(),
        }
    }

    /// Sentence about the file that holds the daemon back from its mode; `None` where the mode rules.
    pub fn held_back(&self) -> Option<String> {
        (self.mode() != self.mode).then(|| {
            format!(
                "mode {} is kept and does not rule: {} holds the mode at observe; remove the file on the daemon's host",
                self.mode.name(),
                self.stop_file.display()
            )
        })
    }

    /// Shows in the status which mode rules.
    pub(in crate::daemon) fn show_kept_mode(&mut self) {
        let note = self.mode_note();
        if let Ok(mut status) = self.status.lock() {
            status.mode_note = note;
        }
    }
}
