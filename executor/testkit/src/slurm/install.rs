//! Releases of Slurm to start: the one that is installed, and those of other releases of Debian.
//!
//! A release of Debian is put into a folder once, by `debootstrap`, which takes one to three minutes.
//! Its programs run on this machine's own files, with its `/usr` in place of the machine's: each in a
//! mount namespace of its own. So paths of jobs, checkpoints and sockets are equal in both worlds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{PACKAGES, PROGRAMS, PrivateError, find, missing};

/// Folder of the releases where `GOODPUT_TESTKIT_CACHE` names no other one.
const CACHE: &str = "/var/cache/goodput-testkit";
/// Mirror of Debian.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Longest time for one `debootstrap`, seconds: it takes one to three minutes where the mirror answers.
const LIMIT: &str = "300";

/// A Slurm to start.
#[derive(Clone, Debug)]
pub struct SlurmInstall {
    /// Folder with the files of another release of Debian; `None`: this machine's own programs.
    root: Option<PathBuf>,
}

impl SlurmInstall {
    /// The release that is installed.
    ///
    /// # Errors
    /// [`PrivateError::Missing`] where none is.
    pub fn installed() -> Result<Self, PrivateError> {
        match missing() {
            Some(program) => Err(PrivateError::Missing { program }),
            None => Ok(Self { root: None }),
        }
    }

    /// The release in Debian's `suite`, such as `trixie`. The first call for a suite downloads it.
    ///
    /// # Errors
    /// [`PrivateError::NoRelease`] where the suite cannot be had on this machine.
    pub fn debian(suite: &str) -> Result<Self, PrivateError> {
        let failed = |problem: String| PrivateError::NoRelease { suite: suite.into(), problem };
        let cache = std::env::var_os("GOODPUT_TESTKIT_CACHE").map_or_else(|| PathBuf::from(CACHE), PathBuf::from);
        if !rustix::process::getuid().is_root() {
            return Err(failed("only root may mount; run the tests as root".into()));
        }
        for program in ["debootstrap", "unshare", "mount", "setpriv"] {
            let at_work = program == "debootstrap" && cache.join(suite).is_dir();
            if find(program).is_none() && !at_work {
                return Err(failed(format!(
                    "{program} is not installed; apt-get install debootstrap util-linux mount"
                )));
            }
        }
        let system = |error: std::io::Error| failed(format!("{}: {error}", cache.display()));
        fs::create_dir_all(&cache).map_err(system)?;
        let lock = fs::File::create(cache.join(format!("{suite}.lock"))).map_err(system)?;
        // Tests of several programs wait for the first one.
        lock.lock().map_err(system)?;
        let root = cache.join(suite);
        if !root.is_dir() {
            download(suite, &root).map_err(failed)?;
        }
        Ok(Self { root: Some(root) })
    }

    /// Folder of commands for clients of a cluster in `directory`; `None` where they are on the path.
    pub(super) fn bin(&self, directory: &Path) -> Option<PathBuf> {
        self.root.is_some().then(|| directory.join("bin"))
    }

    /// Path of `program` for a cluster in `directory`.
    pub(super) fn program(&self, program: &str, directory: &Path) -> PathBuf {
        match self.bin(directory).filter(|_| program != "setpriv") {
            Some(bin) => bin.join(program),
            None => find(program).unwrap_or_else(|| program.into()),
        }
    }

    /// Writes the commands of the release into the folder of a cluster.
    pub(super) fn install(&self, directory: &Path) -> std::io::Result<()> {
        let (Some(root), Some(bin)) = (&self.root, self.bin(directory)) else { return Ok(()) };
        fs::create_dir_all(&bin)?;
        let clients = ["squeue", "sinfo", "scancel", "srun"];
        for program in PROGRAMS.into_iter().chain(clients).filter(|program| *program != "setpriv") {
            let places = ["usr/sbin", "usr/bin"].map(|place| format!("{place}/{program}"));
            let Some(place) = places.iter().find(|place| root.join(place).is_file()) else { continue };
            let mount = format!("mount --bind '{}/usr' /usr && exec \"$0\" \"$@\"", root.display());
            let script = format!("#!/bin/sh\nexec unshare --mount sh -c {} /{place} \"$@\"\n", quoted(&mount));
            let path = bin.join(program);
            fs::write(&path, script)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Line of `cgroup.conf`.
    pub(super) fn cgroup(&self) -> &'static str {
        // Later releases look for cgroups themselves and end where there are none that they know.
        if self.root.is_some() { "CgroupPlugin=disabled\n" } else { "CgroupPlugin=cgroup/v1\n" }
    }
}

/// Puts the files of `suite` into `root`: whole, or not at all.
fn download(suite: &str, root: &Path) -> Result<(), String> {
    let new = root.with_extension("new");
    let _ = fs::remove_dir_all(&new);
    let include = format!("--include={},python3", PACKAGES.join(","));
    let mut command = Command::new("timeout");
    command.args([LIMIT, "debootstrap", "--variant=minbase", &include, suite]).arg(&new).arg(MIRROR);
    command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("debootstrap: {error}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| line.starts_with("E:")).or(text.lines().last());
        return Err(format!("debootstrap {suite} ends with {}: {}", output.status, last.unwrap_or_default()));
    }
    fs::rename(&new, root).map_err(|error| format!("{}: {error}", root.display()))
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
