//! Entries of Gavel's policies in the list of policies.
#![allow(unused_braces, reason = "rustfmt puts braces around long arguments of a macro")]

use goodput_env::policy::Policy;
use goodput_env::seed::{Stream, rng};

use super::allox_rounds::AlloxQueues;
use super::config::{
    GavelConfig, GavelObjective, GavelPerExpense, GavelRoundLength, GavelRounds, PER_DOLLAR, PER_WATT, TypeSpeeds,
};
use super::fifo::{TypeChoice, TypeFifo};
use super::form::GavelForm;
use super::gandiva::GandivaPairs;
use super::policy::Gavel;
use super::python_random::PythonRandom;
use super::water_filling::Inside;
use crate::allocation::expense::Expense;
use crate::heuristic::parameters::Parameterised;
use crate::heuristic::{ListedPolicy, Traits};

/// Spot prices an hour of Google Cloud that the paper's evaluation uses, dollars.
const PRICES: &[(&str, f64)] = &[("v100", 0.74), ("p100", 0.43), ("k80", 0.135)];

const SOURCE: &str = "Narayanan et al., OSDI 2020; stanford-futuredata/gavel";
const AWARE: Traits = Traits { preemptive: true, elastic: false, heterogeneous: true };
const UNAWARE: Traits = Traits { preemptive: true, elastic: false, heterogeneous: false };

macro_rules! listed {
    ($name:literal, $about:literal, $traits:expr, |$seed:ident, $form:ident| $objective:expr) => {
        ListedPolicy {
            name: $name,
            about: $about,
            source: SOURCE,
            traits: $traits,
            constructor: &Parameterised {
                defaults: GavelRounds::default,
                build: |rounds, $seed| {
                    let $form = GavelForm::Published;
                    let objective = $objective;
                    made(objective, $traits, $seed, GavelForm::Published, *rounds)
                },
            },
            replica: Some(|$seed| {
                let $form = GavelForm::Artifact;
                let objective = $objective;
                made(objective, $traits, $seed, GavelForm::Artifact, GavelRounds::default())
            }),
        }
    };
}

