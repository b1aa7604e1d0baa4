//! Verbs of `forecast`.

use std::path::PathBuf;

use clap::Subcommand;
use goodput_console::OutputFormat;

/// File of a study, with changes to it.
#[derive(Debug, clap::Args)]
pub struct StudyFile {
    /// Study in TOML (see configs/forecast).
    #[arg(value_name = "STUDY")]
    pub config: PathBuf,
    /// Override a key, as in --set series.column=value.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Trained forecaster from `train`, beside the models of the study. The option can be repeated.
    #[arg(long = "bundle", value_name = "FILE")]
    pub bundles: Vec<PathBuf>,
}

/// Verbs of `forecast`.
#[derive(Debug, Subcommand)]
pub enum ForecastCommand {
    /// Fit the forecaster to a whole series and save it.
    Fit {
        /// Study of the command.
        #[command(flatten)]
        study: StudyFile,
        /// File for the fitted forecaster; of a panel a folder, with a file for each series.
        #[arg(long, value_name = "FILE|FOLDER")]
        to: PathBuf,
    },
    /// Print quantiles of the load from a fitted forecaster.
    Predict {
        /// Fitted forecaster from `forecast fit`, a folder of them, or a bundle from `train`.
        #[arg(value_name = "FITTED|FOLDER|BUNDLE")]
        snapshot: PathBuf,
        /// Study in TOML, with the series that a bundle continues.
        #[arg(long, value_name = "STUDY")]
        study: Option<PathBuf>,
        /// Override a key of the study.
        #[arg(long = "set", value_name = "KEY=VALUE", requires = "study")]
        sets: Vec<String>,
        /// Hours to look ahead.
        #[arg(long, default_value_t = 24.0)]
        hours: f64,
        /// Quantile levels, ascending between 0 and 1.
        #[arg(long, value_delimiter = ',', default_values_t = [0.1, 0.5, 0.9])]
        levels: Vec<f64>,
        /// Form of the rows.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Test the forecaster on the past of a series, from rolling origins, beside the naive forecasts.
    Backtest {
        /// Study of the command.
        #[command(flatten)]
        study: StudyFile,
        /// Write a page with figures, lending included.
        #[arg(long, value_name = "HTML")]
        report: Option<PathBuf>,
        /// Write every forecast, as Parquet or csv by the ending of the name.
        #[arg(long, value_name = "PARQUET|CSV")]
        forecasts: Option<PathBuf>,
        /// Form of the rows.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Compare accelerator-hours of autoscaling rules at one share of steps with enough capacity.
    Worth {
        /// Study in TOML (see configs/forecast/worth.toml).
        #[arg(value_name = "STUDY")]
        config: PathBuf,
        /// Override a key, as in --set folder=FOLDER.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Print a row for every rule, in place of one for every cell.
        #[arg(long)]
        rules: bool,
        /// Form of the rows.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Serve forecasts of loads that Prometheus knows: by HTTP, to KEDA and to the planner of Dynamo.
    Serve {
        /// Server in TOML (see configs/forecast/serve.toml).
        #[arg(value_name = "FILE")]
        config: PathBuf,
        /// Override a key, as in --set prometheus.url=URL.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// Backtest the forecaster beside each of its models, with intervals of the differences.
    Compare {
        /// Study of the command.
        #[command(flatten)]
        study: StudyFile,
        /// Write a page with figures, lending included.
        #[arg(long, value_name = "HTML")]
        report: Option<PathBuf>,
        /// Write every forecast, as Parquet or csv by the ending of the name.
        #[arg(long, value_name = "PARQUET|CSV")]
        forecasts: Option<PathBuf>,
        /// Form of the rows.
        #[arg(short, long, visible_alias = "format", value_enum, default_value_t)]
        output: OutputFormat,
    },
}
