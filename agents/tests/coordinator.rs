//! Servers that move between clusters.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::fixed;
use goodput_agents::compose::by_name;
use goodput_agents::compose::coordinator::{Claim, Coordinator, Federation, Transfer, allot};
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_agents::compose::serving::{Ahead, ForecastingOptions, Now, Outlook};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::job::Workload;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use goodput_forecast::Model;
use proptest::prelude::*;

fn claim(owned: u32, needed: u32, jobs: u32, work: f64, most: u32) -> Claim {
    Claim { owned, needed, own: 2, jobs, work, most }
}

#[test]
fn equal_clusters_keep_what_they_have() {
    let same = claim(8, 3, 40, 5e4, 30);
    assert_eq!(allot(&[same, same], 6000.0), [8, 8]);
    assert_eq!(allot(&[claim(10, 3, 0, 0.0, 0), claim(6, 3, 0, 0.0, 0)], 6000.0), [10, 6], "nobody gains");
    assert_eq!(allot(&[], 1.0), Vec::<u32>::new());
}

#[test]
fn servers_go_where_they_are_needed_and_then_where_they_save_most() {
    assert_eq!(
        allot(&[claim(8, 2, 0, 0.0, 0), claim(8, 12, 0, 0.0, 0)], 6000.0),
        [4, 12],
        "the need of services first"
    );
    let moved = allot(&[claim(8, 2, 1, 100.0, 4), claim(8, 2, 100, 1e6, 100)], 6000.0);
    assert_eq!(moved, [2, 14], "all that the first does not need");
    assert_eq!(allot(&[claim(8, 2, 1, 100.0, 4), claim(8, 2, 100, 1e6, 100)], 1e12), [8, 8], "moving is too dear");
    assert_eq!(
        allot(&[claim(8, 20, 0, 0.0, 0), claim(8, 12, 0, 0.0, 0)], 6000.0).iter().sum::<u32>(),
        16,
        "more is needed than there is"
    );
}

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let one = (0_u32..6, 0_u32..6, 1_u32..4, 0_u32..20, 0_u32..2000, 0_u32..16);
    let one = one.prop_map(|(owned, needed, own, jobs, work, most)| Claim {
        owned,
        needed,
        own,
        jobs,
        work: f64::from(work),
        most,
    });
    prop::collection::vec(one, 1..4)
}

/// Job-seconds saved beyond the needs, less the cost of moves.
fn value(claims: &[Claim], servers: &[u32], cost: f64) -> f64 {
    let of = |(claim, &n): (&Claim, &u32)| {
        let saved: f64 = (claim.needed..n)
            .map(|at| f64::from(claim.own + at - claim.needed))
            .filter(|before| *before < f64::from(claim.most))
            .map(|before| f64::from(claim.jobs) * claim.work * (1.0 / before - 1.0 / (before + 1.0)))
            .sum();
        saved - cost * f64::from(n.saturating_sub(claim.owned))
    };
    claims.iter().zip(servers).map(of).sum()
}

fn splits(total: u32, parts: usize) -> Vec<Vec<u32>> {
    if parts == 1 {
        return vec![vec![total]];
    }
    let with = |first: u32| {
        splits(total - first, parts - 1).into_iter().map(move |mut rest| {
            rest.insert(0, first);
            rest
        })
    };
    (0..=total).flat_map(with).collect()
}

proptest! {
    #[test]
    fn servers_are_conserved_and_the_split_is_the_best(claims in claims(), cost in 0_u32..3000) {
        let cost = f64::from(cost);
        let servers = allot(&claims, cost);
        let total: u32 = claims.iter().map(|claim| claim.owned).sum();
        prop_assert_eq!(servers.iter().sum::<u32>(), total);
        if claims.iter().map(|claim| claim.needed).sum::<u32>() <= total {
            prop_assert!(servers.iter().zip(&claims).all(|(servers, claim)| *servers >= claim.needed));
            let feasible = splits(total, claims.len()).into_iter();
            let feasible = feasible.filter(|split| split.iter().zip(&claims).all(|(n, claim)| *n >= claim.needed));
            let best = feasible.map(|split| value(&claims, &split, cost)).fold(f64::NEG_INFINITY, f64::max);
            let found = value(&claims, &servers, cost);
            prop_assert!(found >= best - 1e-6 * best.abs().max(1.0), "{found} is below {best}: {servers:?}");
        }
    }
}

const DAYS: usize = 3;

fn service(phase: f64, swing: f64) -> Arc<Service> {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    let wave = |step: usize| (std::f64::consts::TAU * (step as f64 / 288.0 + phase)).sin();
    let rates: Vec<f64> = (0..288 * DAYS).map(|step| 1000.0 * (1.0 + swing * wave(step))).collect();
    Arc::new(Service {
        name: "web".into(),
        tenant: 0,
        rates: RateSeries::new(SimTime::from_secs(300), &rates).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(30),
        drain: SimTime::from_secs(2),
        min_replicas: 1,
        max_replicas: 64,
    })
}

