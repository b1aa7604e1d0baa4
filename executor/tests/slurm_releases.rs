//! Later releases of Slurm: those of Ubuntu noble (23.11), Debian trixie (24.11), Ubuntu resolute (25.11) and Debian
//! sid, which the tests download once.
//!
//! Where a release cannot be had the test says so and passes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_testkit::not_tested;
use goodput_testkit::slurm::{SlurmInstall, SlurmRelease};

use crate::slurm_jobs::{orders_are_carried_out, others_are_left_alone, resources_stay};
use crate::slurm_protocol::scenarios;
use crate::slurm_site::Site;

/// A cluster of a release; `None`, said loudly, where it cannot be had.
fn site(release: SlurmRelease) -> Option<Site> {
    match SlurmInstall::of(release) {
        Ok(release) => Some(Site::start(&release)),
        Err(error) => {
            not_tested(&error.to_string());
            None
        }
    }
}

/// Every order, jobs of others, and the resources of users, on one cluster.
fn is_driven(release: SlurmRelease) {
    let Some(mut site) = site(release) else { return };
    orders_are_carried_out(&mut site);
    for scenario in scenarios() {
        scenario(&mut site);
        site.cluster.cancel_all();
    }
    resources_stay(&site);
    site.cluster.cancel_all();
    others_are_left_alone(&mut site);
}

#[test]
fn slurm_of_noble_is_driven() {
    is_driven(SlurmRelease::Noble);
}

#[test]
fn slurm_of_trixie_is_driven() {
    is_driven(SlurmRelease::Trixie);
}

#[test]
fn slurm_of_resolute_is_driven() {
    is_driven(SlurmRelease::Resolute);
}

#[test]
fn slurm_of_sid_is_driven() {
    is_driven(SlurmRelease::Sid);
}
