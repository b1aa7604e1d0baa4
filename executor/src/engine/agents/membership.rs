//! An elastic attempt: one process on each accelerator, which join and leave while the others train.
//!
//! The engine says which members there are to be and starts and stops their processes. When a member is in or out,
//! the members agree among themselves (`goodput_members.py`); a report says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::gang::{GangPart, close, is_late, part, severity};
use super::live::{Current, LiveJob};
use super::nodes::{AgentNodes, wanted_devices};
use super::place::{self, Ports};
use crate::engine::{JobPhase, OnNode};
use crate::job::{ExitMeaning, Fence, JobReport, MembersPlan, PlannedMember, RetryBudget, RetryDecision, RetryHistory};

/// Members of an elastic attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// Version of what members are told; one more at each change.
    version: u64,
    /// Member that begins the attempt.
    founder: u32,
    /// Number of the next member.
    next: u32,
    /// Members that have not ended, by number.
    members: Vec<ElasticMember>,
    /// Members that were lost.
    losses: RetryHistory,
    /// Earliest time at which members are started again after a loss, milliseconds since the Unix epoch.
    grows_ms: i64,
    /// Worst end of the members that ended since the first one that ended well; `None` while the program is not done.
    end: Option<ExitMeaning>,
}

/// Member of an elastic attempt: one process on one accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElasticMember {
    /// Number of the member.
    pub number: u32,
    /// Fence of the member, for its agent.
    pub fence: Fence,
    /// Accelerator of the member.
    pub on: OnNode,
    /// Port on which the member listens for the others.
    port: u16,
    /// Start of the member, milliseconds since the Unix epoch.
    since_ms: i64,
    /// Whether the member is to leave.
    leaving: bool,
    /// Whether the member was ever told to leave: its end does not end the job.
    asked: bool,
    /// Whether a report has said that the member trains with the others.
    joined: bool,
}

impl Membership {
    /// The members of an attempt that begins on `placement`.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn begin(placement: &[OnNode], nodes: &AgentNodes, ports: &mut Ports, now_ms: i64) -> Result<Self, String> {
        let (losses, members) = (RetryHistory::default(), Vec::new());
        let mut begun = Self { version: 1, founder: 0, next: 0, members, losses, grows_ms: 0, end: None };
        placement.iter().try_for_each(|on| begun.add(on, nodes, ports, now_ms))?;
        Ok(begun)
    }

    /// Adds a member for each accelerator of `on`.
    fn add(&mut self, on: &OnNode, nodes: &AgentNodes, ports: &mut Ports, now_ms: i64) -> Result<(), String> {
        for uuid in &on.accelerators {
            let fence = Fence::random().map_err(|error| format!("no random numbers: {error}"))?;
            let port = ports.member(nodes.address(&on.node).unwrap_or_default(), now_ms);
            let on = OnNode { node: on.node.clone(), gpus: 1, accelerators: vec![uuid.clone()] };
            let (leaving, asked, joined) = (false, false, false);
            self.members.push(ElasticMember {
                number: self.next,
                fence,
                on,
                port,
                since_ms: now_ms,
                leaving,
                asked,
                joined,
            });
            self.next += 1;
        }
        Ok(())
    }

    /// Members that have not ended, by number.
    pub fn members(&self) -> &[ElasticMember] {
        &self.members
    }

    /// Node and port of each member.
    pub fn ports(&self) -> impl Iterator<Item = (&str, u16)> {
        self.members.iter().map(|member| (member.on.node.as_str(), member.port))
    }

    /// Whether the member loads the state of the training for the others, and is to do so.
    fn begins(&self, member: &ElasticMember) -> bool {
        member.number == self.founder && !member.leaving
    }

    /// Whether a member trains with the others and is to go on.
    fn has_stayer(&self) -> bool {
        self.members.iter().any(|member| member.joined && !member.leaving)
    }

    /// Whether a member is to be stopped now. One that trains goes on until another one can take over from it.
    pub fn stops(&self, member: &ElasticMember) -> bool {
        member.leaving && (!member.joined || self.has_stayer())
    }

    /// Whether all members train and none is to leave.
    pub fn is_settled(&self) -> bool {
        self.members.iter().all(|member| member.joined && !member.leaving)
    }

    /// Accelerators that members hold, by node.
    fn placement(&self) -> Vec<OnNode> {
        let mut placement: Vec<OnNode> = Vec::new();
        for member in &self.members {
            match placement.iter_mut().find(|on| on.node == member.on.node) {
                Some(on) => {
                    on.gpus += 1;
                    on.accelerators.extend_from_slice(&member.on.accelerators);
                }
                None => placement.push(member.on.clone()),
            }
        }
        placement
    }

    /// Takes in the members that train together by a report.
    fn hear(&mut self, report: &JobReport) {
        let Some(said) = &report.members else { return };
        for member in &mut self.members {
            member.joined = member.joined || said.numbers.contains(&member.number);
        }
    }

    /// Takes in the end of a member. Returns what to tell people, where a member was lost.
    fn end(&mut self, number: u32, meaning: ExitMeaning, now_ms: i64) -> Option<String> {
        let at = self.members.iter().position(|member| member.number == number)?;
        let member = self.members.remove(at);
        self.version += 1;
        match meaning {
            // It was told to leave, and whether it trained to the end does not matter.
            _ if member.asked => None,
            meaning if meaning == ExitMeaning::Done || self.end.is_some() => {
                let worst = self.end.into_iter().chain([meaning]).max_by_key(|meaning| severity(*meaning));
                self.end = worst;
                None
            }
            meaning => {
                let budget = RetryBudget::default();
                self.grows_ms = match self.losses.judge(meaning, &budget, now_ms) {
                    RetryDecision::Requeue { not_before_ms } => not_before_ms,
                    RetryDecision::Done | RetryDecision::GiveUp => now_ms + i64::from(budget.window_s) * 1000,
                };
                Some(format!("member {number} on {} was lost; the others go on", member.on.node))
            }
        }
    }

    /// Tells all members that fulfil `which` to leave.
    fn dismiss(&mut self, which: impl Fn(&ElasticMember) -> bool) {
        for member in self.members.iter_mut().filter(|member| !member.leaving && which(member)) {
            (member.leaving, member.asked) = (true, true);
            self.version += 1;
        }
    }
}

