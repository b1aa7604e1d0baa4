//! Store: tables on disk, as Parquet or csv.
//!
//! Arrow and Parquet cost minutes to build, so they live in this room only: other rooms hand over
//! plain vectors as [`table::Column`]s. Equal tables give equal bytes: no timestamps, one
//! compression level, one version string.

mod choice;
pub mod decisions;
pub mod jobs;
pub mod provenance;
mod reader;
pub mod schema;
pub mod table;
mod writer;

pub use choice::TextChoice;
pub use decisions::DecisionLog;
pub use provenance::DataProvenance;
pub(crate) use reader::{decode, metadata_of};
pub use table::{Column, Table, Values};
pub(crate) use writer::ROW_GROUP;
pub use writer::TableWriter;
