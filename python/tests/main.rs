//! The wheel in fresh virtual environments: the checkers of Gymnasium and of Stable-Baselines3, and the tests in
//! Python.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::wheel;

/// Packages of the tests.
const TESTS: [&str; 4] = ["gymnasium", "numpy", "pytest", "polars"];

/// Packages of the tests with torch: Stable-Baselines3 that runs on Debian's torch 1.13, frames, and pictures.
const SB3: [&str; 9] = [
    "numpy<2",
    "gymnasium",
    "pytest",
    "cloudpickle",
    "pandas<2.3",
    "matplotlib<3.11",
    "polars",
    "nbclient",
    "ipykernel",
];
const SB3_ALONE: [&str; 3] = ["--no-deps", "stable-baselines3==2.4.1", "sb3-contrib==2.4.0"];

/// Tests that need torch, pandas or matplotlib.
const TORCH: [&str; 5] = ["test_sb3.py", "test_book.py", "test_forecast.py", "test_render.py", "test_examples.py"];

/// Tests that need what `python/tests/learners.txt` lists.
const TODAY: [&str; 5] = ["test_rllib.py", "test_torchrl.py", "test_sweep.py", "test_evolve.py", "test_notebooks.py"];

/// The variable that names a Python with what `python/tests/learners.txt` lists. It takes a download of 3 GB, so that
/// continuous integration does without.
const LEARNERS: &str = "GOODPUT_LEARNERS";

/// Says something that the harness must not keep to itself, as it does with what tests print.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// The program `goodput`, where it was built beside the tests of the whole workspace.
fn program() -> Option<PathBuf> {
    let built = std::env::current_exe().unwrap().ancestors().nth(2)?.join("goodput");
    built.exists().then_some(built)
}

/// The wheel in `folder`, packed around the extension module that was built with this test, with a program where one is
/// given.
fn packed(python: &str, program: Option<&Path>, folder: &Path) -> String {
    let library = std::env::current_exe().unwrap().with_file_name("lib_core.so");
    wheel::pack(python, &library, program, folder).unwrap().to_str().unwrap().to_owned()
}

/// Runs Python tests in an environment that has the wheel.
fn pytest(python: &Path, variables: &[(&str, &Path)], files: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    // Outside the source, so that the installed package is imported.
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut pytest = Command::new(python);
    pytest.envs(variables.iter().copied());
    // The nets are small. Where the processors are busy, threads of PyTorch wait for each other far longer than they
    // compute.
    pytest.env("OMP_NUM_THREADS", "1");
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]);
    match program() {
        Some(program) => {
            pytest.env("GOODPUT", program);
        }
        None => say("the program goodput is not built: ITS POLICIES IN PYTHON ARE NOT TESTED"),
    }
    let status = pytest.args(files.iter().map(|file| folder.join(file))).current_dir(outside).status().unwrap();
    assert!(status.success(), "{files:?} in {}", python.display());
}

/// Says what is not tested, which is a failure in continuous integration.
fn untested(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    say(&format!("{reason}: THE PACKAGE goodput-gym IS NOT TESTED"));
}

/// An environment in a fresh folder called `name` that has `packages` and the wheel, with a program where one is given;
/// `None` without a network.
fn environment(
    python: &str,
    name: &str,
    system: bool,
    program: Option<&Path>,
    packages: &[&[&str]],
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let own = wheel::environment(python, &folder.join("venv"), system, &[]).unwrap();
    if !wheel::reaches_index(&own, &folder.join("index")) {
        // A network is not ours to install, so its absence is no failure anywhere.
        say("pip does not reach the index of packages: THE PACKAGE goodput-gym IS NOT TESTED");
        return None;
    }
    let wheel = packed(python, program, &folder.join("wheel"));
    packages.iter().for_each(|packages| wheel::install(&own, packages).unwrap());
    wheel::install(&own, &[&wheel]).unwrap();
    Some(own)
}

#[test]
fn the_wheel_passes_its_tests_in_a_fresh_environment() {
    let Some(python) = wheel::python(&[]) else {
        return untested("Python 3.10 or newer with venv is missing");
    };
    if let Some(python) = environment(python, "gymnasium", false, program().as_deref(), &[&TESTS]) {
        if program().is_some() {
            let version = Command::new(python.with_file_name("goodput")).arg("--version").output().unwrap();
            assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), concat!("goodput ", env!("CARGO_PKG_VERSION")));
        }
        pytest(&python, &[], &["test_env.py", "test_vector.py", "test_policy.py", "test_export.py", "test_book.py"]);
    }
}

#[test]
fn stable_baselines3_trains_on_the_wheel() {
    // PyTorch is large, so that continuous integration may lack it.
    let Some(python) = wheel::python(&["torch"]) else {
        say("PyTorch is missing: THE PACKAGE IS NOT TESTED WITH STABLE-BASELINES3. apt-get install python3-torch");
        return;
    };
    if let Some(python) = environment(python, "sb3", true, None, &[&SB3, &SB3_ALONE]) {
        pytest(&python, &[], &TORCH);
    }
}

#[test]
fn learners_of_today_train_on_the_wheel() {
    let Some(python) = std::env::var_os(LEARNERS).map(PathBuf::from) else {
        return say(&format!(
            "{LEARNERS} names no Python: THE PACKAGE IS NOT TESTED WITH PYTORCH 2, STABLE-BASELINES3 2.9 AND RLLIB. \
             pip install -r python/tests/learners.txt"
        ));
    };
    // The environment is not ours to change, so that the wheel goes beside it.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("learners");
    let (wheel, own) = (packed("python3", None, &folder.join("wheel")), folder.join("packages"));
    if own.exists() {
        std::fs::remove_dir_all(&own).unwrap();
    }
    wheel::install(&python, &["--no-deps", "--target", own.to_str().unwrap(), &wheel]).unwrap();
    let tests: Vec<&str> = TORCH.into_iter().chain(TODAY).collect();
    pytest(&python, &[("PYTHONPATH", &own)], &tests);
}
