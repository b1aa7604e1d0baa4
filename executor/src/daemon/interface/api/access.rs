//! Access to the interface: the token of a call, the verbs that a group of routes needs, and the part of
//! a submission that follows from the token.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use goodput_configs::live::token::{ApiVerb, Token};
use goodput_env::tenant::UNIT_WEIGHT;
use sha2::{Digest, Sha256};

use super::{Api, ApiProblem, problem};
use crate::engine::Submission;

/// Token that came with a call.
#[derive(Clone, Debug)]
pub(super) struct Caller(pub Token);

impl Caller {
    /// Whether the token cancels a job of `owner`.
    pub fn may_cancel(&self, owner: &str) -> bool {
        self.0.allows(ApiVerb::Operate) || owner == self.0.owner()
    }
}

/// Check of the token before a group of routes.
#[derive(Clone, Debug)]
pub(super) struct TokenCheck {
    pub api: Api,
    /// Verbs of which the token needs one.
    pub verbs: &'static [ApiVerb],
}

/// The hash of a token, as it is stored.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lets a call pass if its token is known and good for the call.
pub(super) async fn authorise(State(check): State<TokenCheck>, mut request: Request, next: Next) -> Response {
    let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(token) = value.and_then(|value| value.strip_prefix("Bearer ")) else {
        return problem(StatusCode::UNAUTHORIZED, "no token: send the header Authorization: Bearer TOKEN")
            .into_response();
    };
    let given = hash(token);
    let Some(known) = check.api.tokens.iter().find(|known| same(&known.sha256, &given)) else {
        return problem(StatusCode::UNAUTHORIZED, "the token is not known; see [[api.tokens]]").into_response();
    };
    if !check.verbs.iter().any(|verb| known.allows(*verb)) {
        return forbidden(known, check.verbs[0]).into_response();
    }
    request.extensions_mut().insert(Caller(known.clone()));
    next.run(request).await
}

/// Refusal of a call that needs a verb.
pub(super) fn forbidden(token: &Token, verb: ApiVerb) -> ApiProblem {
    let text = format!("the token {:?} does not allow this: it needs the verb {:?}", token.name, verb.name());
    problem(StatusCode::FORBIDDEN, text)
}

/// Whether two hashes are equal, in a time that does not tell where they differ.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a.to_ascii_lowercase() ^ b)) == 0
}

/// Makes a submission that of a token: its owner and its tenant follow from the token.
///
/// # Errors
/// The submission asks for more than the token may.
pub(super) fn own(job: &mut Submission, token: &Token) -> Result<(), String> {
    job.tenant = token.tenant_of(&job.tenant)?.to_owned();
    token.owner().clone_into(&mut job.owner);
    let request = &job.spec.request;
    let (priority, weight) = (request.priority, request.weight_milli);
    if !token.allows(ApiVerb::Admin) && (priority > token.max_priority || weight > UNIT_WEIGHT) {
        return Err(format!(
            "priority {priority} and weight {weight}: the token {:?} may ask for a priority up to {} and a weight up to {UNIT_WEIGHT}",
            token.name, token.max_priority
        ));
    }
    Ok(())
}
