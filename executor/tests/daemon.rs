//! The daemon over a laboratory, and over a Slurm of its own: what jobs say of their speed, quotas,
//! drained nodes, retries.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]
#![allow(clippy::print_stdout, reason = "drills print their counts")]

mod external;
mod lab;
mod policy;
mod report;
mod starts;

use std::fs::Permissions;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_agents::bundle::{Card, Model, PolicyBundle};
use goodput_agents::nets::weights::{NetConfig, SetConfig, Weights};
use goodput_agents::policies::linear::Linear;
use goodput_agents::policies::rounds::Decoder;
use goodput_agents::policies::utility::{Experience, Theta, Utility};
use goodput_configs::live::deployment::{Deployment, Mode};
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::cluster::AcceleratorType;
use goodput_env::gym::layout;
use goodput_env::job::{Elasticity, JobRequest, JobSpec, Work};
use goodput_env::model::{BatchLimits, GradientStats};
use goodput_env::scenario::{Batching, Information};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::agent::tls::{Authority, INTERFACE};
use goodput_executor::daemon;
use goodput_executor::daemon::interface::api;
use goodput_executor::daemon::interface::status::QueueRow;
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_executor::engine::{EngineAction, JobPhase, NodeHealth, Submission};
use goodput_executor::http::identity;
use goodput_executor::job::{Fence, JobReport, RetryBudget};
use goodput_testkit::slurm::{PrivateCluster, missing};

use lab::{BATCH, DOES_NOT, Lab, SCALES, block, off, on, open, open_as, open_with, rounds};

/// Sia weighs a growth against a restart: no growth is worth one that takes longer than any job is old.
#[test]
fn sia_goes_by_the_length_of_a_restart_in_the_file() {
    let gpus_with = |restart_secs: &str| {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a-scales", SCALES, None);
        let mut daemon = open_as(lab, directory.path(), &format!("name = \"sia\"\nrestart_secs = {restart_secs}"), "");
        rounds(&mut daemon, 30);
        on(&mut daemon, |view| {
            let told: Vec<f64> = view.jobs().map(|job| job.restart_secs()).collect();
            assert_eq!(told, [restart_secs.parse::<f64>().unwrap()]);
        });
        daemon.engine_mut().gpus("a-scales")
    };
    let (short, long) = (gpus_with("30.0"), gpus_with("1000000.0"));
    assert!(short >= 6 && long <= 2, "{short} and {long} accelerators");
}

#[test]
fn pollux_gives_more_to_the_job_that_scales_also_after_a_restart() {
    for policy in ["pollux-fast", "pollux", "sia"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a-scales", SCALES, None);
        lab.add("b-does-not", DOES_NOT, None);
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 1);
        let first = ["a-scales", "b-does-not"].map(|key| daemon.engine_mut().gpus(key));
        assert_eq!(first, [1, 1], "{policy}: nobody knows them, so each has what it needs at least");
        rounds(&mut daemon, 30);
        let lab = daemon.engine_mut();
        let (much, little) = (lab.gpus("a-scales"), lab.gpus("b-does-not"));
        assert!(
            much >= 6 && little <= 2,
            "{policy}: {much} accelerators for the one that scales, {little} for the other"
        );
        on(&mut daemon, |view| {
            assert_eq!(view.information, Information::Profiled);
            for (index, law) in [SCALES, DOES_NOT].iter().enumerate() {
                let off = off(view, index, law);
                assert!(off < 0.1, "{policy}: fit of job {index} is off by {off:.3}");
            }
        });

        // Another daemon over the same cluster, where jobs say nothing any more.
        block(daemon.resign());
        let mut lab = daemon.into_engine();
        lab.speak = false;
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 10);
        on(&mut daemon, |view| assert!(off(view, 0, &SCALES) < 0.1, "{policy}: what was learned is in the journal"));
        let lab = daemon.engine_mut();
        let (much, little) = (lab.gpus("a-scales"), lab.gpus("b-does-not"));
        assert!(much >= 6 && little <= 2, "{policy}, after a restart: {much} and {little}");
    }
}

