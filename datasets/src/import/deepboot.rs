//! Workloads of DeepBoot (czq693497091/DeepBoot, `experiment/workload`): Pollux's training jobs,
//! and between them requests for inference.
//!
//! Columns `name,time,application,num_replicas,batch_size,duration`; others are ignored, the
//! artifact's unused `num_task` among them. A row with an application `infer-APPLICATION-VARIANT`
//! is a request that holds one accelerator for `duration` seconds; any other row is a training job,
//! and the duration in it means nothing. A row with a bad value or a name used before is refused; a
//! missing column is an error.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_env::time::SimTime;

use super::{Imported, WorkloadFormat, pollux};
use crate::csv_rows::{CsvRow, CsvRows, header_has};
use crate::error::{DataError, RowProblem};
use crate::requests::RequestRow;

/// Columns of a workload of this kind, first the columns of Pollux's workloads.
pub const COLUMNS: &[&str] = &["name", "time", "application", "num_replicas", "batch_size", "duration"];

/// Column that Pollux's workloads lack.
pub const OWN_COLUMN: &str = "duration";

/// Whether the header of a file is one of these: most of Pollux's columns, and the column that they lack.
pub fn recognises(header: &[u8]) -> bool {
    let found = pollux::COLUMNS.iter().filter(|column| header_has(header, &[column])).count();
    found >= 3 && header_has(header, &[OWN_COLUMN])
}

/// Reads the bytes of a workload; `path` is for messages.
///
/// # Errors
/// Where the header lacks a column, or there is no row at all.
pub fn parse(path: &Path, text: &[u8]) -> Result<Imported, DataError> {
    let mut rows = CsvRows::new(path, text, COLUMNS)?;
    let mut imported = Imported { format: WorkloadFormat::DeepBoot, ..Imported::default() };
    let mut names = BTreeMap::new();
    while let Some(row) = rows.next(COLUMNS) {
        let read = row.and_then(|row| {
            let line = row.line;
            let name = row.text(0).unwrap_or_default();
            let read = match names.get(name) {
                Some(&first) => Err(RowProblem::Duplicate { name: name.to_owned(), first }),
                None => {
                    names.insert(name.to_owned(), line);
                    add(&row, &mut imported)
                }
            };
            read.map_err(|problem| (line, problem))
        });
        if let Err((line, problem)) = read {
            imported.report.refuse(line, problem);
        }
    }
    imported.finish(path)
}

fn add(row: &CsvRow<'_, '_>, imported: &mut Imported) -> Result<(), RowProblem> {
    let Some(model) = row.text(2)?.strip_prefix("infer-") else {
        imported.jobs.push(pollux::job(row)?);
        return Ok(());
    };
    let Some((application, variant)) =
        model.rsplit_once('-').filter(|(name, variant)| !name.is_empty() && !variant.is_empty())
    else {
        return Err(row.problem(2, "infer-APPLICATION-VARIANT"));
    };
    if row.count(3)? != 1 {
        return Err(row.problem(3, "1: a request holds one accelerator"));
    }
    imported.requests.push(RequestRow {
        line: row.line,
        name: row.text(0)?.to_owned(),
        submit: SimTime::from_secs_f64(row.at_least(1, 0.0, "a time in seconds of at least 0")?),
        model: format!("infer-{application}-{variant}"),
        application: application.to_owned(),
        duration: SimTime::from_secs_f64(row.at_least(5, 0.001, "a positive number of seconds")?),
    });
    Ok(())
}
