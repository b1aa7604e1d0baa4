//! Check that the applications of a workload have a speed on the accelerators of the cluster.

use std::collections::BTreeSet;

use goodput_datasets::accelerators::Accelerators;
use goodput_env::application::Application;
use goodput_env::cluster::Cluster;
use goodput_env::job::{Work, Workload};

use super::SetupError;
use crate::names::did_you_mean;

/// Name of an accelerator type that stands for the reference type of each application.
pub const ANY_TYPE: &str = "gpu";

/// Checks the accelerator types of `cluster` against the jobs of `workload` that train an application.
/// Jobs of which only a duration is known run on every type.
///
/// # Errors
/// [`SetupError::Value`] for a type that no catalog knows, and for a cluster on which an application of the workload
/// has no speed.
pub fn known_speeds(cluster: &Cluster, workload: &Workload) -> Result<(), SetupError> {
    let trained = workload.jobs.iter().filter_map(|job| match job.work {
        Work::Application { index, .. } => workload.applications.get(usize::from(index)),
        Work::Fixed { .. } | Work::Steps { .. } => None,
    });
    let trained: BTreeSet<&str> = trained.map(|application| application.name.as_str()).collect();
    check(cluster, workload.applications.iter().filter(|of| trained.contains(of.name.as_str())).map(|of| &**of))
}

/// Checks the accelerator types of `cluster` against these applications.
///
/// # Errors
/// As [`known_speeds`].
pub(super) fn check<'a>(
    cluster: &Cluster,
    applications: impl Iterator<Item = &'a Application>,
) -> Result<(), SetupError> {
    let applications: Vec<&Application> = applications.collect();
    if applications.is_empty() {
        return Ok(());
    }
    let fast: BTreeSet<&str> = applications.iter().flat_map(|of| of.params.keys().map(String::as_str)).collect();
    let problem = |name: &str, expected: String| {
        let near = did_you_mean(name, fast.iter().copied());
        Err(SetupError::Value {
            key: "cluster.groups.accelerator",
            value: format!("{name:?}"),
            expected: expected + &near,
        })
    };
    let list = || fast.iter().copied().collect::<Vec<_>>().join(", ");
    let has_speed = |name: &str| name == ANY_TYPE || fast.contains(name);
    let names = || cluster.types.iter().map(|of| of.name.as_str());
    if let Some(unknown) = names().find(|name| !has_speed(name) && Accelerators::shipped().get(name).is_none()) {
        return problem(unknown, format!("a type on which the applications have speeds: {}", list()));
    }
    let Some(first) = names().next() else { return Ok(()) };
    if !names().any(has_speed) {
        return problem(first, format!("at least one type on which the applications have speeds: {}", list()));
    }
    let runs = |of: &Application| names().any(|name| name == ANY_TYPE || of.params.contains_key(name));
    let known = |of: &Application| of.params.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match applications.iter().find(|of| !runs(of)) {
        Some(of) => problem(first, format!("at least one type on which {} has a speed: {}", of.name, known(of))),
        None => applications.iter().try_for_each(|of| check_size(cluster, of, &known(of))),
    }
}

/// Checks that one type has as many accelerators as the smallest published plan of an application, for a job runs on
/// accelerators of one type.
fn check_size(cluster: &Cluster, application: &Application, known: &str) -> Result<(), SetupError> {
    let has_speed = |name: &str| name == ANY_TYPE || application.params.contains_key(name);
    let types = cluster.types.iter().enumerate().filter(|(_, of)| has_speed(&of.name));
    let of_type = |index: usize| -> u32 {
        cluster.nodes.iter().filter(|node| node.accelerator.index() == index).map(|node| node.gpus).sum()
    };
    let most = types.map(|(index, _)| of_type(index)).max().unwrap_or(0);
    match application.min_replicas() {
        least if least <= most => Ok(()),
        least => Err(SetupError::Value {
            key: "cluster.groups",
            value: format!("at most {most} accelerators of one type on which {} has a speed", application.name),
            expected: format!("at least {least}, as its smallest published plan has, of one of {known}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use goodput_datasets::Catalog;
    use goodput_env::job::{JobRequest, JobSpec};
    use goodput_env::time::SimTime;

    use super::*;

    fn checked(cluster: &str) -> Result<(), String> {
        let cluster = Cluster::parse(cluster).map_err(|error| error.to_string())?;
        let applications = Catalog::shipped().adaptive().iter().map(|of| &**of);
        check(&cluster, applications).map_err(|error| error.to_string())
    }

    #[test]
    fn types_without_speeds_are_found_before_a_run() {
        assert_eq!(checked("4x4"), Ok(()));
        // A known type without speeds may stand beside a type with speeds.
        assert_eq!(checked("t4:1x4,vck5000:1x4"), Ok(()));
        // Of the H100 the speeds of two applications are known.
        assert!(checked("h100:1x4").is_err_and(|text| text.contains("cifar10 has a speed")));
        assert_eq!(checked("h100:1x4,t4:1x4"), Ok(()));
        assert!(checked("vck5000:1x4").is_err_and(|text| text.contains("at least one type")));
        let misspelt = checked("t4:1x4,A100:1x8");
        assert!(misspelt.is_err_and(|text| text.contains("\"A100\"") && text.ends_with("(did you mean \"a100\"?)")));
    }

    #[test]
    fn a_cluster_below_the_smallest_plan_is_found_before_a_run() {
        let of = |cluster: &str, name: &str| {
            let cluster = Cluster::parse(cluster).map_err(|error| error.to_string())?;
            let application = Catalog::shipped().get(name).ok_or("an application")?;
            check(&cluster, std::iter::once(&**application)).map_err(|error| error.to_string())
        };
        // Two types with 16 accelerators each do not make one with the 24 of the smallest plan.
        let error = of("a800:2x8,h100:2x8", "llama-30b");
        assert!(error.is_err_and(|text| text.contains("at least 24, as its smallest published plan has")));
        assert_eq!(of("a800:3x8,h100:2x8", "llama-30b"), Ok(()));
        assert_eq!(of("h100:1x8,t4:4x8", "llama2-70b-lora"), Ok(()));
        assert!(of("h100:1x4,t4:4x8", "llama2-70b-lora").is_err());
    }

    #[test]
    fn jobs_of_known_duration_run_on_every_type() {
        let job = JobSpec { request: JobRequest::default(), work: Work::Fixed { duration: SimTime::from_secs(5) } };
        let workload = Workload::new(Catalog::shipped().applications.clone(), vec![job]);
        let cluster = Cluster::parse("abacus:1x4").expect("a cluster");
        assert!(known_speeds(&cluster, &workload).is_ok());
    }
}