#[test]
fn batch_sizes_are_those_the_job_may_choose_from_once_its_noise_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    let limits = BatchLimits::new(BATCH, 8 * BATCH, 32, 512).unwrap();
    lab.add("adapts", DOES_NOT, Some(limits));
    lab.add("keeps", DOES_NOT, None);
    lab.speak = false;
    let mut daemon = open(lab, directory.path(), "pollux-fast");
    rounds(&mut daemon, 1);
    on(&mut daemon, |view| assert!(view.jobs().all(|job| job.goodput_model().is_none())));
    daemon.engine_mut().speak = true;
    rounds(&mut daemon, 3);
    on(&mut daemon, |view| {
        let models: Vec<_> = view.jobs().map(|job| job.goodput_model().unwrap()).collect();
        assert_eq!(models[0].limits, limits);
        assert_eq!((models[1].limits.init, models[1].limits.max), (BATCH, BATCH));
        assert_eq!(models[0].stats, GradientStats { sqr: 1.0, var: 3.0 });
    });
}

#[test]
fn a_job_that_does_not_speak_the_protocol_is_taken_for_one_that_scales_linearly() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("mute", DOES_NOT, None);
    lab.speak = false;
    let mut daemon = open(lab, directory.path(), "pollux-fast");
    rounds(&mut daemon, 3);
    assert_eq!(daemon.engine_mut().gpus("mute"), 1, "it may still say something");
    rounds(&mut daemon, 5);
    assert!(daemon.engine_mut().gpus("mute") > 2, "it never will");
    daemon.engine_mut().speak = true;
    rounds(&mut daemon, 30);
    assert!(daemon.engine_mut().gpus("mute") <= 2, "it does after all: {}", daemon.engine_mut().gpus("mute"));
}

/// A canary without a name acts on nothing, and a name that nothing has opens nothing.
#[test]
fn a_canary_acts_on_what_it_lists_and_says_what_it_does_not_know() {
    for (lists, held, said) in [
        ("", [0, 0], "lists no job and no node"),
        ("nodes = [\"n9\"]", [0, 0], "no node \"n9\""),
        ("jobs = [\"z\"]", [0, 0], "no job \"z\""),
        ("nodes = [\"n0\", \"n1\", \"n9\"]", [2, 2], "no node \"n9\""),
        ("jobs = [\"a\", \"z\"]", [2, 0], "no job \"z\""),
        ("nodes = [\"n0\", \"n1\"]\njobs = [\"b\"]", [0, 2], ""),
        ("nodes = [\"n9\"]\njobs = [\"b\"]", [0, 0], "no node \"n9\""),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a", SCALES, None);
        lab.add("b", SCALES, None);
        let mut daemon = open_with(lab, directory.path(), "fifo", &format!("[canary]\n{lists}\n"));
        block(daemon.set_mode("test", Mode::Canary)).unwrap();
        rounds(&mut daemon, 3);
        let lab = daemon.engine_mut();
        assert_eq!([lab.gpus("a"), lab.gpus("b")], held, "{lists}");
        let status = daemon.status();
        let alerts = status.lock().unwrap().alerts.clone();
        assert_eq!(alerts.len(), usize::from(!said.is_empty()), "{lists}: told once: {alerts:?}");
        assert!(alerts.iter().all(|alert| alert.starts_with("canary: ") && alert.contains(said)), "{alerts:?}");
    }
}

