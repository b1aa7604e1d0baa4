//! Names of policies that plan ahead: `lookahead(BASE)(PARAMETER=VALUE, ...)`.

use std::sync::Arc;

use goodput_env::policy::Policy;

use super::lookahead::{Lookahead, LookaheadParameters, Player, RivalPolicy};
use super::naming::{PolicyNameError, parameters_text, parts, wrong};
use super::registry::policies;
use crate::heuristic::parameters::{ParameterValues, PolicyMaker, checked};

/// Beginning of the name of a policy that looks ahead.
pub(super) const LOOKAHEAD: &str = "lookahead(";

/// Lookahead around a policy.
#[derive(Clone)]
pub(super) struct Planning {
    pub parameters: LookaheadParameters,
    /// Parameters that differ from their defaults.
    pub changed: ParameterValues,
}

/// Base of a name that looks ahead, and what stands behind the base: parameters, and what follows them; `None` for
/// every other name.
pub fn lookahead_base(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(LOOKAHEAD).and_then(closed)
}

/// Name and maker of a lookahead around a base that is called `name`, which need not be a published policy.
/// `parameters` are what stands behind the base.
///
/// # Errors
/// [`PolicyNameError`] for parameters that there are not, and where more follows them.
pub fn lookahead_around(
    base: PolicyMaker,
    name: &str,
    parameters: &str,
) -> Result<(String, PolicyMaker), PolicyNameError> {
    let (planning, rest) = Planning::read(parameters)?;
    if !rest.is_empty() {
        return Err(wrong(rest, "nothing follows the parameters of a lookahead around a trained policy"));
    }
    let text = format!("{LOOKAHEAD}{name}){}", parameters_text(&planning.changed));
    let called = name.to_owned();
    let make =
        move |seed| -> Box<dyn Policy> { Box::new(lookahead(base.clone(), &called, &planning.parameters, seed)) };
    Ok((text, Arc::new(make)))
}

impl Planning {
    /// Parameters behind a base, and what follows them.
    pub fn read(text: &str) -> Result<(Self, &str), PolicyNameError> {
        let (given, rest) = match text.starts_with('(') {
            true => parts(text).map(|(_, given, rest)| (given, rest))?,
            false => (ParameterValues::new(), text),
        };
        let (parameters, changed) = checked(&LookaheadParameters::default(), &given)
            .map_err(|problem| PolicyNameError::Parameter { policy: "lookahead", problem })?;
        Ok((Self { parameters, changed }, rest))
    }
}

/// The policy that looks ahead around a base of this name, with the rivals that are not the base itself.
pub(super) fn lookahead(base: PolicyMaker, name: &str, parameters: &LookaheadParameters, seed: u64) -> Lookahead {
    let others = parameters.rivals.iter().map(|rival: &RivalPolicy| rival.name()).filter(|rival| *rival != name);
    let entries = others.filter_map(|rival| policies().find(|entry| entry.name == rival));
    let rivals =
        entries.map(|entry| Player { name: entry.name.to_owned(), make: Arc::new(move |seed| entry.build(seed)) });
    let base = Player { name: name.to_owned(), make: base };
    Lookahead::new(base, rivals.collect(), parameters.clone(), seed)
}

/// Text inside of a parenthesis that has been opened, and the text behind it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return Some((text[..at].trim(), text[at + 1..].trim()));
        }
    }
    None
}
