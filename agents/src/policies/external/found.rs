//! Search for a program: a command or a module that is missing is found before anything runs.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use super::program::{ExternalProgram, PACKAGE, ProgramKind};

/// Longest time for the search of a module. Python imports the packages around a module to find it.
const SEARCH: Duration = Duration::from_secs(5);

/// Exit codes of a Python that does not find the package that serves classes, and of one that does not find the module.
const NO_PACKAGE: i32 = 101;
const NO_MODULE: i32 = 102;

/// Ends with 101 or 102 where Python does not find the first or the second of the modules in the arguments. The last
/// name of each stays unimported.
const FIND: &str = "
import importlib.util, os, sys
sys.path.insert(0, os.getcwd())
for code, name in enumerate(sys.argv[1:], 101):
    try:
        found = importlib.util.find_spec(name)
    except ImportError:
        found = None
    if found is None:
        os._exit(code)
os._exit(0)
";

/// Part of an external program that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingProgram {
    /// No file has the name of the program.
    #[error("there is no program {program:?}")]
    File {
        /// Program with its folder.
        program: String,
    },
    /// The file must not be executed.
    #[error("{program} is no program: its file is not executable")]
    NotExecutable {
        /// Program with its folder.
        program: String,
    },
    /// No folder of the variable PATH has the program.
    #[error("there is no program {program:?} in the folders of PATH")]
    NotOnPath {
        /// Program without a folder.
        program: String,
    },
    /// The package that serves classes is not installed.
    #[error(
        "{python} has no package {PACKAGE}: `{python} -m pip install goodput-gym` installs it, and the variable \
         GOODPUT_PYTHON names another Python"
    )]
    Package {
        /// The Python that was asked.
        python: String,
    },
    /// Python does not find the module of the class.
    #[error("{python} finds no module {module:?} in the working directory or where Python looks")]
    Module {
        /// The Python that was asked.
        python: String,
        /// Module that the name of the policy has.
        module: String,
    },
}

impl ExternalProgram {
    /// Looks for the program, and for the module of a class in Python, without running either. Python imports the
    /// packages around a module to find it. A module counts as found where that takes longer than 5 s: the start of the
    /// program has a limit of its own.
    ///
    /// # Errors
    /// [`MissingProgram`] names the part that is not there.
    pub fn find(&self) -> Result<(), MissingProgram> {
        self.find_command()?;
        let ProgramKind::Python(module) = self.kind() else { return Ok(()) };
        let python = self.program().to_owned();
        match searched(&python, module) {
            Some(NO_PACKAGE) => Err(MissingProgram::Package { python }),
            Some(NO_MODULE) => Err(MissingProgram::Module { python, module: module.clone() }),
            _ => Ok(()),
        }
    }

    /// Looks for the program alone, which takes no time.
    ///
    /// # Errors
    /// [`MissingProgram`] where it is not there.
    pub fn find_command(&self) -> Result<(), MissingProgram> {
        find_executable(self.program())
    }

    fn program(&self) -> &str {
        self.command().first().map(String::as_str).unwrap_or_default()
    }
}

/// Exit code of a Python that looks for `module`; `None` where Python cannot be started or does not end in time.
fn searched(python: &str, module: &str) -> Option<i32> {
    let mut command = Command::new(python);
    command.args(["-c", FIND, PACKAGE, module]).process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let began = Instant::now();
    while began.elapsed() < SEARCH {
        match child.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    // It fails where the group has just ended.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    None
}

fn find_executable(program: &str) -> Result<(), MissingProgram> {
    let name = || program.to_owned();
    if program.contains('/') {
        let path = Path::new(program);
        return match (is_executable(path), path.is_file()) {
            (true, _) => Ok(()),
            (false, true) => Err(MissingProgram::NotExecutable { program: name() }),
            (false, false) => Err(MissingProgram::File { program: name() }),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).any(|folder| is_executable(&folder.join(program)));
    if found { Ok(()) } else { Err(MissingProgram::NotOnPath { program: name() }) }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
