//! Publication of a cycle: status for users, metrics for monitoring.

use std::collections::BTreeMap;

use goodput_configs::live::deployment::Mode;
use goodput_env::job::JobId;
use goodput_env::state::ClusterState;

use crate::daemon::decide::decision::Decided;
use crate::daemon::decide::explain::{FreeRoom, WaitReason};
use crate::daemon::guard::rules::Rule;
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::interface::reasons::ChangeReasons;
use crate::daemon::interface::resize::LastResize;
use crate::daemon::interface::status::{QueueRow, ServiceRow};
use crate::daemon::observe::load_forecasts::ForecastRecord;
use crate::daemon::observe::loads::ServiceLoads;
use crate::daemon::shadow::ShadowComparison;
use crate::daemon::{Daemon, UnderWay};
use crate::engine::{ClusterSnapshot, Engine, EngineAction, JobPhase, JobSeen, NodeHealth, NodeSeen, ServiceSeen};

/// Jobs that are over and still explained.
const ENDED: usize = 200;

impl<E: Engine> Daemon<E> {
    /// Shows people and monitoring where things stand.
    pub(in crate::daemon) fn show(
        &mut self,
        cluster: &ClusterState,
        snapshot: &ClusterSnapshot,
        decided: Option<&Decided>,
        mode: Mode,
    ) {
        let view = cluster.view();
        self.metrics.mode.set(mode as i64);
        self.metrics.open_orders.set(self.open.len() as i64);
        self.metrics.drift.set(self.watch.jobs_reversed() as i64);
        let (mut held, mut total) = (0, 0);
        let mut by_type: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
        for node in &snapshot.nodes {
            let count = by_type.entry(&node.accelerator).or_default();
            match node.health {
                NodeHealth::Up => {
                    count[0] += node.gpus - node.free.min(node.gpus);
                    count[1] += node.free;
                }
                _ => count[2] += node.gpus,
            }
        }
        for (kind, [used, free, closed]) in by_type {
            (held, total) = (held + used, total + used + free);
            for (state, count) in [("held", used), ("free", free), ("closed", closed)] {
                Metrics::set(&self.metrics.accelerators, &[("type", kind), ("state", state)], i64::from(count));
            }
        }
        self.metrics.utilisation.set(f64::from(held) / f64::from(total.max(1)));
        let mut phases: BTreeMap<&str, i64> =
            ["held", "released", "running", "stopping", "suspended"].map(|phase| (phase, 0)).into();
        let release = self.engine.release().unwrap_or_default();
        let Ok(mut status) = self.status.lock() else { return };
        status.engine_release = release;
        let mut before: BTreeMap<String, (Option<ChangeReasons>, Option<LastResize>)> =
            status.queue.iter_mut().map(|row| (row.key.clone(), (row.change.take(), row.resize.take()))).collect();
        let reasons: BTreeMap<&str, (String, String, Option<f32>)> = match decided {
            Some(_) => BTreeMap::new(),
            None => status
                .queue
                .iter()
                .map(|row| (row.key.as_str(), (row.reason.clone(), row.detail.clone(), row.score)))
                .collect(),
        };
        let scores: BTreeMap<JobId, f32> = decided.map(|decided| decided.scores.clone()).unwrap_or_default();
        let changes: BTreeMap<JobId, bool> = decided
            .iter()
            .flat_map(|d| &d.plan.changes)
            .map(|change| (change.job, change.placement.is_empty()))
            .collect();
        let left_out: BTreeMap<JobId, Rule> =
            decided.iter().flat_map(|d| &d.left_out).filter_map(|(job, rule)| Some(((*job)?, *rule))).collect();
        let orders: BTreeMap<&str, &UnderWay> = self.open.iter().map(|u| (u.order.job.as_str(), u)).collect();
        let room = FreeRoom::of(cluster.view());
        let mut queue = Vec::with_capacity(snapshot.jobs.len());
        let mut relative = 0.0;
        for seen in snapshot.jobs.iter().filter(|job| !job.phase.is_over()) {
            let phase = phase_name(seen.phase);
            *phases.entry(phase).or_default() += 1;
            let id = self.observer.id(&seen.key);
            let ordered = id.filter(|_| orders.contains_key(seen.key.as_str()));
            let job = id.and_then(|id| view.job(id));
            let request = &seen.spec.request;
            if let Some(job) = job.filter(|job| job.gpus() > 0)
                && let (Some(rate), Some(asked)) = (job.rate(job.gpus()), job.rate(request.gpus))
            {
                relative += rate / asked.max(f64::MIN_POSITIVE);
            }
            let reason = match (orders.get(seen.key.as_str()), id) {
                (Some(under_way), _) => {
                    Some(WaitReason::Ordered(format!("{} ({})", under_way.order.action.verb(), under_way.note)))
                }
                _ if seen.hands_off || self.watch.leaves_alone(&seen.key) => Some(WaitReason::HandsOff),
                (None, Some(id)) if left_out.contains_key(&id) => Some(WaitReason::Guard(left_out[&id])),
                _ if seen.phase.holds() => Some(WaitReason::Running),
                (None, Some(id)) if mode < Mode::Canary && changes.get(&id) == Some(&false) => {
                    Some(WaitReason::Mode(mode.name().into()))
                }
                (None, Some(id)) if decided.is_some() => {
                    let by = decided.map_or("", |decided| &decided.decision.by);
                    Some(room.why_waiting(id, by))
                }
                _ => None,
            };
            let (code, detail, score) = match reason {
                Some(reason) => (reason.code(), reason.words(), None),
                None => reasons
                    .get(seen.key.as_str())
                    .cloned()
                    .unwrap_or_else(|| (WaitReason::NotDecided.code(), WaitReason::NotDecided.words(), None)),
            };
            // The words of an earlier cycle have the engine's words of then behind them.
            let detail = detail.split(" [").next().unwrap_or_default();
            let detail = if seen.note.is_empty() { detail.into() } else { format!("{detail} [{}]", seen.note) };
            let (change, resize) = before.remove(&seen.key).unwrap_or_default();
            queue.push(QueueRow {
                key: seen.key.clone(),
                name: request.name.clone(),
                tenant: seen.tenant.clone(),
                owner: seen.owner.clone(),
                phase: phase.into(),
                gpus: [request.min_gpus(), request.gpus, request.max_gpus()],
                placement: seen.attempt.as_ref().map(|attempt| attempt.placement.clone()).unwrap_or_default(),
                starts: seen.starts,
                age_secs: job.map_or(0.0, |job| job.age().as_secs_f64()),
                attained_gpu_secs: job.map_or(0.0, |job| job.attained_gpu_millis() as f64 / 1e3),
                progress: None,
                reason: code,
                detail,
                score: id.and_then(|id| scores.get(&id).copied()).or(score),
                failures: seen.failures,
                learned: id.map_or_else(String::new, |id| self.observer.known_speed(id)),
                beside: beside(status.shadow.as_ref(), &seen.key),
                change: id.and_then(|id| decided?.reasons.get(&id).cloned()).or(change),
                resize: ordered.and_then(|id| decided?.resizes.get(&id).cloned()).or(resize),
            });
        }
        queue.sort_by(|a, b| b.age_secs.total_cmp(&a.age_secs).then_with(|| a.key.cmp(&b.key)));
        for seen in snapshot.jobs.iter().filter(|job| job.phase.is_over()) {
            if !status.ended.iter().any(|row| row.key == seen.key) {
                status.ended.push(ended(seen));
            }
        }
        let old = status.ended.len().saturating_sub(ENDED);
        status.ended.drain(..old);
        for (phase, count) in phases {
            Metrics::set(&self.metrics.jobs, &[("state", phase)], count);
        }
        self.metrics.goodput.set(relative);
        status.queue = queue;
        status.nodes.clone_from(&snapshot.nodes);
        let service = |seen: &ServiceSeen| ServiceRow {
            seen: seen.clone(),
            forecast: self.forecast_at(&seen.name, snapshot.at_ms),
        };
        status.services = snapshot.services.iter().map(service).collect();
        self.show_loads(snapshot);
        self.open.iter().for_each(|under_way| show_order(&mut status.nodes, &under_way.order.action));
        status.mode = mode.name().into();
        status.term = self.leader.term();
        if status.term.is_none() {
            status.look = None;
        }
        status.leader = self.leader.seen().cloned();
        status.now_secs = view.now.as_secs_f64();
        status.at_ms = snapshot.at_ms;
        status.open_orders = self.open.len();
        if let Some(decided) = decided {
            status.decisions += 1;
            status.decision_ms = decided.decision.took.as_secs_f64() * 1e3;
            status.look.clone_from(&decided.decision.look);
            status.fallback = match (&decided.decision.instead, decided.decision.fallback) {
                (Some(reason), _) => format!("{}: {reason:?}", decided.decision.by),
                (None, true) if status.fallback.is_empty() => decided.decision.by.clone(),
                (None, true) => std::mem::take(&mut status.fallback),
                (None, false) => String::new(),
            };
        }
    }
}

