//! A sweep on Slurm: an array of tasks, and the merge that follows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_console::{CommandError, say};
use goodput_eval::sweep::SweepPlan;

use crate::args::SlurmArray;
use crate::command::study::fault;

/// Times that a task is put back into the queue after a signal has ended it.
const RESTARTS: u32 = 5;

/// Writes the scripts of the array and of the merge to the folder `slurm` of the sweep, and submits them.
pub fn submit(dir: &Path, array: &SlurmArray) -> Result<(), CommandError> {
    let plan = SweepPlan::read(dir).map_err(fault)?;
    if array.tasks == 0 || array.cpus == 0 || array.at_most == Some(0) {
        return Err(CommandError::input("--array, --cpus and --at-most expect at least 1"));
    }
    let scripts = Scripts {
        program: std::env::current_exe().map_err(CommandError::failed)?,
        dir: fs::canonicalize(dir).map_err(CommandError::failed)?,
        here: std::env::current_dir().map_err(CommandError::failed)?,
        // A task without cells would only wait in the queue.
        tasks: array.tasks.min(plan.cells.len()),
        array,
    };
    let folder = scripts.dir.join("slurm");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        Ok::<PathBuf, CommandError>(path)
    };
    let (tasks, merge) = (write("tasks.sh", scripts.tasks())?, write("merge.sh", scripts.merge())?);
    if array.dry_run {
        say(&format!("wrote {} and {}", tasks.display(), merge.display()));
        return Ok(());
    }
    let first = sbatch(&tasks, &array.options, &[])?;
    let second = sbatch(&merge, &array.options, &[format!("--dependency=afterany:{first}")])?;
    say(&format!("submitted {} tasks as job {first}, and the merge after them as job {second}", scripts.tasks));
    say(&format!("watch them with: goodput sweep status {}", dir.display()));
    Ok(())
}

/// Submits a script and gives the id of the job.
fn sbatch(script: &Path, options: &[String], more: &[String]) -> Result<String, CommandError> {
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

/// Batch scripts of a sweep.
struct Scripts<'a> {
    program: PathBuf,
    dir: PathBuf,
    here: PathBuf,
    tasks: usize,
    array: &'a SlurmArray,
}

impl Scripts<'_> {
    fn tasks(&self) -> String {
        let SlurmArray { cpus, at_most, .. } = self.array;
        let (last, limit) = (self.tasks - 1, at_most.map_or_else(String::new, |most| format!("%{most}")));
        let run = format!("{} sweep run {}", quoted(&self.program), quoted(&self.dir));
        format!(
            r#"#!/bin/bash
#SBATCH --job-name=goodput-sweep
#SBATCH --array=0-{last}{limit}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={log}

{here}
{run} --shard "$SLURM_ARRAY_TASK_ID/{tasks}" --jobs {cpus}
code=$?
# A task that a signal ends goes back into the queue. A task that reports an error does not.
if [ "$code" -ge 128 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {RESTARTS} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
"#,
            log = self.dir.join("slurm/task-%a.log").display(),
            here = self.here(),
            tasks = self.tasks,
        )
    }

    fn merge(&self) -> String {
        format!(
            r#"#!/bin/bash
#SBATCH --job-name=goodput-merge
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={log}

{here}
exec {program} sweep merge {dir}
"#,
            log = self.dir.join("slurm/merge.log").display(),
            here = self.here(),
            program = quoted(&self.program),
            dir = quoted(&self.dir),
        )
    }

    /// Files of an experiment may be relative to the folder of the plan.
    fn here(&self) -> String {
        format!("cd {} || exit 1", quoted(&self.here))
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_the_array_runs_its_shard_and_goes_back_after_a_signal() {
        let array = SlurmArray { slurm: true, tasks: 9, at_most: Some(4), cpus: 2, dry_run: true, options: Vec::new() };
        let (program, dir) = ("/opt/it's/goodput".into(), "/shared/study".into());
        let scripts = Scripts { program, dir, here: "/home/me".into(), tasks: 9, array: &array };
        let text = scripts.tasks();
        assert!(text.contains("#SBATCH --array=0-8%4\n"), "{text}");
        assert!(
            text.contains(
                r#"'/opt/it'\''s/goodput' sweep run '/shared/study' --shard "$SLURM_ARRAY_TASK_ID/9" --jobs 2"#
            )
        );
        assert!(text.contains("scontrol requeue") && text.contains("cd '/home/me' || exit 1"), "{text}");
        assert!(scripts.merge().contains("sweep merge '/shared/study'"));
    }
}
