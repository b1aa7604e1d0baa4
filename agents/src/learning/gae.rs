//! Generalised advantage estimation (Schulman et al. 2016) in continuous time.
//!
//! Scheduling events are irregular, so a transition of `dt` seconds is discounted by `exp(-beta *
//! dt)` (a semi-Markov decision process). A discount per decision would reward making more or fewer
//! decisions rather than better ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Discounting of the future.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GaeConfig {
    /// Rate of discounting, per second.
    pub beta: f64,
    /// Weight of longer returns over the critic, 0 to 1, per decision or per unit of time.
    pub lambda: f64,
    /// Unit of `lambda`: a decision, or a length of time.
    #[serde(default)]
    pub trace: TraceDecay,
}

/// Clock of the decay of an advantage's trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TraceDecay {
    /// `lambda` at every decision, as published.
    #[default]
    Decision,
    /// `lambda^(dt / seconds)`: the many decisions of one scheduling round take no time and do not
    /// shorten the trace.
    Time {
        /// Time in which the trace decays by `lambda`.
        seconds: f64,
    },
}

/// Transitions of `envs` environments side by side; each slice but the last is `[steps, envs]`, row
/// by row.
#[derive(Clone, Copy, Debug)]
pub struct Transitions<'a> {
    /// Number of environments.
    pub envs: usize,
    /// Reward of the transition.
    pub rewards: &'a [f32],
    /// Length of the step, seconds.
    pub dt: &'a [f32],
    /// Critic at the observation acted upon.
    pub values: &'a [f32],
    /// 1 where the episode ended for good: the future is worth nothing.
    pub terminated: &'a [u8],
    /// 1 where the episode was cut: the future is worth `final_values`.
    pub truncated: &'a [u8],
    /// Critic at the last observation of a cut episode; ignored elsewhere.
    pub final_values: &'a [f32],
    /// Critic at the observation after the last row, `[envs]`.
    pub last_values: &'a [f32],
}

/// Writes advantages and returns (`advantage + value`), both `[steps, envs]`.
///
/// # Panics
/// When slices differ in length.
pub fn gae(config: &GaeConfig, t: &Transitions<'_>, advantages: &mut [f32], returns: &mut [f32]) {
    let (n, size) = (t.envs, t.rewards.len());
    assert!(
        n > 0 && size.is_multiple_of(n) && t.last_values.len() == n,
        "rewards are [steps, envs] and last_values [envs]"
    );
    let lengths = [
        t.dt.len(),
        t.values.len(),
        t.terminated.len(),
        t.truncated.len(),
        t.final_values.len(),
        advantages.len(),
        returns.len(),
    ];
    assert!(lengths.iter().all(|&l| l == size), "every slice is [steps, envs]");
    for i in (0..size).rev() {
        let over = t.terminated[i] != 0 || t.truncated[i] != 0;
        let next = match (t.terminated[i] != 0, t.truncated[i] != 0) {
            // An end for good wins over a cut at the same step, because nothing follows it.
            (true, _) => 0.0,
            (false, true) => t.final_values[i],
            _ if i + n < size => t.values[i + n],
            _ => t.last_values[i % n],
        };
        let dt = f64::from(t.dt[i]);
        let discount = (-config.beta * dt).exp();
        let lambda = match config.trace {
            TraceDecay::Decision => config.lambda,
            TraceDecay::Time { seconds } => config.lambda.powf(dt / seconds),
        };
        let later = if over || i + n >= size { 0.0 } else { f64::from(advantages[i + n]) };
        let delta = f64::from(t.rewards[i]) + discount * f64::from(next) - f64::from(t.values[i]);
        let advantage = delta + discount * lambda * later;
        advantages[i] = advantage as f32;
        returns[i] = (advantage + f64::from(t.values[i])) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: a sum over all later temporal differences of the same episode.
    fn reference(c: &GaeConfig, t: &Transitions<'_>) -> Vec<f64> {
        let (n, size) = (t.envs, t.rewards.len());
        let mut out = vec![0.0; size];
        for (i, out) in out.iter_mut().enumerate() {
            let (mut weight, mut j) = (1.0, i);
            loop {
                let next = if t.terminated[j] == 1 {
                    0.0
                } else if t.truncated[j] == 1 {
                    t.final_values[j]
                } else if j + n < size {
                    t.values[j + n]
                } else {
                    t.last_values[j % n]
                };
                let dt = f64::from(t.dt[j]);
                let discount = (-c.beta * dt).exp();
                *out += weight * (f64::from(t.rewards[j]) + discount * f64::from(next) - f64::from(t.values[j]));
                if t.terminated[j] == 1 || t.truncated[j] == 1 || j + n >= size {
                    break;
                }
                weight *= discount
                    * match c.trace {
                        TraceDecay::Decision => c.lambda,
                        TraceDecay::Time { seconds } => c.lambda.powf(dt / seconds),
                    };
                j += n;
            }
        }
        out
    }

    type Row = (f32, f32, f32, f32, u8);

    proptest! {
        #[test]
        fn equals_the_quadratic_reference(
            rows in prop::collection::vec((-1f32..1.0, 0f32..5.0, -2f32..2.0, -2f32..2.0, 0u8..12), 1..60),
            envs in 1usize..4, lambda in 0f64..=1.0, beta in 0f64..0.5, by_time in any::<bool>()
        ) {
            let steps = rows.len().div_ceil(envs);
            let rows: Vec<Row> = (0..steps * envs).map(|i| rows[i % rows.len()]).collect();
            let column = |f: fn(&Row) -> f32| rows.iter().map(f).collect::<Vec<f32>>();
            let flag = |at: u8| rows.iter().map(|r| u8::from(r.4 == at)).collect::<Vec<u8>>();
            let (rewards, dt, values, final_values) = (column(|r| r.0), column(|r| r.1.max(0.0)), column(|r| r.2), column(|r| r.3));
            let (terminated, truncated, last_values) = (flag(0), flag(1), vec![0.7; envs]);
            let t = Transitions { envs, rewards: &rewards, dt: &dt, values: &values, terminated: &terminated, truncated: &truncated,
                final_values: &final_values, last_values: &last_values };
            let c = GaeConfig { beta, lambda, trace: if by_time { TraceDecay::Time { seconds: 2.0 } } else { TraceDecay::Decision } };
            let (mut advantages, mut returns) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
            gae(&c, &t, &mut advantages, &mut returns);
            for (i, want) in reference(&c, &t).into_iter().enumerate() {
                prop_assert!((f64::from(advantages[i]) - want).abs() < 1e-4, "{}: {} {}", i, advantages[i], want);
                prop_assert!((returns[i] - advantages[i] - values[i]).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn a_cut_episode_keeps_its_future_and_a_finished_one_has_none() {
        let c = GaeConfig { beta: 0.0, lambda: 1.0, trace: TraceDecay::Decision };
        let mut out = [[0.0; 2]; 2];
        for (k, (terminated, truncated)) in [(1u8, 0u8), (0, 1)].into_iter().enumerate() {
            let t = Transitions {
                envs: 1,
                rewards: &[1.0, 1.0],
                dt: &[1.0, 1.0],
                values: &[0.0, 0.0],
                terminated: &[0, terminated],
                truncated: &[0, truncated],
                final_values: &[0.0, 5.0],
                last_values: &[100.0],
            };
            gae(&c, &t, &mut out[k], &mut [0.0; 2]);
        }
        assert_eq!(out, [[2.0, 1.0], [7.0, 6.0]]);
    }
}
