//! Names of policies as users type them: `POLICY(PARAMETER=VALUE, ...)+VARIANT`.
//!
//! The parameters of a policy are optional, and so is what follows: `@replica` for the policy as its public
//! artifact behaves, `+VARIANT` for the way it shares a cluster with services ([`Variant`]), `+ats-i` for DeepBoot's
//! scheduler of inference requests beside it. `lookahead(BASE)(PARAMETER=VALUE, ...)` is a policy that plans ahead
//! around a base, and what follows stands behind it as behind any policy. A value is a number, `true`, `false`, a word,
//! or a list in brackets.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use goodput_env::cluster::Cluster;
use goodput_env::policy::Policy;
use serde_json::Value;
use thiserror::Error;

use super::loaning::{Sharing, Variant};
use super::planning::{LOOKAHEAD, Planning, lookahead, lookahead_base};
use super::registry::policies;
use crate::heuristic::deepboot::requests::{ReclaimLoss, RequestScheduler};
use crate::heuristic::deepboot::{SUFFIX, WithAtsI};
use crate::heuristic::gavel::expense_of;
use crate::heuristic::parameters::{ParameterError, ParameterValues, PolicyMaker, Prepared};
use crate::heuristic::{ListedPolicy, Traits, card_sharing};

/// End of the name of a policy that behaves as its public artifact does.
pub const REPLICA: &str = "@replica";

/// Policy by the name that users type, with parameters that have been checked. Its text leaves out parameters at
/// their defaults, so that two policies with one text decide alike.
#[derive(Clone)]
pub struct NamedPolicy {
    entry: &'static ListedPolicy,
    form: NamedForm,
    planning: Option<Planning>,
    sharing: Option<(String, Variant)>,
    beside_requests: bool,
}

/// Form of a policy: the paper's rule with its parameters, or the artifact's behaviour.
#[derive(Clone)]
enum NamedForm {
    Published(Prepared),
    Replica(fn(u64) -> Box<dyn Policy>),
}

/// Name that names no policy.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PolicyNameError {
    /// The text is no name.
    #[error("{text:?} is no name of a policy: {problem}")]
    Syntax {
        /// Text that was given.
        text: String,
        /// Description of the defect.
        problem: &'static str,
    },
    /// No published policy has the name.
    #[error("there is no policy {name:?}")]
    Unknown {
        /// Name without parameters and variant.
        name: String,
    },
    /// No artifact behaves otherwise than the policy.
    #[error("policy {policy} has no replica")]
    NoReplica {
        /// Name of the policy.
        policy: &'static str,
    },
    /// There is no such way to share a cluster with services.
    #[error("policy {policy} has no variant {variant:?}")]
    UnknownVariant {
        /// Name of the policy.
        policy: &'static str,
        /// Text after the plus sign.
        variant: String,
    },
    /// The policy does not accept a parameter.
    #[error("policy {policy}: {problem}")]
    Parameter {
        /// Name of the policy.
        policy: &'static str,
        /// Parameter and what is wrong about it.
        problem: ParameterError,
    },
}

