//! Packages of another distribution in a folder, by `apt-get` with a state of its own.
//!
//! `apt-get` checks the signature of the archive and the digest of each package, and resolves what the packages
//! need. The packages are unpacked and not configured: that takes ten to fifty seconds for a release of Slurm,
//! where `debootstrap` takes one to three minutes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Longest time for one command, seconds: the slowest one takes half a minute where the mirror answers.
const LIMIT: &str = "300";

/// Archive of the packages of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageArchive {
    /// Packages of Debian, which sign themselves by keys that Debian machines have.
    Debian,
    /// Packages of Ubuntu, with keys that are fetched.
    Ubuntu,
}

impl PackageArchive {
    /// Mirror and components.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Debian => ("http://deb.debian.org/debian", "main"),
            Self::Ubuntu => ("http://archive.ubuntu.com/ubuntu", "main universe"),
        }
    }

    /// Keys that sign the archive. Those of Ubuntu come from its package of keys, which is known by its digest.
    fn keys(self, work: &Path) -> Result<PathBuf, String> {
        const PACKAGE: &str = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb";
        const DIGEST: &str = "SHA256:36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8";
        if self == Self::Debian {
            let keys = PathBuf::from("/usr/share/keyrings/debian-archive-keyring.gpg");
            let missing = "debian-archive-keyring is not installed; apt-get install debian-archive-keyring";
            return if keys.is_file() { Ok(keys) } else { Err(missing.into()) };
        }
        let (package, folder) = (work.join("keys.deb"), work.join("keys"));
        let mut fetch = Command::new("/usr/lib/apt/apt-helper");
        fetch.arg("download-file").arg(format!("{}/{PACKAGE}", self.source().0)).arg(&package).arg(DIGEST);
        run(fetch)?;
        unpack(&package, &folder)?;
        Ok(folder.join("usr/share/keyrings/ubuntu-archive-keyring.gpg"))
    }

    /// Puts `packages` of a suite, and all that they need, into the folder `root`.
    pub fn install(self, suite: &str, packages: &[&str], root: &Path) -> Result<(), String> {
        let work = root.with_extension("apt");
        let system = |error: std::io::Error| format!("{}: {error}", work.display());
        let _ = fs::remove_dir_all(&work);
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(work.join(folder)).map_err(system)?;
        }
        let (mirror, components) = self.source();
        let keys = self.keys(&work)?;
        let source = format!("deb [signed-by={}] {mirror} {suite} {components}\n", keys.display());
        fs::write(work.join("sources.list"), source).map_err(system)?;
        fs::write(work.join("status"), "").map_err(system)?;
        run(apt(&work, &["update"]))?;
        let install = ["install", "--yes", "--download-only", "--no-install-recommends", "?essential"];
        run(apt(&work, &[&install[..], packages].concat()))?;
        for name in ["bin", "sbin", "lib", "lib64"] {
            fs::create_dir_all(root.join("usr").join(name)).map_err(system)?;
            symlink(format!("usr/{name}"), root.join(name)).map_err(system)?;
        }
        for entry in fs::read_dir(work.join("cache/archives")).map_err(system)? {
            let path = entry.map_err(system)?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                unpack(&path, root)?;
            }
        }
        link_alternatives(root).map_err(system)?;
        fs::remove_dir_all(&work).map_err(system)
    }
}

/// A command of `apt-get` that neither reads nor changes the state of this machine.
fn apt(work: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    let path = |name: &str| work.join(name).display().to_string();
    let settings = [
        ("Dir::Etc::sourcelist", path("sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".into()),
        ("Dir::Etc::preferences", "/dev/null".into()),
        ("Dir::Etc::preferencesparts", "/dev/null".into()),
        ("Dir::State", path("state")),
        ("Dir::State::status", path("status")),
        ("Dir::Cache", path("cache")),
        ("APT::Sandbox::User", "root".into()),
        ("APT::Default-Release", String::new()),
        ("Acquire::Languages", "none".into()),
        ("Acquire::Retries", "3".into()),
        ("Acquire::http::Timeout", "30".into()),
    ];
    command.arg("-qq").args(settings.iter().flat_map(|(key, value)| ["-o".to_owned(), format!("{key}={value}")]));
    command.args(arguments);
    command
}

fn unpack(package: &Path, root: &Path) -> Result<(), String> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").args([package, root]);
    run(command)
}

/// Gives programs that are called `NAME-wlm` their names: packages of Slurm leave that to
/// `update-alternatives`, which runs when packages are configured.
fn link_alternatives(root: &Path) -> std::io::Result<()> {
    for folder in ["usr/bin", "usr/sbin"].map(|folder| root.join(folder)) {
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            let Some(plain) = name.to_str().and_then(|name| name.strip_suffix("-wlm")) else { continue };
            if !folder.join(plain).exists() {
                symlink(&name, folder.join(plain))?;
            }
        }
    }
    Ok(())
}

/// Runs a command; its last complaint where it fails.
fn run(command: Command) -> Result<(), String> {
    let mut limited = Command::new("timeout");
    limited.arg(LIMIT).arg(command.get_program()).args(command.get_args()).env("DEBIAN_FRONTEND", "noninteractive");
    let output = limited.stdin(Stdio::null()).output().map_err(|error| format!("timeout: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let last = text.lines().rev().find(|line| line.starts_with("E:")).or(text.lines().last());
    let program = command.get_program().display();
    Err(format!("{program} ends with {}: {}", output.status, last.unwrap_or_default()))
}
