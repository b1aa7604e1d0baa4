//! The policy that is asked why: a bundle, an external program, or a published policy.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{self, NamedPolicy, PolicyNameError};
use goodput_agents::policies::explain::Explained;
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::names::nearest;
use goodput_console::CommandError;
use goodput_env::gym::{ExpectedPeak, Layout};
use goodput_env::scenario::{Batching, Information, Scenario};

use crate::command::study::unnamed;
use crate::command::{programs, sim};

/// Policy that was found by its name.
pub enum AskedPolicy {
    /// A trained policy.
    Bundle(Box<PolicyBundle>),
    /// A program in another process.
    Program(ExternalProgram),
    /// A rule, which gives no reasons.
    Published(NamedPolicy),
}

/// Run in which a policy is asked.
pub struct Situation {
    /// Cluster, workload and conventions.
    pub scenario: Arc<Scenario>,
    /// Observations of an external program, and the accelerator types that it tells apart.
    pub layout: Layout,
    /// Names of these types.
    pub types: Vec<String>,
    /// Forecast of the load of services.
    pub expected: ExpectedPeak,
}

impl AskedPolicy {
    /// The policy called `name`.
    pub fn open(name: &str) -> Result<Self, CommandError> {
        if let Some(program) = programs::named(name)? {
            return Ok(Self::Program(program));
        }
        if name.starts_with(zoo::PREFIX) || Path::new(name).exists() {
            return Ok(Self::Bundle(Box::new(sim::bundle(name)?)));
        }
        name.parse().map(Self::Published).map_err(|error| absent(&error))
    }

    /// Kind of the policy: that of the bundle, `program`, or `published`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bundle(bundle) => bundle.kind(),
            Self::Program(_) => "program",
            Self::Published(_) => "published",
        }
    }

    /// Choice of batch sizes and knowledge of jobs that the policy was made for.
    pub fn conventions(&self) -> Result<(Batching, Information), CommandError> {
        Ok(match self {
            Self::Bundle(bundle) => {
                let policy = bundle.policy(ExpectedPeak::default()).map_err(wrong_decoder)?;
                (policy.batching(), policy.information())
            }
            Self::Program(_) => (Batching::Requested, Information::Profiled),
            Self::Published(named) => {
                let policy = named.build(0, &Sharing::default());
                (policy.batching(), policy.information())
            }
        })
    }

    /// Refuses a run in which the explanation would be wrong.
    pub fn check(&self, situation: &Situation) -> Result<(), CommandError> {
        let given = situation.scenario.options.information;
        match self {
            Self::Bundle(bundle) => {
                bundle.check_types(&situation.scenario.cluster).map_err(CommandError::input)?;
                let meant = self.conventions()?.1;
                if std::mem::discriminant(&given) != std::mem::discriminant(&meant) {
                    return Err(CommandError::input(format!(
                        "the policy was trained at information level {meant}, this run gives {given}"
                    ))
                    .with_help("give a run whose `information` is that of the training; its model card has it"));
                }
                Ok(())
            }
            Self::Program(program) => programs::check(program, &situation.layout, &situation.types),
            Self::Published(named) => {
                let needs = named.build(0, &Sharing::default()).needs();
                match given.allows(needs) {
                    true => Ok(()),
                    false => Err(CommandError::input(format!("{named} cannot run at information level {given}"))
                        .with_help(format!("give a run whose `information` is at least {needs}"))),
                }
            }
        }
    }

    /// The policy at work in a run.
    pub fn explained(&self, situation: &Situation) -> Result<Explained, CommandError> {
        let Situation { scenario, layout, types, expected } = situation;
        Ok(match self {
            Self::Bundle(bundle) => bundle.explained(expected.clone()).map_err(wrong_decoder)?,
            Self::Program(program) => {
                let policy = ExternalPolicy::new(program.clone(), layout, types, scenario.seed);
                Explained::of_program(policy.with_expected_peak(expected.clone()))
            }
            Self::Published(named) => Explained::without_reasons(named.build(scenario.seed, &Sharing::default())),
        })
    }

    /// Sentence about decisions that a bundle could not take; `None` for other policies, and where there are none.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Bundle(bundle) => bundle.fault(),
            Self::Program(_) | Self::Published(_) => None,
        }
    }

    /// Sentence about reasons that the policy does not give.
    pub fn silence(&self) -> String {
        match self {
            Self::Bundle(_) => "Every job keeps what it has at this decision.".to_owned(),
            Self::Program(program) => format!(
                "{} gives no reasons: an external program gives the reasons that it sends with its actions.",
                program.name()
            ),
            Self::Published(named) => format!("{named} gives no reasons. Its rule: {}.", named.entry().about),
        }
    }
}

fn wrong_decoder(error: serde_json::Error) -> CommandError {
    CommandError::input(format!("decoder options of the bundle: {error}"))
}

/// Error of a name that is neither a policy nor a bundle; a shipped policy may be called without its prefix.
fn absent(error: &PolicyNameError) -> CommandError {
    if let PolicyNameError::Unknown { name } = error
        && nearest(name, compose::names()).is_none()
        && let Some(shipped) = nearest(name, zoo::ZOO.iter().map(|entry| entry.name))
    {
        let message =
            format!("there is no policy and no bundle file {name:?} (did you mean \"{}{shipped}\"?)", zoo::PREFIX);
        return CommandError::input(message).with_help("`goodput list zoo` names the shipped policies");
    }
    unnamed(error)
}
