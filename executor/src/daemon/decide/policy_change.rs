//! Another policy in the running daemon, and the policy before again.
//!
//! A change is tried on the present state of the cluster first, and taken up once the journal has it. The
//! bundle is copied into the state directory, so that neither a restart nor a change of the file takes the
//! policy away. Where a lease outside the host elects the leader, the change is written there before: see
//! `ruling_policy`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_agents::bundle::PolicyBundle;
use goodput_agents::policies::external::ExternalProgram;
use goodput_agents::zoo;
use goodput_configs::live::policy::PolicyConfig;
use goodput_configs::policies;
use goodput_env::guard::{Guard, Violation};
use goodput_env::plan::Plan;
use goodput_env::state::Trigger;
use serde_json::json;

use crate::daemon::durability::journal::{ChangeVerb, PolicyChange};
use crate::daemon::guard::rules::admit;
use crate::daemon::guard::screen::Unreliable;
use crate::daemon::interface::api::PolicyRequest;
use crate::daemon::observe::load_forecasts::LoadForecasts;
use crate::daemon::open::{Deciders, deciders};
use crate::daemon::{Daemon, DaemonError};
use crate::engine::Engine;
use crate::machine::wall_ms;

/// Time for an external program to greet. The daemon waits meanwhile, and keeps its lease.
const START: Duration = Duration::from_secs(10);

/// Changes that the history shows.
const SHOWN: usize = 100;

impl<E: Engine> Daemon<E> {
    /// Has another policy decide from the next cycle on.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where the policy is unknown, damaged, or does not fit this cluster, and where
    /// this daemon stands by; the policy before decides on then. [`DaemonError::Etcd`] or [`DaemonError::LeaseMode`]
    /// where the change cannot be written outside the host: the next cycle finds out what rules.
    pub async fn set_policy(&mut self, by: &str, request: &PolicyRequest) -> Result<PolicyChange, DaemonError> {
        self.must_lead()?;
        let before = self.present_policy().await?;
        let (policy, sha256) = self.policy_asked_for(request)?;
        if policy == before.policy && self.policy_bar.is_none() {
            return Err(DaemonError::Refused(format!("{} decides already", before.name)));
        }
        let change = PolicyChange {
            number: 0,
            at_ms: wall_ms(),
            engine_ms: self.engine_ms_now(),
            by: by.into(),
            reason: request.reason.clone(),
            verb: ChangeVerb::Set,
            name: policy.name.clone().unwrap_or_else(|| request.policy.clone()),
            sha256,
            policy,
            before: Some(before.number),
        };
        self.change_to(change).await
    }

    /// Has the policy before the present one decide again.
    ///
    /// # Errors
    /// [`DaemonError::Refused`] where there is none, or it does not fit this cluster any more.
    pub async fn roll_back_policy(
        &mut self,
        by: &str,
        reason: &str,
        verb: ChangeVerb,
    ) -> Result<PolicyChange, DaemonError> {
        self.must_lead()?;
        let present = self.present_policy().await?;
        let earlier = present.before.map(|number| self.journal.policy_change(number)).transpose()?.flatten();
        let earlier = earlier.ok_or_else(|| {
            let text =
                format!("{} is the first policy of this daemon; set another one by `live policy set`", present.name);
            DaemonError::Refused(text)
        })?;
        let (by, reason) = (by.to_owned(), reason.to_owned());
        let (at_ms, engine_ms) = (wall_ms(), self.engine_ms_now());
        self.change_to(PolicyChange { at_ms, engine_ms, by, reason, verb, ..earlier }).await
    }

    /// The latest changes of the policy, newest first.
    ///
    /// # Errors
    /// [`DaemonError::Journal`] where they cannot be read.
    pub fn policy_history(&self) -> Result<Vec<PolicyChange>, DaemonError> {
        Ok(self.journal.policy_changes(SHOWN)?)
    }

    fn must_lead(&self) -> Result<(), DaemonError> {
        let text = "this daemon stands by; ask the one that leads";
        self.leader.term().map(|_| ()).ok_or_else(|| DaemonError::Refused(text.into()))
    }

