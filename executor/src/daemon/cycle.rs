//! One turn of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::sim::ObservedCluster;
use goodput_env::time::SimTime;
use goodput_env::view::Trigger;
use serde_json::json;

use super::chooser::Decision;
use super::explain::{Reason, why_waiting};
use super::guard::{Canary, Circumstances, Rule, admit};
use super::journal::Stage;
use super::metrics::Metrics;
use super::orders::{digest, order, orders};
use super::settings::Mode;
use super::status::QueueRow;
use super::{Daemon, DaemonError, UnderWay, wall_ms};
use crate::engine::{Action, Engine, JobPhase, NodeHealth, Order, OrderId, Outcome, Snapshot, Submission, Verdict};

/// What a cycle did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Whether this daemon leads; one that stands by only looks.
    pub leads: bool,
    /// Whether a policy was asked.
    pub decided: bool,
    /// Orders of the decision.
    pub ordered: usize,
    /// Orders that were closed.
    pub closed: usize,
    /// Orders under way at the end.
    pub open: usize,
    /// Time of decision, guard and journal.
    pub deciding: Duration,
}

/// A decision as the guard let it pass.
struct Decided {
    decision: Decision,
    plan: Plan,
    left_out: Vec<(Option<JobId>, Rule)>,
    name: String,
}

impl<E: Engine> Daemon<E> {
    /// One turn: look, verify, decide, write down, act.
    ///
    /// # Errors
    /// [`DaemonError`]: what was to be done next was not done; the next cycle begins anew. A journal or an audit log that cannot be written
    /// also sets the mode to observe.
    pub async fn cycle(&mut self) -> Result<Report, DaemonError> {
        let began = Instant::now();
        let result = self.turn(began).await;
        self.metrics.cycle.observe(began.elapsed().as_secs_f64());
        self.metrics.engine_up.set(i64::from(!matches!(result, Err(DaemonError::Engine(_)))));
        if let Err(error) = &result {
            self.fail(error);
        }
        result
    }

    /// What an error means for what comes next.
    fn fail(&mut self, error: &DaemonError) {
        match error {
            DaemonError::Journal(super::journal::JournalError::Deposed { .. }) => self.leader.step_down(),
            DaemonError::Journal(_) | DaemonError::Audit(_) if self.mode != Mode::Observe => {
                self.mode = Mode::Observe;
                self.alert("journal", &format!("mode is observe from now on: {error}"));
            }
            DaemonError::Drill(_) => return,
            _ => {}
        }
        tracing::error!(%error, "the cycle ended early");
    }

    /// Says that something is wrong, to monitoring, to the log and to whoever looks.
    fn alert(&mut self, kind: &'static str, text: &str) {
        tracing::warn!(alert = kind, text);
        Metrics::count(&self.metrics.alerts, &[("kind", kind)]);
        let _ = self.audit.write(wall_ms(), "alert", json!({ "kind": kind, "text": text }));
        if let Ok(mut status) = self.status.lock() {
            status.alerts.push(format!("{kind}: {text}"));
            let old = status.alerts.len().saturating_sub(20);
            status.alerts.drain(..old);
        }
    }

    async fn turn(&mut self, began: Instant) -> Result<Report, DaemonError> {
        let term = self.leader.tick(&mut self.journal, began)?;
        self.metrics.leader.set(i64::from(term.is_some()));
        if let (Some(term), false) = (term, self.recovered) {
            self.engine.lead(term).await?;
        }
        if let Some((_, at)) = &self.last {
            self.metrics.snapshot_age.set(at.elapsed().as_secs_f64());
        }
        let looked = Instant::now();
        let snapshot = Arc::new(self.engine.snapshot().await?);
        self.last = Some((snapshot.clone(), looked));
        if term.is_some() && !self.recovered {
            self.recover(&snapshot)?;
        }
        if term.is_none() {
            self.recovered = false;
        }
        let mut report = Report { leads: term.is_some(), ..Report::default() };
        if term.is_some() {
            report.closed = self.close(&snapshot)?;
        }
        for job in self.watch.look(&snapshot, began) {
            self.alert("hands-off", &format!("job {job} was reversed twice by somebody else; left alone for an hour"));
        }
        let deciding = Instant::now();
        let open: Vec<Order> = self.open.iter().map(|under_way| under_way.order.clone()).collect();
        let cluster = Arc::new(self.books.read(&snapshot, &open)?);
        let mut decided = None;
        if term.is_some()
            && let Some(trigger) = self.due(&cluster)
        {
            decided = Some(self.decide(&cluster, &snapshot, trigger, began)?);
            report.decided = true;
        }
        let mode = self.mode();
        if let (Some(decided), Some(term)) = (&decided, term) {
            let new = self.write_down(decided, &cluster, &snapshot, term, mode, looked)?;
            report.ordered = new;
            report.deciding = deciding.elapsed();
        }
        self.show(&cluster, &snapshot, decided.as_ref(), mode);
        if let Some(term) = term
            && mode >= Mode::Canary
        {
            self.act(&snapshot, term).await?;
        }
        if term.is_some() && self.kept.elapsed() >= Duration::from_secs(5) {
            self.keep()?;
        }
        report.open = self.open.len();
        Ok(report)
    }

