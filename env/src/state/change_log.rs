//! Log of what changed, for readers that keep a copy or an order of their own.

use std::sync::Arc;

/// Log of the things that changed, in order; a thing may be in it more than once. A reader that follows a log brings
/// what it keeps up to date by looking at the new entries alone.
#[derive(Debug)]
pub struct ChangeLog<T> {
    /// Identity of the log.
    identity: Arc<()>,
    /// Number of entries that are gone.
    gone: u64,
    entries: Vec<T>,
    /// Number of entries at which the older half of them goes.
    room: usize,
}

/// Place in a log up to which a reader has read it.
#[derive(Clone, Debug, Default)]
pub struct Bookmark(Option<(Arc<()>, u64)>);

/// A clone is another log, because from now on the two state different changes.
impl<T> Clone for ChangeLog<T> {
    fn clone(&self) -> Self {
        Self::with_room(self.room)
    }
}

impl<T> Default for ChangeLog<T> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<T> ChangeLog<T> {
    /// An empty log of at most `room` entries.
    pub fn with_room(room: usize) -> Self {
        Self { identity: Arc::new(()), gone: 0, entries: Vec::with_capacity(room), room }
    }

    /// Enters a thing that changed. A full log loses its older half first; a reader that has not read that half has to
    /// look at everything once.
    pub fn note(&mut self, changed: T) {
        if self.entries.len() >= self.room {
            let old = self.entries.len().div_ceil(2);
            self.gone += old as u64;
            self.entries.drain(..old);
        }
        self.entries.push(changed);
    }

    /// What has changed since the place of `mark`, which moves to the end of the log; `None` where everything may
    /// have: the reader has not read this log before, or too long ago.
    pub fn since(&self, mark: &mut Bookmark) -> Option<&[T]> {
        let end = self.gone + self.entries.len() as u64;
        let read = match &mut mark.0 {
            Some((identity, upto)) if Arc::ptr_eq(identity, &self.identity) => std::mem::replace(upto, end),
            other => {
                *other = Some((self.identity.clone(), end));
                return None;
            }
        };
        Some(&self.entries[read.checked_sub(self.gone)? as usize..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_shown_what_is_new_to_it() {
        let (mut log, mut mark) = (ChangeLog::with_room(4), Bookmark::default());
        log.note(1);
        assert_eq!(log.since(&mut mark), None, "it has read nothing yet");
        assert_eq!(log.since(&mut mark), Some(&[][..]));
        log.note(2);
        log.note(2);
        assert_eq!(log.since(&mut mark), Some(&[2, 2][..]));
        (3..=5).for_each(|thing| log.note(thing));
        assert_eq!(log.since(&mut mark), Some(&[3, 4, 5][..]), "older entries have gone");
        (6..=10).for_each(|thing| log.note(thing));
        assert_eq!(log.since(&mut mark), None, "the sixth entry is gone");
        log.note(11);
        assert_eq!(log.since(&mut mark), Some(&[11][..]));
    }

    #[test]
    fn a_clone_is_another_log() {
        let (mut log, mut mark) = (ChangeLog::with_room(4), Bookmark::default());
        log.since(&mut mark);
        let mut other = log.clone();
        log.note(1);
        other.note(2);
        assert_eq!(log.since(&mut mark.clone()), Some(&[1][..]));
        assert_eq!(other.since(&mut mark), None);
        assert_eq!(log.since(&mut mark), None, "the mark now is in the other log");
    }
}
