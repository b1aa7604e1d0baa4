//! Mode that a call set: the journal keeps it, so that it outlives the daemon. Where a lease outside the host elects
//! the leader, the mode is there as well, so that it holds for the daemons of all hosts.

use std::time::{Duration, Instant};

use goodput_configs::live::deployment::Mode;
use serde_json::json;

use crate::daemon::{Daemon, DaemonError};
use crate::engine::Engine;
use crate::machine::wall_ms;

use super::journal::{Journal, JournalError};

/// Name of the fact in the journal.
const FACT: &str = "mode";

/// Mode that the journal keeps; `None` where no call has set one. A word that is no mode counts as
/// `observe`, which does no harm.
pub(in crate::daemon) fn read(journal: &Journal) -> Result<Option<Mode>, JournalError> {
    Ok(journal.fact(FACT)?.map(|name| Mode::by_name(&name).unwrap_or_default()))
}

impl<E: Engine> Daemon<E> {
    /// Changes the mode, and has it on disk when it returns. The mode `observe` holds at once, even
    /// where it cannot be written down.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where the engine's settings do not allow the mode, or a canary names what this daemon
    /// has not seen. [`DaemonError::Audit`], [`DaemonError::Journal`], [`DaemonError::Etcd`] or
    /// [`DaemonError::LeaseMode`] where it cannot be written down; another mode than `observe` is not taken up then.
    pub async fn set_mode(&mut self, who: &str, mode: Mode) -> Result<(), DaemonError> {
        let from = self.mode;
        self.settings.check_mode(mode).map_err(|error| DaemonError::Refused(error.to_string()))?;
        if mode == Mode::Observe {
            self.mode = mode;
        }
        if mode == Mode::Canary {
            self.check_canary_names()?;
        }
        self.audit.write(wall_ms(), "mode", json!({ "who": who, "from": from.name(), "to": mode.name() }))?;
        if let Some(shared) = &self.shared {
            shared.set_mode(mode).await?;
        }
        if let Some(lease) = &mut self.lease_mode {
            lease.set(mode).await.map_err(DaemonError::LeaseMode)?;
        }
        self.journal.remember(FACT, mode.name())?;
        (self.mode, self.kept_mode) = (mode, Some(mode));
        self.show_kept_mode();
        Ok(())
    }

    /// Begins in the mode `observe`, whatever mode is kept, until a call sets another one.
    pub fn observe_only(&mut self) {
        self.mode = Mode::Observe;
        self.ignores_kept_mode = true;
        self.show_kept_mode();
    }

    /// Mode that is kept outside the host; `None` where the journal is all there is.
    async fn mode_outside(&mut self) -> Option<Result<Option<Mode>, DaemonError>> {
        if let Some(shared) = &self.shared {
            return Some(shared.mode().await.map_err(DaemonError::from));
        }
        let lease = self.lease_mode.as_mut()?;
        Some(lease.mode().await.map_err(DaemonError::LeaseMode))
    }

    /// Whether a leader has not read the mode for a lease, where the mode is kept outside the host: a stop may have
    /// been ordered at another daemon meanwhile.
    pub(in crate::daemon) fn mode_is_unread(&self) -> bool {
        let outside = self.shared.is_some() || self.lease_mode.is_some();
        let lease = Duration::from_secs(u64::from(self.settings.state.lease_secs));
        outside && self.recovered.is_some() && self.mode_read.elapsed() > lease
    }

    /// Raises an alert, once, where the mode could not be read for a lease.
    fn tell_of_unread_mode(&mut self, error: &DaemonError) {
        if self.mode_is_unread() && !std::mem::replace(&mut self.tells_of_mode, true) {
            let text = format!("the mode cannot be read, so the daemon observes until it can: {error}");
            self.alert("lease", &text);
        }
    }

