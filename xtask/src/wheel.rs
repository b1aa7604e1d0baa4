//! The wheel of the Python package, and virtual environments to try it in.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use crate::source::root;

/// Tools that write the metadata of a wheel, pack it, and read which libraries of the system it needs.
const TOOLS: [&str; 3] = ["maturin>=1.9.4,<2", "wheel", "auditwheel>=6.2,<7"];

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

/// Whether pip of `python` reaches the index of packages: it downloads a small one into `folder`.
pub fn reaches_index(python: &Path, folder: &Path) -> bool {
    let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--retries", "1"];
    said(Command::new(python).args(pip).arg("--dest").arg(folder).arg("wheel")).is_ok()
}

/// Builds the extension module for a release: without the features that other crates of the workspace ask for, and
/// without symbols.
///
/// # Errors
/// The build fails; with the output of cargo.
pub fn library() -> Result<PathBuf> {
    let build = ["rustc", "--release", "--locked", "-p", "goodput-python", "--lib", "--", "-C", "strip=symbols"];
    said(Command::new("cargo").args(build).current_dir(root()))?;
    Ok(target().join("release/lib_core.so"))
}

/// Builds the program `goodput` for a release.
///
/// # Errors
/// The build fails; with the output of cargo.
pub fn program() -> Result<PathBuf> {
    said(Command::new("cargo").args(["build", "--release", "--locked", "--bin", "goodput"]).current_dir(root()))?;
    Ok(target().join("release/goodput"))
}

/// Packs a wheel of the package around its extension module, with `program` where one is given, into `folder`, and
/// gives its path. maturin writes the metadata; it and the packer are installed once, below `target/tools`. The tag of
/// the platform names the oldest C library that suffices, so that pip refuses the wheel where it would not run.
///
/// # Errors
/// Python is missing, a tool cannot be installed or fails, or a file cannot be copied; with the output of the tool.
pub fn pack(python: &str, library: &Path, program: Option<&Path>, folder: &Path) -> Result<PathBuf> {
    let tools = root().join("target/tools/python");
    // Tests are processes of their own and may pack at one time.
    fs::create_dir_all(&tools)?;
    let lock = fs::File::create(tools.with_extension("lock"))?;
    lock.lock()?;
    if !tools.join("bin/auditwheel").exists() {
        environment(python, &tools, false, &TOOLS)?;
    }
    let stage = folder.join("unpacked");
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let package = stage.join("goodput_gym");
    fs::create_dir_all(&package)?;
    for entry in fs::read_dir(root().join("python/goodput_gym"))? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap_or_default()))?;
        }
    }
    fs::copy(library, package.join("_core.abi3.so"))?;
    let mut metadata = Command::new(tools.join("bin/maturin"));
    metadata.args(["pep517", "write-dist-info", "--interpreter", python, "--metadata-directory"]).arg(&stage);
    said(metadata.arg("--manifest-path").arg(root().join("python/Cargo.toml")))?;
    if let Some(program) = program {
        let scripts = stage.join(format!("goodput_gym-{}.data/scripts", env!("CARGO_PKG_VERSION")));
        fs::create_dir_all(&scripts)?;
        fs::copy(program, scripts.join(program.file_name().unwrap_or_default()))?;
    }
    let mut packer = Command::new(tools.join("bin/python"));
    said(packer.args(["-m", "wheel", "pack"]).arg(&stage).arg("--dest-dir").arg(folder))?;
    fs::remove_dir_all(&stage)?;
    let wheel = only_file(folder)?;
    if let Some(tag) = platform(&tools, &wheel)? {
        let mut tagger = Command::new(tools.join("bin/python"));
        said(tagger.args(["-m", "wheel", "tags", "--remove", "--platform-tag", &tag]).arg(&wheel))?;
    }
    only_file(folder)
}

/// The platform tag that suits what a wheel links, as auditwheel reads it; `None` on other systems than Linux, which
/// auditwheel does not know.
fn platform(tools: &Path, wheel: &Path) -> Result<Option<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let shown = said(Command::new(tools.join("bin/auditwheel")).arg("show").arg(wheel))?;
    // Lines are wrapped anywhere.
    let words = String::from_utf8_lossy(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let tag = words.split_once("platform tag: \"").and_then(|(_, rest)| rest.split_once('"'));
    let tag = tag.ok_or_else(|| Error::other(format!("auditwheel names no platform tag: {words}")))?;
    Ok(Some(tag.0.to_owned()))
}

/// The file in a folder that has one.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    files.next().unwrap_or_else(|| Err(Error::other("no wheel was packed")))
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
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
