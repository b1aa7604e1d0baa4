//! Verbs of `sweep`.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_console::OutputFormat;
use goodput_eval::sweep::SweepShard;

use super::compare::StudyOptions;

#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Write the list of the runs of a study, for tasks on this machine or on many.
    #[command(after_help = "\
Example: a study over settings and seeds, run by two tasks, and put together
  goodput sweep plan configs/scenario/cluster-size-study.toml --to runs/study
  goodput sweep run runs/study --shard 0/2 &
  goodput sweep run runs/study --shard 1/2; wait
  goodput sweep merge runs/study")]
    Plan {
        #[command(flatten)]
        study: StudyOptions,
        /// Directory of the sweep, which all tasks can reach.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Run the cells of a sweep that have no file yet. A task that was stopped goes on where it stopped.
    Run {
        /// Directory of the sweep.
        dir: PathBuf,
        /// Share of this task: I of N, counted from 0 [default: all].
        #[arg(long, value_name = "I/N", conflicts_with = "cells")]
        shard: Option<SweepShard>,
        /// Run only the cells of these keys, or of keys that begin so.
        #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
        cells: Vec<String>,
        /// Threads [default: all cores]; results do not depend on it.
        #[arg(short = 'j', long)]
        jobs: Option<usize>,
    },
    /// Run the cells as an array of Slurm tasks, and merge them afterwards. Tasks that are ended by a signal, preempted
    /// or lost with their node go back into the queue.
    #[command(after_help = "\
Example: 200 tasks, of which 50 run at a time, on the partition cpu
  goodput sweep submit runs/study --slurm --array 200 --at-most 50 -- --partition=cpu --time=4:00:00")]
    Submit {
        /// Directory of the sweep, which all machines can reach.
        dir: PathBuf,
        #[command(flatten)]
        array: SlurmArray,
    },
    /// Show how many cells are finished.
    Status {
        /// Directory of the sweep.
        dir: PathBuf,
        /// Form of the table.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Put the finished cells together: the tables and the page of `goodput eval`, byte for byte.
    Merge {
        /// Directory of the sweep.
        dir: PathBuf,
        /// Write jobs.csv too: the rows of jobs.parquet for programs that read batsim's results.
        #[arg(long)]
        jobs_csv: bool,
        /// Form of the table on stdout.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
}

/// An array of Slurm tasks.
#[derive(Debug, clap::Args)]
pub struct SlurmArray {
    /// Submit to Slurm with sbatch.
    #[arg(long, required = true)]
    pub slurm: bool,
    /// Number of tasks.
    #[arg(long = "array", value_name = "N")]
    pub tasks: usize,
    /// Tasks that run at a time [default: as many as Slurm starts].
    #[arg(long, value_name = "N")]
    pub at_most: Option<usize>,
    /// Cores of a task.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cpus: usize,
    /// Write the scripts to the folder `slurm` of the directory, and submit nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Options for sbatch, after `--`: partition, account, time.
    #[arg(last = true, value_name = "OPTION")]
    pub options: Vec<String>,
}