    /// Takes up a mode that a call to another daemon of the cluster has set since the last look.
    ///
    /// # Errors
    /// [`DaemonError::Etcd`] or [`DaemonError::LeaseMode`] where a leader that takes over cannot read the mode:
    /// nothing is done before it can. [`DaemonError::Journal`] where the journal cannot be used.
    pub(in crate::daemon) async fn follow_kept_mode(&mut self) -> Result<(), DaemonError> {
        let term = self.leader.term();
        let takes_over = term.is_some() && self.recovered != term;
        // What cannot be asked now is asked at the next look.
        if self.leader.trouble().is_some() && !takes_over {
            return Ok(());
        }
        let (outside, kept) = match self.mode_outside().await {
            None => (false, read(&self.journal)?),
            Some(Ok(kept)) => (true, kept),
            Some(Err(error)) if takes_over => return Err(error),
            Some(Err(error)) => {
                self.tell_of_unread_mode(&error);
                return Ok(());
            }
        };
        (self.mode_read, self.tells_of_mode) = (Instant::now(), false);
        let ignored = std::mem::take(&mut self.ignores_kept_mode);
        if let Some(mode) = kept.filter(|_| kept != self.kept_mode) {
            self.kept_mode = kept;
            if !ignored {
                tracing::info!(mode = mode.name(), "another daemon was told to change the mode");
                self.mode = mode;
            }
            self.show_kept_mode();
            if outside {
                // Where the keeper is lost, a daemon begins with the mode that was seen last.
                self.journal.remember(FACT, mode.name())?;
            }
        }
        Ok(())
    }

    /// Has the mode that the journal keeps in the Lease of Kubernetes, where no call has set one there: until now the
    /// journal of this host was all there was.
    pub(in crate::daemon) async fn hand_on_mode(&mut self) -> Result<(), DaemonError> {
        let Some(lease) = &mut self.lease_mode else { return Ok(()) };
        let Some(mode) = read(&self.journal)? else { return Ok(()) };
        lease.begin(mode).await.map_err(DaemonError::LeaseMode)
    }

    /// Sentence that says which mode rules, where the kept mode is another one than the mode of the
    /// deployment file; empty where they agree.
    pub fn mode_note(&self) -> String {
        let file = self.settings.mode.name();
        match self.kept_mode {
            Some(kept) if kept == self.mode && kept != self.settings.mode => format!(
                "mode {} was set by `goodput live mode` and rules; the deployment file says {file}: \
                 `goodput live mode {file}` changes it",
                kept.name()
            ),
            _ => String::new(),
        }
    }

    /// Sentence about what holds the daemon back from its mode; `None` where the mode rules.
    pub fn held_back(&self) -> Option<String> {
        let kept = self.mode.name();
        match self.mode() == self.mode {
            true => None,
            false if self.stop_file.exists() => Some(format!(
                "mode {kept} is kept and does not rule: {} holds the mode at observe; remove the file on the daemon's host",
                self.stop_file.display()
            )),
            false => Some(format!("mode {kept} was read last and does not rule: the mode cannot be read any more")),
        }
    }

    /// Shows in the status which mode rules.
    pub(in crate::daemon) fn show_kept_mode(&mut self) {
        let note = self.mode_note();
        if let Ok(mut status) = self.status.lock() {
            status.mode_note = note;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
pub(in crate::daemon) mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use goodput_configs::live::deployment::{Deployment, Mode};
    use goodput_configs::live::leader::KubernetesLeaseConfig;
    use goodput_configs::reader;
    use goodput_env::job::{JobRequest, JobSpec, Work};
    use goodput_env::tenant::Tenants;
    use goodput_env::time::SimTime;
    use hyper::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use crate::daemon::durability::leader::lease_mode::LeaseMode;
    use crate::daemon::{Daemon, DaemonError, open};
    use crate::engine::{
        Capabilities, ClusterSnapshot, Engine, EngineError, JobSeen, NodeSeen, Order, Receipt, Submission,
    };

    /// One node with room for the one job that waits; it counts the orders.
    #[derive(Default)]
    pub(in crate::daemon) struct Waiting {
        version: u64,
        pub orders: usize,
    }

    impl Engine for Waiting {
        fn name(&self) -> &'static str {
            "waiting"
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities { hold: true, ..Capabilities::default() }
        }

        async fn snapshot(&mut self) -> Result<ClusterSnapshot, EngineError> {
            self.version += 1;
            let request = JobRequest { name: "a".into(), ..JobRequest::default() };
            let spec = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(60) } };
            let node =
                NodeSeen { name: "n0".into(), accelerator: "a100".into(), gpus: 1, free: 1, ..Default::default() };
            let (nodes, jobs) = (vec![node], vec![JobSeen::held("1", spec)]);
            let (version, at_ms) = (self.version, crate::machine::wall_ms());
            Ok(ClusterSnapshot { version, at_ms, nodes, jobs, ..ClusterSnapshot::default() })
        }

        async fn apply(&mut self, orders: &[Order]) -> Result<Vec<Receipt>, EngineError> {
            self.orders += orders.len();
            Ok(Vec::new())
        }

