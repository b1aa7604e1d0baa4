//! Allocated accelerators after the other lists of pods of the openb trace (Weng et al., ATC'23): those that differ
//! from the default list in pods without accelerators (`cpu`), in pods on parts of accelerators (`gpushare`), in pods
//! that name a model of accelerator (`gpuspec`), and in pods on several accelerators (`multigpu`).

use super::Reproduction;
use super::fgd::{self, PUBLISHED, SEEDS};

/// Reproduction of FGD's table on the other lists of pods.
pub const LISTS: Reproduction = Reproduction {
    name: "fgd-lists",
    about: "accelerators allocated by six placement strategies; 1,213 nodes, fourteen more lists of pods, 10 seeds",
    source: "Weng et al., ATC 2023; hkust-adsl/kubernetes-scheduler-simulator",
    files: FILES,
    run: |data| fgd::of_lists(data, &NAMES, SEEDS),
};

/// Lists for which the artifact publishes a table, beside those of [`fgd::TABLE`].
pub const NAMES: [&str; 14] = [
    "cpu050",
    "cpu100",
    "cpu200",
    "cpu250",
    "gpushare60",
    "gpushare80",
    "gpushare100",
    "gpuspec10",
    "gpuspec20",
    "gpuspec25",
    "gpuspec33",
    "multigpu30",
    "multigpu40",
    "multigpu50",
];

const FILES: &[&str] = &[
    "data/openb/openb_node_list_gpu_node.csv",
    "data/openb/openb_pod_list_cpu050.csv",
    "data/openb/openb_pod_list_cpu100.csv",
    "data/openb/openb_pod_list_cpu200.csv",
    "data/openb/openb_pod_list_cpu250.csv",
    "data/openb/openb_pod_list_gpushare60.csv",
    "data/openb/openb_pod_list_gpushare80.csv",
    "data/openb/openb_pod_list_gpushare100.csv",
    "data/openb/openb_pod_list_gpuspec10.csv",
    "data/openb/openb_pod_list_gpuspec20.csv",
    "data/openb/openb_pod_list_gpuspec25.csv",
    "data/openb/openb_pod_list_gpuspec33.csv",
    "data/openb/openb_pod_list_multigpu30.csv",
    "data/openb/openb_pod_list_multigpu40.csv",
    "data/openb/openb_pod_list_multigpu50.csv",
    PUBLISHED,
];
