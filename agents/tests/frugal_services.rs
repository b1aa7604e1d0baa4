//! Replicas on the accelerator types that keep objectives with the least power.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_agents::compose::by_name;
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::job::Workload;
use goodput_env::scenario::{Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

/// Points of a profile: requests at once, and milliseconds.
fn profile(points: &[(u32, f64)]) -> ServingProfile {
    let point = |&(concurrency, millis): &(u32, f64)| ServingPoint { concurrency, latency_secs: millis / 1e3 };
    ServingProfile::new(points.iter().map(point).collect()).unwrap()
}

/// Rates of hours in steps of a minute, which differ by a hundredth so that each step is a decision.
fn minutes(per_sec: &[f64]) -> Vec<f64> {
    per_sec.iter().flat_map(|rate| (0..60).map(move |minute| rate * (1.0 + 0.01 * f64::from(minute % 2)))).collect()
}

/// A service on a small type, of 50 requests a second one at a time, and on a large one, of 800 a second eight at a
/// time.
fn service(name: &str, slo_millis: i64, per_sec: &[f64]) -> Arc<Service> {
    Arc::new(Service {
        name: name.into(),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(60), &minutes(per_sec)).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([
            ("large".to_string(), profile(&[(1, 5.0), (8, 10.0)])),
            ("small".to_string(), profile(&[(1, 20.0)])),
        ]),
        reference: "small".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(slo_millis), target: 0.99 },
        cold_start: SimTime::from_secs(10),
        drain: SimTime::from_secs(2),
        min_replicas: 1,
        max_replicas: 16,
    })
}

/// The large type comes first, takes 250 W and costs a dollar; the small one takes 70 W and costs a dollar and a half.
fn cluster() -> Cluster {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Inference, "large", 2, 4);
    cluster.add_to(Pool::Inference, "small", 4, 4);
    (cluster.types[0].watts, cluster.types[0].dollars_per_hour) = (Some(250.0), Some(1.0));
    (cluster.types[1].watts, cluster.types[1].dollars_per_hour) = (Some(70.0), Some(1.5));
    cluster
}

/// Outcome, and the names of the types that had ready replicas of each service ten seconds before the end of each hour.
fn run(variant: &str, services: Vec<Arc<Service>>) -> (Outcome, Vec<Vec<String>>) {
    run_watched(variant, services, |_| {})
}

/// As [`run`]; `watch` sees the cluster before each decision.
fn run_watched(
    variant: &str,
    services: Vec<Arc<Service>>,
    mut watch: impl FnMut(&ClusterView<'_>),
) -> (Outcome, Vec<Vec<String>>) {
    let workload = Workload { services, ..Workload::new(Vec::new(), Vec::new()) };
    let horizon = Some(SimTime::from_secs(3 * 3600));
    let options = SimOptions { horizon, ..SimOptions::standard() };
    let scenario = Arc::new(Scenario::new(Arc::new(cluster()), Arc::new(workload), options, 0));
    let mut policy = Variant::by_name(variant).unwrap().around(by_name("fifo", 0).unwrap(), &Sharing::default());
    let mut simulator = Simulator::new(scenario);
    let mut seen: Vec<Vec<String>> = vec![Vec::new(); 3];
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let view = simulator.view();
        watch(&view);
        let (hour, within) = (view.now.as_millis() / 3_600_000, view.now.as_millis() % 3_600_000);
        if within > 3_000_000 {
            let of = |service: goodput_env::view::ServiceView<'_>| {
                let mut kinds: Vec<String> = (service.state.lasting())
                    .map(|replica| view.cluster().types[view.cluster().type_of(replica.node).index()].name.clone())
                    .collect();
                kinds.sort_unstable();
                kinds.dedup();
                kinds.join(" and ")
            };
            seen[hour as usize] = view.services().map(of).collect();
        }
        let plan = goodput_env::policy::Policy::decide(&mut policy, &view);
        simulator.apply(&plan).unwrap();
        simulator.wake_at(goodput_env::policy::Policy::wake_at(&policy));
    }
    (simulator.outcome(), seen)
}

/// Watt-hours of all replicas.
fn watt_hours(outcome: &Outcome) -> f64 {
    let cluster = cluster();
    let nodes = outcome.services.iter().flat_map(|service| &service.nodes);
    nodes.map(|on| on.gpu_millis as f64 / 3.6e6 * cluster.types[cluster.type_of(on.node).index()].watts.unwrap()).sum()
}

fn late(outcome: &Outcome) -> f64 {
    let sum = |of: fn(&goodput_env::state::ServiceRecord) -> u64| outcome.services.iter().map(of).sum::<u64>() as f64;
    sum(|record| record.violated) / sum(|record| record.requests)
}

