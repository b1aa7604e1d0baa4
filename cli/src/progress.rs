//! Progress of long work: a bar on a terminal, a plain line now and then in a pipe, nothing when quiet.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use goodput_console::say;
use goodput_train::Progress;
use goodput_train::forecaster::ForecasterProgress;
use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines in a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Amount of output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Results, errors, progress, and the folder that results are written to.
    Normal,
    /// Results and errors only.
    Quiet,
}

/// Meter of work that consists of equal units.
pub struct Meter {
    bar: Option<ProgressBar>,
    verbosity: Verbosity,
    state: Mutex<MeterState>,
}

struct MeterState {
    phase: &'static str,
    began: Instant,
    began_at: u64,
    line: Option<Instant>,
}

impl Meter {
    /// Meter that shows nothing where the command is quiet.
    pub fn new(verbosity: Verbosity) -> Self {
        let bar = (verbosity == Verbosity::Normal && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{prefix:>9} {bar:32} {human_pos}/{human_len}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let state = MeterState { phase: "", began: Instant::now(), began_at: 0, line: None };
        Self { bar, verbosity, state: Mutex::new(state) }
    }

    /// Progress of a training loop.
    pub fn train(&self, progress: Progress) {
        let jct = progress.validation_jct_secs.map_or_else(String::new, |jct| {
            let against = progress
                .best_heuristic_jct_secs
                .map_or_else(String::new, |best| format!(" (best quick heuristic {best:.0} s)"));
            format!("  JCT {jct:.0} s{against}")
        });
        self.show(progress.phase, progress.done, progress.total, progress.unit, &jct);
    }

    /// Progress of logging.
    pub fn decisions(&self, done: u64, of: u64) {
        self.show("log", done.min(of), of, "decisions", "");
    }

    /// Progress of a forecaster's training.
    pub fn forecaster(&self, progress: ForecasterProgress) {
        let loss = progress.validation_loss.map_or_else(String::new, |loss| format!("  validation loss {loss:.4}"));
        self.show("train", progress.step, progress.steps, "steps", &loss);
    }

    /// Progress of a comparison.
    pub fn runs(&self, done: usize, total: usize) {
        self.show("evaluate", done as u64, total as u64, "runs", "");
    }

    fn show(&self, phase: &'static str, done: u64, total: u64, unit: &str, extra: &str) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let Ok(mut state) = self.state.lock() else { return };
        if state.phase != phase {
            *state = MeterState { phase, began: Instant::now(), began_at: done, line: None };
        }
        let secs = state.began.elapsed().as_secs_f64();
        let rate = (done - state.began_at.min(done)) as f64 / secs.max(1e-9);
        let eta = total.saturating_sub(done) as f64 / rate.max(1e-9);
        let speed =
            if rate > 0.0 && secs > 0.1 { format!("{}  ETA {eta:.0} s", pace(rate, unit)) } else { String::new() };
        if let Some(bar) = &self.bar {
            bar.set_prefix(phase);
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(format!("{speed}{extra}"));
        } else if done >= total || state.line.is_none_or(|at| at.elapsed() > LINE_EVERY) {
            state.line = Some(Instant::now());
            say(&format!("{phase} {done}/{total} {unit}  {speed}{extra}"));
        }
    }

    /// Clears the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Speed in words: units for each second, or seconds for each unit where a unit takes longer.
fn pace(rate: f64, unit: &str) -> String {
    if rate >= 1.0 {
        return format!("{rate:.0} {unit}/s");
    }
    format!("{:.1} s/{}", 1.0 / rate, unit.trim_end_matches('s'))
}

#[cfg(test)]
mod tests {
    use super::pace;

    #[test]
    fn slow_work_is_told_in_seconds_a_unit() {
        assert_eq!(pace(120.4, "decisions"), "120 decisions/s");
        assert_eq!(pace(0.25, "runs"), "4.0 s/run");
    }
}
