//! Accounts, qualities of service and constraints on Slurm 25.11 with `slurmdbd` and MariaDB, all of them real.
//!
//! Where the release cannot be had the test says so and passes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::{Duration, Instant};

use goodput_configs::live::engine::EngineConfig;
use goodput_executor::engine::{Engine, EngineAction, JobPhase, JobResources, Order, Submission};
use goodput_testkit::not_tested;
use goodput_testkit::slurm::{PrivateCluster, SlurmInstall, SlurmRelease};

use crate::slurm_site::*;

/// A cluster with the accounts `rich` and `poor`, of which only `rich` has the quality of service `given`.
fn accounted() -> Option<Site> {
    let release = match SlurmInstall::of(SlurmRelease::ACCOUNTED) {
        Ok(release) => release,
        Err(error) => {
            not_tested(&error.to_string());
            return None;
        }
    };
    let site = Site::on(|place| PrivateCluster::start_with_accounts(&release, place));
    for words in [
        "add qos given",
        "add account rich,poor cluster=private",
        "add user root account=poor,rich cluster=private defaultaccount=poor",
        "modify account rich set qos+=given",
        "modify user root where account=rich set qos+=given",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        site.cluster.ask("sacctmgr", &[&["--immediate"][..], &words].concat());
    }
    // slurmctld hears of accounts from slurmdbd, a moment later.
    let probe = ["--parsable", "--chdir=/tmp", "--hold", "--account=rich", "--qos=given", "--wrap=true"];
    let began = Instant::now();
    while site.cluster.ask("sbatch", &probe).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", site.cluster.ask("sacctmgr", &["show", "assoc"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    site.cluster.cancel_all();
    Some(site)
}

#[test]
fn accounts_qos_and_constraints_are_kept_as_asked() {
    let Some(mut site) = accounted() else { return };
    what_is_asked_stays(&mut site);
    site.cluster.cancel_all();
    tenants_are_accounts(&mut site);
    site.cluster.cancel_all();
    a_given_qos_is_the_daemons(&mut site);
}

/// A job of `live submit` keeps its account, its quality of service and its constraint through every order.
fn what_is_asked_stays(site: &mut Site) {
    let asks = |account: &str, qos: &str| {
        let (account, qos, constraint) = (Some(account.into()), Some(qos.into()), Some("odd".into()));
        let resources = JobResources { account, qos, constraint, ..JobResources::default() };
        Submission { resources, ..submission(site.directory.path(), "asks", 2, 8, 600) }
    };
    let told = |key: &str| site.cluster.ask("scontrol", &["show", "job", key]);
    let engine = &mut site.engine;
    runtime().block_on(async {
        for (account, qos) in [("nobody", "given"), ("poor", "given")] {
            let refused = engine.submit(&asks(account, qos)).await.unwrap_err().to_string();
            assert!(refused.contains("Invalid"), "{account} {qos}: {refused}");
            let tried = engine.try_out(&asks(account, qos)).await.unwrap_err().to_string();
            assert!(tried.contains("Invalid"), "{account} {qos}: {tried}");
        }
        engine.try_out(&asks("rich", "given")).await.unwrap();
        let seen = engine.snapshot().await.unwrap();
        assert!(seen.jobs.iter().all(|job| job.spec.request.name != "asks"), "nothing was handed in");
        let key = engine.submit(&asks("rich", "given")).await.unwrap();
        let kept = || {
            let told = told(&key);
            ["Account=rich QOS=given", "Features=odd"].iter().for_each(|words| assert!(told.contains(words), "{told}"));
        };
        kept();
        let place = EngineAction::Place { placement: vec![on("n1", 2)], share: None };
        let seen = carry_out(engine, &Order::named("place", &key, 0, place)).await;
        assert_eq!(job(&seen, &key).tenant, "rich", "its tenant is its account");
        kept();
        let resize = EngineAction::Resize { placement: vec![on("n1", 1), on("n3", 2)], grace_s: 5 };
        carry_out(engine, &Order::named("resize", &key, 1, resize)).await;
        kept();
        carry_out(engine, &Order::named("stop", &key, 2, EngineAction::Stop { grace_s: 5 })).await;
        kept();
        // An order cannot take a job where its user does not want it.
        let elsewhere = EngineAction::Place { placement: vec![on("n2", 2)], share: None };
        let elsewhere = Order::named("elsewhere", &key, 2, elsewhere);
        for _ in 0..20 {
            engine.snapshot().await.unwrap();
            engine.apply(std::slice::from_ref(&elsewhere)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_ne!(job(&engine.snapshot().await.unwrap(), &key).phase, JobPhase::Running);
        kept();
    });
}

/// The tenant of a job is the account that Slurm charges, also where `sbatch` named none.
fn tenants_are_accounts(site: &mut Site) {
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--gpus=1", "--wrap=sleep 1"];
    let sbatch = |more: &[&str]| site.cluster.ask("sbatch", &[&job[..], more].concat()).trim().to_owned();
    let (rich, default) = (sbatch(&["--account=rich"]), sbatch(&[]));
    let seen = runtime().block_on(site.engine.snapshot()).unwrap();
    let tenant = |key: &str| crate::slurm_site::job(&seen, key).tenant.clone();
    assert_eq!([tenant(&rich), tenant(&default)], ["rich", "poor"]);
}

/// Plain jobs of a quality of service that is given as a whole are held and placed, and no other ones.
fn a_given_qos_is_the_daemons(site: &mut Site) {
    let directory = site.directory.path().to_path_buf();
    let plain = ["--parsable", "--chdir=/tmp", "--nodes=1", "--gpus=8", "--account=rich", "--wrap=sleep 300"];
    let sbatch = |qos: &str| site.cluster.ask("sbatch", &[&plain[..], &[qos]].concat()).trim().to_owned();
    let running: Vec<String> = (0..4).map(|_| sbatch("--qos=normal")).collect();
    let told = |key: &str| site.cluster.ask("scontrol", &["show", "job", key]);
    let run = |key: &String| told(key).contains("JobState=RUNNING");
    // Until these have all accelerators, the daemon could place the job that comes after them.
    let began = Instant::now();
    while !running.iter().all(run) {
        assert!(began.elapsed() < Duration::from_secs(90), "{}", told(&running[3]));
        std::thread::sleep(Duration::from_millis(100));
    }
    let (given, other) = (sbatch("--qos=given"), sbatch("--qos=normal"));
    let mut settings = settings(site, &directory, "");
    let EngineConfig::Slurm(slurm) = &mut settings.engine else { panic!("it drives Slurm") };
    slurm.given_qos = vec!["given".into()];
    let mut daemon = open(site, settings);
    let runtime = runtime();
    let mut until = |wanted: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !wanted() {
            runtime.block_on(daemon.cycle()).unwrap();
            assert!(began.elapsed() < Duration::from_secs(90), "{} {}", told(&given), told(&other));
            std::thread::sleep(Duration::from_millis(150));
        }
    };
    until(&|| told(&given).contains("AdminComment=goodput;") && told(&given).contains("Reason=JobHeldUser"));
    site.cluster.ask("scancel", &[&other]);
    site.cluster.ask("scancel", &[&running[0]]);
    until(&|| told(&given).contains("JobState=RUNNING"));
    for key in running[1..].iter().chain([&other]) {
        assert!(!told(key).contains("AdminComment"), "{}", told(key));
        assert!(told(key).contains("Restarts=0"), "{}", told(key));
    }
    assert!(told(&given).contains("Account=rich QOS=given"), "{}", told(&given));
}
