//! The agents, and what was last heard of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::calls::{AgentCalls, Answered};
use super::live::{AttemptProcess, LiveJob};
use crate::agent::api::{
    AttemptState, AttemptStatus, LeaderLease, NodeAccelerator, NodeStatus, Start, Stop, StoredReport, TellMembers,
};
use crate::agent::{AgentClient, AgentError, ClientError};
use crate::devices::DeviceHealth;
use crate::engine::{NodeHealth, NodeSeen, OnNode};
use crate::job::{AcceleratorGrant, GangPlan, GrantIsolation, Launch, MemberLaunch};
use goodput_configs::live::engine::AgentsConfig;
use goodput_configs::live::node_agent::Fencing;

/// Agents of all nodes.
pub struct AgentNodes {
    remotes: Vec<Remote>,
    /// Index of each node in `remotes`.
    index: BTreeMap<String, usize>,
    calls: AgentCalls,
    /// Time at which all agents were asked last. Silence is counted up to then: a node is not
    /// silent because it was not asked.
    looked: Instant,
    /// Since when this daemon leads. Until then another one may have renewed leases, of nodes that
    /// this one did not hear.
    led: Instant,
    suspect_ms: u64,
    lease_ms: u64,
    /// Longest time of one call to an agent.
    patience: Duration,
    /// Shortest time without a renewal after which an agent may kill its jobs, milliseconds.
    shortest_fencing_ms: u64,
}

struct Remote {
    client: AgentClient,
    address: String,
    /// Time and content of the last answer.
    heard: Option<(Instant, NodeStatus)>,
    trouble: String,
    /// Whether the last call was answered, whatever the agent refused beside that.
    answered: bool,
    /// Whether the agent answered that an order cannot be carried out.
    fails: bool,
    drained: Option<String>,
    next_report: u64,
}

impl Remote {
    /// Time on the node's clock from which an order of now is void, milliseconds since the machine started: the
    /// patience with its answer, and some seconds for a driver that is slow.
    fn void_boot_ms(&self, patience: Duration) -> i64 {
        let heard = self.heard.as_ref().map_or(0, |(at, status)| status.boot_ms + at.elapsed().as_millis() as i64);
        heard + (patience + START_SPARE).as_millis() as i64
    }

    /// Reason why the node can start nothing though it answers; `None` where it can.
    fn unfit(&self) -> Option<String> {
        let (_, status) = self.heard.as_ref().filter(|_| self.answered)?;
        let refused = Some(&self.trouble).filter(|_| self.fails);
        status.disk.as_ref().or(status.damaged.first()).or(refused).cloned()
    }

    /// Sentence about the node for people: the worst of what is known, or empty. `unfit` is the reason why it can start
    /// nothing.
    fn note(&self, unfit: Option<String>) -> String {
        let status = self.heard.as_ref().map(|(_, status)| status);
        let of = |part: fn(&NodeStatus) -> Option<String>| status.and_then(part);
        let bare = |status: &NodeStatus| status.accelerators.is_empty().then(|| NO_ACCELERATORS.to_owned());
        let loose = |status: &NodeStatus| Some(format!("no control groups: {}", status.uncontained.as_ref()?));
        self.drained
            .clone()
            .or(unfit)
            .or_else(|| of(|status| status.trouble.clone()))
            .or_else(|| Some(self.trouble.clone()).filter(|trouble| !trouble.is_empty()))
            .or_else(|| of(bare))
            .or_else(|| of(|status| status.certificate.clone()))
            .or_else(|| of(loose))
            .unwrap_or_default()
    }
}

/// Note of a node that answers without an error of its driver and has no accelerators.
const NO_ACCELERATORS: &str = "it has no accelerators: `goodput live devices` on the node asks its driver, and `devices` in the agent's file names \
     another library or fake ones";

/// Leader that agents obey.
pub struct Rival {
    /// Term of the leader.
    pub term: u64,
    /// Name of the leader.
    pub leader: String,
    /// Time since it spoke last, milliseconds.
    pub silent_ms: u64,
}

/// Time that an agent has for a start beyond the patience of the daemon.
const START_SPARE: Duration = Duration::from_secs(5);

