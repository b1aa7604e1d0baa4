//! Logged decisions of policies: observation, mask, action and reward; in memory and as Parquet.
//!
//! One row a decision, episode after episode. An observation keeps its slots up to the last
//! occupied one only, in the file and in memory: most of the others are empty most of the time.
//! Where an episode was cut off, a closing row without an action holds the observation that a
//! learner bootstraps from.

mod parquet;

use std::ops::Range;

use goodput_env::gym::Layout;

/// In place of an action: the closing row of an episode that was cut off.
const NONE: u32 = u32::MAX;

/// End of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpisodeEnd {
    /// Terminated: the future is worth nothing.
    Terminated,
    /// Truncated: the future is worth the value of the observation in the closing row.
    Truncated,
}

/// Behaviour policy of an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Name of the policy.
    pub name: String,
    /// Probability that a decision was drawn from all allowed actions instead of being the policy's
    /// own.
    pub noise: f32,
}

/// An episode of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Behaviour policy that decided.
    pub behaviour: Behaviour,
    /// Seed of its workload.
    pub seed: u64,
    /// End of the episode: complete, or cut off.
    pub end: EpisodeEnd,
    /// Sum of its rewards, undiscounted.
    pub total: f64,
    /// Rows of the decisions, without the closing row.
    pub rows: Range<usize>,
}

/// One decision with its reward.
#[derive(Clone, Copy, Debug)]
pub struct LoggedDecision<'a> {
    /// Observation at the decision.
    pub features: &'a [f32],
    /// Mask of the allowed actions.
    pub mask: &'a [u8],
    /// Action that was chosen.
    pub action: u32,
    /// Probability of the action under the behaviour policy.
    pub propensity: f32,
    /// Reward of the decision.
    pub reward: f32,
    /// Time that passed, seconds.
    pub dt_secs: f32,
}

/// Decisions of many episodes.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionLog {
    layout: Layout,
    /// Names the meaning of features and actions.
    schema_hash: String,
    /// Accelerator types that actions distinguish, in the order of the verbs.
    types: Vec<String>,
    episodes: Vec<Episode>,
    /// Start of the observation of each row, and the end of the last one.
    starts: Vec<usize>,
    features: Vec<f32>,
    /// Masks, one bit for each action of each row.
    masks: Vec<u8>,
    actions: Vec<u32>,
    propensities: Vec<f32>,
    rewards: Vec<f32>,
    dt_secs: Vec<f32>,
}

impl DecisionLog {
    /// Empty log of decisions.
    pub fn new(layout: Layout, schema_hash: impl Into<String>) -> Self {
        Self {
            layout,
            schema_hash: schema_hash.into(),
            types: Vec::new(),
            episodes: Vec::new(),
            starts: vec![0],
            features: Vec::new(),
            masks: Vec::new(),
            actions: Vec::new(),
            propensities: Vec::new(),
            rewards: Vec::new(),
            dt_secs: Vec::new(),
        }
    }

    /// Adds the accelerator types that actions distinguish, in the order of the verbs.
    #[must_use]
    pub fn with_types(self, types: Vec<String>) -> Self {
        Self { types, ..self }
    }

    /// Accelerator types that actions distinguish, in the order of the verbs.
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// Shapes of observations and actions.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Hash of the schema of features and actions.
    pub fn schema_hash(&self) -> &str {
        &self.schema_hash
    }

    /// Episodes in order.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// Rows, closing ones included.
    pub fn rows(&self) -> usize {
        self.actions.len()
    }

    /// Decisions, closing rows left out.
    pub fn decisions(&self) -> usize {
        self.episodes.iter().map(|episode| episode.rows.len()).sum()
    }

    /// Adds a decision to the episode that [`Self::finish`] ends.
    pub fn push(&mut self, decision: &LoggedDecision<'_>) {
        self.observe(decision.features, decision.mask);
        self.actions.push(decision.action);
        self.propensities.push(decision.propensity);
        self.rewards.push(decision.reward);
        self.dt_secs.push(decision.dt_secs);
    }

