//! The policy that is asked why: a bundle, an external program, a published policy, or a lookahead.

use std::path::Path;
use std::sync::Arc;

use goodput_agents::bundle::{Model, PolicyBundle};
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{self, NamedPolicy, PolicyNameError, lookahead_base};
use goodput_agents::heuristic::parameters::PolicyMaker;
use goodput_agents::policies::explain::Explained;
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::names::nearest;
use goodput_console::CommandError;
use goodput_env::cluster::Cluster;
use goodput_env::gym::{ExpectedPeak, Layout};
use goodput_env::scenario::{Batching, Information, Scenario};
use goodput_eval::entries::{LearnedPolicy, ahead_of_learned};
use goodput_eval::run::PolicyEntry;

use crate::command::study::{self, unnamed};
use crate::command::{programs, sim};

/// Policy that was found by its name.
pub enum AskedPolicy {
    /// A trained policy.
    Bundle(Box<PolicyBundle>),
    /// A program in another process.
    Program(ExternalProgram),
    /// A rule, or a lookahead.
    Made(MadePolicy),
}

/// A policy of a name alone: a published policy, or a lookahead around a published or a trained one.
pub struct MadePolicy {
    name: String,
    make: PolicyMaker,
    kind: MadeKind,
}

/// Policy behind a name.
enum MadeKind {
    /// A published policy, or a lookahead around one.
    Published(Box<NamedPolicy>),
    /// A lookahead around this trained policy.
    AheadOf(Box<PolicyBundle>),
}

impl MadePolicy {
    /// The policy called `name`.
    fn open(name: &str) -> Result<Self, CommandError> {
        if let Some((base, parameters)) = lookahead_base(name)
            && let Some(learned) = LearnedPolicy::by_name(base).map_err(CommandError::input)?
        {
            // Explained runs have no services, so nothing is expected of a load.
            let entry = ahead_of_learned(&learned, parameters, ExpectedPeak::default(), &Arc::default());
            let PolicyEntry { name, make, .. } = entry.map_err(|error| study::fault(error.into()))?;
            return Ok(Self { name, make: Arc::from(make), kind: MadeKind::AheadOf(Box::new(learned.bundle)) });
        }
        let named: NamedPolicy = name.parse().map_err(|error| absent(&error))?;
        let (name, kind) = (named.to_string(), MadeKind::Published(Box::new(named.clone())));
        Ok(Self { name, make: Arc::new(move |seed| named.build(seed, &Sharing::default())), kind })
    }

    /// Lack of a cluster for the policy, in words; `None` where it lacks nothing.
    pub fn lacks(&self, cluster: &Cluster) -> Option<String> {
        match &self.kind {
            MadeKind::Published(named) => named.lacks(cluster).map(|problem| format!("{} {problem}", self.name)),
            MadeKind::AheadOf(_) => None,
        }
    }
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
        MadePolicy::open(name).map(Self::Made)
    }

    /// Kind of the policy: that of the bundle, `program`, `published`, or `lookahead` around a trained policy.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bundle(bundle) => bundle.kind(),
            Self::Program(_) => "program",
            Self::Made(MadePolicy { kind: MadeKind::Published(_), .. }) => "published",
            Self::Made(MadePolicy { kind: MadeKind::AheadOf(_), .. }) => "lookahead",
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
            Self::Made(made) => {
                let policy = (made.make)(0);
                (policy.batching(), policy.information())
            }
        })
    }

    /// Refuses a run in which the explanation would be wrong.
    pub fn check(&self, situation: &Situation) -> Result<(), CommandError> {
        let given = situation.scenario.options.information;
        match self {
            Self::Bundle(bundle) => check_bundle(bundle, self.conventions()?.1, situation),
            Self::Program(program) => programs::check(program, &situation.layout, &situation.types),
            Self::Made(MadePolicy { make, kind: MadeKind::AheadOf(bundle), .. }) => {
                check_bundle(bundle, make(0).information(), situation)
            }
            Self::Made(MadePolicy { name, make, .. }) => {
                let needs = make(0).needs();
                match given.allows(needs) {
                    true => Ok(()),
                    false => Err(CommandError::input(format!("{name} cannot run at information level {given}"))
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
            Self::Made(made) => Explained::published((made.make)(scenario.seed)),
        })
    }

    /// Sentence about decisions that a bundle could not take; `None` for other policies, and where there are none.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Bundle(bundle) => bundle.fault(),
            Self::Made(MadePolicy { kind: MadeKind::AheadOf(bundle), .. }) => bundle.fault(),
            Self::Program(_) | Self::Made(_) => None,
        }
    }

    /// Sentence about reasons that the policy does not give.
    pub fn silence(&self) -> String {
        match self {
            Self::Bundle(bundle) => match &bundle.model {
                Model::Hold(learned) => format!(
                    "A net gives no reasons. It holds back changes of {} that it scores above {}.",
                    learned.teacher, learned.threshold
                ),
                Model::Queue(_) => "An order of a queue gives no reasons.".to_owned(),
                _ => "Every job keeps what it has at this decision.".to_owned(),
            },
            Self::Program(program) => format!(
                "{} gives no reasons: an external program gives the reasons that it sends with its actions.",
                program.name()
            ),
            Self::Made(MadePolicy { name, kind: MadeKind::Published(named), .. }) => {
                format!("{name} gives no reasons. Its rule: {}.", named.entry().about)
            }
            Self::Made(MadePolicy { name, .. }) => format!("{name} gives no reasons."),
        }
    }
}

/// Refuses a run of a trained policy on other accelerator types, or at another information level, than it was made for.
fn check_bundle(bundle: &PolicyBundle, meant: Information, situation: &Situation) -> Result<(), CommandError> {
    bundle.check_types(&situation.scenario.cluster).map_err(CommandError::input)?;
    let given = situation.scenario.options.information;
    match std::mem::discriminant(&given) == std::mem::discriminant(&meant) {
        true => Ok(()),
        false => Err(CommandError::input(format!(
            "the policy was trained at information level {meant}, this run gives {given}"
        ))
        .with_help("give a run whose `information` is that of the training; its model card has it")),
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
