//! Figures of a training as events, while the training writes them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::stream::{Stream, unfold};

/// Time between two looks at the file.
const PERIOD: Duration = Duration::from_millis(500);

/// Reader of a `progress.csv` that grows. The training writes the whole file anew for each row.
struct ProgressReader {
    path: PathBuf,
    /// Complete lines that were told, the head among them.
    told: Vec<String>,
}

impl ProgressReader {
    /// Events for what is new: `head` with the names of the columns, then `rows` with the lines behind it. A file with
    /// earlier lines that changed is told anew, as happens when a training is resumed from an earlier moment.
    fn look(&mut self) -> Vec<Event> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default().replace('\r', "");
        let lines: Vec<String> =
            text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect();
        // A file that is being written is shorter for a moment.
        if lines.is_empty() || (lines.len() < self.told.len() && self.told.starts_with(&lines)) {
            return Vec::new();
        }
        let known = if lines.starts_with(&self.told) { self.told.len() } else { 0 };
        let mut events = Vec::new();
        if known == 0 {
            events.push(Event::default().event("head").data(&lines[0]));
        }
        let rows = lines[known.max(1)..].join("\n");
        if !rows.is_empty() {
            events.push(Event::default().event("rows").data(rows));
        }
        self.told = lines;
        events
    }
}

/// Events of the file at `path`, without end.
pub fn events(path: PathBuf) -> impl Stream<Item = Result<Event, Infallible>> {
    let follower = ProgressReader { path, told: Vec::new() };
    unfold((follower, Vec::<Event>::new()), |(mut follower, mut waiting)| async move {
        while waiting.is_empty() {
            waiting = follower.look();
            waiting.reverse();
            if waiting.is_empty() {
                tokio::time::sleep(PERIOD).await;
            }
        }
        let next = waiting.pop()?;
        Some((Ok(next), (follower, waiting)))
    })
}
