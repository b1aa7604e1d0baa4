//! List of switch cost models by the names that users type.

use super::SwitchCost;

/// Switch cost model in the list.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Name that users type.
    pub name: &'static str,
    /// Costs of the model, in one line.
    pub about: &'static str,
    /// Source of the figures.
    pub source: &'static str,
    /// Model of this name.
    pub cost: SwitchCost,
}

const fn named(name: &'static str, cost: SwitchCost, about: &'static str, source: &'static str) -> Named {
    Named { name, about, source, cost }
}

const DEEPBOOT: &str = "DeepBoot artifact (TPDS 2023), applications.py";
const SIA: &str = "Sia artifact (SOSP 2023), sia-simulator";
const PIPESWITCH: &str = "PipeSwitch repository (OSDI 2020), log-1019.txt; V100";
const ASSUMED: &str = "parts after Tiresias (NSDI 2019); times derived, bandwidths assumed";

/// All switch cost models, the cheapest kind first.
pub const NAMED: &[Named] = &[
    named("zero", SwitchCost::Zero, "nothing", "the ideal; also the Tiresias simulator (NSDI 2019)"),
    named("pollux_const", SwitchCost::POLLUX, "30 s for any change", "Pollux artifact (OSDI 2021), simulator.py"),
    named(
        "shockwave_const",
        SwitchCost::SHOCKWAVE,
        "20 s for any change",
        "Shockwave artifact (NSDI 2023), scheduler.py",
    ),
    named(
        "elasticflow",
        SwitchCost::ElasticFlow,
        "9 s on one accelerator for any change, and 2 s more for each doubling",
        "ElasticFlow artifact (ASPLOS 2023), utils.py",
    ),
    named("deepboot_full", SwitchCost::DeepbootFull, "a cold start, 18 to 103 s, for any change", DEEPBOOT),
    named("deepboot_uniform", SwitchCost::DeepbootUniform, "60 s for any change", DEEPBOOT),
    named(
        "deepboot_afe",
        SwitchCost::DeepbootAfe,
        "cold start; growing pays for the new share only, shrinking 1 to 5 s",
        DEEPBOOT,
    ),
    named("deepboot_infer", SwitchCost::DeepbootInfer, "cold start of a serving replica, 4 to 8 s", DEEPBOOT),
    named("sia_full", SwitchCost::SiaFull, "15 to 250 s for any change", SIA),
    named("sia_policy", SwitchCost::SiaPolicy, "what the deployed Sia believes", "Sia artifact, adaptdl_sched"),
    named("sia_simulated_policy", SwitchCost::SiaSimulatedPolicy, "what Sia's simulated policy believes", SIA),
    named(
        "coddl",
        SwitchCost::Coddl,
        "growing idles new accelerators only, shrinking is free; resizes overlap",
        "CoDDL (AFS, NSDI 2021); start-up time of DeepBoot as a stand-in",
    ),
    named("pipeswitch", SwitchCost::PipeSwitch, "1 to 15 ms: pre-initialised contexts, pipelined transfer", PIPESWITCH),
    named("stop_next", SwitchCost::StopNext, "0.15 to 0.19 s: the next process is alive already", PIPESWITCH),
    named("mps", SwitchCost::Mps, "0.42 to 0.62 s: both processes share the device", PIPESWITCH),
    named("kill_restart", SwitchCost::KillRestart, "5.6 to 7.2 s: a new process", PIPESWITCH),
    named(
        "seed_range",
        SwitchCost::SEED_RANGE,
        "uniform in 20 to 100 s, drawn for each restart",
        "range quoted for DeepBoot's testbed",
    ),
    named(
        "tiresias_paper",
        SwitchCost::checkpoint(500),
        "save, container, build, restore at 0.5 GB/s (NFS), warm-up",
        ASSUMED,
    ),
    named("checkpoint_nvme", SwitchCost::checkpoint(2_000), "the same at 2 GB/s (local NVMe)", ASSUMED),
    named("checkpoint_pcie", SwitchCost::checkpoint(12_000), "the same at 12 GB/s (host memory over PCIe)", ASSUMED),
];
