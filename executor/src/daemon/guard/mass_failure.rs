//! Loss of many nodes at once. Whether the nodes failed or cannot be reached is not known.
//!
//! Where they cannot be reached their jobs run on and come back with them. So for a while only a
//! few of those jobs are placed again; then what is lost counts as failed, as usual. Borg limits
//! the rate in the same case (Verma et al., EuroSys'15, section 4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use goodput_configs::live::guard::GuardConfig;

use crate::engine::{ClusterSnapshot, NodeHealth, Order};

/// One node that fails is a failure, in a cluster of two as well.
const LEAST: usize = 2;

/// Lost nodes, the jobs that ran there, and the jobs that were placed elsewhere since.
#[derive(Debug, Default)]
pub(in crate::daemon) struct MassFailures {
    /// Nodes that are lost, and since when.
    lost: BTreeMap<String, Instant>,
    /// Nodes that jobs were last seen on. One that waits while none of them is lost left them by
    /// itself, or by order, and is here no more.
    on: BTreeMap<String, BTreeSet<String>>,
    /// Whether the cluster was looked at before.
    looked: bool,
    now: Option<MassFailure>,
}

/// A mass failure in its first while.
#[derive(Debug)]
struct MassFailure {
    since: Instant,
    /// Nodes that were lost with it.
    nodes: BTreeSet<String>,
    /// Jobs that ran there.
    jobs: BTreeSet<String>,
    /// Of those: ordered elsewhere since.
    moved: BTreeSet<String>,
}

/// Change of a mass failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum MassFailureChange {
    /// So many nodes were lost at once, with so many jobs.
    Began { nodes: usize, jobs: usize },
    /// The first while is over.
    Over,
}

impl MassFailures {
    /// Takes a snapshot in. `open` are the orders given before it was taken.
    pub fn look<'a>(
        &mut self,
        rules: &GuardConfig,
        snapshot: &ClusterSnapshot,
        open: impl Iterator<Item = &'a Order>,
        now: Instant,
    ) -> Option<MassFailureChange> {
        let hold = Duration::try_from_secs_f64(rules.mass_failure_hold_secs).unwrap_or_default();
        let lost = snapshot.nodes.iter().filter(|node| matches!(node.health, NodeHealth::Suspect | NodeHealth::Down));
        self.lost = lost.map(|node| (node.name.clone(), *self.lost.get(&node.name).unwrap_or(&now))).collect();
        self.note_places(snapshot);
        let over = self.now.take_if(|failure| now.duration_since(failure.since) >= hold).is_some();
        let new = self.lost.iter().filter(|(_, since)| now.duration_since(**since) < hold);
        let new: BTreeSet<String> = new.map(|(node, _)| node.clone()).collect();
        // What was lost long ago is no part of the cluster that half of may be lost now.
        let before = snapshot.nodes.len() - (self.lost.len() - new.len());
        let many = new.len() >= LEAST && 100.0 * new.len() as f64 >= rules.mass_failure_percent * before as f64;
        let began = many && self.now.is_none();
        if began {
            let (jobs, moved) = Default::default();
            self.now = Some(MassFailure { since: now, nodes: new.clone(), jobs, moved });
        }
        let Some(failure) = &mut self.now else { return over.then_some(MassFailureChange::Over) };
        failure.nodes.extend(new);
        let gone = self.on.iter().filter(|(_, on)| on.iter().any(|node| is_gone(&self.lost, &failure.nodes, node)));
        failure.jobs.extend(gone.map(|(job, _)| job.clone()));
        let ordered = open.filter(|order| order.action.placement().is_some() || order.action.preempts());
        failure.moved.extend(ordered.filter(|order| failure.jobs.contains(&order.job)).map(|order| order.job.clone()));
        began.then_some(MassFailureChange::Began { nodes: failure.nodes.len(), jobs: failure.jobs.len() })
    }

    /// Jobs that lost their nodes together with many other nodes, which are not back, without the
    /// jobs that were ordered elsewhere since; and how many of them may still be placed elsewhere.
    pub fn held_back(&self, rules: &GuardConfig) -> (impl Iterator<Item = &str>, usize) {
        let failure = self.now.as_ref();
        let budget = failure.map_or(0, |MassFailure { jobs, moved, .. }| {
            let most = rules.mass_failure_moved_percent * jobs.len() as f64 / 100.0;
            (most as usize).saturating_sub(moved.len())
        });
        let jobs = failure.into_iter().flat_map(|failure| {
            let waits = failure.jobs.difference(&failure.moved).map(String::as_str);
            waits.filter(|job| {
                let mut on = self.on.get(*job).into_iter().flatten();
                on.any(|node| is_gone(&self.lost, &failure.nodes, node))
            })
        });
        (jobs, budget)
    }

    /// Notes the nodes of each job, or its nodes when they were lost.
    fn note_places(&mut self, snapshot: &ClusterSnapshot) {
        let mut before = std::mem::take(&mut self.on);
        for job in snapshot.jobs.iter().filter(|job| !job.phase.is_over()) {
            let on = match &job.attempt {
                Some(attempt) => Some(attempt.placement.iter().map(|on| on.node.clone()).collect()),
                // A daemon that has just started does not know where a job was that has run: on
                // what is lost, for all it can tell.
                None if !self.looked && job.starts > 0 => Some(self.lost.keys().cloned().collect()),
                None => before.remove(&job.key).filter(|on| on.iter().any(|node| self.lost.contains_key(node))),
            };
            self.on.extend(on.map(|on| (job.key.clone(), on)));
        }
        self.looked = true;
    }
}

