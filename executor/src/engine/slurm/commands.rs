//! Slurm's commands as child processes, with a deadline each.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use goodput_configs::live::engine::SlurmConfig;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::id::SlurmJobId;
use crate::engine::EngineError;

/// Variables of the daemon that its commands see. `sbatch` hands its environment on to jobs, and
/// secrets of the daemon do not belong there. The job's script removes those of Slurm.
const KEPT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_JWT"];

/// Parts of complaints by which Slurm's commands say that they do not reach the controller.
const AWAY: [&str; 5] = [
    "Unable to contact",
    "onnection refused",
    "onnection timed out",
    "Socket timed out",
    "Could not establish a configuration source",
];

/// A command that takes longer is ended: slurmctld is away.
const DEADLINE: Duration = Duration::from_secs(20);
/// Sessions of `scontrol` at once.
const SESSIONS: usize = 8;
pub(super) const REMEDY: &str = "check that slurmctld runs and that [engine.slurm] conf and bin are right";

/// Folder of the commands, and the cluster that they are for.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    conf: Option<PathBuf>,
    bin: Option<PathBuf>,
}

/// Complaints of `scontrol`, by line.
#[derive(Clone, Debug, Default)]
pub(super) struct ScontrolErrors(Vec<String>);

impl ScontrolErrors {
    /// The complaint about a job: it names the job at its end, or as `7_2:` at its beginning.
    pub fn about(&self, job: SlurmJobId) -> Option<String> {
        let (ending, beginning) = (format!("job {job}"), format!("{job}:"));
        let of_job = |line: &&String| {
            let after = line.split(ending.as_str()).nth(1);
            // The number has to end here, or job 1 would take the complaints about job 12.
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
                || line.starts_with(&beginning)
        };
        self.0.iter().find(of_job).cloned()
    }
}

impl Commands {
    pub fn new(settings: &SlurmConfig) -> Self {
        Self { conf: settings.conf.clone(), bin: settings.bin.clone() }
    }

    /// Runs a command with `input` on its standard input and gives what it wrote.
    pub async fn run(&self, name: &str, arguments: &[&str], input: &str) -> Result<String, EngineError> {
        let (status, out, err) = self.output(name, arguments, input).await?;
        if status {
            return Ok(out);
        }
        let problem = format!("{name}: {}", err.trim());
        match AWAY.iter().any(|away| err.contains(away)) {
            true => Err(EngineError::Unreachable { engine: "slurm", problem, remedy: REMEDY }),
            false => Err(EngineError::Refused { engine: "slurm", problem }),
        }
    }

    /// Gives lines to `scontrol`, one after the other in a few sessions at once: a line waits
    /// longer for slurmctld's answer than slurmctld works on it. What is refused does not keep the
    /// rest from being done. Lines must not depend on each other.
    pub async fn control(&self, lines: &[&String]) -> Result<ScontrolErrors, EngineError> {
        let mut sessions = JoinSet::new();
        for lines in lines.chunks(lines.len().div_ceil(SESSIONS).max(1)) {
            let (commands, lines) = (self.clone(), lines.iter().map(ToString::to_string).collect());
            sessions.spawn(async move { commands.session(lines).await });
        }
        let mut complaints = ScontrolErrors::default();
        while let Some(session) = sessions.join_next().await {
            let gone = |error: tokio::task::JoinError| EngineError::Unreachable {
                engine: "slurm",
                problem: error.to_string(),
                remedy: REMEDY,
            };
            complaints.0.extend(session.map_err(gone)??.0);
        }
        Ok(complaints)
    }

    async fn session(&self, lines: Vec<String>) -> Result<ScontrolErrors, EngineError> {
        let mut input = String::new();
        for line in lines {
            input.push_str(&line);
            input.push('\n');
        }
        input.push_str("quit\n");
        let (_, _, err) = self.output("scontrol", &[], &input).await?;
        if err.contains("Unable to contact") {
            return Err(EngineError::Unreachable { engine: "slurm", problem: err.trim().into(), remedy: REMEDY });
        }
        Ok(ScontrolErrors(err.lines().map(Into::into).collect()))
    }

    async fn output(&self, name: &str, arguments: &[&str], input: &str) -> Result<(bool, String, String), EngineError> {
        let unreachable = |problem: String| EngineError::Unreachable { engine: "slurm", problem, remedy: REMEDY };
        let program = self.bin.as_ref().map_or_else(|| PathBuf::from(name), |bin| bin.join(name));
        let mut command = Command::new(&program);
        // A command that misses its deadline is dropped, and must not run on.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.env_clear().envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // Lists of the tasks of an array are told whole.
        command.env("SLURM_TIME_FORMAT", "%s").env("SLURM_BITSTR_LEN", "0");
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        let mut child = command.spawn().map_err(|error| unreachable(format!("{}: {error}", program.display())))?;
        let stdin = child.stdin.take();
        let work = async {
            // Input is fed while output is read, or both sides could wait for a full pipe.
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // A program that ends early says why on its standard error.
                    let _ = stdin.write_all(input.as_bytes()).await;
                }
            };
            tokio::join!(feed, child.wait_with_output()).1
        };
        let output = tokio::time::timeout(DEADLINE, work)
            .await
            .map_err(|_| unreachable(format!("{name} did not end in {} s", DEADLINE.as_secs())))?
            .map_err(|error| unreachable(format!("{name}: {error}")))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((output.status.success(), text(output.stdout), text(output.stderr)))
    }
}