/// At 10 requests a second one replica does, and one of the small type takes 70 W instead of 250. At 400 a second a
/// dozen of the small type take more than one of the large one.
#[test]
fn a_low_rate_is_served_on_the_small_type_and_a_high_one_on_the_large_type() {
    let rates = [10.0, 400.0, 10.0];
    let (frugal, seen) = run("per-watt", vec![service("a", 200, &rates)]);
    assert_eq!(seen, [["small"], ["large"], ["small"]]);
    let (first, _) = run("none", vec![service("a", 200, &rates)]);
    assert!(watt_hours(&frugal) < 0.6 * watt_hours(&first), "{} and {}", watt_hours(&frugal), watt_hours(&first));
    assert!(late(&frugal) < 0.01 && late(&first) < 0.01, "{} and {}", late(&frugal), late(&first));
}

/// An objective that only the large type can keep comes before power, and a price before both where it is the
/// objective.
#[test]
fn latency_comes_before_power_and_each_service_has_its_own_type() {
    let rates = [10.0; 3];
    let (outcome, seen) = run("per-watt", vec![service("hasty", 15, &rates), service("calm", 200, &rates)]);
    assert_eq!(seen, vec![vec!["large".to_string(), "small".to_string()]; 3]);
    assert!(late(&outcome) < 0.01, "{}", late(&outcome));
    let (_, seen) = run("per-dollar", vec![service("calm", 200, &rates)]);
    assert_eq!(seen, [["large"]; 3]);
}

/// Three replicas of the small type do for 100 requests a second, and take less than one of the large type. Five of six
/// such services fill the small type, and the sixth has the large one.
#[test]
fn a_service_without_room_on_its_type_takes_another() {
    let services = (0..6).map(|at| service(&format!("s{at}"), 200, &[100.0; 3])).collect();
    let (outcome, seen) = run("per-watt", services);
    assert_eq!(seen, [["small", "small", "small", "small", "small", "large"]; 3]);
    // The objective lets one in a hundred be late, and no replica answers in the first ten seconds.
    assert!(late(&outcome) < 0.02, "{}", late(&outcome));
}

/// A service that may have so many replicas at most.
fn limited(most: u32, per_sec: &[f64]) -> Arc<Service> {
    Arc::new(Service { max_replicas: most, ..Service::clone(&service("a", 200, per_sec)) })
}

/// One replica of the small type does not suffice for 400 requests a second, and a service of one replica has no room
/// for another on the large type. The service changes the type all the same.
#[test]
fn a_service_leaves_a_type_that_does_not_keep_the_objective_though_it_has_no_room_for_both() {
    let (outcome, seen) = run("per-watt", vec![limited(1, &[10.0, 400.0, 400.0])]);
    assert_eq!(seen, [["small"], ["large"], ["large"]]);
    assert!(late(&outcome) < 0.01, "{}", late(&outcome));
}

/// Three replicas of the large type serve 1,500 requests a second. At 60 a second two of the small type take less. With
/// four replicas at most, those on the large type stay until both on the small type answer.
#[test]
fn no_replica_goes_before_what_is_needed_answers() {
    let hour = SimTime::from_secs(3600);
    let (_, seen) = run_watched("per-watt", vec![limited(4, &[1500.0, 60.0, 60.0])], |view| {
        let service = view.services().next().unwrap();
        let (rate, capacity) = (service.rate(), service.capacity());
        assert!(view.now < hour || capacity >= rate, "{}: {capacity} for {rate}", view.now.as_secs_f64());
    });
    assert_eq!(seen, [["large"], ["small"], ["small"]]);
}

/// A service at the bound of its replicas: so many of the small type at first, then so many of the large one.
#[test]
fn a_service_at_its_most_replicas_changes_its_type_and_then_keeps_what_keeps_the_objective() {
    for (most, low, high) in [(1, 10.0, 400.0), (2, 60.0, 900.0), (3, 100.0, 1500.0)] {
        let (outcome, seen) = run("per-watt", vec![limited(most, &[low, high, low])]);
        // No room is left for both fleets, so the large type stays, which keeps the objective at the low rate too.
        assert_eq!(seen, [["small"], ["large"], ["large"]], "{most}");
        // From the jump of the rate on, replicas are too few until each has been replaced, at one decision a minute,
        // and then until the requests that wait are answered.
        let late = outcome.services.iter().map(|service| service.violated).sum::<u64>() as f64 / 1e6;
        assert!(late < 100.0 * f64::from(most) * high, "{most}: {late} late, at {high} a second");
        // Where there is room for both fleets, the service goes back.
        let (_, seen) = run("per-watt", vec![limited(4 * most, &[low, high, low])]);
        assert_eq!(seen, [["small"], ["large"], ["small"]], "{most}");
    }
}

/// A service that keeps its objective on no type does not take the room of a service that keeps it.
#[test]
fn a_service_of_no_type_leaves_room_to_services_that_have_one() {
    let hopeless = Service { max_replicas: 24, ..Service::clone(&service("a", 1, &[2000.0; 3])) };
    let (outcome, seen) = run("per-watt", vec![Arc::new(hopeless), service("b", 200, &[100.0; 3])]);
    let calm = &outcome.services[1];
    let late = calm.violated as f64 / calm.requests as f64;
    assert!(late < 0.02, "{late}: {seen:?}");
}
