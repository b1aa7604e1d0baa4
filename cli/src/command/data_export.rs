//! `goodput data export`: a workload or the schedule of a run for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use goodput_console::{CommandError, counted, say};
use goodput_datasets::export::{RunChoice, RunSchedule, perfetto, swf, unscheduled};
use goodput_datasets::store::{Table, jobs};
use goodput_datasets::{Catalog, read_jobs};

use crate::args::ExportFormat;
use crate::command::sim::data_fault;

/// Writes `source` to `out`.
pub fn run(source: &Path, choice: &RunChoice, format: ExportFormat, out: &Path) -> Result<ExitCode, CommandError> {
    let count = if source.is_dir() { of_run(source, choice, format, out)? } else { of_workload(source, format, out)? };
    say(&format!("wrote {} to {}", counted(count as u64, "job"), out.display()));
    Ok(ExitCode::SUCCESS)
}

fn of_run(dir: &Path, choice: &RunChoice, format: ExportFormat, out: &Path) -> Result<usize, CommandError> {
    let schedule = RunSchedule::read(dir, choice).map_err(data_fault)?;
    match format {
        ExportFormat::Swf => write(out, |file| swf::write(&schedule.jobs, file))?,
        ExportFormat::Perfetto => write(out, |file| perfetto::write(&schedule, file))?,
        ExportFormat::Parquet | ExportFormat::Csv => write_table(&schedule.table, format, out)?,
    }
    Ok(schedule.jobs.len())
}

fn of_workload(file: &Path, format: ExportFormat, out: &Path) -> Result<usize, CommandError> {
    let imported = read_jobs(file).map_err(data_fault)?;
    let refused = imported.report.refused.count;
    if refused > 0 {
        say(&format!("{} refused; `goodput data validate` lists them", counted(refused, "row")));
    }
    match format {
        ExportFormat::Swf => {
            let jobs = unscheduled(&imported.jobs, Catalog::shipped());
            write(out, |file| swf::write(&jobs, file))?;
        }
        ExportFormat::Perfetto => {
            return Err(CommandError::input(format!("{}: a workload has no schedule to show", file.display()))
                .with_help("run it with `goodput eval`, and name the run directory"));
        }
        ExportFormat::Parquet | ExportFormat::Csv => write_table(&jobs::table(&imported.jobs), format, out)?,
    }
    Ok(imported.jobs.len())
}

fn write_table(table: &Table, format: ExportFormat, out: &Path) -> Result<(), CommandError> {
    if format == ExportFormat::Parquet {
        return table.write_parquet(out).map_err(data_fault);
    }
    let file = File::create(out).map_err(|error| unwritten(out, &error))?;
    table.write_csv(out, BufWriter::new(file)).map_err(data_fault)
}

fn write(out: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandError> {
    let written = || {
        let mut file = BufWriter::new(File::create(out)?);
        write(&mut file)?;
        file.flush()
    };
    written().map_err(|error| unwritten(out, &error))
}

fn unwritten(out: &Path, error: &io::Error) -> CommandError {
    CommandError::input(format!("cannot write {}: {error}", out.display()))
}
