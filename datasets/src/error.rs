//! Errors of data: the file, the line, the problem and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use goodput_env::application::TableError;
use goodput_env::model::{BatchLimitsError, ProfileError};
use thiserror::Error;

/// A file that cannot be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// No format is recognised by the file's header.
    #[error("{}:1: the header `{found}` is of no known format", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// First line, shortened.
        found: String,
    },
    /// A column is missing.
    #[error("{}:1: column `{column}` is missing; found {found}", path.display())]
    MissingColumn {
        /// Path of the file.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// Columns that were found.
        found: String,
    },
    /// A panel has no series of this name.
    #[error("{}: no series `{id}`; found {found}", path.display())]
    NoSeries {
        /// Path of the file.
        path: PathBuf,
        /// Name that was asked for.
        id: String,
        /// Names of the first series that were found.
        found: String,
    },
    /// A series of a panel that is none.
    #[error("{}: series `{id}`: fewer than two values, or times that are not evenly spaced", path.display())]
    NotASeries {
        /// Path of the file.
        path: PathBuf,
        /// Name of the series.
        id: String,
    },
    /// No sample has this name.
    #[error("{}: there is no such sample", path.display())]
    NoSample {
        /// Name with the prefix.
        path: PathBuf,
    },
    /// Several series where one is expected.
    #[error("{}: {found} series where one is expected", path.display())]
    ManySeries {
        /// Path of the file.
        path: PathBuf,
        /// Number of series.
        found: usize,
    },
    /// A series has no column of times.
    #[error("{}:1: no column of times: none is called {known}; found {found}", path.display())]
    NoTimes {
        /// Path of the file.
        path: PathBuf,
        /// Names that a column of times may have.
        known: String,
        /// Columns that were found.
        found: String,
    },
    /// A trace of which a second file is missing.
    #[error("{}: {what}", path.display())]
    Incomplete {
        /// Path of the file that is there.
        path: PathBuf,
        /// Missing thing, as a sentence.
        what: String,
        /// Remedy for the user.
        remedy: &'static str,
    },
    /// An assumption about scaling that is none.
    #[error("{}: {what}", path.display())]
    Assumption {
        /// The file, or the text in its place.
        path: PathBuf,
        /// Problem that was found.
        what: String,
    },
    /// A directory of which a choice fits no run, or several.
    #[error("{}: {found} runs fit, expected one: {known}", path.display())]
    Runs {
        /// Path of the table of the runs.
        path: PathBuf,
        /// Runs that fit.
        found: usize,
        /// Names of these runs, or of all.
        known: String,
    },
    /// There are no rows.
    #[error("{}: no rows", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// A row cannot be used.
    #[error("{}:{line}: {problem}", path.display())]
    Row {
        /// Path of the file.
        path: PathBuf,
        /// Line in the file, from 1; row number from 1 for Parquet.
        line: u64,
        /// Problem that was found.
        problem: RowProblem,
    },
    /// JSON that is broken, or of another shape than expected.
    #[error("{}: {at}: {problem}", path.display())]
    Json {
        /// Path of the file.
        path: PathBuf,
        /// Place in the file.
        at: String,
        /// Problem at that place.
        problem: String,
    },
    /// A profile lacks rows that its neighbours imply.
    #[error("{}:{line}: the profile has a hole: {what}", path.display())]
    Hole {
        /// Path of the file.
        path: PathBuf,
        /// Line in the file where the hole shows.
        line: u64,
        /// Part that is missing.
        what: String,
    },
    /// A directory of profiles without an application in it.
    #[error("{}: no application: expected directories with `placements.csv` and `validation-<batch size>.csv`", path.display())]
    NoProfiles {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Step times that no step can have taken, or twice the same.
    #[error("{}: {source}", path.display())]
    Profile {
        /// The file or directory.
        path: PathBuf,
        /// The environment's objection.
        source: ProfileError,
    },
    /// Limits that contradict each other.
    #[error("{}: {source}", path.display())]
    Limits {
        /// The file or directory.
        path: PathBuf,
        /// The environment's objection.
        source: BatchLimitsError,
    },
    /// A table by epoch that is not one.
    #[error("{}: {source}", path.display())]
    Table {
        /// The file or directory.
        path: PathBuf,
        /// The environment's objection.
        source: TableError,
    },
    /// Parquet that cannot be decoded or encoded.
    #[cfg(feature = "traces")]
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// The library's objection.
        source: parquet::errors::ParquetError,
    },
    /// A Parquet column of another type than expected.
    #[error("{}: column `{column}` is {found}, expected {expected}", path.display())]
    ColumnType {
        /// Path of the file.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// Type that was expected.
        expected: String,
        /// Type that was found.
        found: String,
    },
    /// Columns of a table to be written do not belong together.
    #[error("{}: column `{column}` has {found} values, the first has {expected}", path.display())]
    Ragged {
        /// Path of the file.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// Number of values of the first column.
        expected: usize,
        /// Number of values of this one.
        found: usize,
    },
    /// A catalog that is not valid TOML of the expected shape.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Catalog {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// Message of the parser.
        message: String,
    },
    /// An application of the catalog that contradicts itself.
    #[error("{}: application `{application}`: {what}", path.display())]
    Application {
        /// Path of the file.
        path: PathBuf,
        /// Name of the entry.
        application: String,
        /// Problem that was found.
        what: String,
    },
    /// A list of accelerators that is not valid TOML of the expected shape.
    #[error("{}:{line}:{column}: {message}", path.display())]
    AcceleratorFile {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// Message of the parser.
        message: String,
    },
    /// An accelerator type that contradicts itself.
    #[error("{}: accelerator `{accelerator}`: {what}", path.display())]
    Accelerator {
        /// Path of the file.
        path: PathBuf,
        /// Name of the entry.
        accelerator: String,
        /// Problem that was found.
        what: String,
    },
}

