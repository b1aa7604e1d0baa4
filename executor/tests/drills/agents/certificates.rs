//! Certificates that end within weeks, and a node without accelerators.

use super::*;
use goodput_executor::agent::tls::Authority;
use goodput_executor::engine::NodeHealth;

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_the_daemon_and_of_nodes_raise_an_alert_before_they_end() {
    let site = Site::new(&["n0", "n1"], Fencing::Keep);
    Authority::open(&site.at("certs")).unwrap().of_agents(&[name("n1")], 20).unwrap();
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    let told = |status: &DaemonStatus| alerts(status, "certificate").len();
    let status = until(&mut daemon, "two alerts", |status| told(status) == 2).await;
    let texts = alerts(&status, "certificate");
    let about = |file: &str| texts.iter().filter(|text| text.contains(file) && text.contains("within 30 days")).count();
    assert_eq!((about("goodput-daemon.pem"), about("node n1: "), about("n0")), (1, 1, 0), "{texts:?}");
    for _ in 0..5 {
        daemon.cycle().await.unwrap();
    }
    assert_eq!(told(&daemon.status().lock().unwrap()), 2, "each is told once");
}

/// A driver that does not load shows as a node without accelerators. It was up, with nothing to give.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_accelerators_is_down() {
    let mut site = Site::new(&["n0", "n1"], Fencing::Keep);
    site.nodes[1].config.devices = "nvml:/nowhere/libnvidia-ml.so.1".parse().unwrap();
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    let is_read = |status: &DaemonStatus| status.nodes.iter().any(|node| node.name == "n0" && node.gpus == 2);
    until(&mut daemon, "the accelerators of n0", is_read).await;
    let status = until(&mut daemon, "a word of n1", |status| {
        status.nodes.iter().any(|node| node.name == "n1" && node.health == NodeHealth::Down)
    });
    let status = status.await;
    let node = |name: &str| status.nodes.iter().find(|node| node.name == name).unwrap();
    assert_eq!((node("n0").health, node("n1").health), (NodeHealth::Up, NodeHealth::Down));
    let text = &node("n1").note;
    assert!(node("n1").gpus == 0 && text.contains("/nowhere/libnvidia-ml.so.1"), "{text}");
}
