//! Names that applications go by.
//!
//! Users train a model again and again, and policies that share measurements or remember lengths know a job by the name
//! of its model. How much such a policy gains depends on how often a name comes back. A catalog has few applications,
//! so its names come back more often than those of a real cluster may. With several names for each application the
//! recurrence of names is an axis of an experiment. Jobs of different names are equally fast, and no policy is told so.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;

use crate::job::{Work, Workload};
use crate::seed::{Stream, rng};

/// Most names of an application.
pub const MOST_NAMES: u32 = 1000;

/// Gives each job that trains an application one of `names` names of the application, such as `bert.3`, drawn by
/// `seed`. Policies are shown the name, and jobs of one name share what they measure. Speeds and costs of restarts stay
/// those of the application. Indices of applications change, so a scenario of the workload needs speed tables anew.
pub fn rename(workload: &mut Workload, names: u32, seed: u64) {
    let mut random = rng(seed, Stream::Names);
    let mut applications = Vec::new();
    let mut places = BTreeMap::<(u16, u32), (u16, Arc<str>)>::new();
    for job in &mut workload.jobs {
        if let Work::Application { index, .. } = &mut job.work {
            let drawn = random.random_range(0..names);
            let (place, name) = places.entry((*index, drawn)).or_insert_with(|| {
                let known = &workload.applications[usize::from(*index)];
                applications.push(known.clone());
                ((applications.len() - 1) as u16, format!("{}.{drawn}", known.name).into())
            });
            *index = *place;
            workload.models.insert(job.request.name.clone(), name.clone());
        }
    }
    workload.applications = applications;
}
