//! Options of the commands that write pages of the book.

use std::path::PathBuf;

/// Options of `results`.
#[derive(Debug, clap::Args)]
pub struct Results {
    /// Run directories with a `summary.json`, as `train` and `eval` write it.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Metrics of the table by key (see `goodput list metrics`) [default: those of the report].
    #[arg(long, value_delimiter = ',', value_name = "METRIC,...")]
    pub columns: Vec<String>,
}

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub struct Man {
    /// Folder for the pages.
    #[arg(long, value_name = "FOLDER")]
    pub write: PathBuf,
}

/// Options of `reference`.
#[derive(Debug, clap::Args)]
pub struct Reference {
    /// Folder for the pages.
    #[arg(long, value_name = "FOLDER")]
    pub write: PathBuf,
}