/// A daemon that has seen its cluster refuses to become a canary of names that the cluster does not have.
#[test]
fn a_canary_of_unknown_names_is_refused() {
    for (lists, said) in [
        ("nodes = [\"n00\"]", "[canary] nodes: there is no node \"n00\" (did you mean \"n0\"?)"),
        ("nodes = [\"n0\", \"gpu-host-17\"]", "no node \"gpu-host-17\" (there are n0, n1"),
        ("jobs = [\"train-2\"]", "[canary] jobs: there is no job \"train-2\" (did you mean \"train-1\"?)"),
        ("nodes = [\"n0\"]\njobs = [\"train-1\"]", ""),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("train-1", SCALES, None);
        let mut daemon = open_with(lab, directory.path(), "fifo", &format!("[canary]\n{lists}\n"));
        block(daemon.set_mode("test", Mode::Observe)).unwrap();
        block(daemon.cycle()).unwrap();
        let told = block(daemon.set_mode("test", Mode::Canary)).map_err(|error| error.to_string());
        if said.is_empty() {
            assert_eq!((told, daemon.mode()), (Ok(()), Mode::Canary));
            continue;
        }
        let told = told.unwrap_err();
        assert!(told.contains(said) && told.contains("the mode stays observe"), "{lists}: {told}");
        assert_eq!(daemon.mode(), Mode::Observe, "{lists}");
        let reopened = open_with(Lab::new(), directory.path(), "fifo", "");
        assert_eq!(reopened.mode(), Mode::Observe, "a refused mode is not kept");
        // A daemon that acts on everything does less as a canary, so that way down is open.
        let directory = tempfile::tempdir().unwrap();
        let mut acting = open_with(Lab::new(), directory.path(), "fifo", &format!("[canary]\n{lists}\n"));
        block(acting.set_mode("test", Mode::Act)).unwrap();
        block(acting.cycle()).unwrap();
        block(acting.set_mode("test", Mode::Canary)).unwrap();
        block(acting.cycle()).unwrap();
        let alerts = acting.status().lock().unwrap().alerts.clone();
        assert!(acting.mode() == Mode::Canary && alerts.iter().any(|alert| alert.starts_with("canary")), "{alerts:?}");
    }
}

/// The mode that a call set holds after the death of the daemon, against the file.
#[test]
fn the_mode_that_was_set_survives_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let mut daemon = open(lab, directory.path(), "fifo");
    assert_eq!((daemon.mode(), daemon.mode_note().as_str()), (Mode::Act, ""));
    block(daemon.set_mode("test", Mode::Observe)).unwrap();
    // It dies without a last word.
    let mut daemon = open(daemon.into_engine(), directory.path(), "fifo");
    assert_eq!(daemon.mode(), Mode::Observe);
    rounds(&mut daemon, 2);
    assert_eq!(daemon.engine_mut().gpus("a"), 0, "the stop holds");
    let note = daemon.status().lock().unwrap().mode_note.clone();
    assert!(note.contains("mode observe was set") && note.contains("`goodput live mode act`"), "{note}");
    // A call to a daemon that stands by reaches the one that leads.
    let mut other = open(Lab::new(), directory.path(), "fifo");
    block(other.set_mode("test", Mode::Act)).unwrap();
    rounds(&mut daemon, 1);
    assert_eq!((daemon.mode(), daemon.engine_mut().gpus("a")), (Mode::Act, 2));
    assert_eq!(daemon.status().lock().unwrap().mode_note, "");
    // A file of the operator rules over every call, and the answer to a call says so.
    assert_eq!(daemon.held_back(), None);
    let stop = directory.path().join("STOP");
    std::fs::write(&stop, "").unwrap();
    let held_back = daemon.held_back().unwrap();
    assert!(held_back.contains("mode act is kept and does not rule"), "{held_back}");
    assert!(held_back.contains(&stop.display().to_string()), "{held_back}");
}