impl NamedPolicy {
    /// Entry of the policy in the list.
    pub fn entry(&self) -> &'static ListedPolicy {
        self.entry
    }

    /// Kind of scheduler that the policy is.
    pub fn traits(&self) -> Traits {
        match self.planning {
            // Whatever the base does, its rivals are preemptive and elastic.
            Some(_) => Traits { preemptive: true, elastic: true, ..self.entry.traits },
            None => self.entry.traits,
        }
    }

    /// Whether the policy behaves as its public artifact, defects included.
    pub fn is_replica(&self) -> bool {
        matches!(self.form, NamedForm::Replica(_))
    }

    /// Whether DeepBoot's scheduler of inference requests decides beside the policy.
    pub fn is_beside_requests(&self) -> bool {
        self.beside_requests
    }

    /// Whether the name is that of a policy of training alone, without services and requests beside it.
    pub fn is_of_training(&self) -> bool {
        self.variant().is_none() && !self.beside_requests
    }

    /// Whether accelerators are taken back from running jobs without a decision of the scheduler of training: for
    /// services that lent them, or for requests.
    pub fn takes_back(&self) -> bool {
        self.beside_requests || self.variant().is_some_and(Variant::lends)
    }

    /// Whether the policy places jobs on parts of accelerators. Such policies know limits of shares, and no quotas.
    pub fn places_parts(&self) -> bool {
        card_sharing::LISTED.iter().any(|listed| listed.name == self.entry.name)
    }

    /// End of a sentence about the policy, where it weighs types by a figure that no type of `cluster` has.
    pub fn lacks(&self, cluster: &Cluster) -> Option<String> {
        let of_services = self.variant().and_then(Variant::expense);
        let weighed = expense_of(self.entry.name).into_iter().chain(of_services);
        let expense = weighed.into_iter().find(|expense| !expense.is_known(&cluster.types))?;
        let names: Vec<&str> = cluster.types.iter().map(|kind| kind.name.as_str()).collect();
        let figure = expense.figure();
        Some(format!("weighs accelerator types by {figure}, and {figure} is known of none of {}", names.join(", ")))
    }

    /// Parameters of the published policy that differ from their defaults.
    pub fn changed(&self) -> Option<&ParameterValues> {
        match &self.form {
            NamedForm::Published(prepared) => Some(&prepared.changed).filter(|changed| !changed.is_empty()),
            NamedForm::Replica(_) => None,
        }
    }

    /// Scheduler of training jobs, without the part of the name that follows it.
    pub fn training(&self, seed: u64) -> Box<dyn Policy> {
        let base: PolicyMaker = match &self.form {
            NamedForm::Published(prepared) => prepared.make.clone(),
            NamedForm::Replica(build) => Arc::new(*build),
        };
        match &self.planning {
            None => base(seed),
            Some(planning) => Box::new(lookahead(base, self.entry.name, &planning.parameters, seed)),
        }
    }

    /// Variant of sharing in the name; `None` where the name has none.
    pub fn variant(&self) -> Option<Variant> {
        self.sharing.as_ref().map(|(_, variant)| *variant)
    }

    /// Policy of the whole name, which shares a cluster with services by `sharing`.
    pub fn build(&self, seed: u64, sharing: &Sharing) -> Box<dyn Policy> {
        let training = self.training(seed);
        let policy: Box<dyn Policy> = match self.variant() {
            Some(variant) => Box::new(variant.around(training, sharing)),
            None => training,
        };
        if !self.beside_requests {
            return policy;
        }
        let elastic = self.entry.traits.elastic;
        let loss = if elastic { ReclaimLoss::OneAccelerator } else { ReclaimLoss::WholeJob };
        Box::new(WithAtsI::new(policy, RequestScheduler::default().with_loss(loss)))
    }
}

impl FromStr for NamedPolicy {
    type Err = PolicyNameError;

    fn from_str(text: &str) -> Result<Self, PolicyNameError> {
        if policy_part(text) == "lookahead" {
            return planned(text);
        }
        let (name, given, rest) = parts(text)?;
        let entry = policies().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| PolicyNameError::Unknown { name: name.to_owned() })?;
        let (replica, rest) = match rest.strip_prefix(REPLICA) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let form = if replica {
            if !given.is_empty() {
                return Err(wrong(text, "a replica has the settings of its artifact and takes no parameters"));
            }
            NamedForm::Replica(entry.replica.ok_or(PolicyNameError::NoReplica { policy: entry.name })?)
        } else {
            let refused = |problem| PolicyNameError::Parameter { policy: entry.name, problem };
            NamedForm::Published(entry.constructor.prepare(&given).map_err(refused)?)
        };
        let (rest, beside_requests) = match rest.strip_suffix(SUFFIX) {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let sharing = match rest.strip_prefix('+') {
            None if rest.is_empty() => None,
            None => return Err(wrong(text, "after the policy and its parameters comes @replica or +VARIANT")),
            Some(variant) => {
                let known = Variant::by_name(variant);
                let unknown = || PolicyNameError::UnknownVariant { policy: entry.name, variant: variant.to_owned() };
                Some((variant.to_owned(), known.ok_or_else(unknown)?))
            }
        };
        Ok(Self { entry, form, planning: None, sharing, beside_requests })
    }
}

impl fmt::Display for NamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replica = if self.is_replica() { REPLICA } else { "" };
        let parameters = self.changed().map(parameters_text).unwrap_or_default();
        match &self.planning {
            None => write!(f, "{}{parameters}{replica}", self.entry.name)?,
            Some(planning) => {
                write!(f, "{LOOKAHEAD}{}{parameters}){}", self.entry.name, parameters_text(&planning.changed))?;
            }
        }
        if let Some((variant, _)) = &self.sharing {
            write!(f, "+{variant}")?;
        }
        f.write_str(if self.beside_requests { SUFFIX } else { "" })
    }
}

