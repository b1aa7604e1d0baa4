//! Names that applications go by.
//!
//! Users train a model again and again, and policies that share measurements or remember lengths know a job by the name
//! of its application. How much such a policy gains depends on how often a name comes back. A catalog has few
//! applications, so its names come back more often than those of a real cluster may. With several names for each
//! application the recurrence of names is an axis of an experiment: jobs of different names are equally fast, and no
//! policy is told so.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;

use crate::application::Application;
use crate::job::{Work, Workload};
use crate::seed::{Stream, rng};

/// Most names of an application.
pub const MOST_NAMES: u32 = 1000;

/// Gives each job that trains an application one of `names` names of the application, such as `bert.3`, drawn by
/// `seed`. Jobs of one name share an application.
pub fn rename(workload: &mut Workload, names: u32, seed: u64) {
    let mut random = rng(seed, Stream::Names);
    let mut applications = Vec::new();
    let mut places = BTreeMap::<(u16, u32), u16>::new();
    for job in &mut workload.jobs {
        if let Work::Application { index, .. } = &mut job.work {
            let name = random.random_range(0..names);
            *index = *places.entry((*index, name)).or_insert_with(|| {
                let known = &workload.applications[usize::from(*index)];
                let named = Application { name: format!("{}.{name}", known.name), ..Application::clone(known) };
                applications.push(Arc::new(named));
                (applications.len() - 1) as u16
            });
        }
    }
    workload.applications = applications;
}
