//! The traces of Mooncake (Qin et al., FAST 2025): a JSON object a line with the arrival in milliseconds, the lengths
//! in tokens, and the hashes of the blocks of the prompt.

use serde::Deserialize;

use super::{LlmRequestRow, Rows, checked, objects};

/// Tokens of a block.
pub(super) const BLOCK_TOKENS: u32 = 512;

#[derive(Deserialize)]
struct MooncakeRequest {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// Whether the first line is of this format.
pub(super) fn recognises(first: &[u8]) -> bool {
    serde_json::from_slice::<MooncakeRequest>(first).is_ok()
}

/// Rows of the text.
pub(super) fn rows(text: &[u8]) -> Rows {
    objects(text, |object: MooncakeRequest| {
        let row = checked(object.timestamp / 1e3, object.input_length, object.output_length)?;
        Ok(LlmRequestRow { blocks: object.hash_ids, ..row })
    })
}
