//! `live policy`: the policy that decides, its history, another one, and the one before again.

use std::path::Path;

use goodput_console::{Cell, CommandError, Listing, say};
use goodput_executor::daemon::durability::journal::PolicyChange;
use goodput_executor::daemon::interface::api::PolicyRequest;
use goodput_executor::daemon::{absolute, bundle_sha256};
use serde_json::{Value, json};

use crate::Invocation;
use crate::args::PolicyVerb;
use crate::client::Client;
use crate::listings::moment;

/// Runs a verb of `live policy`.
pub fn run(verb: &PolicyVerb, invocation: Invocation) -> Result<(), CommandError> {
    match verb {
        PolicyVerb::Set { policy, sha256, reason, daemon } => {
            let policy = absolute(policy).map_err(CommandError::input)?;
            let sha256 = match sha256 {
                Some(given) => Some(given.clone()),
                // A daemon on another machine finds out that its file is another one.
                None if Path::new(&policy).is_file() => {
                    Some(bundle_sha256(Path::new(&policy)).map_err(CommandError::input)?)
                }
                None => None,
            };
            let request = PolicyRequest { policy, sha256, reason: reason.clone() };
            changed(Client::new(daemon, invocation)?.post("/v1/policy", &request)?)
        }
        PolicyVerb::Rollback { reason, daemon } => {
            changed(Client::new(daemon, invocation)?.post("/v1/policy/rollback", &json!({ "reason": reason }))?)
        }
        PolicyVerb::History { daemon, output } => {
            let changes: Vec<PolicyChange> = Client::new(daemon, invocation)?.get("/v1/policy")?;
            if changes.is_empty() {
                say("the policy of the deployment file decides and was never changed");
            }
            history(&changes).print(*output)
        }
    }
}

fn changed(answer: Value) -> Result<(), CommandError> {
    let word = |key: &str| answer[key].as_str().unwrap_or_default();
    let hash = word("sha256").get(..12).map(|hash| format!(" (SHA-256 {hash}...)")).unwrap_or_default();
    say(&format!("{} decides from now on{hash}, and after a restart", word("name")));
    Ok(())
}

/// Changes of the policy, newest first.
fn history(changes: &[PolicyChange]) -> Listing {
    let mut rows = Listing::new(&["number", "time", "verb", "policy", "by", "reason", "sha256"]);
    for change in changes {
        rows.push(vec![
            Cell::Whole(change.number),
            moment(change.at_ms).into(),
            format!("{:?}", change.verb).to_lowercase().into(),
            change.name.as_str().into(),
            change.by.as_str().into(),
            change.reason.as_str().into(),
            change.sha256.get(..12).unwrap_or_default().into(),
        ]);
    }
    rows
}
