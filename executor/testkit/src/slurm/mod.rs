//! A Slurm cluster of one's own: on free ports of this machine, as the user at hand, with
//! accelerators that are links to `/dev/null`.
//!
//! Tests, drills and the worked example run on it. The daemons are children in the foreground; each
//! is ended by its id, also when the program that started them is killed (`setpriv --pdeathsig`).

mod accounting;
mod archive;
mod install;
mod shape;

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use goodput_configs::live::engine::SlurmConfig;
use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use accounting::Accounting;
pub use install::{SlurmInstall, SlurmRelease};
use shape::ClusterShape;

/// Programs that a cluster needs, and the Debian packages that have them.
pub const PROGRAMS: [&str; 6] = ["slurmctld", "slurmd", "munged", "sbatch", "setpriv", "scontrol"];
/// Packages to install where the programs are missing.
pub const PACKAGES: [&str; 5] = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"];
/// Folders of daemons on Debian, whatever the path says.
const SBIN: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Reason why there is no cluster.
#[derive(Debug, Error)]
pub enum PrivateError {
    /// Slurm is not installed.
    #[error(
        "{program} is not installed; `apt-get install --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge`"
    )]
    Missing {
        /// Program that is missing.
        program: &'static str,
    },
    /// A release of another distribution cannot be had.
    #[error("no Slurm of {suite}: {problem}")]
    NoRelease {
        /// Suite in the archive of the distribution.
        suite: &'static str,
        /// Reason, with a remedy where there is one.
        problem: String,
    },
    /// Something of the system refused.
    #[error("private Slurm in {directory}: cannot {action}: {source}")]
    System {
        /// The cluster's directory.
        directory: PathBuf,
        /// Action that failed.
        action: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The nodes did not come up.
    #[error("private Slurm in {directory}: nodes are {state:?} after {secs} s; see its log directory")]
    NotUp {
        /// The cluster's directory.
        directory: PathBuf,
        /// States of the nodes, by `sinfo`.
        state: String,
        /// Time that was waited, seconds.
        secs: u64,
    },
}

/// A running cluster; dropping it ends it.
#[derive(Debug)]
pub struct PrivateCluster {
    directory: PathBuf,
    release: SlurmInstall,
    nodes: u32,
    munged: Option<Child>,
    /// MariaDB and slurmdbd, where the cluster has accounts.
    accounting: Vec<Child>,
    controller: Option<Child>,
    slurmds: Vec<Option<Child>>,
}

/// Path of `program`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(SBIN.map(PathBuf::from));
    places.map(|place| place.join(program)).find(|file| file.is_file())
}

/// The first of [`PROGRAMS`] that is missing.
pub fn missing() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| find(program).is_none())
}

impl PrivateCluster {
    /// Starts a cluster of the installed release; see [`Self::start_release`].
    ///
    /// # Errors
    /// [`PrivateError`] where Slurm is not installed or does not come up.
    pub fn start(
        directory: &Path,
        nodes: u32,
        gpus: u32,
        accelerator: &str,
        kill_wait: u32,
    ) -> Result<Self, PrivateError> {
        Self::start_release(&SlurmInstall::installed()?, directory, nodes, gpus, accelerator, kill_wait)
    }

    /// Starts `nodes` nodes called `n0`, `n1`, ... with `gpus` accelerators of type `accelerator`
    /// each, all files in `directory`. `kill_wait`: seconds from SIGTERM to SIGKILL.
    ///
    /// # Errors
    /// [`PrivateError`] where it does not come up.
    pub fn start_release(
        release: &SlurmInstall,
        directory: &Path,
        nodes: u32,
        gpus: u32,
        accelerator: &str,
        kill_wait: u32,
    ) -> Result<Self, PrivateError> {
        Self::start_shape(release, directory, &ClusterShape { nodes, gpus, accelerator, kill_wait, accounting: None })
    }

    /// Starts four nodes with eight accelerators each and with accounts: a job needs an account of its user, and a
    /// quality of service that the account has. `sacctmgr` makes them.
    ///
    /// # Errors
    /// [`PrivateError`] where it does not come up.
    pub fn start_with_accounts(release: &SlurmInstall, directory: &Path) -> Result<Self, PrivateError> {
        let accounting = Accounting::new().map_err(|source| PrivateError::System {
            directory: directory.into(),
            action: "find free ports".into(),
            source,
        })?;
        let (accelerator, accounting) = ("a100", Some(accounting));
        Self::start_shape(
            release,
            directory,
            &ClusterShape { nodes: 4, gpus: 8, accelerator, kill_wait: 5, accounting },
        )
    }

