//! Lengths of requests to a language model: two independent lognormal distributions, cut off at the longest request.
//!
//! The named ones have the mean and the standard deviation of the logarithms of a public trace.

use goodput_env::seed::{Stream, keyed};
use rand_distr::{Distribution, LogNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SynthError, check};

/// Lognormal lengths of prompts and of answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenLengths {
    /// Median tokens of a prompt.
    pub input_median: f64,
    /// Standard deviation of the logarithm of the tokens of a prompt; 0 for equal prompts.
    pub input_sigma: f64,
    /// Most tokens of a prompt.
    pub input_most: u32,
    /// Median tokens of an answer.
    pub output_median: f64,
    /// Standard deviation of the logarithm of the tokens of an answer; 0 for equal answers.
    pub output_sigma: f64,
    /// Most tokens of an answer.
    pub output_most: u32,
}

/// Public trace of requests to language models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenTrace {
    /// An hour of a coding service of Azure (Patel et al., Splitwise, ISCA 2024): long prompts, short answers.
    AzureCode,
    /// An hour of a conversation service of Azure (Patel et al., Splitwise, ISCA 2024).
    AzureConversation,
    /// An hour of the conversation service Kimi (Qin et al., Mooncake, FAST 2025): long prompts, long answers.
    MooncakeConversation,
}

impl TokenTrace {
    /// Lognormal lengths with the moments of the logarithms of the trace, up to its longest prompt and answer.
    pub fn lengths(self) -> TokenLengths {
        let (input, output) = match self {
            Self::AzureCode => ((1095.0, 1.36, 7437), (16.0, 0.847, 1899)),
            Self::AzureConversation => ((760.0, 0.985, 14_050), (151.0, 0.859, 1000)),
            Self::MooncakeConversation => ((6227.0, 1.199, 126_195), (208.0, 1.358, 2000)),
        };
        let ((input_median, input_sigma, input_most), (output_median, output_sigma, output_most)) = (input, output);
        TokenLengths { input_median, input_sigma, input_most, output_median, output_sigma, output_most }
    }
}

impl TokenLengths {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SynthError`] naming the setting.
    pub fn check(&self) -> Result<(), SynthError> {
        check("input_median", self.input_median, 1.0..=1e7, "1 to 10000000")?;
        check("input_sigma", self.input_sigma, 0.0..=5.0, "0 to 5")?;
        check("input_most", f64::from(self.input_most), 1.0..=1e7, "1 to 10000000")?;
        check("output_median", self.output_median, 1.0..=1e7, "1 to 10000000")?;
        check("output_sigma", self.output_sigma, 0.0..=5.0, "0 to 5")?;
        check("output_most", f64::from(self.output_most), 1.0..=1e7, "1 to 10000000")
    }

    /// `count` pairs of tokens of a prompt and of an answer, the same at each call.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn sample(&self, count: usize) -> Result<Vec<(u32, u32)>, SynthError> {
        self.check()?;
        let mut random = keyed(0, Stream::Requests, u64::MAX);
        let lognormal = |setting: &'static str, median: f64, sigma: f64| {
            LogNormal::new(median.ln(), sigma).map_err(|error| SynthError::Setting {
                setting,
                value: error.to_string(),
                expected: "a finite spread",
            })
        };
        let input = lognormal("input_sigma", self.input_median, self.input_sigma)?;
        let output = lognormal("output_sigma", self.output_median, self.output_sigma)?;
        let mut tokens = |of: &LogNormal<f64>, most: u32| (of.sample(&mut random).round() as u32).clamp(1, most);
        Ok((0..count).map(|_| (tokens(&input, self.input_most), tokens(&output, self.output_most))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_a_trace_have_its_means() {
        // Means of the rows of each trace; the tail of a lognormal is not that of the trace, hence the tolerance.
        let of = [
            (TokenTrace::AzureCode, 2048.0, 28.0),
            (TokenTrace::AzureConversation, 1155.0, 211.0),
            (TokenTrace::MooncakeConversation, 12_035.0, 343.0),
        ];
        for (trace, input, output) in of {
            let sample = trace.lengths().sample(20_000).unwrap();
            let mean = |of: fn(&(u32, u32)) -> u32| {
                sample.iter().map(|pair| f64::from(of(pair))).sum::<f64>() / sample.len() as f64
            };
            let found = (mean(|pair| pair.0) / input, mean(|pair| pair.1) / output);
            println!("{trace:?}: {found:.3?}");
            assert!((found.0 - 1.0).abs() < 0.25 && (found.1 - 1.0).abs() < 0.25, "{trace:?}: {found:?}");
        }
    }
}
