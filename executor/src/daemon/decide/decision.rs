//! A decision: the policy's plan, as far as the guard lets it pass, written down before anything is
//! done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use goodput_configs::live::deployment::Mode;
use goodput_env::cluster::NodeId;
use goodput_env::guard::Violation;
use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::state::{ClusterState, Trigger};
use serde_json::json;

use crate::daemon::decide::chooser::PolicyDecision;
use crate::daemon::decide::orders::orders;
use crate::daemon::durability::journal::Stage;
use crate::daemon::guard::rules::{Circumstances, LeftOut, admit};
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::interface::reasons::ChangeReasons;
use crate::daemon::interface::resize::LastResize;
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{ClusterSnapshot, Engine, EngineAction, NodeHealth, Order, digest};
use crate::machine::wall_ms;

/// A decision as the guard let it pass.
pub(in crate::daemon) struct Decided {
    pub decision: PolicyDecision,
    pub plan: Plan,
    pub left_out: LeftOut,
    pub name: String,
    /// Scores that a learned policy gave the jobs, where it scores.
    pub scores: BTreeMap<JobId, f32>,
    /// Reasons of a learned policy for its changes, by job.
    pub reasons: BTreeMap<JobId, ChangeReasons>,
    /// Resizes of running jobs, by job.
    pub resizes: BTreeMap<JobId, LastResize>,
}

impl<E: Engine> Daemon<E> {
    pub(in crate::daemon) fn decide(
        &mut self,
        cluster: &Arc<ClusterState>,
        snapshot: &ClusterSnapshot,
        trigger: Trigger,
        now: Instant,
    ) -> Result<Decided, DaemonError> {
        let mut view = cluster.view();
        view.trigger = trigger;
        let about = self.circumstances(snapshot, now);
        let Self { guard, chooser, settings, .. } = self;
        let mut admitted = None;
        let mut wanted = Plan::keep();
        let decision = chooser.decide(cluster, trigger, now, |plan| {
            let judged = admit(&settings.guard, guard, &view, plan, &about);
            let text = |violations: Vec<Violation>| {
                violations.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join("; ")
            };
            admitted = Some(judged.map_err(text)?);
            wanted = plan.clone();
            Ok(())
        });
        // Without an admitted plan everything is kept.
        let (plan, left_out) = admitted.unwrap_or_default();
        self.last_decision = Some(view.now);
        self.decided_in = self.mode();
        self.wake = decision.wake.filter(|&wake| wake > view.now);
        self.metrics.decision.observe(decision.took.as_secs_f64());
        self.metrics.fallback_active.set(i64::from(decision.fallback));
        for (_, rule) in &left_out {
            Metrics::count(&self.metrics.guard, &[("rule", rule.name())]);
        }
        if let Some(reason) = &decision.instead {
            Metrics::count(&self.metrics.fallbacks, &[("reason", reason.name())]);
            let text = format!("{} decides instead of {}: {reason:?}", decision.by, self.chooser.name());
            self.alert("fallback", &text);
        }
        let changes = serde_json::to_string(&plan).unwrap_or_default();
        let name = digest(&[&decision.by, &snapshot.version.to_string(), &snapshot.at_ms.to_string(), &changes]);
        let all = if decision.fallback { None } else { self.chooser.reasons(&view) };
        let scores = match &all {
            Some(all) => all.scores().filter_map(|(job, score)| Some((job, score? as f32))).collect(),
            None if decision.fallback => BTreeMap::new(),
            None => self.chooser.scores(cluster).into_iter().collect(),
        };
        let reasons = all.iter().flat_map(|all| {
            plan.changes.iter().filter_map(|change| {
                let found = ChangeReasons::of(all, &view, (change.job, change.placement.gpus()))?;
                Some((change.job, ChangeReasons { by: decision.by.clone(), at_ms: wall_ms(), ..found }))
            })
        });
        let reasons = reasons.collect();
        let members = snapshot.jobs.iter().filter(|job| job.members.is_some());
        let in_place: BTreeSet<JobId> = members.filter_map(|job| self.observer.id(&job.key)).collect();
        let resizes = LastResize::of_plan(&plan, &wanted, &view, |job| in_place.contains(&job));
        let resizes = resizes
            .map(|(job, resize)| (job, LastResize { by: decision.by.clone(), at_ms: wall_ms(), ..resize }))
            .collect();
        Ok(Decided { decision, plan, left_out, name, scores, reasons, resizes })
    }

