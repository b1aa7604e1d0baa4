//! Archives that one installs from: a tarball for any Linux, and the Debian package with the whole program.
//!
//! Both hold the programs, completions for three shells, a manual page for each command, the configuration files that
//! ship, and the book: built where `cargo xtask docs` has built it, else its sources.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::{self, place, said};
use crate::source::root;

/// Shells with the folder and the name that each reads completions from.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/goodput"),
    ("zsh", "share/zsh/vendor-completions/_goodput"),
    ("fish", "share/fish/vendor_completions.d/goodput.fish"),
];

/// Texts of the tarball: from the repository, and where they lie in it.
const TEXTS: [(&str, &str); 5] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("CITATION.cff", "CITATION.cff"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// Paths of the archives that were built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archives {
    /// Path of the compressed tarball.
    pub tarball: PathBuf,
    /// The Debian package; `None` where there is no `dpkg-deb`.
    pub package: Option<PathBuf>,
}

/// Builds the archives in `folder` from `programs`, of which the first is `goodput`.
///
/// # Errors
/// A file cannot be read or written, the program does not run, or `tar` or `dpkg-deb` fails.
pub fn build(programs: &[PathBuf], folder: &Path) -> io::Result<Archives> {
    let goodput = programs.first().ok_or_else(|| io::Error::other("no program was built"))?;
    let name = format!("goodput-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let stage = folder.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    for program in programs {
        place(program, &stage.join("bin").join(program.file_name().unwrap_or_default()), 0o755)?;
    }
    for (from, to) in TEXTS {
        place(&root().join(from), &stage.join(to), 0o644)?;
    }
    let shared = shared(goodput, &stage)?;
    let tarball = folder.join(format!("{name}.tar.gz"));
    let [path, at] = [&tarball, folder].map(|path: &Path| path.to_string_lossy());
    // Equal files make an equal archive.
    let order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    said("tar", &[&order[..], &["-C", &at, "-czf", &path, &name]].concat())?;
    let debian = Command::new("dpkg-deb").arg("--version").output().is_ok_and(|output| output.status.success());
    let more: Vec<(PathBuf, String)> = shared.iter().map(|to| (stage.join(to), format!("usr/{to}"))).collect();
    let package = debian.then(|| package::build(programs, &more, folder)).transpose()?;
    Ok(Archives { tarball, package })
}

/// Writes the files below `share` of the stage, and gives their paths in it.
fn shared(goodput: &Path, stage: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for (shell, to) in SHELLS {
        let script = Command::new(goodput).args(["completions", shell]).output()?;
        if !script.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&script.stderr).into_owned()));
        }
        let path = stage.join(to);
        fs::create_dir_all(path.parent().unwrap_or(stage))?;
        fs::write(path, script.stdout)?;
    }
    let pages = stage.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    said(&goodput.to_string_lossy(), &["man", "--write", &pages.to_string_lossy()])?;
    copy(&root().join("configs"), &stage.join("share/goodput/configs"), &["toml", "json"], "Cargo.toml")?;
    let book = root().join("target/book");
    let from = if book.join("index.html").exists() { book } else { root().join("docs/src") };
    copy(&from, &stage.join("share/doc/goodput/book"), &[], "")?;
    list(&stage.join("share"), &mut files)?;
    let below = |path: &PathBuf| path.strip_prefix(stage).unwrap_or(path).to_string_lossy().into_owned();
    Ok(files.iter().map(below).collect())
}

/// Copies the files of a tree that end as one of `kinds`, or all where none is named, and leaves those called `but`.
fn copy(from: &Path, to: &Path, kinds: &[&str], but: &str) -> io::Result<()> {
    let mut files = Vec::new();
    list(from, &mut files)?;
    for file in files {
        let kind = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = kinds.is_empty() || kinds.contains(&kind.as_str());
        if wanted && file.file_name().is_none_or(|name| name != but) {
            place(&file, &to.join(file.strip_prefix(from).unwrap_or(&file)), 0o644)?;
        }
    }
    Ok(())
}

/// The files of a tree, in order.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