impl Current {
    /// Plan for the members of an elastic attempt; `None` for any other attempt.
    pub fn plan(&self, nodes: &AgentNodes) -> Option<MembersPlan> {
        let membership = self.membership.as_ref()?;
        let member = |member: &ElasticMember| PlannedMember {
            number: member.number,
            host: nodes.address(&member.on.node).unwrap_or_default().to_owned(),
            port: member.port,
            leaving: self.leaving || member.leaving,
        };
        // That the attempt is to end is never taken back, so the version that says so is the higher one.
        let version = 2 * membership.version + u64::from(self.leaving);
        let members = membership.members.iter().map(member).collect();
        Some(MembersPlan { version, key: self.fence.clone(), founder: membership.founder, members })
    }
}

/// Brings an elastic job a step on by what its nodes said.
pub fn advance(job: &mut LiveJob, nodes: &AgentNodes, now_ms: i64) {
    let Some(current) = &job.current else { return };
    let Some(mut membership) = current.membership.clone() else { return };
    let (mut leaving, mut ended, mut newest): (bool, Vec<(u32, ExitMeaning)>, Option<&JobReport>) =
        (current.leaving, Vec::new(), None);
    for process in current.parts(&job.key) {
        let Some(member) = process.member else { continue };
        let report = nodes.attempt(&process.on.node, &process.id).and_then(|status| status.report.as_ref());
        if let Some(report) = report {
            membership.hear(report);
            newest = newest.filter(|newest| newest.step > report.step).or(Some(report));
        }
        match part(&process, nodes) {
            GangPart::Ended(meaning, _) => ended.push((member.number, meaning)),
            GangPart::Missing if is_late(member.since_ms, &process.on.node, nodes, now_ms) => {
                membership.dismiss(|other| other.number == member.number);
            }
            GangPart::Missing | GangPart::Alive => {}
        }
    }
    if let Some(report) = newest {
        (job.steps, job.epoch) = (Some(report.step), report.epoch.map_or(job.epoch, |epoch| epoch as u32));
    }
    let mut lost = None;
    for (number, meaning) in &ended {
        lost = membership.end(*number, *meaning, now_ms).or(lost);
    }
    if membership.members.is_empty() {
        let told = |meaning| if meaning == ExitMeaning::Done { ExitMeaning::Preempted } else { meaning };
        let last = ended.into_iter().map(|(_, meaning)| told(meaning)).max_by_key(|meaning| severity(*meaning));
        return close(job, membership.end.or(last).unwrap_or(ExitMeaning::Infrastructure), "", now_ms);
    }
    if membership.end.is_some() {
        membership.dismiss(|member| !member.joined);
    } else if !membership.members.iter().any(|member| member.joined || membership.begins(member)) {
        // No member that is left is known to hold the state of the training, nor will it load the checkpoint, so
        // the attempt is over. It ended as the worst of the members did, or its machine did not start the one
        // that begins it.
        let worst = ended.iter().map(|(_, meaning)| *meaning).max_by_key(|meaning| severity(*meaning));
        membership.end = Some(worst.unwrap_or(ExitMeaning::Infrastructure));
        leaving = true;
    }
    if let Some(note) = lost.filter(|_| !leaving) {
        job.note = note;
    }
    job.phase = JobPhase::Running;
    if let Some(current) = &mut job.current {
        (current.placement, current.leaving) = (membership.placement(), leaving);
        current.membership = Some(membership);
    }
}

