//! A sweep on Slurm: an array of tasks, and the merge that follows them.

use std::path::Path;

use goodput_console::{CommandError, say};
use goodput_eval::sweep::SweepPlan;

use crate::args::SlurmArray;
use crate::command::slurm::{SlurmScripts, sbatch};
use crate::command::study::fault;

/// Writes the scripts of the array and of the merge to the folder `slurm` of the sweep, and submits them.
pub fn submit(dir: &Path, array: &SlurmArray) -> Result<(), CommandError> {
    let plan = SweepPlan::read(dir).map_err(fault)?;
    let scripts = SlurmScripts::new(dir, array)?;
    // A task without cells would only wait in the queue.
    let tasks = array.tasks.min(plan.cells.len());
    let (program, sweep) = (scripts.program(), scripts.dir());
    let run = format!(
        r#"{program} sweep run {sweep} --shard "$SLURM_ARRAY_TASK_ID/{tasks}" --jobs {cpus}"#,
        cpus = array.cpus
    );
    let first = scripts.write("tasks.sh", &scripts.tasks("goodput-sweep", tasks, &run))?;
    let merge = format!("{program} sweep merge {sweep}");
    let second = scripts.write("merge.sh", &scripts.job("goodput-merge", "merge.log", &merge))?;
    if array.dry_run {
        say(&format!("wrote {} and {}", first.display(), second.display()));
        return Ok(());
    }
    let first = sbatch(&first, &array.options, &[])?;
    let second = sbatch(&second, &array.options, &[format!("--dependency=afterany:{first}")])?;
    say(&format!("submitted {tasks} tasks as job {first}, and the merge after them as job {second}"));
    say(&format!("watch them with: goodput sweep status {}", dir.display()));
    Ok(())
}
