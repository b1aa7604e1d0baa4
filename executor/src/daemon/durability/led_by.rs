//! Calls that only the daemon that leads may take, and what a daemon that stands by says to their callers.

use std::net::SocketAddr;

use goodput_configs::live::deployment::Deployment;

use super::journal::JournalError;
use super::leader::{Acting, DaemonName};
use crate::daemon::{Daemon, DaemonError};
use crate::engine::Engine;

/// Daemon that leads, in words for a caller.
pub(in crate::daemon) fn words(leader: Option<&DaemonName>) -> String {
    match leader {
        None => "none leads now; try again in some seconds".to_owned(),
        Some(DaemonName { name, address: Some(url) }) => format!("{name:?} leads; send the call to {url}"),
        Some(DaemonName { name, address: None }) => {
            format!("{name:?} leads; its deployment file names no address, see [leader] address")
        }
    }
}

/// URL at which callers reach the daemon of a deployment: the one that the file names, or one made of the address on
/// which the interface listens, where other callers of the lease are on the same host or the address is a public one.
pub(in crate::daemon) fn address(settings: &Deployment) -> Option<String> {
    if let Some(url) = &settings.leader.address {
        return Some(url.trim_end_matches('/').to_owned());
    }
    let at: SocketAddr = settings.api.listen.parse().ok()?;
    if at.ip().is_loopback() && settings.leader.outside() {
        return None;
    }
    let scheme = if settings.api.tls.is_some() { "https" } else { "http" };
    match at.ip().is_unspecified() {
        true => Some(format!("{scheme}://{}:{}", crate::machine::host_name(), at.port())),
        false => Some(format!("{scheme}://{at}")),
    }
}

impl<E: Engine> Daemon<E> {
    /// Refusal of a daemon that stands by.
    pub(in crate::daemon) fn stands_by(&self) -> DaemonError {
        DaemonError::Standby(self.leader.seen().cloned())
    }

    /// Leave to accept a call that changes something. While it is held no other daemon takes over, so whatever is
    /// accepted is there for the next leader.
    ///
    /// # Errors
    /// [`DaemonError::Standby`] where another daemon leads, [`DaemonError::Unavailable`] where nothing
    /// may be accepted now.
    pub(in crate::daemon) fn may_accept(&mut self) -> Result<Acting, DaemonError> {
        let Some(term) = self.leader.term() else { return Err(self.stands_by()) };
        let unavailable = |why: &str| DaemonError::Unavailable(format!("{why}: nothing was accepted; try again later"));
        let acting = self.leader.try_act().ok_or_else(|| unavailable("the lease is about to end"))?;
        match self.journal.check_term(term) {
            Err(JournalError::Deposed { .. }) => {
                self.leader.step_down();
                return Err(self.stands_by());
            }
            checked => checked?,
        }
        match self.health.refusal() {
            Some(why) => Err(unavailable(&why)),
            None if self.recovered != Some(term) => {
                Err(unavailable("this daemon takes up what the leader before it left"))
            }
            None => Ok(acting),
        }
    }
}
