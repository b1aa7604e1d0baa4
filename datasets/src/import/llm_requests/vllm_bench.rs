//! A run of vLLM as LLMServingSim 2 records it (casys-kaist/LLMServingSim, `bench/examples/*/vllm/requests.jsonl`): a
//! JSON object a line with the lengths in tokens and the times of a request on the server's clock, in seconds.

use serde::Deserialize;

use super::{LlmRequestRow, Rows, checked, objects};
use crate::error::RowProblem;
use crate::llm::MeasuredTimes;

#[derive(Deserialize)]
struct BenchRequest {
    input_toks: u32,
    output_toks: u32,
    /// Time at which the request joined the queue of the engine.
    queued_ts: f64,
    first_token_ts: f64,
    last_token_ts: f64,
}

/// Whether the first line is of this format.
pub(super) fn recognises(first: &[u8]) -> bool {
    serde_json::from_slice::<BenchRequest>(first).is_ok()
}

/// Rows of the text.
pub(super) fn rows(text: &[u8]) -> Rows {
    objects(text, |object: BenchRequest| {
        let row = checked(object.queued_ts, object.input_toks, object.output_toks)?;
        let [ttft_secs, latency_secs] =
            [object.first_token_ts, object.last_token_ts].map(|time| time - object.queued_ts);
        if !(ttft_secs > 0.0 && latency_secs >= ttft_secs) {
            let value = object.first_token_ts.to_string();
            let expected = "a time after queued_ts and not after last_token_ts";
            return Err(RowProblem::Value { column: "first_token_ts", value, expected });
        }
        Ok(LlmRequestRow { measured: Some(MeasuredTimes { ttft_secs, latency_secs }), ..row })
    })
}
