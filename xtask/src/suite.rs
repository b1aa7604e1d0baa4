//! The tests of the workspace and of the example outside of it: how `cargo xtask test` builds and runs them.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Instant;

use xtask::source::root;

use super::{compiler, has, run, run_with, target};

/// Packages that are tested without optimisation: to optimise them takes longer than they take in the tests.
const UNOPTIMISED: [&str; 6] =
    ["goodput-cli", "goodput-configs", "goodput-executor", "goodput-python", "goodput-testkit", "goodputd"];

/// Libraries of others that are tested without optimisation, for that reason too.
const UNOPTIMISED_LIBRARIES: [&str; 40] = [
    "annotate-snippets",
    "arrow-arith",
    "arrow-cast",
    "arrow-cmp",
    "arrow-ord",
    "arrow-row",
    "arrow-select",
    "arrow-string",
    "axum",
    "burn-dispatch",
    "burn-flex",
    "burn-nn",
    "burn-optim",
    "clap_builder",
    "clap_complete",
    "encoding_rs",
    "h2",
    "image",
    "insta",
    "jsonpath-rust",
    "k8s-openapi",
    "kube-client",
    "kube-core",
    "kube-runtime",
    "libsqlite3-sys",
    "miette",
    "minijinja",
    "nvml-wrapper",
    "object",
    "protobuf",
    "ratatui-core",
    "ratatui-widgets",
    "rten",
    "rten-shape-inference",
    "rustls",
    "serde-saphyr",
    "tensorboard-proto",
    "tensorboard-rs",
    "tracing-subscriber",
    "ureq",
];

/// Options of cargo that compile packages, and the libraries above, without optimisation. The parts of a library are
/// not optimised across one another: that takes a third of the time in which a library is compiled.
fn unoptimised(packages: &[&str]) -> Vec<String> {
    let levels = packages
        .iter()
        .chain(&UNOPTIMISED_LIBRARIES)
        .map(|package| format!("--config=profile.release.package.{package}.opt-level=0"));
    levels.chain(["--config=profile.release.lto=\"off\"".to_owned()]).collect()
}

/// The test program of the executor. Its tests wait for Slurm, Kubernetes and agents three quarters of their time.
const WAITING: &str = "executor";

/// Names of all other test programs, as patterns of cargo: none of them begins with the first two letters of that one,
/// which a test checks.
const OTHERS: [&str; 4] = ["--test", "[!e]*", "--test", "e[!x]*"];

/// Tests of another test program that run at once. Some of them wait for Slurm or for a browser, so more than there are
/// processors.
const AT_ONCE: &str = "4";

/// Lints of all targets, the test suite, by nextest where it is installed, and the examples in the documentation. The
/// tests of the executor run beside all other tests, which let them have the processor first, and beside `rest`.
pub fn suite(rest: impl FnOnce() -> bool) -> bool {
    let compiler = match compiler::variables() {
        Ok(variables) => variables,
        Err(error) => {
            eprintln!("cannot find the program that compiles the tests: {error}");
            return false;
        }
    };
    let options = unoptimised(&UNOPTIMISED);
    let all = |words: &[&str]| -> Vec<String> {
        let all = words.iter().copied().chain(["--release", "--workspace"]);
        all.chain(options.iter().map(String::as_str)).map(str::to_owned).collect()
    };
    let started = |variables: &[_], program: &str, words: &[&str]| {
        run_with(variables, program, &all(words).iter().map(String::as_str).collect::<Vec<_>>())
    };
    let cargo = |words: &[&str]| started(&compiler, "cargo", words);
    let gently =
        |variables: &[_], words: &[&str]| started(variables, "nice", &[&["-n", "19", "cargo"], words].concat());
    let begun = Instant::now();
    if !cargo(&["test", "--all-targets", "--no-run"]) {
        return false;
    }
    let built = begun.elapsed();
    if has(&["nextest", "--version"]) {
        return cargo(&["nextest", "run", "--no-fail-fast"]) && cargo(&["test", "--doc", "--quiet"]) && rest();
    }
    let waiting = match Beside::start(&all(&["test", "--test", WAITING, "--no-fail-fast"]), &compiler) {
        Ok(waiting) => waiting,
        Err(error) => {
            eprintln!("cannot start the tests of the executor: {error}");
            return false;
        }
    };
    let units = [&["test", "--lib", "--bins", "--no-fail-fast"][..], &OTHERS].concat();
    let at_once = [&compiler[..], &[("RUST_TEST_THREADS", AT_ONCE.to_owned())]].concat();
    let others = gently(&at_once, &units) && gently(&compiler, &["test", "--doc", "--quiet"]) && rest();
    let tested = begun.elapsed() - built;
    let waiting = waiting.ended();
    let [built, tested, total] = [built, tested, begun.elapsed()].map(|time| time.as_secs());
    println!("built in {built} s; all but the executor tested in {tested} s; together {total} s");
    waiting && others
}

/// A cargo that runs beside others, with what it prints in a file.
struct Beside {
    cargo: Child,
    printed: PathBuf,
}

impl Beside {
    fn start(words: &[String], variables: &[(&str, String)]) -> std::io::Result<Self> {
        let printed = target().join("beside.txt");
        println!("\n$ cargo {} > {} &", words.join(" "), printed.display());
        let file = fs::File::create(&printed)?;
        let variables = variables.iter().map(|(name, value)| (*name, value));
        let cargo = Command::new("cargo").args(words).envs(variables).stdout(file.try_clone()?).stderr(file).spawn();
        Ok(Self { cargo: cargo?, printed })
    }

    /// Waits for the end and shows what was printed. True where all is well.
    fn ended(mut self) -> bool {
        let ok = self.cargo.wait().is_ok_and(|status| status.success());
        println!("\n{}", fs::read_to_string(&self.printed).unwrap_or_default());
        ok
    }
}

/// Packages of the repository that a program outside of it is built with.
const ROOMS: [&str; 13] = [
    "goodput",
    "goodput-agents",
    "goodput-cli",
    "goodput-configs",
    "goodput-console",
    "goodput-datasets",
    "goodput-env",
    "goodput-eval",
    "goodput-executor",
    "goodput-forecast",
    "goodput-nvml-double",
    "goodput-train",
    "goodputd",
];

/// Builds and tests the policy that is written outside the workspace. Cargo compiles the packages of the repository
/// again for a program outside of it, and without optimisation that takes a quarter of the time.
pub fn example() -> bool {
    let target = root().join("target").display().to_string();
    let manifest = root().join("examples/own-policy/Cargo.toml").display().to_string();
    let options = unoptimised(&ROOMS);
    let words = ["test", "--release", "--manifest-path", &manifest, "--target-dir", &target];
    run("cargo", &words.into_iter().chain(options.iter().map(String::as_str)).collect::<Vec<_>>())
}