impl<E> Daemon<E> {
    fn forecast_at(&self, service: &str, at_ms: i64) -> Option<ForecastRecord> {
        self.forecasts.at(self.observer.service_id(service)?, at_ms)
    }

    /// Shows the loads of services to monitoring.
    fn show_loads(&self, snapshot: &ClusterSnapshot) {
        for seen in &snapshot.services {
            let of_service = [("service", seen.name.as_str())];
            Metrics::set_real(&self.metrics.service_load, &of_service, seen.rate);
            let forecast = self.forecast_at(&seen.name, snapshot.at_ms).map(|record| record.last);
            for (level, load) in [("usual", forecast.map(|of| of.usual)), ("high", forecast.map(|of| of.high))] {
                Metrics::set_real(&self.metrics.load_forecast, &[of_service[0], ("level", level)], load);
            }
        }
        for (service, age) in self.loads.iter().flat_map(ServiceLoads::ages) {
            Metrics::set_real(&self.metrics.load_age, &[("service", service.as_str())], age);
        }
    }
}

/// Placement that the shadow policy gave a job in the last comparison, in words.
fn beside(compared: Option<&ShadowComparison>, key: &str) -> String {
    let Some((compared, there)) = compared.and_then(|compared| Some((compared, compared.differs.get(key)?))) else {
        return String::new();
    };
    let name = &compared.candidate.policy;
    let there: Vec<String> = there.iter().map(|on| format!("{}:{}", on.node, on.gpus)).collect();
    match there.is_empty() {
        true => format!("{name} would have it wait"),
        false => format!("{name} would have it on {}", there.join(" ")),
    }
}

