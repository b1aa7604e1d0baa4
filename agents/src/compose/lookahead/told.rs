//! A look in words and numbers, for explanations.

use goodput_env::policy::{Look, SimulatedWay};
use goodput_env::time::SimTime;

use super::halving::Judged;
use super::paired::interval;
use super::{Lookahead, WayOn};

impl Lookahead {
    /// The candidates of a look at `now`, as its futures showed them.
    pub(super) fn told(&self, now: SimTime, candidates: &[WayOn], judged: &Judged) -> Look {
        let ways = candidates.iter().zip(&judged.costs).enumerate().map(|(at, (way, costs))| {
            let pairs: Vec<f64> = costs.iter().zip(&judged.costs[0]).map(|(cost, first)| cost - first).collect();
            SimulatedWay {
                name: self.name_of(*way),
                futures: costs.len() as u32,
                cost_secs: costs.iter().sum::<f64>() / costs.len().max(1) as f64,
                difference_secs: if at == 0 { None } else { interval(&pairs) },
                chosen: at == judged.best,
            }
        });
        Look { at_secs: now.as_secs_f64(), horizon_secs: self.parameters.horizon.as_secs_f64(), ways: ways.collect() }
    }

    fn name_of(&self, way: WayOn) -> String {
        let name = &self.players[way.player].name;
        if way.held { format!("{name}, running jobs left as they are") } else { name.clone() }
    }
}
