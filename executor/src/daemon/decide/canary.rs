//! Limits of the mode `canary`: the jobs and nodes that `[canary]` lists, and names that nothing has.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use goodput_configs::names::did_you_mean;
use goodput_env::cluster::NodeId;

use crate::daemon::guard::rules::Canary;
use crate::daemon::{Daemon, DaemonError};
use crate::engine::{ClusterSnapshot, Engine};

impl<E: Engine> Daemon<E> {
    /// Limits of the canary; `None` in another mode. A list of unknown names stays a list: nothing passes.
    pub(super) fn canary(&self, now: Instant) -> Option<Canary> {
        if self.mode() != Mode::Canary {
            return None;
        }
        let settings = &self.settings.canary;
        let hour = Duration::from_secs(3600);
        let lately = self.acted.iter().filter(|at| now.duration_since(**at) < hour).count();
        let node = |name: &String| {
            let mut known = (0..).map(NodeId).map_while(|at| Some((at, self.observer.node(at)?)));
            known.find(|(_, known)| known == name).map(|(at, _)| at)
        };
        let jobs = || settings.jobs.iter().filter_map(|key| self.observer.id(key)).collect();
        let nodes = || settings.nodes.iter().filter_map(node).collect();
        Some(Canary {
            jobs: (!settings.jobs.is_empty()).then(jobs),
            nodes: (!settings.nodes.is_empty()).then(nodes),
            budget: settings.orders_per_hour.saturating_sub(lately),
        })
    }

    /// Refuses to go up to the mode `canary` where `[canary]` lists a node or a job that this daemon has not seen. A
    /// daemon in mode `act` does less as a canary, so it becomes one whatever is listed. Before the first look nothing
    /// is known. An alert tells of such names in both cases.
    pub(in crate::daemon) fn check_canary_names(&self) -> Result<(), DaemonError> {
        let Some((snapshot, _)) = self.last.as_ref().filter(|_| self.mode < Mode::Canary) else { return Ok(()) };
        let (mode, settings) = (self.mode.name(), &self.settings.canary);
        let refused = |text: String| {
            let remedy = "correct the deployment file and restart the daemon";
            Err(DaemonError::Refused(format!("{text}; the mode stays {mode}: {remedy}")))
        };
        // A node that is away was no mistake, and neither is a job that is over.
        let nodes: Vec<&str> = (0..).map(NodeId).map_while(|at| self.observer.node(at)).collect();
        if let Some(name) = settings.nodes.iter().find(|name| !nodes.contains(&name.as_str())) {
            let near = said_near(name, &nodes, "goodput live nodes");
            return refused(format!("[canary] nodes: there is no node {name:?}{near}"));
        }
        let jobs: Vec<&str> = snapshot.jobs.iter().map(|job| job.key.as_str()).collect();
        let unknown = |key: &&String| !jobs.contains(&key.as_str()) && self.observer.id(key).is_none();
        if let Some(key) = settings.jobs.iter().find(unknown) {
            let near = said_near(key, &jobs, "goodput live queue");
            return refused(format!("[canary] jobs: there is no job {key:?}{near}"));
        }
        Ok(())
    }

    /// Raises an alert for each name under `[canary]` that the engine does not know, and for a canary
    /// without any name. An alert is raised once, until the mode changes or the name becomes known.
    pub(super) fn check_canary(&mut self, snapshot: &ClusterSnapshot) {
        let mut problems = BTreeSet::new();
        if self.mode() == Mode::Canary {
            let settings = &self.settings.canary;
            if settings.jobs.is_empty() && settings.nodes.is_empty() {
                let text = "[canary] lists no job and no node, so nothing is done; list some under `nodes` or `jobs`";
                problems.insert(text.to_owned());
            }
            let nodes = settings.nodes.iter().filter(|name| !snapshot.nodes.iter().any(|node| node.name == **name));
            problems.extend(nodes.map(|name| {
                format!(
                    "[canary] nodes: there is no node {name:?}, so nothing is done for it; see `goodput live nodes`"
                )
            }));
            let jobs = settings.jobs.iter().filter(|key| !snapshot.jobs.iter().any(|job| job.key == **key));
            problems.extend(jobs.map(|key| {
                format!("[canary] jobs: there is no job {key:?}, so nothing is done for it; see `goodput live queue`")
            }));
        }
        let known = std::mem::replace(&mut self.canary_problems, problems.clone());
        for problem in problems.difference(&known) {
            self.alert("canary", problem);
        }
    }
}

/// Known name that is near an unknown one, in words; all known names where none is near and they are few, and the
/// command that lists them where they are many.
fn said_near(name: &str, known: &[&str], lists: &str) -> String {
    const FEW: usize = 12;
    let near = did_you_mean(name, known.iter().copied());
    match known.len() {
        _ if !near.is_empty() => near,
        0 => " (there are none)".to_owned(),
        1..=FEW => format!(" (there are {})", known.join(", ")),
        _ => format!(" (`{lists}` lists all)"),
    }
}
