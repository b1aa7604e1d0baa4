//! The policy that rules on all hosts, where a lease outside the host elects the leader.
//!
//! etcd keeps every change and the bundles. A leader that takes over takes up the policy of the last change before
//! its first decision. Where that is not possible, nothing is decided and an alert says why: another policy would
//! undo the change without a word. The Lease of Kubernetes keeps the name and the SHA-256 only, so a leader with
//! another policy decides nothing until a person has set one.

use std::path::Path;
use std::time::{Duration, Instant};

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::zoo;

use super::policy_change::check_copy;
use crate::daemon::durability::journal::{ChangeVerb, PolicyChange};
use crate::daemon::durability::leader::lease_mode::LeasePolicy;
use crate::daemon::durability::shared::policies::{KEPT, KeptPolicies, LARGEST};
use crate::daemon::open::deciders;
use crate::daemon::{Daemon, DaemonError};
use crate::engine::Engine;

/// Time after which a policy that could not be taken up is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// Changes of a journal that move to etcd: as many as one transaction takes with what goes with them.
const HANDED_ON: usize = 90;

/// Reason why nothing is decided.
#[derive(Debug)]
pub(in crate::daemon) struct PolicyBar {
    text: String,
    since: Instant,
}

impl<E: Engine> Daemon<E> {
    /// Whether this leader has to find out which policy rules.
    pub(super) fn asks_what_rules(&self) -> bool {
        self.policy_doubt || self.policy_bar.as_ref().is_some_and(|bar| bar.since.elapsed() > AGAIN)
    }

    /// Writes a change down: outside the host first, where the policy is kept there, and then in the journal.
    pub(super) async fn write_policy_change(&mut self, change: PolicyChange) -> Result<PolicyChange, DaemonError> {
        if self.shared.is_some() {
            return self.share_policy_change(change).await;
        }
        // The policy of the file rules by being in the file.
        if let Some(lease) = self.lease_mode.as_mut().filter(|_| change.verb != ChangeVerb::File) {
            let term = self.leader.term().unwrap_or_default();
            // A call without an answer may have gone through.
            self.policy_doubt = true;
            lease.set_policy(term, &change.name, &change.sha256).await.map_err(DaemonError::LeaseMode)?;
        }
        let change = self.journal.change_policy(change)?;
        self.policy_doubt = false;
        Ok(change)
    }

    /// Lifts the bar, if there is one: decisions are taken again.
    pub(super) fn lift_bar(&mut self) {
        self.policy_bar = None;
        self.show_bar();
    }

    /// Shows people and monitoring whether nothing is decided.
    fn show_bar(&self) {
        self.health.undecided(self.policy_bar.is_some());
        self.metrics.undecided.set(i64::from(self.policy_bar.is_some()));
        if let Ok(mut status) = self.status.lock() {
            status.undecided = self.policy_bar.as_ref().map(|bar| bar.text.clone()).unwrap_or_default();
        }
    }

    async fn share_policy_change(&mut self, change: PolicyChange) -> Result<PolicyChange, DaemonError> {
        let term = self.leading()?;
        let Some(shared) = &self.shared else { return Ok(change) };
        self.policy_doubt = true;
        let mut kept = shared.settled_policies(term).await?;
        let change = self.hosted(PolicyChange { number: kept.last + 1, ..change });
        let bundle = match (self.bundle_of(&change), change.verb) {
            // The file of this host ruled without etcd; without its bundle the change is in the history alone.
            (Err(_), ChangeVerb::File) => None,
            (found, _) => found?,
        };
        let keep = chain(&kept.changes, &change);
        let shared = self.shared.as_ref().ok_or_else(|| self.stands_by())?;
        let bundles: Vec<_> = bundle.iter().map(|bundle| (change.sha256.clone(), bundle.to_bytes())).collect();
        shared.change_policies(term, std::slice::from_ref(&change), &bundles, &keep).await?;
        (kept.last, kept.fault) = (change.number, None);
        kept.changes.push(change.clone());
        self.mirror(kept)?;
        self.policy_doubt = false;
        Ok(change)
    }

    /// The change with its bundle at its place in the state directory of this host.
    fn hosted(&self, mut change: PolicyChange) -> PolicyChange {
        // The file of another host is not this host's: the copy under the SHA-256 is the same on all.
        if !change.sha256.is_empty() {
            change.policy.bundle = Some(self.copy_of(&change.sha256));
        }
        change
    }

