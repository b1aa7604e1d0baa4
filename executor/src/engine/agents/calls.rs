//! AgentCalls to agents, all at once: no silent agent holds up the calls to others.
//!
//! An agent is asked again when it has answered or its time is over, and each look takes the answers
//! that are there. A look waits a little, but only for agents that answered last time: one that has
//! become silent costs one such wait. A command that is not answered goes on beside the looks.
//!
//! What an agent says is *fresh* where it was asked after the last command to it was over. Only then
//! "the agent does not know the attempt" means that the attempt has not begun. A command without an answer
//! may arrive much later, when a cut wire is mended. It is over when it is void by the agent's own clock.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::timeout_at;

use crate::agent::api::{Done, LeaderLease, NodeStatus, StoredReport};
use crate::agent::{AgentClient, ClientError};

/// Longest wait for agents that answered last time.
const WAIT: Duration = Duration::from_secs(1);

/// Longest time between an agent's look at its clock and an attempt that it tells of, milliseconds.
const BEGINS_MS: i64 = 2000;

/// Answer of an agent: its time, the node's state, and the reports.
pub type AgentAnswer = Result<(Instant, NodeStatus, Result<(Vec<StoredReport>, u64), ClientError>), ClientError>;

/// AgentCalls under way to one agent.
#[derive(Clone, Debug)]
pub struct CallState {
    /// Time at which the agent was asked, until it has answered.
    asked: Option<Instant>,
    /// Whether the agent answered last time.
    quick: bool,
    /// Commands under way, and the end of the last one.
    commands: u32,
    told: Option<Instant>,
    /// Clock of the agent at its last answer, and from when on no command without an answer can be carried out,
    /// milliseconds since the machine started.
    boot_ms: i64,
    void_boot_ms: i64,
    /// Whether the last look had an answer that tells of the time after all commands.
    pub heard: bool,
    /// Whether that answer refused nothing beside.
    pub fresh: bool,
}

impl Default for CallState {
    fn default() -> Self {
        // Of an agent that was never asked an answer is waited for.
        Self {
            asked: None,
            quick: true,
            commands: 0,
            told: None,
            boot_ms: 0,
            void_boot_ms: 0,
            heard: false,
            fresh: false,
        }
    }
}

/// An answer that has come.
pub struct Answered {
    /// Index of the agent.
    pub index: usize,
    /// Answer of the agent.
    pub answer: AgentAnswer,
}

/// A command that is over.
struct Ended {
    /// Index of the agent.
    index: usize,
    /// Time from which the command is void, where it has no answer; 0 otherwise.
    void_boot_ms: i64,
}

/// All calls under way.
pub struct AgentCalls {
    asks: JoinSet<(usize, AgentAnswer)>,
    commands: JoinSet<Ended>,
    /// One for each agent.
    pub states: Vec<CallState>,
    wait: Duration,
}

impl AgentCalls {
    /// AgentCalls to so many agents, each of at most `patience`.
    pub fn new(agents: usize, patience: Duration) -> Self {
        let states = vec![CallState::default(); agents];
        Self { asks: JoinSet::new(), commands: JoinSet::new(), states, wait: WAIT.min(patience) }
    }

    /// Forgets questions under way: they were asked in the name of another leader.
    pub fn ask_anew(&mut self) {
        self.asks = JoinSet::new();
        for state in &mut self.states {
            (state.asked, state.heard, state.fresh) = (None, false, false);
        }
    }

