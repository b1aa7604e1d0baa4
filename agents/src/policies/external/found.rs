//! Search for a program: a command or a module that is missing is found before anything runs.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use thiserror::Error;

use super::program::{ExternalProgram, PACKAGE, ProgramKind};

/// Prints the first of the modules in the arguments that Python does not find. The last name of each stays
/// unimported.
const FIND: &str = "
import importlib.util, os, sys
sys.path.insert(0, os.getcwd())
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name)
    except ImportError:
        found = None
    if found is None:
        print(name)
        break
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
        /// The module.
        module: String,
    },
}

impl ExternalProgram {
    /// Looks for the program, and for the module of a class in Python, without running either. Python imports the
    /// packages around a module to find it.
    ///
    /// # Errors
    /// [`MissingProgram`] names the part that is not there.
    pub fn find(&self) -> Result<(), MissingProgram> {
        let program = self.command().first().map(String::as_str).unwrap_or_default();
        find_executable(program)?;
        let ProgramKind::Python(module) = self.kind() else { return Ok(()) };
        let asked = Command::new(program).args(["-c", FIND, PACKAGE, module]).stdin(Stdio::null()).output();
        let python = program.to_owned();
        // A Python that cannot be asked says so when it is started.
        match asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).as_deref() {
            Ok(PACKAGE) => Err(MissingProgram::Package { python }),
            Ok(missing) if missing == module => Err(MissingProgram::Module { python, module: missing.to_owned() }),
            _ => Ok(()),
        }
    }
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
