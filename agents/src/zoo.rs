//! Trained policies and forecasters that come with the product, each in a folder of `agents/zoo` with its model
//! card: what it learned from, by which command, what came of it, where it ends. Users type
//! `zoo:NAME` wherever a bundle is asked for.
//!
//! They are part of the program, so a name works without a checkout, and a test refuses to let one
//! go stale.

use std::path::Path;

use crate::bundle::forecaster::{ForecasterBundle, ForecasterError};
use crate::bundle::{self, BundleError, PolicyBundle};
use crate::compose::serving::SavedForecaster;

/// Prefix of the names of shipped policies, wherever a bundle or a policy is asked for.
pub const PREFIX: &str = "zoo:";

/// A shipped policy.
#[derive(Clone, Copy, Debug)]
pub struct ShippedPolicy {
    /// Name that users type after [`PREFIX`].
    pub name: &'static str,
    /// Purpose in one line.
    pub about: &'static str,
    bytes: &'static [u8],
}

macro_rules! entry {
    ($name:literal, $about:literal) => {
        ShippedPolicy { name: $name, about: $about, bytes: include_bytes!(concat!("../zoo/", $name, "/policy.bundle")) }
    };
}

/// All shipped policies.
pub const ZOO: &[ShippedPolicy] = &[
    entry!(
        "capacity",
        "elastic training on 32 to 128 accelerators, with nodes that fail; learned utilities in a knapsack"
    ),
    entry!("elastic", "elastic training on 64 accelerators, lengths unknown; learned utilities in a knapsack"),
    entry!("elastic-16", "elastic training, learned on 16 accelerators, to be run on more"),
    entry!("heterogeneous", "elastic training on 64 accelerators of three types"),
    entry!(
        "mixed",
        "elastic training beside services on half of the cluster, lending and calling back servers by forecasts"
    ),
    entry!("quickstart", "a busy cluster of 64 accelerators, estimated lengths; learned utilities in a knapsack"),
    entry!("restart-costs", "elastic training where a restart takes from nothing to ten minutes; learned utilities"),
    entry!(
        "set-encoder",
        "a busy cluster of 64 accelerators, estimated lengths; a set encoder that imitated pollux-fast"
    ),
    entry!("slow-restarts", "elastic training on 64 accelerators where a restart takes ten minutes; learned utilities"),
];

/// Reads a bundle for this program's observations: a file, or `zoo:NAME`.
///
/// # Errors
/// When there is no such file or shipped policy, or it is not a sound bundle of this format and
/// schema.
pub fn open(path: &Path) -> Result<PolicyBundle, BundleError> {
    match path.to_str().and_then(|text| text.strip_prefix(PREFIX)) {
        Some(name) => load(name),
        None => PolicyBundle::load(path),
    }
}

/// The shipped policy `NAME`.
///
/// # Errors
/// When there is none.
pub fn load(name: &str) -> Result<PolicyBundle, BundleError> {
    let Some(entry) = ZOO.iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = ZOO.iter().map(|entry| entry.name).collect();
        return Err(BundleError::NotShipped { name: name.into(), known: known.join(", ") });
    };
    let path = format!("{PREFIX}{name}");
    PolicyBundle::from_bytes(entry.bytes, Path::new(&path))?.checked(Path::new(&path))
}

/// A shipped forecaster.
#[derive(Clone, Copy, Debug)]
pub struct ShippedForecaster {
    /// Name that users type after [`PREFIX`].
    pub name: &'static str,
    /// Purpose in one line.
    pub about: &'static str,
    bytes: &'static [u8],
}

/// All shipped forecasters.
pub const FORECASTERS: &[ShippedForecaster] = &[ShippedForecaster {
    name: "load",
    about: "one net for all load series, at any step: a learned choice among copies of the past week",
    bytes: include_bytes!("../zoo/load/forecaster.bundle"),
}];

/// Reads a trained forecaster: a file, or `zoo:NAME`.
///
/// # Errors
/// When there is no such file or shipped forecaster, or it is not a sound forecaster of this format.
pub fn open_forecaster(path: &Path) -> Result<ForecasterBundle, ForecasterError> {
    match path.to_str().and_then(|text| text.strip_prefix(PREFIX)) {
        Some(name) => forecaster(name),
        None => ForecasterBundle::load(path),
    }
}

/// Reads a forecaster of either kind: fitted, or trained; a file, or `zoo:NAME`.
///
/// # Errors
/// As [`open_forecaster`], or when the file is neither kind.
pub fn open_saved(path: &Path) -> Result<SavedForecaster, ForecasterError> {
    match path.to_str().and_then(|text| text.strip_prefix(PREFIX)) {
        Some(name) => forecaster(name).map(ForecasterBundle::into_saved),
        None => bundle::forecaster::open(path),
    }
}

fn forecaster(name: &str) -> Result<ForecasterBundle, ForecasterError> {
    let Some(entry) = FORECASTERS.iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = FORECASTERS.iter().map(|entry| entry.name).collect();
        return Err(ForecasterError::NotShipped { name: name.into(), known: known.join(", ") });
    };
    ForecasterBundle::from_bytes(entry.bytes, Path::new(&format!("{PREFIX}{name}")))
}
