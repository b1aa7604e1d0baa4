//! DeepBoot with the idle accelerators of an inference cluster and without: half of the 16 nodes
//! are for training, half for inference, and either they are shared or they are not. Without
//! sharing, inference has its own nodes and does not matter to training. With it, requests are
//! answered on the inference half (`jct_with_secs`), or, as the scripts of DeepBoot's artifact have
//! it, anywhere (`jct_anywhere_secs`), so that inference also takes from the training half.

use std::path::Path;

use goodput_env::scenario::{Batching, Information};
use rayon::prelude::*;

use super::loads::{self, loads};
use super::{COSTS, SHAPE, cost, fair_options, jct_mean_secs, simulate, usage_percent, with_lending, without_lending};
use crate::metrics::requests::{latency_mean_secs, protect_hits};
use crate::reproduce::{ReproduceError, ReproducedFigure, Reproduction};

/// The table. Published are 32 % for a testbed and 38 % for a large simulation; which of these
/// loads either is like we do not know.
pub const LENDING: Reproduction = Reproduction {
    name: "deepboot-lending",
    about: "DeepBoot with and without idle inference GPUs at three inference loads, under four cost models; usage",
    source: "Chen et al., TPDS 2023, abstract: 32 % and 38 % lower mean completion time",
    files: &[loads::FILE],
    run,
};

fn run(data: &Path) -> Result<Vec<ReproducedFigure>, ReproduceError> {
    let loads = loads(data)?;
    let costs: Vec<&str> = COSTS.into_iter().chain(["deepboot_afe"]).collect();
    let cases: Vec<_> = costs.iter().flat_map(|&costs| loads.iter().map(move |load| (costs, load))).collect();
    let figures: Result<Vec<Vec<ReproducedFigure>>, ReproduceError> = cases
        .into_par_iter()
        .map(|(costs, load)| {
            let case = format!("{}, {costs}", load.name);
            let options = fair_options(Batching::Agent, Information::Profiled, cost(costs));
            let without = without_lending(&load.workload, options.clone(), &case)?;
            let with = with_lending(&load.workload, options.clone(), &case)?;
            let anywhere = simulate("deepboot", SHAPE.0, &load.workload, options, &case)?;
            let reduction = 100.0 * (1.0 - jct_mean_secs(&with) / jct_mean_secs(&without));
            let rows = [
                ("jct_without_secs", None, jct_mean_secs(&without)),
                ("jct_with_secs", None, jct_mean_secs(&with)),
                ("reduction_percent", None, reduction),
                ("jct_anywhere_secs", None, jct_mean_secs(&anywhere)),
                ("protect_hits_percent", None, 100.0 * protect_hits(&with).unwrap_or(0.0)),
                ("request_latency_secs", None, latency_mean_secs(&with).unwrap_or(0.0)),
                ("usage_with_percent", None, usage_percent(&with)),
            ];
            Ok(rows
                .map(|(metric, theirs, ours)| ReproducedFigure { case: case.clone(), metric, theirs, ours })
                .to_vec())
        })
        .collect();
    Ok(figures?.into_iter().flatten().collect())
}