    /// Circumstances by which the guard judges a plan.
    pub(super) fn circumstances(&self, snapshot: &ClusterSnapshot, now: Instant) -> Circumstances {
        let id = |key: &str| self.observer.id(key);
        let node = |name: &str| {
            (0..).map(NodeId).map_while(|at| Some((at, self.observer.node(at)?))).find(|(_, known)| *known == name)
        };
        let closed = snapshot.nodes.iter().filter(|node| node.health != NodeHealth::Up).map(|node| node.name.as_str());
        // An order to drain closes a node before the engine shows it as drained.
        let draining = self.open.iter().filter_map(|under_way| match &under_way.order.action {
            EngineAction::Drain { node, .. } => Some(node.as_str()),
            _ => None,
        });
        let (vanished, vanished_budget) = self.mass_failures.held_back(&self.settings.guard);
        Circumstances {
            under_way: self.open.iter().filter_map(|under_way| id(&under_way.order.job)).collect(),
            hands_off: snapshot
                .jobs
                .iter()
                .filter(|job| self.watch.leaves_alone(&job.key))
                .filter_map(|job| id(&job.key))
                .collect(),
            closed: closed.chain(draining).filter_map(|name| Some(node(name)?.0)).collect(),
            preempted: self.preempted.iter().filter_map(|(key, &at)| Some((id(key)?, at))).collect(),
            canary: self.canary(now),
            can_lend: self.engine.capabilities().lend,
            can_scale: self.engine.capabilities().scale,
            unmeasured: snapshot
                .services
                .iter()
                .filter(|seen| seen.rate.is_none() && !seen.retired)
                .filter_map(|seen| self.observer.service_id(&seen.name))
                .collect(),
            vanished: vanished.filter_map(id).collect(),
            vanished_budget,
        }
    }

    /// Writes a decision into audit log and, where it is acted on, journal. Returns the number of
    /// its orders.
    pub(in crate::daemon) fn write_down(
        &mut self,
        decided: &Decided,
        cluster: &ClusterState,
        snapshot: &ClusterSnapshot,
        term: u64,
        mode: Mode,
        looked: Instant,
    ) -> Result<usize, DaemonError> {
        let view = cluster.view();
        let grace_s = self.settings.cycle.grace_secs;
        let mut new = orders(&decided.name, &decided.plan, &view, &self.observer, snapshot, grace_s);
        let under_way = |order: &Order| {
            order.action.subject().is_some() && self.open.iter().any(|u| u.order.action == order.action)
        };
        new.retain(|order| !under_way(order));
        self.proposed.clone_from(&new);
        if !(new.is_empty() && decided.left_out.is_empty() && decided.decision.instead.is_none()) {
            let left_out = decided
                .left_out
                .iter()
                .map(|(job, rule)| json!({ "job": job.and_then(|job| self.observer.key(job)), "rule": rule.name(), "why": rule.message() }));
            let reasons: BTreeMap<_, _> =
                decided.reasons.iter().filter_map(|(&job, why)| Some((self.observer.key(job)?, why))).collect();
            // A look of an earlier decision stands beside that decision.
            let look = decided.decision.look.as_ref().filter(|look| look.at_secs == view.now.as_secs_f64());
            let body = json!({
                "snapshot": snapshot.version, "now_ms": view.now.as_millis(), "mode": mode.name(), "term": term,
                "policy": decided.decision.by, "instead": decided.decision.instead, "plan": decided.name,
                "orders": new, "left_out": left_out.collect::<Vec<_>>(), "reasons": reasons,
                "look": look,
            });
            self.audit.write(wall_ms(), "decision", body)?;
        }
        if mode < Mode::Canary || new.is_empty() {
            return Ok(new.len());
        }
        let age = looked.elapsed().as_secs_f64();
        if age > self.settings.guard.max_snapshot_age_secs {
            self.alert("stale", &format!("the snapshot is {age:.0} s old; its plan is dropped"));
            return Ok(0);
        }
        self.replace(&new)?;
        self.pass("before-intent")?;
        self.journal.intend(term, &decided.name, &new, wall_ms())?;
        self.pass("after-intent")?;
        let since = Instant::now();
        for order in &new {
            if order.action.preempts() {
                self.preempted.insert(order.job.clone(), view.now);
                self.watch.released(&order.job);
            }
        }
        if mode == Mode::Canary {
            self.acted.extend(new.iter().map(|_| since));
            while self.acted.len() > 10_000 {
                self.acted.pop_front();
            }
        }
        let count = new.len();
        self.open.extend(new.into_iter().map(|order| UnderWay { order, since, note: String::new() }));
        Ok(count)
    }

    /// Closes the orders under way about nodes and services that newer orders are about.
    fn replace(&mut self, new: &[Order]) -> Result<(), DaemonError> {
        let subjects: BTreeSet<String> = new.iter().filter_map(|order| order.action.subject()).collect();
        let replaced =
            |under_way: &UnderWay| under_way.order.action.subject().is_some_and(|subject| subjects.contains(&subject));
        let closed = self.open.iter().filter(|under_way| replaced(under_way));
        let closed: Vec<_> =
            closed.map(|u| (u.order.id.clone(), Stage::Lost, "a newer order replaces it".to_owned())).collect();
        if !closed.is_empty() {
            self.journal.close(&closed, wall_ms())?;
            self.open.retain(|under_way| !replaced(under_way));
        }
        Ok(())
    }
}
