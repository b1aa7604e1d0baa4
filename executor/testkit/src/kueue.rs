//! Kueue's own controllers and scheduler on a control plane of tests, and definitions of objects that belong to others.
//!
//! `cargo xtask test` builds the program from Kueue's Go module, in `testkit/kueue`, and puts the definitions of the
//! modules beside it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::kubernetes::{ControlPlane, cached};

/// Program and definitions of Kueue in the cache.
const KUEUE: (&str, &str) = ("kueue-0.17.0", "kueue-0.17.0-crds");
/// Definitions of the Prometheus operator in the cache.
const PROMETHEUS_OPERATOR: &str = "prometheus-operator-0.85.0-crds";

/// Reason why tests cannot start Kueue here.
pub fn missing() -> Option<&'static str> {
    let found = cached(KUEUE.0).is_some() && cached(KUEUE.1).is_some();
    (!found).then_some("Kueue is not built; `cargo xtask test` builds it with Go")
}

/// Files with the definitions of `ServiceMonitor` and `PrometheusRule` of the Prometheus operator; `None` where
/// `cargo xtask test` did not fetch the definitions.
pub fn prometheus_operator() -> Option<[PathBuf; 2]> {
    let folder = cached(PROMETHEUS_OPERATOR)?;
    Some(["servicemonitors", "prometheusrules"].map(|kind| folder.join(format!("monitoring.coreos.com_{kind}.yaml"))))
}

/// Running Kueue; dropping it ends it.
#[derive(Debug)]
pub struct PrivateKueue(Child);

impl PrivateKueue {
    /// Installs the definitions of Kueue's objects on `plane` and starts its program there.
    ///
    /// # Errors
    /// Where Kueue is not built or does not start.
    pub fn start(plane: &ControlPlane) -> io::Result<Self> {
        let absent = || io::Error::other(missing().unwrap_or_default());
        let (program, definitions) = (cached(KUEUE.0).ok_or_else(absent)?, cached(KUEUE.1).ok_or_else(absent)?);
        plane.define(&definitions)?;
        let log = plane.kubeconfig().with_file_name("kueue.log");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).arg("--config-file").arg(plane.kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(log)?);
        command.spawn().map(Self)
    }
}

impl Drop for PrivateKueue {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
