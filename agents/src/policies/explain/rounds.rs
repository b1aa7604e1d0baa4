//! Policies that play rounds: the score of the action that changed a job, or would have made it
//! grow.

use goodput_env::gym::{Action, Layout, SLOT_FEATURES, Slot, TENANT_FEATURES, TYPE_FEATURES, Verb};
use goodput_env::job::JobId;
use goodput_env::view::ClusterView;

use super::decided::{Decision, Reasons};
use super::gradient::mean_gradient;
use super::scored::{Scored, ScoredModel};
use super::secants;
use super::{Contribution, Explanation};
use crate::policies::rounds::LearnedPolicy;

/// Points on the line from the usual job to this one: at first, and at most.
const POINTS: (usize, usize) = (64, 4096);
/// Tolerance for the residual of contributions, relative to the difference of the scores.
const COMPLETE: f64 = 1e-3;

/// A net or a linear policy.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub policy: LearnedPolicy,
    pub scored: Scored,
}

/// A round as it was played.
#[derive(Clone, Debug)]
pub(super) struct Played {
    scored: Scored,
    /// Jobs by slot.
    jobs: Vec<JobId>,
    /// By what it would soonest give each of them more.
    sooner: Vec<Verb>,
    /// First observation, and the observations before each action with the action.
    first: Vec<f32>,
    steps: Vec<(Vec<f32>, usize)>,
}

impl Rounds {
    pub fn explain(&mut self, view: &ClusterView<'_>) -> Decision {
        let (slots, first) = self.policy.look(view);
        let mut steps = Vec::new();
        let plan = self.policy.decide_watched(view, |observation, action| steps.push((observation.to_vec(), action)));
        let layout = *self.scored.layout();
        let mut deployed = self.scored.deploy();
        let logits = deployed.scores(&first);
        let of = |slot: usize, verb: Verb| f64::from(logits[Action::Change { slot, verb }.encode(&layout)]);
        let sooner = |(at, slot): (usize, &Slot)| {
            slot.openings(&layout).max_by(|a, b| of(at, *a).total_cmp(&of(at, *b))).unwrap_or(Verb::Grow)
        };
        let sooner: Vec<Verb> = slots.iter().enumerate().map(sooner).collect();
        let jobs: Vec<JobId> = slots.iter().map(|slot| slot.job).collect();
        let score = |id: JobId| (id, jobs.binary_search(&id).ok().map(|slot| of(slot, sooner[slot])));
        let scores = view.jobs().map(|job| score(job.id())).collect();
        let played = Played { scored: self.scored.clone(), jobs, sooner, first, steps };
        Decision { plan, scores, reasons: Reasons::Rounds(Box::new(played)) }
    }
}

impl Played {
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        let slot = self.jobs.binary_search(&job).ok()?;
        let layout = self.scored.layout();
        let changed = self.steps.iter().find_map(|(observation, action)| match Action::decode(*action, layout) {
            Some(Action::Change { slot: at, verb }) if at == slot => Some((observation, verb)),
            _ => None,
        });
        let (observation, verb, when) = match changed {
            Some((observation, verb)) => (observation, verb, "when it was chosen"),
            None => (&self.first, self.sooner[slot], "at the beginning of the round; it was not chosen"),
        };
        let action = Action::Change { slot, verb }.encode(layout);
        let verb = match verb {
            Verb::Place(kind) => self.scored.types.get(kind.index()).map(|name| format!("place on {name}")),
            _ => None,
        }
        .unwrap_or_else(|| verb.to_string());
        let of = format!("score of the action \"{verb}\", {when}");
        Some(explain(&self.scored, observation, slot, action, of))
    }
}

