//! Allocated accelerators after the openb trace by strategy (Weng et al., ATC'23, figures 7, 9 and
//! 11), and what ties alone change.
//!
//! The protocol of the artifact: pods drawn with replacement, those without accelerators included,
//! are added until requests reach 130 % of the cluster; all are shuffled and placed one by one;
//! what does not fit is dropped and nothing leaves. The measure is thousandths allocated at the end
//! over all thousandths. The artifact also puts a random number before each node's name and breaks
//! ties by the smallest name, so its order of nodes is one drawn order a run:
//! [`TieBreak::FixedRandom`].

use std::collections::BTreeMap;
use std::path::Path;

use goodput_agents::placement::fractional::strategy::{self, Fgd, Gradient};
use goodput_agents::placement::fractional::{Fragmentation, Kinds, Node, Placer, Request, Strategy, TieBreak};
use goodput_datasets::DataError;
use goodput_datasets::import::openb::{self, NodeRow, OpenbRows, PodRow};
use goodput_env::cluster::TypeId;
use goodput_env::seed::{self, Stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::{ReproduceError, ReproducedFigure, Reproduction};

/// Reproduction of FGD's table of allocated accelerators.
pub const TABLE: Reproduction = Reproduction {
    name: "fgd-openb",
    about: "accelerators allocated by six placement strategies; 1,213 nodes, three lists of pods, 10 seeds",
    source: "Weng et al., ATC 2023; hkust-adsl/kubernetes-scheduler-simulator",
    files: FILES,
    run: |data| table(data, SEEDS),
};

/// Effect of ties on FGD's table.
pub const TIES: Reproduction = Reproduction {
    name: "fgd-ties",
    about: "accelerators allocated by order among equal scores, and FGD with exact scores; default pods, 10 seeds",
    source: "ours; the artifact's order is fixed-random",
    files: FILES,
    run: |data| ties(data, SEEDS),
};

/// Runs of each case.
pub const SEEDS: u64 = 10;

/// Part of the cluster requested in the end, percent.
const INFLATED_PERCENT: u64 = 130;
/// Part of all pods that the typical ones make up at least, percent.
const TYPICAL_PERCENT: u32 = 95;

pub(super) const FILES: &[&str] = &[
    "data/openb/openb_node_list_gpu_node.csv",
    "data/openb/openb_pod_list_default.csv",
    "data/openb/openb_pod_list_gpushare40.csv",
    "data/openb/openb_pod_list_multigpu20.csv",
    PUBLISHED,
];
pub(super) const PUBLISHED: &str = "reference/openb/fgd_published_alloc_max_pct.json";

/// Our name, the artifact's.
pub(super) const STRATEGIES: [(&str, &str); 6] = [
    ("random", "01-Random"),
    ("dot-product", "02-DotProd"),
    ("gpu-clustering", "03-GpuClustering"),
    ("gpu-packing", "04-GpuPacking"),
    ("best-fit", "05-BestFit"),
    ("fgd", "06-FGD"),
];

/// Nodes and pods of one list.
#[derive(Clone, Debug)]
pub struct Openb {
    /// The machines, idle.
    pub nodes: Vec<Node>,
    /// The requests, in the order of the file.
    pub pods: Vec<Request>,
    /// Thousandths of all accelerators.
    pub total_milli: u64,
    /// The typical requests.
    pub typical: Fragmentation,
}

impl Openb {
    /// Reads the nodes with accelerators and the pods of `list`, such as `default`, below `data`.
    ///
    /// # Errors
    /// Where a file is unusable or any row of it refused: a part of a trace compares with nothing.
    pub fn read(data: &Path, list: &str) -> Result<Self, ReproduceError> {
        Self::of_files(&data.join(FILES[0]), &data.join(format!("data/openb/openb_pod_list_{list}.csv")))
    }

    /// Reads a list of nodes and a list of pods.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_files(nodes: &Path, pods: &Path) -> Result<Self, ReproduceError> {
        let node_rows = strict(nodes, openb::nodes)?;
        let pod_rows = strict(pods, openb::pods)?;
        let mut kinds = BTreeMap::new();
        let nodes: Vec<Node> = node_rows.iter().map(|row| node(row, &mut kinds)).collect();
        let pods: Vec<Request> = pod_rows.iter().map(|row| pod(row, &mut kinds)).collect();
        let total_milli = nodes.iter().map(|node| u64::from(node.idle_milli())).sum();
        let typical = Fragmentation::of_requests(&pods, TYPICAL_PERCENT);
        Ok(Self { nodes, pods, total_milli, typical })
    }

    /// The pods in the order of arrival: inflated and shuffled.
    pub fn arrivals(&self, seed: u64) -> Vec<Request> {
        let mut rng = seed::rng(seed, Stream::Workload);
        let mut pods = self.pods.clone();
        let mut requested: u64 = pods.iter().map(|pod| u64::from(pod.total_milli())).sum();
        let enough = self.total_milli * INFLATED_PERCENT / 100;
        loop {
            let pod = self.pods[rng.random_range(0..self.pods.len())];
            // The artifact asks with the thousandths of one accelerator only.
            if requested + u64::from(pod.milli) > enough {
                break;
            }
            requested += u64::from(pod.total_milli());
            pods.push(pod);
        }
        pods.shuffle(&mut rng);
        pods
    }

    /// Accelerators allocated after all arrivals of a seed, percent.
    pub fn allocated_percent(&self, strategy: Box<dyn Strategy>, ties: TieBreak, seed: u64) -> f64 {
        self.percent(&self.placements(strategy, ties, seed))
    }

    /// The pods in the order of arrival, each with the index of its node; `None` where no node had room.
    pub fn placements(&self, strategy: Box<dyn Strategy>, ties: TieBreak, seed: u64) -> Vec<(Request, Option<u32>)> {
        let mut placer = Placer::new(self.nodes.clone(), strategy, ties, seed);
        let place = |pod: Request| {
            let node = placer.place(&pod).map(|placed| placed.node);
            (pod, node)
        };
        self.arrivals(seed).into_iter().map(place).collect()
    }

    /// Thousandths that these placements hold of all accelerators, percent.
    pub fn percent(&self, placements: &[(Request, Option<u32>)]) -> f64 {
        let placed = placements.iter().filter(|(_, node)| node.is_some());
        let milli: u64 = placed.map(|(pod, _)| u64::from(pod.total_milli())).sum();
        milli as f64 * 100.0 / self.total_milli as f64
    }

    /// [`Self::allocated_percent`] by seeds from 0.
    pub fn by_seed(&self, seeds: u64, ties: TieBreak, strategy: impl Fn() -> Box<dyn Strategy> + Sync) -> Vec<f64> {
        (0..seeds).into_par_iter().map(|seed| self.allocated_percent(strategy(), ties, seed)).collect()
    }
}