    /// Bundle of a change, which is copied into the state directory where it comes from elsewhere.
    fn bundle_of(&self, change: &PolicyChange) -> Result<Option<PolicyBundle>, DaemonError> {
        if change.sha256.is_empty() {
            return Ok(None);
        }
        let copy = self.copy_of(&change.sha256);
        let named = || match change.verb {
            ChangeVerb::File => self.settings.policy.bundle.clone(),
            _ => change.policy.bundle.clone(),
        };
        let refused = |error: String| DaemonError::Refused(error);
        let place = if copy.exists() { Some(copy) } else { named() };
        let place = place.ok_or_else(|| refused(format!("the bundle of {} is not there", change.name)))?;
        let bundle = zoo::open(&place).map_err(|error| refused(error.to_string()))?;
        if bundle.sha256() != change.sha256 {
            let found = bundle.sha256();
            return Err(refused(format!("{} has another SHA-256 than when it was set: {found}", place.display())));
        }
        if bundle.to_bytes().len() > LARGEST {
            let most = LARGEST >> 20;
            return Err(refused(format!(
                "the bundle of {} is above {most} MiB, the most that etcd keeps",
                change.name
            )));
        }
        self.keep_copy(&bundle)?;
        Ok(Some(bundle))
    }

    /// Has the history of etcd in the journal.
    fn mirror(&mut self, kept: KeptPolicies) -> Result<(), DaemonError> {
        let changes: Vec<PolicyChange> = kept.changes.iter().map(|change| self.hosted(change.clone())).collect();
        self.journal.replace_policy_changes(&changes)?;
        if let Some(shared) = &mut self.shared {
            shared.note_policies(&kept);
        }
        Ok(())
    }

    /// Has the bundle of a change in the state directory, from etcd where it is not there.
    ///
    /// # Errors
    /// [`DaemonError::Etcd`] where etcd cannot be asked; a sentence within where there is no such bundle.
    pub(super) async fn find_copy(&mut self, change: &PolicyChange) -> Result<Result<(), String>, DaemonError> {
        let Some(shared) = self.shared.as_ref().filter(|_| !change.sha256.is_empty() && check_copy(change).is_err())
        else {
            return Ok(Ok(()));
        };
        let (name, sha256) = (&change.name, &change.sha256);
        let Some(bytes) = shared.bundle(sha256).await? else {
            return Ok(Err(format!("neither this host nor etcd has the bundle of {name}, SHA-256 {sha256}")));
        };
        let place = format!("etcd key policy/parts/{sha256}");
        Ok(match PolicyBundle::from_bytes(&bytes, Path::new(&place)) {
            Err(error) => Err(error.to_string()),
            Ok(bundle) if bundle.sha256() != *sha256 => {
                Err(format!("{place} has another SHA-256 than when it was set: {}", bundle.sha256()))
            }
            Ok(bundle) => self.keep_copy(&bundle).map(drop).map_err(|error| error.to_string()),
        })
    }

    /// Takes up the policy that rules on all hosts, before this leader decides. Where that is not possible nothing is
    /// decided.
    ///
    /// # Errors
    /// [`DaemonError::Etcd`] or [`DaemonError::LeaseMode`] where it cannot be asked which policy rules.
    pub(super) async fn take_up_ruling_policy(&mut self) -> Result<(), DaemonError> {
        if self.lease_mode.is_some() {
            return self.compare_with_lease().await;
        }
        let term = self.leading()?;
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut kept = shared.settled_policies(term).await?;
        if kept.last == 0 {
            kept = self.hand_on_policies(term).await?;
        }
        let ruling = kept.ruling().map(|ruling| ruling.map(|change| self.hosted(change)));
        self.mirror(kept)?;
        self.policy_doubt = false;
        let taken = match ruling {
            Err(fault) => Err(fault),
            Ok(Some(change)) if change.verb != ChangeVerb::File => self.take_up_change(change).await?,
            Ok(ruling) => self.take_up_file(ruling.map_or(0, |change| change.number)),
        };
        match taken {
            Ok(()) => self.lift_bar(),
            Err(text) => self.bar(&text),
        }
        Ok(())
    }

    /// Takes up the policy of a change, unless it decides here already: a policy remembers what it has seen.
    async fn take_up_change(&mut self, change: PolicyChange) -> Result<Result<(), String>, DaemonError> {
        if self.kept_policy.as_ref() == Some(&change) {
            return Ok(Ok(()));
        }
        let found = self.find_copy(&change).await?;
        Ok(match found.and_then(|()| self.opened(&change)) {
            Ok(fresh) => {
                self.tell_of_the_file(&change);
                self.take_up(fresh, change);
                Ok(())
            }
            Err(why) => Err(format!(
                "{} was set (change {}) and rules, and this daemon cannot decide by it: {why}; `goodput live policy \
                 set` names another policy",
                change.name, change.number
            )),
        })
    }

