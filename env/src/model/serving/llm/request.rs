//! Requests to a language model, and what became of them.

/// Picoseconds of a second.
pub const SECOND_PS: u64 = 1_000_000_000_000;

/// A request to a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlmRequest {
    /// Time of arrival, picoseconds from the start of the trace.
    pub arrival_ps: u64,
    /// Tokens of the prompt, at least 1.
    pub input: u32,
    /// Tokens of the prompt that the replica holds in memory already, fewer than `input`.
    pub cached: u32,
    /// Tokens of the answer, at least 1.
    pub output: u32,
}

/// Times of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedTokens {
    /// Time of arrival, picoseconds.
    pub arrival_ps: u64,
    /// Time of the first token, picoseconds.
    pub first_ps: u64,
    /// Time of the last token, picoseconds.
    pub last_ps: u64,
    /// Tokens of the answer.
    pub output: u32,
    /// Times that the request lost its memory and began again.
    pub preemptions: u32,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmOutcome {
    /// All tokens were made.
    Served(ServedTokens),
    /// The request waited for its first token until its time was over.
    TimedOut,
    /// The request needs more memory than the replica has.
    TooLong,
}

impl ServedTokens {
    /// Time to the first token (TTFT), seconds.
    pub fn ttft_secs(&self) -> f64 {
        (self.first_ps - self.arrival_ps) as f64 / SECOND_PS as f64
    }

    /// Mean time of a token after the first (TPOT), seconds; `None` for an answer of one token.
    pub fn tpot_secs(&self) -> Option<f64> {
        let gaps = self.output.checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some((self.last_ps - self.first_ps) as f64 / SECOND_PS as f64 / f64::from(gaps))
    }

    /// Time from arrival to the last token, seconds.
    pub fn latency_secs(&self) -> f64 {
        (self.last_ps - self.arrival_ps) as f64 / SECOND_PS as f64
    }
}
