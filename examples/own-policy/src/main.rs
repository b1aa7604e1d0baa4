//! The program `goodput` with a scheduling policy written outside of it.

use std::process::ExitCode;

use goodput::agents::placement::{Free, Packer};
use goodput::prelude::*;

/// Smallest job first: waiting jobs start in ascending order of the accelerators that they ask for.
/// Running jobs are never stopped.
#[derive(Default)]
struct SmallestFirst {
    free: Free,
}

impl Policy for SmallestFirst {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        self.free.reset(view);
        let mut waiting: Vec<_> = view.jobs().filter(|job| !job.state.is_allocated()).collect();
        // The sort is stable: jobs of one size keep their order of arrival.
        waiting.sort_by_key(|job| job.request().gpus);
        for job in waiting {
            let gpus = job.request().gpus;
            if let Some(placement) = Packer::FewestNodes.place(view.cluster(), &mut self.free, gpus) {
                plan.set(job.id(), placement);
            }
        }
        plan
    }
}

fn main() -> ExitCode {
    goodput::cli::main_with(&[ListedPolicy {
        name: "own-policy",
        about: "smallest job first, at the requested size; running jobs are never stopped",
        source: "examples/own-policy",
        traits: Traits { preemptive: false, elastic: false, heterogeneous: false },
        constructor: &Fixed(|_seed| Box::new(SmallestFirst::default())),
        replica: None,
    }])
}