    /// Takes up what an earlier daemon left: its orders, and what jobs had attained.
    fn recover(&mut self, snapshot: &Snapshot) -> Result<(), DaemonError> {
        let entries = self.journal.open_orders()?;
        let since = Instant::now();
        let under_way = |order: Order| UnderWay { order, since, note: "taken up again".into() };
        self.open = entries.into_iter().map(|entry| under_way(entry.order)).collect();
        self.books.read(snapshot, &[])?;
        for (job, past) in self.journal.pasts()? {
            self.books.restore(&job, past);
        }
        if let Some(epoch_ms) = self.books.epoch_ms() {
            self.journal.remember("epoch_ms", &epoch_ms.to_string())?;
        }
        let body = json!({ "term": self.leader.term(), "open_orders": self.open.len(), "policy": self.chooser.name() });
        self.audit.write(wall_ms(), "start", body)?;
        self.recovered = true;
        Ok(())
    }

    /// Keeps what jobs have attained.
    fn keep(&mut self) -> Result<(), DaemonError> {
        self.journal.keep_pasts(self.books.pasts())?;
        self.kept = Instant::now();
        Ok(())
    }

    /// Closes the orders that the snapshot shows to be carried out, or never to be.
    fn close(&mut self, snapshot: &Snapshot) -> Result<usize, DaemonError> {
        let timeout = Duration::from_secs_f64(self.settings.cycle.order_timeout_secs);
        let mut closed: Vec<(OrderId, Stage, String)> = Vec::new();
        let mut done = Vec::new();
        for under_way in &self.open {
            let order = &under_way.order;
            let (stage, note) = match self.engine.verify(order, snapshot) {
                Verdict::Done => (Stage::Done, String::new()),
                Verdict::Lost { reason } => (Stage::Lost, reason),
                Verdict::Pending if under_way.since.elapsed() > timeout => {
                    (Stage::Lost, format!("given up after {} s: {}", timeout.as_secs(), under_way.note))
                }
                Verdict::Pending => continue,
            };
            done.push((order.clone(), stage));
            closed.push((order.id.clone(), stage, note));
        }
        if closed.is_empty() {
            return Ok(0);
        }
        self.pass("before-done")?;
        self.journal.close(&closed, wall_ms())?;
        for (order, stage) in done {
            let result = if stage == Stage::Done { "done" } else { "lost" };
            Metrics::count(&self.metrics.orders, &[("verb", order.action.verb()), ("result", result)]);
            let job = snapshot.jobs.iter().find(|job| job.key == order.job);
            if let (Some(job), Some(_), Stage::Done) = (job, order.action.placement(), stage) {
                self.watch.placed(&order.job, job.starts, job.failures);
            }
        }
        let gone: BTreeSet<&OrderId> = closed.iter().map(|(id, ..)| id).collect();
        self.open.retain(|under_way| !gone.contains(&under_way.order.id));
        let body =
            closed.iter().map(|(id, stage, note)| json!({ "id": id, "done": *stage == Stage::Done, "note": note }));
        self.audit.write(wall_ms(), "verified", body.collect())?;
        Ok(closed.len())
    }

    /// Why a policy is to be asked now; `None` where it is not.
    fn due(&self, cluster: &ObservedCluster) -> Option<Trigger> {
        let view = cluster.view();
        let period = SimTime::from_secs_f64(self.settings.cycle.round_secs).as_millis().max(1);
        let turn = |at: SimTime| at.as_millis().div_euclid(period);
        let round = self.last_decision.is_none_or(|last| turn(view.now) > turn(last));
        let wake = self.wake.is_some_and(|wake| view.now >= wake);
        let trigger = Trigger { round, wake, ..view.trigger };
        (trigger.is_churn() || round || wake).then_some(trigger)
    }

