//! Membership of an elastic attempt: what its processes are told, and what they say of it.
//!
//! An elastic attempt is a set of members, one process on one accelerator each. The scheduler says which
//! members there are to be (a [`MembersPlan`], with a version that grows at each change); the members agree
//! among themselves, between two steps, when one joins or leaves. So the scheduler never has to be there
//! at that moment, and training never waits for a process that is still starting.

use serde::{Deserialize, Serialize};

use super::fence::Fence;

/// Member of an elastic attempt, as the other members are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMember {
    /// Number of the member. Numbers are never given twice in an attempt.
    pub number: u32,
    /// Address of the member's node, as other members reach it.
    pub host: String,
    /// Port on which the member listens for other members.
    pub port: u16,
    /// Whether the member is to leave at the end of a step.
    pub leaving: bool,
}

/// Plan for the members of an attempt: those that are to train, and those that are to leave.
///
/// A member that the plan leaves out has ended. Where all of them are leaving, the attempt is to end
/// with a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersPlan {
    /// Version of the plan; of two plans the one with the higher version counts.
    pub version: u64,
    /// Secret that members show each other.
    pub key: Fence,
    /// Member that begins the attempt. The others join it.
    pub founder: u32,
    /// Members by number.
    pub members: Vec<PlannedMember>,
}

/// Place of a process among the members of its attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLaunch {
    /// Number of the member.
    pub number: u32,
    /// Plan at the launch of the member.
    pub plan: MembersPlan,
}

/// Members that train together, as one of them reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedMembers {
    /// Number of the agreement; one more at each change.
    pub agreement: u64,
    /// Nodes of the members.
    pub nodes: u32,
    /// Numbers of the members.
    pub numbers: Vec<u32>,
}
