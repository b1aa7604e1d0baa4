//! Policies that a deployment names: each is opened once, and made as often as it is needed.

use std::path::PathBuf;
use std::time::Duration;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::loaning::Sharing;
use goodput_agents::compose::{NamedPolicy, Wrappers};
use goodput_agents::policies::external::{ExternalPolicy, ExternalProgram};
use goodput_agents::zoo;
use goodput_configs::live::policy::PolicyConfig;
use goodput_configs::policies::{self, EXTERNAL};
use goodput_env::gym::{ExpectedPeak, layout};
use goodput_env::policy::{Policy, Scope};

use super::DaemonError;
use super::guard::screen::Screen;

/// A policy that was opened.
#[derive(Clone, Debug)]
pub(super) struct OpenedPolicy {
    kind: PolicyKind,
    seed: u64,
    slots: usize,
}

#[derive(Clone, Debug)]
enum PolicyKind {
    Named(NamedPolicy),
    Bundle(PathBuf, Box<PolicyBundle>),
    Program(ExternalProgram),
}

impl OpenedPolicy {
    /// The policy of `settings`.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where the policy cannot be had.
    pub fn open(settings: &PolicyConfig) -> Result<Self, DaemonError> {
        let refused = |text: String| DaemonError::Refused(text);
        let kind = match (&settings.name, &settings.bundle) {
            (Some(name), _) if ExternalProgram::is_meant_by(name) => {
                let program = ExternalProgram::by_name(name);
                let program = program.ok_or_else(|| refused(format!("{name:?} names no program; {EXTERNAL}")))?;
                // The file and `policy set` have looked for the module of a class. It is not looked for with each
                // instance, because Python may take seconds for that.
                program.find_command().map_err(|missing| refused(format!("{name}: {missing}")))?;
                PolicyKind::Program(program)
            }
            (Some(name), _) => PolicyKind::Named(named("[policy] name", name)?),
            (None, path) => {
                let path = path.clone().unwrap_or_default();
                let bundle = zoo::open(&path).map_err(|error| refused(format!("[policy] bundle: {error}")))?;
                PolicyKind::Bundle(path, Box::new(bundle))
            }
        };
        Ok(Self { kind, seed: settings.seed, slots: settings.slots })
    }

    /// The policy as it decides live, where an answer comes within `timeout`.
    pub fn live(self, timeout: Duration) -> Self {
        let kind = match self.kind {
            // The daemon hears of a lost turn before its own patience ends.
            PolicyKind::Program(program) => PolicyKind::Program(program.deciding_within(timeout * 9 / 10)),
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// Name of the policy.
    pub fn name(&self) -> String {
        match &self.kind {
            PolicyKind::Named(named) => named.to_string(),
            PolicyKind::Program(program) => program.name().to_owned(),
            PolicyKind::Bundle(path, _) => {
                path.file_stem().map_or_else(|| "bundle".into(), |stem| stem.to_string_lossy().into_owned())
            }
        }
    }

    /// Screen of the observations of a bundle; `None` for other policies.
    pub fn screen(&self) -> Option<Screen> {
        match &self.kind {
            PolicyKind::Bundle(_, bundle) => Some(Screen::new(bundle)),
            _ => None,
        }
    }

    /// Heuristic that decides; `None` for bundles and programs.
    pub fn heuristic(&self) -> Option<&NamedPolicy> {
        match &self.kind {
            PolicyKind::Named(named) => Some(named),
            _ => None,
        }
    }

    /// Bundle that decides; `None` for heuristics and programs.
    pub fn bundle(&self) -> Option<&PolicyBundle> {
        match &self.kind {
            PolicyKind::Bundle(_, bundle) => Some(bundle),
            _ => None,
        }
    }

    /// Program that decides; `None` for policies in this process.
    pub fn program(&self) -> Option<&ExternalProgram> {
        match &self.kind {
            PolicyKind::Program(program) => Some(program),
            _ => None,
        }
    }

    /// A fresh instance.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where a bundle does not say how it is to be run.
    pub fn make(&self) -> Result<Box<dyn Policy>, DaemonError> {
        Ok(match &self.kind {
            PolicyKind::Named(named) => named.build(self.seed, &Sharing::default()),
            PolicyKind::Program(program) => {
                Box::new(ExternalPolicy::new(program.clone(), &layout(self.slots), &[], self.seed))
            }
            PolicyKind::Bundle(path, bundle) => bundle.policy(ExpectedPeak::default()).map_err(|error| {
                DaemonError::Refused(format!("[policy] bundle {}: decoder options: {error}", path.display()))
            })?,
        })
    }

    /// A fresh instance within `wrappers`.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where the policy cannot be had, or is none of training jobs alone.
    pub fn within(&self, wrappers: &Wrappers) -> Result<Box<dyn Policy>, DaemonError> {
        if !wrappers.is_empty() && self.scope()? == Scope::Everything {
            let text = "decides about services and loans, which [resilience] and [adaptation] cannot be put around";
            let name = self.name();
            return Err(DaemonError::Refused(format!("policy {name} {text}: name a policy of training jobs")));
        }
        wrappers.try_around(|| self.make())
    }

    fn scope(&self) -> Result<Scope, DaemonError> {
        match &self.kind {
            // A program is asked about training jobs, and no process starts to say so.
            PolicyKind::Program(_) => Ok(Scope::Training),
            _ => Ok(self.make()?.scope()),
        }
    }
}

/// Heuristic that the file names at `key`.
pub(super) fn named(key: &str, name: &str) -> Result<NamedPolicy, DaemonError> {
    name.parse().map_err(|error| DaemonError::Refused(format!("{key} = {name:?}: {}", policies::explain(&error))))
}
