//! Presets: conventions of published simulators by name, so that any workload can be run under them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Batching, EpochEnd, Information, InstanceOptions, Release, Rounds, SimOptions};
use crate::model::{AgentFit, SwitchCost};
use crate::time::SimTime;

/// Conventions of a published simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Preset {
    /// Simulator of Gavel (OSDI'20).
    #[serde(rename = "gavel-osdi20")]
    GavelOsdi20,
    /// Simulator of Shockwave (NSDI'23), built on Gavel's.
    #[serde(rename = "shockwave-nsdi23")]
    ShockwaveNsdi23,
    /// Simulator of Tiresias (NSDI'19).
    #[serde(rename = "tiresias-nsdi19")]
    TiresiasNsdi19,
    /// Simulator of Sia (SOSP'23).
    #[serde(rename = "sia-sosp23")]
    SiaSosp23,
    /// Simulator of DeepBoot (TPDS'23).
    #[serde(rename = "deepboot-tpds23")]
    DeepbootTpds23,
    /// Simulator of Pollux (OSDI'21).
    #[serde(rename = "pollux-osdi21")]
    PolluxOsdi21,
}

impl Preset {
    /// All presets, the oldest publication first.
    pub const ALL: [Self; 6] = [
        Self::TiresiasNsdi19,
        Self::GavelOsdi20,
        Self::PolluxOsdi21,
        Self::ShockwaveNsdi23,
        Self::SiaSosp23,
        Self::DeepbootTpds23,
    ];

    /// Name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::GavelOsdi20 => "gavel-osdi20",
            Self::ShockwaveNsdi23 => "shockwave-nsdi23",
            Self::TiresiasNsdi19 => "tiresias-nsdi19",
            Self::SiaSosp23 => "sia-sosp23",
            Self::DeepbootTpds23 => "deepboot-tpds23",
            Self::PolluxOsdi21 => "pollux-osdi21",
        }
    }

    /// Preset called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Conventions in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::GavelOsdi20 => "rounds of 360 s that the policy itself keeps; switches are free; lengths are known",
            Self::ShockwaveNsdi23 => {
                "rounds that the policy itself keeps; 20 s for a start, none for a move; lengths are known"
            }
            Self::TiresiasNsdi19 => "decisions at arrivals, completions and queue changes; switches are free",
            Self::SiaSosp23 => "as pollux-osdi21, restarts by application, free moves between equal nodes",
            Self::DeepbootTpds23 => "rounds of 60 s, fast elasticity, instances protected a second longer",
            Self::PolluxOsdi21 => "rounds of 60 s, release at round ends, restarts of 30 s",
        }
    }

    /// Publication, and the simulator that the conventions are read from.
    pub fn source(self) -> &'static str {
        match self {
            Self::GavelOsdi20 => "Narayanan et al., OSDI 2020; stanford-futuredata/gavel, commit c4fa400",
            Self::ShockwaveNsdi23 => "Zheng et al., NSDI 2023; uw-mad-dash/shockwave, scheduler.py, 8a44f4a",
            Self::TiresiasNsdi19 => "Gu et al., NSDI 2019; SymbioticLab/Tiresias, simulator, 959f9b0",
            Self::SiaSosp23 => "Jayaram Subramanya et al., SOSP 2023; siasosp23/artifacts",
            Self::DeepbootTpds23 => "Chen et al., TPDS 2023; czq693497091/DeepBoot, simulator",
            Self::PolluxOsdi21 => "Qiao et al., OSDI 2021; petuum/adaptdl, branch osdi21-artifact",
        }
    }

    /// Choice of batch sizes under all policies; `None` where it is each policy's own.
    pub fn batching(self) -> Option<Batching> {
        match self {
            Self::GavelOsdi20 | Self::ShockwaveNsdi23 | Self::TiresiasNsdi19 => Some(Batching::Requested),
            Self::SiaSosp23 | Self::DeepbootTpds23 | Self::PolluxOsdi21 => None,
        }
    }

    /// Knowledge of jobs that all policies have; `None` where it is each policy's own.
    pub fn information(self) -> Option<Information> {
        match self {
            Self::GavelOsdi20 | Self::ShockwaveNsdi23 | Self::TiresiasNsdi19 => Some(Information::Oracle),
            Self::SiaSosp23 | Self::DeepbootTpds23 | Self::PolluxOsdi21 => None,
        }
    }

    /// Search by which agents fit their models.
    pub fn agent_fit(self) -> AgentFit {
        match self {
            Self::GavelOsdi20 | Self::ShockwaveNsdi23 | Self::TiresiasNsdi19 => AgentFit::Converged,
            Self::SiaSosp23 | Self::DeepbootTpds23 | Self::PolluxOsdi21 => AgentFit::Lbfgsb,
        }
    }

    /// Moments at which a policy is asked that keeps rounds of the length `own` by itself, where it keeps any.
    ///
    /// Sia's simulator asks such a policy once in a round of its own.
    pub fn rounds(self, own: Option<SimTime>) -> Rounds {
        let every = |period| Rounds { period: Some(period), on_churn: false };
        let minute = SimTime::from_secs(60);
        match self {
            Self::GavelOsdi20 | Self::ShockwaveNsdi23 | Self::TiresiasNsdi19 => Rounds { period: None, on_churn: true },
            Self::SiaSosp23 => every(own.unwrap_or(minute)),
            Self::DeepbootTpds23 | Self::PolluxOsdi21 => every(minute),
        }
    }

    /// Options of a run of a policy without rounds of its own, which was published with this batching and at this
    /// level of information.
    pub fn options(self, batching: Batching, information: Information) -> SimOptions {
        let common = SimOptions {
            rounds: self.rounds(None),
            release: Release::Immediately,
            batching: self.batching().unwrap_or(batching),
            information: self.information().unwrap_or(information),
            agent_fit: self.agent_fit(),
            ..SimOptions::standard()
        };
        match self {
            Self::GavelOsdi20 | Self::TiresiasNsdi19 => SimOptions { switch_cost: SwitchCost::Zero, ..common },
            // Servers of one accelerator are not told apart, and a job that ran in the round before goes on.
            Self::ShockwaveNsdi23 => SimOptions { switch_cost: SwitchCost::SHOCKWAVE, free_moves: true, ..common },
            Self::PolluxOsdi21 => {
                SimOptions { release: Release::NextRound, epoch_end: EpochEnd::WholeSecond, ..common }
            }
            Self::SiaSosp23 => SimOptions {
                release: Release::NextRound,
                epoch_end: EpochEnd::WholeSecond,
                switch_cost: SwitchCost::SiaFull,
                free_moves: true,
                ..common
            },
            // Protection is a tick of a second too long, and an instance outlives its accelerator.
            Self::DeepbootTpds23 => SimOptions {
                epoch_end: EpochEnd::WholeSecond,
                switch_cost: SwitchCost::DeepbootAfe,
                batches_at_events: true,
                instances: InstanceOptions {
                    protect_more: SimTime::from_secs(1),
                    evicted_answer: true,
                    ..InstanceOptions::DEEPBOOT
                },
                ..common
            },
        }
    }
}
