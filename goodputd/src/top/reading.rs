//! Answer of the daemon at one moment, and the thread that asks it again and again.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use goodput_console::CommandError;
use goodput_executor::daemon::interface::status::{DaemonStatus, QueueRow, ServiceRow};
use goodput_executor::engine::NodeSeen;
use serde::Serialize;

use crate::client::Client;
use crate::explain;

/// State of a daemon and of the cluster at one moment.
#[derive(Serialize)]
pub struct Reading {
    /// The daemon itself.
    pub status: DaemonStatus,
    /// Nodes of the cluster.
    pub nodes: Vec<NodeSeen>,
    /// Inference services of the cluster.
    pub services: Vec<ServiceRow>,
    /// Jobs that are not over.
    pub queue: Vec<QueueRow>,
}

impl Reading {
    /// Asks the daemon.
    ///
    /// # Errors
    /// [`CommandError`] where the daemon does not answer.
    pub fn of(client: &Client) -> Result<Self, CommandError> {
        Ok(Self {
            status: client.get("/v1/status")?,
            nodes: client.get("/v1/nodes")?,
            services: client.get("/v1/services")?,
            queue: client.get("/v1/queue")?,
        })
    }
}

/// Question of the screen to the daemon.
pub enum ScreenQuestion {
    /// The state now, not only at the next turn.
    State,
    /// The reasons for the state of the job with this key.
    Job(String),
}

/// Answer for the screen.
pub enum ScreenNews {
    /// The state of the daemon.
    State(Box<Reading>),
    /// Text about a job.
    Job(String),
    /// The daemon did not answer, in the words of the error.
    Silent(String),
}

/// Asks the daemon for its state `every` so often, and whatever comes through the first channel, on a thread that ends
/// with the channels. A daemon that is slow delays no key.
pub fn follow(client: Client, every: Duration) -> (Sender<ScreenQuestion>, Receiver<ScreenNews>) {
    let ((ask, asked), (tell, told)) = (channel(), channel());
    thread::spawn(move || {
        let mut next = Instant::now() + every;
        loop {
            let answer = match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(ScreenQuestion::Job(key)) => explain::words(&client, &key).map(ScreenNews::Job),
                Ok(ScreenQuestion::State) | Err(RecvTimeoutError::Timeout) => {
                    next = Instant::now() + every;
                    Reading::of(&client).map(|reading| ScreenNews::State(Box::new(reading)))
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if tell.send(answer.unwrap_or_else(|error| ScreenNews::Silent(error.message().to_owned()))).is_err() {
                return;
            }
        }
    });
    (ask, told)
}
