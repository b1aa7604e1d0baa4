//! `live explain`: why a job waits, in words.

use goodput_console::{AnswerFormat, CommandError, counted};
use goodput_executor::daemon::interface::api;
use serde_json::{Value, json};

use crate::client::Client;
use crate::listings::place;
use crate::starts::ToldStart;

/// Answer of a daemon about one job.
struct ExplainedJob {
    told: api::JobExplanation,
    /// Predicted start of the job, where the job waits.
    start: Option<ToldStart>,
}

impl ExplainedJob {
    fn ask(client: &Client, job: &str) -> Result<Self, CommandError> {
        let told: api::JobExplanation = client.get(&format!("/v1/jobs/{job}"))?;
        let waits = matches!(told.job.phase.as_str(), "held" | "released");
        let start = waits.then(|| ToldStart::of(client, &told.job.key));
        Ok(Self { told, start })
    }

    fn words(&self) -> String {
        let start = self.start.as_ref().map_or_else(String::new, |start| format!("\n{}", start.words()));
        format!("{}{start}", text(&self.told))
    }

    fn json(&self) -> Value {
        let start = self.start.as_ref().map_or(Value::Null, ToldStart::json);
        json!({ "job": self.told.job, "orders": self.told.orders, "start": start, "look": self.told.look })
    }
}

/// Prints what the daemon says of the job with this key or name.
pub fn run(client: &Client, job: &str, output: AnswerFormat) -> Result<(), CommandError> {
    let explained = ExplainedJob::ask(client, job)?;
    output.print(|| explained.words(), &explained.json())
}

/// Answer of the daemon about the job with this key or name, in words.
pub fn words(client: &Client, job: &str) -> Result<String, CommandError> {
    Ok(ExplainedJob::ask(client, job)?.words())
}

/// Text about one job: its phase and reason, its placement, its speed, and its latest orders.
fn text(told: &api::JobExplanation) -> String {
    let job = &told.job;
    let mut text = format!("job {} ({}): {}\nreason: {}: {}\n", job.key, job.name, job.phase, job.reason, job.detail);
    if !job.placement.is_empty() {
        text.push_str(&format!("on: {}\n", place(&job.placement)));
    }
    if let Some(score) = job.score {
        text.push_str(&format!("the policy scores it {score:.4} for a larger share now; greater is sooner\n"));
    }
    if !job.learned.is_empty() {
        text.push_str(&format!("speed: {}\n", job.learned));
    }
    if let Some(change) = &job.change {
        text.push_str(&format!("last change: {}\n", change.words()));
    }
    if let Some(resize) = &job.resize {
        text.push_str(&format!("last resize: {}\n", resize.words()));
    }
    if !job.beside.is_empty() {
        text.push_str(&format!("beside: {}\n", job.beside));
    }
    if let Some(look) = &told.look {
        text.push_str(&format!("plan: {}\n", look.sentence()));
        text.extend(look.ways.iter().map(|way| format!("  {}\n", way.words())));
    }
    let [min, asked, max] = job.gpus;
    // A job that has ended has no age.
    let age = if job.age_secs > 0.0 { format!("{:.0} s old, ", job.age_secs) } else { String::new() };
    text.push_str(&format!(
        "asked for {} ({min} to {max}); {age}{}, {}\norders, newest first:",
        counted(u64::from(asked), "accelerator"),
        counted(u64::from(job.starts), "start"),
        counted(u64::from(job.failures), "failure")
    ));
    let orders = told.orders.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    for order in &orders {
        text.push_str(&format!("\n  {} {} {}", word(&order["verb"]), word(&order["stage"]), word(&order["note"])));
    }
    if orders.is_empty() {
        text.push_str(" none");
    }
    text
}
