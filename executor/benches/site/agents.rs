//! Four agents with eight accelerators each, in this process; jobs are processes of their own.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark may fail")]

use goodput_configs::live::engine::{AgentsConfig, NodeAddress};
use goodput_configs::live::node_agent::Fencing;
use goodput_configs::live::tls::TlsFiles;
use goodput_env::cluster::Pool;
use goodput_executor::agent::Running;
use goodput_executor::agent::tls::{self, DAEMON};
use goodput_executor::engine::agents::AgentsEngine;

use crate::nodes::{Node, name};
use crate::site::Site;

/// The machines: agents end with them.
pub struct Agents {
    settings: AgentsConfig,
    _agents: Vec<Running>,
    _nodes: Vec<Node>,
}

impl Site<Agents> {
    /// Starts the agents, one for each node.
    pub fn agents(runtime: &tokio::runtime::Runtime) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let certs = directory.path().join("certs");
        let names = ["n0", "n1", "n2", "n3"];
        tls::create(&certs, &names.map(name)).unwrap();
        let nodes: Vec<Node> = names
            .into_iter()
            .map(|node| {
                let mut node = Node::with_certs(node, tempfile::tempdir().unwrap(), &certs);
                node.config.checkpoint_root = directory.path().join("checkpoints");
                node.config.fencing = Fencing::Keep;
                node.config.devices = "fake:8xa100".parse().unwrap();
                node
            })
            .collect();
        let agents: Vec<Running> = nodes.iter().map(|node| runtime.block_on(node.agent())).collect();
        let addresses = nodes.iter().zip(&agents);
        let settings = AgentsConfig {
            nodes: addresses
                .map(|(node, at)| NodeAddress {
                    name: node.config.node.clone(),
                    address: at.address,
                    pool: Pool::Shared,
                })
                .collect(),
            tls: TlsFiles::of(&certs, DAEMON),
            folder: directory.path().join("engine"),
            leader: "bench".into(),
            suspect_ms: 10_000,
            lease_ms: 30_000,
            patience_ms: 5000,
        };
        Self::with(Agents { settings, _agents: agents, _nodes: nodes }, directory)
    }

    pub fn engine(&self) -> AgentsEngine {
        AgentsEngine::open(self.machines.settings.clone()).unwrap()
    }
}
