//! Definition of the job table, from which its columns, its reader and `goodput data schema` follow.

/// A column of the job table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobColumn {
    /// Name of the column, with the unit in it.
    pub name: &'static str,
    /// Kind of the values.
    pub kind: ColumnKind,
    /// Unit of the values; empty where there is none.
    pub unit: &'static str,
    /// Whether the column must be there.
    pub required: Required,
    /// Meaning of a value, and of a missing one.
    pub meaning: &'static str,
}

/// Kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text in UTF-8.
    Text,
    /// Numbers without a fraction.
    Whole,
    /// Number with a fraction.
    Number,
}

/// Files in which a column must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// In every file.
    Always,
    /// In a csv file; in Parquet, an application may stand for it.
    InCsv,
    /// Column that no row has to fill.
    Never,
}

impl ColumnKind {
    /// Name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "whole number",
            Self::Number => "number",
        }
    }
}

impl Required {
    /// Word for a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "yes",
            Self::InCsv => "in csv",
            Self::Never => "no",
        }
    }
}

const fn column(
    name: &'static str,
    kind: ColumnKind,
    unit: &'static str,
    required: Required,
    meaning: &'static str,
) -> JobColumn {
    JobColumn { name, kind, unit, required, meaning }
}

use ColumnKind::{Number, Text, Whole};
use Required::{Always, InCsv, Never};

/// Columns of the job table, in the order in which a file has them.
pub const JOB_COLUMNS: [JobColumn; 16] = [
    column("job_id", Text, "", Always, "name of the job, unique in the table"),
    column("submit_secs", Number, "seconds", Always, "submission, since the start of the trace"),
    column(
        "duration_secs",
        Number,
        "seconds",
        InCsv,
        "run time on `gpus` accelerators; an application of the catalog decides in its place",
    ),
    column("gpus", Whole, "accelerators", Always, "accelerators asked for, at least 1"),
    column(
        "gpu_min",
        Whole,
        "accelerators",
        Never,
        "fewest accelerators that the job runs on; missing: 1 with an application of the catalog, `gpus` without",
    ),
    column(
        "gpu_max",
        Whole,
        "accelerators",
        Never,
        "most accelerators that the job can use; missing: those of its application, `gpus` without one",
    ),
    column("batch_size", Whole, "samples", Never, "total batch size asked for"),
    column("application", Text, "", Never, "application that the job trains, matched without regard to case"),
    column("work_factor", Number, "", Never, "part of the application's whole training, from 0.001 to 1e6; missing: 1"),
    column("tenant", Text, "", Never, "user or group that submitted the job; missing: `default`"),
    column("priority", Whole, "", Never, "higher goes first; missing: 0"),
    column("weight", Number, "", Never, "weight in fair sharing, from 0.001 to 1e6; missing: 1"),
    column("deadline_secs", Number, "seconds", Never, "deadline, since the start of the trace; missing: none"),
    column(
        "compute_percent",
        Whole,
        "percent",
        Never,
        "compute of one accelerator that is enough, for a job on a part of one; missing: whole accelerators",
    ),
    column("memory_mib", Whole, "MiB", Never, "device memory that is enough, for a job on a part of an accelerator"),
    column("limit_secs", Number, "seconds", Never, "run time that the user asks for; missing: none"),
];

/// Names of the columns.
pub(super) const NAMES: [&str; JOB_COLUMNS.len()] = {
    let mut names = [""; JOB_COLUMNS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = JOB_COLUMNS[at].name;
        at += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::job_csv;

    #[test]
    fn csv_and_parquet_have_these_columns() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(NAMES.to_vec()), sorted(job_csv::ALL_COLUMNS.to_vec()));
        let required = |least: fn(Required) -> bool| -> Vec<&str> {
            JOB_COLUMNS.iter().filter(|column| least(column.required)).map(|column| column.name).collect()
        };
        assert_eq!(required(|required| required == Required::Always), super::super::jobs::REQUIRED);
        assert_eq!(required(|required| required != Required::Never), job_csv::COLUMNS);
    }
}