    /// Raises an alert where a rollback went to the policy of a file, and the file of this host names another one.
    fn tell_of_the_file(&mut self, change: &PolicyChange) {
        let (name, sha256) = self.policy_of_the_file();
        if change.before.is_none() && !is_one((&name, &sha256), (&change.name, &change.sha256)) {
            let text = format!(
                "a rollback went to {} (change {}), which rules; the deployment file of this host names {name}: \
                 `goodput live policy set {name}` changes it",
                change.name, change.number
            );
            self.alert("policy", &text);
        }
    }

    /// Takes up the policy of the file: no call has set one.
    fn take_up_file(&mut self, number: i64) -> Result<(), String> {
        self.policy_number = number;
        if self.kept_policy.is_none() {
            return Ok(());
        }
        let of_file = deciders(&self.settings, &self.settings.policy, None).map_err(|error| error.to_string())?;
        self.know_the_file(of_file.bundle.as_ref()).map_err(|error| error.to_string())?;
        self.decide_by(of_file);
        self.kept_policy = None;
        Ok(())
    }

    /// Has nothing decided, and says why.
    fn bar(&mut self, why: &str) {
        let text = format!("{why}; nothing is decided meanwhile");
        if self.policy_bar.as_ref().is_none_or(|bar| bar.text != text) {
            self.alert("policy", &text);
        }
        self.policy_bar = Some(PolicyBar { text, since: Instant::now() });
        self.show_bar();
    }

    /// Has the changes of this host's journal in etcd: until now the journal was all there was.
    async fn hand_on_policies(&mut self, term: u64) -> Result<KeptPolicies, DaemonError> {
        let mut changes = self.journal.policy_changes(HANDED_ON)?;
        changes.reverse();
        if self.journal.last_policy_change()? > changes.last().map_or(0, |last| last.number) {
            // An older change must not rule in its place, and the history of etcd would replace it here.
            let text = "the last change of the policy in the journal cannot be read by this program: start the program that wrote it";
            return Err(DaemonError::Refused(text.into()));
        }
        let keep = changes.last().map(|last| chain(&changes, last)).unwrap_or_default();
        let mut bundles = Vec::new();
        for sha256 in &keep {
            // Without its bundle a change is in the history, and cannot be taken up on another host.
            let change = changes.iter().rev().find(|change| change.sha256 == *sha256);
            let bundle = change.and_then(|change| self.bundle_of(change).ok().flatten());
            bundles.extend(bundle.map(|bundle| (sha256.clone(), bundle.to_bytes())));
        }
        if let Some(shared) = self.shared.as_ref().filter(|_| !changes.is_empty()) {
            shared.change_policies(term, &changes, &bundles, &keep).await?;
        }
        let shared = self.shared.as_ref().ok_or_else(|| self.stands_by())?;
        Ok(shared.settled_policies(term).await?)
    }

