//! An etcd of one's own: one member, on free ports of this machine or in a network namespace.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use goodput_configs::live::leader::EtcdConfig;
use goodput_configs::live::tls::TlsFiles;

use crate::slurm::{find, free_ports};

/// Package to install where the program is missing.
pub const PACKAGE: &str = "etcd-server";

/// Whether etcd is not installed.
pub fn missing() -> bool {
    find("etcd").is_none()
}

/// A running member; dropping it ends it.
#[derive(Debug)]
pub struct PrivateEtcd {
    /// Command and arguments in front of etcd's own: a way into a network namespace.
    before: Vec<String>,
    directory: PathBuf,
    url: String,
    peer: String,
    tls: Option<TlsFiles>,
    child: Option<Child>,
}

impl PrivateEtcd {
    /// A member on free ports of this machine, with its data below `directory`.
    ///
    /// # Errors
    /// Where no port is free, or etcd does not start.
    pub fn start(directory: &Path, tls: Option<TlsFiles>) -> std::io::Result<Self> {
        let ports = free_ports(2)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{}", ports[0]);
        let peer = format!("http://127.0.0.1:{}", ports[1]);
        Self { before: Vec::new(), directory: directory.into(), url, peer, tls, child: None }.up()
    }

    /// A member that serves clients at `address` in the network that the command `before` enters.
    ///
    /// # Errors
    /// Where etcd does not start.
    pub fn start_in(directory: &Path, before: &[&str], address: &str) -> std::io::Result<Self> {
        let before = before.iter().map(|word| (*word).to_owned()).collect();
        let (url, peer) = (format!("http://{address}:2379"), format!("http://{address}:2380"));
        Self { before, directory: directory.into(), url, peer, tls: None, child: None }.up()
    }

    fn up(mut self) -> std::io::Result<Self> {
        self.run()?;
        Ok(self)
    }

    /// Starts the member, again after [`kill`](Self::kill).
    ///
    /// # Errors
    /// Where the program cannot be started.
    pub fn run(&mut self) -> std::io::Result<()> {
        let etcd = find("etcd").ok_or_else(|| std::io::Error::other("etcd is not installed"))?;
        let mut words = self.before.clone();
        words.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
        words.push(etcd.display().to_string());
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).args(["--name", "one", "--logger", "zap", "--log-level", "error"]);
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.arg("--data-dir").arg(self.directory.join("etcd"));
        command.args(["--listen-client-urls", &self.url, "--advertise-client-urls", &self.url]);
        command.args(["--listen-peer-urls", &self.peer, "--initial-advertise-peer-urls", &self.peer]);
        command.args(["--initial-cluster", &format!("one={}", self.peer)]);
        if let Some(TlsFiles { ca, cert, key }) = &self.tls {
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
            command.arg("--cert-file").arg(cert).arg("--key-file").arg(key);
        }
        let log = std::fs::File::create(self.directory.join("etcd.log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Ends the member as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Number of the process; `None` while it is killed.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The member for a deployment with a daemon that shows `tls`.
    pub fn config(&self, tls: Option<TlsFiles>) -> EtcdConfig {
        EtcdConfig { endpoints: vec![self.url.clone()], prefix: "test/goodput".into(), tls, patience_ms: 400 }
    }

    /// Waits until the member takes connections.
    pub fn wait(&self, longest: Duration) -> bool {
        let address = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let began = Instant::now();
        while began.elapsed() < longest {
            if std::net::TcpStream::connect(address).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for PrivateEtcd {
    fn drop(&mut self) {
        self.kill();
    }
}