/// Two servers of its own, sixteen that can move.
fn scenario(phase: f64, swing: f64, jobs: u32) -> Arc<Scenario> {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 2, 4);
    cluster.add_to(Pool::Inference, "gpu", 16, 4);
    let every = DAYS as i64 * 86_400 / i64::from(jobs.max(1));
    let list = (0..jobs).map(|at| {
        let wide = 1 << (at % 3);
        fixed(&format!("j{at}"), wide, 4000 + 500 * i64::from(at % 7), every * i64::from(at))
    });
    let workload = Workload { services: vec![service(phase, swing)], ..Workload::new(Vec::new(), list.collect()) };
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1))
}

fn federation(scenarios: &[Arc<Scenario>], outlook: Option<fn() -> Box<dyn Outlook>>, variant: Variant) -> Federation {
    let member =
        |scenario: &Arc<Scenario>| (scenario.clone(), variant.around(by_name("aryl", 0).unwrap(), &Sharing::default()));
    let coordinator =
        outlook.map(|outlook| Coordinator::new(scenarios.iter().map(|_| outlook()).collect(), SimTime::from_secs(600)));
    Federation::new(scenarios.iter().map(member).collect(), &[8, 8], coordinator)
}

fn reactive() -> Box<dyn Outlook> {
    Box::new(Now)
}

fn forecast() -> Box<dyn Outlook> {
    Box::new(Ahead::new(ForecastingOptions::by(Model::Day)))
}

fn mean_jct(outcomes: &[Outcome]) -> f64 {
    let jcts = outcomes.iter().flat_map(|outcome| &outcome.jobs).map(|job| job.jct().unwrap().as_secs_f64());
    let (sum, count) = jcts.fold((0.0, 0.0), |(sum, count), jct| (sum + jct, count + 1.0));
    sum / count
}

fn attainment(outcomes: &[Outcome]) -> f64 {
    let services = outcomes.iter().flat_map(|outcome| &outcome.services);
    let (requests, violated) = services.fold((0, 0), |(all, bad), one| (all + one.requests, bad + one.violated));
    1.0 - violated as f64 / requests as f64
}

/// Runs to the end, and checks that every server is in one cluster at a time.
fn run(federation: Federation, mut met: impl FnMut(SimTime, &[u32])) -> (Vec<Outcome>, Vec<Transfer>) {
    federation
        .run(|at, owned| {
            assert_eq!(owned.iter().sum::<u32>(), 16, "at {at}");
            met(at, owned);
        })
        .unwrap()
}

#[test]
fn identical_flat_loads_move_nothing() {
    let scenarios = [scenario(0.0, 0.0, 200), scenario(0.0, 0.0, 200)];
    let (_, transfers) = run(federation(&scenarios, Some(reactive), Variant::Reactive), |_, _| {});
    assert_eq!(transfers, []);
}

#[test]
fn servers_follow_opposite_phases_and_training_is_the_faster_for_it() {
    let scenarios = [scenario(0.0, 0.9, 400), scenario(0.5, 0.9, 400)];
    let (isolated, none) = run(federation(&scenarios, None, Variant::Forecast), |_, _| {});
    assert_eq!(none, []);
    let mut by_hour = [[0.0_f64; 2]; 24];
    let (together, transfers) = run(federation(&scenarios, Some(forecast), Variant::Forecast), |at, owned| {
        let hour = at.as_millis() / 3_600_000 % 24;
        if at < SimTime::from_secs(86_400 * DAYS as i64) {
            (0..2).for_each(|cluster| by_hour[hour as usize][cluster] += f64::from(owned[cluster]));
        }
    });
    assert!(transfers.len() > 10, "{} transfers", transfers.len());
    // The first cluster's load is highest at 6 o'clock, the second's at 18.
    assert!(by_hour[6][0] > by_hour[6][1] && by_hour[18][1] > by_hour[18][0], "{by_hour:?}");
    let (alone, shared) = (mean_jct(&isolated), mean_jct(&together));
    assert!(shared < alone, "{shared} s together, {alone} s isolated");
    let (before, after) = (attainment(&isolated), attainment(&together));
    assert!(after >= before - 0.001, "{after} of requests in time together, {before} isolated");
}

#[test]
fn ownership_stays_when_the_coordinator_is_gone() {
    let scenarios = [scenario(0.0, 0.9, 400), scenario(0.5, 0.9, 400)];
    let outage = SimTime::from_secs(100_000);
    let mut frozen: Option<Vec<u32>> = None;
    let federation = federation(&scenarios, Some(forecast), Variant::Forecast).outage_at(outage);
    let (outcomes, transfers) = run(federation, |at, owned| {
        if at >= outage {
            assert_eq!(frozen.get_or_insert_with(|| owned.to_vec()), owned);
        }
    });
    assert!(transfers.iter().all(|transfer| transfer.at <= outage + SimTime::from_secs(600)));
    assert!(!transfers.is_empty() && outcomes.iter().all(|outcome| !outcome.truncated));
}
