//! `live explain`: why a job waits, in words.

use goodput_console::counted;
use goodput_executor::daemon::interface::api;
use serde_json::Value;

use crate::listings::place;

/// Text about one job: its phase and reason, its placement, its speed, and its latest orders.
pub fn text(told: &api::JobExplanation) -> String {
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
    if !job.beside.is_empty() {
        text.push_str(&format!("beside: {}\n", job.beside));
    }
    let [min, asked, max] = job.gpus;
    text.push_str(&format!(
        "asked for {} ({min} to {max}); {:.0} s old, {}, {}\norders, newest first:",
        counted(u64::from(asked), "accelerator"),
        job.age_secs,
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
