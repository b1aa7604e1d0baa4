//! Carrying out: the next step of each order that has room, and orders that users give by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use goodput_configs::live::deployment::Mode;
use serde_json::json;

use crate::daemon::decide::show::show_order;
use crate::daemon::durability::journal::Stage;
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{
    Attempt, ClusterSnapshot, Engine, EngineAction, JobPhase, NodeHealth, OnNode, Order, OrderId, StepOutcome,
};
use crate::machine::wall_ms;

impl<E: Engine> Daemon<E> {
    /// Takes the next step of every order that has room.
    pub(in crate::daemon) async fn act(&mut self, snapshot: &ClusterSnapshot, term: u64) -> Result<(), DaemonError> {
        // A canary touches only what is listed.
        if self.mode() == Mode::Act
            && let Some(acting) = self.leader.try_act()
        {
            self.journal.check_term(term)?;
            self.engine.maintain().await?;
            drop(acting);
        }
        let ready = self.ready(snapshot);
        if ready.is_empty() {
            return Ok(());
        }
        // A drill wants to die between any two acts.
        let at_once =
            if self.hook.is_some() || std::env::var_os("GOODPUT_FAILPOINT").is_some() { 1 } else { ready.len() };
        for batch in ready.chunks(at_once) {
            self.pass("before-act")?;
            let Some(acting) = self.leader.try_act() else { return Ok(()) };
            // The lock is held already, so no other daemon takes over between check and act.
            self.journal.check_term(term)?;
            // A stop file may have appeared since the batch before.
            if self.mode() < Mode::Canary {
                return Ok(());
            }
            let receipts = self.engine.apply(batch).await?;
            drop(acting);
            self.pass("after-act")?;
            let mut refused = Vec::new();
            let mut open: BTreeMap<OrderId, &mut UnderWay> =
                self.open.iter_mut().map(|under_way| (under_way.order.id.clone(), under_way)).collect();
            for receipt in receipts {
                let Some(under_way) = open.get_mut(&receipt.id) else { continue };
                match receipt.outcome {
                    StepOutcome::Accepted => under_way.note = "accepted".into(),
                    StepOutcome::Later { reason } => under_way.note = reason,
                    StepOutcome::Refused { reason } => refused.push((receipt.id, Stage::Lost, reason)),
                }
            }
            self.journal.close(&refused, wall_ms())?;
            for (id, _, reason) in &refused {
                tracing::warn!(order = id.0, reason, "the engine refuses an order");
                let verb =
                    self.open.iter().find(|under_way| under_way.order.id == *id).map_or("", |u| u.order.action.verb());
                Metrics::count(&self.metrics.orders, &[("verb", verb), ("result", "refused")]);
            }
            self.open.retain(|under_way| !refused.iter().any(|(id, ..)| *id == under_way.order.id));
        }
        Ok(())
    }

    /// Orders that have room for their next step now. A job is not started on accelerators that
    /// others have not left.
    fn ready(&self, snapshot: &ClusterSnapshot) -> Vec<Order> {
        let mut free: BTreeMap<&str, u32> = BTreeMap::new();
        for node in snapshot.nodes.iter().filter(|node| node.health == NodeHealth::Up) {
            free.insert(&node.name, node.free);
        }
        let mut phases: BTreeMap<&str, JobPhase> = BTreeMap::new();
        phases.extend(snapshot.jobs.iter().map(|job| (job.key.as_str(), job.phase)));
        let mut shared = shared_cards(snapshot);
        let mut ready = Vec::new();
        for UnderWay { order, .. } in &self.open {
            let holds = phases.get(order.job.as_str()).is_some_and(|phase| phase.holds());
            // A job that holds accelerators has to leave them first, which needs no room.
            if let Some(placement) = order.action.placement().filter(|_| !holds) {
                let opened = |on: &OnNode| opened(&order.action, on, &shared);
                let fits = |on: &OnNode| free.get(on.node.as_str()).is_some_and(|&free| free >= opened(on));
                if !placement.iter().all(fits) {
                    continue;
                }
                for on in placement {
                    let opened = opened(on);
                    free.entry(on.node.as_str()).and_modify(|free| *free -= opened.min(*free));
                }
                if let EngineAction::Place { placement, share: Some(_) } = &order.action {
                    shared.extend(placement.iter().flat_map(cards));
                }
            }
            ready.push(order.clone());
        }
        ready
    }

    /// An order that a person gives: it goes the way of all orders.
    ///
    /// # Errors
    /// [`DaemonError::Standby`] where this daemon does not lead; [`DaemonError::Refused`] where it does not act.
    pub async fn order_by_hand(&mut self, who: &str, job: &str, action: EngineAction) -> Result<(), DaemonError> {
        let Some(term) = self.leader.term() else { return Err(self.stands_by()) };
        if self.mode() < Mode::Canary {
            return Err(DaemonError::Refused(format!(
                "mode is {}: nothing is done; set mode act first",
                self.mode().name()
            )));
        }
        let seen = self.last.as_ref().and_then(|(snapshot, _)| snapshot.jobs.iter().find(|seen| seen.key == job));
        let starts = seen.map_or(0, |seen| seen.starts);
        let at_ms = wall_ms();
        let new = Order::named(&format!("by-hand {who} {at_ms}"), job, starts, action);
        self.audit.write(at_ms, "api", json!({ "who": who, "order": new }))?;
        if let Some(shared) = &mut self.shared {
            shared.order(term, &new).await?;
        }
        self.journal.intend(term, "by-hand", std::slice::from_ref(&new), at_ms)?;
        if !job.is_empty() {
            // The person's word goes first: what was under way for the job is void.
            self.void(job, "overruled by hand")?;
        }
        if let Ok(mut status) = self.status.lock() {
            show_order(&mut status.nodes, &new.action);
        }
        self.open.push(UnderWay { order: new, since: Instant::now(), note: String::new() });
        Ok(())
    }
}

/// Accelerators of which jobs hold parts: node and number.
fn shared_cards(snapshot: &ClusterSnapshot) -> BTreeSet<(String, String)> {
    let attempts = snapshot.jobs.iter().filter_map(|job| job.attempt.as_ref());
    let of = |attempt: &Attempt| {
        let node = attempt.placement.first().map_or(String::new(), |on| on.node.clone());
        attempt.cards.iter().map(move |card| (node.clone(), card.to_string())).collect::<Vec<_>>()
    };
    attempts.flat_map(of).collect()
}

/// Accelerators that a placement names: node and number.
fn cards(on: &OnNode) -> impl Iterator<Item = (String, String)> {
    on.accelerators.iter().map(|card| (on.node.clone(), card.clone()))
}

/// Number of free accelerators that an action takes on a node. A part of an accelerator takes none where another
/// job has a part of that accelerator; the engine knows whether there is room.
fn opened(action: &EngineAction, on: &OnNode, shared: &BTreeSet<(String, String)>) -> u32 {
    match action {
        EngineAction::Place { share: Some(_), .. } => cards(on).filter(|card| !shared.contains(card)).count() as u32,
        _ => on.gpus,
    }
}
