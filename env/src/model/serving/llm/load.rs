//! Requests of a load: arrivals at a rate, and lengths drawn from a sample.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::request::{LlmRequest, SECOND_PS};
use crate::model::serving::queueing::Work;

/// Lengths and variability of the requests to a language model.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLoad {
    /// Tokens of the prompt and of the answer of each request of a sample; not empty, and each at least 1.
    pub lengths: Vec<(u32, u32)>,
    /// Squared coefficient of variation of the time between requests.
    pub arrival_cv2: f64,
}

impl TokenLoad {
    /// Adds requests at `per_sec` requests a second to those of `requests`, until the moment `until_ps`, picoseconds.
    /// The first comes after `from_ps`. Gives the moment of the first one that is not added.
    pub fn extend(
        &self,
        requests: &mut Vec<LlmRequest>,
        per_sec: f64,
        (from_ps, until_ps): (u64, u64),
        random: &mut ChaCha8Rng,
    ) -> u64 {
        let work = Work::with_cv2(self.arrival_cv2);
        let gap_ps = SECOND_PS as f64 / per_sec;
        let mut arrival_ps = from_ps;
        loop {
            let (phase, draw): (f64, f64) = (random.random(), random.random());
            let mean = if phase < work.phases[0].0 { work.phases[0].1 } else { work.phases[1].1 };
            arrival_ps += (gap_ps * (work.constant - mean * (1.0 - draw).ln())) as u64;
            if arrival_ps >= until_ps {
                return arrival_ps;
            }
            requests.push(self.request(arrival_ps, random));
        }
    }

    /// A request at a moment with lengths of the sample.
    pub fn request(&self, arrival_ps: u64, random: &mut ChaCha8Rng) -> LlmRequest {
        let (input, output) = self.lengths[random.random_range(0..self.lengths.len())];
        LlmRequest { arrival_ps, input, cached: 0, output }
    }
}
