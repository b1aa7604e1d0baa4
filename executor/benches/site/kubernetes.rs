//! A control plane of Kubernetes with four nodes of eight accelerators; pods are processes of this machine.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark may fail")]

use goodput_configs::live::engine::KubernetesConfig;
use goodput_executor::engine::kubernetes::KubernetesEngine;
use goodput_testkit::kubelet::{Kubelets, add_nodes};
use goodput_testkit::kubernetes::ControlPlane;

use crate::site::Site;

/// The machines: the kubelets end before the control plane.
pub struct Cluster {
    _kubelets: Kubelets,
    plane: ControlPlane,
}

impl Site<Cluster> {
    /// Starts the control plane and plays the kubelets on `runtime`.
    pub fn kubernetes(runtime: &tokio::runtime::Runtime) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plane = ControlPlane::start(&directory.path().join("kubernetes")).unwrap();
        let kubelets = runtime.block_on(async {
            let client = ControlPlane::client(&plane.kubeconfig()).await.unwrap();
            add_nodes(&client, "bench", 4, 8, "NVIDIA-A100-SXM4-80GB").await.unwrap();
            Kubelets::play(client, "bench", 8)
        });
        Self::with(Cluster { _kubelets: kubelets, plane }, directory)
    }

    pub fn engine(&self) -> KubernetesEngine {
        KubernetesEngine::new(&KubernetesConfig { patience_ms: 5000, ..self.machines.plane.settings() })
    }
}
