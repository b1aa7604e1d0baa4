//! One turn of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use goodput_env::state::{ClusterState, Trigger};
use goodput_env::time::SimTime;
use serde_json::json;

use crate::daemon::durability::journal::{JournalError, Stage};
use crate::daemon::guard::mass_failure::MassFailureChange;
use crate::daemon::interface::metrics::Metrics;
use crate::daemon::observe::loads::ServiceLoads;
use crate::daemon::{Daemon, DaemonError, UnderWay};
use crate::engine::{
    ClusterSnapshot, Engine, EngineError, EngineProblem, JobSeen, NodeHealth, NodeSeen, Order, OrderId, OrderProgress,
};
use crate::etcd::EtcdError;
use crate::machine::wall_ms;

/// Report of one cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleReport {
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
    /// Time until the engine had shown the cluster.
    pub looking: Duration,
    /// Time of decision, guard and journal.
    pub deciding: Duration,
    /// Time of publication: status and metrics.
    pub showing: Duration,
    /// Time in which the engine was told.
    pub acting: Duration,
}

impl<E: Engine> Daemon<E> {
    /// One turn: look, verify, decide, write down, act.
    ///
    /// # Errors
    /// [`DaemonError`]: what was to be done next was not done; the next cycle begins anew. A
    /// journal or an audit log that cannot be written also sets the mode to observe.
    pub async fn cycle(&mut self) -> Result<CycleReport, DaemonError> {
        let began = Instant::now();
        self.watch_certificates();
        let result = self.turn(began).await;
        self.metrics.cycle.observe(began.elapsed().as_secs_f64());
        self.metrics.engine_up.set(i64::from(!matches!(result, Err(DaemonError::Engine(_)))));
        self.count(&result);
        match &result {
            Err(error) => self.fail(error),
            Ok(_) => {
                if let Some(line) = self.failures.succeeded(Instant::now()) {
                    tracing::info!("{line}");
                }
                if self.health.journal_fails() {
                    self.try_to_write();
                }
            }
        }
        self.health.turned(self.leader.term().is_some(), self.leader.seen().cloned());
        result
    }

    /// Writes to journal and audit log after they failed, so that it is known when they can be written again.
    fn try_to_write(&mut self) {
        let journal = self.journal.remember("written_ms", &wall_ms().to_string());
        let written = journal
            .map_err(DaemonError::from)
            .and_then(|()| Ok(self.audit.write(wall_ms(), "journal", json!({ "written": "again" }))?));
        self.health.journal_written(written.err().map(|error| error.to_string()).as_deref());
    }

    /// Draws the consequences of an error for the next cycles.
    fn fail(&mut self, error: &DaemonError) {
        match error {
            DaemonError::Engine(error) => self.health.engine_failed(&error.to_string()),
            DaemonError::Journal(JournalError::Deposed { .. }) => {}
            DaemonError::Journal(_) | DaemonError::Audit(_) => self.health.journal_written(Some(&error.to_string())),
            _ => {}
        }
        match error {
            DaemonError::Journal(JournalError::Deposed { .. }) | DaemonError::Etcd(EtcdError::Deposed { .. }) => {
                self.leader.step_down();
            }
            DaemonError::Journal(_) | DaemonError::Audit(_) if self.mode != Mode::Observe => {
                self.mode = Mode::Observe;
                self.alert("journal", &format!("mode is observe from now on: {error}"));
            }
            DaemonError::Drill(_) => return,
            _ => {}
        }
        let text = error.to_string();
        let kind = match error {
            DaemonError::Engine(EngineError::Unreachable { engine, .. }) => engine,
            _ => text.as_str(),
        };
        if let Some(error) = self.failures.failed(kind, &text, Instant::now()) {
            tracing::error!(%error, "the cycle ended early");
        }
    }

