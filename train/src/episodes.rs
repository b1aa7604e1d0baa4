//! Training episodes: the experiment's workload under its loads, as hard as the curriculum has
//! become, with circumstances drawn at random.
//!
//! An episode is a function of its seed and its number, so that it can be played again.

use std::sync::Arc;

use goodput_agents::compose::loaning::complete;
use goodput_configs::scenario::{Setup, SetupError};
use goodput_env::application::Application;
use goodput_env::gym::WarmUp;
use goodput_env::job::Workload;
use goodput_env::model::{SwitchCost, ThroughputParams};
use goodput_env::scenario::{Resize, Scenario, SimOptions};
use goodput_env::seed::{Stream, keyed};
use goodput_env::time::SimTime;
use rand::RngExt;
use rand_distr::{Distribution, Normal};
use rayon::prelude::*;

use crate::error::TrainError;
use goodput_configs::experiment::{Curriculum, Experiment, Randomise};
use goodput_configs::seeds::training_seed;
use goodput_eval::entries;

/// Steps in which a curriculum becomes harder.
const STAGES: u64 = 5;

/// Generator of training episodes.
#[derive(Clone, Debug)]
pub struct Episodes {
    /// By stage of the curriculum, then by size of the cluster, switching cost and load. The last stage is the
    /// experiment as it is.
    setups: Vec<Vec<Setup>>,
    curriculum: Option<Curriculum>,
    randomise: Option<Randomise>,
    costs: Vec<SwitchCost>,
}

impl Episodes {
    /// Prepares the episodes of an experiment.
    ///
    /// # Errors
    /// [`SetupError`] naming the key.
    pub fn new(experiment: &Experiment) -> Result<Self, SetupError> {
        let loads: &[f64] = if experiment.train.loads.is_empty() { &[1.0] } else { &experiment.train.loads };
        let own = [None];
        let named: Vec<Option<f64>> = experiment.train.sizes.iter().copied().map(Some).collect();
        let sizes: &[Option<f64>] = if named.is_empty() { &own } else { &named };
        let curriculum = experiment.train.curriculum.clone();
        let stages = if curriculum.is_some() { STAGES } else { 0 };
        let stage = |stage: u64| -> Result<Vec<Setup>, SetupError> {
            let grown = |from: f64| from + (1.0 - from) * stage as f64 / stages.max(1) as f64;
            let (load, horizon) = match &curriculum {
                Some(curriculum) if stage < stages => (grown(curriculum.from_load), grown(curriculum.from_horizon)),
                _ => (1.0, 1.0),
            };
            let eased = experiment.at_horizon(horizon);
            let sized = |&size: &Option<f64>| size.map_or_else(|| eased.clone(), |size| eased.at_size(size));
            let each: Vec<Experiment> = sizes.iter().map(sized).flat_map(|sized| sized.at_switch_costs()).collect();
            let each = each.iter().flat_map(|each| loads.iter().map(|own| each.at_load(own * load).setup()));
            each.collect()
        };
        let randomise = experiment.train.randomise.clone();
        let costs = randomise.as_ref().map_or(Ok(Vec::new()), Randomise::costs)?;
        Ok(Self { setups: (0..=stages).map(stage).collect::<Result<_, _>>()?, curriculum, randomise, costs })
    }

    /// The experiment under the first of its loads, sizes and switching costs.
    pub fn setup(&self) -> &Setup {
        &self.setups[self.setups.len() - 1][0]
    }

    /// Episode `number`, drawn from `seed`; loads, sizes and switching costs take turns.
    pub fn at(&self, seed: u64, number: u64) -> Arc<Scenario> {
        let stage = match &self.curriculum {
            Some(curriculum) => (number.saturating_mul(STAGES) / curriculum.episodes).min(STAGES),
            None => 0,
        };
        let setups = &self.setups[stage as usize];
        let scenario = setups[(number % setups.len() as u64) as usize].scenario(seed);
        match &self.randomise {
            Some(randomise) => Arc::new(drawn(&scenario, randomise, &self.costs)),
            None => scenario,
        }
    }

    /// Episodes `first` to `first + count` of a search with the master seed `master`.
    pub fn range(&self, master: u64, first: u64, count: u64) -> Vec<Arc<Scenario>> {
        (first..first + count)
            .into_par_iter()
            .map(|number| self.at(training_seed(master, 0).wrapping_add(number), number))
            .collect()
    }

    /// Episodes by seed alone, of `envs` environments side by side that count on from their first
    /// seeds.
    pub fn of_environments(self, master: u64, envs: usize) -> impl Fn(u64) -> Arc<Scenario> + Send + Sync + 'static {
        let firsts: Vec<u64> = (0..envs as u64).map(|index| training_seed(master, index)).collect();
        move |seed| {
            // First seeds are far apart, so the nearest one below tells how many episodes came before.
            let number = firsts.iter().map(|first| seed.wrapping_sub(*first)).min().unwrap_or(0);
            self.at(seed, number)
        }
    }
}

/// Warm-up of the experiment's episodes; `None` where they have none.
///
/// # Errors
/// [`TrainError`] where there is no heuristic of that name.
pub(crate) fn warm_up(experiment: &Experiment, setup: &Setup) -> Result<Option<WarmUp>, TrainError> {
    let Some(config) = &experiment.train.warm_up else { return Ok(None) };
    let entry = entries::heuristic(experiment, &config.policy, setup)?;
    let sharing = setup.sharing().clone();
    let policy = move |scenario: &Arc<Scenario>| complete((entry.make)(scenario.seed), scenario, &sharing);
    Ok(Some(WarmUp { policy: Arc::new(policy), longest: SimTime::from_secs_f64(config.longest_secs) }))
}

/// `scenario` in circumstances drawn from its seed.
fn drawn(scenario: &Scenario, randomise: &Randomise, costs: &[SwitchCost]) -> Scenario {
    let mut random = keyed(scenario.seed, Stream::Circumstances, 0);
    let mut factor = |spread: f64| match Normal::new(0.0, spread) {
        Ok(normal) => normal.sample(&mut random).exp(),
        Err(_) => 1.0,
    };
    let applications: Vec<Arc<Application>> = scenario
        .workload
        .applications
        .iter()
        .map(|application| Arc::new(paced(application, factor(randomise.compute), factor(randomise.network))))
        .collect();
    // Both are drawn in any case: under a condition, a list of costs would shift the draw for
    // faults.
    let (cost, faults): (f64, f64) = (random.random(), random.random());
    let mut options: SimOptions = scenario.options.clone();
    if !costs.is_empty() {
        options.switch_cost = costs[(cost * costs.len() as f64) as usize % costs.len()];
        if options.switch_cost.overlaps() {
            options.resize = Resize::Overlapped;
        }
    }
    options.faults = options.faults.filter(|_| faults < randomise.faults);
    let workload = Arc::new(Workload { applications, ..(*scenario.workload).clone() });
    Scenario::new(scenario.cluster.clone(), workload, options, scenario.seed)
}

/// `application` with so many times its compute and synchronisation time. Where step times were
/// measured they are what happens, and stay.
fn paced(application: &Application, compute: f64, network: f64) -> Application {
    let mut paced = application.clone();
    for params in paced.params.values_mut() {
        let ThroughputParams { alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma } = *params;
        *params = ThroughputParams {
            alpha_c: alpha_c * compute,
            beta_c: beta_c * compute,
            alpha_n: alpha_n * network,
            beta_n: beta_n * network,
            alpha_r: alpha_r * network,
            beta_r: beta_r * network,
            gamma,
        };
    }
    paced
}