/// Accelerators that attempts are to hold: node and UUID.
pub type WantedDevices<'a> = BTreeSet<(&'a str, &'a str)>;

/// The accelerators that the attempts of `jobs` are to hold.
pub fn wanted_devices<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> WantedDevices<'a> {
    let placed = jobs.filter_map(|job| job.current.as_ref()).flat_map(|current| &current.placement);
    placed.flat_map(|on| on.accelerators.iter().map(|uuid| (on.node.as_str(), uuid.as_str()))).collect()
}

/// Result of asking all agents.
pub struct PollResult {
    /// No agent obeys another daemon.
    pub obeyed: bool,
}

impl AgentNodes {
    pub fn new(settings: &AgentsConfig) -> Result<Self, AgentError> {
        let remotes = settings.nodes.iter().map(|node| {
            let client = AgentClient::new(
                node.name.clone(),
                node.address,
                &settings.tls,
                Duration::from_millis(settings.patience_ms),
            )?;
            let (heard, drained) = (None, None);
            let address = node.address.ip().to_string();
            let trouble = String::new();
            Ok(Remote { client, address, heard, trouble, answered: false, fails: false, drained, next_report: 0 })
        });
        let remotes: Vec<Remote> = remotes.collect::<Result<_, AgentError>>()?;
        let index = settings.nodes.iter().enumerate().map(|(index, node)| (node.name.to_string(), index)).collect();
        let patience = Duration::from_millis(settings.patience_ms);
        let calls = AgentCalls::new(settings.nodes.len(), patience);
        let (looked, led, suspect_ms, lease_ms) =
            (Instant::now(), Instant::now(), settings.suspect_ms, settings.lease_ms);
        Ok(Self { remotes, index, calls, looked, led, suspect_ms, lease_ms, patience, shortest_fencing_ms: 0 })
    }

    /// Sets the shortest time without a renewal after which an agent may kill its jobs. A node with
    /// a shorter one gets no jobs: they would die under a daemon that is well.
    pub fn set_shortest_fencing(&mut self, millis: u64) {
        self.shortest_fencing_ms = millis;
    }

    /// Remedy for a node where jobs would die under a daemon that is well; `None` where they would
    /// not.
    fn hasty(&self, remote: &Remote) -> Option<String> {
        let Fencing::Kill { after_ms } = remote.heard.as_ref()?.1.fencing else { return None };
        let shortest = self.shortest_fencing_ms;
        (after_ms < shortest).then(|| {
            format!(
                "its jobs die after {after_ms} ms without a renewal, and {shortest} ms may pass between two: raise after_ms in the agent's file, or lower cycle.poll_secs or engine.agents.patience_ms"
            )
        })
    }

    /// From now on leases are this daemon's.
    pub fn lead(&mut self) {
        self.led = Instant::now();
        self.calls.ask_anew();
    }

    /// Asks all at once; renews their leases where this daemon leads. They count from when a node
    /// was heard at the look before: since then it was made sure that this daemon still leads, so
    /// that however long it is stopped in between, no lease outlives the one its successor reckons
    /// with.
    pub async fn look(&mut self, term: Option<u64>, settings: &AgentsConfig) -> (PollResult, Vec<StoredReport>) {
        let looked = Instant::now();
        let remotes = &self.remotes;
        let question = |index: usize| {
            let remote: &Remote = &remotes[index];
            // A lease counts on the agent's own clock, which only an answer tells. Before the first
            // one the agent learns the term, and no lease is made longer.
            let as_of_boot_ms = remote.heard.as_ref().map_or(0, |(_, status)| status.boot_ms);
            let lease = term.map(|term| LeaderLease { term, leader: settings.leader.clone(), as_of_boot_ms });
            (remote.client.clone(), lease, remote.next_report)
        };
        let answers = self.calls.ask(question).await;
        let (mut obeyed, mut reports) = (true, Vec::new());
        for Answered { index, answer } in answers {
            let remote = &mut self.remotes[index];
            remote.trouble.clear();
            (remote.answered, remote.fails) = (answer.is_ok(), false);
            let rest = answer.and_then(|(at, status, rest)| {
                remote.heard = Some((at, status));
                rest
            });
            match rest {
                Ok((new, next)) => {
                    remote.next_report = next;
                    reports.extend(new);
                }
                Err(error) => {
                    // An agent that knows a later term has heard of another leader.
                    obeyed = obeyed && error.code() != Some("old_term");
                    remote.fails = matches!(error, ClientError::Refused { status: 500.., .. });
                    remote.trouble = error.to_string();
                }
            }
        }
        for (index, remote) in self.remotes.iter_mut().enumerate() {
            let silent = self.calls.unanswered(index);
            if !silent.is_zero() {
                remote.trouble = format!("no answer for {} ms", silent.as_millis());
            }
        }
        self.looked = looked;
        // Agents answer in any order, so their reports are put in order of time.
        reports.sort_by_key(|kept| kept.at_ms);
        (PollResult { obeyed }, reports)
    }