    /// Ends the episode of the decisions pushed since the last one. `last` is the observation
    /// reached and its mask; it is kept where the episode was cut off.
    pub fn finish(&mut self, behaviour: Behaviour, seed: u64, end: EpisodeEnd, last: (&[f32], &[u8])) {
        let first = self.episodes.last().map_or(0, |before| self.after(before));
        let rows = first..self.rows();
        let total = self.rewards[rows.clone()].iter().map(|&reward| f64::from(reward)).sum();
        self.episodes.push(Episode { behaviour, seed, end, total, rows });
        if end == EpisodeEnd::Truncated {
            self.push(&LoggedDecision {
                features: last.0,
                mask: last.1,
                action: NONE,
                propensity: 0.0,
                reward: 0.0,
                dt_secs: 0.0,
            });
        }
    }

    /// Adds the episodes of another log of the same layout.
    pub fn append(&mut self, other: &Self) {
        let (rows, offset) = (self.rows(), self.features.len());
        let moved =
            |episode: &Episode| Episode { rows: episode.rows.start + rows..episode.rows.end + rows, ..episode.clone() };
        self.episodes.extend(other.episodes.iter().map(moved));
        self.starts.extend(other.starts[1..].iter().map(|start| start + offset));
        self.features.extend_from_slice(&other.features);
        self.masks.extend_from_slice(&other.masks);
        self.actions.extend_from_slice(&other.actions);
        self.propensities.extend_from_slice(&other.propensities);
        self.rewards.extend_from_slice(&other.rewards);
        self.dt_secs.extend_from_slice(&other.dt_secs);
    }

    /// Writes the observation of a row, [`Layout::obs_dim`] numbers.
    pub fn observation(&self, row: usize, out: &mut [f32]) {
        let kept = &self.features[self.starts[row]..self.starts[row + 1]];
        let (slots, globals) = kept.split_at(kept.len() - self.layout.globals);
        let empty = out.len() - globals.len();
        out[..slots.len()].copy_from_slice(slots);
        out[slots.len()..empty].fill(0.0);
        out[empty..].copy_from_slice(globals);
    }

    /// Writes the mask of a row, [`Layout::actions`] numbers of 0 and 1.
    pub fn mask(&self, row: usize, out: &mut [u8]) {
        let width = mask_bytes(&self.layout);
        let bits = &self.masks[row * width..(row + 1) * width];
        out.iter_mut().enumerate().for_each(|(action, allowed)| *allowed = bits[action / 8] >> (action % 8) & 1);
    }

    /// Action of a row that is not a closing one.
    pub fn action(&self, row: usize) -> u32 {
        self.actions[row]
    }

    /// Probability with which the behaviour did that.
    pub fn propensity(&self, row: usize) -> f32 {
        self.propensities[row]
    }

    /// Reward of the decision.
    pub fn reward(&self, row: usize) -> f32 {
        self.rewards[row]
    }

    /// Time that passed, seconds.
    pub fn dt_secs(&self, row: usize) -> f32 {
        self.dt_secs[row]
    }

    /// The row that follows in the same episode, a closing one perhaps; `None` where the episode is
    /// over.
    pub fn next(&self, row: usize) -> Option<usize> {
        let at = self.episodes.partition_point(|episode| episode.rows.end <= row);
        let episode = self.episodes.get(at)?;
        (row + 1 < episode.rows.end || episode.end == EpisodeEnd::Truncated).then_some(row + 1)
    }

    /// The first row after an episode.
    fn after(&self, episode: &Episode) -> usize {
        episode.rows.end + usize::from(episode.end == EpisodeEnd::Truncated)
    }

    fn observe(&mut self, features: &[f32], mask: &[u8]) {
        let Layout { slots, slot_features, .. } = self.layout;
        let (of_slots, globals) = features.split_at(slots * slot_features);
        let occupied =
            |slot: &usize| of_slots[slot * slot_features..][..slot_features].iter().any(|&feature| feature != 0.0);
        let kept = (0..slots).rev().find(occupied).map_or(0, |last| last + 1);
        self.features.extend_from_slice(&of_slots[..kept * slot_features]);
        self.features.extend_from_slice(globals);
        self.starts.push(self.features.len());
        let first = self.masks.len();
        self.masks.resize(first + mask_bytes(&self.layout), 0);
        for (action, _) in mask.iter().enumerate().filter(|(_, allowed)| **allowed != 0) {
            self.masks[first + action / 8] |= 1 << (action % 8);
        }
    }
}

/// Bytes of a row's mask.
const fn mask_bytes(layout: &Layout) -> usize {
    layout.actions().div_ceil(8)
}
