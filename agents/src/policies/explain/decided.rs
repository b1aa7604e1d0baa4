//! Decisions of policies with their reasons.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::{Look, Policy};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use super::rounds::{Played, Rounds};
use super::{Explanation, Scored, UtilityReasons};
use crate::policies::external::{ChosenAction, ExternalPolicy};
use crate::policies::rounds::{Decoder, LearnedPolicy};
use crate::policies::utility::{Observer, Utility, UtilityPolicy};

/// A decision with its reasons.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Plan that was decided.
    pub plan: Plan,
    /// Active jobs in order of id with their scores, the highest of which is served first; `None`
    /// for those that are not scored: they are left alone, or have no slot.
    pub scores: Vec<(JobId, Option<f64>)>,
    pub(super) reasons: Reasons,
}

#[derive(Clone, Debug)]
pub(super) enum Reasons {
    Rounds(Box<Played>),
    Utilities(UtilityReasons),
    Actions(Vec<ChosenAction>),
    Look(Look),
    None,
}

impl Decision {
    /// Actions of an external program in the order of the round, with the reasons that the program gave; empty for
    /// other policies.
    pub fn actions(&self) -> &[ChosenAction] {
        match &self.reasons {
            Reasons::Actions(actions) => actions,
            _ => &[],
        }
    }

    /// The last look of the policy ahead; `None` for other policies.
    pub fn look(&self) -> Option<&Look> {
        match &self.reasons {
            Reasons::Look(look) => Some(look),
            _ => None,
        }
    }

    /// The score of `job` taken apart; `None` where it has none.
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        match &self.reasons {
            Reasons::Rounds(played) => played.explain(job),
            Reasons::Utilities(seen) => seen.explain(job),
            Reasons::Actions(_) | Reasons::Look(_) | Reasons::None => None,
        }
    }
}

/// A policy that can be asked why. It is led through a run as any policy is.
pub struct Explained(Inner);

enum Inner {
    Rounds(Box<Rounds>),
    Utilities(Box<Utilities>),
    Program(Box<ExternalPolicy>),
    Published(Box<dyn Policy>),
}

impl Explained {
    /// Policy that plays rounds by the scores of `scored`.
    pub fn playing(policy: LearnedPolicy, scored: Scored) -> Self {
        Self(Inner::Rounds(Box::new(Rounds { policy, scored })))
    }

    /// Policy that divides the accelerators by `utility`.
    pub fn dividing(utility: &Utility, decoder: Decoder) -> Self {
        Self(Inner::Utilities(Box::new(Utilities::new(utility, decoder))))
    }

    /// Policy of an external program, which gives reasons of its own or none.
    pub fn of_program(program: ExternalPolicy) -> Self {
        Self(Inner::Program(Box::new(program)))
    }

    /// Published policy: its decisions alone are shown, and what it simulated where it looks ahead.
    pub fn published(policy: Box<dyn Policy>) -> Self {
        Self(Inner::Published(policy))
    }

    /// Decides without a word.
    pub fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        match &mut self.0 {
            Inner::Program(program) => program.decide(view),
            Inner::Published(policy) => policy.decide(view),
            Inner::Rounds(rounds) => rounds.policy.decide(view),
            Inner::Utilities(utilities) => utilities.decide(view),
        }
    }

    /// Time at which the policy wants to be asked again.
    pub fn wake_at(&self) -> Option<SimTime> {
        match &self.0 {
            Inner::Program(program) => program.wake_at(),
            Inner::Published(policy) => policy.wake_at(),
            Inner::Rounds(rounds) => rounds.policy.wake_at(),
            Inner::Utilities(utilities) => utilities.policy.wake_at(),
        }
    }

    /// Decides and says why, as far as the policy says so.
    pub fn explain(&mut self, view: &ClusterView<'_>) -> Decision {
        let unscored = |plan, reasons| {
            let scores = view.jobs().map(|job| (job.id(), None)).collect();
            Decision { plan, scores, reasons }
        };
        match &mut self.0 {
            Inner::Program(program) => {
                let (plan, actions) = program.explain(view);
                unscored(plan, Reasons::Actions(actions))
            }
            Inner::Published(policy) => {
                let plan = policy.decide(view);
                unscored(plan, policy.last_look().cloned().map_or(Reasons::None, Reasons::Look))
            }
            Inner::Rounds(rounds) => rounds.explain(view),
            Inner::Utilities(utilities) => utilities.explain(view),
        }
    }
}

/// A learned utility with an observer beside it.
#[derive(Clone, Debug)]
struct Utilities {
    policy: UtilityPolicy,
    observer: Observer,
}

impl Utilities {
    fn new(utility: &Utility, decoder: Decoder) -> Self {
        let policy = UtilityPolicy::new(utility, decoder.batching, decoder.information);
        Self { policy, observer: Observer::new(utility) }
    }

    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        self.observer.observe(view);
        self.policy.decide(view)
    }

    fn explain(&mut self, view: &ClusterView<'_>) -> Decision {
        let plan = self.decide(view);
        // Worths are of the decision just made, because `decide` shows it to the observer first.
        let reasons = UtilityReasons::of(&self.observer, view);
        Decision { plan, scores: reasons.scores().collect(), reasons: Reasons::Utilities(reasons) }
    }
}
