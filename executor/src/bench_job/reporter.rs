//! The job's side of the socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::{BenchJob, Misbehaviour};
use crate::job::{Fence, JobReport};

const PATIENCE: Duration = Duration::from_secs(2);

/// Tells the agent how far the job is; says nothing where there is no agent.
pub(super) struct Reporter<'a> {
    job: &'a BenchJob,
    step_time_s: f64,
    sync_time_s: f64,
    fence: Option<Fence>,
    attempt: u32,
    socket: Option<String>,
    said: Option<Instant>,
}

impl<'a> Reporter<'a> {
    /// `step_time_s` and `sync_time_s` in the time that the job plays. Only rank 0 reports.
    pub fn new(job: &'a BenchJob, rank: u32, step_time_s: f64, sync_time_s: f64) -> Self {
        let var = |key: &str| std::env::var(key).ok().filter(|_| rank == 0);
        let fence = match job.misbehave {
            Some(Misbehaviour::OldFence) => Some(Fence::from_text("of an attempt that is over")),
            _ => var("SCHED_FENCE").and_then(|fence| Fence::try_from(fence).ok()),
        };
        let attempt = var("SCHED_ATTEMPT").and_then(|attempt| attempt.parse().ok()).unwrap_or(0);
        Self { job, step_time_s, sync_time_s, fence, attempt, socket: var("SCHED_SOCKET"), said: None }
    }

    pub fn is_due(&self) -> bool {
        self.said.is_none_or(|said| said.elapsed() >= Duration::from_millis(self.job.report_ms))
    }

    /// `false`: the attempt is over, and so is this process. An agent that is away is no reason to
    /// end.
    pub fn say(&mut self, step: u64, ckpt_step: u64) -> bool {
        self.said = Some(Instant::now());
        let (Some(fence), Some(socket)) = (&self.fence, &self.socket) else { return true };
        let report = JobReport {
            samples: Some(step * u64::from(self.job.batch)),
            batch_size: Some(self.job.batch),
            step_time_s: Some(self.step_time_s),
            sync_time_s: Some(self.sync_time_s),
            grad_sqr: Some(1.0),
            grad_var: Some(self.job.noise_scale),
            ckpt_step: Some(ckpt_step),
            ..JobReport::new(fence.clone(), self.attempt, step)
        };
        let refused = tell(socket, &report).is_ok_and(|status| status == 409);
        !refused || self.job.misbehave == Some(Misbehaviour::OldFence)
    }
}

/// Sends one report; the status that it was answered with, 200 where it was taken.
fn tell(socket: &str, report: &JobReport) -> std::io::Result<u64> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    let answer: serde_json::Value = serde_json::from_str(&answer)?;
    Ok(answer["status"].as_u64().unwrap_or(200))
}