/// The elastic job with members on `wanted` from now on: some stay, some are told to leave, some are to be started.
///
/// # Errors
/// The reason why that cannot be now; nothing is changed then.
pub fn change<'a>(
    job: &LiveJob,
    wanted: &[OnNode],
    nodes: &AgentNodes,
    jobs: impl Iterator<Item = &'a LiveJob> + Clone,
    now_ms: i64,
) -> Result<LiveJob, String> {
    let mut after = job.clone();
    let Some(current) = &mut after.current else { return Err("the job does not run".to_owned()) };
    let Some(membership) = &mut current.membership else { return Err("the job is not elastic".to_owned()) };
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    wanted.iter().for_each(|on| *counts.entry(&on.node).or_default() += on.gpus);
    if counts.values().sum::<u32>() == 0 {
        return Err("the placement is empty".to_owned());
    }
    if membership.end.is_some() {
        return Err("the job is about to end".to_owned());
    }
    // While all that train are leaving, none has left: each of them can be kept.
    let recalled = !membership.has_stayer();
    let mut stay: BTreeSet<u32> = BTreeSet::new();
    let mut missing: Vec<OnNode> = Vec::new();
    for (node, count) in counts {
        let may_stay = |member: &&ElasticMember| !member.leaving || recalled && member.joined;
        let mut here: Vec<&ElasticMember> =
            membership.members.iter().filter(|member| member.on.node == node).filter(may_stay).collect();
        here.sort_by_key(|member| (!member.joined, member.number));
        let kept = here.into_iter().take(count as usize).map(|member| member.number);
        let before = stay.len();
        stay.extend(kept);
        let gpus = count - (stay.len() - before) as u32;
        if gpus > 0 {
            missing.push(OnNode { node: node.to_owned(), gpus, accelerators: Vec::new() });
        }
    }
    if !missing.is_empty() && now_ms < membership.grows_ms {
        let secs = (membership.grows_ms - now_ms) / 1000 + 1;
        return Err(format!("a member was lost, and new ones are started in {secs} s"));
    }
    let held = wanted_devices(jobs.clone());
    let mut ports = Ports::of(jobs, nodes);
    let found = missing.iter().map(|on| place::on_node(on, nodes, &held));
    let found = found.collect::<Result<Vec<OnNode>, String>>()?;
    for member in membership.members.iter_mut().filter(|member| member.leaving && stay.contains(&member.number)) {
        member.leaving = false;
        membership.version += 1;
    }
    membership.dismiss(|member| !stay.contains(&member.number));
    if !found.is_empty() {
        membership.version += 1;
        found.iter().try_for_each(|on| membership.add(on, nodes, &mut ports, now_ms))?;
    }
    current.placement = membership.placement();
    Ok(after)
}