    async fn turn(&mut self, began: Instant) -> Result<CycleReport, DaemonError> {
        let term = self.leader.tick(&mut self.journal, began).await?;
        self.tell_lease_trouble();
        self.metrics.leader.set(i64::from(term.is_some()));
        self.follow_kept_mode().await?;
        self.follow_kept_policy().await?;
        match term {
            // Whatever becomes of this cycle: another daemon may lead, so all is taken up again.
            None => {
                self.engine.follow();
                self.recovered = None;
            }
            // What the engine promises to machines from here on is promised by a daemon that leads.
            Some(term) => self.journal.check_term(term)?,
        }
        if let Some(term) = term.filter(|_| self.recovered != term) {
            self.engine.lead(term).await?;
        }
        if let Some((_, at)) = &self.last {
            self.metrics.snapshot_age.set(at.elapsed().as_secs_f64());
        }
        let looked = Instant::now();
        let mut snapshot = self.engine.snapshot().await?;
        if let Some(loads) = &mut self.loads {
            loads.show(&mut snapshot, &mut self.observer);
        }
        let snapshot = Arc::new(snapshot);
        self.last = Some((snapshot.clone(), looked));
        self.health.looked();
        self.tell_engine_problems();
        // A look takes time: a lease that ended meanwhile may be another daemon's.
        let term = term.filter(|_| self.leader.holds());
        if term.is_some()
            && let Some(seen) = self.engine.outdated()
        {
            return self.lead_anew(seen).await;
        }
        if term.is_some() && self.recovered != term {
            self.recover(&snapshot).await?;
        }
        if term.is_some() && self.asks_what_rules() {
            self.take_up_ruling_policy().await?;
        }
        // This comes before orders are closed, because the jobs that they moved count.
        self.look_for_mass_failures(&snapshot, began);
        let mut report = CycleReport { leads: term.is_some(), looking: looked.elapsed(), ..CycleReport::default() };
        if let Some(term) = term {
            self.check_canary(&snapshot);
            report.closed = self.close(&snapshot)?;
            let acts = self.mode() >= Mode::Canary;
            self.keep_promises(&snapshot, acts).await?;
            self.keep_ends(&snapshot, term, acts).await?;
            if acts {
                self.take_back_nodes(&snapshot, term)?;
            }
        }
        for job in self.watch.look(&snapshot, began) {
            self.alert(
                "hands-off",
                &format!("job {job} was reversed twice by hand; the daemon leaves it alone for an hour"),
            );
        }
        self.measure(&snapshot, term.is_some())?;
        let deciding = Instant::now();
        let open: Vec<Order> = self.open.iter().map(|under_way| under_way.order.clone()).collect();
        let cluster = Arc::new(self.observer.read(&snapshot, &open)?);
        let mut decided = None;
        self.proposed.clear();
        if term.is_some()
            && self.policy_bar.is_none()
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
        self.compare(&snapshot, term.is_some(), began)?;
        if term.is_some() {
            self.judge_forecasts(&cluster, &snapshot, decided.as_ref())?;
        }
        let showing = Instant::now();
        self.show(&cluster, &snapshot, decided.as_ref(), mode);
        if term.is_some() {
            self.sample_start(&snapshot, began);
        }
        report.showing = showing.elapsed();
        if let Some(term) = term
            && mode >= Mode::Canary
        {
            let acting = Instant::now();
            self.act(&snapshot, term).await?;
            report.acting = acting.elapsed();
        }
        if report.decided {
            self.watch_delays(&snapshot).await?;
        }
        self.forget_closed().await?;
        if term.is_some() && self.kept.elapsed() >= Duration::from_secs(5) {
            self.keep()?;
        }
        report.open = self.open.len();
        Ok(report)
    }

    /// Raises an alert for each problem of the engine and of the loads, once for as long as it lasts.
    fn tell_engine_problems(&mut self) {
        let of_loads = self.loads.iter().flat_map(ServiceLoads::problems);
        let problems: BTreeSet<EngineProblem> = self.engine.problems().into_iter().chain(of_loads).collect();
        let known = std::mem::replace(&mut self.engine_problems, problems.clone());
        for problem in problems.difference(&known) {
            self.alert(problem.kind, &problem.text);
        }
    }

    /// Leads on in a term above `seen`, which machines have of a leader that is no more: the journal was lost, or is an
    /// old one. The next cycle takes up what there is.
    async fn lead_anew(&mut self, seen: u64) -> Result<CycleReport, DaemonError> {
        let before = self.leader.term();
        let term = self.leader.raise(&mut self.journal, seen).await?;
        self.recovered = None;
        let text = format!(
            "machines have seen term {seen}, and the journal says {}: the journal was lost or is an old one; this daemon leads on in a later term, and orders and promises of the lost journal are missing",
            before.unwrap_or_default()
        );
        self.alert("term", &text);
        Ok(CycleReport { leads: term.is_some(), ..CycleReport::default() })
    }

    fn look_for_mass_failures(&mut self, snapshot: &ClusterSnapshot, now: Instant) {
        let open = self.open.iter().map(|under_way| &under_way.order);
        let Some(turn) = self.mass_failures.look(&self.settings.guard, snapshot, open, now) else { return };
        // Jobs that were held back are decided about now.
        self.last_decision = None;
        if let MassFailureChange::Began { nodes, jobs } = turn {
            let guard = &self.settings.guard;
            let (percent, secs) = (guard.mass_failure_moved_percent, guard.mass_failure_hold_secs);
            let text = format!(
                "{nodes} of {} nodes were lost at once, with {jobs} jobs: at most {percent} % of those are placed again in {secs} s",
                snapshot.nodes.len()
            );
            self.alert("mass-failure", &text);
        }
    }

    /// Takes up what an earlier daemon left: its orders, and what jobs had attained.
    async fn recover(&mut self, snapshot: &ClusterSnapshot) -> Result<(), DaemonError> {
        let entries = self.journal.open_orders()?;
        let since = Instant::now();
        let under_way = |order: Order| UnderWay { order, since, note: "taken up again".into() };
        self.open = entries.into_iter().map(|entry| under_way(entry.order)).collect();
        self.inherit().await?;
        self.hand_on_mode().await?;
        self.take_up_promises().await?;
        self.ends = self.journal.ends()?;
        // Jobs have to be registered first, because the past of an unknown one is dropped.
        self.observer.read(snapshot, &[])?;
        for (job, past) in self.journal.pasts()? {
            self.observer.restore(&job, past);
        }
        if let Some(epoch_ms) = self.observer.epoch_ms() {
            self.journal.remember("epoch_ms", &epoch_ms.to_string())?;
        }
        self.take_up_ruling_policy().await?;
        let body = json!({ "term": self.leader.term(), "open_orders": self.open.len(), "policy": self.chooser.name() });
        self.audit.write(wall_ms(), "start", body)?;
        self.recovered = self.leader.term();
        Ok(())
    }

