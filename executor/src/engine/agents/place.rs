//! Accelerators that an order means, and whether they are free.

use std::collections::BTreeSet;

use super::live::{Current, LiveJob};
use super::membership::Membership;
use super::nodes::{AgentNodes, WantedDevices, wanted_devices};
use super::parts::{GivenParts, parts_on_node};
use crate::engine::{AcceleratorShare, NodeHealth, OnNode};
use crate::job::Fence;

/// First port of rendezvous; attempts take turns with those after it, as AdaptDL's do.
const FIRST_PORT: u16 = 47_000;
/// First port of members, which have to listen on theirs: Linux gives these to no connection by itself.
const FIRST_MEMBER_PORT: u16 = 27_000;
const PORTS: u16 = 1000;

/// The attempt that `placement` means, with members where it is elastic; why not now where it cannot be.
pub fn choose<'a>(
    placement: &[OnNode],
    share: Option<AcceleratorShare>,
    nodes: &AgentNodes,
    jobs: impl Iterator<Item = &'a LiveJob> + Clone,
    (number, elastic): (u32, bool),
    now_ms: i64,
) -> Result<Current, String> {
    let Some(first) = placement.first() else { return Err("the placement is empty".to_owned()) };
    let wanted = wanted_devices(jobs.clone());
    let given = GivenParts::of(jobs.clone());
    let chosen = placement.iter().map(|on| match share {
        Some(share) => parts_on_node(on, share, nodes, (&wanted, &given)),
        None => on_node(on, nodes, &wanted),
    });
    let placement = chosen.collect::<Result<Vec<OnNode>, String>>()?;
    let fence = Fence::random().map_err(|error| format!("no random numbers: {error}"))?;
    let address = nodes.address(&first.node).unwrap_or_default().to_owned();
    let mut ports = Ports::of(jobs, nodes);
    let port = ports.give(FIRST_PORT, &address, now_ms);
    let membership = elastic.then(|| Membership::begin(&placement, nodes, &mut ports, now_ms)).transpose()?;
    let master = (address, port);
    Ok(Current { number, fence, placement, master, since_ms: now_ms, leaving: false, membership })
}

/// Ports that attempts may listen on, by address.
pub struct Ports {
    taken: BTreeSet<(String, u16)>,
}

impl Ports {
    /// The ports that `jobs` leave.
    pub fn of<'a>(jobs: impl Iterator<Item = &'a LiveJob>, nodes: &AgentNodes) -> Self {
        let mut taken = BTreeSet::new();
        for current in jobs.filter_map(|job| job.current.as_ref()) {
            taken.insert(current.master.clone());
            let members = current.membership.iter().flat_map(Membership::ports);
            taken.extend(members.map(|(node, port)| (nodes.address(node).unwrap_or_default().to_owned(), port)));
        }
        Self { taken }
    }

    /// A port for a member at `address`.
    pub fn member(&mut self, address: &str, now_ms: i64) -> u16 {
        self.give(FIRST_MEMBER_PORT, address, now_ms)
    }

    /// A port of `address` that is not taken, of those from `first` on.
    fn give(&mut self, first: u16, address: &str, now_ms: i64) -> u16 {
        // Turns begin anywhere: a port is not given again at once to the next attempt on a node.
        let turn = (now_ms % i64::from(PORTS)) as u16;
        let mut ports = (0..PORTS).map(|port| first + (turn + port) % PORTS);
        let free = ports.find(|port| !self.taken.contains(&(address.to_owned(), *port)));
        let port = free.unwrap_or(first + turn);
        self.taken.insert((address.to_owned(), port));
        port
    }
}

/// The accelerators that `on` means; why not now where they cannot be given.
pub fn on_node(on: &OnNode, nodes: &AgentNodes, wanted: &WantedDevices<'_>) -> Result<OnNode, String> {
    let name = &on.node;
    check_up(name, nodes)?;
    let fit = nodes.fit(name);
    let free = |uuid: &str| nodes.is_free(name, uuid, wanted);
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

/// Whether a node can start jobs; why not where it cannot.
pub fn check_up(name: &str, nodes: &AgentNodes) -> Result<(), String> {
    match nodes.health(name) {
        NodeHealth::Up => Ok(()),
        health => Err(format!("node {name} is {health:?}").to_lowercase()),
    }
}
