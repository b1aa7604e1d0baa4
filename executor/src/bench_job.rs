//! A job for tests and measurements: it takes as long as the throughput model says, and computes
//! nothing.
//!
//! It obeys job protocol v1 with real processes, signals, sockets and checkpoint files, with time
//! compressed; or it misbehaves in one of the ways that real jobs do ([`Misbehaviour`]).

mod checkpoint;
mod reporter;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use goodput_env::model::{BatchConfig, ThroughputParams};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::job::exit::PREEMPTED;
use reporter::Reporter;

const TICK: Duration = Duration::from_millis(20);

/// Play of a bench job: its work, its speed and its faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BenchJob {
    /// Optimiser steps over all attempts.
    pub steps: u64,
    /// Total batch size, samples.
    pub batch: u32,
    /// Speed of the application it plays.
    pub throughput: ThroughputParams,
    /// Factor by which the job plays faster than real time.
    pub compress: f64,
    /// Gradient noise scale it reports, in units of its initial batch size.
    pub noise_scale: f64,
    /// Between two reports, milliseconds.
    pub report_ms: u64,
    /// Between two checkpoints besides those it is asked for, milliseconds; 0: none.
    pub checkpoint_ms: u64,
    /// Fault that the job shows.
    pub misbehave: Option<Misbehaviour>,
}

/// Fault of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// Takes no notice of SIGTERM.
    IgnoreTerm,
    /// Exits 1 at once.
    Exit1,
    /// Writes half a checkpoint where the newest should be.
    CorruptCheckpoint,
    /// Leaves a child in a session of its own, and that child takes no notice of SIGTERM.
    ForkOut,
    /// Reports with a fence that is not its own.
    OldFence,
    /// Makes no progress, says nothing, takes no notice of SIGTERM.
    Hang,
}

impl Default for BenchJob {
    /// A second of work on one accelerator, 60 times as fast as real time.
    fn default() -> Self {
        // A small image model on one accelerator, of the size that Pollux' artifact fits for
        // ResNet-18 on CIFAR-10.
        let throughput = ThroughputParams {
            alpha_c: 0.03,
            beta_c: 0.0008,
            alpha_n: 0.04,
            beta_n: 0.002,
            alpha_r: 0.02,
            beta_r: 0.001,
            gamma: 2.0,
        };
        Self {
            steps: 450,
            batch: 128,
            throughput,
            compress: 60.0,
            noise_scale: 4.0,
            report_ms: 1000,
            checkpoint_ms: 0,
            misbehave: None,
        }
    }
}

/// Place of this process in its job, as the contract tells it; alone where it does not.
struct ProcessRank {
    rank: u32,
    nodes: u32,
    world: u32,
    checkpoints: PathBuf,
}

impl ProcessRank {
    fn read() -> Self {
        let number = |key: &str, otherwise: u32| {
            std::env::var(key).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
        };
        let checkpoints = std::env::var_os("SCHED_CHECKPOINT_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let world = number("WORLD_SIZE", 1).max(1);
        Self { rank: number("NODE_RANK", 0), nodes: number("NNODES", 1).max(1), world, checkpoints }
    }
}

impl BenchJob {
    /// Real seconds of a step on that many accelerators and nodes.
    #[must_use]
    pub fn step_s(&self, nodes: u32, world: u32) -> f64 {
        self.throughput.iter_time(nodes, world, self.batch_on(world)) / self.compress
    }

    /// Seconds of a step, in the time it plays, that synchronisation adds to compute.
    fn sync_s(&self, nodes: u32, world: u32) -> f64 {
        let batch = self.batch_on(world);
        self.throughput.iter_time(nodes, world, batch) - self.throughput.grad_time(batch.atomic)
    }

    fn batch_on(&self, world: u32) -> BatchConfig {
        BatchConfig { atomic: self.batch.div_ceil(world.max(1)).max(1), accumulation: 0 }
    }

    /// Plays to the end and returns the exit code.
    ///
    /// # Errors
    /// Signals cannot be had, or a checkpoint cannot be written.
    pub async fn play(&self) -> std::io::Result<i32> {
        let place = ProcessRank::read();
        let (mut term, mut usr1) = (signal(SignalKind::terminate())?, signal(SignalKind::user_defined1())?);
        match self.misbehave {
            Some(Misbehaviour::Exit1) => return Ok(1),
            Some(Misbehaviour::ForkOut) => fork_out()?,
            Some(Misbehaviour::Hang) => loop {
                sleep(Duration::from_secs(3600)).await;
            },
            _ => {}
        }
        let Some(first) = checkpoint::load(&place.checkpoints) else { return Ok(1) };
        let step_s = self.step_s(place.nodes, place.world);
        let mut reporter =
            Reporter::new(self, place.rank, step_s * self.compress, self.sync_s(place.nodes, place.world));
        let written = match self.misbehave {
            Some(Misbehaviour::CorruptCheckpoint) => checkpoint::Written::Half,
            _ => checkpoint::Written::Whole,
        };
        let save = |step: u64| match place.rank {
            0 => checkpoint::save(&place.checkpoints, step, written),
            _ => Ok(()),
        };
        let began = Instant::now();
        let mut saved = (began, first);
        reporter.say(first, first);
        loop {
            let step = (first + (began.elapsed().as_secs_f64() / step_s) as u64).min(self.steps);
            if step >= self.steps {
                save(step)?;
                reporter.say(step, step);
                return Ok(0);
            }
            if self.checkpoint_ms > 0 && saved.0.elapsed() >= Duration::from_millis(self.checkpoint_ms) {
                save(step)?;
                saved = (Instant::now(), step);
            }
            if reporter.is_due() && !reporter.say(step, saved.1) {
                return Ok(1);
            }
            let left = Duration::from_secs_f64(((self.steps - step) as f64 * step_s).max(0.001));
            tokio::select! {
                () = sleep(TICK.min(left)) => {}
                _ = usr1.recv() => {
                    save(step)?;
                    saved = (Instant::now(), step);
                }
                _ = term.recv() => if self.misbehave != Some(Misbehaviour::IgnoreTerm) {
                    save(step)?;
                    return Ok(PREEMPTED);
                },
            }
        }
    }
}

/// A grandchild in a session of its own.
fn fork_out() -> std::io::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' TERM; setsid sleep 600 &"]).stdin(Stdio::null());
    shell.status().map(|_| ())
}