    fn engine_ms_now(&self) -> i64 {
        self.last.as_ref().map_or_else(wall_ms, |(snapshot, _)| snapshot.at_ms)
    }

    /// Change that brought the present policy. The policy of the file becomes the first one of the history.
    async fn present_policy(&mut self) -> Result<PolicyChange, DaemonError> {
        let last = self.journal.policy_changes(1)?.pop();
        // A leader that could not take up what rules changes that, and not the policy that it has.
        if let Some(ruling) = last.clone().filter(|last| self.shared.is_some() && last.verb != ChangeVerb::File) {
            return Ok(ruling);
        }
        if let Some(kept) = &self.kept_policy {
            return Ok(kept.clone());
        }
        let policy = self.settings.policy.clone();
        let (name, sha256) = self.policy_of_the_file();
        let plain = |policy: &PolicyConfig| PolicyConfig { bundle: None, ..policy.clone() };
        if let Some(last) = last
            && last.verb == ChangeVerb::File
            && (&last.name, &last.sha256) == (&name, &sha256)
            && plain(&last.policy) == plain(&policy)
        {
            return Ok(last);
        }
        let change = PolicyChange {
            number: 0,
            at_ms: wall_ms(),
            engine_ms: self.engine_ms_now(),
            by: "deployment file".into(),
            reason: String::new(),
            verb: ChangeVerb::File,
            name,
            sha256,
            policy,
            before: None,
        };
        self.write_policy_change(change).await
    }

    /// Name of the policy of the deployment file, and the SHA-256 of its bundle as it was read: the file may be another
    /// one by now. The SHA-256 is empty for a heuristic.
    pub(super) fn policy_of_the_file(&self) -> (String, String) {
        let PolicyConfig { bundle, name, .. } = &self.settings.policy;
        let path = bundle.as_ref().map(|path| path.display().to_string());
        (path.or_else(|| name.clone()).unwrap_or_default(), self.file_sha256.clone())
    }

    /// Notes the bundle of the deployment file as it was read. Where etcd keeps the history, a copy of the bundle is
    /// kept for it.
    ///
    /// # Errors
    /// Where the copy cannot be written.
    pub(in crate::daemon) fn know_the_file(&mut self, bundle: Option<&PolicyBundle>) -> Result<(), DaemonError> {
        self.file_sha256 = bundle.map(PolicyBundle::sha256).unwrap_or_default();
        bundle.filter(|_| self.shared.is_some()).map_or(Ok(()), |bundle| self.keep_copy(bundle).map(drop))
    }

    /// Policy of a request, with a copy of its bundle in the state directory and the hash of the bundle.
    fn policy_asked_for(&self, request: &PolicyRequest) -> Result<(PolicyConfig, String), DaemonError> {
        let refused = |text: String| DaemonError::Refused(text);
        let given = self.settings.policy.clone();
        let is_program = ExternalProgram::is_meant_by(&request.policy);
        let is_bundle = !is_program && (request.policy.starts_with(zoo::PREFIX) || request.policy.contains('/'));
        if !is_bundle {
            let policy = PolicyConfig { bundle: None, name: Some(policies::written(&request.policy)), ..given };
            policy.check().map_err(|error| refused(error.to_string()))?;
            if request.sha256.is_some() {
                let kind = if is_program { "an external program" } else { "a heuristic" };
                return Err(refused(format!("{} is {kind} and has no hash", request.policy)));
            }
            return Ok((policy, String::new()));
        }
        let bundle = zoo::open(request.policy.as_ref()).map_err(|error| {
            refused(format!(
                "{error}; the path is one on the daemon's machine, and `goodput list models` has the shipped bundles"
            ))
        })?;
        let sha256 = bundle.sha256();
        if let Some(wanted) = request.sha256.as_ref().filter(|wanted| !wanted.eq_ignore_ascii_case(&sha256)) {
            return Err(refused(format!(
                "{} has the SHA-256 {sha256}, and {wanted} was asked for: copy the right file to the daemon's machine",
                request.policy
            )));
        }
        let copy = self.keep_copy(&bundle)?;
        Ok((PolicyConfig { bundle: Some(copy), name: None, ..given }, sha256))
    }

