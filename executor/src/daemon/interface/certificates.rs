//! Certificates of the deployment that end soon.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::live::tls::TlsFiles;

use crate::daemon::Daemon;
use crate::http::identity;
use crate::machine::wall_ms;

/// Time between two looks.
const DAY: Duration = Duration::from_secs(86_400);

impl<E> Daemon<E> {
    /// Raises an alert for each certificate that ends soon, once a day.
    pub(in crate::daemon) fn watch_certificates(&mut self) {
        if self.certificates_seen.is_some_and(|seen| seen.elapsed() < DAY) {
            return;
        }
        self.certificates_seen = Some(Instant::now());
        for file in certificates(&self.settings) {
            if let Some(text) = identity::ends_soon(&file, wall_ms()) {
                self.alert("certificate", &text);
            }
        }
    }
}

/// Files of the certificates that a deployment names.
fn certificates(settings: &Deployment) -> Vec<PathBuf> {
    let interface = settings.api.tls.iter().map(|files| files.certificate.clone());
    let agents = if let EngineConfig::Agents(agents) = &settings.engine { Some(&agents.tls) } else { None };
    let lease = settings.leader.etcd().and_then(|etcd| etcd.tls.as_ref());
    let both = |files: &TlsFiles| [files.ca.clone(), files.cert.clone()];
    interface.chain(agents.into_iter().chain(lease).flat_map(both)).collect()
}
