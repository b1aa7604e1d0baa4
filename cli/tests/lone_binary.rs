//! The program alone in a folder: nothing beside it is needed for the demonstration on accelerators that do not exist.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ui::Page;

/// A process that ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Folder with a copy of the program.
struct Lone(tempfile::TempDir);

impl Lone {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.path().join("goodput"));
        command.args(words).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.env("NO_COLOR", "1");
        command
    }

    fn output(&self, words: &[&str]) -> (bool, String) {
        let output = self.command(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts a service, which writes its log to `NAME.log`.
    fn serve(&self, name: &str, words: &[&str]) -> Service {
        let log = fs::File::create(self.path().join(format!("{name}.log"))).unwrap();
        Service(self.command(words).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_copied_program_runs_the_demonstration_on_fake_accelerators() {
    let lone = Lone(tempfile::Builder::new().prefix("lone").tempdir().unwrap());
    let folder = lone.path().display();
    fs::copy(env!("CARGO_BIN_EXE_goodput"), lone.path().join("goodput")).unwrap();
    assert!(lone.output(&["live", "certs", "certs", "--node", "n0"]).0);
    let (made, token) = lone.output(&["live", "token", "--name", "me"]);
    assert!(made, "{token}");
    let (plain, hash) =
        (token.lines().next().unwrap(), token.split("sha256 = \"").nth(1).unwrap().split('"').next().unwrap());
    fs::write(lone.path().join("token"), plain).unwrap();
    let (agent, api) = (free_port(), free_port());
    let tls = |name: &str| {
        format!(
            "ca = \"{folder}/certs/ca.pem\"\ncert = \"{folder}/certs/{name}.pem\"\nkey = \"{folder}/certs/{name}.key\"\n"
        )
    };
    let node = format!(
        "node = \"n0\"\nlisten = \"127.0.0.1:{agent}\"\njobs = \"127.0.0.1:0\"\nstate_dir = \"{folder}/node\"\n\
         checkpoint_root = \"{folder}/checkpoints\"\n[tls]\n{}",
        tls("n0")
    );
    fs::write(lone.path().join("node.toml"), node).unwrap();
    let deployment = format!(
        "mode = \"observe\"\n[engine.agents]\nfolder = \"{folder}/jobs\"\nnodes = [{{ name = \"n0\", address = \"127.0.0.1:{agent}\" }}]\n\
         [engine.agents.tls]\n{}[policy]\nname = \"tiresias\"\n[state]\ndirectory = \"{folder}/state\"\n[api]\n\
         listen = \"127.0.0.1:{api}\"\n[[api.tokens]]\nname = \"me\"\nverbs = [\"read\", \"submit\"]\ntenants = [\"*\"]\nsha256 = \"{hash}\"\n",
        tls("goodput-daemon")
    );
    fs::write(lone.path().join("deployment.toml"), deployment).unwrap();

    let _agent = lone.serve("agent", &["live", "agent", "--config", "node.toml", "--devices", "fake:8xA100"]);
    let _daemon = lone.serve("daemon", &["live", "run", "deployment.toml"]);
    let url = format!("http://127.0.0.1:{api}");
    let began = Instant::now();
    let seen = loop {
        let (_, seen) = lone.output(&["live", "nodes", "-o", "csv", "--url", &url, "--token-file", "token"]);
        if seen.lines().any(|line| line.starts_with("n0,a100,8,")) {
            break seen;
        }
        let log = |name: &str| fs::read_to_string(lone.path().join(format!("{name}.log"))).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{seen}\n{}\n{}", log("agent"), log("daemon"));
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(seen.contains(",up"), "{seen}");
    let words = ["live", "submit", "--name", "a", "--gpus", "8", "--url", &url, "--token-file", "token", "--", "true"];
    let (taken, said) = lone.output(&words);
    assert!(taken, "{said}");
    let token = lone.path().join("token");
    let page = Page::serve(lone.path(), &["--daemon", &url, "--token-file", token.to_str().unwrap()]);
    // The page shows the job once the daemon has looked again, and the daemon starts nothing in this mode.
    let state = loop {
        let state = page.json("/api/daemon");
        if state["queue"].as_array().is_some_and(|queue| !queue.is_empty()) {
            break state;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{state}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!((&state["queue"][0]["name"], &state["queue"][0]["phase"]), (&"a".into(), &"held".into()), "{state}");
    assert_eq!((&state["nodes"][0]["name"], &state["nodes"][0]["gpus"]), (&"n0".into(), &8.into()), "{state}");
    let log = fs::read_to_string(lone.path().join("agent.log")).unwrap();
    assert!(log.contains("accelerators=8"), "{log}");
}
