//! States of the forecasters on disk: a file for each service, replaced as a whole.

use std::io;
use std::path::{Path, PathBuf};

use goodput_configs::forecast::ServedLoad;

use super::ForecastServerError;
use super::watched::Watched;
use crate::agent::{record, spool};
use crate::private;

/// Folder of the states.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// Opens the folder, and makes it where it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(path: &Path) -> Result<Self, ForecastServerError> {
        private::folder(path).map_err(|source| ForecastServerError::State { path: path.to_owned(), source })?;
        Ok(Self(path.to_owned()))
    }

    /// State of a service. A service whose query, step, seasons, cold start or objective has changed begins anew.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn load(&self, config: &ServedLoad) -> Result<Watched, ForecastServerError> {
        match record::load::<Watched>(&self.0.join(file_name(config)))? {
            Some(watched) if watched.belongs_to(config) => Ok(watched),
            Some(_) => {
                tracing::warn!(service = %config.name, "the terms of the forecast have changed: it begins anew");
                Ok(Watched::new(config))
            }
            None => Ok(Watched::new(config)),
        }
    }

    /// Writes the state of a service.
    ///
    /// # Errors
    /// A disk that takes no writes.
    pub fn save(&self, config: &ServedLoad, watched: &Watched) -> io::Result<()> {
        spool::write(&self.0, &file_name(config), watched)
    }
}

fn file_name(config: &ServedLoad) -> String {
    format!("{}.json", config.name)
}
