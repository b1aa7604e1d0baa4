//! A daemon from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_agents::compose::loaning::{Sharing, beside_services};
use goodput_agents::compose::{NamedPolicy, Wrappers};
use goodput_agents::zoo;
use goodput_configs::error::CheckError;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::policy::{InformationSetting, PolicyConfig, ShadowConfig};
use goodput_configs::policies;
use goodput_env::application::Application;
use goodput_env::gym::ExpectedPeak;
use goodput_env::policy::{Policy, Scope};
use goodput_env::scenario::{Batching, Information, SimOptions};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;

use super::decide::chooser::Chooser;
use super::guard::screen::Screen;
use super::observe::{ClusterObserver, Setting};
use super::shadow::{Maker, Shadow};
use super::{Daemon, DaemonError};
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
    let Deciders { chooser, shadow, outlook, told } = deciders(&settings, &settings.policy, None)?;
    if settings.reliance.fallback == chooser.name() {
        let policy = chooser.name();
        tracing::info!(policy, "the fallback is the policy itself; [reliance] fallback names another one");
    }
    let options = SimOptions { information: told.information, batching: told.batching, ..SimOptions::standard() };
    let speedup = settings.cycle.speedup;
    let setting = Setting { applications, tenants, options, speedup, start: SimTime::from_secs_f64(speedup) };
    let mut daemon = Daemon::new(engine, settings, ClusterObserver::new(setting), chooser)?;
    (daemon.shadow, daemon.outlook) = (shadow, outlook);
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
    /// Knowledge of jobs that is shown to policies.
    pub told: Told,
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
    let shared = !settings.services.is_empty();
    let around = |policy| if shared { beside_services(policy, &Sharing::default()) } else { policy };
    let wrappers = &settings.wrappers();
    let (name, policy, screen) = policy_within(acting, wrappers)?;
    let name = called.map_or(name, str::to_owned);
    let policy = around(policy);
    let screen = if shared { screen.map(Screen::without_reasons) } else { screen };
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
    // The cluster as it is goes by the batch sizes of the jobs at hand, whatever the baseline was published with.
    let baseline = settings.report.comparison();
    let incumbent = (name.clone(), maker(acting.clone(), wrappers.clone()));
    let of_baseline =
        PolicyConfig { bundle: None, name: baseline.name.clone(), seed: 0, information: acting.information };
    // The cluster as it is has no wrappers.
    let candidate = (settings.report.baseline.clone(), maker(of_baseline, Wrappers::default()));
    let outlook = Shadow::new(baseline, incumbent, candidate).map_err(system)?;
    let mut chooser = Chooser::new(settings.reliance.clone(), (&name, policy), fallback, screen).map_err(system)?;
    if let Some(text) = &acting.name {
        chooser = chooser.called(self::named("[policy] name", text)?);
    }
    Ok(Deciders { chooser, shadow, outlook: Some(outlook), told })
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
        information: acting.information,
    };
    let refused = |why: String| Err(DaemonError::Refused(format!("[shadow]: {why}")));
    let (name, candidate, _) = self::policy(&of_shadow)?;
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
        let (_, policy, screen) = policy_within(&settings, &wrappers).map_err(|error| error.to_string())?;
        if let Some(screen) = screen {
            screen.fits(cluster).map_err(|error| error.to_string())?;
        }
        let told = information(&*policy, settings.information);
        Ok((policy, told))
    })
}

/// Error of the configuration, with its remedy.
fn said(error: &CheckError) -> String {
    error.remedy.map_or_else(|| error.to_string(), |remedy| format!("{error}; {remedy}"))
}

/// Heuristic that the file names at `key`.
fn named(key: &str, name: &str) -> Result<NamedPolicy, DaemonError> {
    name.parse().map_err(|error| DaemonError::Refused(format!("{key} = {name:?}: {}", policies::explain(&error))))
}

type ChosenPolicy = (String, Box<dyn Policy>, Option<Screen>);

/// The policy of `settings` within wrappers.
///
/// # Errors
/// [`DaemonError::Refused`] where the policy cannot be had, or is none of training jobs alone.
fn policy_within(settings: &PolicyConfig, wrappers: &Wrappers) -> Result<ChosenPolicy, DaemonError> {
    let (name, plain, screen) = policy(settings)?;
    if wrappers.is_empty() {
        return Ok((name, plain, screen));
    }
    if plain.scope() == Scope::Everything {
        let text = "decides about services and loans, which [resilience] and [adaptation] cannot be put around";
        return Err(DaemonError::Refused(format!("policy {name} {text}: name a policy of training jobs")));
    }
    let guarded = wrappers.try_around(|| policy(settings).map(|(_, policy, _)| policy))?;
    // The reasons of a policy are about the jobs and the nodes that it was shown.
    Ok((name, guarded, screen.map(Screen::without_reasons)))
}

fn policy(settings: &PolicyConfig) -> Result<ChosenPolicy, DaemonError> {
    let refused = |text: String| DaemonError::Refused(text);
    if let Some(name) = &settings.name {
        let named = named("[policy] name", name)?;
        return Ok((named.to_string(), named.build(settings.seed, &Sharing::default()), None));
    }
    let path: PathBuf = settings.bundle.clone().unwrap_or_default();
    let bundle = zoo::open(&path).map_err(|error| refused(format!("[policy] bundle: {error}")))?;
    let policy = bundle
        .policy(ExpectedPeak::default())
        .map_err(|error| refused(format!("[policy] bundle {}: decoder options: {error}", path.display())))?;
    let name = path.file_stem().map_or_else(|| "bundle".into(), |stem| stem.to_string_lossy().into_owned());
    Ok((name, policy, Some(Screen::new(&bundle))))
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