/// Takes the score of `action`, which is about `slot`, apart.
fn explain(scored: &Scored, observation: &[f32], slot: usize, action: usize, of: String) -> Explanation {
    let layout = *scored.layout();
    let features = layout.slot_features;
    let here = slot * features..(slot + 1) * features;
    let usual = usual_job(&layout, observation);
    let mut deployed = scored.deploy();
    let mut score = |change: &dyn Fn(&mut [f32])| {
        let mut changed = observation.to_vec();
        change(&mut changed[here.clone()]);
        f64::from(deployed.scores(&changed)[action])
    };
    let (at, from) = (score(&|_| {}), score(&|job| job.copy_from_slice(&usual)));
    let contributions = match &scored.model {
        ScoredModel::Linear(linear) => {
            let weights = &linear.weights()[action % layout.verbs * features..][..features];
            let parts = weights.iter().zip(&observation[here.clone()]).zip(&usual);
            parts.map(|((weight, value), usual)| f64::from(*weight) * f64::from(value - usual)).collect()
        }
        ScoredModel::Onnx(_) => {
            let mut deployed = scored.deploy();
            let score = |observation: &[f32]| f64::from(deployed.scores(observation)[action]);
            secants::integrated(score, observation, &usual, here.start, (at - from, tolerance(at - from)))
        }
        ScoredModel::Net(_) => integrated(scored, observation, &usual, (slot, action), at - from),
    };
    let of_types = layout.types * TYPE_FEATURES.len();
    let of_tenants = if features - of_types > SLOT_FEATURES.len() { &TENANT_FEATURES[..] } else { &[] };
    let plain = SLOT_FEATURES.iter().chain(of_tenants).map(|&name| name.to_owned());
    let by_type = scored.types.iter().flat_map(|kind| TYPE_FEATURES.iter().map(move |name| format!("{name}, {kind}")));
    let contributions =
        plain.chain(by_type).zip(contributions).enumerate().map(|(index, (name, contribution))| Contribution {
            feature: name,
            value: f64::from(observation[here.start + index]),
            usual: f64::from(usual[index]),
            contribution,
            occlusion: at - score(&|job| job[index] = usual[index]),
        });
    Explanation { of, score: at, contributions: contributions.collect(), usual_score: from }
}

/// Tolerance for the residual of contributions that should sum to `difference`. Its floor ends the search where two
/// scores are almost equal.
fn tolerance(difference: f64) -> f64 {
    COMPLETE * difference.abs().max(1e-3)
}

/// The mean over occupied slots.
fn usual_job(layout: &Layout, observation: &[f32]) -> Vec<f32> {
    let slots = observation[..layout.slots * layout.slot_features].chunks_exact(layout.slot_features.max(1));
    let mut sum = vec![0.0_f64; layout.slot_features];
    let mut count = 0.0;
    for slot in slots.filter(|slot| slot[0] != 0.0) {
        sum.iter_mut().zip(slot).for_each(|(sum, &value)| *sum += f64::from(value));
        count += 1.0;
    }
    sum.iter().map(|sum| (sum / f64::max(count, 1.0)) as f32).collect()
}

/// Integrated gradients by the midpoint rule, with twice as many points until they sum to
/// `difference`: between two kinks a net is a plane.
fn integrated(
    scored: &Scored,
    observation: &[f32],
    usual: &[f32],
    (slot, action): (usize, usize),
    difference: f64,
) -> Vec<f64> {
    let ScoredModel::Net(weights) = &scored.model else { return Vec::new() };
    let start = slot * usual.len();
    let scaled = |job: Option<&[f32]>| {
        let mut all = observation.to_vec();
        if let Some(job) = job {
            all[start..start + job.len()].copy_from_slice(job);
        }
        // The line is straight in what the net sees, after scaling, as completeness needs it to be.
        if let Some(normaliser) = &scored.normaliser {
            normaliser.apply(&mut all);
        }
        all
    };
    let (to, from) = (scaled(None), scaled(Some(usual)));
    let mut points = POINTS.0;
    loop {
        let mut rows = Vec::with_capacity(points * to.len());
        for point in 0..points {
            let share = (point as f32 + 0.5) / points as f32;
            rows.extend(from.iter().zip(&to).map(|(from, to)| from + share * (to - from)));
        }
        let slopes = mean_gradient(weights, &rows, slot, action);
        let moved = to[start..].iter().zip(&from[start..]);
        let parts: Vec<f64> =
            slopes.iter().zip(moved).map(|(slope, (to, from))| slope * f64::from(to - from)).collect();
        let missed = (difference - parts.iter().sum::<f64>()).abs();
        if missed <= tolerance(difference) || points >= POINTS.1 {
            return parts;
        }
        points *= 2;
    }
}