    fn remote(&self, node: &str) -> Option<&Remote> {
        self.index.get(node).map(|&index| &self.remotes[index])
    }

    /// Last state that a node reported.
    pub fn status(&self, node: &str) -> Option<&NodeStatus> {
        self.remote(node)?.heard.as_ref().map(|(_, status)| status)
    }

    /// An attempt on a node, as last heard.
    pub fn attempt(&self, node: &str, id: &str) -> Option<&AttemptStatus> {
        self.status(node)?.attempts.iter().find(|attempt| attempt.id == id)
    }

    /// Names of the jobs of which a node lists an attempt, as last heard.
    pub fn jobs_listed(&self) -> BTreeSet<&str> {
        let heard = self.remotes.iter().filter_map(|remote| remote.heard.as_ref());
        heard.flat_map(|(_, status)| &status.attempts).map(|attempt| attempt.job.as_str()).collect()
    }

    /// Address at which other nodes reach a node.
    pub fn address(&self, node: &str) -> Option<&str> {
        self.remote(node).map(|remote| remote.address.as_str())
    }

    /// Health of a node.
    pub fn health(&self, node: &str) -> NodeHealth {
        let Some(remote) = self.remote(node) else { return NodeHealth::Down };
        let Some((at, status)) = &remote.heard else { return NodeHealth::Down };
        let silent = self.looked.saturating_duration_since(*at).as_millis() as u64;
        match silent {
            _ if silent >= self.suspect_ms && self.is_fenced(node) => NodeHealth::Down,
            _ if silent >= self.suspect_ms => NodeHealth::Suspect,
            // What runs on a node that can start nothing goes on.
            _ if remote.drained.is_some() || self.why_unfit(remote).is_some() => NodeHealth::Drained,
            // A driver that fails to load shows as a node without accelerators. Attempts that it lists may run on.
            _ if status.accelerators.is_empty() && status.attempts.is_empty() => NodeHealth::Down,
            _ if status.accelerators.is_empty() => NodeHealth::Suspect,
            _ => NodeHealth::Up,
        }
    }

    /// Whether no job of a silent node can still run: its agent said that they die without a lease,
    /// and the last lease it can have had is over.
    pub fn is_fenced(&self, node: &str) -> bool {
        let Some(remote) = self.remote(node) else { return false };
        let Some((heard, status)) = &remote.heard else { return false };
        // A lease counts from what the agent's clock showed when it was heard, so no renewal that
        // arrives late makes it longer.
        let kills = matches!(status.fencing, Fencing::Kill { after_ms } if after_ms < self.lease_ms);
        kills && self.led.max(*heard).elapsed().as_millis() as u64 >= self.lease_ms
    }

    /// Whether a node was heard at the last look, of the time after all commands to it, and does as it is told.
    pub fn is_fresh(&self, node: &str) -> bool {
        self.index.get(node).is_some_and(|&index| self.calls.states[index].fresh)
    }

    /// Whether a node answered at the last look, of the time after all commands to it, and knows all of its attempts:
    /// one that it does not tell is not there.
    pub fn answers(&self, node: &str) -> bool {
        let whole = |status: &NodeStatus| status.damaged.is_empty();
        let heard = self.index.get(node).is_some_and(|&index| self.calls.states[index].heard);
        heard && self.status(node).is_some_and(whole)
    }

