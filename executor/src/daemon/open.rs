//! A daemon from its configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::compose::Wrappers;
use goodput_agents::compose::loaning::{Sharing, beside_services};
use goodput_agents::policies::external::{ExternalProgram, PREFIXES};
use goodput_agents::zoo;
use goodput_configs::error::CheckError;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::policy::{InformationSetting, PolicyConfig, ShadowConfig};
use goodput_env::application::Application;
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, SimOptions};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;

use super::decide::chooser::Chooser;
use super::observe::{ClusterObserver, Setting};
use super::policies::{OpenedPolicy, named};
use super::predict::StartPredictor;
use super::shadow::{Maker, RolloutPolicy, Shadow};
use super::{Daemon, DaemonError, JOURNAL};
use crate::engine::Engine;

/// The daemon that `settings` describe, over `engine`, for jobs that train `applications`. A policy that
/// `goodput live policy` set before decides instead of the one of the file.
///
/// # Errors
/// [`DaemonError::Refused`] where the policy cannot be had or cannot run live; what [`Daemon::new`]
/// says otherwise.
pub fn open<E: Engine>(
    engine: E,
    settings: Deployment,
    applications: Vec<Arc<Application>>,
    tenants: Arc<Tenants>,
) -> Result<Daemon<E>, DaemonError> {
    let Deciders { chooser, shadow, outlook, starts, told, bundle } = deciders(&settings, &settings.policy, None)?;
    if settings.reliance.fallback == chooser.name() {
        let policy = chooser.name();
        tracing::info!(policy, "the fallback is the policy itself; [reliance] fallback names another one");
    }
    let switch_cost = SwitchCost::Constant { millis: (1e3 * settings.policy.restart_secs) as i64 };
    let options =
        SimOptions { information: told.information, batching: told.batching, switch_cost, ..SimOptions::standard() };
    let speedup = settings.cycle.speedup;
    let setting = Setting { applications, tenants, options, speedup, start: SimTime::from_secs_f64(speedup) };
    let mut daemon = Daemon::new(engine, settings, ClusterObserver::new(setting), chooser)?;
    (daemon.shadow, daemon.outlook, daemon.starts) = (shadow, outlook, starts);
    daemon.know_the_file(bundle.as_ref())?;
    daemon.take_up_kept_policy()?;
    Ok(daemon)
}

/// SHA-256 of the bundle in a file, as the history of the policy has it.
///
/// # Errors
/// The file is no sound bundle.
pub fn bundle_sha256(path: &Path) -> Result<String, String> {
    zoo::open(path).map(|bundle| bundle.sha256()).map_err(|error| error.to_string())
}

/// The name of a policy as a daemon in another folder needs it: the path of a file is made absolute. Of a command, that
/// is the program, where the name has a folder, and each argument that is a file.
///
/// # Errors
/// The working directory is gone.
pub fn absolute(policy: &str) -> std::io::Result<String> {
    let whole = |path: &str| Ok(std::path::absolute(path)?.to_string_lossy().into_owned());
    if let Some(command) = policy.strip_prefix(PREFIXES[0]) {
        let words = command.split_whitespace().enumerate().map(|(at, word)| match at {
            0 if word.contains('/') => whole(word),
            1.. if Path::new(word).is_file() => whole(word),
            _ => Ok(word.to_owned()),
        });
        let words = words.collect::<std::io::Result<Vec<_>>>()?;
        return Ok(format!("{}{}", PREFIXES[0], words.join(" ")));
    }
    let is_file = !ExternalProgram::is_meant_by(policy) && (policy.contains('/') || Path::new(policy).is_file());
    if is_file { whole(policy) } else { Ok(policy.to_owned()) }
}

/// Facts of the policy that decides about how jobs are shown to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    /// Knowledge of remaining work.
    pub information: Information,
    /// Choice of batch sizes.
    pub batching: Batching,
}

/// The policy that decides, and what is compared with it.
pub(super) struct Deciders {
    /// Policy with its fallback.
    pub chooser: Chooser,
    /// Comparison with the policy under `[shadow]`.
    pub shadow: Option<Shadow>,
    /// Comparison with the cluster as it is, for the mode `observe`.
    pub outlook: Option<Shadow>,
    /// Predictions of starts under the policy; `None` where that is a program, of which no second one is started.
    pub starts: Option<StartPredictor>,
    /// Knowledge of jobs that is shown to policies.
    pub told: Told,
    /// Bundle of the policy; `None` for a heuristic and a program.
    pub bundle: Option<PolicyBundle>,
}