    fn decide(
        &mut self,
        cluster: &Arc<ObservedCluster>,
        snapshot: &Snapshot,
        trigger: Trigger,
        now: Instant,
    ) -> Result<Decided, DaemonError> {
        let mut view = cluster.view();
        view.trigger = trigger;
        let about = self.circumstances(snapshot, now);
        let Self { guard, chooser, settings, .. } = self;
        let mut admitted = None;
        let decision = chooser.decide(cluster, trigger, now, |plan| {
            let judged = admit(&settings.guard, guard, &view, plan, &about);
            let text = |violations: Vec<goodput_env::guard::Violation>| {
                violations.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join("; ")
            };
            admitted = Some(judged.map_err(text)?);
            Ok(())
        });
        // A plan that nobody could make is to keep everything.
        let (plan, left_out) = admitted.unwrap_or_default();
        self.last_decision = Some(view.now);
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
        Ok(Decided { decision, plan, left_out, name })
    }

    fn circumstances(&self, snapshot: &Snapshot, now: Instant) -> Circumstances {
        let id = |key: &str| self.books.id(key);
        let node =
            |name: &str| (0..).map_while(|at| Some((at, self.books.node(at)?))).find(|(_, known)| *known == name);
        let canary = (self.mode() == Mode::Canary).then(|| {
            let settings = &self.settings.canary;
            let hour = Duration::from_secs(3600);
            let lately = self.acted.iter().filter(|at| now.duration_since(**at) < hour).count();
            Canary {
                jobs: settings.jobs.iter().filter_map(|key| id(key)).collect(),
                nodes: settings.nodes.iter().filter_map(|name| Some(node(name)?.0)).collect(),
                budget: settings.orders_per_hour.saturating_sub(lately),
            }
        });
        let closed = snapshot.nodes.iter().filter(|node| node.health != NodeHealth::Up);
        Circumstances {
            under_way: self.open.iter().filter_map(|under_way| id(&under_way.order.job)).collect(),
            hands_off: snapshot
                .jobs
                .iter()
                .filter(|job| self.watch.leaves_alone(&job.key))
                .filter_map(|job| id(&job.key))
                .collect(),
            closed: closed.filter_map(|seen| Some(node(&seen.name)?.0)).collect(),
            preempted: self.preempted.iter().filter_map(|(key, &at)| Some((id(key)?, at))).collect(),
            canary,
            can_lend: self.engine.capabilities().lend,
        }
    }

