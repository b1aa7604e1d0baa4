//! Accelerators that an order means, and whether they are free.

use std::collections::BTreeSet;

use super::live::{Current, LiveJob};
use super::nodes::{AgentNodes, WantedDevices, wanted_devices};
use crate::engine::{AcceleratorShare, NodeHealth, OnNode};
use crate::job::Fence;

/// First port of rendezvous; attempts take turns with those after it, as AdaptDL's do.
const FIRST_PORT: u16 = 47_000;
const PORTS: u16 = 1000;

/// The attempt that `placement` means; why not now where it cannot be.
pub fn choose<'a>(
    placement: &[OnNode],
    share: Option<AcceleratorShare>,
    nodes: &AgentNodes,
    jobs: impl Iterator<Item = &'a LiveJob> + Clone,
    number: u32,
    now_ms: i64,
) -> Result<Current, String> {
    let Some(first) = placement.first() else { return Err("the placement is empty".to_owned()) };
    let wanted = wanted_devices(jobs.clone());
    let chosen = placement.iter().map(|on| on_node(on, share, nodes, &wanted));
    let placement = chosen.collect::<Result<Vec<OnNode>, String>>()?;
    let fence = Fence::random().map_err(|error| format!("no random numbers: {error}"))?;
    let address = nodes.address(&first.node).unwrap_or_default().to_owned();
    let held = jobs.filter_map(|job| job.current.as_ref()).filter(|current| current.master.0 == address);
    let taken: BTreeSet<u16> = held.map(|current| current.master.1).collect();
    // Turns begin anywhere: a port is not given again at once to the next attempt on a node.
    let turn = (now_ms % i64::from(PORTS)) as u16;
    let ports = (0..PORTS).map(|port| FIRST_PORT + (turn + port) % PORTS);
    let port = ports.into_iter().find(|port| !taken.contains(port)).unwrap_or(FIRST_PORT + turn);
    let master = (address, port);
    Ok(Current { number, fence, placement, master, since_ms: now_ms, leaving: false })
}

fn on_node(
    on: &OnNode,
    share: Option<AcceleratorShare>,
    nodes: &AgentNodes,
    wanted: &WantedDevices<'_>,
) -> Result<OnNode, String> {
    let name = &on.node;
    match nodes.health(name) {
        NodeHealth::Up => {}
        health => return Err(format!("node {name} is {health:?}").to_lowercase()),
    }
    let fit = nodes.fit(name);
    // A part of an accelerator may be given beside others: its agent adds up.
    let free = |uuid: &str| share.is_some() || nodes.is_free(name, uuid, wanted);
    let uuids: Vec<String> = if on.accelerators.is_empty() {
        fit.iter().map(|device| device.uuid.clone()).filter(|uuid| free(uuid)).take(on.gpus as usize).collect()
    } else {
        let known = |wanted: &&String| {
            let index = wanted.parse::<usize>().ok();
            fit.iter().position(|device| device.uuid == **wanted).or(index)
        };
        let found =
            on.accelerators.iter().filter_map(|wanted| fit.get(known(&wanted)?).map(|device| device.uuid.clone()));
        found.filter(|uuid| free(uuid)).collect()
    };
    if uuids.len() != on.gpus as usize {
        return Err(format!("node {name} has {} of {} accelerators free", uuids.len(), on.gpus));
    }
    Ok(OnNode { node: name.clone(), gpus: on.gpus, accelerators: uuids })
}
