//! Sizes of language models and speeds of the systems that serve them, with sources.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::configuration::Precision;

/// Sizes of a language model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Start of the name of the model, without its owner. Of several that fit, the first is taken.
    pub name: String,
    /// Key of the source.
    pub source: String,
    /// Parameters, thousands of millions.
    pub parameters: f64,
    /// Parameters that one token uses, thousands of millions.
    pub active: f64,
    /// Number of its layers.
    pub layers: u32,
    /// Width of a layer.
    pub width: u32,
    /// Elements of the keys and values of a token.
    pub kv_elements: u32,
    /// Heads of keys and values, over which devices can divide them.
    pub kv_heads: u32,
    /// Experts of a layer; 1 for a dense model.
    #[serde(default = "one")]
    pub experts: u32,
    /// Experts that a token uses.
    #[serde(default = "one")]
    pub routed: u32,
}

fn one() -> u32 {
    1
}

/// Speeds of one device of a system.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemFacts {
    /// Name of the system.
    pub name: String,
    /// Key of the source.
    pub source: String,
    /// Dense TFLOP/s by precision.
    pub tflops: Flops,
    /// Bandwidth of the memory, TB/s.
    pub memory_tbs: f64,
    /// Memory of a device, GB.
    pub memory_gb: f64,
}

/// Dense TFLOP/s by precision.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flops {
    /// Speed with 16-bit numbers.
    pub bf16: f64,
    /// Speed with 8-bit numbers.
    pub fp8: f64,
    /// Speed with 4-bit numbers; that with 8 bits where the device has no faster one.
    pub fp4: f64,
}

/// All that is known of models and systems.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmFacts {
    /// Citations of the sources, by key.
    pub sources: BTreeMap<String, String>,
    /// Models by the start of their names.
    #[serde(rename = "model")]
    pub models: Vec<ModelFacts>,
    /// Systems by their names.
    #[serde(rename = "system")]
    pub systems: Vec<SystemFacts>,
}

impl LlmFacts {
    /// The shipped facts.
    pub fn shipped() -> &'static Self {
        static SHIPPED: OnceLock<LlmFacts> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let parsed = toml::from_str(include_str!("../../catalog/llm.toml"));
            parsed.expect("the shipped facts are valid: a test reads them")
        })
    }

    /// Sizes of a model by its path, such as `meta-llama/Llama-3.1-8B-Instruct`. A distilled model begins with the name
    /// of its teacher and has other sizes: there are none for it.
    pub fn model(&self, path: &str) -> Option<&ModelFacts> {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.models.iter().find(|model| name.starts_with(&model.name)).filter(|_| !name.contains("Distill"))
    }

    /// Speeds of a system by its name.
    pub fn system(&self, name: &str) -> Option<&SystemFacts> {
        self.systems.iter().find(|system| system.name == name)
    }
}

impl SystemFacts {
    /// TFLOP/s at which weights of a precision are multiplied. Weights of 4-bit integers are multiplied as 16-bit
    /// numbers.
    pub fn tflops_at(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Bf16 | Precision::Int4 => self.tflops.bf16,
            Precision::Fp8 => self.tflops.fp8,
            Precision::Fp4 => self.tflops.fp4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_facts_are_cited_and_sound() {
        let facts = LlmFacts::shipped();
        for model in &facts.models {
            assert!(facts.sources.contains_key(&model.source), "{}", model.name);
            assert!(model.active <= model.parameters && model.routed <= model.experts, "{}", model.name);
        }
        assert!(facts.systems.iter().all(|system| facts.sources.contains_key(&system.source)));
        assert_eq!(facts.model("nvidia/Llama-3.1-8B-Instruct-FP8").map(|model| model.layers), Some(32));
        assert_eq!(facts.model("deepseek-ai/DeepSeek-V3").map(|model| model.experts), Some(256));
        assert_eq!(facts.model("deepseek-ai/DeepSeek-R1-0528").map(|model| model.experts), Some(256));
        for other in ["DeepSeek-R1-Distill-Llama-8B", "DeepSeek-V2-Lite"] {
            assert_eq!(facts.model(other), None, "{other}");
        }
    }
}
