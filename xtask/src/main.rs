//! Development tasks: `cargo xtask {test, bench, schema}`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks on the terminal")]

use std::env;
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test           everything: format, lints, unit, property, golden, parity and command-line tests
cargo xtask bench [NAME]   benchmarks: all of them, or those whose name contains NAME
cargo xtask schema         writes the JSON schemas of the configuration files to configs/schema
";

/// Benchmarks: package and target.
const BENCHES: [(&str, &str); 17] = [
    ("goodput-env", "gym"),
    ("goodput-env", "fit"),
    ("goodput-env", "soak"),
    ("goodput-env", "requests"),
    ("goodput-agents", "queues"),
    ("goodput-datasets", "datasets"),
    ("goodput-eval", "replay"),
    ("goodput-eval", "faults"),
    ("goodput-eval", "fidelity"),
    ("goodput-eval", "decisions"),
    ("goodput-eval", "request_decisions"),
    ("goodput-eval", "placement"),
    ("goodput-eval", "tiresias"),
    ("goodput-eval", "gavel"),
    ("goodput-eval", "sia"),
    ("goodput-eval", "loaning"),
    ("goodput-train", "training_loop"),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let ok = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test(),
        ["bench"] => bench(""),
        ["bench", name] => bench(name),
        ["schema"] => run(
            "cargo",
            &["run", "--release", "--quiet", "--bin", "goodput", "--", "config", "schema", "--write", "configs/schema"],
        ),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Stops at the first step that fails. One profile throughout, so that nothing is compiled twice.
fn test() -> bool {
    run("cargo", &["fmt", "--all", "--check"])
        && run("cargo", &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"])
        && suite()
        && run("cargo", &["test", "--release", "--workspace", "--doc", "--quiet"])
        && deny()
}

/// The test suite, by nextest where it is installed.
fn suite() -> bool {
    if has(&["nextest", "--version"]) {
        run("cargo", &["nextest", "run", "--release", "--workspace", "--no-fail-fast"])
    } else {
        run("cargo", &["test", "--release", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
    }
}

/// Licences and advisories, where cargo-deny is installed.
fn deny() -> bool {
    if has(&["deny", "--version"]) {
        return run("cargo", &["deny", "check"]);
    }
    println!("cargo-deny is not installed: licences and advisories not checked");
    true
}

fn bench(filter: &str) -> bool {
    let chosen = BENCHES.iter().filter(|(package, name)| format!("{package}/{name}").contains(filter));
    // The whole workspace, so that features are those of every other build and nothing is compiled twice.
    chosen.fold(true, |ok, (_, name)| run("cargo", &["bench", "--workspace", "--bench", name]) && ok)
}

fn has(args: &[&str]) -> bool {
    Command::new("cargo").args(args).output().is_ok_and(|output| output.status.success())
}

fn run(program: &str, args: &[&str]) -> bool {
    println!("\n$ {program} {}", args.join(" "));
    match Command::new(program).args(args).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {program}: {error}");
            false
        }
    }
}