    /// Copies a bundle into the state directory, under its SHA-256.
    pub(super) fn keep_copy(&self, bundle: &PolicyBundle) -> Result<PathBuf, DaemonError> {
        let copy = self.copy_of(&bundle.sha256());
        let folder = self.policy_folder();
        let system = |source| DaemonError::System { action: format!("cannot make {}", folder.display()), source };
        fs::create_dir_all(&folder).map_err(system)?;
        bundle.save(&copy).map_err(|error| DaemonError::Refused(error.to_string()))?;
        Ok(copy)
    }

    fn policy_folder(&self) -> PathBuf {
        self.settings.state.directory.join("policies")
    }

    /// Place of the copy of a bundle.
    pub(super) fn copy_of(&self, sha256: &str) -> PathBuf {
        self.policy_folder().join(format!("{sha256}.bundle"))
    }

    /// Tries a policy on the present state of the cluster, writes the change down, and takes it up.
    async fn change_to(&mut self, change: PolicyChange) -> Result<PolicyChange, DaemonError> {
        let found = self.find_copy(&change).await?;
        let tried = found.and_then(|()| self.tried(&change));
        let fresh =
            tried.map_err(|text| DaemonError::Refused(format!("{text}; {} decides on", self.chooser.name())))?;
        let body = json!({
            "who": change.by, "verb": change.verb, "from": self.chooser.name(), "to": change.name,
            "sha256": change.sha256, "reason": change.reason,
        });
        self.audit.write(change.at_ms, "policy", body)?;
        let change = self.write_policy_change(change).await?;
        self.take_up(fresh, change.clone());
        self.lift_bar();
        Ok(change)
    }

    /// A fresh instance of the policy of a change, which was tried on the present state of the cluster.
    pub(super) fn tried(&mut self, change: &PolicyChange) -> Result<Deciders, String> {
        // A policy remembers what it has seen, so another instance is tried than the one that is taken up. Both are
        // made first: a program that the second one asks starts while the first one is tried.
        let made = || deciders(&self.settings, &change.policy, Some(&change.name)).map_err(|error| error.to_string());
        check_copy(change)?;
        let (trial, fresh) = (made()?, made()?);
        self.try_out(trial)?;
        Ok(fresh)
    }

    /// Asks a policy once about the cluster as it is seen. A plan that the guard refuses, a screen that does
    /// not let the cluster pass, a panic and silence are all reasons against the policy.
    fn try_out(&mut self, deciders: Deciders) -> Result<(), String> {
        let Deciders { mut chooser, .. } = deciders;
        let now = Instant::now();
        let cluster = self.seen().map_err(|error| error.to_string())?;
        let (Some(cluster), Some((snapshot, _))) = (cluster, &self.last) else {
            return Err("no snapshot of the cluster has been taken yet; try again".into());
        };
        let cluster = Arc::new(cluster);
        let about = self.circumstances(snapshot, now);
        let mut view = cluster.view();
        view.trigger = Trigger { round: true, ..view.trigger };
        let judge = |plan: &Plan| {
            let judged = admit(&self.settings.guard, &mut Guard::default(), &view, plan, &about);
            let text =
                |found: Vec<Violation>| found.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            judged.map(drop).map_err(text)
        };
        let mut instead = chooser.decide(&cluster, view.trigger, now, judge).instead;
        while instead == Some(Unreliable::Starting) && now.elapsed() < START {
            instead = chooser.decide(&cluster, view.trigger, now, judge).instead;
        }
        match instead {
            None => Ok(()),
            Some(Unreliable::OutOfDistribution(why) | Unreliable::Unsuited(why)) => {
                Err(format!("{} does not fit this cluster: {why}", chooser.name()))
            }
            Some(Unreliable::Timeout) => {
                let most = chooser.first_decision().as_secs_f64();
                Err(format!("{} gave no answer within {most} s; `[reliance] timeout_ms` gives it more", chooser.name()))
            }
            Some(Unreliable::Failed(why)) => Err(format!("{} failed: {why}", chooser.name())),
            Some(Unreliable::Starting) => Err(format!("{} did not greet within {} s", chooser.name(), START.as_secs())),
            Some(reason) => Err(format!("{} cannot be relied on: {reason:?}", chooser.name())),
        }
    }

