//! Check of the guarantees around policies: `[resilience]`.

use std::fmt::Display;

use goodput_agents::compose::resilience::Resilience;
#[cfg(feature = "scenarios")]
use goodput_env::scenario::Allocation;

use crate::error::CheckError;
use crate::names::did_you_mean;
use crate::tenants::TenantConfig;

/// Checks the values of `[resilience]` in a file that declares `tenants`.
///
/// # Errors
/// [`CheckError`] that names the key and what it may be.
pub(crate) fn check(resilience: &Resilience, tenants: &[TenantConfig]) -> Result<(), CheckError> {
    if let Some(terms) = &resilience.reserve {
        expect(terms.gpus > 0, "resilience.reserve.gpus", terms.gpus, "at least 1, or no [resilience.reserve]")?;
        if terms.tenants.is_empty() && terms.priority.is_none() {
            let text = "[resilience.reserve] names no key jobs: give tenants = [\"NAME\"], priority = NUMBER, or both";
            return Err(CheckError::at("resilience.reserve", text));
        }
        let known = || tenants.iter().map(|tenant| tenant.name.as_str());
        if let Some(name) = terms.tenants.iter().find(|name| known().all(|known| known != name.as_str())) {
            let expected = format!("names of [[tenants]]{}", did_you_mean(name, known()));
            return Err(CheckError::value("resilience.reserve.tenants", format!("{name:?}"), expected));
        }
    }
    if let Some(terms) = &resilience.quarantine {
        let count = (1..=1000).contains(&terms.failures);
        expect(count, "resilience.quarantine.failures", terms.failures, "1 to 1000")?;
        for (key, hours) in [
            ("resilience.quarantine.window_hours", terms.window_hours),
            ("resilience.quarantine.hold_hours", terms.hold_hours),
        ] {
            expect(hours > 0.0 && hours <= 8760.0, key, hours, "a positive number of at most 8760 hours (a year)")?;
        }
        let share = (0.0..=100.0).contains(&terms.most_percent);
        expect(share, "resilience.quarantine.most_percent", terms.most_percent, "0 to 100")?;
    }
    if let Some(terms) = &resilience.back_off {
        let (first, longest) = (terms.first_secs, terms.longest_secs);
        let bounded = first > 0.0 && first <= 86_400.0;
        expect(bounded, "resilience.back_off.first_secs", first, "a positive number of at most 86400 seconds")?;
        let ordered = longest >= first && longest <= 31_536_000.0;
        expect(
            ordered,
            "resilience.back_off.longest_secs",
            longest,
            "resilience.back_off.first_secs to 31536000 seconds (a year)",
        )?;
    }
    Ok(())
}

/// Checks that no reserve stops jobs that the allocation of the run protects.
///
/// # Errors
/// [`CheckError`] at the allocation.
#[cfg(feature = "scenarios")]
pub(crate) fn check_allocation(resilience: &Resilience, allocation: Option<Allocation>) -> Result<(), CheckError> {
    match allocation.filter(|allocation| resilience.reserve.is_some() && !allocation.preempts()) {
        None => Ok(()),
        Some(allocation) => {
            let (key, name) = ("environment.allocation", allocation.name());
            let text =
                format!("{key} is {name:?}, which stops no job, and [resilience.reserve] stops jobs on its nodes");
            let remedy = Some("choose static-preemptive or dynamic-preemptive, or remove [resilience.reserve]");
            Err(CheckError { remedy, ..CheckError::at(key, text) })
        }
    }
}

fn expect(holds: bool, key: &'static str, value: impl Display, expected: &str) -> Result<(), CheckError> {
    if holds { Ok(()) } else { Err(CheckError::value(key, value, expected)) }
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use crate::live::deployment::Deployment;
    use crate::reader;

    const DEPLOYMENT: &str =
        "[engine.slurm]\n[policy]\nname = \"fifo\"\n[state]\ndirectory = \"/tmp\"\n[[tenants]]\nname = \"key\"\n";
    const EXPERIMENT: &str = "name = \"e\"\n[[cluster.groups]]\naccelerator = \"gpu\"\nnodes = 2\ngpus_per_node = 4\n[[tenants]]\nname = \"key\"\n[[workload.bursts]]\ntenant = \"key\"\njobs = 1\ngpus = 1\nrun_secs = 1.0\n";

    /// Message about a table, equal in an experiment and in a deployment.
    #[allow(clippy::unwrap_used, reason = "helpers of tests")]
    fn refusal(table: &str) -> String {
        let deployment = reader::parse::<Deployment>("live.toml", &format!("{DEPLOYMENT}{table}"));
        let experiment = reader::parse::<Experiment>("sim.toml", &format!("{EXPERIMENT}{table}"));
        let (one, other) = (deployment.err().unwrap().message, experiment.err().unwrap().message);
        let plain = |text: &str| text.splitn(4, ':').last().unwrap_or_default().trim().to_owned();
        assert_eq!(plain(&one), plain(&other));
        plain(&one)
    }

    #[test]
    fn wrong_guarantees_are_refused_by_their_key() {
        for (table, says) in [
            ("[resilience.reserve]\ngpus = 0\npriority = 1", "resilience.reserve.gpus is 0"),
            ("[resilience.reserve]\ngpus = 4", "names no key jobs"),
            ("[resilience.reserve]\ngpus = 4\ntenants = [\"kye\"]", "did you mean \"key\"?"),
            ("[resilience.quarantine]\nfailures = 0", "resilience.quarantine.failures is 0"),
            ("[resilience.quarantine]\nhold_hours = -1.0", "resilience.quarantine.hold_hours is -1"),
            ("[resilience.quarantine]\nmost_percent = 200.0", "resilience.quarantine.most_percent is 200"),
            ("[resilience.back_off]\nfirst_secs = 0.0", "resilience.back_off.first_secs is 0"),
            ("[resilience.back_off]\nlongest_secs = 1.0", "resilience.back_off.longest_secs is 1"),
        ] {
            let text = refusal(table);
            assert!(text.contains(says), "{table}: {text}");
        }
        let fine = format!("{EXPERIMENT}[resilience.reserve]\ngpus = 4\ntenants = [\"key\"]\n[resilience.back_off]\n");
        assert!(reader::parse::<Experiment>("sim.toml", &fine).is_ok());
    }
}