    /// Asks each agent that is not being asked yet, by what `question` makes for its index, and
    /// returns the answers that are there.
    pub async fn ask(&mut self, question: impl Fn(usize) -> (AgentClient, Option<LeaderLease>, u64)) -> Vec<Answered> {
        self.end_commands();
        let now = Instant::now();
        let mut awaited = 0;
        for (index, state) in self.states.iter_mut().enumerate() {
            (state.heard, state.fresh) = (false, false);
            if state.asked.is_some() {
                continue;
            }
            state.asked = Some(now);
            awaited += usize::from(state.quick);
            let (client, lease, since) = question(index);
            self.asks.spawn(async move { (index, ask(client, lease, since).await) });
        }
        let mut answers = Vec::with_capacity(self.states.len());
        let deadline = tokio::time::Instant::now() + self.wait;
        while awaited > 0 {
            let Ok(Some(joined)) = timeout_at(deadline, self.asks.join_next()).await else { break };
            let Ok((index, answer)) = joined else { continue };
            awaited -= usize::from(self.states[index].quick);
            answers.push(self.answered(index, answer));
        }
        while let Some(joined) = self.asks.try_join_next() {
            let Ok((index, answer)) = joined else { continue };
            answers.push(self.answered(index, answer));
        }
        for state in self.states.iter_mut().filter(|state| state.asked.is_some()) {
            state.quick = false;
        }
        answers
    }

    fn answered(&mut self, index: usize, answer: AgentAnswer) -> Answered {
        let state = &mut self.states[index];
        let asked = state.asked.take();
        state.quick = !matches!(answer, Err(ClientError::Unreachable { .. }));
        if let Ok((_, status, _)) = &answer {
            if status.boot_ms < state.boot_ms {
                // The machine has started anew, and its connections are gone.
                state.void_boot_ms = 0;
            }
            state.boot_ms = status.boot_ms;
        }
        let over = state.commands == 0 && state.told.is_none_or(|told| asked >= Some(told));
        state.heard = answer.is_ok() && over && state.boot_ms >= state.void_boot_ms;
        state.fresh = state.heard && matches!(&answer, Ok((_, _, Ok(_))));
        Answered { index, answer }
    }

    /// Sends a command to an agent, which is void from `void_boot_ms` on by the agent's clock; 0 where a late one does
    /// nothing. Whatever comes of it is seen at a later look.
    pub fn command<T>(
        &mut self,
        index: usize,
        void_boot_ms: i64,
        command: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) {
        self.states[index].commands += 1;
        self.commands.spawn(async move {
            let lost = matches!(command.await, Err(ClientError::Unreachable { .. }));
            Ended { index, void_boot_ms: if lost { void_boot_ms } else { 0 } }
        });
    }

    /// Waits a little for the commands under way.
    pub async fn settle(&mut self) {
        let deadline = tokio::time::Instant::now() + self.wait;
        while let Ok(Some(joined)) = timeout_at(deadline, self.commands.join_next()).await {
            self.ended(joined);
        }
    }

    fn end_commands(&mut self) {
        while let Some(joined) = self.commands.try_join_next() {
            self.ended(joined);
        }
    }

    fn ended(&mut self, joined: Result<Ended, tokio::task::JoinError>) {
        if let Ok(Ended { index, void_boot_ms }) = joined {
            let state = &mut self.states[index];
            (state.commands, state.told) = (state.commands.saturating_sub(1), Some(Instant::now()));
            if void_boot_ms > 0 {
                state.void_boot_ms = state.void_boot_ms.max(void_boot_ms + BEGINS_MS);
            }
        }
    }

    /// Time for which an agent has been asked without an answer; zero where it has answered.
    pub fn unanswered(&self, index: usize) -> Duration {
        self.states[index].asked.map_or(Duration::ZERO, |asked| asked.elapsed())
    }
}

async fn ask(client: AgentClient, lease: Option<LeaderLease>, since: u64) -> AgentAnswer {
    // The term comes first: what the agent says after that is not changed by an older leader.
    let renewed = match lease {
        Some(lease) => client.renew(&lease).await,
        None => Ok(Done { term: 0 }),
    };
    if let Err(error @ ClientError::Unreachable { .. }) = renewed {
        return Err(error);
    }
    let status = client.status().await?;
    let heard = Instant::now();
    let rest = match renewed {
        Ok(_) => client.reports(since).await.map(|page| (page.reports, page.next)),
        Err(error) => Err(error),
    };
    Ok((heard, status, rest))
}