/// Problem of one row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowProblem {
    /// Too many or too few fields, or an unclosed quote.
    #[error("the row has {found} fields, the header {expected}")]
    Fields {
        /// Fields in the row.
        found: usize,
        /// Fields in the header.
        expected: usize,
    },
    /// Not a number, out of range or not finite.
    #[error("{column} is `{value}`, expected {expected}")]
    Value {
        /// Name of the column.
        column: &'static str,
        /// Text of the value, shortened.
        value: String,
        /// Description of a valid value.
        expected: &'static str,
    },
    /// A job name for the second time.
    #[error("job `{name}` is also on line {first}")]
    Duplicate {
        /// Name that was given.
        name: String,
        /// Line of the first.
        first: u64,
    },
    /// An application that the catalog does not have.
    #[error("application `{name}` is not in the catalog ({known})")]
    UnknownApplication {
        /// Name that was given.
        name: String,
        /// Names that are known.
        known: String,
    },
    /// A class of jobs without a measured speed.
    #[error("jobs of type `{name}` on {gpus} accelerators have no measured speed (known at that size: {known})")]
    UnknownClass {
        /// Name of the class.
        name: String,
        /// Number of accelerators.
        gpus: u32,
        /// Names that are known.
        known: String,
    },
    /// A class of jobs beyond the most that a workload holds.
    #[error("the trace has more than {most} kinds of jobs")]
    Classes {
        /// Most classes of a workload.
        most: usize,
    },
    /// Neither a duration nor an application: there is nothing to simulate.
    #[error("the job has neither an application nor a duration")]
    NoWork,
    /// An inference request where only jobs go.
    #[error("the row is an inference request: the job table holds jobs only")]
    Request,
    /// A row too many.
    #[error("one row too many: expected {expected}")]
    Extra {
        /// Description of the only row.
        expected: &'static str,
    },
    /// A job that asks for a share and for several sizes.
    #[error("a job with a share of {gpus} gpus runs on exactly these, not on {min} to {max}; drop gpu_min and gpu_max")]
    SharedSizes {
        /// Accelerators asked for.
        gpus: u32,
        /// Fewest accelerators that the row names.
        min: u32,
        /// Most accelerators that the row names.
        max: u32,
    },
    /// A size at which no plan of the application was measured.
    #[error("{application} cannot run on {found} accelerators: its published plans have {least} to {most}")]
    Plans {
        /// Application of the job.
        application: String,
        /// Size that the row names.
        found: u32,
        /// Accelerators of the smallest plan.
        least: u32,
        /// Accelerators of the largest plan.
        most: u32,
    },
    /// Sizes that contradict each other.
    #[error("gpus {gpus} are not within gpu_min {min} and gpu_max {max}")]
    Sizes {
        /// Number that the job asks for.
        gpus: u32,
        /// Fewest accelerators that the job accepts.
        min: u32,
        /// Most accelerators that the job can use.
        max: u32,
    },
}

impl RowProblem {
    /// Short name of the kind of problem, for counts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fields { .. } => "number of fields",
            Self::Value { column, .. } => column,
            Self::Duplicate { .. } => "duplicate job",
            Self::UnknownApplication { .. } => "unknown application",
            Self::UnknownClass { .. } => "unknown class",
            Self::Classes { .. } => "number of kinds",
            Self::NoWork => "nothing to do",
            Self::Sizes { .. } | Self::SharedSizes { .. } | Self::Plans { .. } => "sizes",
            Self::Request => "inference request",
            Self::Extra { .. } => "extra row",
        }
    }

    /// Remedy: what the user can do about the error.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Fields { .. } => "give every row as many fields as the header",
            Self::Value { .. } => "correct the value, or drop the row with `goodput data import`",
            Self::Duplicate { .. } => "rename one of the jobs",
            Self::UnknownApplication { .. } => "use a catalogued application, or give its measurements with --profiles",
            Self::Classes { .. } => "split the trace, or import it with `goodput data import --throughputs`",
            Self::UnknownClass { .. } => "add the type to the file of throughputs, or drop the row",
            Self::NoWork => "give a duration_secs or an application",
            Self::Request => "name the original file as the workload instead of importing it",
            Self::Extra { .. } => "keep the first row only",
            Self::Sizes { .. } => "keep gpu_min <= gpus <= gpu_max",
            Self::Plans { .. } => "give gpus, gpu_min and gpu_max within the sizes of the plans",
            Self::SharedSizes { .. } => "drop gpu_min and gpu_max of jobs with a share",
        }
    }
}