    /// Takes up, at a daemon that stands by, what was set at the one that leads.
    pub(super) async fn follow_shared_policy(&mut self) -> Result<(), DaemonError> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.leader.term().is_none()) else { return Ok(()) };
        if self.leader.trouble().is_some() {
            return Ok(());
        }
        // What cannot be asked now is asked at the next look, and once more before this daemon decides.
        let Ok(Some(kept)) = shared.new_policies().await else { return Ok(()) };
        let ruling = kept.ruling().ok().flatten().map(|change| self.hosted(change));
        let ruling = ruling.filter(|change| change.number != self.policy_number && change.verb != ChangeVerb::File);
        if let Some(change) = ruling {
            let Ok(found) = self.find_copy(&change).await else { return Ok(()) };
            self.policy_number = change.number;
            match found {
                Ok(()) => self.take_up_kept(change),
                Err(why) => {
                    let text = format!(
                        "{} was set (change {}), and this daemon, which stands by, could not decide by it: {why}",
                        change.name, change.number
                    );
                    self.alert("policy", &text);
                }
            }
        }
        self.mirror(kept)
    }

    /// Name and SHA-256 of the policy that decides here.
    fn own_policy(&self) -> (String, String) {
        let kept = self.kept_policy.as_ref().map(|kept| (kept.name.clone(), kept.sha256.clone()));
        kept.unwrap_or_else(|| self.policy_of_the_file())
    }

    /// Raises an alert at a daemon that stands by, where the Lease names another policy than this daemon's: a takeover
    /// would decide nothing.
    pub(super) async fn compare_while_standing_by(&mut self) {
        let due = self.lease_compared.is_none_or(|at| at.elapsed() > AGAIN);
        let Some(lease) = self.lease_mode.as_mut().filter(|_| due && self.leader.term().is_none()) else { return };
        self.lease_compared = Some(Instant::now());
        // What cannot be asked now is asked at a later look.
        let Ok(Some(ruling)) = lease.policy().await else { return };
        let (name, sha256) = self.own_policy();
        let differs = !is_one((&ruling.name, &ruling.sha256), (&name, &sha256));
        let told = std::mem::replace(&mut self.lease_differs, differs.then(|| ruling.clone()));
        if differs && told.as_ref() != Some(&ruling) {
            self.alert("policy", &format!("this daemon stands by: {}", differing(&ruling, &name, &sha256)));
        }
    }

    /// Compares the policy that decides here with the one that the Lease names.
    async fn compare_with_lease(&mut self) -> Result<(), DaemonError> {
        let term = self.leader.term().unwrap_or_default();
        let (name, sha256) = self.own_policy();
        let Some(lease) = &mut self.lease_mode else { return Ok(()) };
        let ruling = match self.policy_doubt {
            true => lease.settled_policy(term).await,
            false => lease.policy().await,
        };
        match ruling.map_err(DaemonError::LeaseMode)? {
            None if self.kept_policy.is_some() => {
                // Until now the journal of this host was all there was.
                lease.set_policy(term, &name, &sha256).await.map_err(DaemonError::LeaseMode)?;
                self.lift_bar();
            }
            Some(ruling) if !is_one((&ruling.name, &ruling.sha256), (&name, &sha256)) => {
                self.bar(&differing(&ruling, &name, &sha256));
            }
            _ => self.lift_bar(),
        }
        self.policy_doubt = false;
        Ok(())
    }
}

/// Whether two policies, each a name and the SHA-256 of its bundle, are one: bundles by their bytes alone, because one
/// bundle has a path on each host.
fn is_one(one: (&str, &str), other: (&str, &str)) -> bool {
    match (one.1, other.1) {
        ("", "") => one.0 == other.0,
        (one, other) => one == other,
    }
}

/// SHA-256 of the bundles to which rollbacks from a change can go, nearest first and up to a number.
fn chain(changes: &[PolicyChange], last: &PolicyChange) -> Vec<String> {
    let mut hashes: Vec<String> = Vec::new();
    let mut at = Some(last);
    while let Some(change) = at.filter(|_| hashes.len() < KEPT) {
        if !change.sha256.is_empty() && !hashes.contains(&change.sha256) {
            hashes.push(change.sha256.clone());
        }
        let before = change.before.filter(|&before| before < change.number);
        at = before.and_then(|number| changes.iter().find(|change| change.number == number));
    }
    hashes
}

