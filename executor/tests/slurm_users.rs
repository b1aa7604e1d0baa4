//! Jobs on Slurm that run as the owner of the token.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use goodput_configs::live::engine::SlurmConfig;
use goodput_executor::engine::slurm::SlurmEngine;
use goodput_executor::engine::{Engine, EngineAction, Order, OrderId, Submission};
use goodput_testkit::not_tested;

use crate::slurm_site::{carry_out, job, key, on, runtime, site, submission};

/// Review, finding 24: a token that submits was the user of the daemon, root, on all nodes.
#[test]
fn a_job_runs_as_the_owner_of_its_token_and_keeps_its_tenant() {
    if !rustix::process::getuid().is_root() {
        not_tested("jobs of other users are handed in by root alone");
        return;
    }
    let Some(site) = site() else { return };
    let place = site.directory.path();
    fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
    let open = place.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let settings = SlurmConfig { run_as_owner: true, ..site.cluster.settings() };
    let mut engine = SlurmEngine::new(&settings, key(place));
    let told = open.join("told");
    let script = format!("echo $(id -un) $USER $HOME > {0}.new; mv {0}.new {0}; sleep 60", told.display());
    let asks = |owner: &str| Submission {
        command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
        directory: Some(open.clone()),
        checkpoint_dir: None,
        owner: owner.into(),
        tenant: "rich".into(),
        ..submission(&open, "who", 1, 1, 600)
    };
    runtime().block_on(async {
        engine.snapshot().await.unwrap();
        let refused = engine.submit(&asks("no-such-user")).await.unwrap_err().to_string();
        assert!(refused.contains("no user \"no-such-user\""), "{refused}");
        let name = engine.submit(&asks("nobody")).await.unwrap();
        let action = EngineAction::Place { placement: vec![on("n0", 1)], share: None };
        let order = Order { id: OrderId("place".into()), job: name.clone(), starts: 0, action };
        let seen = carry_out(&mut engine, &order).await;
        let seen = job(&seen, &name);
        assert_eq!((seen.owner.as_str(), seen.tenant.as_str()), ("nobody", "rich"), "its comment is believed");
    });
    let began = Instant::now();
    while !told.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(fs::read_to_string(&told).unwrap(), "nobody nobody /nonexistent\n");
}