        async fn submit(&mut self, _job: &Submission) -> Result<String, EngineError> {
            Ok("1".into())
        }
    }

    /// A Lease with these annotations; with none, the API server fails.
    pub(in crate::daemon) fn played(answer: Arc<Mutex<Option<serde_json::Value>>>) -> LeaseMode {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        tokio::spawn(async move {
            while let Some((_, send)) = handle.next_request().await {
                let annotations = answer.lock().unwrap().clone();
                let code = if annotations.is_some() { 200 } else { 500 };
                let lease = json!({ "metadata": { "name": "goodput", "annotations": annotations } });
                let body = Body::from(serde_json::to_vec(&lease).unwrap());
                send.send_response(Response::builder().status(code).body(body).unwrap());
            }
        });
        LeaseMode::with_client(&KubernetesLeaseConfig::default(), Client::new(service, "default"))
    }

    /// A daemon that acts by the policy `fifo`, with its files in `directory`.
    pub(in crate::daemon) fn opened(directory: &Path) -> Daemon<Waiting> {
        deciding_by(directory, "name = \"fifo\"")
    }

    /// A daemon that acts by a policy, with its files in `directory`.
    pub(in crate::daemon) fn deciding_by(directory: &Path, policy: &str) -> Daemon<Waiting> {
        let text = format!(
            "mode = \"act\"\n[engine.slurm]\n[policy]\n{policy}\n[reliance]\ntimeout_ms = 20000\nfallback = \"fifo\"\n\
             [state]\ndirectory = {:?}\nname = \"a\"\n[api]\nlisten = \"\"\n",
            directory.display().to_string()
        );
        let settings = reader::parse::<Deployment>("t.toml", &text).unwrap();
        open(Waiting::default(), settings, Vec::new(), Arc::new(Tenants::default())).unwrap()
    }

    #[tokio::test]
    async fn a_leader_that_takes_over_does_nothing_before_it_has_read_the_mode() {
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = opened(directory.path());
        let lease = Arc::new(Mutex::new(None));
        daemon.lease_mode = Some(played(lease.clone()));
        for _ in 0..3 {
            let turn = daemon.cycle().await;
            assert!(matches!(turn, Err(DaemonError::LeaseMode(_))), "{turn:?}");
        }
        assert_eq!((daemon.mode(), daemon.engine.orders), (Mode::Act, 0), "it leads, and does nothing");
        *lease.lock().unwrap() = Some(json!({ "goodput.dev/mode": "observe" }));
        assert!(daemon.cycle().await.unwrap().leads);
        assert_eq!((daemon.mode(), daemon.engine.orders), (Mode::Observe, 0));
        // The journal repeats the mode. A leader that has read the mode goes on by it while the Lease is out of reach.
        assert_eq!(super::read(&daemon.journal).unwrap(), Some(Mode::Observe));
        *lease.lock().unwrap() = None;
        assert!(daemon.cycle().await.unwrap().leads);
        *lease.lock().unwrap() = Some(json!({ "goodput.dev/mode": "act" }));
        daemon.cycle().await.unwrap();
        assert_eq!(daemon.mode(), Mode::Act);
        assert!(daemon.engine.orders > 0, "it acts where the mode lets it");
    }

    /// A stop at another daemon may be what a leader cannot read: after a lease it observes, and says so once.
    #[tokio::test]
    async fn a_leader_that_cannot_read_the_mode_for_a_lease_observes() {
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = opened(directory.path());
        let lease = Arc::new(Mutex::new(Some(json!({ "goodput.dev/mode": "act" }))));
        daemon.lease_mode = Some(played(lease.clone()));
        daemon.cycle().await.unwrap();
        *lease.lock().unwrap() = None;
        daemon.cycle().await.unwrap();
        assert_eq!((daemon.mode(), daemon.held_back()), (Mode::Act, None), "for a lease the last mode holds");
        daemon.mode_read = Instant::now().checked_sub(Duration::from_secs(16)).unwrap();
        for _ in 0..3 {
            daemon.cycle().await.unwrap();
            assert_eq!(daemon.mode(), Mode::Observe);
        }
        assert!(daemon.held_back().unwrap().contains("mode act was read last and does not rule"));
        let alerts = daemon.status.lock().unwrap().alerts.clone();
        assert_eq!(alerts.iter().filter(|alert| alert.contains("the mode cannot be read")).count(), 1, "{alerts:?}");
        *lease.lock().unwrap() = Some(json!({ "goodput.dev/mode": "act" }));
        daemon.cycle().await.unwrap();
        assert_eq!(daemon.mode(), Mode::Act);
    }
}