    pub(super) fn take_up(&mut self, deciders: Deciders, change: PolicyChange) {
        tracing::info!(policy = deciders.chooser.name(), by = change.by, "the policy was changed");
        self.decide_by(deciders);
        self.policy_number = change.number;
        self.kept_policy = (change.verb != ChangeVerb::File).then_some(change);
    }

    /// Has other deciders from now on.
    pub(super) fn decide_by(&mut self, deciders: Deciders) {
        let Deciders { chooser, shadow, outlook, starts, told, bundle: _ } = deciders;
        self.observer.tell(told.information, told.batching);
        if let Ok(mut status) = self.status.lock() {
            status.policy = chooser.name().into();
            (status.shadow, status.look) = (None, None);
            status.fallback.clear();
        }
        (self.chooser, self.shadow, self.outlook, self.starts) = (chooser, shadow, outlook, starts);
        self.forecasts = LoadForecasts::default();
        // The new policy is asked at once.
        (self.last_decision, self.wake) = (None, None);
    }

    /// Takes up the policy that a call has set, when the daemon begins. A rollback to the policy of the file
    /// follows the file.
    pub(in crate::daemon) fn take_up_kept_policy(&mut self) -> Result<(), DaemonError> {
        let Some(change) = self.journal.policy_changes(1)?.pop() else { return Ok(()) };
        self.policy_number = change.number;
        if change.before.is_some() {
            self.take_up_kept(change);
        }
        Ok(())
    }

    /// Takes up a policy that was set at another daemon since the last look.
    pub(in crate::daemon) async fn follow_kept_policy(&mut self) -> Result<(), DaemonError> {
        if self.shared.is_some() {
            return self.follow_shared_policy().await;
        }
        self.compare_while_standing_by().await;
        if self.journal.last_policy_change()? == self.policy_number {
            return Ok(());
        }
        let Some(change) = self.journal.policy_changes(1)?.pop() else { return Ok(()) };
        self.policy_number = change.number;
        if change.verb != ChangeVerb::File {
            self.take_up_kept(change);
        }
        Ok(())
    }

    /// Takes up a policy of the journal. The policy that decides already goes on where that one cannot be had.
    pub(super) fn take_up_kept(&mut self, change: PolicyChange) {
        match self.opened(&change) {
            Ok(deciders) => self.take_up(deciders, change),
            Err(error) => {
                let (name, present) = (&change.name, self.chooser.name());
                let text = format!("{name} was set by `live policy` and cannot be opened ({error}): {present} decides");
                self.alert("policy", &text);
            }
        }
    }

    /// The policy of a change that rules already. Where it does not fit the cluster of the moment, the fallback decides
    /// as it does after a change of the cluster.
    pub(super) fn opened(&self, change: &PolicyChange) -> Result<Deciders, String> {
        check_copy(change)?;
        deciders(&self.settings, &change.policy, Some(&change.name)).map_err(|error| error.to_string())
    }
}

/// Checks that the copy of a bundle is the bundle that was set.
pub(super) fn check_copy(change: &PolicyChange) -> Result<(), String> {
    let Some(path) = change.policy.bundle.as_ref().filter(|_| !change.sha256.is_empty()) else { return Ok(()) };
    let found = zoo::open(path).map_err(|error| error.to_string())?.sha256();
    match found == change.sha256 {
        true => Ok(()),
        false => Err(format!("{} has another SHA-256 than when it was set: {found}", path.display())),
    }
}