/// The six strategies on the three lists, means over `seeds`.
///
/// # Errors
/// Where a file is unusable.
pub fn table(data: &Path, seeds: u64) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    of_lists(data, &["default", "gpushare40", "multigpu20"], seeds)
}

/// The six strategies on these lists of pods, means over `seeds`.
pub(super) fn of_lists(data: &Path, lists: &[&str], seeds: u64) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let published = published(&data.join(PUBLISHED))?;
    let mut figures = Vec::new();
    for list in lists {
        let trace = Openb::read(data, list)?;
        for (name, theirs) in STRATEGIES {
            let ours = trace.by_seed(seeds, TieBreak::FixedRandom, || named(name, &trace.typical));
            let theirs = published.get(&format!("openb_pod_list_{list}")).and_then(|row| row.get(theirs));
            let theirs = theirs.map(|&(percent, _, _)| percent);
            figures.push(ReproducedFigure {
                case: format!("{name} {list}"),
                metric: "allocated_percent",
                theirs,
                ours: mean(&ours),
            });
        }
    }
    Ok(figures)
}

/// Each strategy and FGD with exact scores under each order among equals, on the default list,
/// means over `seeds`.
///
/// # Errors
/// Where a file is unusable.
pub fn ties(data: &Path, seeds: u64) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let published = published(&data.join(PUBLISHED))?;
    let trace = Openb::read(data, "default")?;
    let mut figures = Vec::new();
    for (name, theirs) in STRATEGIES.into_iter().skip(1).chain([("fgd-exact", "")]) {
        for ties in TieBreak::ALL {
            let ours = trace.by_seed(seeds, ties, || match name {
                "fgd-exact" => Box::new(Fgd::new(trace.typical.clone(), Gradient::Exact)),
                _ => named(name, &trace.typical),
            });
            let theirs = published["openb_pod_list_default"].get(theirs).filter(|_| ties == TieBreak::FixedRandom);
            let case = format!("{name} {}", ties.name());
            let theirs = theirs.map(|&(percent, _, _)| percent);
            figures.push(ReproducedFigure { case, metric: "allocated_percent", theirs, ours: mean(&ours) });
        }
    }
    Ok(figures)
}

fn named(name: &str, typical: &Fragmentation) -> Box<dyn Strategy> {
    strategy::by_name(name, typical).expect("strategies of the table are in the list")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn strict<T>(path: &Path, parse: fn(&Path, &[u8]) -> OpenbRows<T>) -> Result<Vec<T>, DataError> {
    let text = std::fs::read(path).map_err(|source| DataError::Read { path: path.to_owned(), source })?;
    let (rows, report) = parse(path, &text)?;
    match report.refused.examples.into_iter().next() {
        Some((line, problem)) => Err(DataError::Row { path: path.to_owned(), line, problem }),
        None => Ok(rows),
    }
}

/// Indices of accelerator types in the order met.
type NodeTypes = BTreeMap<String, TypeId>;

fn kind(name: &str, types: &mut NodeTypes) -> TypeId {
    let next = TypeId::at(types.len());
    *types.entry(name.to_owned()).or_insert(next)
}

fn node(row: &NodeRow, types: &mut NodeTypes) -> Node {
    let kind = kind(row.model.as_deref().unwrap_or(""), types);
    Node::idle(kind, row.cpu_milli, row.memory_mib, row.gpus)
}

fn pod(row: &PodRow, types: &mut NodeTypes) -> Request {
    let kinds = row.models.iter().fold(Kinds::ANY, |kinds, model| kinds.with(kind(model, types)));
    let PodRow { cpu_milli, memory_mib, gpus, gpu_milli, .. } = *row;
    Request { cpu_milli, memory_mib, accelerators: gpus, milli: gpu_milli, kinds }
}

/// By list and strategy: mean percent, standard deviation, runs.
pub(super) type PublishedAllocation = BTreeMap<String, BTreeMap<String, (f64, f64, u32)>>;

pub(super) fn published(path: &Path) -> Result<PublishedAllocation, ReproduceError> {
    let reference = |problem: String| ReproduceError::Reference { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| reference(error.to_string()))?;
    let published: PublishedAllocation = serde_json::from_str(&text).map_err(|error| reference(error.to_string()))?;
    match published.contains_key("openb_pod_list_default") {
        true => Ok(published),
        false => Err(reference("has no openb_pod_list_default".into())),
    }
}
