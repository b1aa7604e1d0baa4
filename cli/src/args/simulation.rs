//! Options of `sim`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use goodput_console::OutputFormat;
use goodput_env::scenario::{Allocation, Preset};

/// Options of `sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: one heuristic under the conventions of the Pollux OSDI'21 artifact
  goodput sim --workload workload-6.csv --policy tiresias --cluster 16x4 \\
      --preset pollux-osdi21 -o csv
Example: one of Gavel's policies as its simulator runs it
  goodput sim --workload medium_test.trace --throughputs simulation_throughputs.json \\
      --cluster v100:2x1,p100:4x1,k80:6x1 --policy gavel-max-min@replica --preset gavel-osdi20")]
pub struct Sim {
    /// Workload: Parquet as written by `data import`, or csv (see `goodput list formats`).
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Policy by name (see `goodput list policies`) with its parameters as in 'gandiva(quantum_secs=600)', a policy
    /// bundle, zoo:NAME (see `goodput list zoo`), or an external program (proc:COMMAND, python:MODULE:CLASS).
    #[arg(long, value_name = "NAME|BUNDLE")]
    pub policy: String,
    /// Nodes x accelerators per node, with types as in `t4:6x4,a100:2x8`; or a cluster file of the Tiresias simulator.
    #[arg(long, default_value = "16x4", value_name = "[TYPE:]NxG,...|FILE")]
    pub cluster: String,
    /// Gavel's throughputs by accelerator type: the workload is then one of Gavel's traces.
    #[arg(long, value_name = "FILE", conflicts_with = "profiles")]
    pub throughputs: Option<PathBuf>,
    /// Conventions of a published simulator (see `goodput list presets`).
    #[arg(long, value_parser = sim_preset(), value_name = "NAME")]
    pub preset: Option<SimPreset>,
    /// Way in which the workload's tenants share the cluster, by equal weights, under kueue, kai* and kubernetes*.
    #[arg(long, value_parser = allocation(), value_name = "NAME")]
    pub allocation: Option<Allocation>,
    /// Measured profiles, a directory per application, instead of the catalog; read as the preset's simulator
    /// reads them.
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// Exact step times for placements that the profiles have to interpolate.
    #[arg(long, value_name = "FILE", requires = "profiles")]
    pub step_times: Option<PathBuf>,
    /// Cost of a change of placement by name (see `goodput list switch-costs`) [default: the preset's, or
    /// pollux_const].
    #[arg(long, value_name = "NAME")]
    pub switch_cost: Option<String>,
    /// Slowdown of distributed jobs that share a node, in [0, 1).
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub interference: f64,
    /// Information that the policy has about jobs [default: as published].
    #[arg(long, value_enum)]
    pub information: Option<InformationLevel>,
    /// Log-standard deviation of estimates, with `--information estimate`.
    #[arg(long, default_value_t = 0.5, value_name = "SIGMA")]
    pub estimate_sigma: f64,
    /// Seed of the policy and of estimates.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Form of the rows.
    #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Preset of `sim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimPreset {
    /// Conventions of a simulator of jobs.
    Jobs(Preset),
    /// Protocol of FGD (ATC'23), in which pods are placed one by one.
    Pods,
}

/// Name of [`SimPreset::Pods`].
pub const PODS: &str = "fgd-atc23";

impl Sim {
    /// Preset of a simulator of jobs.
    pub fn conventions(&self) -> Option<Preset> {
        match self.preset {
            Some(SimPreset::Jobs(preset)) => Some(preset),
            Some(SimPreset::Pods) | None => None,
        }
    }
}

/// Parser of the name of a preset of `sim`.
fn sim_preset() -> impl TypedValueParser<Value = SimPreset> {
    let names = PossibleValuesParser::new(Preset::ALL.map(Preset::name).into_iter().chain([PODS]));
    names.try_map(|name| match Preset::by_name(&name) {
        Some(preset) => Ok(SimPreset::Jobs(preset)),
        None if name == PODS => Ok(SimPreset::Pods),
        None => Err("no such preset"),
    })
}

/// Parser of the name of a preset of jobs.
pub fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = PossibleValuesParser::new(Preset::ALL.map(Preset::name));
    names.try_map(|name| Preset::by_name(&name).ok_or("no such preset"))
}

/// Parser of the name of an allocation.
pub fn allocation() -> impl TypedValueParser<Value = Allocation> {
    let names = PossibleValuesParser::new(Allocation::ALL.map(Allocation::name));
    names.try_map(|name| Allocation::by_name(&name).ok_or("no such allocation"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InformationLevel {
    /// Measurements of the jobs themselves, and nothing else.
    Profiled,
    /// Catalogued models, remaining work with an error.
    Estimate,
    /// Exact models and exact remaining work.
    Oracle,
}
