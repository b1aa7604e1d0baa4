//! Names that applications go by: jobs keep their speed, and share what they measured with jobs of their own name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::model_names::rename;
use goodput_env::time::SimTime;

use crate::support::toy::application;

fn workload(jobs: usize) -> Workload {
    let mut other = (*application()).clone();
    other.name = "other".into();
    let job = |at: usize| JobSpec {
        request: JobRequest {
            name: format!("job-{at}"),
            submit: SimTime::from_secs(at as i64),
            ..JobRequest::default()
        },
        work: Work::Application { index: (at % 2) as u16, work_milli: 500 },
    };
    Workload::new(vec![application(), Arc::new(other)], (0..jobs).map(job).collect())
}

fn names(workload: &Workload) -> Vec<String> {
    (0..workload.jobs.len()).map(|job| workload.model_name(JobId(job as u32)).to_owned()).collect()
}

#[test]
fn every_job_keeps_its_application_under_one_of_its_names() {
    let (before, mut after) = (workload(200), workload(200));
    rename(&mut after, 3, 7);
    let mut jobs = BTreeMap::<String, usize>::new();
    for (own, name) in names(&before).iter().zip(names(&after)) {
        assert_eq!(name.rsplit_once('.').map(|(own, _)| own), Some(&**own));
        *jobs.entry(name).or_default() += 1;
    }
    // Six names for 200 jobs: each recurs about 33 times.
    assert_eq!(jobs.len(), 6, "{jobs:?}");
    assert!(jobs.values().all(|count| (15..=55).contains(count)), "{jobs:?}");
    let application = |workload: &Workload, job| workload.application_name(JobId(job)).to_owned();
    assert!((0..200).all(|job| application(&before, job) == application(&after, job)));
    assert!(after.jobs.iter().all(|job| matches!(job.work, Work::Application { work_milli: 500, .. })));
}

#[test]
fn the_names_are_those_of_the_seed() {
    let drawn = |seed| {
        let mut workload = workload(50);
        rename(&mut workload, 1000, seed);
        names(&workload)
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    // With so many names hardly any comes back.
    assert!(drawn(1).iter().collect::<BTreeSet<_>>().len() > 45);
}