/// The queue stands by age for every reader, and the audit log has each attempt that ended while its job goes on.
#[test]
fn the_queue_stands_by_age_and_an_attempt_that_ends_is_on_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("z-old", SCALES, None);
    let mut daemon = open(lab, directory.path(), "fifo");
    rounds(&mut daemon, 1);
    daemon.engine_mut().add("a-new", SCALES, None);
    rounds(&mut daemon, 1);
    let keys: Vec<String> = daemon.status().lock().unwrap().queue.iter().map(|row| row.key.clone()).collect();
    assert_eq!(keys, ["z-old", "a-new"]);
    let job = daemon.engine_mut().jobs.get_mut("z-old").unwrap();
    (job.seen.attempt, job.seen.phase, job.seen.failures) = (None, JobPhase::Held, 1);
    job.seen.note = "exit code 1 on n0".into();
    block(daemon.cycle()).unwrap();
    let log = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let left = |line: &&str| line.contains(r#""left":["#) && line.contains(r#""note":"exit code 1 on n0""#);
    let line = log.lines().find(left).unwrap();
    assert!(line.contains(r#""attempt":0,"failures":1,"key":"z-old""#), "{line}");
}

/// Queues are sorted by shapes of jobs, worked out once: a job that comes later has one too.
#[test]
fn policies_that_go_by_the_shape_of_jobs_run_live() {
    for policy in ["kubernetes", "kueue", "kai"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        lab.add("a", SCALES, None);
        let mut daemon = open(lab, directory.path(), policy);
        rounds(&mut daemon, 2);
        daemon.engine_mut().add("b", SCALES, None);
        rounds(&mut daemon, 2);
        assert_eq!(daemon.engine_mut().gpus("b"), 2, "{policy}");
    }
}

/// The power and the price of types reach the policy; their memory is that of the machines.
#[test]
fn a_live_view_has_the_power_and_the_price_of_types() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a", SCALES, None);
    let (watts, dollars_per_hour, memory_mib) = (Some(400.0), Some(2.5), Some(1));
    let known = AcceleratorType { watts, dollars_per_hour, memory_mib, ..AcceleratorType::named("a100") };
    let mut daemon = open(lab, directory.path(), "gavel-per-watt").knowing(vec![known]);
    rounds(&mut daemon, 2);
    let seen = on(&mut daemon, |view| view.cluster().types[0].clone());
    assert_eq!((seen.watts, seen.dollars_per_hour, seen.memory_mib), (Some(400.0), Some(2.5), None));
}

/// Pollux knows nothing of quotas, the guard does.
#[test]
fn quotas_bind_a_policy_that_does_not_know_them() {
    let tenants = "[[tenants]]\nname = \"small\"\nquota = { a100 = { nominal = 3 } }\n\
                   [[tenants]]\nname = \"large\"\nquota = { a100 = { nominal = 13 }, h100 = { nominal = 4 } }\n";
    for policy in ["pollux-fast", "fifo"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = Lab::new();
        for (key, tenant) in [("a", "small"), ("b", "small"), ("c", "large")] {
            lab.add(key, SCALES, None);
            lab.jobs.get_mut(key).unwrap().seen.tenant = tenant.into();
        }
        let mut daemon = open_with(lab, directory.path(), policy, tenants);
        let mut most = 0;
        for _ in 0..20 {
            rounds(&mut daemon, 1);
            let lab = daemon.engine_mut();
            let [small, large] = [lab.gpus("a") + lab.gpus("b"), lab.gpus("c")];
            assert!(small <= 3 && large <= 13, "{policy}: {small} and {large}");
            most = most.max(small);
        }
        assert!(most >= 2, "{policy}: {most} of what is its own");
        if policy == "fifo" {
            let status = daemon.status();
            let status = status.lock().unwrap();
            let reason = |name: &str| status.queue.iter().find(|row| row.name == name).unwrap().reason.clone();
            assert_eq!((reason("a").as_str(), reason("b").as_str()), ("running", "guard:quota"));
        }
    }
    let error = reader::parse::<Deployment>(
        "t.toml",
        "[engine.slurm]\n[policy]\nname = \"fifo\"\n[state]\ndirectory = \"/x\"\n[[tenants]]\nname = \"a\"\ncohort = \"b\"\n",
    );
    assert!(error.unwrap_err().to_string().contains("cohort"), "a cohort that is not declared");
}

#[test]
fn every_kind_of_bundle_decides() {
    let (shape, width) = (layout(8), NonZeroUsize::new(4).unwrap());
    let net = Weights::new(&NetConfig::Set(SetConfig::new(width)), shape, 1);
    let linear = Linear::new(shape, vec![0.1; shape.verbs * shape.slot_features + 1]).unwrap();
    let utility = Utility { theta: Theta::sia(), experience: Experience::default(), siblings: false, efficiency: true };
    for (model, schema_hash) in [
        (Model::Net(net), shape.schema_hash()),
        (Model::Linear(linear), shape.schema_hash()),
        (Model::Utility(utility), Theta::sia().schema_hash()),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.bundle");
        let decoder = serde_json::to_value(Decoder::new(Batching::Agent, Information::Profiled)).unwrap();
        let bundle = PolicyBundle { model, normaliser: None, card: Card { schema_hash, decoder, ..Card::default() } };
        bundle.save(&path).unwrap();
        let mut lab = Lab::new();
        lab.add("a", SCALES, None);
        lab.add("b", SCALES, None);
        let policy = format!("bundle = \"{}\"", path.display());
        let mut daemon = open_as(lab, directory.path(), &policy, "");
        // Rounds in which it decides, not the fallback.
        rounds(&mut daemon, 3);
        let running = ["a", "b"].map(|key| daemon.engine_mut().gpus(key));
        assert!(running.iter().sum::<u32>() > 0, "{}: {running:?}", bundle.kind());
    }
}

/// A learned change says why: the contributions add up, and the size that was chosen is among those valued.
#[test]
fn a_learned_resize_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    lab.add("a-scales", SCALES, None);
    lab.add("b-does-not", DOES_NOT, None);
    let mut daemon = open_as(lab, directory.path(), "bundle = \"zoo:elastic\"", "");
    rounds(&mut daemon, 30);
    assert!(daemon.engine_mut().gpus("a-scales") > 1, "it grew");
    let status = daemon.status();
    let status = status.lock().unwrap();
    for row in &status.queue {
        crate::explained::the_bundle_says_why("simulation", row, "zoo:elastic");
        assert!(row.score.is_some());
    }
    let log = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
    let resized = log.lines().filter(|line| line.contains("\"resize\"") && line.contains("\"reasons\":{\"a-scales\""));
    assert!(resized.count() > 0, "the audit log has the reasons of each resize");
}

