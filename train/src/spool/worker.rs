//! Worker: a process that plays runs of what a coordinator posts.

use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use goodput_configs::experiment::Experiment;
use goodput_eval::sweep::SharedFolder;

use super::board::{Board, RunPace};
use super::play::{play, play_sample};
use super::posted::{Identity, Posted};
use super::pulse::{CoordinatorWatch, Notice};
use super::{FOLDER, SAMPLE, pause};
use crate::error::TrainError;
use crate::evolution::Objective;
use crate::run_dir::RunDir;
use crate::{distributable, memory};

/// Plays runs of the training in `dir`, which `experiment` describes, on rayon's current threads until the training
/// ends. `build` names this program. Gives the number of runs that this worker has played.
///
/// # Errors
/// [`TrainError::Spool`] where the coordinator has another program or other files, or gives no sign of life any more,
/// or where this machine computes other costs; [`TrainError`] where a run fails.
pub fn work(
    experiment: &Experiment,
    dir: &RunDir,
    build: &str,
    mut watch: CoordinatorWatch,
) -> Result<u64, TrainError> {
    memory::keep_freed();
    let objective = Objective::new(experiment, distributable(experiment)?)?;
    let identity = Identity::of(experiment, dir, build)?;
    let mut worker = Worker { objective, identity, spool: dir.path(FOLDER), pace: RunPace::default(), joined: false };
    let (mut latest, mut played, mut idle) = (None, 0, Instant::now());
    loop {
        let notice = watch.look()?;
        if notice == Notice::Ended {
            return Ok(played);
        }
        worker.joined = worker.joined || worker.join()?;
        match notice {
            Notice::Generation(key) if worker.joined && latest.as_ref() != Some(&key) => {
                if let Some(runs) = worker.help(&key)? {
                    (latest, idle) = (Some(key), Instant::now());
                    played += runs;
                    continue;
                }
            }
            _ => {}
        }
        thread::sleep(pause(idle.elapsed()));
    }
}

struct Worker<'a> {
    objective: Objective<'a>,
    identity: Identity,
    spool: PathBuf,
    pace: RunPace,
    /// Whether this worker has shown that it computes as the coordinator does.
    joined: bool,
}

impl Worker<'_> {
    /// Plays the sample of the coordinator. `false` where its files cannot be seen, or not any more.
    fn join(&self) -> Result<bool, TrainError> {
        let folder = SharedFolder::existing(&self.spool.join(SAMPLE));
        let Some(sample) = Posted::read(&folder)? else { return Ok(false) };
        self.identity.accepts(&sample.identity)?;
        match play_sample(&self.objective, &sample, folder) {
            Err(TrainError::Spool(error)) if error.is_absence() => Ok(false),
            played => played.map(|()| true),
        }
    }

    /// Plays runs of the generation of this key. `None` where its files cannot be seen, or not any more.
    fn help(&self, key: &str) -> Result<Option<u64>, TrainError> {
        let folder = SharedFolder::existing(&self.spool.join(key));
        let Some(posted) = Posted::read(&folder)? else { return Ok(None) };
        self.identity.accepts(&posted.identity)?;
        let round = self.objective.round(&posted.generation);
        let board = Board::new(folder, round.runs(), &self.pace);
        play(&round, &board, &self.pace).map(Some)
    }
}
