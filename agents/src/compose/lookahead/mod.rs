//! A policy that plans with the simulator when it decides: `lookahead(BASE)`.
//!
//! From time to time the present cluster is simulated onward under the policy that is played and under others, each on
//! futures drawn from what the run has shown. The policy that costs jobs the least time is played from then on, where
//! it is better beyond chance. That is a rollout algorithm: one step of policy improvement by simulation (Tesauro and
//! Galperin, NIPS 1996; Bertsekas and Castanon, Journal of Heuristics 1999).
//!
//! Files, each of which uses only those above it:
//!
//! - `parameters`: futures, horizon, budget.
//! - `paired`: the test on paired differences.
//! - `halving`: which candidate is played in which future.
//! - `applications`, `speeds`, `seen`: what the run has shown.
//! - `future`: one future, and a policy played in it.
//! - `told`: a look in words and numbers, for explanations.

mod applications;
mod future;
mod halving;
mod paired;
mod parameters;
mod seen;
mod speeds;
mod told;

use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy, Scope};
use goodput_env::scenario::{Batching, Information};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::heuristic::parameters::PolicyMaker;
use future::{Future, Present, hold};
use halving::Bounds;
pub use parameters::{LookaheadParameters, RivalPolicy};
use seen::SeenRun;

/// A policy around a base, which plays the base or a rival as the futures of the cluster say.
pub struct Lookahead {
    parameters: LookaheadParameters,
    /// Seed of the policies that are played.
    seed: u64,
    /// Seed of the futures.
    draws: u64,
    /// Policies that may be played; the base is the first.
    players: Vec<Player>,
    /// The policy that is played.
    played: Box<dyn Policy>,
    way: WayOn,
    seen: SeenRun,
    next_look: SimTime,
    looks: u64,
    last_look: Option<Look>,
    keeps_allocation: bool,
    needs: Information,
    information: Information,
    batching: Batching,
    scope: Scope,
    round: Option<SimTime>,
}

/// A policy that may be played.
#[derive(Clone)]
pub struct Player {
    /// Name of the policy.
    pub name: String,
    /// Maker of the policy, by the seed of the run.
    pub make: PolicyMaker,
}

/// A way to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WayOn {
    /// Index of the policy that is played.
    player: usize,
    /// Whether running jobs stay as they are until the next look.
    held: bool,
}

impl std::fmt::Debug for Lookahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lookahead")
            .field("parameters", &self.parameters)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

impl Lookahead {
    /// Lookahead around `base`, with `rivals` beside it, and the seed of the run.
    pub fn new(base: Player, rivals: Vec<Player>, parameters: LookaheadParameters, seed: u64) -> Self {
        let played = (base.make)(seed);
        Self {
            seed,
            draws: seed ^ parameters.seed.rotate_left(32),
            keeps_allocation: played.keeps_allocation(),
            needs: played.needs(),
            information: played.information(),
            batching: played.batching(),
            scope: played.scope(),
            round: played.round(),
            players: [vec![base], rivals].concat(),
            parameters,
            played,
            way: WayOn { player: 0, held: false },
            seen: SeenRun::default(),
            next_look: SimTime::ZERO,
            looks: 0,
            last_look: None,
        }
    }

    /// Ways to go on from here; the first is the policy that is played.
    fn candidates(&self, view: &ClusterView<'_>) -> Vec<WayOn> {
        let now = WayOn { held: false, ..self.way };
        let mut found = vec![now];
        found.extend((0..self.players.len()).filter(|&player| player != now.player).filter_map(|player| {
            let policy = (self.players[player].make)(self.seed);
            let may = view.information.allows(policy.needs()) && (!self.keeps_allocation || policy.keeps_allocation());
            may.then_some(WayOn { player, held: false })
        }));
        if self.parameters.hold {
            found.push(WayOn { held: true, ..now });
        }
        found
    }

    /// The way to go on that costs least in futures of this moment, and what the futures showed.
    fn look(&self, view: &ClusterView<'_>) -> (WayOn, Look) {
        let candidates = self.candidates(view);
        let seed = self.draws.wrapping_add(self.looks.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let present = Present::new(view, &self.seen, &self.parameters, seed);
        let LookaheadParameters { futures, budget, level, .. } = self.parameters;
        let until = view.now + self.parameters.every;
        let mut drawn: Option<(u32, Future)> = None;
        let judged = halving::judge(candidates.len(), Bounds { futures, budget, level }, |at, index| {
            let (_, future) = match drawn.take().filter(|(of, _)| *of == index) {
                Some(known) => drawn.insert(known),
                None => drawn.insert((index, present.future(index))),
            };
            let WayOn { player, held } = candidates[at];
            let mut policy = (self.players[player].make)(self.seed);
            future.play(&mut *policy, if held { until } else { SimTime::ZERO }).ok()
        });
        (candidates[judged.best], self.told(view.now, &candidates, &judged))
    }
}

impl Policy for Lookahead {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.seen.observe(view);
        if view.now >= self.next_look {
            let (found, told) = self.look(view);
            self.last_look = Some(told);
            if found.player != self.way.player {
                self.played = (self.players[found.player].make)(self.seed);
            }
            self.way = found;
            self.looks += 1;
            self.next_look = view.now + self.parameters.every;
        }
        let mut plan = self.played.decide(view);
        if self.way.held {
            hold(view, &mut plan);
        }
        self.seen.planned(view, &plan);
        plan
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.played.wake_at()
    }

    fn expected_loads(&self) -> &[ExpectedLoad] {
        self.played.expected_loads()
    }

    fn last_look(&self) -> Option<&Look> {
        self.last_look.as_ref()
    }

    fn round(&self) -> Option<SimTime> {
        self.round
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn keeps_allocation(&self) -> bool {
        self.keeps_allocation
    }

    fn information(&self) -> Information {
        self.information
    }

    fn needs(&self) -> Information {
        self.needs
    }
}