/// Whether a node was lost with `nodes` and is not back.
fn is_gone(lost: &BTreeMap<String, Instant>, nodes: &BTreeSet<String>, node: &str) -> bool {
    lost.contains_key(node) && nodes.contains(node)
}

#[cfg(test)]
mod tests {
    use goodput_env::job::{JobRequest, JobSpec, Work};
    use goodput_env::time::SimTime;

    use super::*;
    use crate::engine::{Attempt, EngineAction, JobPhase, JobSeen, NodeSeen, OnNode};

    fn on(node: usize) -> Vec<OnNode> {
        vec![OnNode { node: format!("n{node}"), gpus: 1, ..OnNode::default() }]
    }

    /// A job on a node, or one that waits.
    fn job(key: &str, node: Option<usize>) -> JobSeen {
        let attempt = node.map(|node| Attempt { placement: on(node), ..Attempt::default() });
        let spec = JobSpec { request: JobRequest::default(), work: Work::Fixed { duration: SimTime::from_secs(60) } };
        let phase = if attempt.is_some() { JobPhase::Running } else { JobPhase::Held };
        JobSeen { phase, starts: 1, attempt, ..JobSeen::held(key, spec) }
    }

    /// A cluster that is looked at, its nodes and jobs by number.
    struct Lab {
        failures: MassFailures,
        start: Instant,
        nodes: usize,
        lost: Vec<usize>,
        jobs: BTreeMap<String, Option<usize>>,
    }

    impl Lab {
        fn new(nodes: usize, jobs: usize) -> Self {
            let jobs = (0..jobs).map(|job| (format!("j{job:02}"), Some(job % nodes))).collect();
            Self { failures: MassFailures::default(), start: Instant::now(), nodes, lost: Vec::new(), jobs }
        }

        /// Looks after so many seconds, with orders open that place some jobs.
        fn look(&mut self, secs: u64, placed: &[&str]) -> Option<MassFailureChange> {
            let health = |node| if self.lost.contains(&node) { NodeHealth::Suspect } else { NodeHealth::Up };
            let node = |node| NodeSeen { name: format!("n{node}"), health: health(node), ..NodeSeen::default() };
            let jobs = self.jobs.iter().map(|(key, node)| job(key, *node)).collect();
            let snapshot =
                ClusterSnapshot { nodes: (0..self.nodes).map(node).collect(), jobs, ..ClusterSnapshot::default() };
            let place = |job: &&str| Order::named("p", job, 1, EngineAction::Place { placement: on(9), share: None });
            let open: Vec<Order> = placed.iter().map(place).collect();
            let now = self.start + Duration::from_secs(secs);
            self.failures.look(&GuardConfig::default(), &snapshot, open.iter(), now)
        }