/// Entries in the list of policies.
pub const LISTED: &[ListedPolicy] = &[
    listed!("gavel-isolated", "an equal part of the cluster for each job", UNAWARE, |_seed, _form| {
        GavelObjective::Isolated
    }),
    listed!("gavel-max-min", "max-min fairness over speeds on types", AWARE, |_seed, _form| GavelObjective::MaxMin),
    listed!("gavel-max-min-agnostic", "max-min fairness over time, blind to types", UNAWARE, |_seed, _form| {
        GavelObjective::MaxMin
    }),
    listed!("gavel-water-filling", "max-min fairness, carried on above the minimum", AWARE, |_seed, _form| {
        GavelObjective::WaterFilling
    }),
    listed!("gavel-hierarchical", "water-filling over tenants, fair inside each", AWARE, |_seed, _form| {
        GavelObjective::Hierarchical(Inside::Fair)
    }),
    listed!(
        "gavel-hierarchical-fifo",
        "water-filling over tenants, first in, first out inside",
        AWARE,
        |_seed, _form| { GavelObjective::Hierarchical(Inside::Fifo) }
    ),
    listed!("gavel-ftf", "finish-time fairness over speeds on types", AWARE, |_seed, _form| {
        GavelObjective::FinishTime
    }),
    listed!("gavel-ftf-agnostic", "finish-time fairness, blind to types", UNAWARE, |_seed, _form| {
        GavelObjective::FinishTime
    }),
    listed!("gavel-makespan", "least time for all jobs", AWARE, |_seed, _form| GavelObjective::Makespan),
    listed!("gavel-makespan-agnostic", "least time for all jobs, blind to types", UNAWARE, |_seed, _form| {
        GavelObjective::Makespan
    }),
    listed!(
        "gavel-min-jct",
        "least sum of completion times if all jobs ran at fixed shares to the end; long jobs get the larger shares",
        AWARE,
        |_seed, _form| { GavelObjective::MinJct }
    ),
    ListedPolicy {
        name: "gavel-sjf",
        about: "shortest job first on the fastest types, then the next",
        source: SOURCE,
        traits: AWARE,
        constructor: &Parameterised {
            defaults: GavelRounds::default,
            build: |rounds, seed| made(GavelObjective::ShortestFirst, AWARE, seed, GavelForm::Published, *rounds),
        },
        replica: None,
    },
    listed!("gavel-max-throughput", "most steps per second over all jobs", AWARE, |_seed, _form| {
        GavelObjective::MaxThroughput
    }),
    listed!("gavel-cost", "most steps per dollar over all jobs", AWARE, |_seed, _form| {
        GavelObjective::Cost(PRICES.to_vec())
    }),
    listed!(
        "gavel-cost-slo",
        "most steps per dollar while jobs with a deadline are done by it",
        AWARE,
        |_seed, _form| { GavelObjective::CostWithDeadlines(PRICES.to_vec()) }
    ),
    ListedPolicy {
        name: PER_WATT,
        about: "most steps per watt over all jobs, by the greatest power of each type",
        source: "this project; the cost objective of Narayanan et al., OSDI 2020, over power",
        traits: AWARE,
        constructor: &Parameterised {
            defaults: GavelPerExpense::default,
            build: |terms, seed| {
                made(terms.objective(Expense::Power), AWARE, seed, GavelForm::Published, terms.rounds())
            },
        },
        replica: None,
    },
    ListedPolicy {
        name: PER_DOLLAR,
        about: "most steps per dollar over all jobs, by the price of each type in the catalog",
        source: "Narayanan et al., OSDI 2020, cost objective; prices of the catalog",
        traits: AWARE,
        constructor: &Parameterised {
            defaults: GavelPerExpense::default,
            build: |terms, seed| {
                made(terms.objective(Expense::Price), AWARE, seed, GavelForm::Published, terms.rounds())
            },
        },
        replica: None,
    },
    ListedPolicy {
        name: "gavel-max-min-packed",
        about: "max-min fairness over speeds on types, pairs of jobs sharing accelerators where that is faster",
        source: SOURCE,
        traits: AWARE,
        constructor: &Parameterised {
            defaults: GavelRounds::default,
            build: |rounds, seed| {
                let published = GavelConfig::published(GavelObjective::MaxMin, TypeSpeeds::Known, seed);
                Box::new(Gavel::new(GavelConfig { sharing: true, rounds: *rounds, ..published }))
            },
        },
        replica: None,
    },
    listed!("gavel-fifo", "oldest first, on a type drawn at random", UNAWARE, |seed, form| {
        GavelObjective::Fifo(TypeFifo::new(match form {
            GavelForm::Artifact => TypeChoice::LastOfAll(Box::new(PythonRandom::new(seed))),
            _ => TypeChoice::Random(Box::new(rng(seed, Stream::Policy))),
        }))
    }),
    ListedPolicy {
        name: "gavel-fifo-perf",
        about: "oldest first, on the fastest type left",
        source: SOURCE,
        traits: AWARE,
        // Shares are whole and always fit, so nothing depends on counts of received time.
        constructor: &Parameterised {
            defaults: GavelRoundLength::default,
            build: |length, seed| fifo_perf(seed, GavelForm::Published, length.rounds()),
        },
        replica: Some(|seed| fifo_perf(seed, GavelForm::Artifact, GavelRounds::default())),
    },
    ListedPolicy {
        name: "gavel-gandiva-fair",
        about: "equal time for all jobs, whatever their number of accelerators",
        source: SHOCKWAVE,
        traits: UNAWARE,
        constructor: &Parameterised {
            defaults: GavelRounds::default,
            build: |rounds, seed| made(GavelObjective::EqualTime, UNAWARE, seed, GavelForm::Published, *rounds),
        },
        replica: None,
    },
    ListedPolicy {
        name: "gavel-allox",
        about: "heads of AlloX's queues keep their accelerators; jobs of several are matched as if they needed one",
        source: SHOCKWAVE,
        traits: AWARE,
        constructor: &Parameterised {
            defaults: GavelRounds::default,
            build: |rounds, seed| {
                let objective = GavelObjective::Allox(AlloxQueues::new(ALLOX_FRACTION));
                made(objective, AWARE, seed, GavelForm::Published, *rounds)
            },
        },
        replica: None,
    },
    listed!(
        "gavel-gandiva",
        "random pairs share accelerators when there are more jobs than those",
        UNAWARE,
        |seed, form| { GavelObjective::Gandiva(GandivaPairs::new(seed, form)) }
    ),
];

/// Part of the waiting jobs that AlloX matches (`utils.py` of the artifacts).
pub const ALLOX_FRACTION: f64 = 0.2;

const SHOCKWAVE: &str = "uw-mad-dash/shockwave, policies; Zheng et al., NSDI 2023";

fn fifo_perf(seed: u64, form: GavelForm, rounds: GavelRounds) -> Box<dyn Policy> {
    made(GavelObjective::Fifo(TypeFifo::new(TypeChoice::Fastest)), AWARE, seed, form, rounds)
}

fn made(objective: GavelObjective, traits: Traits, seed: u64, form: GavelForm, rounds: GavelRounds) -> Box<dyn Policy> {
    let types = if traits.heterogeneous { TypeSpeeds::Known } else { TypeSpeeds::Hidden };
    Box::new(Gavel::new(GavelConfig { form, rounds, ..GavelConfig::published(objective, types, seed) }))
}
