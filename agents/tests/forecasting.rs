//! Forecasters inside the cluster: their forecasts depend on the past alone.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::fixed;
use goodput_agents::bundle::forecaster::{Card, ForecasterBundle};
use goodput_agents::compose::by_name;
use goodput_agents::compose::loaning::{Sharing, Variant};
use goodput_agents::compose::serving::{Ahead, ForecastingOptions, Misfit, Outlook, SavedForecaster, SteeredBy};
use goodput_env::cluster::{Cluster, Pool};
use goodput_env::gym::{ClusterEnv, EnvOptions, check};
use goodput_env::job::Workload;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Rounds, Scenario, SimOptions};
use goodput_env::service::{RateSeries, Service, ServingPoint, ServingProfile, Slo};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use goodput_forecast::covariates::{NamedSeries, Regressed};
use goodput_forecast::neural::{Architecture, Centre, Dlinear, NeuralNet, Spec};
use goodput_forecast::{Adaptive, Fit, ForecasterSnapshot, Model, Series};

const STEP: SimTime = SimTime::from_secs(1800);
const DAY: usize = 48;

fn service(step: SimTime, per_sec: &[f64]) -> Arc<Service> {
    let profile = ServingProfile::new(vec![ServingPoint { concurrency: 1, latency_secs: 0.01 }]).unwrap();
    Arc::new(Service {
        name: "web".into(),
        tenant: 0,
        rates: RateSeries::new(step, per_sec).unwrap(),
        arrival_cv2: 1.0,
        work_cv2: 0.0,
        profiles: BTreeMap::from([("gpu".to_string(), profile)]),
        reference: "gpu".into(),
        gpus_per_replica: 1,
        slo: Slo { class: "interactive".into(), latency: SimTime::from_millis(100), target: 0.99 },
        cold_start: SimTime::from_secs(600),
        drain: SimTime::from_secs(2),
        min_replicas: 1,
        max_replicas: 64,
    })
}

/// Days between 50 and 650 requests a second, with something on top that no day repeats.
fn days(days: usize) -> Vec<f64> {
    let wave = |step: usize| 1.0 - (std::f64::consts::TAU * step as f64 / DAY as f64).cos();
    (0..days * DAY).map(|step| 50.0 + 280.0 * wave(step) + (step * 7919 % 41) as f64).collect()
}

fn scenario(service: Arc<Service>) -> Arc<Scenario> {
    beside(4, service)
}

/// An inference pool of `servers` servers beside two for training.
fn beside(servers: u32, service: Arc<Service>) -> Arc<Scenario> {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    cluster.add_to(Pool::Training, "gpu", 2, 4);
    cluster.add_to(Pool::Inference, "gpu", servers, 4);
    let jobs =
        (0..80).map(|at| fixed(&format!("j{at}"), 1 + at % 4, 6000 + 100 * i64::from(at % 7), 4000 * i64::from(at)));
    let workload = Workload { services: vec![service], ..Workload::new(Vec::new(), jobs.collect()) };
    let options = SimOptions {
        rounds: Rounds { period: None, on_churn: true },
        batching: Batching::Requested,
        information: Information::Oracle,
        ..SimOptions::standard()
    };
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 1))
}

fn with(saved: SavedForecaster) -> ForecastingOptions {
    ForecastingOptions {
        saved: Arc::new(BTreeMap::from([("web".to_string(), saved)])),
        ..ForecastingOptions::default()
    }
}

/// Net with weights set by hand: a linear one that predicts that tomorrow will be as today.
fn as_today() -> ForecasterBundle {
    let mut spec = Spec::daily(Architecture::Dlinear(Dlinear { kernel: 5 }), DAY);
    (spec.lookback, spec.levels) = (DAY, vec![0.5]);
    let mut weights = Vec::new();
    for (name, [rows, columns]) in NeuralNet::shapes(&spec).unwrap() {
        let is_map = name.ends_with(".weight");
        weights.extend((0..rows * columns).map(|i| f32::from(u8::from(is_map && i / columns == i % columns))));
    }
    let net = NeuralNet::from_parts(spec, 330.0, 200.0, weights).unwrap();
    let card = Card { step_millis: STEP.as_millis(), ..Card::default() };
    ForecasterBundle { name: "as today".into(), net, card }
}