/// Deciders of `settings` with `acting` as the policy, called `called` where it goes by another name than
/// its file.
///
/// # Errors
/// [`DaemonError::Refused`] where the policy cannot be had or cannot run live.
pub(super) fn deciders(
    settings: &Deployment,
    acting: &PolicyConfig,
    called: Option<&str>,
) -> Result<Deciders, DaemonError> {
    let refused = |text: String| DaemonError::Refused(text);
    settings.check_tenants_under(acting).map_err(|error| refused(said(&error)))?;
    settings.check_time_of(acting).map_err(|error| refused(said(&error)))?;
    let shared = !settings.services.is_empty();
    let around = |policy| if shared { beside_services(policy, &Sharing::default()) } else { policy };
    let wrappers = &settings.wrappers();
    let timeout = Duration::from_millis(settings.reliance.timeout_ms);
    let opened = OpenedPolicy::open(acting)?.live(timeout);
    let name = called.map_or_else(|| opened.name(), str::to_owned);
    let policy = opened.within(wrappers)?;
    // The reasons of a policy are about the jobs and the nodes that it was shown.
    let screen = opened.screen().map(|screen| match shared || !wrappers.is_empty() {
        true => screen.without_reasons(),
        false => screen,
    });
    let policy = around(policy);
    let told = Told { information: information(&*policy, acting.information), batching: policy.batching() };
    if !told.information.allows(policy.needs()) {
        let needs = policy.needs();
        return Err(refused(format!(
            "policy {name} needs {needs}; on real machines there is at most an estimate: use another policy"
        )));
    }
    let fallback = named("[reliance] fallback", &settings.reliance.fallback)?;
    let fallback = wrappers.try_around(|| Ok::<_, DaemonError>(fallback.build(acting.seed, &Sharing::default())))?;
    let fallback = around(fallback);
    let shadow = settings.shadow.clone().map(|shadow| beside(acting, shadow, &name, told, wrappers)).transpose()?;
    let system = |source| DaemonError::System { action: "cannot start a thread for the policy".into(), source };
    let journal = settings.state.directory.join(JOURNAL);
    let starts = match opened.program() {
        None => {
            let incumbent = (name.clone(), maker(acting.clone(), wrappers.clone()));
            Some(StartPredictor::new(incumbent, journal).map_err(system)?)
        }
        Some(_) => None,
    };
    // The cluster as it is goes by the batch sizes of the jobs at hand, whatever the baseline was published with.
    let baseline = settings.report.comparison();
    let incumbent = (name.clone(), maker(acting.clone(), wrappers.clone()));
    let of_baseline = PolicyConfig { bundle: None, name: baseline.name.clone(), seed: 0, ..acting.clone() };
    // The cluster as it is has no wrappers.
    let candidate = (settings.report.baseline.clone(), maker(of_baseline, Wrappers::default()));
    let outlook = Shadow::new(baseline, incumbent, candidate).map_err(system)?;
    let chooser = Chooser::new(settings.reliance.clone(), (&name, policy), fallback, screen).map_err(system)?;
    let lease = Duration::from_secs(u64::from(settings.state.lease_secs));
    let chooser = chooser.with_program(opened.program().cloned()).with_name(opened.heuristic().cloned());
    let chooser = chooser.with_first_decision(lease / 3);
    Ok(Deciders { chooser, shadow, outlook: Some(outlook), starts, told, bundle: opened.bundle().cloned() })
}

/// The candidate beside the policy that acts.
fn beside(
    acting: &PolicyConfig,
    settings: ShadowConfig,
    incumbent: &str,
    told: Told,
    wrappers: &Wrappers,
) -> Result<Shadow, DaemonError> {
    let of_shadow = PolicyConfig {
        bundle: settings.bundle.clone(),
        name: settings.name.clone(),
        seed: settings.seed,
        ..acting.clone()
    };
    let refused = |why: String| Err(DaemonError::Refused(format!("[shadow]: {why}")));
    let opened = OpenedPolicy::open(&of_shadow)?;
    let (name, candidate) = (opened.name(), opened.make()?);
    if !information(&*candidate, acting.information).allows(candidate.needs()) {
        return refused(format!("{name} needs {}; on real machines there is at most an estimate", candidate.needs()));
    }
    if candidate.batching() != told.batching {
        let (one, other) = (told.batching, candidate.batching());
        return refused(format!(
            "{incumbent} goes by {one:?} batch sizes and {name} by {other:?}: the same jobs have other speeds then, and there is nothing to compare"
        ));
    }
    let system = |source| DaemonError::System { action: "cannot start a thread for the shadow".into(), source };
    let incumbent = (incumbent.to_owned(), maker(acting.clone(), wrappers.clone()));
    Shadow::new(settings, incumbent, (name, maker(of_shadow, wrappers.clone()))).map_err(system)
}

/// Maker of fresh instances of a policy within wrappers, for simulations.
fn maker(settings: PolicyConfig, wrappers: Wrappers) -> Maker {
    Box::new(move |cluster| {
        let said = |error: DaemonError| error.to_string();
        let opened = OpenedPolicy::open(&settings).map_err(said)?;
        if let Some(screen) = opened.screen() {
            screen.fits(cluster).map_err(|error| error.to_string())?;
        }
        let policy = opened.within(&wrappers).map_err(said)?;
        let information = information(&*policy, settings.information);
        Ok(RolloutPolicy { policy, information, program: opened.program().cloned() })
    })
}

/// Error of the configuration, with its remedy.
fn said(error: &CheckError) -> String {
    error.remedy.map_or_else(|| error.to_string(), |remedy| format!("{error}; {remedy}"))
}

/// Information that a policy may have live: never facts that only a simulation knows.
fn information(policy: &dyn Policy, setting: InformationSetting) -> Information {
    match (setting, policy.information()) {
        (InformationSetting::Profiled, _) | (InformationSetting::Policy, Information::Profiled) => {
            Information::Profiled
        }
        _ => Information::Estimate { sigma: 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn paths_of_files_are_made_absolute() -> std::io::Result<()> {
        let here = std::env::current_dir()?.display().to_string();
        for (given, made) in [
            ("proc: ./policy --greedy 1,2", format!("proc:{here}/policy --greedy 1,2")),
            ("proc:python3 Cargo.toml src", format!("proc:python3 {here}/Cargo.toml src")),
            ("python:module:Class", "python:module:Class".to_owned()),
            ("runs/1/policy.bundle", format!("{here}/runs/1/policy.bundle")),
            ("srtf", "srtf".to_owned()),
        ] {
            assert_eq!(absolute(given)?, made);
        }
        Ok(())
    }
}
