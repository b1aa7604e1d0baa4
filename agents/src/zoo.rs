//! Trained policies that come with the product, each in a folder of `agents/zoo` with its model card: what it learned from, by which command,
//! what came of it, where it ends. Users type `zoo:NAME` wherever a bundle is asked for.
//!
//! They are part of the program, so a name works without a checkout, and a test refuses to let one go stale.

use std::path::Path;

use crate::bundle::{BundleError, PolicyBundle};

/// What the name of a shipped policy begins with where a bundle or a policy is asked for.
pub const PREFIX: &str = "zoo:";

/// Largest bundle that is shipped, bytes.
pub const LARGEST: usize = 200 * 1024;

/// A shipped policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What users type after [`PREFIX`].
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// The bundle.
    pub bytes: &'static [u8],
    /// Its model card, Markdown.
    pub card: &'static str,
}

macro_rules! entry {
    ($name:literal, $about:literal) => {
        Entry {
            name: $name,
            about: $about,
            bytes: include_bytes!(concat!("../zoo/", $name, "/policy.bundle")),
            card: include_str!(concat!("../zoo/", $name, "/card.md")),
        }
    };
}

/// All shipped policies.
pub const ZOO: &[Entry] = &[
    entry!(
        "elastic",
        "elastic training on 64 accelerators, nobody knows how long jobs take; learned utilities in a knapsack"
    ),
    entry!("elastic-16", "the same trained on 16 accelerators, for the page on size generalisation"),
    entry!(
        "quickstart",
        "a busy cluster of 64 accelerators, estimated lengths; a set encoder that imitated pollux-fast"
    ),
];

/// The shipped policy that users call `zoo:NAME`; `None` where `name` does not begin so or there is none.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    let name = name.strip_prefix(PREFIX)?;
    ZOO.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// Its bundle, for observations of this schema.
    ///
    /// # Errors
    /// [`BundleError::Schema`] where it was trained on another one; a test keeps that from being shipped.
    pub fn load(&self, schema_hash: &str) -> Result<PolicyBundle, BundleError> {
        let path = format!("{PREFIX}{}", self.name);
        PolicyBundle::from_bytes(self.bytes, Path::new(&path))?.checked(Path::new(&path), schema_hash)
    }
}
