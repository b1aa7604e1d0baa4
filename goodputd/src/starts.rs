//! Predicted starts: of a job that waits, and of one that is not submitted.

use std::process::ExitCode;

use goodput_console::{AnswerFormat, CommandError};
use goodput_executor::daemon::predict::PredictedStart;
use goodput_executor::daemon::predict::answer::TriedSubmission;
use goodput_executor::engine::Submission;
use serde_json::{Value, json};

use crate::client::Client;

/// Predicted start of a job, or the reason why there is none.
pub struct ToldStart(Result<PredictedStart, String>);

impl ToldStart {
    /// Asks the daemon for the start of the job with this key.
    pub fn of(client: &Client, key: &str) -> Self {
        Self(client.get(&format!("/v1/jobs/{key}/start")).map_err(|error| error.message().to_owned()))
    }

    /// The start in lines of text.
    pub fn words(&self) -> String {
        match &self.0 {
            Ok(start) => start.words(),
            Err(why) => format!("predicted start: none: {why}"),
        }
    }

    /// The start as JSON, with the reason under `none` where there is none.
    pub fn json(&self) -> Value {
        match &self.0 {
            Ok(start) => json!(start),
            Err(why) => json!({ "none": why }),
        }
    }
}

/// Says what would become of a submission. A job that would be refused is an error.
pub fn dry_run(client: &Client, job: &Submission, output: AnswerFormat) -> Result<ExitCode, CommandError> {
    let answer = client.post("/v1/dry-run", job)?;
    let tried: TriedSubmission = serde_json::from_value(answer.clone()).map_err(CommandError::failed)?;
    // The reasons of a refusal are the error below, so there is no sentence of it here.
    if output == AnswerFormat::Json || tried.refused.is_empty() {
        let start = ToldStart(tried.start.ok_or(tried.no_start));
        output.print(|| format!("the job would be taken\n{}", start.words()), &answer)?;
    }
    match tried.refused.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CommandError::failed(format!("the job would be refused: {}", tried.refused.join("; ")))),
    }
}
