//! The small program for nodes: the agent, the keeper it starts for each attempt, and a job to test
//! them with.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use goodput_configs::live::node_agent::NodeAgentConfig;
use goodput_configs::reader;
use goodput_executor::agent::{self, keeper};
use goodput_executor::bench_job::BenchJob;

const HELP: &str = "\
goodput-node agent CONFIG.toml    serves this node until it is stopped; its jobs live on
goodput-node keep FOLDER          runs one attempt (the agent starts it)
goodput-node bench-job [JSON]     plays a job of known speed
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["agent", config] => serve(Path::new(config)),
        ["keep", folder] => keeper::keep(Path::new(folder)).map(|()| 0).map_err(|error| error.to_string()),
        ["bench-job"] => play("{}"),
        ["bench-job", job] => play(job),
        _ => {
            say(HELP);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("goodput-node: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard error. A closed pipe is ignored.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn serve(config: &Path) -> Result<u8, String> {
    let (mut config, _) = reader::read::<NodeAgentConfig>(config, &[]).map_err(|error| error.to_string())?;
    if config.keeper.is_empty() {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        config.keeper = vec![program.to_string_lossy().into_owned(), "keep".to_owned()];
    }
    agent::run(config).map(|()| 0).map_err(|error| error.to_string())
}

fn play(job: &str) -> Result<u8, String> {
    let job: BenchJob = serde_json::from_str(job).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.and_then(|runtime| runtime.block_on(job.play()));
    code.map(|code| code as u8).map_err(|error| error.to_string())
}
