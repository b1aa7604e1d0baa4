//! Check of priorities and quotas that adapt: `[adaptation]`.

use std::fmt::Display;

use goodput_agents::compose::adaptation::Adaptation;

use crate::error::CheckError;
use crate::tenants::{CohortConfig, TenantConfig};

/// Checks the values of `[adaptation]` in a file that declares these tenants and cohorts.
///
/// # Errors
/// [`CheckError`] that names the key and what it may be.
pub(crate) fn check(
    adaptation: &Adaptation,
    tenants: &[TenantConfig],
    cohorts: &[CohortConfig],
) -> Result<(), CheckError> {
    if let Some(terms) = &adaptation.priority {
        for (key, weight) in [
            ("adaptation.priority.age_weight", terms.age_weight),
            ("adaptation.priority.fair_share_weight", terms.fair_share_weight),
        ] {
            expect(weight <= 1_000_000_000, key, weight, "at most 1000000000")?;
        }
        for (key, secs) in [
            ("adaptation.priority.max_age_secs", terms.max_age_secs),
            ("adaptation.priority.half_life_secs", terms.half_life_secs),
        ] {
            expect(secs > 0.0 && secs <= 1e9, key, secs, "a positive number of at most 1000000000 seconds")?;
        }
        let dampening = terms.dampening;
        let key = "adaptation.priority.dampening";
        expect(dampening > 0.0 && dampening <= 1e6, key, dampening, "a positive number of at most 1000000")?;
    }
    if let Some(terms) = &adaptation.quota {
        let (window, floor) = (terms.window_secs, terms.floor);
        expect((0.0..=1e9).contains(&window), "adaptation.quota.window_secs", window, "0 to 1000000000 seconds")?;
        expect((0.0..=1.0).contains(&floor), "adaptation.quota.floor", floor, "0 to 1")?;
        if tenants.iter().all(|tenant| tenant.quota.is_empty() || tenant.cohort.is_none()) {
            let text = "[adaptation.quota] has nothing to move: give tenants a quota and one cohort, as in \
                        quota.gpu.nominal = 4 and cohort = \"all\"";
            return Err(CheckError::at("adaptation.quota", text));
        }
        if let Some(cohort) = cohorts.iter().find(|cohort| cohort.cohort.is_some() || !cohort.quota.is_empty()) {
            let text = format!(
                "[adaptation.quota] moves quotas between the tenants of one cohort, and cohort {:?} has a quota or a \
                 cohort of its own: give the quota to tenants, or remove [adaptation.quota]",
                cohort.name
            );
            return Err(CheckError::at("adaptation.quota", text));
        }
    }
    Ok(())
}

fn expect(holds: bool, key: &'static str, value: impl Display, expected: &str) -> Result<(), CheckError> {
    if holds { Ok(()) } else { Err(CheckError::value(key, value, expected)) }
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use crate::live::deployment::Deployment;
    use crate::reader;

    const TENANTS: &str = "[[cohorts]]\nname = \"all\"\n[[tenants]]\nname = \"a\"\ncohort = \"all\"\n";
    const DEPLOYMENT: &str = "[engine.slurm]\n[policy]\nname = \"fifo\"\n[state]\ndirectory = \"/tmp\"\n";
    const EXPERIMENT: &str = "name = \"e\"\n[[cluster.groups]]\naccelerator = \"gpu\"\nnodes = 2\ngpus_per_node = 4\n[[workload.bursts]]\ntenant = \"a\"\njobs = 1\ngpus = 1\nrun_secs = 1.0\n";

    /// Message about a table, equal in an experiment and in a deployment; `None` where both are fine.
    fn refusal(tables: &str) -> Option<String> {
        let plain = |text: String| text.splitn(4, ':').last().unwrap_or_default().trim().to_owned();
        let deployment = reader::parse::<Deployment>("live.toml", &format!("{DEPLOYMENT}{tables}"));
        let experiment = reader::parse::<Experiment>("sim.toml", &format!("{EXPERIMENT}{tables}"));
        let (one, other) = (deployment.err().map(|of| plain(of.message)), experiment.err().map(|of| plain(of.message)));
        assert_eq!(one, other);
        one
    }

    #[test]
    fn wrong_adaptation_is_refused_by_its_key() {
        let owned = format!("{TENANTS}quota.gpu.nominal = 4\n");
        for (table, says) in [
            ("[adaptation.priority]\nmax_age_secs = 0.0", "adaptation.priority.max_age_secs is 0"),
            ("[adaptation.priority]\nhalf_life_secs = -1.0", "adaptation.priority.half_life_secs is -1"),
            ("[adaptation.priority]\ndampening = 0.0", "adaptation.priority.dampening is 0"),
            ("[adaptation.quota]\nwindow_secs = -1.0", "adaptation.quota.window_secs is -1"),
            ("[adaptation.quota]\nfloor = 1.5", "adaptation.quota.floor is 1.5"),
        ] {
            let text = refusal(&format!("{owned}{table}\n"));
            assert!(text.as_ref().is_some_and(|text| text.contains(says)), "{table}: {text:?}");
        }
        let nothing = refusal(&format!("{TENANTS}[adaptation.quota]\n"));
        assert!(nothing.is_some_and(|text| text.contains("has nothing to move")));
        let nested = TENANTS.replacen("name = \"all\"\n", "name = \"all\"\nquota.gpu.nominal = 4\n", 1);
        let nested = refusal(&format!("{nested}quota.gpu.nominal = 4\n[adaptation.quota]\n"));
        assert!(nested.is_some_and(|text| text.contains("cohort \"all\" has a quota")));
        assert_eq!(refusal(&format!("{owned}[adaptation.priority]\n[adaptation.quota]\n")), None);
    }
}
