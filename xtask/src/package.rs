//! The Debian package: programs, units, settings, alert rules and runbooks, put together by `dpkg-deb`.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::root;

/// Files of the package beside its programs: from the repository, and where they are installed.
const FILES: [(&str, &str); 14] = [
    ("packaging/systemd/goodputd.service", "usr/lib/systemd/system/goodputd.service"),
    ("packaging/systemd/goodput-node.service", "usr/lib/systemd/system/goodput-node.service"),
    ("packaging/systemd/sysusers.conf", "usr/lib/sysusers.d/goodput.conf"),
    ("packaging/systemd/tmpfiles.conf", "usr/lib/tmpfiles.d/goodput.conf"),
    ("configs/live/slurm.toml", "etc/goodput/deployment.toml"),
    ("configs/live/node.toml", "etc/goodput/node.toml"),
    ("configs/live/slurm.toml", "usr/share/doc/goodput/examples/slurm.toml"),
    ("configs/live/agents.toml", "usr/share/doc/goodput/examples/agents.toml"),
    ("configs/live/node.toml", "usr/share/doc/goodput/examples/node.toml"),
    ("executor/prometheus/alerts.yml", "usr/share/goodput/prometheus/alerts.yml"),
    ("executor/grafana/live.json", "usr/share/goodput/grafana/live.json"),
    ("CHANGELOG.md", "usr/share/doc/goodput/CHANGELOG.md"),
    ("LICENSE-MIT", "usr/share/doc/goodput/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/goodput/copyright"),
];

/// Settings that an upgrade leaves as the administrator changed them.
const SETTINGS: &str = "/etc/goodput/deployment.toml\n/etc/goodput/node.toml\n";

/// Scripts of the package.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds the package in `folder` from `programs` and `more` files, each with its place, and gives its path.
///
/// # Errors
/// A file cannot be read or written, or `dpkg-deb` is missing or fails.
pub fn build(programs: &[PathBuf], more: &[(PathBuf, String)], folder: &Path) -> io::Result<PathBuf> {
    let architecture = said("dpkg", &["--print-architecture"])?;
    let name = format!("goodput_{}_{architecture}", env!("CARGO_PKG_VERSION"));
    let stage = folder.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    for program in programs {
        place(program, &stage.join("usr/bin").join(program.file_name().unwrap_or_default()), 0o755)?;
    }
    for (from, to) in FILES {
        place(&root().join(from), &stage.join(to), 0o644)?;
    }
    for (from, to) in more {
        place(from, &stage.join(to), 0o644)?;
    }
    for page in fs::read_dir(root().join("docs/src/runbooks"))? {
        let page = page?;
        place(&page.path(), &stage.join("usr/share/doc/goodput/runbooks").join(page.file_name()), 0o644)?;
    }
    for script in SCRIPTS {
        place(&root().join("packaging/debian").join(script), &stage.join("DEBIAN").join(script), 0o755)?;
    }
    fs::write(stage.join("DEBIAN/conffiles"), SETTINGS)?;
    fs::write(stage.join("DEBIAN/control"), control(&architecture)?)?;
    let package = folder.join(format!("{name}.deb"));
    let (stage, path) = (stage.to_string_lossy(), package.to_string_lossy());
    // The level of dpkg-deb itself, 9, takes three times as long for one percent.
    said("dpkg-deb", &["--root-owner-group", "-Zgzip", "-z6", "--build", &stage, &path])?;
    Ok(package)
}

/// Control file of the package. The C library is at least the one of this machine.
fn control(architecture: &str) -> io::Result<String> {
    let glibc = said("getconf", &["GNU_LIBC_VERSION"])?;
    let glibc = glibc.rsplit(' ').next().unwrap_or_default();
    Ok(format!(
        "Package: goodput\nVersion: {}\nArchitecture: {architecture}\nMaintainer: goodput developers <goodput@example.invalid>\n\
         Section: admin\nPriority: optional\nDepends: libc6 (>= {glibc}), libgcc-s1\nRecommends: systemd\n\
         Suggests: slurm-client, prometheus\nDescription: scheduling policies on clusters for deep learning\n \
         The daemon goodputd drives Slurm, node agents or another engine by a policy: a published heuristic or a\n \
         trained one. The package has units for the daemon and for the agent of a node, alert rules and runbooks.\n",
        env!("CARGO_PKG_VERSION"),
    ))
}

/// Copies a file, makes its folders, and sets its mode.
pub(crate) fn place(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map_err(named)?;
    fs::set_permissions(to, Permissions::from_mode(mode))
}

/// First line of the output of a command.
pub(crate) fn said(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}
