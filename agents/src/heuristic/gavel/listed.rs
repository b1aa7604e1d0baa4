//! Gavel's policies in the list.
#![allow(unused_braces, reason = "rustfmt puts braces around long arguments of a macro")]

use goodput_env::policy::Policy;
use goodput_env::seed::{Stream, rng};

use super::config::{GavelConfig, Objective};
use super::fifo::{Fifo, Pick};
use super::gandiva::Gandiva;
use super::policy::Gavel;
use super::python_random::PythonRandom;
use super::water_filling::Inside;
use crate::heuristic::{Listed, Traits};

/// Spot prices an hour of Google Cloud that the paper's evaluation uses, dollars.
const PRICES: &[(&str, f64)] = &[("v100", 0.74), ("p100", 0.43), ("k80", 0.135)];

const SOURCE: &str = "Narayanan et al., OSDI 2020; stanford-futuredata/gavel";
const AWARE: Traits = Traits { preemptive: true, elastic: false, heterogeneous: true };
const BLIND: Traits = Traits { preemptive: true, elastic: false, heterogeneous: false };

macro_rules! listed {
    ($name:literal, $about:literal, $traits:expr, |$seed:ident, $artifact:ident| $objective:expr) => {
        Listed {
            name: $name,
            about: $about,
            source: SOURCE,
            traits: $traits,
            build: |$seed| {
                let $artifact = false;
                made($objective, $traits.heterogeneous, $seed, $artifact)
            },
            replica: Some(|$seed| {
                let $artifact = true;
                made($objective, $traits.heterogeneous, $seed, $artifact)
            }),
        }
    };
}

/// In the list of policies.
pub const LISTED: &[Listed] = &[
    listed!("gavel-isolated", "an equal part of the cluster for each job", BLIND, |_seed, _artifact| {
        Objective::Isolated
    }),
    listed!("gavel-max-min", "max-min fairness over speeds on types", AWARE, |_seed, _artifact| Objective::MaxMin),
    listed!("gavel-max-min-agnostic", "max-min fairness over time, blind to types", BLIND, |_seed, _artifact| {
        Objective::MaxMin
    }),
    listed!("gavel-water-filling", "max-min fairness, carried on above the minimum", AWARE, |_seed, _artifact| {
        Objective::WaterFilling
    }),
    listed!("gavel-hierarchical", "water-filling over tenants, fair inside each", AWARE, |_seed, _artifact| {
        Objective::Hierarchical(Inside::Fair)
    }),
    listed!(
        "gavel-hierarchical-fifo",
        "water-filling over tenants, first in, first out inside",
        AWARE,
        |_seed, _artifact| { Objective::Hierarchical(Inside::Fifo) }
    ),
    listed!("gavel-ftf", "finish-time fairness over speeds on types", AWARE, |_seed, _artifact| Objective::FinishTime),
    listed!("gavel-ftf-agnostic", "finish-time fairness, blind to types", BLIND, |_seed, _artifact| {
        Objective::FinishTime
    }),
    listed!("gavel-makespan", "least time for all jobs", AWARE, |_seed, _artifact| Objective::Makespan),
    listed!("gavel-makespan-agnostic", "least time for all jobs, blind to types", BLIND, |_seed, _artifact| {
        Objective::Makespan
    }),
    listed!("gavel-min-jct", "least sum of completion times", AWARE, |_seed, _artifact| Objective::MinJct),
    listed!("gavel-max-throughput", "most steps per second over all jobs", AWARE, |_seed, _artifact| {
        Objective::MaxThroughput
    }),
    listed!("gavel-cost", "most steps per dollar over all jobs", AWARE, |_seed, _artifact| {
        Objective::Cost(PRICES.to_vec())
    }),
    listed!(
        "gavel-cost-slo",
        "most steps per dollar while jobs with a deadline are done by it",
        AWARE,
        |_seed, _artifact| { Objective::CostWithDeadlines(PRICES.to_vec()) }
    ),
    Listed {
        name: "gavel-max-min-packed",
        about: "max-min fairness over speeds on types, pairs of jobs sharing accelerators where that is faster",
        source: SOURCE,
        traits: AWARE,
        build: |seed| {
            let published = GavelConfig::published(Objective::MaxMin, true, seed);
            Box::new(Gavel::new(GavelConfig { sharing: true, ..published }))
        },
        replica: None,
    },
    listed!("gavel-fifo", "oldest first, on a type drawn at random", BLIND, |seed, artifact| {
        Objective::Fifo(Fifo::new(match artifact {
            true => Pick::LastOfAll(Box::new(PythonRandom::new(seed))),
            false => Pick::Random(Box::new(rng(seed, Stream::Policy))),
        }))
    }),
    listed!("gavel-fifo-perf", "oldest first, on the fastest type left", AWARE, |_seed, _artifact| {
        Objective::Fifo(Fifo::new(Pick::Fastest))
    }),
    listed!(
        "gavel-gandiva",
        "random pairs share accelerators when there are more jobs than those",
        BLIND,
        |seed, artifact| { Objective::Gandiva(Gandiva::new(seed, artifact)) }
    ),
];

fn made(objective: Objective, aware: bool, seed: u64, artifact: bool) -> Box<dyn Policy> {
    Box::new(Gavel::new(GavelConfig { artifact, ..GavelConfig::published(objective, aware, seed) }))
}
