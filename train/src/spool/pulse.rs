//! Pulse: the file that says what the coordinator does, and that it is alive.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use goodput_eval::sweep::SharedFolderError;
use serde::{Deserialize, Serialize};

use super::error::SpoolError;
use super::{FOLDER, pause};
use crate::run_dir::{RunDir, RunDirError};

/// Time between two beats.
const BEAT: Duration = Duration::from_secs(2);

fn file() -> String {
    format!("{FOLDER}/now.json")
}

/// State of the coordinator, for workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Notice {
    /// The first generation is about to come.
    Preparing,
    /// The generation with this key was the last to be posted.
    Generation(String),
    /// No generation will come.
    Ended,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CoordinatorNow {
    /// Number of earlier writes. Clocks of machines differ, so the file has no time in it.
    beat: u64,
    notice: Notice,
}

impl CoordinatorNow {
    fn write(&mut self, dir: &RunDir) -> Result<(), RunDirError> {
        self.beat += 1;
        dir.write(&file(), &serde_json::to_vec(self).expect("a notice is plain data"))
    }
}

/// Writer of the file. It writes again and again, whatever the search does meanwhile, and `Ended` when it is dropped.
pub(super) struct Pulse {
    dir: RunDir,
    now: Arc<Mutex<CoordinatorNow>>,
    beats: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Pulse {
    /// Begins with [`Notice::Preparing`].
    pub fn start(dir: &RunDir) -> Result<Self, RunDirError> {
        let now = Arc::new(Mutex::new(CoordinatorNow { beat: 0, notice: Notice::Preparing }));
        let mut pulse = Self { dir: dir.clone(), now: now.clone(), beats: None };
        pulse.say(Notice::Preparing)?;
        let (stop, stopped) = channel();
        let dir = dir.clone();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // A beat that could not be written is one that workers miss; the next one comes soon.
                let _ = now.lock().unwrap_or_else(PoisonError::into_inner).write(&dir);
            }
        };
        pulse.beats = Some((stop, thread::spawn(beat)));
        Ok(pulse)
    }

    /// Says what the coordinator does now.
    pub fn say(&self, notice: Notice) -> Result<(), RunDirError> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.notice = notice;
        now.write(&self.dir)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.beats.take() else { return };
        drop(stop);
        let _ = thread.join();
        // Where this fails, workers end after a time of silence.
        let _ = self.say(Notice::Ended);
    }
}

/// Watch over a coordinator that was alive when the watch began: a worker's reader of the file.
#[derive(Debug)]
pub struct CoordinatorWatch {
    dir: PathBuf,
    patience: Duration,
    seen: Option<Vec<u8>>,
    since: Instant,
}

impl CoordinatorWatch {
    /// Waits until a training in `dir` gives a sign of life, or has ended. The watch gives up after a silence of
    /// `patience`.
    ///
    /// # Errors
    /// [`SpoolError::Absent`] where there is no sign of life for `patience`.
    pub fn begin(dir: &Path, patience: Duration) -> Result<Self, SpoolError> {
        let began = Instant::now();
        let mut watch = Self { dir: dir.to_owned(), patience, seen: None, since: began };
        watch.seen = watch.read()?;
        // A coordinator that was killed has left a notice, which does not change.
        while watch.notice()? != Some(Notice::Ended) && !watch.has_changed()? {
            if began.elapsed() > patience {
                return Err(SpoolError::Absent { dir: watch.dir, waited: patience });
            }
            thread::sleep(pause(began.elapsed()));
        }
        Ok(watch)
    }

    /// State of the coordinator.
    pub(super) fn look(&mut self) -> Result<Notice, SpoolError> {
        self.has_changed()?;
        match (self.notice()?, self.since.elapsed()) {
            (Some(Notice::Ended), _) => Ok(Notice::Ended),
            (Some(notice), waited) if waited <= self.patience => Ok(notice),
            (_, waited) => Err(SpoolError::Silent { dir: self.dir.clone(), waited }),
        }
    }

    /// Reads the file, and says whether it is another one than before.
    fn has_changed(&mut self) -> Result<bool, SpoolError> {
        let found = self.read()?;
        // A file that is not there for a moment is no news.
        let changed = found.is_some() && found != self.seen;
        if changed {
            (self.seen, self.since) = (found, Instant::now());
        }
        Ok(changed)
    }

    fn read(&self) -> Result<Option<Vec<u8>>, SpoolError> {
        let path = self.dir.join(file());
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SharedFolderError::file(path)(error).into()),
        }
    }

    /// Notice that was read last.
    fn notice(&self) -> Result<Option<Notice>, SpoolError> {
        let Some(bytes) = &self.seen else { return Ok(None) };
        let damaged =
            |error: serde_json::Error| SpoolError::Damaged { path: self.dir.join(file()), problem: error.to_string() };
        serde_json::from_slice::<CoordinatorNow>(bytes).map(|now| Some(now.notice)).map_err(damaged)
    }
}
