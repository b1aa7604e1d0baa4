//! Three hosts in network namespaces: two for daemons, and the one of the test with agents and etcd.
//!
//! The test runs itself again in a network of its own, so that nothing of the machine's network is
//! touched, and makes the other two namespaces from there.

use std::process::{Child, Command, Stdio};

use goodput_testkit::not_tested;

/// Address of the agents.
pub const AGENTS: &str = "10.77.0.1";
/// Address of etcd, on the host of the agents.
pub const ETCD: &str = "10.77.0.9";
/// Addresses of the hosts of daemons.
pub const DAEMONS: [&str; 2] = ["10.77.0.2", "10.77.0.3"];

/// Variable that says to the test that it runs in the network of its own.
const INSIDE: &str = "GOODPUT_IN_NETWORK";

/// Runs the test called `name` again in a network of its own. `false` where this is that run.
/// Says loudly where that cannot be done.
#[must_use]
pub fn outside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let able = root
        && Command::new("unshare")
            .args(["--net", "--mount", "ip", "link", "set", "lo", "up"])
            .status()
            .is_ok_and(|status| status.success());
    if !able {
        not_tested("a network namespace needs root, unshare and iproute2");
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--"]).arg(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
    assert!(command.status().unwrap().success(), "{name} failed in its network");
    true
}

/// The hosts of the daemons and the wires to them.
pub struct Network {
    names: [String; 2],
}

impl Network {
    pub fn new() -> Self {
        let names = [0, 1].map(|host| format!("goodput-{}-{host}", std::process::id()));
        let network = Self { names };
        ip("link set lo up");
        ip("link add wires type bridge");
        ip(&format!("addr add {AGENTS}/24 dev wires"));
        ip(&format!("addr add {ETCD}/24 dev wires"));
        ip("link set wires up");
        for (host, name) in network.names.iter().enumerate() {
            ip(&format!("netns add {name}"));
            ip(&format!("link add wire{host} type veth peer name eth0 netns {name}"));
            ip(&format!("link set wire{host} master wires up"));
            network.ip(host, "link set lo up");
            network.ip(host, &format!("addr add {}/24 dev eth0", DAEMONS[host]));
            network.ip(host, "link set eth0 up");
        }
        network
    }

    /// Runs `ip` on a host.
    fn ip(&self, host: usize, words: &str) {
        ip(&format!("-n {} {words}", self.names[host]));
    }

    /// A command that runs on a host. Its process has the number of the child.
    pub fn command(&self, host: usize, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], "setpriv", "--pdeathsig", "KILL", "--"]).arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Cuts the wire of a host in both directions.
    pub fn cut(&self, host: usize) {
        ip(&format!("link set wire{host} down"));
    }

    /// Drops what a host sends to `address`; the other direction stays open.
    pub fn mute(&self, host: usize, address: &str) {
        self.ip(host, &format!("route replace blackhole {address}/32"));
    }

    /// Drops what is sent to a host; what it sends arrives.
    pub fn deafen(&self, host: usize) {
        ip(&format!("route replace blackhole {}/32", DAEMONS[host]));
    }

    /// Mends all wires and routes.
    pub fn heal(&self) {
        for (host, address) in DAEMONS.iter().enumerate() {
            ip(&format!("link set wire{host} up"));
            try_ip(&format!("route del blackhole {address}/32"));
            for other in [AGENTS, ETCD] {
                try_ip(&format!("-n {} route del blackhole {other}/32", self.names[host]));
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            try_ip(&format!("netns del {name}"));
        }
    }
}

fn ip(words: &str) {
    assert!(try_ip(words), "ip {words}");
}

fn try_ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A process that ends with the value.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