impl fmt::Debug for NamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedPolicy").field(&self.to_string()).finish()
    }
}

/// Lookahead around the policy that `text` names.
fn planned(text: &str) -> Result<NamedPolicy, PolicyNameError> {
    let (base, rest) = lookahead_base(text)
        .ok_or_else(|| wrong(text, "a lookahead has a base in parentheses, as in lookahead(srtf)"))?;
    let alone: NamedPolicy = base.parse()?;
    if alone.planning.is_some() || alone.is_replica() || alone.sharing.is_some() || alone.beside_requests {
        return Err(wrong(text, "the base of a lookahead is a policy with its parameters alone; +VARIANT comes last"));
    }
    let (planning, rest) = Planning::read(rest)?;
    let named: NamedPolicy = format!("{base}{rest}").parse()?;
    if named.is_replica() {
        return Err(wrong(text, "a lookahead has no replica"));
    }
    Ok(NamedPolicy { planning: Some(planning), ..named })
}

/// Text `name` with parameters put in where a name has them: behind the policy, before what follows. The parameters
/// are not checked.
pub fn with_parameters(name: &str, parameters: &ParameterValues) -> String {
    if parameters.is_empty() {
        return name.to_owned();
    }
    // A base may be a path with any character.
    let behind_base = lookahead_base(name).map_or(0, |(_, behind)| name.len() - behind.len());
    let variant = name[behind_base..].find(['+', '@']).map_or(name.len(), |at| behind_base + at);
    let (policy, rest) = name.split_at(variant);
    format!("{policy}{}{rest}", parameters_text(parameters))
}

/// Published policy that `text` names, however little is right about the rest of it.
fn policy_part(text: &str) -> &str {
    text.split(['(', '+', '@']).next().unwrap_or_default().trim()
}

/// Parts of `text` between commas that stand outside of brackets.
pub fn split_list(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Parameters in parentheses.
pub(super) fn parameters_text(parameters: &ParameterValues) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let each = |(name, value): (&String, &Value)| format!("{name}={}", value_text(value));
    format!("({})", parameters.iter().map(each).collect::<Vec<_>>().join(", "))
}

/// Value as a name has it: numbers without needless digits, words without quotes.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::String(word) if is_word(word) => word.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(value_text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Policy, parameters, and what follows them.
pub(super) fn parts(text: &str) -> Result<(&str, ParameterValues, &str), PolicyNameError> {
    let name = policy_part(text);
    let Some((before, rest)) = text.split_once('(').filter(|(before, _)| before.trim() == name) else {
        return Ok((name, ParameterValues::new(), &text[text.find(['+', '@']).unwrap_or(text.len())..]));
    };
    debug_assert!(!before.contains(['+', '@']), "the policy comes first");
    let (inside, after) = rest.split_once(')').ok_or_else(|| wrong(text, "the parenthesis is not closed"))?;
    let mut given = ParameterValues::new();
    for parameter in split_list(inside).into_iter().filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').ok_or_else(|| wrong(text, "a parameter is PARAMETER=VALUE"))?;
        let value = value_of(value.trim()).ok_or_else(|| {
            wrong(text, "a value is a number, true, false, a word, or a list in brackets as in [3250, 7200]")
        })?;
        if given.insert(key.trim().to_owned(), value).is_some() {
            return Err(wrong(text, "a parameter is given twice"));
        }
    }
    Ok((name, given, after.trim()))
}

pub(super) fn wrong(text: &str, problem: &'static str) -> PolicyNameError {
    PolicyNameError::Syntax { text: text.to_owned(), problem }
}

/// Value that `text` says; a list may hold words.
fn value_of(text: &str) -> Option<Value> {
    if let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let items = split_list(inside).into_iter().filter(|item| !item.is_empty());
        return items.map(value_of).collect::<Option<Vec<Value>>>().map(Value::Array);
    }
    let parsed = serde_json::from_str(text).ok().filter(|value: &Value| !value.is_null());
    parsed.or_else(|| is_word(text).then(|| Value::String(text.to_owned())))
}

/// Whether `text` needs no quotes.
fn is_word(text: &str) -> bool {
    let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    starts && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}
