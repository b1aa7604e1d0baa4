//! Jobs that do a part of their application's work, or more than all of it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use crate::support::{application, elastic, scenario};
use goodput_env::cluster::NodeId;
use goodput_env::job::{JobSpec, Work};
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, SimOptions};
use goodput_env::sim::{Outcome, Simulator};
use goodput_env::view::ClusterView;

/// One accelerator for the one job there is.
struct Start;

impl Policy for Start {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        view.jobs().filter(|job| job.gpus() == 0).for_each(|job| plan.set(job.id(), Placement::on(NodeId(0), 1)));
        plan
    }
}

fn job(work_milli: u32) -> JobSpec {
    JobSpec { work: Work::Application { index: 0, work_milli }, ..elastic("job", 0, 1) }
}

fn run(work_milli: u32) -> Outcome {
    let options =
        SimOptions { switch_cost: SwitchCost::Zero, information: Information::Oracle, ..SimOptions::standard() };
    let scenario = scenario("1x1", vec![job(work_milli)], options);
    Simulator::new(Arc::clone(&scenario)).run(&mut Start).unwrap()
}

fn secs(work_milli: u32) -> f64 {
    run(work_milli).jobs[0].jct().unwrap().as_secs_f64()
}

#[test]
fn the_whole_takes_as_long_as_its_parts() {
    // Epochs are quarters; each goes at a speed of its own.
    let ends: Vec<f64> = [250, 500, 750, 1000].map(secs).into();
    let lengths: Vec<f64> = ends.iter().zip([0.0].iter().chain(&ends)).map(|(end, start)| end - start).collect();
    assert!(
        lengths.windows(2).all(|pair| pair[1] <= pair[0] + 0.01),
        "noise grows, so later epochs go faster: {lengths:?}"
    );
    let middle = secs(375);
    assert!((middle - (ends[0] + lengths[1] / 2.0)).abs() < 0.01, "{middle}: within an epoch time goes with work");
}

#[test]
fn past_the_last_epoch_it_goes_on_as_in_it() {
    let (whole, last) = (secs(1000), secs(1000) - secs(750));
    for (work_milli, epochs) in [(1250, 1.0), (1500, 2.0), (2000, 4.0), (1100, 0.4)] {
        let more = secs(work_milli) - whole;
        assert!((more - epochs * last).abs() < 0.02, "{work_milli}: {more}, expected {}", epochs * last);
    }
}

#[test]
fn epochs_are_counted_past_the_last_one() {
    let app = application();
    assert_eq!([0, 3, 4, 6].map(|epoch| app.epoch_end(epoch)), [400.0, 1600.0, 2000.0, 2800.0]);
    assert_eq!(
        [0.0, 399.0, 400.0, 1599.0, 1600.0, 2000.0, 2001.0].map(|done| app.epochs_by(done)),
        [0, 0, 1, 3, 4, 5, 5]
    );
}
