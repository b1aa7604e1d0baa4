//! The compiler of the tests: that of clippy, which lints what is built for the tests by the way. `cargo clippy` beside
//! the tests would read all libraries once more, which takes ten minutes on two cores.
//!
//! Programs of unit tests and of benchmarks are not optimised: to optimise a library once more with its unit tests
//! takes twenty times as long as these tests run, and `cargo xtask test` runs no benchmark. Without optimisation, unit
//! tests check overflows and debug assertions, too.
//!
//! Cargo looks at the path of its compiler and not at what is in it: a change of this file compiles nothing anew.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, io};

/// Variables that make cargo compile with this program, and the lints of which a warning is an error. `cargo clippy`
/// sets the second one too.
///
/// # Errors
/// The path of this program is not known.
pub fn variables() -> io::Result<[(&'static str, String); 2]> {
    let program = env::current_exe()?.display().to_string();
    let warnings = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".to_owned();
    Ok([("RUSTC_WORKSPACE_WRAPPER", program), ("CLIPPY_ARGS", warnings)])
}

/// Whether cargo calls this program as a compiler: it then names `rustc` first.
pub fn is_called(args: &[String]) -> bool {
    args.first().is_some_and(|first| Path::new(first).file_stem().is_some_and(|stem| stem == "rustc"))
}

/// Becomes the compiler, with the arguments of cargo. Returns where that fails.
pub fn compile(args: &[String]) -> ExitCode {
    let unoptimised = (!is_optimised(args)).then_some("-Copt-level=0");
    let error = Command::new("clippy-driver").args(args).args(unoptimised).exec();
    eprintln!("cannot run clippy-driver: {error}. rustup component add clippy");
    ExitCode::FAILURE
}

fn is_optimised(args: &[String]) -> bool {
    let Some(source) =
        args.iter().map(Path::new).find(|arg| arg.extension().is_some_and(|extension| extension == "rs"))
    else {
        return true;
    };
    let lies_in = |folder: &str| source.components().any(|part| part.as_os_str() == folder);
    let is_test = args.iter().any(|arg| arg == "--test");
    !(lies_in("benches") || is_test && lies_in("src"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn unit_tests_and_benchmarks_are_not_optimised_and_all_else_is() {
        for (line, optimised) in [
            ("/bin/rustc --crate-name goodput_env env/src/lib.rs --crate-type lib", true),
            ("/bin/rustc --crate-name env env/tests/main.rs --test", true),
            ("/bin/rustc -vV", true),
            ("/bin/rustc --crate-name goodput_env env/src/lib.rs --test", false),
            ("/bin/rustc --crate-name gym env/benches/gym.rs --crate-type bin", false),
        ] {
            assert_eq!(is_optimised(&args(line)), optimised, "{line}");
            assert!(is_called(&args(line)));
        }
        assert!(!is_called(&args("test")));
        assert!(!is_called(&[]));
    }
}
