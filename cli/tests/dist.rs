//! Archives that one installs from: the tarball and the Debian package have the program and everything beside it.
//!
//! `GOODPUT_DIST=FOLDER` keeps the archives in a folder, to look at them or to install them.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests, and a test that could not run says so")]

use std::path::PathBuf;
use std::process::Command;

fn listed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_archives_have_programs_completions_pages_configurations_and_the_book() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("GOODPUT_DIST").map(PathBuf::from);
    let goodput = PathBuf::from(env!("CARGO_BIN_EXE_goodput"));
    let others = ["goodputd", "goodput-node"].map(|name| goodput.with_file_name(name));
    let programs: Vec<PathBuf> = [goodput].into_iter().chain(others.into_iter().filter(|path| path.exists())).collect();
    let archives = xtask::dist::build(&programs, kept.as_deref().unwrap_or(folder.path())).unwrap();
    let names = listed("tar", &["-tzf", archives.tarball.to_str().unwrap()]);
    let shared = [
        "share/bash-completion/completions/goodput",
        "share/zsh/vendor-completions/_goodput",
        "share/fish/vendor_completions.d/goodput.fish",
        "share/man/man1/goodput.1",
        "share/man/man1/goodput-live-run.1",
        "share/goodput/configs/experiment/quickstart.toml",
        "share/doc/goodput/book/",
    ];
    for file in shared.iter().chain(&["bin/goodput", "LICENSE-MIT"]) {
        assert!(names.contains(&format!("linux/{file}")), "{file} is not in the tarball");
    }
    let Some(package) = archives.package else {
        eprintln!("THE PACKAGE IS NOT TESTED: there is no dpkg-deb");
        return;
    };
    let names = listed("dpkg-deb", &["--contents", package.to_str().unwrap()]);
    for file in shared.iter().chain(&["bin/goodput", "lib/systemd/system/goodputd.service"]) {
        assert!(names.contains(&format!("./usr/{file}")), "{file} is not in the package");
    }
}
