//! The server before a Prometheus that is late, silent, without values, or wrong.

use std::thread::sleep;
use std::time::Duration;

use super::double::Double;
use super::{PER_REPLICA, Running, SEASON, config, past, second, until, wave};

/// Loads of the past that are not those of the wave.
fn wrong(past: &[(i64, Option<f64>)]) -> Vec<&(i64, Option<f64>)> {
    past.iter().filter(|(at, load)| *load != Some(wave(*at))).collect()
}

#[test]
fn the_first_start_fills_in_the_past_and_keeps_room_for_the_load_to_come() {
    let (double, folder) = (Double::start(|at| Some(wave(at))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&double.url, "load", folder.path())).unwrap();
    let chat = server.stands("fresh");
    let past = past(&chat);
    assert!(past.len() as i64 >= 6 * SEASON, "{}", past.len());
    assert_eq!(wrong(&past), Vec::<&(i64, Option<f64>)>::new());
    // The wave is known by now: there is room for its next steps, and not for much more than its peak.
    let (last, room) = (past.last().unwrap().0, chat["room"].as_f64().unwrap());
    let coming = (1..=3).map(|step| wave(last + step)).fold(0.0, f64::max);
    assert!((coming..200.0).contains(&room), "room {room} for {coming}");
    assert_eq!(chat["replicas"].as_f64().unwrap(), (room / PER_REPLICA).ceil());
    let steps = chat["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3, "the present step and two until a replica serves");
    assert_eq!(steps[0]["epoch_millis"].as_i64().unwrap(), 1000 * (last + 1));
    let error = (steps[0]["load"].as_f64().unwrap() - wave(last + 1)).abs();
    assert!(error < 10.0, "the next step is {error} off");
    assert_eq!(server.get("/v1/forecast/chta").0, 404);
    assert_eq!(server.get("/v1/forecast/chat?steps=21").0, 400);
    assert_eq!(server.get("/v1/forecast/chat?levels=0.9,0.1").0, 400);
    // A load was foreseen for the steps that are within reach by now.
    let page = include_str!("../../../docs/src/reference/forecast-server.md");
    for name in goodput_executor::forecasts::metrics::NAMES {
        let sample = format!("\n{name}{{service=\"chat\"");
        let metrics = || server.get("/metrics").1;
        until(|| metrics().contains(&sample).then_some(()), || format!("{name} is not in\n{}", metrics()));
        assert!(page.contains(&format!("`{name}`")), "{name} is not in the book");
    }
    server.stop();
}

#[test]
fn a_late_or_silent_prometheus_loses_nothing_and_lowers_nothing() {
    let (double, folder) = (Double::start(|at| Some(wave(at))), tempfile::tempdir().unwrap());
    let server = Running::start(&config(&double.url, "load", folder.path())).unwrap();
    server.stands("fresh");
    // Its clock falls behind: the steps that it calls over are known, and nothing new comes.
    double.set(|facts| facts.late = 600);
    let mut held = server.stands("silent")["replicas"].as_u64().unwrap();
    let mut may_not_fall = |server: &Running| {
        let replicas = server.replicas();
        assert!(replicas >= held, "{replicas} after {held}");
        held = replicas;
    };
    for _ in 0..5 {
        sleep(Duration::from_millis(200));
        may_not_fall(&server);
    }
    // It does not answer at all.
    double.set(|facts| facts.up = false);
    until(|| server.chat()["problem"].as_str().map(drop), || "no problem is told".into());
    let health = server.get("/healthz");
    assert!(health.0 == 200 && health.1.contains("\"holding\"") && health.1.contains("does not answer"), "{health:?}");
    assert!(server.get("/metrics").1.contains("goodput_forecast_prometheus_up{service=\"chat\"} 0"));
    may_not_fall(&server);
    // It is back: the steps of the silence are asked for, each once.
    double.set(|facts| (facts.late, facts.up) = (0, true));
    let chat = server.stands("fresh");
    assert_eq!(wrong(&past(&chat)), Vec::<&(i64, Option<f64>)>::new());
    assert_eq!(chat["gaps"], 0);
    assert!(server.get("/healthz").1.contains("\"ok\""));
    server.stop();
}

#[test]
fn a_step_without_a_value_is_a_gap_and_a_restart_asks_for_what_is_missing() {
    let hole = second() - 30..second() - 20;
    let seen = hole.clone();
    let load = move |at: i64| Some(wave(at)).filter(|_| !seen.contains(&at));
    let (double, folder) = (Double::start(load), tempfile::tempdir().unwrap());
    let config = config(&double.url, "load", folder.path());
    let server = Running::start(&config).unwrap();
    let chat = server.stands("fresh");
    let found: Vec<i64> = past(&chat).iter().filter(|(_, load)| load.is_none()).map(|(at, _)| *at).collect();
    assert_eq!((found, chat["gaps"].as_u64().unwrap()), (hole.clone().collect(), 10));
    // A load that has just begun to be missing may still come; once a later one is there, the replicas do not fall.
    let before = server.replicas();
    let from = second();
    double.set(|facts| facts.load = Box::new(move |at| Some(wave(at)).filter(|_| at < from || at > from + 1)));
    let gap = server.stands("gap");
    assert!(gap["replicas"].as_u64().unwrap() >= before, "{gap}");
    server.stop();

    let known = past(&gap).last().unwrap().0;
    double.set(|facts| facts.asked.clear());
    let server = Running::start(&config).unwrap();
    let chat = until(
        || Some(server.chat()).filter(|chat| past(chat).last().unwrap().0 > known),
        || "nothing is learnt".into(),
    );
    // The first range is the one that tries the query.
    let first = double.facts.lock().unwrap().asked.iter().skip(1).map(|(first, _)| *first).min().unwrap();
    assert!(first > known, "asked from {first} on, and {known} was known");
    let fewer = chat["gaps"].as_u64().unwrap();
    assert!((11..=12).contains(&fewer), "{fewer} gaps");
    server.stop();

    // Another query is another load, so its forecaster begins anew.
    let mut other = config.clone();
    other.services[0].query = "other".into();
    double.set(|facts| facts.up = false);
    let server = Running::start(&other).unwrap();
    assert_eq!(server.chat()["standing"], "starting");
    assert_eq!(server.chat()["replicas"], serde_json::Value::Null);
    server.stop();
}

#[test]
fn a_service_with_a_slow_query_delays_no_other() {
    let (double, folder) = (Double::start(|at| Some(wave(at))), tempfile::tempdir().unwrap());
    let mut config = config(&double.url, "load", folder.path());
    let mut slow = config.services[0].clone();
    (slow.name, slow.query) = (String::from("slow").try_into().unwrap(), "slow".into());
    config.services.insert(0, slow);
    config.prometheus.timeout_secs = 3600.0;
    let server = Running::start(&config).unwrap();
    // The query of the first service is under way for an hour.
    server.stands("fresh");
    server.stop();
}

#[test]
fn a_query_that_cannot_work_ends_the_start() {
    let (double, folder) = (Double::start(|at| Some(wave(at))), tempfile::tempdir().unwrap());
    let refused = Running::start(&config(&double.url, "bad(", folder.path())).err().unwrap().to_string();
    assert!(refused.contains("parse error: unclosed left parenthesis"), "{refused}");
    double.set(|facts| facts.series = 2);
    let refused = Running::start(&config(&double.url, "load", folder.path())).err().unwrap().to_string();
    assert!(refused.contains("gives 2 series, expected one: put sum(...)"), "{refused}");
}

/// `forecast-state.json` was written by the program of 2026-11-26, before the decision became a type of its own.
#[test]
fn the_state_of_an_earlier_program_is_read() {
    let (double, folder) = (Double::start(|_| None), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("chat.json"), include_str!("../fixtures/forecast-state.json")).unwrap();
    double.set(|facts| facts.up = false);
    let mut config = config(&double.url, "load", folder.path());
    let chat = &mut config.services[0];
    (chat.season_secs, chat.long_season, chat.cold_start_secs) = (6.0, 2, 1.0);
    let server = Running::start(&config).unwrap();
    let chat = server.chat();
    assert_eq!((&chat["standing"], &chat["known_steps"]), (&"silent".into(), &52.into()), "{chat}");
    assert!(server.replicas() >= 10, "{chat}");
    server.stop();
}
