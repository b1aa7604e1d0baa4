//! Trained policies that come with the product, each in a folder of `agents/zoo` with its model card: what it learned from, by which command,
//! what came of it, where it ends. Users type `zoo:NAME` wherever a bundle is asked for.
//!
//! They are part of the program, so a name works without a checkout, and a test refuses to let one go stale.

use std::path::Path;

use goodput_agents::bundle::PolicyBundle;
use goodput_env::gym::schema_hash;

use crate::fault::Fault;

/// What the name of a shipped policy begins with where a bundle or a policy is asked for.
pub const PREFIX: &str = "zoo:";

/// A shipped policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What users type after [`PREFIX`].
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    bytes: &'static [u8],
}

macro_rules! entry {
    ($name:literal, $about:literal) => {
        Entry {
            name: $name,
            about: $about,
            bytes: include_bytes!(concat!("../../agents/zoo/", $name, "/policy.bundle")),
        }
    };
}

/// All shipped policies.
pub const ZOO: &[Entry] = &[
    entry!("elastic", "elastic training on 64 accelerators, lengths unknown; learned utilities in a knapsack"),
    entry!("elastic-16", "the same, trained on 16 accelerators, to be run on more"),
    entry!(
        "quickstart",
        "a busy cluster of 64 accelerators, estimated lengths; a set encoder that imitated pollux-fast"
    ),
];

/// The bundle of the shipped policy `NAME`, for this program's observations.
pub fn load(name: &str) -> Result<PolicyBundle, Fault> {
    let Some(entry) = ZOO.iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = ZOO.iter().map(|entry| entry.name).collect();
        return Err(Fault::input(format!("there is no shipped policy {name:?}"))
            .with_help(format!("there are: {}", known.join(", "))));
    };
    let path = format!("{PREFIX}{name}");
    let bundle = PolicyBundle::from_bytes(entry.bytes, Path::new(&path)).map_err(Fault::input)?;
    bundle.checked(Path::new(&path), &schema_hash()).map_err(Fault::input)
}
