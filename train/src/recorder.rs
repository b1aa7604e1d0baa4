//! Recorder of training figures: a CSV file, with copies in Parquet and for TensorBoard.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use goodput_datasets::store::{Column, Table};
use tensorboard_rs::summary_writer::SummaryWriter;

use crate::run_dir::{RunDir, RunDirError};

/// One row of figures: names as Stable-Baselines3 and CleanRL use them, with the value of each.
pub type ProgressFigures = Vec<(&'static str, f64)>;

/// Writes figures as they come.
pub struct Recorder {
    path: PathBuf,
    parquet: PathBuf,
    text: String,
    tensorboard: Option<SummaryWriter>,
}

impl Recorder {
    /// Starts recording in `name`.csv, `name`.parquet and `tb/name` of `dir`. On a resumed run,
    /// rows after `steps` are dropped: they will be made again.
    ///
    /// # Errors
    /// [`RunDirError`] where the directory cannot be written.
    pub fn new(dir: &RunDir, name: &str, steps: u64) -> Result<Self, RunDirError> {
        let path = dir.path(&format!("{name}.csv"));
        let earlier = fs::read_to_string(&path).unwrap_or_default();
        // The header does not begin with a number, so it stays.
        let kept = |line: &&str| {
            line.split(',').next().and_then(|first| first.parse::<u64>().ok()).is_none_or(|at| at <= steps)
        };
        let text: String = earlier.lines().filter(kept).flat_map(|line| [line, "\n"]).collect();
        dir.write(&format!("{name}.csv"), text.as_bytes())?;
        let folder = dir.path(&format!("tb/{name}"));
        let tensorboard = catch_unwind(|| SummaryWriter::new(folder)).ok();
        Ok(Self { path, parquet: dir.path(&format!("{name}.parquet")), text, tensorboard })
    }

    /// Records one row. All rows of a run have the same figures in the same order.
    ///
    /// # Errors
    /// [`RunDirError`] where a file cannot be written.
    pub fn record(&mut self, steps: u64, figures: &ProgressFigures) -> Result<(), RunDirError> {
        if self.text.is_empty() {
            let columns: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
            self.text = format!("time/total_timesteps,{}\n", columns.join(","));
        }
        let values: Vec<String> =
            figures.iter().map(|(_, value)| if value.is_nan() { String::new() } else { value.to_string() }).collect();
        self.text += &format!("{steps},{}\n", values.join(","));
        fs::write(&self.path, &self.text).map_err(|source| RunDirError::Write { path: self.path.clone(), source })?;
        table(&self.text).write_parquet(&self.parquet)?;
        self.write_tensorboard(steps, figures);
        Ok(())
    }

    /// Writes the figures for TensorBoard too. The thread of tensorboard-rs panics where it cannot
    /// write, and every later call panics with it. `progress.csv` is complete, so the run then goes on
    /// without TensorBoard.
    fn write_tensorboard(&mut self, steps: u64, figures: &ProgressFigures) {
        let Some(mut writer) = self.tensorboard.take() else { return };
        let written = catch_unwind(AssertUnwindSafe(|| {
            for (name, value) in figures.iter().filter(|(_, value)| value.is_finite()) {
                writer.add_scalar(name, *value as f32, steps as usize);
            }
            writer.flush();
        }));
        match written {
            Ok(()) => self.tensorboard = Some(writer),
            // Dropping it would panic as well.
            Err(_) => std::mem::forget(writer),
        }
    }
}

/// The rows of the csv file as columns: the number of steps, then the figures; an empty field is
/// missing.
fn table(csv: &str) -> Table {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let rows: Vec<_> = lines.collect();
    let field = |row: &Vec<&str>, at: usize| row.get(at).copied().unwrap_or_default().to_owned();
    let column = |(at, name): (usize, &&str)| match at {
        0 => Column::new(*name, rows.iter().map(|row| field(row, at).parse::<i64>().ok()).collect::<Vec<_>>()),
        _ => Column::new(*name, rows.iter().map(|row| field(row, at).parse::<f64>().ok()).collect::<Vec<_>>()),
    };
    Table::new(names.iter().enumerate().map(column).collect())
}