    /// Keeps what jobs have attained.
    pub(in crate::daemon) fn keep(&mut self) -> Result<(), DaemonError> {
        self.journal.keep_pasts(self.observer.pasts())?;
        self.kept = Instant::now();
        Ok(())
    }

    /// Closes the orders that the snapshot shows to be carried out, or never to be.
    fn close(&mut self, snapshot: &ClusterSnapshot) -> Result<usize, DaemonError> {
        if self.open.is_empty() {
            return Ok(0);
        }
        let timeout = Duration::from_secs_f64(self.settings.cycle.order_timeout_secs);
        let jobs: BTreeMap<&str, &JobSeen> = snapshot.jobs.iter().map(|job| (job.key.as_str(), job)).collect();
        // Orders are judged by a snapshot with their own job alone: with all jobs in it each order
        // would look through thousands.
        let mut of_one = snapshot.without_jobs();
        let mut closed: Vec<(OrderId, Stage, String)> = Vec::new();
        let mut done = Vec::new();
        for under_way in &self.open {
            let order = &under_way.order;
            let job = jobs.get(order.job.as_str()).copied();
            of_one.jobs.clear();
            of_one.jobs.extend(job.cloned());
            let (stage, note) = match self.engine.verify(order, &of_one) {
                OrderProgress::Done => (Stage::Done, String::new()),
                OrderProgress::Lost { reason } => (Stage::Lost, reason),
                OrderProgress::Pending if let Some(node) = closed_to(order, job, snapshot) => {
                    (Stage::Lost, format!("{node} takes no jobs any more"))
                }
                OrderProgress::Pending if under_way.since.elapsed() > timeout => {
                    (Stage::Lost, format!("given up after {} s: {}", timeout.as_secs(), under_way.note))
                }
                OrderProgress::Pending => continue,
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
            if let (Some(job), Some(_), Stage::Done) = (jobs.get(order.job.as_str()), order.action.placement(), stage) {
                self.watch.placed(&order.job, job.starts);
            }
        }
        let gone: BTreeSet<&OrderId> = closed.iter().map(|(id, ..)| id).collect();
        self.open.retain(|under_way| !gone.contains(&under_way.order.id));
        let body =
            closed.iter().map(|(id, stage, note)| json!({ "id": id, "done": *stage == Stage::Done, "note": note }));
        self.audit.write(wall_ms(), "verified", body.collect())?;
        Ok(closed.len())
    }

    /// Reason why a policy is to be asked now; `None` where it is not.
    fn due(&self, cluster: &ClusterState) -> Option<Trigger> {
        let view = cluster.view();
        let period = SimTime::from_secs_f64(self.settings.cycle.round_secs).as_millis().max(1);
        let turn = |at: SimTime| at.as_millis().div_euclid(period);
        // A mode that allows more than at the last decision is a reason to decide at once.
        let round = self.last_decision.is_none_or(|last| turn(view.now) > turn(last)) || self.mode() > self.decided_in;
        let wake = self.wake.is_some_and(|wake| view.now >= wake);
        let trigger = Trigger { round, wake, ..view.trigger };
        (trigger.is_churn() || round || wake).then_some(trigger)
    }

    /// Gives up the lease.
    pub async fn resign(&mut self) {
        if self.leader.term().is_some() {
            let _ = self.write_tally();
            let _ = self.keep();
            self.leader.resign(&mut self.journal).await;
        }
    }

    /// Raises an alert where the keeper of the lease is in trouble since the last cycle.
    fn tell_lease_trouble(&mut self) {
        let trouble = self.leader.trouble().map(str::to_owned);
        if let Some(trouble) = trouble.as_ref().filter(|_| self.lease_trouble.is_none()) {
            let until = if self.leader.term().is_some() { "; this daemon leads until its lease is over" } else { "" };
            self.alert("lease", &format!("{trouble}{until}"));
        }
        self.lease_trouble = trouble;
    }
}

/// A drained node on which an order is to start its job, where it holds nothing yet.
fn closed_to<'a>(order: &Order, job: Option<&JobSeen>, snapshot: &'a ClusterSnapshot) -> Option<&'a str> {
    let placement = order.action.placement()?;
    let holds = job.is_some_and(|job| job.phase.holds());
    let closed =
        |node: &&NodeSeen| node.health == NodeHealth::Drained && placement.iter().any(|on| on.node == node.name);
    snapshot.nodes.iter().filter(|_| !holds).find(closed).map(|node| node.name.as_str())
}