/// Every plan and its time.
fn plans(variant: &str, scenario: &Arc<Scenario>, look: impl FnMut(&ClusterView<'_>)) -> Vec<(SimTime, String)> {
    plans_by(variant, &Sharing::default(), scenario, look)
}

fn plans_by(
    variant: &str,
    sharing: &Sharing,
    scenario: &Arc<Scenario>,
    mut look: impl FnMut(&ClusterView<'_>),
) -> Vec<(SimTime, String)> {
    let (training, variant) = variant.split_once('+').unwrap_or(("srtf", variant));
    let mut policy = Variant::by_name(variant).unwrap().around(by_name(training, 0).unwrap(), sharing);
    let (mut simulator, mut plans) = (Simulator::new(scenario.clone()), Vec::new());
    while simulator.run_until_decision().unwrap() == Status::Decision {
        look(&simulator.view());
        let plan = policy.decide(&simulator.view());
        plans.push((simulator.now(), format!("{plan:?}")));
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    plans
}

#[test]
fn decisions_do_not_move_with_the_future() {
    let rates = days(4);
    let change = 3 * DAY - 5;
    let mut other = rates.clone();
    other[change..].iter_mut().for_each(|rate| *rate = 700.0 - *rate);
    let until = SimTime::from_millis(STEP.as_millis() * change as i64);
    for variant in ["forecast", "forecast:day", "forecast:holt_winters", "objective"] {
        let [one, two] = [&rates, &other].map(|rates| plans(variant, &scenario(service(STEP, rates)), |_| {}));
        let before = |plans: &[(SimTime, String)]| plans.iter().take_while(|(at, _)| *at < until).count();
        let (known, all) = (before(&one), before(&two));
        assert!(known > 100 && known == all, "{variant}: {known} and {all} plans");
        assert!(one[..known] == two[..known], "{variant} decides by what it cannot know");
        assert!(one != two, "{variant}: the change does something");
    }
}

#[test]
fn what_is_expected_follows_from_the_past_alone() {
    let scenario = scenario(service(SimTime::from_secs(60), &days(6)));
    let mut often = Ahead::new(ForecastingOptions::default());
    let (mut calls, mut spread) = (0, 0.0);
    plans("reactive", &scenario, |view| {
        calls += 1;
        let service = view.services().next().unwrap();
        let until = view.now + SimTime::from_secs(1500);
        let expected = often.expect(&service, until);
        assert!(expected.high >= expected.usual && expected.usual >= service.rate(), "{expected:?}");
        spread += expected.high - expected.usual;
        if calls % 97 == 0 {
            let fresh = Ahead::new(ForecastingOptions::default()).expect(&service, until);
            assert_eq!(fresh, expected, "asked for the first time at {}", view.now);
        }
    });
    assert!(calls > 300 && spread > 0.0);
}

#[test]
fn a_saved_forecaster_knows_the_day_from_the_first_step() {
    let rates = days(12);
    let (past, future) = rates.split_at(10 * DAY);
    let series = Series::new(0, STEP.as_millis(), past.to_vec().into()).unwrap();
    let snapshot = ForecasterSnapshot::fit(&Adaptive::daily(DAY), &series).unwrap();
    let again: ForecasterSnapshot = serde_json::from_slice(&serde_json::to_vec(&snapshot).unwrap()).unwrap();
    assert_eq!(again, snapshot);
    let saved = with(SavedForecaster::Fitted(Box::new(snapshot)));
    let [mut knows, mut learns] = [saved, ForecastingOptions::default()].map(Ahead::new);
    let mut errors = [0.0; 2];
    plans("reactive", &scenario(service(STEP, future)), |view| {
        // Three hours ahead in the first day, while the load doubles and halves.
        let service = view.services().next().unwrap();
        let now = service.history().len() - 1;
        if now + 6 < DAY {
            let until = view.now + SimTime::from_secs(3 * 3600);
            let truth = future[now..=now + 6].iter().copied().fold(0.0, f64::max);
            for (error, ahead) in errors.iter_mut().zip([&mut knows, &mut learns]) {
                *error += (ahead.expect(&service, until).usual - truth).abs();
            }
        }
    });
    assert!(errors[0] < 0.3 * errors[1], "{errors:?}");
}

#[test]
fn a_forecaster_with_covariates_suits_no_load_without_them() {
    let rates = days(10);
    let series = Series::new(0, STEP.as_millis(), rates.clone().into()).unwrap();
    let holiday = Series::new(0, STEP.as_millis(), vec![0.0; 11 * DAY].into()).unwrap();
    let covariates = vec![NamedSeries { name: "holiday".into(), series: holiday }].try_into().unwrap();
    let fitted = Regressed { inner: Adaptive::daily(DAY), covariates, day_steps: DAY }.fit(&series).unwrap();
    let saved = SavedForecaster::Fitted(Box::new(ForecasterSnapshot::of_regressed(fitted, DAY)));
    let misfit = saved.check(&service(STEP, &rates).rates).unwrap_err();
    assert_eq!(misfit, Misfit::Covariates);
}

#[test]
fn a_bundle_forecasts_by_its_net_once_a_window_is_known() {
    let rates = days(4);
    let mut ahead = Ahead::new(with(as_today().into_saved()));
    let mut seen = [0; 2];
    plans("reactive", &scenario(service(STEP, &rates)), |view| {
        let service = view.services().next().unwrap();
        // The step of now is known already; the two after it begin no later than an hour from now.
        let known = service.history().len();
        let expected = ahead.expect(&service, view.now + SimTime::from_secs(3600));
        let truth = match known {
            0..DAY => service.rate(),
            _ => rates[known - DAY..known - DAY + 2].iter().copied().fold(service.rate(), f64::max),
        };
        if known + 2 < rates.len() {
            assert!((expected.usual - truth).abs() < 1e-3, "{known}: {expected:?} {truth}");
            assert!(expected.high >= expected.usual);
            seen[usize::from(known >= DAY)] += 1;
        }
    });
    assert!(seen.iter().all(|&seen| seen > 50), "{seen:?}");
}

#[test]
fn a_bundle_drives_loans_aryl_and_observations() {
    let forecasting = with(as_today().into_saved());
    let sharing = Sharing { forecasting: forecasting.clone(), ..Sharing::default() };
    let scenario = scenario(service(STEP, &days(4)));
    for variant in ["srtf+forecast", "aryl+forecast"] {
        let by_net = plans_by(variant, &sharing, &scenario, |_| {});
        assert!(by_net == plans_by(variant, &sharing, &scenario, |_| {}), "{variant}: the same again");
        assert!(by_net != plans(variant, &scenario, |_| {}), "{variant}: the net says something else");
    }
    let source = move |_: u64| scenario.clone();
    let options = EnvOptions { slots: 8, services: 1, pools: true, ..EnvOptions::default() };
    let env = ClusterEnv::new(Arc::new(source), options).with_expected_peak(forecasting.expected_peak());
    for finding in check(&env, 7, 2, 400).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
}

#[test]
fn a_bundle_that_does_not_fit_a_load_is_refused() {
    let rates = |step: SimTime, per_sec: &[f64]| RateSeries::new(step, per_sec).unwrap();
    let saved = as_today().into_saved();
    assert_eq!(saved.check(&rates(STEP, &days(4))), Ok(()));
    let misfit = |saved: &SavedForecaster, rates: &RateSeries| saved.check(rates).unwrap_err();
    let steps = Misfit::Steps { own: 1_800_000, load: 300_000 };
    assert_eq!(misfit(&saved, &rates(SimTime::from_secs(300), &days(4))), steps);
    assert_eq!(misfit(&saved, &rates(STEP, &days(1))), Misfit::Short { lookback: 48, steps: 48 });
    let small: Vec<f64> = days(4).iter().map(|rate| rate / 1e3).collect();
    assert_eq!(misfit(&saved, &rates(STEP, &small)), Misfit::Scale { mean: 330.0, spread: 200.0 });
    let other = |change: fn(&mut Spec)| {
        let (mut bundle, mut spec) = (as_today(), as_today().net.spec().clone());
        change(&mut spec);
        bundle.net = NeuralNet::from_parts(spec, 330.0, 200.0, bundle.net.weights().to_vec()).unwrap();
        bundle.into_saved()
    };
    let half_days = other(|spec| spec.day_steps = 24);
    assert_eq!(misfit(&half_days, &rates(STEP, &days(4))), Misfit::Days { own: 24, load: 48 });
    // Relative to the series, a load has to be near the one trained on; in units of its own it may
    // be larger.
    let large: Vec<f64> = days(4).iter().map(|rate| rate * 50.0).collect();
    assert_eq!(saved.check(&rates(STEP, &large)), Ok(()));
    let as_it_is = other(|spec| spec.centre = Centre::Series);
    assert_eq!(as_it_is.check(&rates(STEP, &days(4))), Ok(()));
    assert_eq!(misfit(&as_it_is, &rates(STEP, &large)), Misfit::Scale { mean: 330.0, spread: 200.0 });
}

#[test]
fn observations_take_the_forecast_and_stay_reproducible() {
    let source = |seed: u64| {
        let rates: Vec<f64> = days(2).iter().map(|rate| rate + 10.0 * (seed % 7) as f64).collect();
        scenario(service(STEP, &rates))
    };
    let options = EnvOptions { slots: 8, services: 1, pools: true, ..EnvOptions::default() };
    let env =
        ClusterEnv::new(Arc::new(source), options).with_expected_peak(ForecastingOptions::default().expected_peak());
    for finding in check(&env, 7, 2, 400).unwrap() {
        assert_eq!(finding.problem, None, "{}", finding.check);
    }
}

#[test]
fn every_model_has_a_name_behind_the_policys() {
    for model in Model::ALL {
        assert_eq!(Variant::by_name(&format!("forecast:{}", model.name())), Some(Variant::ForecastBy(model)));
        assert!(by_name(&format!("aryl+forecast:{}", model.name()), 0).is_some());
    }
    assert_eq!(Variant::by_name("forecast:crystal_ball"), None);
}

/// Share of requests that are late, accelerator-hours of replicas, and accelerator-hours lent.
fn served(variant: &str, scenario: &Arc<Scenario>) -> [f64; 3] {
    served_by(variant, ForecastingOptions::default(), scenario)
}

/// As [`served`], with these options of forecasting.
fn served_by(variant: &str, forecasting: ForecastingOptions, scenario: &Arc<Scenario>) -> [f64; 3] {
    let sharing = Sharing { forecasting, ..Sharing::default() };
    let mut policy = Variant::by_name(variant).unwrap().around(by_name("fifo", 0).unwrap(), &sharing);
    let mut simulator = Simulator::new(scenario.clone());
    while simulator.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
    }
    let outcome = simulator.outcome();
    let web = &outcome.services[0];
    let hours = |gpu_millis: i64| gpu_millis as f64 / 3.6e6;
    [web.violated as f64 / web.requests as f64, hours(web.gpu_millis), hours(outcome.loans.lent_gpu_millis)]
}

#[test]
fn the_objective_alone_takes_fewer_replicas_of_a_smooth_load_and_lends_more() {
    let rates: Vec<f64> = days(14).iter().map(|rate| 8.0 * rate).collect();
    let scenario = beside(24, service(STEP, &rates));
    let [reactive, forecast, objective, bound] =
        ["reactive", "forecast", "objective", "objective-oracle"].map(|variant| served(variant, &scenario));
    for other in [reactive, forecast] {
        assert!(objective[1] < 0.9 * other[1] && objective[2] > 1.05 * other[2], "{objective:?} {other:?}");
    }
    assert!(bound[1] < objective[1] && bound[2] > objective[2], "{objective:?} {bound:?}");
    assert!(objective[0] <= 0.01 && bound[0] <= 0.01, "{objective:?} {bound:?}");
}

#[test]
fn late_requests_bring_the_share_that_is_late_nearer_to_the_objective() {
    // Bursts of an hour that no day repeats.
    let rates: Vec<f64> = days(21).iter().enumerate().map(|(step, rate)| rate * burst(step)).collect();
    let scenario = beside(24, service(STEP, &rates));
    let by = |steered_by| {
        let options = ForecastingOptions { steered_by, ..ForecastingOptions::default() };
        served_by("objective", options, &scenario)
    };
    let [windows, late] = [SteeredBy::Windows, SteeredBy::LateRequests].map(by);
    assert!((late[0] - 0.01).abs() < (windows[0] - 0.01).abs(), "late: {late:?} {windows:?}");
    assert!((late[1] < windows[1]) == (windows[0] < 0.01), "hours: {late:?} {windows:?}");
}

fn burst(step: usize) -> f64 {
    if step * 7_919 % 29 < 2 { 14.0 } else { 8.0 }
}
