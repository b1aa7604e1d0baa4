//! Options of the local page.

use std::path::PathBuf;

/// Options of `ui`.
#[derive(Debug, clap::Args)]
pub struct Ui {
    /// Folder with run directories, as `train` and `eval` write them.
    #[arg(value_name = "FOLDER", default_value = "runs")]
    pub folder: PathBuf,
    /// Port of the page on this machine; 0: any free port.
    #[arg(long, default_value_t = 7080)]
    pub port: u16,
    /// Address of a daemon, to show its cluster and queue [default: none].
    #[arg(long, value_name = "URL")]
    pub daemon: Option<String>,
    /// File with the token for the daemon [default: the token in $GOODPUT_TOKEN].
    #[arg(long, value_name = "FILE", requires = "daemon")]
    pub token_file: Option<PathBuf>,
    /// Certificate of the authority that signed the daemon's, for addresses with https [default: $GOODPUT_CA].
    #[arg(long, value_name = "FILE", requires = "daemon")]
    pub ca: Option<PathBuf>,
}
