//! Conventions of published simulators.

use goodput_configs::scenario::EnvironmentConfig;
use goodput_console::{Cell, Listing};
use goodput_env::scenario::{EpochEnd, Preset, Release};

use crate::args::PODS;

/// Listing of `goodput list presets`.
pub fn presets() -> Listing {
    let mut rows = Listing::new(&[
        "preset",
        "rounds",
        "release",
        "epoch_end",
        "switch_cost",
        "batching",
        "information",
        "agent_fit",
        "about",
        "source",
    ])
    .brief(&["preset", "rounds", "switch_cost", "batching", "information", "about"]);
    for preset in Preset::ALL {
        let environment = EnvironmentConfig::under(preset);
        let rounds = match environment.round_secs {
            Some(secs) => format!("{secs} s"),
            None => "on churn".into(),
        };
        let release = match environment.release {
            Release::Immediately => "at once",
            Release::NextRound => "next round",
        };
        let epoch_end = match environment.epoch_end {
            EpochEnd::Millisecond => "millisecond",
            EpochEnd::WholeSecond => "whole second",
        };
        let batching = preset.batching().map_or_else(own, |batching| format!("{batching:?}").to_lowercase().into());
        let information = preset.information().map_or_else(own, |level| level.to_string().into());
        rows.push(vec![
            preset.name().into(),
            rounds.into(),
            release.into(),
            epoch_end.into(),
            environment.switch_cost.as_str().into(),
            batching,
            information,
            format!("{:?}", preset.agent_fit()).to_lowercase().into(),
            preset.about().into(),
            preset.source().into(),
        ]);
    }
    let none = || Cell::from("-");
    rows.push(vec![
        PODS.into(),
        "one pod at a time".into(),
        "never".into(),
        none(),
        none(),
        none(),
        none(),
        none(),
        "pods of openb, drawn up to 130 % of the accelerators, on nodes in a drawn order; for `sim`".into(),
        "Weng et al., ATC 2023; hkust-adsl/kubernetes-scheduler-simulator".into(),
    ]);
    rows
}

/// Cell of a convention that each policy brings along.
fn own() -> Cell {
    "the policy's".into()
}
