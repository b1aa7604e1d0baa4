//! Bearer tokens of the HTTP interface: the holder of each, and the calls that it allows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::CheckError;
use crate::tenants::TenantConfig;

/// Name that stands for all tenants.
const ALL: &str = "*";

/// A bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the holder in the audit log.
    pub name: String,
    /// SHA-256 of the token, hexadecimal.
    pub sha256: String,
    /// Calls that the token allows, and no others: `read`, `submit`, `cancel`, `operate`, `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<ApiVerb>,
    /// Tenants for which the token submits; `"*"` stands for all. A submission without a tenant
    /// belongs to the first one here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Owner of the jobs that the token submits, and of those that it may cancel; the name of the token
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Highest priority that a submission may ask for, 0 or more. With the verb `admin` there is no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_priority: i32,
    /// Earlier form of `verbs`: `read`, or `write` for all verbs and all tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

/// Verb of a token: a group of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApiVerb {
    /// Every call that only looks.
    Read,
    /// Submission of jobs in the name of the token's tenants.
    Submit,
    /// Cancellation of jobs that belong to the token's user.
    Cancel,
    /// Cancellation of any job, drain and undrain of nodes, and the mode `observe`.
    Operate,
    /// All calls, for every tenant and with any priority.
    Admin,
}

impl ApiVerb {
    /// Every verb there is.
    pub const ALL: [Self; 5] = [Self::Read, Self::Submit, Self::Cancel, Self::Operate, Self::Admin];

    /// Name of the verb in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Cancel => "cancel",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// The verb called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// Role of a token, in files of earlier versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The verb `read`.
    Read,
    /// The verb `admin`.
    Write,
}

impl Token {
    /// Whether the token allows calls of `verb`.
    pub fn allows(&self, verb: ApiVerb) -> bool {
        match self.role {
            Some(Role::Write) => true,
            Some(Role::Read) => verb == ApiVerb::Read,
            None => self.verbs.contains(&verb) || self.verbs.contains(&ApiVerb::Admin),
        }
    }

    /// Owner of the jobs that the token submits.
    pub fn owner(&self) -> &str {
        self.user.as_deref().unwrap_or(&self.name)
    }

    /// Tenant of a submission that asks for `asked`, where an empty text asks for none. An empty
    /// answer stands for the first tenant of the deployment.
    ///
    /// # Errors
    /// The token does not submit for that tenant.
    pub fn tenant_of<'a>(&'a self, asked: &'a str) -> Result<&'a str, String> {
        let all = self.allows(ApiVerb::Admin) || self.tenants.iter().any(|tenant| tenant == ALL);
        let own = self.tenants.iter().find(|tenant| asked.is_empty() || *tenant == asked);
        match own {
            Some(tenant) if tenant != ALL => Ok(tenant),
            _ if all => Ok(asked),
            _ => Err(format!(
                "the token {:?} does not submit for tenant {asked:?}; it submits for: {}",
                self.name,
                self.tenants.join(", ")
            )),
        }
    }

    fn wrong(&self, key: &'static str, value: String, expected: &str) -> Result<(), CheckError> {
        Err(CheckError::value(key, value, expected).within("tokens", &self.name))
    }

