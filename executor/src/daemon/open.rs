//! A daemon from its configuration.

use std::path::PathBuf;
use std::sync::Arc;

use goodput_agents::compose::loaning::{Sharing, beside_services};
use goodput_agents::{compose, zoo};
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::policy::{InformationSetting, PolicyConfig, ShadowConfig};
use goodput_env::application::Application;
use goodput_env::gym::ExpectedPeak;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, SimOptions};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;

use super::decide::chooser::Chooser;
use super::guard::screen::Screen;
use super::observe::{ClusterObserver, Setting};
use super::shadow::{Maker, Shadow};
use super::{Daemon, DaemonError};
use crate::engine::Engine;

/// The daemon that `settings` describe, over `engine`, for jobs that train `applications`.
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
    let refused = |text: String| DaemonError::Refused(text);
    let shared = !settings.services.is_empty();
    let around = |policy| if shared { beside_services(policy, &Sharing::default()) } else { policy };
    let (name, policy, screen) = policy(&settings.policy)?;
    let policy = around(policy);
    let information = information(&*policy, settings.policy.information);
    if !information.allows(policy.needs()) {
        let needs = policy.needs();
        return Err(refused(format!(
            "policy {name} needs {needs}; on real machines there is at most an estimate: use another policy"
        )));
    }
    let fallback = compose::by_name(&settings.reliance.fallback, settings.policy.seed).ok_or_else(|| {
        let known = compose::names().join(", ");
        refused(format!(
            "[reliance] fallback = {:?}: there is no such heuristic; one of: {known}",
            settings.reliance.fallback
        ))
    })?;
    let fallback = around(fallback);
    if settings.reliance.fallback == name {
        tracing::info!(policy = name, "the fallback is the policy itself; [reliance] fallback names another one");
    }
    let beside = settings.shadow.clone().map(|shadow| beside(&settings.policy, shadow, &name, &*policy));
    let options = SimOptions { information, batching: policy.batching(), ..SimOptions::standard() };
    let speedup = settings.cycle.speedup;
    let setting = Setting { applications, tenants, options, speedup, start: SimTime::from_secs_f64(speedup) };
    let system = |source| DaemonError::System { action: "cannot start a thread for the policy".into(), source };
    let chooser = Chooser::new(settings.reliance.clone(), (&name, policy), fallback, screen).map_err(system)?;
    let mut daemon = Daemon::new(engine, settings, ClusterObserver::new(setting), chooser)?;
    daemon.shadow = beside.transpose()?;
    Ok(daemon)
}

/// The candidate beside the policy that acts.
fn beside(
    acting: &PolicyConfig,
    settings: ShadowConfig,
    incumbent: &str,
    policy: &dyn Policy,
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
    if candidate.batching() != policy.batching() {
        let (one, other) = (policy.batching(), candidate.batching());
        return refused(format!(
            "{incumbent} goes by {one:?} batch sizes and {name} by {other:?}: the same jobs have other speeds then, and there is nothing to compare"
        ));
    }
    let maker = |settings: PolicyConfig| -> Maker {
        Box::new(move |cluster| {
            let (_, policy, screen) = self::policy(&settings).map_err(|error| error.to_string())?;
            if let Some(screen) = screen {
                screen.fits(cluster).map_err(|error| error.to_string())?;
            }
            let told = information(&*policy, settings.information);
            Ok((policy, told))
        })
    };
    let system = |source| DaemonError::System { action: "cannot start a thread for the shadow".into(), source };
    let incumbent = (incumbent.to_owned(), maker(acting.clone()));
    Shadow::new(settings, incumbent, (name, maker(of_shadow))).map_err(system)
}

type ChosenPolicy = (String, Box<dyn Policy>, Option<Screen>);

fn policy(settings: &PolicyConfig) -> Result<ChosenPolicy, DaemonError> {
    let refused = |text: String| DaemonError::Refused(text);
    if let Some(name) = &settings.name {
        let policy = compose::by_name(name, settings.seed).ok_or_else(|| {
            refused(format!(
                "[policy] name = {name:?}: there is no such heuristic; one of: {}",
                compose::names().join(", ")
            ))
        })?;
        return Ok((name.clone(), policy, None));
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
