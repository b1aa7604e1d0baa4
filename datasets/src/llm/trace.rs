//! Requests to a language model as a trace holds them.

use goodput_env::model::serving::llm::LlmRequest;

/// Times that were measured for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredTimes {
    /// Time to the first token, seconds.
    pub ttft_secs: f64,
    /// Time from arrival to the last token, seconds.
    pub latency_secs: f64,
}

/// Requests in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmTrace {
    /// Requests; the first arrives at 0.
    pub requests: Vec<LlmRequest>,
    /// Names of the blocks of each prompt; empty where the trace has none.
    pub blocks: Vec<Vec<u64>>,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Measured times of each request; empty where the trace has none.
    pub measured: Vec<MeasuredTimes>,
}
