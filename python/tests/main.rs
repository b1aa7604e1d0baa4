//! The wheel in fresh virtual environments: the checkers of Gymnasium and of Stable-Baselines3, and the tests in
//! Python.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::path::Path;
use std::process::Command;

use xtask::wheel;

/// Packages of the tests.
const TESTS: [&str; 3] = ["gymnasium", "numpy", "pytest"];

/// Stable-Baselines3 that runs on Debian's torch 1.13, and what it needs from the index.
const SB3: [&str; 6] = ["numpy<2", "gymnasium", "pytest", "cloudpickle", "pandas<2.3", "matplotlib<3.11"];
const SB3_ALONE: [&str; 3] = ["--no-deps", "stable-baselines3==2.4.1", "sb3-contrib==2.4.0"];

/// The wheel in `folder`, packed around the extension module that was built with this test.
fn packed(python: &str, folder: &Path) -> String {
    let library = std::env::current_exe().unwrap().with_file_name("lib_core.so");
    wheel::pack(python, &library, None, folder).unwrap().to_str().unwrap().to_owned()
}

/// Runs Python tests in an environment that has the wheel.
fn pytest(python: &Path, files: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    // Outside the source, so that the installed package is imported.
    let outside = python.parent().unwrap();
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]);
    let status = pytest.args(files.iter().map(|file| folder.join(file))).current_dir(outside).status().unwrap();
    assert!(status.success(), "{files:?} in {}", python.display());
}

#[test]
fn the_wheel_passes_its_tests_in_a_fresh_environment() {
    let Some(python) = wheel::python(&[]) else {
        eprintln!("Python 3.10 with venv is missing: THE PACKAGE goodput-gym IS NOT TESTED");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gymnasium");
    let wheel = packed(python, &folder.join("wheel"));
    let python = wheel::environment(python, &folder.join("venv"), false, &TESTS).unwrap();
    wheel::install(&python, &[&wheel]).unwrap();
    pytest(&python, &["test_env.py", "test_vector.py", "test_policy.py", "test_export.py", "test_book.py"]);
}

#[test]
fn stable_baselines3_trains_on_the_wheel() {
    let Some(python) = wheel::python(&["torch"]) else {
        eprintln!(
            "PyTorch is missing: THE PACKAGE IS NOT TESTED WITH STABLE-BASELINES3. apt-get install python3-torch"
        );
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sb3");
    let wheel = packed(python, &folder.join("wheel"));
    let python = wheel::environment(python, &folder.join("venv"), true, &SB3).unwrap();
    wheel::install(&python, &SB3_ALONE).unwrap();
    wheel::install(&python, &[&wheel]).unwrap();
    pytest(&python, &["test_sb3.py", "test_book.py"]);
}
