//! Connections of one server, counted so that silent ones keep no place from a peer that speaks.
//!
//! A connection *waits* until its peer has said what it wants. Where the server is full, or one
//! address has more than its part, the connection that has waited longest gives way to the new one:
//! a peer that means to ask does so within milliseconds. A connection at work, and one of a peer that
//! is known, never gives way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

/// Most connections of one server.
const MOST: usize = 256;

/// Fewest connections of one server, however few file descriptors the process may have.
const FEWEST: usize = 16;

/// Connections of one server, by the address of their peers.
#[derive(Debug)]
pub struct Visitors<A> {
    most: usize,
    book: Arc<Mutex<VisitorBook<A>>>,
}

#[derive(Debug)]
struct VisitorBook<A> {
    next: u64,
    entries: BTreeMap<u64, Entry<A>>,
}

#[derive(Debug)]
struct Entry<A> {
    address: A,
    state: VisitState,
    leave: Arc<Notify>,
}

/// State of a connection, by which it gives way or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VisitState {
    /// The peer has not said what it wants. The number orders connections by when that began.
    Waits(u64),
    /// A request is carried out.
    Works,
    /// The peer is known.
    Trusted,
}

/// One connection, counted as long as the value lives.
#[derive(Debug)]
pub struct Visit<A> {
    number: u64,
    leave: Arc<Notify>,
    book: Arc<Mutex<VisitorBook<A>>>,
}

fn lock<A>(book: &Mutex<VisitorBook<A>>) -> MutexGuard<'_, VisitorBook<A>> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A: Copy + Ord> Visitors<A> {
    /// At most `most` connections, and half as many of one address.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, book: Arc::new(Mutex::new(VisitorBook { next: 0, entries: BTreeMap::new() })) }
    }

    /// As many connections as suit a process with its limit of open files: a quarter of them, at most
    /// 256.
    #[must_use]
    pub fn of_this_process() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::new(usize::try_from(files / 4).unwrap_or(MOST).clamp(FEWEST, MOST))
    }

    /// Lets a connection in, in place of one that waits where there are too many. `None`: there are
    /// too many, and all of them are at work.
    #[must_use]
    pub fn enter(&self, address: A) -> Option<Visit<A>> {
        let mut book = lock(&self.book);
        let from_there = book.entries.values().filter(|entry| entry.address == address).count();
        if from_there >= self.most.div_ceil(2) {
            book.send_away(address)?;
        } else if book.entries.len() >= self.most {
            let crowd = book.crowd()?;
            book.send_away(crowd)?;
        }
        let (number, leave) = (book.next, Arc::new(Notify::new()));
        book.next += 1;
        book.entries.insert(number, Entry { address, state: VisitState::Waits(number), leave: Arc::clone(&leave) });
        Some(Visit { number, leave, book: Arc::clone(&self.book) })
    }

    /// Ends the connection that has waited longest, for its file descriptor.
    pub fn make_room(&self) {
        let mut book = lock(&self.book);
        if let Some(crowd) = book.crowd() {
            let _ = book.send_away(crowd);
        }
    }
}

impl<A: Copy + Ord> VisitorBook<A> {
    fn waiting(&self) -> impl Iterator<Item = (u64, u64, A)> {
        self.entries.iter().filter_map(|(number, entry)| match entry.state {
            VisitState::Waits(since) => Some((since, *number, entry.address)),
            VisitState::Works | VisitState::Trusted => None,
        })
    }

    /// Address with the most connections that wait.
    fn crowd(&self) -> Option<A> {
        let mut counts = BTreeMap::<A, usize>::new();
        self.waiting().for_each(|(.., address)| *counts.entry(address).or_default() += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address)
    }

    /// Ends the connection of `address` that has waited longest; `None` where none waits.
    fn send_away(&mut self, address: A) -> Option<()> {
        let (_, number, _) = self.waiting().filter(|(.., from)| *from == address).min_by_key(|(since, ..)| *since)?;
        self.entries.remove(&number)?.leave.notify_one();
        Some(())
    }
}

impl<A> Visit<A> {
    /// Returns when the connection has to give way.
    pub async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// The peer is known: the connection never gives way.
    pub fn is_trusted(&self) {
        self.set(|_| VisitState::Trusted);
    }

    /// A request has arrived as a whole.
    pub fn works(&self) {
        self.set(|_| VisitState::Works);
    }

    /// The request has been carried out, and the peer may ask for something else.
    pub fn waits(&self) {
        self.set(VisitState::Waits);
    }

    fn set(&self, state: impl FnOnce(u64) -> VisitState) {
        let mut book = lock(&self.book);
        book.next += 1;
        let state = state(book.next);
        if let Some(entry) = book.entries.get_mut(&self.number).filter(|entry| entry.state != VisitState::Trusted) {
            entry.state = state;
        }
    }
}

impl<A> Drop for Visit<A> {
    fn drop(&mut self) {
        lock(&self.book).entries.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_told(visit: &Visit<u8>) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let moment = std::time::Duration::from_millis(1);
        runtime.block_on(async { tokio::time::timeout(moment, visit.told_to_leave()).await.is_ok() })
    }

    #[test]
    fn the_connection_that_waited_longest_gives_way_to_a_new_one_of_its_address() {
        let visitors = Visitors::new(8);
        let crowd: Vec<_> = (0..4).map(|_| visitors.enter(1).unwrap()).collect();
        crowd[0].works();
        crowd[1].waits();
        let fifth = visitors.enter(1).unwrap();
        assert!(is_told(&crowd[2]), "the oldest of those that wait");
        assert!(!is_told(&crowd[0]) && !is_told(&crowd[1]) && !is_told(&crowd[3]));
        let other = visitors.enter(2).unwrap();
        assert!(!is_told(&fifth) && !is_told(&other), "another address has a part of its own");
    }

    #[test]
    fn a_full_server_sends_away_from_the_largest_crowd_and_nobody_who_is_known_or_at_work() {
        let visitors = Visitors::new(4);
        let (known, busy) = (visitors.enter(1).unwrap(), visitors.enter(2).unwrap());
        known.is_trusted();
        known.waits();
        busy.works();
        let crowd = [visitors.enter(3).unwrap(), visitors.enter(3).unwrap()];
        let _fifth = visitors.enter(4).unwrap();
        assert!(is_told(&crowd[0]) && !is_told(&crowd[1]) && !is_told(&known) && !is_told(&busy));
        crowd[1].works();
        _fifth.works();
        assert!(visitors.enter(5).is_none(), "all are at work");
        drop(crowd);
        assert!(visitors.enter(5).is_some(), "one has left");
    }
}