    fn start_shape(release: &SlurmInstall, directory: &Path, shape: &ClusterShape<'_>) -> Result<Self, PrivateError> {
        let ClusterShape { nodes, gpus, accelerator, .. } = *shape;
        let system = |action: &str| {
            let action = action.to_string();
            move |source| PrivateError::System { directory: directory.into(), action, source }
        };
        for part in ["conf", "run", "state", "log", "dev"] {
            fs::create_dir_all(directory.join(part)).map_err(system("make its directories"))?;
        }
        for gpu in 0..gpus {
            let link = directory.join(format!("dev/nvidia{gpu}"));
            if !link.exists() {
                symlink("/dev/null", link).map_err(system("link its devices"))?;
            }
        }
        let directory = directory.canonicalize().map_err(system("find its directory"))?;
        let system = |action: &str| {
            let (action, directory) = (action.to_string(), directory.clone());
            move |source| PrivateError::System { directory, action, source }
        };
        let ports = free_ports(nodes as usize + 1).map_err(system("find free ports"))?;
        let text = shape.configuration(&directory, &ports);
        fs::write(directory.join("conf/slurm.conf"), text).map_err(system("write slurm.conf"))?;
        let last = gpus.saturating_sub(1);
        let gres = format!(
            "NodeName=n[0-{}] Name=gpu Type={accelerator} File={}/dev/nvidia[0-{last}]\n",
            nodes - 1,
            directory.display()
        );
        fs::write(directory.join("conf/gres.conf"), gres).map_err(system("write gres.conf"))?;
        fs::write(directory.join("conf/cgroup.conf"), release.cgroup()).map_err(system("write cgroup.conf"))?;
        release.install(&directory).map_err(system("write its commands"))?;
        let key = directory.join("run/munge.key");
        if !key.exists() {
            let mut bytes = [0; 1024];
            fs::File::open("/dev/urandom")
                .and_then(|mut file| file.read_exact(&mut bytes))
                .map_err(system("draw a key"))?;
            fs::write(&key, bytes).map_err(system("write the key"))?;
            fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).map_err(system("protect the key"))?;
        }
        let mut cluster = Self {
            directory: directory.clone(),
            release: release.clone(),
            nodes,
            munged: None,
            accounting: Vec::new(),
            controller: None,
            slurmds: Vec::new(),
        };
        let run = |file: &str| directory.join("run").join(file).display().to_string();
        let munged = [
            "--foreground".into(),
            "--force".into(),
            format!("--socket={}", run("munge.sock")),
            format!("--key-file={}", run("munge.key")),
            format!("--pid-file={}", run("munged.pid")),
            format!("--seed-file={}", run("munge.seed")),
            format!("--log-file={}", directory.join("log/munged.log").display()),
        ];
        cluster.munged = Some(cluster.child("munged", &munged).map_err(system("start munged"))?);
        let socket = directory.join("run/munge.sock");
        let began = Instant::now();
        while !socket.exists() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(accounting) = &shape.accounting {
            cluster.accounting = accounting.start(&cluster).map_err(system("start its accounts"))?.into();
            // Without its cluster in the database the controller ends at once.
            cluster.ask("sacctmgr", &["--immediate", "add", "cluster", "private"]);
        }
        cluster.start_controller()?;
        for node in 0..nodes {
            cluster.slurmds.push(None);
            cluster.start_node(node)?;
        }
        cluster.wait_until_up(Duration::from_secs(60))?;
        Ok(cluster)
    }

    /// Settings by which an engine reaches the cluster.
    pub fn settings(&self) -> SlurmConfig {
        let (conf, bin) = (Some(self.directory.join("conf/slurm.conf")), self.release.bin(&self.directory));
        SlurmConfig { conf, bin, ..SlurmConfig::default() }
    }

    /// A command of Slurm for this cluster.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.release.program(program, &self.directory));
        command.env("SLURM_CONF", self.directory.join("conf/slurm.conf"));
        let path = std::env::var("PATH").unwrap_or_default();
        // Times in the logs are UTC wherever the cluster runs.
        command.env("PATH", format!("{path}:/usr/sbin")).env("TZ", "UTC");
        command
    }

    /// Output of a command; empty where the command fails.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).stderr(Stdio::null()).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    fn child(&self, program: &str, arguments: &[String]) -> std::io::Result<Child> {
        let mut command = self.command("setpriv");
        let program = self.release.program(program, &self.directory);
        command.args(["--pdeathsig", "TERM", "--"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Starts the controller, again where it was killed.
    ///
    /// # Errors
    /// [`PrivateError::System`] where it cannot be started.
    pub fn start_controller(&mut self) -> Result<(), PrivateError> {
        let started = self.child("slurmctld", &["-D".into()]);
        let system = |source| PrivateError::System {
            directory: self.directory.clone(),
            action: "start slurmctld".into(),
            source,
        };
        self.controller = Some(started.map_err(system)?);
        Ok(())
    }

    /// Kills the controller without warning.
    pub fn kill_controller(&mut self) {
        if let Some(mut child) = self.controller.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts the daemon of a node, again where it was killed.
    ///
    /// # Errors
    /// [`PrivateError::System`] where it cannot be started.
    pub fn start_node(&mut self, node: u32) -> Result<(), PrivateError> {
        let spool = self.directory.join(format!("spool/n{node}"));
        let system = |source| PrivateError::System {
            directory: self.directory.clone(),
            action: format!("start slurmd of n{node}"),
            source,
        };
        fs::create_dir_all(spool).map_err(system)?;
        let started = self.child("slurmd", &["-D".into(), "-N".into(), format!("n{node}")]);
        self.slurmds[node as usize] = Some(started.map_err(system)?);
        Ok(())
    }

    /// Kills the daemon of a node without warning; its jobs run on.
    pub fn kill_node(&mut self, node: u32) {
        if let Some(mut child) = self.slurmds.get_mut(node as usize).and_then(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until every node is there and idle or in use.
    ///
    /// # Errors
    /// [`PrivateError::NotUp`] where that takes longer than `limit`.
    pub fn wait_until_up(&self, limit: Duration) -> Result<(), PrivateError> {
        let began = Instant::now();
        loop {
            let state = self.ask("sinfo", &["-h", "-N", "-o", "%T"]);
            let states: Vec<&str> = state.split_whitespace().collect();
            if states.len() >= self.nodes as usize
                && states.iter().all(|state| ["idle", "mixed", "allocated"].contains(state))
            {
                return Ok(());
            }
            if began.elapsed() > limit {
                return Err(PrivateError::NotUp { directory: self.directory.clone(), state, secs: limit.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Cancels all jobs, and waits a few seconds for them to go.
    pub fn cancel_all(&self) {
        self.ask("scancel", &["--user", &user()]);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) && !self.ask("squeue", &["-h", "-t", "R,CG"]).trim().is_empty() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Resident memory of all of its daemons, KiB.
    pub fn resident_kib(&self) -> u64 {
        let children =
            self.munged.iter().chain(&self.accounting).chain(&self.controller).chain(self.slurmds.iter().flatten());
        let pages = children.filter_map(|child| {
            let text = fs::read_to_string(format!("/proc/{}/statm", child.id())).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        pages.map(|pages| 4 * pages).sum()
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        if self.controller.is_some() {
            self.cancel_all();
        }
        // The database goes after what writes to it, and munge last.
        let daemons = self.slurmds.drain(..).chain([self.controller.take()]).flatten();
        let children: Vec<Child> = daemons.chain(self.accounting.drain(..).rev()).chain(self.munged.take()).collect();
        for mut child in children {
            let _ = Pid::from_raw(child.id() as i32).map(|pid| kill_process(pid, Signal::TERM));
            let began = Instant::now();
            while matches!(child.try_wait(), Ok(None)) {
                if began.elapsed() > Duration::from_secs(3) {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Free ports of this machine, below those that the kernel gives to connections: one of these may be taken
/// before a daemon listens there. This process gives no port twice, and others begin elsewhere.
pub(crate) fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    const FIRST: u32 = 12_000;
    const SPAN: u32 = 20_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(137) % SPAN;
    let mut ports = Vec::with_capacity(count);
    for _ in 0..SPAN {
        if ports.len() == count {
            return Ok(ports);
        }
        let port = (FIRST + (begin + GIVEN.fetch_add(1, Ordering::Relaxed)) % SPAN) as u16;
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            ports.push(port);
        }
    }
    Err(std::io::ErrorKind::AddrInUse.into())
}

/// Name of the user at hand.
fn user() -> String {
    let told = Command::new("id").arg("-un").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    told.map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).unwrap_or_else(|| "root".into())
}
