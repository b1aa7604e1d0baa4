//! Arrays of Slurm tasks, for commands that share work over a file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_console::CommandError;

use crate::args::SlurmArray;

/// Times that a task is put back into the queue after a signal has ended it.
const RESTARTS: u32 = 5;

/// Batch scripts in the folder `slurm` of a directory, for tasks that start in the present folder.
pub struct SlurmScripts<'a> {
    program: PathBuf,
    dir: PathBuf,
    here: PathBuf,
    array: &'a SlurmArray,
}

impl<'a> SlurmScripts<'a> {
    /// Scripts of an array for the work in `dir`.
    pub fn new(dir: &Path, array: &'a SlurmArray) -> Result<Self, CommandError> {
        if array.tasks == 0 || array.cpus == 0 || array.at_most == Some(0) {
            return Err(CommandError::input("--array, --cpus and --at-most expect at least 1"));
        }
        Ok(Self {
            program: std::env::current_exe().map_err(CommandError::failed)?,
            dir: fs::canonicalize(dir)
                .map_err(|error| CommandError::input(format!("{}: {error}", Path::display(dir))))?,
            here: std::env::current_dir().map_err(CommandError::failed)?,
            array,
        })
    }

    /// Program in the quotes of a shell.
    pub fn program(&self) -> String {
        quoted(&self.program)
    }

    /// Directory of the work in the quotes of a shell.
    pub fn dir(&self) -> String {
        quoted(&self.dir)
    }

    /// Writes a script.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, CommandError> {
        let folder = self.dir.join("slurm");
        let path = folder.join(name);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }

    /// Script of `tasks` tasks that run the command `run`.
    pub fn tasks(&self, name: &str, tasks: usize, run: &str) -> String {
        let SlurmArray { cpus, at_most, .. } = self.array;
        let (last, limit) = (tasks - 1, at_most.map_or_else(String::new, |most| format!("%{most}")));
        format!(
            r#"#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{last}{limit}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={log}

{here}
{run}
code=$?
# A task that a signal ends goes back into the queue. A task that reports an error does not.
if [ "$code" -ge 128 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {RESTARTS} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
"#,
            log = self.dir.join("slurm/task-%a.log").display(),
            here = self.here(),
        )
    }

    /// Script of one job that runs the command `run`, with the log `log`.
    pub fn job(&self, name: &str, log: &str, run: &str) -> String {
        format!(
            r#"#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={log}

{here}
exec {run}
"#,
            log = self.dir.join("slurm").join(log).display(),
            here = self.here(),
        )
    }

    /// Files of an experiment may be relative to the folder in which the work was begun.
    fn here(&self) -> String {
        format!("cd {} || exit 1", quoted(&self.here))
    }
}

/// Submits a script and gives the id of the job.
pub fn sbatch(script: &Path, options: &[String], more: &[String]) -> Result<String, CommandError> {
    let output = Command::new("sbatch").arg("--parsable").args(options).args(more).arg(script).output();
    let output = output.map_err(|error| {
        CommandError::input(format!("cannot start sbatch: {error}"))
            .with_help("run this on a machine that submits jobs to Slurm, or write the scripts alone with --dry-run")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(CommandError::failed(format!("sbatch {}: {}", script.display(), said.trim())));
    }
    // On a cluster of a federation, `ID;CLUSTER`.
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().split(';').next().unwrap_or_default().to_owned())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_the_array_goes_back_after_a_signal() {
        let array = SlurmArray { slurm: true, tasks: 9, at_most: Some(4), cpus: 2, dry_run: true, options: Vec::new() };
        let (program, dir) = ("/opt/it's/goodput".into(), "/shared/study".into());
        let scripts = SlurmScripts { program, dir, here: "/home/me".into(), array: &array };
        let text = scripts.tasks("goodput-sweep", 9, &format!("{} sweep run {}", scripts.program(), scripts.dir()));
        assert!(text.contains("#SBATCH --array=0-8%4\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n"), "{text}");
        assert!(text.contains("\ncd '/home/me' || exit 1\n'/opt/it'\\''s/goodput' sweep run '/shared/study'\n"));
        assert!(text.contains("scontrol requeue") && text.contains("--output=/shared/study/slurm/task-%a.log"));
        assert!(scripts.job("goodput-merge", "merge.log", "true").ends_with("exec true\n"));
    }
}
