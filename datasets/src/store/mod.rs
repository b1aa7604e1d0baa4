//! Store: tables on disk, as Parquet or csv.
//!
//! Arrow and Parquet cost minutes to build, so they live in this room only: other rooms hand over
//! plain vectors as [`table::Column`]s. Equal tables give equal bytes: no timestamps, one
//! compression level, one version string.

mod choice;
pub mod decisions;
pub mod jobs;
pub mod provenance;
pub mod table;
mod writer;

pub use choice::TextChoice;
pub use decisions::DecisionLog;
pub use provenance::DataProvenance;
pub use table::{Column, Table, Values};
pub use writer::TableWriter;
