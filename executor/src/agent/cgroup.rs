//! Control groups of attempts (cgroup v2).
//!
//! Whatever an attempt starts is in its group, whatever environment, session or parent it gives
//! itself. The group is killed as a whole, and says whether anything of it is left: so an attempt has
//! ended only when none of its processes runs, even where its keeper was killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::job::{Launch, NodeLimits};

/// Group into which the service manager puts the agent where attempts have limits. The group above it
/// may then hold no process, so an agent that moved down without the service manager could not be
/// started again.
const AGENT: &str = "goodput-agent";

/// Controllers that limits need, where the hierarchy has them.
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// Period of a processor limit, microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// Place in the hierarchy below which an agent makes the groups of its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    root: PathBuf,
    /// Controllers that limit attempts here.
    controllers: Vec<&'static str>,
}

/// Control group of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ControlGroup(PathBuf);

impl Hierarchy {
    /// The place of this process.
    ///
    /// # Errors
    /// In words, the reason why attempts cannot have groups here.
    pub fn find() -> Result<Self, String> {
        let own = own_group().ok_or("there is no cgroup v2 hierarchy")?;
        let (root, apart) = match own.parent() {
            Some(parent) if own.ends_with(AGENT) => (parent.to_owned(), true),
            _ => (own, false),
        };
        probe(&root).map_err(|problem| format!("cgroup v2 at {}: {problem}", root.display()))?;
        // The root of the hierarchy may hold processes; it alone has no type.
        let may_limit = apart || !root.join("cgroup.type").exists();
        let controllers = if may_limit { enable(&root) } else { Vec::new() };
        Ok(Self { root, controllers })
    }

    /// Whether limits on processors and memory are kept.
    pub fn keeps_limits(&self) -> bool {
        self.controllers.len() == CONTROLLERS.len()
    }

    /// Makes the group of the part of an attempt that runs on `node`, with its limits.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make(&self, node: &str, launch: &Launch) -> io::Result<ControlGroup> {
        // Agents of one machine may know jobs of one name; a fence is random. The parts of one attempt share its fence:
        // without the node two agents of one machine would share a group, and the part that ends first kill the other.
        let mark: String = launch.fence.supervisor_key().chars().take(8).collect();
        let folder = self.root.join(format!("goodput.{}.{mark}.{node}", launch.id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let group = ControlGroup(folder);
        for (controller, file, value) in limits(launch.limits) {
            if self.controllers.contains(&controller) {
                fs::write(group.0.join(file), value)?;
            }
        }
        Ok(group)
    }
}

/// Files of the controllers, and what is written into them.
fn limits(limits: NodeLimits) -> Vec<(&'static str, &'static str, String)> {
    let quota = |cpus: u32| format!("{} {CPU_PERIOD_US}", u64::from(cpus) * CPU_PERIOD_US);
    let cpu = limits.cpus.map(|cpus| ("cpu", "cpu.max", quota(cpus)));
    let memory = limits.memory_mib.map(|mib| ("memory", "memory.max", (mib << 20).to_string()));
    // Half a job is no use: where memory runs out, all of it ends.
    let whole = limits.memory_mib.map(|_| ("memory", "memory.oom.group", "1".to_owned()));
    cpu.into_iter().chain(memory).chain(whole).collect()
}

impl ControlGroup {
    /// Starts something in the group: what `start` spawns is born there. The caller must be the only
    /// thread of its process, and is back in its own group when this returns.
    ///
    /// # Errors
    /// The group cannot be entered. A caller that cannot get out again ends with the group.
    pub fn start_in<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        let home = own_group().ok_or_else(|| io::Error::other("there is no cgroup v2 hierarchy any more"))?;
        enter(&self.0)?;
        let started = start();
        if let Err(error) = enter(&home) {
            self.kill();
            return Err(error);
        }
        Ok(started)
    }

    /// Kills all processes of the group.
    pub fn kill(&self) {
        // A group that is not there has no processes.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Whether no process of the group is left. After a restart of the machine there is no group.
    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    /// Takes an empty group away, with groups that the attempt made in it.
    pub fn remove(&self) {
        remove(&self.0);
    }
}

fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // A group that cannot be taken away is empty, and costs nothing.
    let _ = fs::remove_dir(folder);
}

fn enter(group: &Path) -> io::Result<()> {
    // 0 stands for the process that writes.
    fs::write(group.join("cgroup.procs"), "0")
}

