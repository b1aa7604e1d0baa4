//! A daemon that is told to end gives its lease up, and one that is killed does not.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stdout, reason = "a test, which prints what it counted")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use goodput_executor::daemon::durability::journal::Journal;
use serde_json::Value;

/// Lease of the daemons, seconds: far longer than the test.
const LEASE_SECS: u32 = 600;
/// Longest wait for a daemon on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon over a Slurm that is not there. The daemon leads all the same: the lease does not depend on the engine.
struct Running {
    daemon: Child,
    url: String,
}

impl Running {
    fn start(folder: &Path, name: &str) -> Self {
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = folder.join(format!("{name}.toml"));
        let state = folder.join("state");
        let text = format!(
            "mode = \"observe\"\n[engine.slurm]\n[policy]\nname = \"fifo\"\n[cycle]\npoll_secs = 0.1\n\
             [state]\ndirectory = {state:?}\nname = {name:?}\nlease_secs = {LEASE_SECS}\n\
             [api]\nlisten = \"{listen}\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodputd"));
        command.arg("run").arg(&file).env_clear().env("PATH", folder);
        let daemon = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { daemon, url: format!("http://{listen}/healthz") }
    }

    /// Whether this daemon leads, and the name of the leader, once its loop has come round.
    fn leads(&self) -> Option<(bool, Option<String>)> {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let text = agent.get(&self.url).call().ok()?.body_mut().read_to_string().ok()?;
        let told: Value = serde_json::from_str(&text).ok()?;
        let leader = told["leader"]["name"].as_str().map(str::to_owned);
        Some((told["leads"].as_bool()?, leader))
    }

    /// Waits until this daemon leads, and gives the time that it took.
    fn until_it_leads(&mut self) -> Duration {
        let began = Instant::now();
        while self.leads().is_none_or(|(leads, _)| !leads) {
            assert_eq!(self.daemon.try_wait().unwrap(), None, "it has ended");
            assert!(began.elapsed() < PATIENCE, "it never leads: {:?}", self.leads());
            std::thread::sleep(Duration::from_millis(50));
        }
        began.elapsed()
    }

    fn signal(&mut self, signal: &str) -> ExitStatus {
        let pid = self.daemon.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let began = Instant::now();
        loop {
            if let Some(status) = self.daemon.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Holder of the lease, as the journal has it; empty where the lease is free.
fn holder(folder: &Path) -> String {
    Journal::open(&folder.join("state/journal.sqlite")).unwrap().lease().unwrap().holder
}

#[test]
fn a_daemon_that_is_told_to_end_gives_its_lease_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Running::start(folder.path(), "first");
    first.until_it_leads();
    assert_eq!(holder(folder.path()), "first");
    // As a service manager ends it.
    assert_eq!(first.signal("-TERM").code(), Some(0));
    assert_eq!(holder(folder.path()), "", "the lease is free");

    let mut second = Running::start(folder.path(), "second");
    let took = second.until_it_leads();
    println!("the second daemon leads {took:?} after its start, with a lease of {LEASE_SECS} s");
    let mut third = Running::start(folder.path(), "third");
    let began = Instant::now();
    while third.leads().is_none_or(|(_, leader)| leader.as_deref() != Some("second")) {
        assert!(began.elapsed() < PATIENCE, "the leader is never seen: {:?}", third.leads());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(third.leads().map(|(leads, _)| leads), Some(false), "it stands by");
    assert_eq!(second.signal("-TERM").code(), Some(0));
    let took = third.until_it_leads();
    println!("the third daemon leads {took:?} after the end of the second");

    // A daemon that dies gives nothing up: the journal names it until another one finds it dead.
    third.signal("-KILL");
    assert_eq!(holder(folder.path()), "third");
    let mut fourth = Running::start(folder.path(), "fourth");
    let took = fourth.until_it_leads();
    println!("the fourth daemon leads {took:?} after its start");
    assert_eq!(holder(folder.path()), "fourth");
    assert_eq!(fourth.signal("-TERM").code(), Some(0));
}