    /// Nodes that answer and can start nothing, and why.
    pub fn unfit(&self) -> impl Iterator<Item = (&str, String)> {
        self.remotes.iter().filter_map(|remote| Some((remote.client.node().as_str(), self.why_unfit(remote)?)))
    }

    fn why_unfit(&self, remote: &Remote) -> Option<String> {
        remote.unfit().or_else(|| self.hasty(remote))
    }

    /// A node that was heard and keeps attempts to no processors and no memory.
    pub fn without_limits(&self) -> Option<&str> {
        let is_loose = |remote: &&Remote| remote.heard.as_ref().is_some_and(|(_, status)| !status.keeps_limits);
        self.remotes.iter().find(is_loose).map(|remote| remote.client.node().as_str())
    }

    /// A node that was heard and gives no parts of accelerators.
    pub fn without_parts(&self) -> Option<&str> {
        let is_whole = |remote: &&Remote| remote.heard.as_ref().is_some_and(|(_, status)| !status.gives_parts);
        self.remotes.iter().find(is_whole).map(|remote| remote.client.node().as_str())
    }

    /// Numbers of accelerators on their node: their places among those that may be given.
    pub fn numbers(&self, on: &OnNode) -> Vec<u16> {
        let fit = self.fit(&on.node);
        let devices = self.status(&on.node).into_iter().flat_map(|status| &status.accelerators);
        let is_fit = |device: &NodeAccelerator| fit.iter().any(|other| other.uuid == device.uuid);
        let others = devices.filter(|device| !is_fit(device));
        // An accelerator that failed comes after those that may be given, and has a number of its own.
        let uuids: Vec<&str> = fit.iter().copied().chain(others).map(|device| device.uuid.as_str()).collect();
        let number = |uuid: &String| uuids.iter().position(|known| known == uuid).unwrap_or(uuids.len()) as u16;
        on.accelerators.iter().map(number).collect()
    }