/// One long job came first, six short ones wait behind it: by simulation the first to come is not
/// the one that should go first.
#[test]
fn a_policy_beside_is_compared_by_simulation_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = Lab::new();
    let mut add = |key: &str, gpus: u32, secs: i64| {
        lab.add(key, SCALES, None);
        let spec = &mut lab.jobs.get_mut(key).unwrap().seen.spec;
        (spec.request.gpus, spec.request.elasticity) = (gpus, Elasticity::Rigid);
        spec.work = Work::Fixed { duration: SimTime::from_secs(secs) };
    };
    add("a-long", 16, 7200);
    for key in ["b", "c", "d", "e", "f", "g"] {
        add(key, 16, 300);
    }
    let shadow = "[shadow]\nname = \"srtf\"\nhorizon_secs = 100000\nevery_secs = 0.01\nrestart_secs = 30\n";
    let mut daemon = open_with(lab, directory.path(), "fifo", shadow);
    let began = Instant::now();
    let compared = loop {
        rounds(&mut daemon, 1);
        if let Some(compared) = daemon.status().lock().unwrap().shadow.clone() {
            break compared;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "nothing is compared");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((compared.incumbent.policy.as_str(), compared.candidate.policy.as_str()), ("fifo", "srtf"));
    assert_eq!((compared.assumed.jobs, compared.assumed.unknown, compared.assumed.overdue), (7, 0, 0));
    assert_eq!((compared.incumbent.unfinished, compared.candidate.unfinished), (0, 0));
    let (fifo, srtf) = (compared.incumbent.mean_jct_secs, compared.candidate.mean_jct_secs);
    // First come, first served: 7230, 7560, 7890, ... Shortest first: 330, 660, ..., 9210.
    assert!((fifo / 8220.0 - 1.0).abs() < 0.05, "fifo {fifo:.0} s");
    assert!((srtf / 2306.0 - 1.0).abs() < 0.10, "srtf {srtf:.0} s");
    assert_eq!(compared.differs.get("a-long"), Some(&Vec::new()), "srtf has it wait: {}", compared.words());
    assert_eq!(daemon.engine_mut().gpus("a-long"), 16, "and does nothing");
    rounds(&mut daemon, 1);
    let status = daemon.status();
    let status = status.lock().unwrap();
    let row = status.queue.iter().find(|row| row.key == "a-long").unwrap();
    assert_eq!(row.beside, "srtf would have it wait");
    assert!(daemon.metrics().text().contains("goodput_shadow_jct_seconds{role=\"candidate\"}"));
}

