//! Measurements of applications as the Sia artifact keeps them (SOSP'23, siasosp23/artifacts,
//! `sia-simulator/traces`): those of Pollux's (see [`super::pollux_profiles`]), repeated for each
//! accelerator type.
//!
//! Types are named by where they were measured: `aws` T4, `azure` V100, `dgx` and `dgx-ext` A100
//! (few and many batch sizes), `quad` RTX 6000, `rtx` 2080 Ti. A type's grid of batch sizes differs
//! from placement to placement, because its memory does; where a table has an even spread more than
//! once (the A100's, measured with replicas placed differently), the mean counts.
//!
//! Real runs were slower than these measurements by a factor that the artifact applies to progress
//! and not to what agents measure. Here the factor lengthens the work instead, which is equivalent.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use goodput_env::application::Application;
use goodput_env::cluster::{AcceleratorType, Cluster, Node, TypeId};
use goodput_env::model::{MeasuredStepTimes, ScalabilitySample};

use super::pollux_profiles::{self, ApplicationProfile};
use crate::catalog::Catalog;
use crate::error::DataError;

/// Accelerator types and the accelerators of a node of each (`simulator_config.py`).
pub const TYPES: [(&str, u32); 6] = [("aws", 4), ("azure", 8), ("dgx", 8), ("dgx-ext", 8), ("quad", 4), ("rtx", 8)];

/// Slowdown of real runs against the measurements, by application (`simulator_config.py`,
/// `SLOWDOWNS`).
pub const SLOWDOWNS: [(&str, f64); 6] =
    [("cifar10", 1.8), ("imagenet", 1.2), ("yolov3", 1.2), ("bert", 1.2), ("deepspeech2", 1.2), ("ncf", 1.5)];

/// Batches that the artifact forbids although one placement or another held them: application,
/// type, samples per replica.
const MEMORY: [(&str, &str, u32); 1] = [("deepspeech2", "rtx", 57)];

/// The default cluster of the artifact: 64 accelerators of three types.
pub fn cluster() -> Cluster {
    cluster_of(&[("aws", 6), ("dgx-ext", 2), ("rtx", 3)])
}

/// Cluster of the given numbers of nodes of each type of [`TYPES`]; other types are left out.
pub fn cluster_of(nodes: &[(&str, u32)]) -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    for &(name, count) in nodes {
        let Some(&(_, gpus)) = TYPES.iter().find(|(known, _)| *known == name) else { continue };
        let accelerator = TypeId::at(cluster.types.len());
        cluster.types.push(AcceleratorType::named(name));
        cluster.nodes.extend(std::iter::repeat_n(Node::new(accelerator, gpus), count as usize));
    }
    cluster
}

/// Reads every application below `dir` that has measurements of one replica into a catalog with
/// measured and fitted speeds of every accelerator type. Hybrid-parallel applications (`gpt_pmp`),
/// in which a replica spans accelerators, are left out.
///
/// # Errors
/// At the first file, row or table that is not usable.
pub fn catalog(dir: &Path) -> Result<Catalog, DataError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(DataError::read(dir))? {
        let path = entry.map_err(DataError::read(dir))?.path();
        let typed = TYPES.iter().any(|(name, _)| path.join(format!("placements-{name}.csv")).is_file());
        if typed && !path.ends_with("gpt_pmp") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(DataError::NoProfiles { path: dir.to_owned() });
    }
    paths.sort();
    let mut catalog = Catalog::default();
    for path in paths {
        catalog.push(application(&path)?, Vec::new());
    }
    Ok(catalog)
}

fn application(path: &Path) -> Result<Application, DataError> {
    let mut runs = pollux_profiles::runs(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let slowdown = SLOWDOWNS.iter().find(|(known, _)| *known == name).map_or(1.0, |(_, factor)| *factor);
    for value in runs.iter_mut().flat_map(|run| run.progress.iter_mut().chain(&mut run.iterations)) {
        *value *= slowdown;
    }
    let (mut measured, mut params) = (BTreeMap::new(), BTreeMap::new());
    let (mut least, mut most) = (u32::MAX, 0);
    let mut last = None;
    for (kind, _) in TYPES {
        let placements = path.join(format!("placements-{kind}.csv"));
        if !placements.is_file() {
            continue;
        }
        let (placements, _) = pollux_profiles::load(&placements, pollux_profiles::placement_rows)?;
        let scalability = path.join(format!("scalability-{kind}.csv"));
        let scalability = means(pollux_profiles::load(&scalability, pollux_profiles::spreads)?);
        let times = MeasuredStepTimes::new(&placements, &scalability, &[])
            .map_err(|source| DataError::Profile { path: path.to_owned(), source })?;
        let fits = MEMORY.iter().find(|(app, on, _)| *app == name && *on == kind).map_or(u32::MAX, |(.., most)| *most);
        least = placements.iter().map(|row| row.local_bsz).fold(least, u32::min);
        most = most.max(times.max_local());
        measured.insert(kind.to_owned(), Arc::new(times.limited_to(fits)));
        let profile = ApplicationProfile {
            path: path.to_owned(),
            name: name.clone(),
            placements,
            scalability,
            runs: runs.clone(),
        };
        params.insert(kind.to_owned(), goodput_env::model::fit(&profile.samples()));
        last = Some(profile);
    }
    let Some(profile) = last else {
        return Err(DataError::NoProfiles { path: path.to_owned() });
    };
    let limits = profile.limits_of(least, most)?;
    profile.application_on(limits, params, measured)
}

/// One row for each even spread and batch size: the mean of those there are.
fn means(rows: Vec<ScalabilitySample>) -> Vec<ScalabilitySample> {
    let mut sums: BTreeMap<(u32, u32, u32), (f64, f64, f64)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry((row.nodes, row.replicas, row.local_bsz)).or_default();
        *sum = (sum.0 + row.step_secs, sum.1 + row.sync_secs, sum.2 + 1.0);
    }
    let mean = |((nodes, replicas, local_bsz), (step, sync, count)): ((u32, u32, u32), (f64, f64, f64))| {
        ScalabilitySample { nodes, replicas, local_bsz, step_secs: step / count, sync_secs: sync / count }
    };
    sums.into_iter().map(mean).collect()
}