    /// Nodes with a certificate that ends soon, and a sentence about the certificate.
    pub fn certificates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.remotes.iter().filter_map(|remote| {
            let (_, status) = remote.heard.as_ref()?;
            Some((remote.client.node().as_str(), status.certificate.as_deref()?))
        })
    }

    /// Whether a node answers and can write nothing down, so that an attempt it does not tell does not begin.
    pub fn cannot_write(&self, node: &str) -> bool {
        let full = |remote: &Remote| remote.heard.as_ref().is_some_and(|(_, status)| status.disk.is_some());
        self.answers(node) && self.remote(node).is_some_and(|remote| remote.fails || full(remote))
    }

    /// Leader of the highest term that agents have seen; `None` before the first answer. Agents that do not tell when
    /// it spoke count as if it spoke just now.
    pub fn rival(&self) -> Option<Rival> {
        let heard = self.remotes.iter().filter_map(|remote| remote.heard.as_ref().map(|(_, status)| status));
        let term = heard.clone().map(|status| status.term).max()?;
        let at_it: Vec<&NodeStatus> = heard.filter(|status| status.term == term).collect();
        let silent_ms = at_it.iter().map(|status| status.leader_silent_ms).min()?;
        Some(Rival { term, leader: at_it.first()?.leader.clone(), silent_ms })
    }

    /// As the daemon is told.
    pub fn seen(&self, wanted: &WantedDevices<'_>) -> Vec<NodeSeen> {
        let seen = self.remotes.iter().map(|remote| {
            let name = remote.client.node().as_str();
            let fit = self.fit(name);
            let free = fit.iter().filter(|device| self.is_free(name, &device.uuid, wanted)).count();
            let note = remote.note(self.why_unfit(remote));
            NodeSeen {
                name: name.to_owned(),
                accelerator: fit.first().map_or_else(String::new, |device| device.kind.clone()),
                gpus: fit.len() as u32,
                free: free as u32,
                memory_mib: fit.iter().filter_map(|device| device.memory_mib).min().map(|mib| mib as u32),
                health: self.health(name),
                note,
                ..NodeSeen::default()
            }
        });
        seen.collect()
    }

    /// Accelerators of a node that may be given, by index. Policies know nodes of one type: of
    /// several, as where some GPUs are split into instances, it is that of the whole ones, then the
    /// most common one.
    pub fn fit(&self, node: &str) -> Vec<&NodeAccelerator> {
        let devices = self.status(node).into_iter().flat_map(|status| &status.accelerators);
        let mut fit: Vec<&NodeAccelerator> = devices.filter(|device| device.health == DeviceHealth::Fit).collect();
        let count = |kind: &str| fit.iter().filter(|device| device.kind == kind).count();
        let rank = |device: &&&NodeAccelerator| (!device.uuid.starts_with("MIG-"), count(&device.kind));
        // `max_by_key` takes the last of equals, which in reverse is the first one.
        let common = fit.iter().rev().max_by_key(rank).map(|device| device.kind.clone());
        fit.retain(|device| common.as_ref() == Some(&device.kind));
        fit
    }

    /// Type of an accelerator, fit or not.
    pub fn kind(&self, node: &str, uuid: &str) -> Option<String> {
        let device = self.status(node)?.accelerators.iter().find(|device| device.uuid == uuid)?;
        Some(device.kind.clone())
    }

    /// Whether an accelerator is held by no attempt, by the agent's word and by the wanted state.
    pub fn is_free(&self, node: &str, uuid: &str, wanted: &WantedDevices<'_>) -> bool {
        let attempts = self.status(node).into_iter().flat_map(|status| &status.attempts);
        let mut running = attempts.filter(|attempt| !matches!(attempt.state, AttemptState::Ended { .. }));
        let held = running.any(|attempt| attempt.grants.iter().any(|grant| grant.uuid == uuid));
        !held && !wanted.contains(&(node, uuid))
    }

    /// Starts the current attempt where it is not known. An agent that knows it says so and does
    /// nothing.
    pub fn start_missing(&mut self, job: &LiveJob, term: u64) {
        let Some(current) = &job.current else { return };
        let Ok(program) = job.program() else { return };
        let (processes, plan) = (current.parts(&job.key), current.plan(self));
        let world: u32 = current.placement.iter().map(|on| on.gpus).sum();
        let peers: Vec<String> = current
            .placement
            .iter()
            .flat_map(|on| std::iter::repeat_n(self.address(&on.node).unwrap_or_default().to_owned(), on.gpus as usize))
            .collect();
        let mut first = 0;
        for (rank, AttemptProcess { id, on, leaving, member }) in processes.iter().enumerate() {
            let gang = GangPlan {
                rank: rank as u32,
                nodes: processes.len() as u32,
                world,
                first,
                master_addr: current.master.0.clone(),
                master_port: current.master.1,
                peers: peers.clone(),
            };
            first += on.gpus;
            // A node that was not heard lately may have begun the attempt already.
            let unknown = !leaving && self.is_fresh(&on.node) && self.attempt(&on.node, id).is_none();
            let Some(&index) = self.index.get(&on.node).filter(|_| unknown) else { continue };
            let grant = |uuid: &String| match job.share {
                None => AcceleratorGrant::whole(uuid),
                Some(share) => AcceleratorGrant {
                    uuid: uuid.clone(),
                    compute_percent: u32::from(share.compute_percent),
                    memory_mib: Some(u64::from(share.memory_mib)),
                    isolation: GrantIsolation::Mps,
                },
            };
            let grants = on.accelerators.iter().map(grant).collect();
            let (program, fence) = (program.clone(), member.map_or(&current.fence, |member| &member.fence).clone());
            let member = member.zip(plan.clone()).map(|(member, plan)| MemberLaunch { number: member.number, plan });
            let limits = job.limits(on.gpus);
            let launch = Launch { program, attempt: current.number, fence, grants, gang, limits, member };
            let client = self.remotes[index].client.clone();
            let void_boot_ms = self.remotes[index].void_boot_ms(self.patience);
            let start = Start { term, void_boot_ms: Some(void_boot_ms), launch };
            self.calls.command(index, void_boot_ms, async move { client.start(&start).await });
        }
    }

    /// Waits a little for what agents were told. Whatever comes of it is seen at a later look.
    pub async fn settle(&mut self) {
        self.calls.settle().await;
    }

    /// Stops the processes of the current attempt that are to leave, wherever they run.
    pub fn stop(&mut self, job: &LiveJob, grace_ms: u64, term: u64) {
        let Some(current) = &job.current else { return };
        let plan = current.plan(self);
        for AttemptProcess { id, on, .. } in current.parts(&job.key).into_iter().filter(|process| process.leaving) {
            let Some(&index) = self.index.get(&on.node).filter(|_| self.is_fresh(&on.node)) else { continue };
            let client = self.remotes[index].client.clone();
            let stop = Stop { term, grace_ms: Some(grace_ms), plan: plan.clone() };
            self.calls.command(index, 0, async move { client.stop(&id, &stop).await });
        }
    }

    /// Tells the members of an elastic attempt the plan, where they have an older one. Those that are stopped are told
    /// with the order to stop.
    pub fn tell_members(&mut self, job: &LiveJob, term: u64) {
        let Some(current) = &job.current else { return };
        let Some(plan) = current.plan(self) else { return };
        for AttemptProcess { id, on, .. } in current.parts(&job.key).into_iter().filter(|process| !process.leaving) {
            let old = |status: &AttemptStatus| status.plan.is_some_and(|version| version < plan.version);
            let is_old = self.is_fresh(&on.node) && self.attempt(&on.node, &id).is_some_and(old);
            let Some(&index) = self.index.get(&on.node).filter(|_| is_old) else { continue };
            let (client, order) = (self.remotes[index].client.clone(), TellMembers { term, plan: plan.clone() });
            self.calls.command(index, 0, async move { client.tell_members(&id, &order).await });
        }
    }

    /// Lets agents forget attempts when their end is written down, and ends unwanted attempts:
    /// those began with an order that arrived late.
    pub fn tidy(&mut self, jobs: &BTreeMap<String, LiveJob>, term: u64) {
        let mut wanted: BTreeMap<(&str, String), (&LiveJob, bool)> = BTreeMap::new();
        for job in jobs.values() {
            let processes = job.current.iter().flat_map(|current| current.parts(&job.key));
            wanted.extend(processes.map(|process| ((process.on.node.as_str(), process.id), (job, process.leaving))));
        }
        for (index, remote) in self.remotes.iter().enumerate() {
            if !self.calls.states[index].fresh {
                continue;
            }
            let (attempts, node) = (remote.heard.iter().flat_map(|(_, status)| &status.attempts), remote.client.node());
            // Jobs of another daemon's folder are none of ours.
            let ours = attempts.filter(|attempt| jobs.contains_key(attempt.job.as_str()));
            for attempt in ours {
                let process = wanted.get(&(node.as_str(), attempt.id.clone()));
                let ended = matches!(attempt.state, AttemptState::Ended { .. });
                let (client, id) = (remote.client.clone(), attempt.id.clone());
                let (grace_ms, plan) = match process {
                    Some((job, true)) => {
                        let plan = job.current.as_ref().and_then(|current| current.plan(self));
                        (u64::from(job.submission.grace_s) * 1000, plan)
                    }
                    Some((_, false)) => continue,
                    None if ended => {
                        self.calls.command(index, 0, async move { client.forget(&id, term).await });
                        continue;
                    }
                    None => (0, None),
                };
                if !ended {
                    let stop = Stop { term, grace_ms: Some(grace_ms), plan };
                    self.calls.command(index, 0, async move { client.stop(&id, &stop).await });
                }
            }
        }
    }

    /// Drains a node, or ends that. `false`: there is none of that name.
    pub fn drain(&mut self, node: &str, reason: Option<String>) -> bool {
        self.index.get(node).map(|&index| self.remotes[index].drained = reason).is_some()
    }

    /// Nodes that are drained, and why.
    pub fn drained(&self) -> BTreeMap<String, String> {
        let drained = self
            .remotes
            .iter()
            .filter_map(|remote| remote.drained.clone().map(|reason| (remote.client.node().to_string(), reason)));
        drained.collect()
    }

    /// Drains the nodes that were drained when the state was written.
    pub fn set_drained(&mut self, drained: BTreeMap<String, String>) {
        for remote in &mut self.remotes {
            remote.drained = drained.get(remote.client.node().as_str()).cloned();
        }
    }
}
