//! Parts of accelerators: which ones an order means, and whether there is room on them.

use std::collections::BTreeMap;

use super::live::LiveJob;
use super::nodes::{AgentNodes, WantedDevices};
use super::place::check_up;
use crate::engine::{AcceleratorShare, OnNode};

/// Compute, in percent, and memory, in MiB, that jobs are to hold of accelerators, by UUID. Whole accelerators are not
/// here.
pub struct GivenParts<'a>(BTreeMap<&'a str, (u32, u64)>);

impl<'a> GivenParts<'a> {
    /// The parts that the attempts of `jobs` are to hold.
    pub fn of(jobs: impl Iterator<Item = &'a LiveJob>) -> Self {
        let mut given: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
        for (job, share) in jobs.filter_map(|job| Some((job, job.share?))) {
            let on = job.current.iter().flat_map(|current| &current.placement);
            for uuid in on.flat_map(|on| &on.accelerators) {
                let (compute, memory) = given.entry(uuid).or_default();
                *compute += u32::from(share.compute_percent);
                *memory += u64::from(share.memory_mib);
            }
        }
        Self(given)
    }

    /// Percent of compute given, where another part fits beside what is given of an accelerator of `total` MiB.
    fn beside(&self, uuid: &str, share: AcceleratorShare, total: Option<u64>) -> Option<u32> {
        let &(compute, memory) = self.0.get(uuid)?;
        let fits = compute + u32::from(share.compute_percent) <= 100
            && total.is_none_or(|total| memory + u64::from(share.memory_mib) <= total);
        fits.then_some(compute)
    }
}

/// The accelerators of `on` with room for a part each; why not now where there are too few.
///
/// An accelerator that the order names is taken where it is free or shared with room. In place of another one comes the
/// fullest shared one with room, then a free one: a plan numbers accelerators that are held whole as it likes.
pub fn parts_on_node(
    on: &OnNode,
    share: AcceleratorShare,
    nodes: &AgentNodes,
    (wanted, given): (&WantedDevices<'_>, &GivenParts<'_>),
) -> Result<OnNode, String> {
    let name = &on.node;
    check_up(name, nodes)?;
    let mut room: Vec<(usize, &str, u32)> = Vec::new();
    for (number, device) in nodes.fit(name).into_iter().enumerate() {
        let free = || nodes.is_free(name, &device.uuid, wanted).then_some(0);
        if let Some(compute) = given.beside(&device.uuid, share, device.memory_mib).or_else(free) {
            room.push((number, &device.uuid, compute));
        }
    }
    let mut chosen: Vec<Option<String>> = vec![None; on.gpus as usize];
    let named = on.accelerators.iter().map(|number| number.parse::<usize>().ok());
    for (place, number) in chosen.iter_mut().zip(named) {
        if let Some(at) = room.iter().position(|(known, ..)| Some(*known) == number) {
            *place = Some(room.remove(at).1.to_owned());
        }
    }
    // The sort is stable, so the first of equals is taken.
    room.sort_by_key(|&(.., compute)| std::cmp::Reverse(compute));
    let mut others = room.into_iter().map(|(_, uuid, _)| uuid.to_owned());
    let accelerators: Option<Vec<String>> = chosen.into_iter().map(|uuid| uuid.or_else(|| others.next())).collect();
    let (percent, mib) = (share.compute_percent, share.memory_mib);
    let accelerators = accelerators.ok_or_else(|| {
        format!("node {name} has no {} accelerators with room for {percent} % and {mib} MiB", on.gpus)
    })?;
    Ok(OnNode { node: name.clone(), gpus: on.gpus, accelerators })
}
