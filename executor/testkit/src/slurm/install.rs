//! Releases of Slurm to start: the one that is installed, and those of other distributions.
//!
//! A release is put into a folder once, from the archive of its distribution ([`PackageArchive`]). Its programs
//! run on this machine's own files, with its `/usr` in place of the machine's: each in a
//! mount namespace of its own. So paths of jobs, checkpoints and sockets are equal in both worlds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::accounting::PROGRAMS as ACCOUNTING;
use super::archive::PackageArchive;
use super::{PACKAGES, PROGRAMS, PrivateError, find, missing};

/// Folder of the releases where `GOODPUT_TESTKIT_CACHE` names no other one.
const CACHE: &str = "/var/cache/goodput-testkit";

/// Release of Slurm in the archive of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlurmRelease {
    /// Slurm 23.11, of Ubuntu 24.04 (noble).
    Noble,
    /// Slurm 24.11, of Debian 13 (trixie).
    Trixie,
    /// Slurm 25.11, of Ubuntu 26.04 (resolute), with `slurmdbd` and MariaDB.
    Resolute,
    /// Newest Slurm of Debian (sid).
    Sid,
}

impl SlurmRelease {
    /// Releases that the tests start, oldest first.
    pub const ALL: [Self; 4] = [Self::Noble, Self::Trixie, Self::Resolute, Self::Sid];

    /// The release that a cluster with accounts can be made of.
    pub const ACCOUNTED: Self = Self::Resolute;

    /// Name of the suite in its archive.
    pub fn suite(self) -> &'static str {
        match self {
            Self::Noble => "noble",
            Self::Trixie => "trixie",
            Self::Resolute => "resolute",
            Self::Sid => "sid",
        }
    }

    fn archive(self) -> PackageArchive {
        match self {
            Self::Noble | Self::Resolute => PackageArchive::Ubuntu,
            Self::Trixie | Self::Sid => PackageArchive::Debian,
        }
    }

    /// Plugin for control groups: by themselves later releases end where there is no group that they know.
    fn cgroup(self) -> &'static str {
        if self == Self::Noble { "cgroup/v1" } else { "disabled" }
    }

    fn packages(self) -> Vec<&'static str> {
        // `slurmdbd` of trixie does not start with MariaDB 11.8.9, which is there since a security update.
        let accounting = if self == Self::ACCOUNTED { &["slurmdbd", "mariadb-server"][..] } else { &[] };
        [&PACKAGES[..], &["python3"], accounting].concat()
    }
}

/// A Slurm to start.
#[derive(Clone, Debug)]
pub struct SlurmInstall {
    /// Folder with the files of another distribution; `None`: this machine's own programs.
    root: Option<PathBuf>,
    /// Plugin for control groups.
    cgroup: &'static str,
}

impl SlurmInstall {
    /// The release that is installed.
    ///
    /// # Errors
    /// [`PrivateError::Missing`] where none is.
    pub fn installed() -> Result<Self, PrivateError> {
        match missing() {
            Some(program) => Err(PrivateError::Missing { program }),
            None => Ok(Self { root: None, cgroup: "cgroup/v1" }),
        }
    }

    /// A release of another distribution. The first call for a release downloads it.
    ///
    /// # Errors
    /// [`PrivateError::NoRelease`] where the release cannot be had on this machine.
    pub fn of(release: SlurmRelease) -> Result<Self, PrivateError> {
        let suite = release.suite();
        let failed = |problem: String| PrivateError::NoRelease { suite, problem };
        let cache = std::env::var_os("GOODPUT_TESTKIT_CACHE").map_or_else(|| PathBuf::from(CACHE), PathBuf::from);
        if !rustix::process::getuid().is_root() {
            return Err(failed("only root may mount; run the tests as root".into()));
        }
        for program in ["apt-get", "dpkg-deb", "timeout", "unshare", "mount", "setpriv"] {
            if find(program).is_none() {
                return Err(failed(format!("{program} is not installed; apt-get install apt util-linux mount")));
            }
        }
        let system = |error: std::io::Error| failed(format!("{}: {error}", cache.display()));
        fs::create_dir_all(&cache).map_err(system)?;
        let root = cache.join(format!("slurm-{suite}"));
        let lock = fs::File::create(root.with_extension("lock")).map_err(system)?;
        // Tests of several programs wait for the first one.
        lock.lock().map_err(system)?;
        if !root.is_dir() {
            // The folder appears whole, or not at all.
            let new = root.with_extension("new");
            let _ = fs::remove_dir_all(&new);
            release.archive().install(suite, &release.packages(), &new).map_err(failed)?;
            fs::rename(&new, &root).map_err(system)?;
        }
        Ok(Self { root: Some(root), cgroup: release.cgroup() })
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
        let others = ["squeue", "sinfo", "scancel", "srun"].into_iter().chain(ACCOUNTING);
        for program in PROGRAMS.into_iter().chain(others).filter(|program| *program != "setpriv") {
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
    pub(super) fn cgroup(&self) -> String {
        format!("CgroupPlugin={}\n", self.cgroup)
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
