//! Choice between the policy and its fallback.
//!
//! A policy runs on a thread of its own: one that sleeps, panics or never comes back costs its
//! answer and nothing else. What makes a policy unreliable (an error, no answer in time, numbers
//! that are none, an observation unlike those it was trained on, a plan that cannot be) has the
//! named heuristic decide instead, in the same cycle, and for a while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use goodput_agents::compose::NamedPolicy;
use goodput_agents::policies::explain::UtilityReasons;
use goodput_agents::policies::external::{ExternalProgram, Faults};
use goodput_configs::live::policy::RelianceConfig;
use goodput_configs::policies::FIGURES;
use goodput_env::plan::Plan;
use goodput_env::policy::{ExpectedLoad, Look, Policy};
use goodput_env::state::{ClusterState, Trigger};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;

use crate::daemon::guard::screen::{Screen, Unreliable};

/// Time that the first decision of a policy may take where [`RelianceConfig::timeout_ms`] is shorter: forecasters learn
/// the past of their services then.
const FIRST_DECISION: Duration = Duration::from_secs(5);

type Question = (Arc<ClusterState>, Trigger);
type PolicyAnswer = Result<Planned, String>;

/// A plan, and what the policy says beside it.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    /// Latest time at which the policy wants to be asked again.
    wake: Option<SimTime>,
    /// Loads of services that the policy expects.
    loads: Vec<ExpectedLoad>,
    /// The last look of the policy ahead.
    look: Option<Look>,
}

impl Planned {
    fn by(policy: &mut dyn Policy, view: &ClusterView<'_>) -> Self {
        let plan = policy.decide(view);
        Self {
            plan,
            wake: policy.wake_at(),
            loads: policy.expected_loads().to_vec(),
            look: policy.last_look().cloned(),
        }
    }
}

/// A policy on its own thread.
#[derive(Debug)]
struct PolicyThread {
    name: String,
    ask: mpsc::Sender<(u64, Question)>,
    answers: mpsc::Receiver<(u64, PolicyAnswer)>,
    asked: u64,
    answered: u64,
}