/// Folder of the group that this process is in; `None` without cgroup v2.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    locate(&mounts, &own)
}

/// Folder of a group by the texts of `mountinfo` and `cgroup` in /proc/PID (proc(5), cgroups(7)).
fn locate(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounted = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        back.starts_with("cgroup2 ").then_some(())?;
        let mut fields = front.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        // In a container only a part of the hierarchy may be mounted.
        let inside = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(mount).join(inside))
    };
    mounts.lines().find_map(mounted)
}

/// Checks by a trial that groups can be made here, entered and killed.
fn probe(root: &Path) -> Result<(), String> {
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let trial = root.join(format!("goodput-probe-{}-{number}", std::process::id()));
    fs::create_dir(&trial).map_err(|error| format!("no group can be made: {error}"))?;
    let can_kill = trial.join("cgroup.kill").exists();
    let mut shell = Command::new("/bin/sh");
    let shell = shell.args(["-c", r#"echo 0 > "$0/cgroup.procs""#]).arg(&trial);
    let entered = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let _ = fs::remove_dir(&trial);
    match entered {
        _ if !can_kill => Err("the kernel has no cgroup.kill; it is there since Linux 5.14".to_owned()),
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("no process can be moved into a group; under systemd the unit needs Delegate=yes".to_owned()),
        Err(error) => Err(format!("/bin/sh: {error}")),
    }
}

/// Turns on the controllers that are there; returns those that are on.
fn enable(root: &Path) -> Vec<&'static str> {
    let has = |file: &str, name: &str| {
        let words = fs::read_to_string(root.join(file)).unwrap_or_default();
        words.split_whitespace().any(|word| word == name)
    };
    for name in CONTROLLERS.iter().filter(|name| has("cgroup.controllers", name)) {
        // Whether the kernel took it is read below.
        let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{name}"));
    }
    CONTROLLERS.into_iter().filter(|name| has("cgroup.subtree_control", name)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::job::{Fence, GangPlan, Program};
    use goodput_configs::live::name::JobName;

    #[test]
    fn the_own_group_is_found_in_every_kind_of_mount() {
        let unified = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let container = "41 31 0:38 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let found = |mounts, own| locate(mounts, own).map(|path| path.to_string_lossy().into_owned());
        let service = "9:memory:/x\n0::/system.slice/a.service\n";
        assert_eq!(found(unified, service).as_deref(), Some("/sys/fs/cgroup/system.slice/a.service"));
        assert_eq!(found(hybrid, "0::/\n").as_deref(), Some("/sys/fs/cgroup/unified/"));
        assert_eq!(found(container, "0::/docker/abc/a\n").as_deref(), Some("/sys/fs/cgroup/a"));
        assert_eq!(found(container, "0::/elsewhere\n"), None, "not in the part that is mounted");
        assert_eq!(found("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", service), None);
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let both = limits(NodeLimits { cpus: Some(8), memory_mib: Some(64_000) });
        let files: Vec<_> = both.iter().map(|(_, file, value)| (*file, value.as_str())).collect();
        assert_eq!(files, [("cpu.max", "800000 100000"), ("memory.max", "67108864000"), ("memory.oom.group", "1")]);
        assert_eq!(limits(NodeLimits::default()), []);
    }

    #[test]
    fn a_group_has_the_limits_of_the_controllers_that_there_are() {
        let launch = |limits| {
            let program = Program::new(JobName::new("a").unwrap(), vec!["true".into()]);
            Launch {
                program,
                attempt: 0,
                fence: Fence::from_text("f"),
                grants: Vec::new(),
                gang: GangPlan::alone(1, 1),
                limits,
                member: None,
            }
        };
        let asked = launch(NodeLimits { cpus: Some(2), memory_mib: Some(100) });
        let written = |controllers: Vec<&'static str>| {
            let root = tempfile::tempdir().unwrap();
            let hierarchy = Hierarchy { root: root.path().to_owned(), controllers };
            let group = hierarchy.make("n1", &asked).unwrap();
            let file = |name: &str| fs::read_to_string(group.0.join(name)).unwrap_or_default();
            (hierarchy.keeps_limits(), file("cpu.max"), file("memory.max"))
        };
        assert_eq!(written(CONTROLLERS.to_vec()), (true, "200000 100000".into(), "104857600".into()));
        assert_eq!(written(vec!["memory"]), (false, String::new(), "104857600".into()));
        assert_eq!(written(Vec::new()), (false, String::new(), String::new()));
    }
}
