//! Public traces, synthetic workloads and rollouts, all as Arrow tables in Parquet.
//!
//! Layout, in the direction data flows:
//!
//! - [`import`]: readers, one file for each public format; each gives rows of the job table and a
//!   report of the rows that it repaired or refused.
//! - [`jobs`]: the job table, and the `Workload` of the environment made from it.
//! - [`store`]: the table as Parquet with units in column names and provenance in the metadata; any
//!   table of columns as Parquet or CSV.
//! - [`catalog`]: the applications that jobs train, as shipped with the product; [`fit`] makes it
//!   from public measurements.
//! - [`accelerators`]: memory, power and throughput of accelerator types, with sources.
//! - [`serving`]: inference models with the speed of a replica by accelerator type, with sources.
//! - [`llm`]: language models as services, and replicas with fitted steps.
//! - [`synth`]: workload generators by seed.
//! - [`scaling`]: an assumption about the scaling of jobs of unknown applications, stated at import.
//! - [`speed_table`]: models of a trace with measured speeds by number of accelerators.
//! - [`export`]: workloads and schedules for other programs.
//! - [`resample`]: other traces that could have been, drawn from one trace.
//! - [`tensors`]: sizes of the tensors of the published models.
//! - [`samples`]: small public files that are part of the program.
//! - [`inspect`], [`validate`]: the demand of a workload on a cluster, and its errors.
//!
//! **Invariant.** Nothing is silently dropped: a row is kept, repaired on record or refused on
//! record, with its line. Importing is lenient and reports; running is strict: [`read_workload`]
//! refuses a file with a refused row, because a simulation of 159 of 160 jobs compares with
//! nothing.

pub mod accelerators;
pub mod catalog;
#[cfg(feature = "traces")]
mod csv_rows;
pub mod error;
#[cfg(feature = "traces")]
pub mod export;
#[cfg(feature = "traces")]
pub mod fit;
#[cfg(feature = "traces")]
pub mod import;
#[cfg(feature = "traces")]
pub mod inspect;
#[cfg(feature = "traces")]
pub mod jobs;
pub mod language_models;
pub mod llm;
#[cfg(feature = "traces")]
pub mod requests;
#[cfg(feature = "traces")]
pub mod resample;
pub mod samples;
#[cfg(feature = "traces")]
pub mod scaling;
pub mod serving;
#[cfg(feature = "traces")]
pub mod speed_table;
#[cfg(feature = "traces")]
pub mod store;
#[cfg(feature = "traces")]
pub mod synth;
#[cfg(feature = "traces")]
pub mod tensors;
#[cfg(feature = "traces")]
pub mod validate;
#[cfg(feature = "traces")]
pub mod workload;

pub use accelerators::Accelerators;
pub use catalog::Catalog;
pub use error::DataError;
pub use serving::ServingCatalog;
#[cfg(feature = "traces")]
pub use workload::{
    ImportOptions, LoadedWorkload, assumption_of, import_file, import_table, import_with, read_jobs, read_workload,
};