    /// Writes a decision into audit log and, where it is acted on, journal. Returns the number of its orders.
    fn write_down(
        &mut self,
        decided: &Decided,
        cluster: &ObservedCluster,
        snapshot: &Snapshot,
        term: u64,
        mode: Mode,
        looked: Instant,
    ) -> Result<usize, DaemonError> {
        let view = cluster.view();
        let grace_s = self.settings.cycle.grace_secs;
        let new = orders(&decided.name, &decided.plan, &view, &self.books, snapshot, grace_s);
        if !(new.is_empty() && decided.left_out.is_empty() && decided.decision.instead.is_none()) {
            let left_out = decided
                .left_out
                .iter()
                .map(|(job, rule)| json!({ "job": job.and_then(|job| self.books.key(job)), "rule": rule.name() }));
            let body = json!({
                "snapshot": snapshot.version, "now_ms": view.now.as_millis(), "mode": mode.name(), "term": term,
                "policy": decided.decision.by, "instead": decided.decision.instead, "plan": decided.name,
                "orders": new, "left_out": left_out.collect::<Vec<_>>(),
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

    /// Takes the next step of every order that has room.
    async fn act(&mut self, snapshot: &Snapshot, term: u64) -> Result<(), DaemonError> {
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
            self.journal.check_term(term)?;
            if self.mode() < Mode::Canary {
                return Ok(());
            }
            let receipts = self.engine.apply(batch).await?;
            drop(acting);
            self.pass("after-act")?;
            let mut refused = Vec::new();
            for receipt in receipts {
                let Some(under_way) = self.open.iter_mut().find(|under_way| under_way.order.id == receipt.id) else {
                    continue;
                };
                match receipt.outcome {
                    Outcome::Accepted => under_way.note = "accepted".into(),
                    Outcome::Later { reason } => under_way.note = reason,
                    Outcome::Refused { reason } => refused.push((receipt.id, Stage::Lost, reason)),
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

    /// Orders whose next step has room now: nothing starts on accelerators that others have not left.
    fn ready(&self, snapshot: &Snapshot) -> Vec<Order> {
        let mut free: BTreeMap<&str, u32> = BTreeMap::new();
        for node in snapshot.nodes.iter().filter(|node| node.health == NodeHealth::Up) {
            free.insert(&node.name, node.free);
        }
        let mut phases: BTreeMap<&str, JobPhase> = BTreeMap::new();
        phases.extend(snapshot.jobs.iter().map(|job| (job.key.as_str(), job.phase)));
        let mut ready = Vec::new();
        for UnderWay { order, .. } in &self.open {
            let holds = phases.get(order.job.as_str()).is_some_and(|phase| phase.holds());
            if let Some(placement) = order.action.placement().filter(|_| !holds) {
                let fits = placement.iter().all(|on| free.get(on.node.as_str()).is_some_and(|&free| free >= on.gpus));
                if !fits {
                    continue;
                }
                for on in placement {
                    free.entry(on.node.as_str()).and_modify(|free| *free -= on.gpus.min(*free));
                }
            }
            ready.push(order.clone());
        }
        ready
    }

    /// An order that a person gives: it goes the way of all orders.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where this daemon does not act.
    pub fn order_by_hand(&mut self, who: &str, job: &str, action: Action) -> Result<(), DaemonError> {
        let term = self
            .leader
            .term()
            .ok_or_else(|| DaemonError::Refused("this daemon stands by; ask the one that leads".into()))?;
        if self.mode() < Mode::Canary {
            return Err(DaemonError::Refused(format!(
                "mode is {}: nothing is done; set mode act first",
                self.mode().name()
            )));
        }
        let seen = self.last.as_ref().and_then(|(snapshot, _)| snapshot.jobs.iter().find(|seen| seen.key == job));
        let starts = seen.map_or(0, |seen| seen.starts);
        let at_ms = wall_ms();
        let new = order(&format!("by-hand {who} {at_ms}"), job, starts, action);
        self.audit.write(at_ms, "api", json!({ "who": who, "order": new }))?;
        self.journal.intend(term, "by-hand", std::slice::from_ref(&new), at_ms)?;
        if !job.is_empty() {
            // The person's word goes first: what was under way for the job is void.
            let void = self.open.iter().filter(|under_way| under_way.order.job == job);
            let void: Vec<_> =
                void.map(|u| (u.order.id.clone(), Stage::Lost, "overruled by hand".to_string())).collect();
            self.journal.close(&void, at_ms)?;
            self.open.retain(|under_way| under_way.order.job != job);
            self.watch.released(job);
        }
        self.open.push(UnderWay { order: new, since: Instant::now(), note: String::new() });
        Ok(())
    }

    /// Hands a job to the engine.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] in modes that do not act; [`DaemonError::Engine`] where the engine does not take it.
    pub async fn submit(&mut self, who: &str, job: &Submission) -> Result<String, DaemonError> {
        if let Some(name) = &job.application
            && !self.books.knows(name)
        {
            let text = format!(
                "application {name:?} is not in the catalog; leave it out, or name one of: {}",
                self.books.applications()
            );
            return Err(DaemonError::Refused(text));
        }
        let key = self.engine.submit(job).await?;
        self.audit.write(wall_ms(), "api", json!({ "who": who, "submit": key, "name": job.spec.request.name }))?;
        Ok(key)
    }

    /// Changes the mode.
    ///
    /// # Errors
    /// [`DaemonError::Audit`] where it cannot be written down; the mode stays then.
    pub fn set_mode(&mut self, who: &str, mode: Mode) -> Result<(), DaemonError> {
        self.audit.write(wall_ms(), "mode", json!({ "who": who, "from": self.mode.name(), "to": mode.name() }))?;
        self.mode = mode;
        Ok(())
    }

    /// Gives up the lease.
    pub fn resign(&mut self) {
        if let Some(term) = self.leader.term() {
            let _ = self.keep();
            let _ = self.journal.resign(term);
            self.leader.step_down();
        }
    }

    /// Shows people and monitoring where things stand.
    fn show(&mut self, cluster: &ObservedCluster, snapshot: &Snapshot, decided: Option<&Decided>, mode: Mode) {
        let view = cluster.view();
        self.metrics.mode.set(mode as i64);
        self.metrics.open_orders.set(self.open.len() as i64);
        self.metrics.drift.set(self.watch.troubled() as i64);
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
        let Ok(mut status) = self.status.lock() else { return };
        let reasons: BTreeMap<&str, (String, String, Option<f32>)> = match decided {
            Some(_) => BTreeMap::new(),
            None => status
                .queue
                .iter()
                .map(|row| (row.key.as_str(), (row.reason.clone(), row.detail.clone(), row.score)))
                .collect(),
        };
        let scores: BTreeMap<JobId, f32> = match decided {
            Some(decided) if !decided.decision.fallback => self.chooser.scores(cluster).into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let changes: BTreeMap<JobId, bool> = decided
            .iter()
            .flat_map(|d| &d.plan.changes)
            .map(|change| (change.job, change.placement.is_empty()))
            .collect();
        let left_out: BTreeMap<JobId, Rule> =
            decided.iter().flat_map(|d| &d.left_out).filter_map(|(job, rule)| Some(((*job)?, *rule))).collect();
        let orders: BTreeMap<&str, &UnderWay> = self.open.iter().map(|u| (u.order.job.as_str(), u)).collect();
        let mut queue = Vec::with_capacity(snapshot.jobs.len());
        let mut relative = 0.0;
        for seen in snapshot.jobs.iter().filter(|job| !job.phase.is_over()) {
            let phase = phase_name(seen.phase);
            *phases.entry(phase).or_default() += 1;
            let id = self.books.id(&seen.key);
            let job = id.and_then(|id| view.job(id));
            let request = &seen.spec.request;
            if let Some(job) = job.filter(|job| job.gpus() > 0)
                && let (Some(rate), Some(asked)) = (job.rate(job.gpus()), job.rate(request.gpus))
            {
                relative += rate / asked.max(f64::MIN_POSITIVE);
            }
            let reason = match (orders.get(seen.key.as_str()), id) {
                (Some(under_way), _) => {
                    Some(Reason::Ordered(format!("{} ({})", under_way.order.action.verb(), under_way.note)))
                }
                _ if seen.hands_off || self.watch.leaves_alone(&seen.key) => Some(Reason::HandsOff),
                (None, Some(id)) if left_out.contains_key(&id) => Some(Reason::Guard(left_out[&id])),
                _ if seen.phase.holds() => Some(Reason::Running),
                (None, Some(id)) if mode < Mode::Canary && changes.get(&id) == Some(&false) => {
                    Some(Reason::Mode(mode.name().into()))
                }
                (None, Some(id)) if decided.is_some() => {
                    let by = decided.map_or("", |decided| &decided.decision.by);
                    Some(why_waiting(&view, id, by))
                }
                _ => None,
            };
            let (code, detail, score) = match reason {
                Some(reason) => (reason.code(), reason.words(), None),
                None => reasons
                    .get(seen.key.as_str())
                    .cloned()
                    .unwrap_or_else(|| (Reason::NotDecided.code(), Reason::NotDecided.words(), None)),
            };
            let detail = if seen.note.is_empty() { detail } else { format!("{detail} [{}]", seen.note) };
            queue.push(QueueRow {
                key: seen.key.clone(),
                name: request.name.clone(),
                tenant: seen.tenant.clone(),
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
            });
        }
        for (phase, count) in phases {
            Metrics::set(&self.metrics.jobs, &[("state", phase)], count);
        }
        self.metrics.goodput.set(relative);
        status.queue = queue;
        status.nodes.clone_from(&snapshot.nodes);
        status.mode = mode.name().into();
        status.term = self.leader.term();
        status.now_secs = view.now.as_secs_f64();
        status.at_ms = snapshot.at_ms;
        status.open_orders = self.open.len();
        if let Some(decided) = decided {
            status.decisions += 1;
            status.decision_ms = decided.decision.took.as_secs_f64() * 1e3;
            status.fallback = match (&decided.decision.instead, decided.decision.fallback) {
                (Some(reason), _) => format!("{}: {reason:?}", decided.decision.by),
                (None, true) if status.fallback.is_empty() => decided.decision.by.clone(),
                (None, true) => std::mem::take(&mut status.fallback),
                (None, false) => String::new(),
            };
        }
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
