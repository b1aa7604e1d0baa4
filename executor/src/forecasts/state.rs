//! States of the forecasters on disk: a file for each service, replaced as a whole.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use goodput_configs::forecast::ServedLoad;

use super::ForecastServerError;
use super::watched::WatchedService;
use crate::agent::record::{self, RecordError};
use crate::agent::spool;
use crate::private;

/// Folder of the states.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// Held while a state is written: a write that the end of the server finds under way goes on, and two writers would
    /// mix their bytes.
    writing: Arc<Mutex<()>>,
}

impl StateFolder {
    /// Opens the folder, and makes it where it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(path: &Path) -> Result<Self, ForecastServerError> {
        private::folder(path).map_err(|source| ForecastServerError::State { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), writing: Arc::default() })
    }

    /// State of a service. A service with another query, step, season, cold start or objective than its state begins
    /// anew. So does one with a damaged file, which is put aside: Prometheus has the history.
    ///
    /// # Errors
    /// A file that cannot be read, or that a later program wrote.
    pub fn load(&self, config: &ServedLoad) -> Result<WatchedService, ForecastServerError> {
        let path = self.path.join(file_name(config));
        let stored = match record::load::<WatchedService>(&path) {
            Err(RecordError::Damaged { problem, .. }) => {
                let aside = path.with_extension("json.damaged");
                tracing::error!(service = %config.name, problem, aside = %aside.display(), "the state begins anew");
                fs::rename(&path, &aside).map_err(|source| RecordError::Unreadable { path: path.clone(), source })?;
                None
            }
            stored => stored?,
        };
        match stored {
            Some(watched) if watched.belongs_to(config) => Ok(watched),
            Some(_) => {
                tracing::warn!(service = %config.name, "the terms of the forecast have changed: it begins anew");
                Ok(WatchedService::new(config))
            }
            None => Ok(WatchedService::new(config)),
        }
    }

    /// Writes the state of a service.
    ///
    /// # Errors
    /// A disk that takes no writes.
    pub fn save(&self, config: &ServedLoad, watched: &WatchedService) -> io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        spool::write(&self.path, &file_name(config), watched)
    }
}

fn file_name(config: &ServedLoad) -> String {
    format!("{}.json", config.name)
}
