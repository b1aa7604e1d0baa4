//! Blocks of prompts that a replica keeps in memory after the answer, the least recently used given up first.
//!
//! vLLM and Mooncake name a block by a hash of all tokens up to its end, so that equal names mean equal prefixes.

use std::collections::BTreeMap;

/// Blocks that one replica keeps, from the arrival of a request on. That is a little early: its prompt may not be
/// computed yet when the next request arrives.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixCache {
    /// Most blocks that are kept.
    most: usize,
    /// Tokens of a block.
    block: u32,
    uses: u64,
    last_use: BTreeMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
}

impl PrefixCache {
    /// An empty cache of at most `most` blocks of `block` tokens.
    pub(super) fn new(block: u32, most: usize) -> Self {
        Self { most, block, ..Self::default() }
    }

    /// Tokens at the start of a prompt of `input` tokens that are kept, at least one token fewer than the prompt has.
    /// All of its blocks are kept from now on.
    pub(super) fn reuse(&mut self, blocks: &[u64], input: u32) -> u32 {
        if self.most == 0 {
            return 0;
        }
        let known = blocks.iter().take_while(|block| self.last_use.contains_key(block)).count() as u32;
        // A prefix is worth nothing without its start, so the start is used last.
        for &block in blocks.iter().rev() {
            self.uses += 1;
            if let Some(before) = self.last_use.insert(block, self.uses) {
                self.by_use.remove(&before);
            }
            self.by_use.insert(self.uses, block);
        }
        while self.last_use.len() > self.most {
            let Some((_, block)) = self.by_use.pop_first() else { break };
            self.last_use.remove(&block);
        }
        known.saturating_mul(self.block).min(input.saturating_sub(1))
    }
}
