//! `goodput data fit-llm`: a model of prefill and decode from measured times.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use goodput_console::{Cell, CommandError, Listing, OutputFormat, counted, say};
use goodput_datasets::DataError;
use goodput_datasets::fit::llm::check::{Errors, Unseen, median, unseen};
use goodput_datasets::fit::llm::{SILICON_SOURCE, TwoStages};
use goodput_datasets::import::silicon::{self, DividedRow, SiliconTable};

use crate::args::FitLlm;
use crate::command::sim::data_fault;

/// Runs `goodput data fit-llm` and gives its exit code.
pub fn run(asked: &FitLlm) -> Result<ExitCode, CommandError> {
    let (mut rows, mut divided) = (Vec::new(), Vec::new());
    for file in &asked.files {
        let read = read(file)?;
        rows.extend(read.rows);
        divided.extend(read.divided);
    }
    if rows.is_empty() {
        return Err(data_fault(DataError::Empty { path: asked.files[0].clone() })
            .with_help("a fit needs rows of replicas that do not divide prefill and decode"));
    }
    let fit = TwoStages::fit(&rows.iter().collect::<Vec<_>>());
    let mut table = Listing::new(&["rows of", "unseen", "backend", "rows", "ttft_median_ape", "tpot_median_ape"]);
    add(&mut table, "fit", "nothing", "all", &Errors::of(&fit, &rows));
    if asked.check {
        for (what, unseen_of) in
            [("load", Unseen::Load), ("configuration", Unseen::Configuration), ("model", Unseen::Model)]
        {
            let by_backend = unseen(&rows, unseen_of);
            let mut all = Errors::default();
            for (_, errors) in &by_backend {
                all.ttft.extend(&errors.ttft);
                all.tpot.extend(&errors.tpot);
            }
            add(&mut table, "check", what, "all", &all);
            for (backend, errors) in &by_backend {
                add(&mut table, "check", what, backend, errors);
            }
        }
        let backend = |row: &DividedRow| row.decode.configuration.backend.clone();
        if !divided.is_empty() {
            add(&mut table, "check", "division", "all", &Errors::of_divided(&fit, &divided));
        }
        for name in divided.iter().map(backend).collect::<BTreeSet<_>>() {
            let errors = Errors::of_divided(&fit, divided.iter().filter(|row| backend(row) == name));
            add(&mut table, "check", "division", &name, &errors);
        }
    }
    if let Some(file) = &asked.test {
        let test = read(file)?;
        add(&mut table, "test", "as the file", "all", &Errors::of(&fit, &test.rows));
        if !test.divided.is_empty() {
            add(&mut table, "test", "division", "all", &Errors::of_divided(&fit, &test.divided));
        }
    }
    table.print(OutputFormat::Table)?;
    if let Some(out) = &asked.out {
        let catalog = fit.replicas(&rows, source(&asked.files));
        fs::write(out, catalog.to_toml())
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", out.display())))?;
        say(&format!("wrote {} to {}", counted(catalog.replicas.len() as u64, "replica"), out.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Citation of the files. Those of AIConfigurator are known by their name.
fn source(files: &[PathBuf]) -> String {
    let names = files.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let (known, own): (Vec<String>, Vec<String>) = names.partition(|name| name.starts_with("silicon_sample"));
    let known = (!known.is_empty()).then(|| SILICON_SOURCE.to_owned());
    let own = (!own.is_empty()).then(|| format!("fitted to {}", own.join(", ")));
    known.into_iter().chain(own).collect::<Vec<_>>().join("; ")
}

fn read(file: &Path) -> Result<SiliconTable, CommandError> {
    let (table, report) = silicon::read(file).map_err(data_fault)?;
    say(&format!("{}: {report}", file.display()));
    if table.rows.is_empty() && table.divided.is_empty() {
        return Err(data_fault(DataError::Empty { path: file.to_owned() })
            .with_help("a table of measured times needs at least one row that is kept below its header"));
    }
    Ok(table)
}

fn add(table: &mut Listing, of: &str, unseen: &str, backend: &str, errors: &Errors) {
    let share = |values: &[f64]| Cell::option(median(values), |median| Cell::Number(median, 4));
    table.push(vec![
        of.into(),
        unseen.into(),
        backend.into(),
        Cell::Whole(errors.tpot.len() as i64),
        share(&errors.ttft),
        share(&errors.tpot),
    ]);
}