    /// Checks the token by itself.
    ///
    /// # Errors
    /// A value cannot be used.
    pub fn check(&self) -> Result<(), CheckError> {
        if self.sha256.len() != 64 || !self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let expected = "64 hexadecimal digits; `goodput live token` makes them";
            return self.wrong("api.tokens.sha256", format!("{:?}", self.sha256), expected);
        }
        // The owner is stored beside each job, on Slurm as a word of its comment.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
        if self.role.is_none() && !((1..=64).contains(&self.owner().len()) && self.owner().bytes().all(plain)) {
            let expected = "1 to 64 letters, digits, '.', '_', '-' or '@'; set `user` where `name` is a sentence";
            return self.wrong("api.tokens.user", format!("{:?}", self.owner()), expected);
        }
        if self.max_priority < 0 {
            // A submission that says nothing has the priority 0, and would be refused.
            return self.wrong("api.tokens.max_priority", self.max_priority.to_string(), "0 or more");
        }
        if self.role.is_some() != self.verbs.is_empty() {
            let expected = "some of \"read\", \"submit\", \"cancel\", \"operate\", \"admin\", and no `role`";
            let verbs: Vec<&str> = self.verbs.iter().map(|verb| verb.name()).collect();
            return self.wrong("api.tokens.verbs", format!("{verbs:?}"), expected);
        }
        if self.allows(ApiVerb::Submit) && !self.allows(ApiVerb::Admin) && self.tenants.is_empty() {
            let expected = "the tenants that it submits for, or [\"*\"] for all";
            return self.wrong("api.tokens.tenants", "none".into(), expected);
        }
        Ok(())
    }

    /// Checks the tenants of the token against those of the deployment.
    pub(super) fn check_tenants(&self, tenants: &[TenantConfig]) -> Result<(), CheckError> {
        let known = |name: &String| name == ALL || tenants.iter().any(|tenant| tenant.name == *name);
        match self.tenants.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(unknown) => {
                let names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
                let expected = format!("\"*\" or one of [[tenants]]: {}", names.join(", "));
                self.wrong("api.tokens.tenants", format!("{unknown:?}"), &expected)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(verbs: &[ApiVerb], tenants: &[&str]) -> Token {
        let tenants = tenants.iter().map(|name| (*name).to_owned()).collect();
        Token { name: "anna".into(), sha256: "0".repeat(64), verbs: verbs.to_vec(), tenants, ..Token::default() }
    }

    #[test]
    fn a_token_allows_what_it_lists_and_nothing_else() {
        for verb in ApiVerb::ALL {
            let allowed: Vec<ApiVerb> =
                ApiVerb::ALL.into_iter().filter(|asked| token(&[verb], &["*"]).allows(*asked)).collect();
            let expected = if verb == ApiVerb::Admin { ApiVerb::ALL.to_vec() } else { vec![verb] };
            assert_eq!(allowed, expected, "{}", verb.name());
            assert_eq!(ApiVerb::by_name(verb.name()), Some(verb));
        }
        let earlier = |role| Token { role: Some(role), ..token(&[], &[]) };
        assert!(earlier(Role::Write).allows(ApiVerb::Admin) && !earlier(Role::Read).allows(ApiVerb::Submit));
    }

    #[test]
    fn the_tenant_of_a_submission_is_one_of_the_tokens() {
        let two = token(&[ApiVerb::Submit], &["vision", "speech"]);
        assert_eq!(two.tenant_of(""), Ok("vision"));
        assert_eq!(two.tenant_of("speech"), Ok("speech"));
        assert!(two.tenant_of("rich").unwrap_err().contains("vision, speech"));
        for all in [token(&[ApiVerb::Submit], &["*"]), token(&[ApiVerb::Admin], &[])] {
            assert_eq!((all.tenant_of("rich"), all.tenant_of("")), (Ok("rich"), Ok("")));
        }
        assert_eq!(token(&[ApiVerb::Submit], &["vision", "*"]).tenant_of(""), Ok("vision"));
    }

    #[test]
    fn a_token_that_says_too_little_or_too_much_is_refused() {
        let of = |token: Token| token.check().unwrap_err().to_string();
        assert!(of(token(&[], &[])).contains("verbs"));
        assert!(of(Token { role: Some(Role::Read), ..token(&[ApiVerb::Read], &[]) }).contains("role"));
        assert!(of(token(&[ApiVerb::Submit], &[])).contains("tenants"));
        assert!(of(Token { name: "An na".into(), ..token(&[ApiVerb::Read], &[]) }).contains("user"));
        let unknown = token(&[ApiVerb::Submit], &["vision"]).check_tenants(&[]).unwrap_err();
        assert!(unknown.to_string().contains("vision"));
        assert!(of(Token { sha256: "x".into(), ..token(&[ApiVerb::Read], &[]) }).contains("live token"));
        assert!(of(Token { max_priority: -1, ..token(&[ApiVerb::Read], &[]) }).contains("expected 0 or more"));
        for good in [token(&[ApiVerb::Read], &[]), token(&[ApiVerb::Submit], &["*"]), token(&[ApiVerb::Admin], &[])] {
            good.check().and(good.check_tenants(&[])).unwrap();
        }
    }
}
