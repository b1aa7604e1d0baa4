//! Accelerators that an order means, and whether they are free.

use super::live::{Current, LiveJob};
use super::nodes::AgentNodes;
use crate::engine::{AcceleratorShare, NodeHealth, OnNode};
use crate::job::Fence;

/// First port of rendezvous; attempts take turns with those after it, as AdaptDL's do.
const FIRST_PORT: u16 = 47_000;
const PORTS: u32 = 1000;

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
    let chosen = placement.iter().map(|on| on_node(on, share, nodes, jobs.clone()));
    let placement = chosen.collect::<Result<Vec<OnNode>, String>>()?;
    let fence = Fence::random().map_err(|error| format!("no random numbers: {error}"))?;
    let address = nodes.address(&first.node).unwrap_or_default().to_owned();
    let taken: u32 = jobs.map(|job| job.starts).sum();
    let master = (address, FIRST_PORT + (taken % PORTS) as u16);
    Ok(Current { number, fence, placement, master, since_ms: now_ms, leaving: false })
}

fn on_node<'a>(
    on: &OnNode,
    share: Option<AcceleratorShare>,
    nodes: &AgentNodes,
    jobs: impl Iterator<Item = &'a LiveJob> + Clone,
) -> Result<OnNode, String> {
    let name = &on.node;
    match nodes.health(name) {
        NodeHealth::Up => {}
        health => return Err(format!("node {name} is {health:?}").to_lowercase()),
    }
    let fit = nodes.fit(name);
    // A part of an accelerator may be given beside others: its agent adds up.
    let free = |uuid: &str| share.is_some() || nodes.is_free(name, uuid, jobs.clone());
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