/// Row of a job that is over.
fn ended(seen: &JobSeen) -> QueueRow {
    let how = WaitReason::Ended(phase_name(seen.phase).into(), seen.note.clone());
    let request = &seen.spec.request;
    QueueRow {
        key: seen.key.clone(),
        name: request.name.clone(),
        tenant: seen.tenant.clone(),
        owner: seen.owner.clone(),
        phase: phase_name(seen.phase).into(),
        gpus: [request.min_gpus(), request.gpus, request.max_gpus()],
        starts: seen.starts,
        reason: how.code(),
        detail: how.words(),
        failures: seen.failures,
        ..QueueRow::default()
    }
}

/// Shows a node as it is ordered to be: that nothing starts there holds from the order on.
pub(in crate::daemon) fn show_order(nodes: &mut [NodeSeen], action: &EngineAction) {
    let (EngineAction::Drain { node: name, .. } | EngineAction::Undrain { node: name }) = action else { return };
    let Some(node) = nodes.iter_mut().find(|node| node.name == *name) else { return };
    match action {
        EngineAction::Drain { reason, .. } if node.health == NodeHealth::Up => {
            (node.health, node.note) = (NodeHealth::Drained, reason.clone());
        }
        EngineAction::Undrain { .. } if node.health == NodeHealth::Drained => node.note = "is to be used again".into(),
        _ => {}
    }
}

fn phase_name(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Held => "held",
        JobPhase::Released => "released",
        JobPhase::Running => "running",
        JobPhase::Stopping => "stopping",
        JobPhase::Suspended => "suspended",
        JobPhase::Done => "done",
        JobPhase::Failed => "failed",
        JobPhase::Cancelled => "cancelled",
    }
}
