//! A look ahead: the ways to go on that a policy simulated, in numbers and in sentences.

use serde::{Deserialize, Serialize};

/// Ways to go on that a policy simulated before it chose one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Time of the simulation, seconds of the policy's clock.
    pub at_secs: f64,
    /// Length of a simulated future, seconds.
    pub horizon_secs: f64,
    /// The ways; the first is the way that was played until then.
    pub ways: Vec<SimulatedWay>,
}

/// A way to go on, as simulated futures show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedWay {
    /// Name of the policy that is played, and whether running jobs are left as they are.
    pub name: String,
    /// Number of futures in which the way was played.
    pub futures: u32,
    /// Time that all jobs spend in the system, mean of the futures, seconds.
    pub cost_secs: f64,
    /// Cost less that of the first way in common futures, and its 95 % interval, seconds: mean, low, high. `None` for
    /// the first way, and for a way that has met less than two futures.
    pub difference_secs: Option<[f64; 3]>,
    /// Whether the way is played from then on.
    pub chosen: bool,
}

impl Look {
    /// The choice in a sentence.
    pub fn sentence(&self) -> String {
        let at = format!("At {:.0} s the policy simulated {} ways to go on", self.at_secs, self.ways.len());
        let hours = (self.horizon_secs / 36.0).round() / 100.0;
        let first = self.ways.first().map_or("", |way| way.name.as_str());
        match self.ways.iter().find(|way| way.chosen) {
            Some(SimulatedWay { name, difference_secs: Some([mean, low, high]), .. }) => format!(
                "{at}, {hours} h each. {name} is played since then: jobs spend {:.0} s less in the system than under \
                 {first}, 95 % interval {:.0} to {:.0} s.",
                -mean, -high, -low
            ),
            _ if self.ways.first().is_none_or(|way| way.futures == 0) => {
                format!("{at}. {first} is still played: it could not be simulated, so nothing was compared.")
            }
            _ => format!("{at}, {hours} h each. {first} is still played: no other way passed the test of the look."),
        }
    }
}

impl SimulatedWay {
    /// The way and its cost in a sentence.
    pub fn words(&self) -> String {
        let Self { name, futures, cost_secs, difference_secs, chosen } = self;
        let cost = match (difference_secs, futures) {
            (_, 0) => "cannot be played".to_owned(),
            (None, _) => format!("{cost_secs:.0} s in {futures} futures"),
            (Some([mean, low, high]), _) => {
                format!("{cost_secs:.0} s in {futures} futures, {mean:+.0} s [{low:.0}, {high:.0}]")
            }
        };
        format!("{name}: {cost}{}", if *chosen { "; chosen" } else { "" })
    }
}