impl PolicyThread {
    fn new(name: &str, mut policy: Box<dyn Policy>) -> std::io::Result<Self> {
        let (ask, questions) = mpsc::channel::<(u64, Question)>();
        let (answer, answers) = mpsc::channel();
        std::thread::Builder::new().name(format!("policy {name}")).spawn(move || {
            for (number, (cluster, trigger)) in questions {
                let mut view = cluster.view();
                view.trigger = trigger;
                let plan = catch_unwind(AssertUnwindSafe(|| Planned::by(&mut *policy, &view)));
                let plan = plan.map_err(|panic| {
                    let text = panic.downcast_ref::<String>().cloned();
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default()
                });
                drop(cluster);
                if answer.send((number, plan)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { name: name.into(), ask, answers, asked: 0, answered: 0 })
    }

    fn decide(&mut self, question: Question, timeout: Duration) -> Result<Planned, Unreliable> {
        // A late answer is to an old question; it says only that the policy is free again.
        while let Ok((number, _)) = self.answers.try_recv() {
            self.answered = number;
        }
        if self.answered < self.asked {
            return Err(Unreliable::Timeout);
        }
        self.asked += 1;
        let gone = || Unreliable::Panic("its thread has ended".into());
        self.ask.send((self.asked, question)).map_err(|_| gone())?;
        match self.answers.recv_timeout(timeout) {
            Ok((number, answer)) => {
                self.answered = number;
                answer.map_err(Unreliable::Panic)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Unreliable::Timeout),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}

/// Decision, and the policy that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDecision {
    /// Plan of the decision.
    pub plan: Plan,
    /// Latest time at which the policy wants to be asked again.
    pub wake: Option<SimTime>,
    /// Loads of services that the policy expects; empty where it does not look ahead.
    pub loads: Vec<ExpectedLoad>,
    /// The last look of the policy ahead; `None` where it does not, or the fallback decided.
    pub look: Option<Look>,
    /// Name of the policy.
    pub by: String,
    /// Reason why the fallback decided instead of the policy.
    pub instead: Option<Unreliable>,
    /// Whether the fallback decides by now.
    pub fallback: bool,
    /// Duration of the decision.
    pub took: Duration,
}

/// The policy and its fallback.
#[derive(Debug)]
pub struct Chooser {
    reliance: RelianceConfig,
    policy: PolicyThread,
    fallback: PolicyThread,
    screen: Option<Screen>,
    /// Program that the policy asks, which says that it lost a turn.
    program: Option<ExternalProgram>,
    /// Name of the policy, where the policy is a heuristic: the name tells what the policy needs of a cluster.
    named: Option<NamedPolicy>,
    /// Time that the first decision may take.
    first: Duration,
    /// The fallback decides until then.
    until: Option<Instant>,
    /// Refusals and lost turns among the last ten plans of the policy.
    refused: [bool; 10],
    asked: usize,
}

impl Chooser {
    /// `policy`, screened by `screen` where it is a bundle, with `fallback` behind it.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn new(
        reliance: RelianceConfig,
        (name, policy): (&str, Box<dyn Policy>),
        fallback: Box<dyn Policy>,
        screen: Option<Screen>,
    ) -> std::io::Result<Self> {
        let fallback = PolicyThread::new(&reliance.fallback, fallback)?;
        Ok(Self {
            policy: PolicyThread::new(name, policy)?,
            fallback,
            screen,
            program: None,
            named: None,
            reliance,
            first: FIRST_DECISION,
            until: None,
            refused: [false; 10],
            asked: 0,
        })
    }

    /// With the program that the policy asks: the fallback decides the turns that the program loses.
    #[must_use]
    pub fn with_program(self, program: Option<ExternalProgram>) -> Self {
        Self { program, ..self }
    }

    /// With a bound on the time of the first decision: a daemon does not renew its lease meanwhile.
    #[must_use]
    pub fn with_first_decision(self, most: Duration) -> Self {
        Self { first: self.first.min(most), ..self }
    }

    /// Time that the first decision may take.
    pub fn first_decision(&self) -> Duration {
        self.first.max(Duration::from_millis(self.reliance.timeout_ms))
    }

    /// With the name of a heuristic: a policy that weighs accelerator types by power or by price does not decide where
    /// no type's figure is known.
    #[must_use]
    pub fn with_name(self, named: Option<NamedPolicy>) -> Self {
        Self { named, ..self }
    }

    /// Whether the cluster has the figures that the policy goes by.
    fn suits(&self, cluster: &ClusterState) -> Result<(), Unreliable> {
        let lacks = self.named.as_ref().and_then(|named| named.lacks(cluster.installed()));
        lacks.map_or(Ok(()), |problem| Err(Unreliable::Unsuited(format!("{} {problem}; {FIGURES}", self.name()))))
    }

    /// Name of the policy that is to decide.
    pub fn name(&self) -> &str {
        &self.policy.name
    }

    /// Whether the fallback decides now.
    pub fn is_fallback(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// The scores of the policy for each job on show, where it has any.
    pub fn scores(&mut self, cluster: &ClusterState) -> Vec<(goodput_env::job::JobId, f32)> {
        self.screen.as_mut().map(|screen| screen.scores(&cluster.view())).unwrap_or_default()
    }

    /// Reasons of a learned utility at the last decision, which `view` shows; `None` for other policies.
    pub fn reasons(&self, view: &ClusterView<'_>) -> Option<UtilityReasons> {
        self.screen.as_ref()?.reasons(view)
    }

    fn faults(&self) -> Faults {
        self.program.as_ref().map(ExternalProgram::faults).unwrap_or_default()
    }

    /// Reason for which the last plan is not that of the external program. `before` are the faults before the plan.
    fn lost_turn(&self, before: &Faults) -> Option<Unreliable> {
        let Faults { turns, starting, last, .. } = self.faults();
        match (turns > before.turns, starting > before.starting) {
            (true, _) => Some(Unreliable::Failed(last.unwrap_or_default())),
            (false, true) => Some(Unreliable::Starting),
            (false, false) => None,
        }
    }

    /// Decides. `judge` says whether a plan can be carried out at all. A plan that it refuses is
    /// never carried out. Without a possible plan, of policy and fallback alike, nothing changes.
    pub fn decide(
        &mut self,
        cluster: &Arc<ClusterState>,
        trigger: Trigger,
        now: Instant,
        mut judge: impl FnMut(&Plan) -> Result<(), String>,
    ) -> PolicyDecision {
        let began = Instant::now();
        let timeout = Duration::from_millis(self.reliance.timeout_ms);
        let mut instead = None;
        if !self.is_fallback(now) {
            self.until = None;
            let suited = self.suits(cluster);
            let screened = suited.and_then(|()| self.screen.as_mut().map_or(Ok(()), |screen| screen.check(cluster)));
            let before = self.faults();
            let timeout = if self.policy.asked == 0 { self.first_decision() } else { timeout };
            let asked = screened.and_then(|()| self.policy.decide((cluster.clone(), trigger), timeout));
            let asked = asked.and_then(|planned| self.lost_turn(&before).map_or(Ok(planned), Err));
            let at = self.asked % self.refused.len();
            self.asked += 1;
            self.refused[at] = false;
            match asked.and_then(|planned| judge(&planned.plan).map(|()| planned).map_err(Unreliable::Invalid)) {
                Ok(Planned { plan, wake, loads, look }) => {
                    let (by, took) = (self.policy.name.clone(), began.elapsed());
                    return PolicyDecision { plan, wake, loads, look, by, instead: None, fallback: false, took };
                }
                Err(reason) => {
                    // Such a reason costs the policy its turn; many of them, or another one, cost it a while.
                    self.refused[at] = matches!(reason, Unreliable::Invalid(_) | Unreliable::Failed(_));
                    let many = self.refused.iter().filter(|refused| **refused).count() > self.reliance.invalid_of_ten;
                    let its_turn = self.refused[at] || reason == Unreliable::Starting;
                    if many || !its_turn {
                        self.until = Some(now + Duration::from_secs_f64(self.reliance.fallback_secs));
                        // When the fallback's time is over, the policy begins with a clean record.
                        self.refused = [false; 10];
                    }
                    instead = Some(reason);
                }
            }
        }
        // The heuristic has more time: there is no other fallback behind it.
        let asked = self.fallback.decide((cluster.clone(), trigger), 5 * timeout);
        let Planned { plan, wake, loads, look: _ } =
            match asked.and_then(|planned| judge(&planned.plan).map(|()| planned).map_err(Unreliable::Invalid)) {
                Ok(planned) => planned,
                Err(reason) => {
                    tracing::error!(
                        fallback = self.fallback.name,
                        reason = reason.name(),
                        "the fallback failed; nothing changes"
                    );
                    Planned { plan: Plan::keep(), wake: None, loads: Vec::new(), look: None }
                }
            };
        let by = self.fallback.name.clone();
        PolicyDecision { plan, wake, loads, look: None, by, instead, fallback: true, took: began.elapsed() }
    }
}