        fn held_back(&self) -> (usize, usize) {
            let rules = GuardConfig::default();
            let (jobs, budget) = self.failures.held_back(&rules);
            (jobs.count(), budget)
        }
    }

    #[test]
    fn a_tenth_for_a_minute_and_then_all() {
        let mut lab = Lab::new(10, 40);
        assert_eq!(lab.look(0, &[]), None);
        lab.lost = vec![0, 1, 2, 3];
        assert_eq!((lab.look(10, &[]), lab.held_back()), (None, (0, 0)), "four of ten");
        lab.lost.push(4);
        assert_eq!(lab.look(11, &[]), Some(MassFailureChange::Began { nodes: 5, jobs: 20 }));
        assert_eq!(lab.held_back(), (20, 2));
        lab.jobs.values_mut().filter(|node| node.is_some_and(|node| node < 5)).for_each(|node| *node = None);
        lab.jobs.insert("new".into(), None);
        assert_eq!((lab.look(12, &["j00", "new"]), lab.held_back()), (None, (19, 1)), "one has been placed");
        lab.jobs.insert("j00".into(), Some(9));
        assert_eq!((lab.look(13, &["j01", "j05"]), lab.held_back()), (None, (18, 0)), "that is all for now");
        assert_eq!((lab.look(70, &[]), lab.held_back()), (None, (18, 0)));
        assert_eq!((lab.look(71, &[]), lab.held_back()), (Some(MassFailureChange::Over), (0, 0)));
        assert_eq!((lab.look(500, &[]), lab.held_back()), (None, (0, 0)), "what is lost does not count for ever");
        lab.lost.extend([5, 6]);
        assert_eq!(lab.look(501, &[]), None, "two of the five that were left");
        lab.lost.push(7);
        assert!(matches!(lab.look(502, &[]), Some(MassFailureChange::Began { nodes: 3, .. })), "three of them");
        assert!(lab.held_back().0 > 0);
    }

    #[test]
    fn nodes_that_are_back_hold_nobody_back() {
        let mut lab = Lab::new(4, 8);
        lab.look(0, &[]);
        lab.jobs.insert("j00".into(), None);
        lab.look(1, &[]);
        lab.lost = vec![0, 1];
        assert_eq!(lab.look(2, &[]), Some(MassFailureChange::Began { nodes: 2, jobs: 3 }), "j00 had left by itself");
        lab.lost = vec![1];
        assert_eq!((lab.look(3, &[]), lab.held_back().0), (None, 2));
        lab.lost = Vec::new();
        assert_eq!((lab.look(4, &[]), lab.held_back().0), (None, 0));
    }

    #[test]
    fn one_node_is_no_mass_and_a_daemon_that_has_just_started_is_careful() {
        for nodes in [1, 2] {
            let mut lab = Lab::new(nodes, 4);
            lab.look(0, &[]);
            lab.lost = vec![0];
            assert_eq!(lab.look(1, &[]), None);
        }
        let mut lab = Lab::new(4, 20);
        lab.lost = vec![0, 1];
        lab.jobs.values_mut().for_each(|node| *node = None);
        assert_eq!(
            lab.look(0, &[]),
            Some(MassFailureChange::Began { nodes: 2, jobs: 20 }),
            "nobody knows where they were"
        );
        assert_eq!(lab.held_back(), (20, 2));
        lab.lost = Vec::new();
        assert_eq!((lab.look(1, &[]), lab.held_back().0), (None, 0));
    }
}
