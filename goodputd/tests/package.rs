//! The Debian package: built, installed into a folder, its programs run there, its units judged by systemd,
//! and removed.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xtask::package;

const GOODPUTD: &str = env!("CARGO_BIN_EXE_goodputd");

fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<(Output, String)> {
    let output = Command::new(program).args(arguments).env("SYSTEMD_LOG_LEVEL", "warning").output().ok()?;
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    Some((output, String::from_utf8_lossy(&said).into_owned()))
}

/// A root without a system, as `dpkg --root` wants it.
fn empty_root(root: &Path) {
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "run"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["var/lib/dpkg/status", "var/lib/dpkg/available", "etc/passwd", "etc/group"] {
        fs::write(root.join(file), "").unwrap();
    }
}

#[test]
fn the_package_installs_runs_and_goes_away() {
    if run("dpkg-deb", &["--version"]).is_none() {
        eprintln!("THE PACKAGE IS NOT TESTED: there is no dpkg-deb");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut programs = vec![PathBuf::from(GOODPUTD)];
    let node = Path::new(GOODPUTD).with_file_name("goodput-node");
    match node.is_file() {
        true => programs.push(node),
        false => eprintln!("the package of this test has no goodput-node: `cargo xtask package` builds it"),
    }
    let package = package::build(&programs, &[], folder.path()).unwrap();
    let root = folder.path().join("root");
    empty_root(&root);
    let at = format!("--root={}", root.display());
    let forced = ["--force-not-root", "--force-script-chrootless", "--force-depends", "--force-bad-path"];
    let dpkg = |verb: &str, what: &str| {
        let arguments = [&[at.as_str(), "--no-triggers"][..], &forced, &[verb, what]].concat();
        run("dpkg", &arguments).unwrap()
    };
    let (installed, said) = dpkg("--install", package.to_str().unwrap());
    assert!(installed.status.success(), "{said}");

    let program = root.join("usr/bin/goodputd");
    let (output, version) = run(&program, &["--version"]).unwrap();
    assert!(output.status.success() && version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    for settings in ["etc/goodput/deployment.toml", "etc/goodput/node.toml"] {
        let path = root.join(settings);
        let (output, said) = run(&program, &["config", "check", path.to_str().unwrap()]).unwrap();
        assert!(output.status.success(), "{settings}: {said}");
    }
    for file in ["usr/share/goodput/prometheus/alerts.yml", "usr/share/doc/goodput/runbooks/overview.md"] {
        assert!(root.join(file).is_file(), "{file}");
    }
    if run("systemd-sysusers", &["--version"]).is_some() {
        let users = fs::read_to_string(root.join("etc/passwd")).unwrap();
        assert!(users.contains("goodput:x:") && users.contains("/usr/sbin/nologin"), "{users}");
    }
    units_are_sound(&root);

    // Settings that were changed survive another installation and the removal.
    let settings = root.join("etc/goodput/deployment.toml");
    let changed = fs::read_to_string(&settings).unwrap() + "\n# changed by hand\n";
    fs::write(&settings, &changed).unwrap();
    let (again, said) = dpkg("--install", package.to_str().unwrap());
    assert!(again.status.success(), "{said}");
    let (removed, said) = dpkg("--remove", "goodput");
    assert!(removed.status.success(), "{said}");
    assert!(!program.exists() && fs::read_to_string(&settings).unwrap() == changed, "settings stay");
}

/// systemd finds no fault in the units, and judges the one of the daemon to be well confined.
fn units_are_sound(root: &Path) {
    let at = format!("--root={}", root.display());
    if run("systemd-analyze", &["--version"]).is_none() {
        eprintln!("THE UNITS ARE NOT CHECKED: there is no systemd-analyze");
        return;
    }
    // Units of the system that ours come after.
    let system = root.join("usr/lib/systemd/system");
    for target in ["network-online.target", "multi-user.target", "sysinit.target", "basic.target", "shutdown.target"] {
        fs::write(system.join(target), "[Unit]\nDescription=stand-in\n").unwrap();
    }
    for unit in ["goodputd.service", "goodput-node.service"] {
        let (output, said) = run("systemd-analyze", &["verify", "--man=no", &at, unit]).unwrap();
        let faults: Vec<&str> = said.lines().filter(|line| line.contains("goodput")).collect();
        assert!(output.status.success() && faults.is_empty(), "{unit}: {said}");
    }
    let arguments = ["security", "--offline=true", "--threshold=25", &at, "goodputd.service"];
    let (output, said) = run("systemd-analyze", &arguments).unwrap();
    assert!(output.status.success(), "exposure above 2.5:\n{said}");
    // Jobs must outlive their agent.
    let agent = fs::read_to_string(system.join("goodput-node.service")).unwrap();
    assert!(agent.contains("KillMode=process"), "{agent}");
}