#[test]
fn a_drained_node_shows_why_at_once_and_nothing_starts_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = open(Lab::new(), directory.path(), "fifo");
    rounds(&mut daemon, 1);
    let drain = EngineAction::Drain { node: "n0".into(), reason: "a fan".into() };
    block(daemon.order_by_hand("t", "", drain)).unwrap();
    let status = daemon.status();
    let shown = |at: usize| {
        let node = status.lock().unwrap().nodes[at].clone();
        (node.health, node.note)
    };
    assert_eq!((shown(0), shown(1).0), ((NodeHealth::Drained, "a fan".into()), NodeHealth::Up));
    let lab = daemon.engine_mut();
    lab.at_ms += 60_000;
    for key in ["a", "b", "c", "d", "e", "f"] {
        lab.add(key, SCALES, None);
    }
    block(daemon.cycle()).unwrap();
    let lab = daemon.engine_mut();
    assert_eq!((lab.held_on("n0"), lab.drained.as_deref()), (0, Some("n0")), "in the cycle that carries it out");
    assert!(lab.held_on("n1") > 0);
}

/// Slurm tries no job again and has no agents: the daemon puts back what failed, and jobs report to
/// it.
#[test]
fn on_slurm_jobs_report_are_resized_by_a_learned_policy_and_tried_again_as_often_as_they_may_fail() {
    if let Some(program) = missing() {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed; `cargo xtask test` installs Slurm");
        eprintln!("NOT TESTED: {program} is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let cluster = PrivateCluster::start(&place.join("slurm"), 2, 4, "a100", 5).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let certificates = place.join("certificates");
    Authority::open(&certificates).unwrap().of_interface(&["127.0.0.1".to_owned()], 1).unwrap();
    let file = |name: &str| certificates.join(name).display().to_string();
    let (ca, certificate, private) =
        (file("ca.pem"), file(&format!("{INTERFACE}.pem")), file(&format!("{INTERFACE}.key")));
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\nconf = {:?}\nreport_url = \"https://127.0.0.1:{port}\"\nreport_ca = {ca:?}\n\
         [policy]\nbundle = \"zoo:elastic\"\n\
         [reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n[state]\ndirectory = {:?}\nname = \"t\"\n\
         [api]\nlisten = \"127.0.0.1:{port}\"\ntls = {{ certificate = {certificate:?}, key = {private:?} }}\n\
         [cycle]\npoll_secs = 0.2\nround_secs = 3\n[guard]\nmin_run_secs = 1\npreempt_every_secs = 1\npreempt_percent = 100\n",
        cluster.settings().conf.unwrap().display().to_string(),
        place.join("state").display().to_string(),
    );
    let settings = reader::parse::<Deployment>("t.toml", &text).unwrap();
    let EngineConfig::Slurm(slurm) = &settings.engine else { unreachable!("as written above") };
    let engine = SlurmEngine::new(slurm, FactsKey::in_directory(&settings.state.directory).unwrap());
    let mut daemon = daemon::open(engine, settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap();

    // Half a second for a step, shared by all accelerators; leaves when it is told to.
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");
    let script = "import os, sys, time\nsys.path.insert(0, os.environ['CLIENTS'])\nimport goodput_job\njob = goodput_job.Job()\nstep = 0\n\
        while True:\n    time.sleep(0.1); step += 1; job.exit_if_stopped()\n    job.report(step, batch_size=1024, step_time_s=0.02 + 0.5 / job.world_size, sync_time_s=0.02)\n";
    let submission = |name: &str, max: u32, command: &[&str], more: &[(&str, &str)]| {
        let elasticity = if max > 1 { Elasticity::Elastic { min: 1, max } } else { Elasticity::Rigid };
        let request = JobRequest { name: name.into(), gpus: 1, elasticity, ..JobRequest::default() };
        let work = Work::Fixed { duration: SimTime::from_secs(600) };
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Submission {
            environment: more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            directory: Some(place.into()),
            grace_s: 5,
            owner: "anna".into(),
            ..Submission::new(JobSpec { request, work }, command)
        }
    };
    let path = std::env::var("PATH").unwrap();
    let env = [("CLIENTS", clients), ("PATH", path.as_str()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let learns = submission("learns", 4, &["python3", "-c", script], &env);
    let fails = Submission {
        retry: RetryBudget { failures: 1, ..RetryBudget::default() },
        checkpoint_dir: Some(place.join("checkpoints/of fails")),
        ..submission("fails", 1, &["/bin/sh", "-c", "echo x >> \"$SCHED_CHECKPOINT_DIR/starts\"; exit 1"], &env)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let key = runtime.block_on(async {
        daemon.cycle().await.unwrap();
        daemon.submit("t", &fails).await.unwrap();
        daemon.submit("t", &learns).await.unwrap()
    });
    let status = daemon.status();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = runtime.spawn(api::run(daemon, stopped));
    let began = Instant::now();
    let (mut grown, mut given_up) = (false, None);
    while began.elapsed() < Duration::from_secs(120) && !(grown && given_up.is_some()) {
        std::thread::sleep(Duration::from_millis(200));
        let status = status.lock().unwrap();
        let row = status.queue.iter().find(|row| row.key == key);
        // A learned policy gives it more, and says why.
        let more = |row: &&QueueRow| row.placement.iter().map(|on| on.gpus).sum::<u32>() >= 2;
        let why = row.filter(more).and_then(|row| row.change.as_ref()).filter(|why| why.gpus >= 2);
        if let (Some(row), Some(_)) = (row, why.filter(|_| !grown)) {
            crate::explained::the_bundle_says_why("Slurm", row, "zoo:elastic");
            grown = true;
        }
        given_up = status.ended.iter().find(|row| row.name == "fails").cloned();
    }
    let rows: String = format!("{:?}", status.lock().unwrap().queue).chars().take(1500).collect();
    assert!(grown, "it says that it scales, and is given more: {rows}");
    let given_up = given_up.expect("it failed twice, and once was forgiven");
    // A busy Slurm may have to start one of them twice; the program ran twice.
    assert_eq!((given_up.reason.as_str(), given_up.failures), ("failed", 2), "{}", given_up.detail);
    assert!(given_up.starts >= 2, "{} starts", given_up.starts);
    assert!(given_up.detail.contains("forgiven"), "{}", given_up.detail);
    let starts = std::fs::read_to_string(place.join("checkpoints/of fails/starts")).unwrap();
    assert_eq!(starts.lines().count(), 2, "both attempts found the same folder");

    assert_eq!(given_up.owner, "anna", "the owner of the token, whichever user runs the daemon");

    let roots: Vec<_> = identity::certificates(Path::new(&ca)).unwrap();
    let roots: Vec<_> = roots.iter().map(|root| ureq::tls::Certificate::from_der(root).to_owned()).collect();
    let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&roots));
    let tls = tls.unversioned_rustls_crypto_provider(identity::provider()).build();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().new_agent();
    let forged = serde_json::to_string(&JobReport::new(Fence::from_text("guessed"), 0, 1)).unwrap();
    let answer = agent.put(format!("https://127.0.0.1:{port}/v1/jobs/{key}/report")).send(&forged).unwrap();
    assert_eq!(answer.status().as_u16(), 409, "nobody speaks for a job without its token");
    let _ = stop.send(());
    runtime.block_on(running).unwrap().unwrap();
}

/// Review, finding 26: journal, audit log and lock were readable by every user of the machine.
#[test]
fn the_state_of_a_daemon_is_closed_to_others_also_what_an_earlier_version_left_open() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("state");
    drop(open(Lab::new(), &state, "fifo"));
    let set = |path: &std::path::Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let files = || std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files().iter().for_each(|file| set(file, 0o644));
    set(&state, 0o755);
    let mut daemon = open(Lab::new(), &state, "fifo");
    block(daemon.cycle()).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert!(files().len() >= 4, "{:?}", files());
    for file in files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}
