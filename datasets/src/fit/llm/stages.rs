//! The two stages of a language model as sums of physical costs.
//!
//! Requests of `I` and `O` tokens, `c` at a time on each of `d` copies of the attention, are served in steps. While a
//! request makes its `O` tokens, about `c d` prompts are computed, each between two tokens of all others:
//!
//! ```text
//! TPOT = fixed + weights(c d) + sequence c + context c (I + O/2)  +  (c d / O) (prompt I + pair I^2 / 2)
//! TTFT = first + prompt I + pair I^2 / 2 + crowd c d I + sequence c + slot (O TPOT / c) + excess (O TPOT)
//! ```
//!
//! The `c` of `sequence c` and `context c` in TPOT is at most the number of requests that fit into memory.
//!
//! Weights and context are bytes over the bandwidth of the devices; prompts and pairs are operations over their peak.
//! `slot` is the wait for a place where the load is a little above the number of places, and `excess` the wait where
//! the requests need more memory than there is.

use super::effects::Effects;
use super::posynomial::PowerTerm;
use crate::import::silicon::SiliconRow;
use crate::llm::facts::{ModelFacts, SystemFacts};
use crate::llm::{Configuration, LlmFacts};
use goodput_env::model::serving::llm::step::touched;

/// Share of the memory that weights and keys and values may take.
const USABLE: f64 = 0.93;
/// Least share of the memory that is left to keys and values, where the sizes say that the weights take all.
const LEFT: f64 = 0.1;

/// A named cost, its value, and the logarithm of its efficiency before the fit.
pub(super) type Cost = (&'static str, f64, f64);

/// Physical sizes of a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Physics<'a> {
    of: &'a Configuration,
    model: &'a ModelFacts,
    system: &'a SystemFacts,
}

impl<'a> Physics<'a> {
    /// Sizes of a configuration; `None` where its model or system is not in the catalog.
    pub(super) fn of(of: &'a Configuration) -> Option<Self> {
        let facts = LlmFacts::shipped();
        Some(Self { of, model: facts.model(&of.model)?, system: facts.system(&of.system)? })
    }

    /// Share of the experts that one token uses; 1 for a dense model.
    pub(super) fn expert_share(self) -> f64 {
        f64::from(self.model.routed) / f64::from(self.model.experts)
    }

    /// Milliseconds in which the weights that every token reads are read once.
    pub(super) fn shared_weights(self) -> f64 {
        // A token uses the shared weights and its part of the experts.
        self.read(self.model.parameters - self.experts())
    }

    /// Milliseconds in which all experts are read once.
    pub(super) fn expert_weights(self) -> f64 {
        self.read(self.experts())
    }

    /// Parameters of all experts, thousands of millions.
    fn experts(self) -> f64 {
        let share = self.expert_share();
        if share < 1.0 { (self.model.parameters - self.model.active) / (1.0 - share) } else { 0.0 }
    }

    fn read(self, parameters: f64) -> f64 {
        parameters * self.of.precision.bytes() / (self.system.memory_tbs * f64::from(self.of.devices()))
    }

    /// Devices that divide the keys and values of a token.
    fn kv_divided(self) -> f64 {
        f64::from(self.of.tensor.min(self.model.kv_heads))
    }

    /// Milliseconds in which a byte of each element of the keys and values of a token is read.
    pub(super) fn context(self) -> f64 {
        f64::from(self.model.kv_elements) / 1e9 / (self.system.memory_tbs * self.kv_divided())
    }

    /// Milliseconds of a token of a prompt at the peak.
    pub(super) fn prompt(self) -> f64 {
        2.0 * self.model.active / (self.system.tflops_at(self.of.precision) * f64::from(self.of.devices()))
    }

    /// Milliseconds of a pair of tokens in the attention, at the peak with 16 bits.
    pub(super) fn pair(self) -> f64 {
        let operations = 4.0 * f64::from(self.model.layers) * f64::from(self.model.width);
        operations / 1e9 / (self.system.tflops.bf16 * f64::from(self.of.devices()))
    }

    /// Number of layers of the model.
    pub(super) fn layers(self) -> f64 {
        f64::from(self.model.layers)
    }

    /// Tokens that fit beside the weights into the memory of one copy of the attention, with a byte for each element.
    pub(super) fn kv_tokens(self) -> f64 {
        let memory = self.system.memory_gb * f64::from(self.of.devices()) * USABLE;
        let left = (memory - self.model.parameters * self.of.precision.bytes()).max(LEFT * memory);
        let copies = f64::from(self.of.tensor) / self.kv_divided();
        left * 1e9 / (f64::from(self.model.kv_elements) * copies * f64::from(self.of.data))
    }
}

/// Costs of a token after the first.
pub(super) fn tpot(row: &SiliconRow, physics: Physics<'_>) -> Vec<Cost> {
    let (input, output) = (f64::from(row.shape.input), f64::from(row.shape.output));
    let all = f64::from(row.shape.concurrency) * f64::from(row.configuration.data);
    let fits = (physics.kv_tokens() / (input + output / 2.0)).max(1.0);
    let running = f64::from(row.shape.concurrency).min(fits);
    let share = physics.expert_share();
    let experts = if share < 1.0 { physics.expert_weights() * touched(share, all) } else { 0.0 };
    vec![
        ("fixed", physics.layers(), -3.0),
        ("weights", physics.shared_weights() + experts, 0.3),
        ("sequence", physics.layers() * running, -7.0),
        ("context", physics.context() * running * (input + output / 2.0), 0.3),
        ("prompt", physics.prompt() * input * all / output, 0.4),
        ("pair", physics.pair() * input * input / 2.0 * all / output, 0.4),
    ]
}

/// Costs of the first token, where a further token takes `tpot_ms`.
pub(super) fn ttft(row: &SiliconRow, physics: Physics<'_>, tpot_ms: f64) -> Vec<Cost> {
    let (input, output) = (f64::from(row.shape.input), f64::from(row.shape.output));
    let concurrency = f64::from(row.shape.concurrency);
    let all = concurrency * f64::from(row.configuration.data);
    let fits = (physics.kv_tokens() / (input + output / 2.0)).max(1.0);
    vec![
        ("first", physics.layers(), -1.2),
        ("first prompt", physics.prompt() * input, 0.7),
        ("first pair", physics.pair() * input * input / 2.0, 0.4),
        ("crowd", physics.prompt() * input * all, -3.0),
        ("first sequence", physics.layers() * concurrency, -5.8),
        ("slot", tpot_ms * output / concurrency, -4.6),
        ("excess", tpot_ms * output * (concurrency / fits - 1.0).max(0.0), -0.7),
    ]
}

/// Terms with the effects of a row, which are added where they are new.
pub(super) fn terms(costs: Vec<Cost>, effects: &mut Effects, row: &SiliconRow) -> Vec<PowerTerm> {
    let term = |(name, value, start): Cost| PowerTerm { value, effects: effects.of(name, start, row) };
    costs.into_iter().map(term).collect()
}

/// Terms with the effects of a row that are known.
pub(super) fn known(costs: Vec<Cost>, effects: &Effects, row: &SiliconRow) -> Vec<PowerTerm> {
    let term = |(name, value, _): Cost| PowerTerm { value, effects: effects.known(name, row) };
    costs.into_iter().map(term).collect()
}
