//! Conventions of a run: those of a preset, the options that replace some of them, and replicas outside of theirs.

use goodput_agents::compose::preset_of;
use goodput_configs::policies;
use goodput_configs::scenario::EnvironmentConfig;
use goodput_console::{CommandError, say};
use goodput_env::model::SwitchCost;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Preset, SimOptions};

use crate::args::{InformationLevel, Sim};
use crate::config::setup_error;

/// Options of a run of `goodput sim`. What replaces a convention of the preset is said.
pub fn options(args: &Sim, policy: &dyn Policy) -> Result<SimOptions, CommandError> {
    warn_of_replica(&args.policy, args.conventions(), "--preset");
    let (batching, information) = (policy.batching(), policy.information());
    let mut options = match args.conventions() {
        Some(preset) => preset.options_for(policy),
        None => SimOptions { batching, information, ..SimOptions::standard() },
    };
    let replaces = |option: &str, given: &dyn std::fmt::Display, usual: &dyn std::fmt::Display| {
        if let Some(preset) = args.conventions() {
            say(&format!("note: {option} {given} replaces {usual} of {}", preset.name()));
        }
    };
    if let Some(level) = args.information {
        let given = match level {
            InformationLevel::Profiled => Information::Profiled,
            InformationLevel::Estimate => Information::Estimate { sigma: args.estimate_sigma },
            InformationLevel::Oracle => Information::Oracle,
        };
        if given != options.information {
            replaces("--information", &given, &options.information);
        }
        options.information = given;
    }
    if let Some(name) = &args.switch_cost {
        let given = SwitchCost::by_name(name).ok_or_else(|| {
            CommandError::input(format!("there is no switch cost model {name:?}"))
                .with_help(format!("models: {}", SwitchCost::names().join(", ")))
        })?;
        if given != options.switch_cost {
            replaces("--switch-cost", name, &options.switch_cost.name().unwrap_or("another model"));
        }
        options.switch_cost = given;
    }
    options.interference = args.interference;
    policies::check_allocation("--policy", &args.policy, args.allocation).map_err(|error| setup_error(error.into()))?;
    options.allocation = args.allocation;
    Ok(options)
}

/// Says which keys of an experiment replace conventions of its preset.
pub fn say_overrides(environment: &EnvironmentConfig) {
    let Some(preset) = environment.preset else { return };
    for replaced in environment.overrides() {
        let (key, given, usual) = (replaced.key, replaced.given, replaced.preset);
        say(&format!("note: {key} = {given} replaces {usual} of {}", preset.name()));
    }
}

/// Warns of the replica of an artifact that does not run under the conventions of its artifact. `option` is what
/// sets them.
pub fn warn_of_replica(policy: &str, given: Option<Preset>, option: &str) {
    let Some(own) = preset_of(policy).filter(|own| given != Some(*own)) else { return };
    let name = own.name();
    say(&format!(
        "warning: {policy} imitates its artifact under other conventions than the artifact's, so its figures \
         do not compare with the artifact's: add {option} {name}"
    ));
}
