//! Checks of the values of `[environment.faults]` and `[environment.checkpoint]`. The tables are
//! those of the fault and checkpoint models.

use goodput_env::cluster::Cluster;
use goodput_env::model::fault::{Bugs, Cause, LogNormal};
use goodput_env::model::{Checkpointing, FaultModel, Interval};

use super::SetupError;

type Checked = Result<(), SetupError>;

fn expect(holds: bool, key: &'static str, value: impl ToString, expected: &str) -> Checked {
    if holds { Ok(()) } else { Err(SetupError::Value { key, value: value.to_string(), expected: expected.into() }) }
}

fn positive(key: &'static str, value: f64) -> Checked {
    expect(value > 0.0 && value.is_finite(), key, value, "a positive number")
}

fn share(key: &'static str, value: f64) -> Checked {
    expect((0.0..=1.0).contains(&value), key, value, "0 to 1")
}

fn time(median: &'static str, sigma: &'static str, value: LogNormal) -> Checked {
    positive(median, value.median_secs)?;
    expect((0.0..=10.0).contains(&value.sigma), sigma, value.sigma, "0 to 10")
}

/// Checks the values of `[environment.faults]`.
///
/// # Errors
/// [`SetupError::Value`] naming the key.
pub(super) fn check_faults(model: &FaultModel) -> Checked {
    let hours = model.mtbf_hours;
    expect(
        hours > 0.0,
        "environment.faults.mtbf_hours",
        hours,
        "a positive number of hours, or inf for only what is scripted",
    )?;
    let causes = model.causes;
    let weights = [causes.accelerator, causes.node, causes.network];
    let usable = weights.iter().all(|&weight| weight >= 0.0 && weight.is_finite()) && weights.iter().sum::<f64>() > 0.0;
    expect(usable, "environment.faults.causes", format!("{weights:?}"), "weights of at least 0 that are not all 0")?;
    time("environment.faults.repair.median_secs", "environment.faults.repair.sigma", model.repair)?;
    let network = model.degradation;
    expect(
        network.factor >= 1.0 && network.factor.is_finite(),
        "environment.faults.degradation.factor",
        network.factor,
        "at least 1",
    )?;
    positive("environment.faults.degradation.shortest_secs", network.shortest_secs)?;
    expect(
        network.longest_secs >= network.shortest_secs && network.longest_secs.is_finite(),
        "environment.faults.degradation.longest_secs",
        network.longest_secs,
        "at least shortest_secs",
    )?;
    if let Some(lemons) = model.lemons {
        share("environment.faults.lemons.share", lemons.share)?;
        positive("environment.faults.lemons.factor", lemons.factor)?;
    }
    if let Some(Bugs { share: buggy, after, .. }) = model.bugs {
        share("environment.faults.bugs.share", buggy)?;
        time("environment.faults.bugs.after.median_secs", "environment.faults.bugs.after.sigma", after)?;
    }
    for fault in &model.script {
        expect(
            (0.0..1e12).contains(&fault.at_secs),
            "environment.faults.script.at_secs",
            fault.at_secs,
            "seconds, at least 0",
        )?;
        if let Some(secs) = fault.lasts_secs {
            positive("environment.faults.script.lasts_secs", secs)?;
        }
        let forever = fault.cause == Cause::Scheduler && fault.lasts_secs.is_none();
        expect(
            !forever,
            "environment.faults.script.lasts_secs",
            "absent",
            "a number of seconds: a scheduler must come back",
        )?;
    }
    Ok(())
}

/// Checks what the script says of the machines there are.
///
/// # Errors
/// [`SetupError::Value`] for a node that does not exist.
pub(super) fn check_script(model: &FaultModel, cluster: &Cluster) -> Checked {
    let nodes = cluster.nodes.len();
    let unknown = model.script.iter().find(|fault| fault.node.index() >= nodes);
    let Some(fault) = unknown else { return Ok(()) };
    Err(SetupError::Value {
        key: "environment.faults.script.node",
        value: fault.node.to_string(),
        expected: format!("0 to {}, an index into the cluster's nodes", nodes.saturating_sub(1)),
    })
}

/// Checks the values of `[environment.checkpoint]`.
///
/// # Errors
/// [`SetupError::Value`] naming the key.
pub(super) fn check_checkpoint(checkpoint: &Checkpointing) -> Checked {
    if let Interval::Fixed { secs } = checkpoint.interval {
        expect((1.0..1e12).contains(&secs), "environment.checkpoint.interval.fixed.secs", secs, "at least 1 second")?;
    }
    if let Some(rate) = checkpoint.gb_per_sec {
        positive("environment.checkpoint.gb_per_sec", rate)?;
    }
    positive("environment.checkpoint.other_millions", checkpoint.other_millions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::cluster::NodeId;
    use goodput_env::model::fault::Scripted;

    fn message(checked: Checked) -> String {
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn errors_name_the_key_and_what_it_should_be() {
        assert_eq!(message(check_faults(&FaultModel::default())), "");
        assert_eq!(message(check_checkpoint(&Checkpointing::default())), "");
        let never = FaultModel { mtbf_hours: 0.0, ..FaultModel::default() };
        assert!(
            message(check_faults(&never)).contains("environment.faults.mtbf_hours is 0, expected a positive number")
        );
        let fault = Scripted { at_secs: 5.0, cause: Cause::Node, node: NodeId(4), lasts_secs: None };
        let script = FaultModel::scripted(vec![fault]);
        assert_eq!(message(check_faults(&script)), "");
        assert!(message(check_script(&script, &Cluster::homogeneous(4, 8))).contains("node is 4, expected 0 to 3"));
        let gone = FaultModel::scripted(vec![Scripted { cause: Cause::Scheduler, ..fault }]);
        assert!(message(check_faults(&gone)).contains("must come back"));
        let often = Checkpointing { interval: Interval::Fixed { secs: 0.0 }, ..Checkpointing::default() };
        assert!(message(check_checkpoint(&often)).contains("at least 1 second"));
    }
}
