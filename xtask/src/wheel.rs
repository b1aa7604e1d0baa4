//! The wheel of the Python package, built by maturin, and virtual environments to try it in.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::source::root;

/// maturin that builds the wheel.
const MATURIN: &str = "maturin>=1.9.4,<2";

/// Oldest Python that the package supports.
const OLDEST: &str = "(3, 10)";

/// Pythons that are looked for, in order.
const PYTHONS: [&str; 3] = ["python3", "/usr/bin/python3", "python"];

/// The first Python that is new enough, makes virtual environments and can import `modules`.
pub fn python(modules: &[&str]) -> Option<&'static str> {
    let imports: String = ["venv", "ensurepip"].iter().chain(modules).map(|name| format!(", {name}")).collect();
    let program = format!("import sys{imports}; sys.exit(sys.version_info < {OLDEST})");
    PYTHONS.into_iter().find(|python| said(Command::new(python).args(["-c", &program])).is_ok())
}

/// Makes a fresh virtual environment in `folder`. With `system`, it sees the packages of its Python as well.
///
/// # Errors
/// The environment cannot be made, or the packages cannot be installed; with the output of the program.
pub fn environment(python: &str, folder: &Path, system: bool, packages: &[&str]) -> Result<PathBuf> {
    let system = if system { &["--system-site-packages"][..] } else { &[] };
    said(Command::new(python).args(["-m", "venv", "--clear"]).args(system).arg(folder))?;
    let own = folder.join("bin/python");
    install(&own, packages)?;
    Ok(own)
}

/// Installs packages, or files of packages, beside those that the environment of `python` has.
///
/// # Errors
/// pip fails; with its output.
pub fn install(python: &Path, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    said(Command::new(python).args(pip).args(packages)).map(drop)
}

/// Builds the wheel into `target/wheels`, and gives its path. maturin is installed once, below `target/tools`.
///
/// # Errors
/// Python is missing, maturin cannot be installed, or the build fails; with the output of the program.
pub fn build(python: &str) -> Result<PathBuf> {
    let tools = root().join("target/tools/python");
    let maturin = tools.join("bin/maturin");
    if !maturin.exists() {
        environment(python, &tools, false, &[MATURIN])?;
    }
    let folder = root().join("target/wheels");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let build = ["build", "--release", "--locked", "--strip", "--compatibility", "linux"];
    let mut maturin = Command::new(maturin);
    maturin.args(build).arg("--out").arg(&folder).arg("--manifest-path").arg(root().join("python/Cargo.toml"));
    said(maturin.arg("--interpreter").arg(python))?;
    let mut wheels = fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path()));
    wheels.next().unwrap_or_else(|| Err(Error::other("maturin has built no wheel")))
}

/// Runs a program. Where it fails, its output is the error.
fn said(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::new(error.kind(), format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Err(Error::other(format!("{command:?}: {}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))))
}