/// Sentence on a leader with another policy than the one that the Lease names.
fn differing(ruling: &LeasePolicy, name: &str, sha256: &str) -> String {
    let called = |name: &str, sha256: &str| match sha256 {
        "" => name.to_owned(),
        sha256 => format!("{name} (SHA-256 {sha256})"),
    };
    let LeasePolicy { number, name: wanted, sha256: hash } = ruling;
    let (rules, own) = (called(wanted, hash), called(name, sha256));
    let settles = match hash.as_str() {
        "" => format!("`goodput live policy set {wanted}` settles it"),
        hash => format!("copy that bundle to this host, and `goodput live policy set FILE --sha256 {hash}` settles it"),
    };
    format!(
        "{rules} was set (change {number}) and rules by the Lease, and this daemon has {own}: {settles}, and `goodput live policy \
         set {name}` keeps the policy of this daemon"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use crate::daemon::DaemonError;
    use goodput_agents::zoo;

    use crate::daemon::durability::kept_mode::tests::{deciding_by, opened, played};
    use crate::daemon::interface::api::PolicyRequest;
    use crate::daemon::interface::health::{HealthCheck, HealthReport};

    #[tokio::test]
    async fn a_leader_with_another_policy_than_the_lease_names_decides_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut daemon = opened(directory.path());
        let with = |term: &str| {
            Some(json!({
                "goodput.dev/term": term, "goodput.dev/policy-number": "3", "goodput.dev/policy-name": "tiresias",
                "goodput.dev/policy-sha256": "",
            }))
        };
        let lease = Arc::new(Mutex::new(with("1")));
        daemon.lease_mode = Some(played(lease.clone()));
        for _ in 0..3 {
            let turn = daemon.cycle().await.unwrap();
            assert!(turn.leads && !turn.decided, "{turn:?}");
        }
        assert_eq!(daemon.engine.orders, 0);
        // A dashboard, the health of the daemon and its status say so for as long as it lasts.
        let failing = |report: HealthReport| report.problems.iter().map(|problem| problem.check).collect::<Vec<_>>();
        assert_eq!(failing(daemon.health.report()), [HealthCheck::Policy]);
        assert!(daemon.metrics.text().contains("goodput_undecided 1"));
        assert!(daemon.status.lock().unwrap().undecided.contains("nothing is decided"));
        let alerts = daemon.status.lock().unwrap().alerts.clone();
        assert_eq!(alerts.len(), 1, "{alerts:?}");
        for words in [
            "policy: tiresias was set (change 3) and rules by the Lease, and this daemon has fifo",
            "`goodput live policy set tiresias` settles it",
            "`goodput live policy set fifo` keeps",
            "nothing is decided",
        ] {
            assert!(alerts[0].contains(words), "{alerts:?}");
        }
        // The Lease comes first: another daemon leads there, so nothing is set.
        let asked = PolicyRequest { policy: "tiresias".into(), ..PolicyRequest::default() };
        *lease.lock().unwrap() = with("2");
        let error = daemon.set_policy("anna", &asked).await.unwrap_err();
        assert!(matches!(&error, DaemonError::LeaseMode(text) if text.contains("term 1 is over")), "{error}");
        assert_eq!(daemon.chooser.name(), "fifo");
        *lease.lock().unwrap() = with("1");
        daemon.set_policy("anna", &asked).await.unwrap();
        assert!(daemon.cycle().await.unwrap().decided);
        assert!(daemon.engine.orders > 0 && daemon.chooser.name() == "tiresias");
        assert_eq!(failing(daemon.health.report()), []);
        assert_eq!((daemon.metrics.undecided.get(), daemon.status.lock().unwrap().undecided.as_str()), (0, ""));
    }

    /// The Lease is compared with the bundle in memory: the file may be replaced or removed, and one bundle has a path
    /// on each host.
    #[tokio::test]
    async fn the_bundle_in_memory_is_compared_and_not_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.bundle");
        let bundle = zoo::load("elastic").unwrap();
        bundle.save(&file).unwrap();
        let mut daemon = deciding_by(directory.path(), &format!("bundle = {file:?}"));
        let named = |name: &str, sha256: &str| {
            Some(json!({
                "goodput.dev/term": "1", "goodput.dev/policy-number": "3", "goodput.dev/policy-name": name,
                "goodput.dev/policy-sha256": sha256,
            }))
        };
        let lease = Arc::new(Mutex::new(named("/elsewhere/theirs.bundle", &bundle.sha256())));
        daemon.lease_mode = Some(played(lease.clone()));
        zoo::load("capacity").unwrap().save(&file).unwrap();
        daemon.cycle().await.unwrap();
        assert!(daemon.policy_bar.is_none(), "{:?}", daemon.policy_bar);
        std::fs::remove_file(&file).unwrap();
        // What the Lease names may have changed in a write without an answer.
        daemon.policy_doubt = true;
        daemon.cycle().await.unwrap();
        assert!(daemon.policy_bar.is_none() && !daemon.policy_doubt, "{:?}", daemon.policy_bar);
        // Another bundle under the path of this host's file is another policy.
        let other = zoo::load("capacity").unwrap().sha256();
        *lease.lock().unwrap() = named(&file.display().to_string(), &other);
        daemon.policy_doubt = true;
        assert!(!daemon.cycle().await.unwrap().decided);
        let why = daemon.status.lock().unwrap().undecided.clone();
        assert!(why.contains(&format!("`goodput live policy set FILE --sha256 {other}` settles it")), "{why}");
    }

    /// A daemon that stands by tells, before it takes over, that it would decide nothing.
    #[tokio::test]
    async fn a_daemon_that_stands_by_tells_that_its_policy_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let mut leader = opened(directory.path());
        leader.cycle().await.unwrap();
        let mut standby = opened(directory.path());
        let lease = json!({ "goodput.dev/policy-number": "1", "goodput.dev/policy-name": "tiresias" });
        standby.lease_mode = Some(played(Arc::new(Mutex::new(Some(lease)))));
        for _ in 0..3 {
            standby.lease_compared = None;
            assert!(!standby.cycle().await.unwrap().leads);
        }
        let alerts = standby.status.lock().unwrap().alerts.clone();
        let told = alerts.iter().filter(|alert| alert.contains("this daemon stands by: tiresias was set"));
        assert_eq!(told.count(), 1, "{alerts:?}");
    }
}
