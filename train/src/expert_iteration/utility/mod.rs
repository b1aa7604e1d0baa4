//! Expert iteration of a utility by counterfactual advantages.
//!
//! - `expert`: exact rollouts of changes on copies of the simulator. What a change saves is known of other decisions
//!   only as far as the change brings them about.
//! - `change`: the changes that are tried.
//! - `fit`: least squares of what the changes save on the features of the jobs. A utility is a weighted sum of these
//!   features, so they are the compatible ones, and the weights of the fit are the natural gradient of the cost
//!   (Kakade, NIPS 2001, theorem 1).
//!
//! A round asks the expert, and fits what it says. Then it tries steps of several lengths on new episodes, one lever
//! after the other, and takes the best ones.

mod change;
mod expert;
mod fit;

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::policies::utility::{Lever, Theta};
use goodput_agents::zoo;
use goodput_configs::experiment::{Experiment, ExpertAgent, started};
use goodput_configs::scenario::{Setup, SetupError};
use serde::{Deserialize, Serialize};

pub use self::expert::{ChangeLabel, ExpertEpisodes};
pub use self::fit::{AdvantageFit, Products};

use super::episodes::mean;
use super::rounds::{Apprentice, go_through};
use crate::error::TrainError;
use crate::recorder::ProgressFigures;
use crate::run_dir::RunDir;
use crate::{Hooks, Trained};

/// Number of levers; states hold steps in the order of [`Lever::ALL`].
const LEVERS: usize = Lever::ALL.len();
/// Share by which labels of earlier rounds count, from round to round: the policy has moved since.
const FADING: f64 = 0.7;
/// Lengths of a step that are tried with each lever, relative to that of the round before.
const LENGTHS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Standard deviations beyond which a label counts as no farther: a few changes turn a whole episode around.
const FARTHEST: f64 = 3.0;

/// Iterates from the latest round, or from the beginning.
///
/// # Errors
/// [`TrainError`].
pub fn train(
    experiment: &Experiment,
    agent: &ExpertAgent,
    dir: &RunDir,
    hooks: &Hooks<'_>,
) -> Result<Trained, TrainError> {
    let expert = ExpertEpisodes::new(experiment, agent)?;
    go_through(&UtilityApprentice { agent, expert }, experiment, dir, hooks)
}

/// The utility that learns.
struct UtilityApprentice<'a> {
    agent: &'a ExpertAgent,
    expert: ExpertEpisodes<'a>,
}

/// Memory of the rounds beside the parameters.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FitMemory {
    /// Length of a step, by lever.
    steps: [f64; LEVERS],
    products: Products,
}

/// Figures of a round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundFigures {
    /// Share of the variance of the labels that the fit explains.
    explained: f64,
    /// Cost of an episode that a change or its opposite saves, in the mean of the changes.
    saved: f64,
    /// Cost after the round less that before, in the mean of the trials. Costs are logarithms.
    change: f64,
}

impl Apprentice for UtilityApprentice<'_> {
    /// Parameters of a utility.
    type Policy = Vec<f64>;
    type Memory = FitMemory;
    const FILE: &'static str = "checkpoints/expert.json";

    fn setup(&self) -> &Setup {
        self.expert.setup()
    }

    fn teacher(&self) -> &str {
        &self.agent.teacher
    }

    fn rounds(&self) -> u64 {
        self.agent.rounds
    }

    fn per_round(&self) -> u64 {
        self.expert.per_round()
    }

    fn start(&self) -> Result<(Vec<f64>, FitMemory), TrainError> {
        let memory = FitMemory { steps: [self.agent.step; LEVERS], products: Products::new(Lever::FEATURES) };
        Ok((start(self.agent)?, memory))
    }

    fn owns(&self, policy: &Vec<f64>, memory: &FitMemory) -> bool {
        Theta::new(policy).is_some() && memory.products.hold(Lever::FEATURES)
    }

    fn bundle(&self, policy: &Vec<f64>, provenance: Provenance) -> PolicyBundle {
        self.expert.bundle(&theta_of(policy), provenance)
    }

    fn iterate(
        &self,
        round: u64,
        policy: &mut Vec<f64>,
        memory: &mut FitMemory,
    ) -> Result<ProgressFigures, TrainError> {
        Ok(iterate(&self.expert, self.agent, round, policy, memory)?.named())
    }

    fn figures_of_start(&self) -> ProgressFigures {
        RoundFigures::default().named()
    }
}

