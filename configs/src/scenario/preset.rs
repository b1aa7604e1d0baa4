//! Preset of an environment: the conventions of a published simulator as values of keys, and the keys that
//! replace them.

use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Preset, Rounds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EnvironmentConfig, InstancesConfig};

/// Conventions that heuristics of a comparison take from their own publications: `[environment.as_published]`.
/// Trained policies go by the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AsPublished {
    /// Whether the choice of batch sizes is the heuristic's own, in place of `batching`.
    pub batching: bool,
    /// Whether the information about jobs is the heuristic's own, in place of `information`.
    pub information: bool,
}

/// Key of a file that replaces a convention of its preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted key in the file.
    pub key: &'static str,
    /// Value in the file.
    pub given: String,
    /// Value of the preset.
    pub preset: String,
}

/// Convention of a preset as a key of the environment.
struct Convention {
    key: &'static str,
    /// Copies the value of the key from another environment.
    copy: fn(&mut EnvironmentConfig, &EnvironmentConfig),
    /// Value of the key, for messages.
    show: fn(&EnvironmentConfig) -> String,
}

/// Convention of the field `$field`.
macro_rules! convention {
    ($($field:ident).+) => {
        Convention {
            key: concat!("environment", $(".", stringify!($field)),+),
            copy: |to, from| to.$($field).+.clone_from(&from.$($field).+),
            show: |of| toml::Value::try_from(&of.$($field).+).map_or_else(|_| "none".into(), |value| value.to_string()),
        }
    };
}

const CONVENTIONS: &[Convention] = &[
    convention!(round_secs),
    convention!(on_churn),
    convention!(release),
    convention!(epoch_end),
    convention!(free_moves),
    convention!(switch_cost),
    convention!(batching),
    convention!(batches_at_events),
    convention!(information),
    convention!(agent_fit),
    convention!(as_published.batching),
    convention!(as_published.information),
    convention!(instances.protect_more_secs),
    convention!(instances.evicted_answer),
];

impl EnvironmentConfig {
    /// Environment with the conventions of `preset`, and the defaults elsewhere.
    pub fn under(preset: Preset) -> Self {
        let own = Self::default();
        let options = preset.options(own.batching, own.information);
        Self {
            preset: Some(preset),
            round_secs: options.rounds.period.map(|period| period.as_secs_f64()),
            on_churn: options.rounds.on_churn,
            release: options.release,
            epoch_end: options.epoch_end,
            free_moves: options.free_moves,
            switch_cost: options.switch_cost.name().unwrap_or_default().into(),
            batching: options.batching,
            batches_at_events: options.batches_at_events,
            information: options.information,
            agent_fit: options.agent_fit,
            as_published: AsPublished {
                batching: preset.batching().is_none(),
                information: preset.information().is_none(),
            },
            instances: InstancesConfig {
                protect_more_secs: options.instances.protect_more.as_secs_f64(),
                evicted_answer: options.instances.evicted_answer,
                ..own.instances.clone()
            },
            ..own
        }
    }

    /// Fills in the conventions of the preset for keys that the file does not write. A written `batching` or
    /// `information` holds for heuristics too.
    pub(crate) fn complete(&mut self, written: &dyn Fn(&str) -> bool) {
        let Some(preset) = self.preset else { return };
        let conventions = Self::under(preset);
        for convention in CONVENTIONS.iter().filter(|convention| !written(convention.key)) {
            (convention.copy)(self, &conventions);
        }
        let own = &mut self.as_published;
        own.batching &= !written("environment.batching") || written("environment.as_published.batching");
        own.information &= !written("environment.information") || written("environment.as_published.information");
    }

    /// Keys that replace conventions of the preset.
    pub fn overrides(&self) -> Vec<Override> {
        let Some(preset) = self.preset else { return Vec::new() };
        let conventions = Self::under(preset);
        let pairs = CONVENTIONS.iter().map(|convention| Override {
            key: convention.key,
            given: (convention.show)(self),
            preset: (convention.show)(&conventions),
        });
        pairs.filter(|pair| pair.given != pair.preset).collect()
    }

    /// Rounds of a heuristic where the preset gives it other ones than the rest.
    pub fn rounds_of(&self, policy: &dyn Policy) -> Option<Rounds> {
        let preset = self.preset?;
        let usual = preset.rounds(None);
        let kept =
            self.on_churn == usual.on_churn && self.round_secs == usual.period.map(|period| period.as_secs_f64());
        let own = preset.rounds(policy.round());
        (kept && own != usual).then_some(own)
    }

    /// Batching of a heuristic that was published with `own`, where it is not the environment's.
    pub fn batching_of(&self, own: Batching) -> Option<Batching> {
        self.as_published.batching.then_some(own)
    }

    /// Information of a heuristic that was published with `own`, where it is not the environment's.
    pub fn information_of(&self, own: Information) -> Option<Information> {
        self.as_published.information.then_some(own)
    }
}