impl DataError {
    /// The file the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Format { path, .. }
            | Self::MissingColumn { path, .. }
            | Self::NoTimes { path, .. }
            | Self::NoSeries { path, .. }
            | Self::NotASeries { path, .. }
            | Self::ManySeries { path, .. }
            | Self::NoSample { path }
            | Self::Empty { path }
            | Self::Incomplete { path, .. }
            | Self::Runs { path, .. }
            | Self::Assumption { path, .. }
            | Self::Row { path, .. }
            | Self::Json { path, .. }
            | Self::Hole { path, .. }
            | Self::NoProfiles { path }
            | Self::Profile { path, .. }
            | Self::Limits { path, .. }
            | Self::Table { path, .. }
            | Self::ColumnType { path, .. }
            | Self::Ragged { path, .. }
            | Self::Catalog { path, .. }
            | Self::Application { path, .. }
            | Self::AcceleratorFile { path, .. }
            | Self::Accelerator { path, .. } => path,
            #[cfg(feature = "traces")]
            Self::Parquet { path, .. } => path,
        }
    }

    /// Line in the file, from 1, where there is one.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Row { line, .. }
            | Self::Hole { line, .. }
            | Self::Catalog { line, .. }
            | Self::AcceleratorFile { line, .. } => Some(*line),
            Self::Format { .. } | Self::MissingColumn { .. } | Self::NoTimes { .. } => Some(1),
            _ => None,
        }
    }

    /// Remedy: what the user can do about the error.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read { .. } => "paths are relative to the folder in which the command runs",
            Self::Write { .. } => "choose a directory that exists and can be written",
            Self::Format { found, .. } if !found.contains(',') && found.contains([';', '\t']) => {
                "separate the columns by commas"
            }
            Self::Format { .. } => {
                "a table of your own begins with job_id,submit_secs,duration_secs,gpus; \
                 `goodput list formats -o wide` shows the other headers"
            }
            Self::NoSeries { .. } => {
                "series.ids names values of `unique_id` in a long table, and columns in a wide one; `a*` is every name that begins with a"
            }
            Self::NotASeries { .. } => "leave the series out with series.ids",
            Self::NoSample { .. } => "the sample of a load is sample:load",
            Self::ManySeries { .. } => "name one with series.ids = [\"NAME\"]",
            Self::NoTimes { .. } => {
                "rename the column of times; rows at a fixed distance need none where step_secs is set"
            }
            Self::MissingColumn { .. } => "`goodput list formats -o wide` shows the columns of each format",
            Self::Incomplete { remedy, .. } => remedy,
            Self::Runs { .. } => "choose one by --policy, --workload and --seed",
            Self::Assumption { .. } => "`goodput list applications` shows the names that an assumption may have",
            Self::Empty { .. } => "a workload needs at least one job below its header",
            Self::Row { problem, .. } => problem.remedy(),
            Self::Json { .. } => "take the file from the original artifact again",
            Self::Hole { .. } => "restore the missing rows or files from the original profile",
            Self::NoProfiles { .. } => "point --profiles at the directory that holds one directory an application",
            Self::Profile { .. } | Self::Limits { .. } | Self::Table { .. } => {
                "restore the files from the original profile"
            }
            #[cfg(feature = "traces")]
            Self::Parquet { .. } => "the file is damaged or not Parquet: import it again",
            Self::ColumnType { .. } => "write the file with `goodput data import`",
            Self::Ragged { .. } => "give every column as many values",
            Self::AcceleratorFile { .. } | Self::Accelerator { .. } => {
                "correct the entry; the shipped datasets/catalog/accelerators.toml shows every field"
            }
            Self::Catalog { .. } | Self::Application { .. } => {
                "`goodput data fit --profiles DIR -o FILE` writes a valid catalog"
            }
        }
    }

    /// Binds an I/O error to the file that could not be read.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Read { path, source }
    }

    /// Binds an I/O error to the file that could not be written.
    #[cfg(feature = "traces")]
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Write { path, source }
    }

    /// Binds an error of writing Parquet to its file: of the operating system, or of the library.
    #[cfg(feature = "traces")]
    pub(crate) fn write_parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError::External;
        let path = path.to_owned();
        |source| match source {
            External(cause) => match cause.downcast() {
                Ok(source) => Self::Write { path, source: *source },
                Err(cause) => Self::Parquet { path, source: External(cause) },
            },
            source => Self::Parquet { path, source },
        }
    }

    /// Binds a Parquet error to its file.
    #[cfg(feature = "traces")]
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let path = path.to_owned();
        |source| Self::Parquet { path, source }
    }
}