impl RoundFigures {
    fn named(self) -> ProgressFigures {
        vec![
            ("expert/saved_by_a_change", self.saved),
            ("expert/explained_by_the_fit", self.explained),
            ("rollout/log_ratio_to_round_before", self.change),
        ]
    }
}

fn theta_of(values: &[f64]) -> Theta {
    Theta::new(values).unwrap_or_else(Theta::sia)
}

/// Parameters that the first round starts from.
fn start(agent: &ExpertAgent) -> Result<Vec<f64>, TrainError> {
    let Some(path) = &agent.policy else { return Ok(started(&Theta::sia(), &agent.start).values()) };
    match zoo::open(path)?.model {
        Model::Utility(utility) if utility.theta.groups().is_empty() => {
            Ok(started(&utility.theta, &agent.start).values())
        }
        _ => Err(SetupError::Value {
            key: "agent.expert_iteration.policy",
            value: path.display().to_string(),
            expected: "a learned utility from an experiment without services, several tenants and bugs of jobs".into(),
        }
        .into()),
    }
}

/// One round: labels, a fit, and for each lever the step that costs least on the trials.
fn iterate(
    expert: &ExpertEpisodes<'_>,
    agent: &ExpertAgent,
    round: u64,
    policy: &mut Vec<f64>,
    FitMemory { steps, products }: &mut FitMemory,
) -> Result<RoundFigures, TrainError> {
    let theta = theta_of(policy);
    let labels = expert.labels(&theta, round)?;
    let mut figures = RoundFigures { saved: mean(labels.iter().map(|label| label.saves)), ..RoundFigures::default() };
    let bound = FARTHEST * mean(labels.iter().map(|label| label.target.powi(2))).sqrt();
    products.fade(FADING);
    labels.iter().for_each(|label| products.add(&label.features, label.target.clamp(-bound, bound)));
    let Some(fit) = products.fit(agent.ridge) else { return Ok(figures) };
    figures.explained = fit.explained;
    let trials = expert.trials(round);
    let before = mean(expert.costs(std::slice::from_ref(&theta), &trials)?.into_iter());
    let (mut chosen, mut least) = (theta, before);
    for (lever, step) in Lever::ALL.into_iter().zip(steps) {
        let (direction, start, first) = (direction(lever, &fit, products), chosen.clone(), *step);
        *step *= LENGTHS[0];
        let lengths = LENGTHS.map(|of| of * first);
        let moved = |by: f64| direction.iter().map(|of| of * by).collect::<Vec<f64>>();
        let candidates = lengths.map(|by| start.clone().moved(lever, &moved(by)));
        let costs = expert.costs(&candidates, &trials)?;
        for ((tried, candidate), cost) in lengths.into_iter().zip(candidates).zip(costs) {
            if cost < least {
                (least, chosen, *step) = (cost, candidate, tried);
            }
        }
    }
    *policy = chosen.values();
    figures.change = least - before;
    Ok(figures)
}

/// Direction in which a lever saves cost, of root mean square 1 over the labels.
fn direction(lever: Lever, fit: &AdvantageFit, products: &Products) -> Vec<f64> {
    let mut by = vec![0.0; Lever::FEATURES];
    by[lever.features()].copy_from_slice(&fit.weights[lever.features()]);
    let size = products.spread(&by).max(f64::MIN_POSITIVE);
    by[lever.features()].iter().map(|of| of / size).collect()
}
