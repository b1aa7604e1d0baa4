//! Writes of a leader, in their order.
//!
//! A call without an answer may go through much later: the system keeps sending what a cut connection
//! has not delivered. Such a write would undo the ones that were made since. So each write changes a
//! *fence*, on condition that the fence is as the write before left it. After a write without an
//! answer the fence is changed by a call of its own, and the lost write can never go through from
//! then on.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{Change, Etcd, EtcdError, TERM, change};

/// Calls for one write, where calls that were given up still change the fence.
const TRIES: u32 = 5;

/// Writer of the leader for a part of the keys, which no other writer of the leader changes.
#[derive(Clone, Debug)]
pub struct LeaderWriter {
    etcd: Etcd,
    /// Key of the fence, below the prefix.
    fence: String,
    /// Term and revision of the last change of the fence; `None` where it is not known.
    last: Arc<Mutex<Option<(u64, i64)>>>,
}

impl LeaderWriter {
    /// The writer of the keys called `part`.
    #[must_use]
    pub fn new(etcd: Etcd, part: &str) -> Self {
        Self { etcd, fence: format!("fence/{part}"), last: Arc::default() }
    }

    /// Makes `changes` in the name of the leader of `term`, whole or not at all up to a hundred of
    /// them, and in order beyond.
    ///
    /// # Errors
    /// [`EtcdError::Deposed`] where another daemon has been elected since; nothing is written then. After another
    /// error the changes may have been made; [`LeaderWriter::settle`] makes that certain.
    pub async fn write(&self, term: u64, changes: Vec<Change>) -> Result<(), EtcdError> {
        let mut last = self.last.lock().await;
        for part in change::parts(changes) {
            self.write_part(term, part, &mut last).await?;
        }
        Ok(())
    }

    /// Makes certain that no earlier write of this leader can go through any more, so that what is read from now on
    /// stays.
    ///
    /// # Errors
    /// [`EtcdError::Deposed`] where another daemon has been elected since.
    pub async fn settle(&self, term: u64) -> Result<(), EtcdError> {
        let mut last = self.last.lock().await;
        self.known(term, &mut last).await.map(|_| ())
    }

    async fn write_part(&self, term: u64, part: Vec<Change>, last: &mut Option<(u64, i64)>) -> Result<(), EtcdError> {
        for _ in 0..TRIES {
            let at = self.known(term, last).await?;
            // Without an answer it is not known.
            *last = None;
            let unchanged = self.etcd.unchanged(&self.fence, at);
            let changed = [part.clone(), vec![self.mark(term)]].concat();
            if let Some(at) = self.etcd.commit(&[self.leads(term), unchanged], changed).await? {
                *last = Some((term, at));
                return Ok(());
            }
        }
        let problem =
            "calls that were given up went through one after the other; the next cycle tries again".to_owned();
        Err(EtcdError::Refused { call: "/v3/kv/txn", problem })
    }

    /// Revision of the last change of the fence, which is changed where that is not known.
    async fn known(&self, term: u64, last: &mut Option<(u64, i64)>) -> Result<i64, EtcdError> {
        if let Some((_, at)) = last.filter(|(of, _)| *of == term) {
            return Ok(at);
        }
        *last = None;
        let at = self.etcd.commit(&[self.leads(term)], vec![self.mark(term)]).await?;
        let at = at.ok_or(EtcdError::Deposed { term })?;
        *last = Some((term, at));
        Ok(at)
    }

    fn leads(&self, term: u64) -> serde_json::Value {
        self.etcd.equal(TERM, &term.to_string())
    }

    fn mark(&self, term: u64) -> Change {
        Change::put(self.fence.clone(), term.to_string())
    }
}
