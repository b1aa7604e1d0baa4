//! Objects of one kind as the API server has them, kept up to date by a watch.
//!
//! A watch that breaks goes on from the version it had; where the API server has forgotten that
//! version (410 Gone), everything is listed anew. What is kept may be a little old: every change
//! names the version it was made from, so that an old view leads to a refusal and never to a wrong
//! change. A snapshot is not taken from a view that is known to be broken.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::api::Api;
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

/// Time after an error of a watch for which its view is not believed: a watch that cannot go on
/// fails again within it.
const DOUBT: Duration = Duration::from_secs(6);
/// Pause before a broken watch is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// Length of one watch, seconds. A connection that is dead without a sign is noticed after it.
const LENGTH_SECS: u32 = 30;
/// Objects of one page of a list.
const PAGE: u32 = 500;

/// A pause of equal length before every new try.
#[derive(Clone, Copy, Debug)]
struct EqualPauses;

impl Iterator for EqualPauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl Backoff for EqualPauses {
    fn reset(&mut self) {}
}

/// The last error of a watch.
type LastError = Arc<Mutex<Option<(Instant, String)>>>;

/// Objects of one kind, watched as long as this lives.
pub(super) struct ObjectWatch<K: Lookup + 'static>
where
    K::DynamicType: std::hash::Hash + Eq,
{
    store: Store<K>,
    error: LastError,
    task: JoinHandle<()>,
}

impl<K> ObjectWatch<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Begins to watch the objects of `api` that have the labels of the selector `labels`. `strip`
    /// takes away what is not looked at.
    pub fn begin(api: Api<K>, labels: &str, mut strip: impl FnMut(&mut K) + Send + 'static) -> Self {
        let (store, writer) = reflector::store();
        let error: LastError = Arc::default();
        let wanted = watcher::Config::default().labels(labels).page_size(PAGE).timeout(LENGTH_SECS);
        let objects = watcher(api, wanted).modify(move |object| {
            object.managed_fields_mut().clear();
            strip(object);
        });
        let mut events = Box::pin(reflector::reflector(writer, objects).backoff(EqualPauses));
        let last = error.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = event.err().map(|error| (Instant::now(), error.to_string()));
            }
        });
        Self { store, error, task }
    }

    /// All objects, once they have been listed.
    ///
    /// # Errors
    /// The last error of the watch, where its view cannot be believed.
    pub async fn objects(&self, patience: Duration) -> Result<Vec<Arc<K>>, String> {
        let listed = tokio::time::timeout(patience, self.store.wait_until_ready()).await;
        let last = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (listed, last) {
            (Ok(Ok(())), None) => Ok(self.store.state()),
            (Ok(Ok(())), Some((at, _))) if at.elapsed() > DOUBT => Ok(self.store.state()),
            (_, Some((_, problem))) => Err(problem),
            (Ok(Err(_)), None) => Err("the watch has ended".into()),
            (Err(_), None) => Err(format!("nothing is listed after {} ms", patience.as_millis())),
        }
    }
}

impl<K: Lookup + 'static> Drop for ObjectWatch<K>
where
    K::DynamicType: std::hash::Hash + Eq,
{
    fn drop(&mut self) {
        self.task.abort();
    }
}
