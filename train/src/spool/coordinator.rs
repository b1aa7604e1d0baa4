//! Coordinator: the process that searches and posts generations.

use std::fs;

use goodput_eval::sweep::SharedFolder;

use super::board::{Board, RunPace};
use super::error::SpoolError;
use super::play::{play, play_sample};
use super::posted::{Identity, Posted};
use super::pulse::{Notice, Pulse};
use super::{FOLDER, SAMPLE};
use crate::error::TrainError;
use crate::evaluator::Evaluator;
use crate::evolution::{EpisodeCost, Generation, Objective};
use crate::run_dir::RunDir;

/// Evaluator of many machines: this process, and workers that reach the run directory. When it is dropped, workers end.
pub struct SearchCoordinator<'a> {
    objective: &'a Objective<'a>,
    dir: RunDir,
    identity: Identity,
    pace: RunPace,
    pulse: Pulse,
}

impl<'a> SearchCoordinator<'a> {
    /// Opens the search in `dir` to workers that run the program `build`.
    ///
    /// # Errors
    /// [`TrainError`] where the directory cannot be written, or the first run fails.
    pub fn start(objective: &'a Objective<'a>, dir: &RunDir, build: &str) -> Result<Self, TrainError> {
        let identity = Identity::of(objective.experiment(), dir, build)?;
        retire(dir, SAMPLE);
        let generation = Generation { number: 0, candidates: vec![objective.begin().0] };
        let sample = Posted { identity: identity.clone(), generation };
        let folder = open(dir, SAMPLE)?;
        play_sample(objective, &sample, folder.clone())?;
        sample.write(&folder)?;
        Ok(Self { objective, dir: dir.clone(), identity, pace: RunPace::default(), pulse: Pulse::start(dir)? })
    }

    /// Removes what was posted, once the state of the search is saved.
    pub fn clear(&self) {
        retire_others(&self.dir, &[]);
    }
}

impl Evaluator for SearchCoordinator<'_> {
    fn costs(&self, generation: &Generation) -> Result<Vec<EpisodeCost>, TrainError> {
        let posted = Posted { identity: self.identity.clone(), generation: generation.clone() };
        let (_, key) = posted.text();
        // The state of the search holds what came of earlier generations.
        retire_others(&self.dir, &[SAMPLE, &key]);
        let folder = open(&self.dir, &key)?;
        posted.write(&folder)?;
        self.pulse.say(Notice::Generation(key))?;
        let round = self.objective.round(generation);
        let board = Board::new(folder, round.runs(), &self.pace);
        play(&round, &board, &self.pace)?;
        Ok(board.costs()?)
    }
}

fn open(dir: &RunDir, name: &str) -> Result<SharedFolder, SpoolError> {
    Ok(SharedFolder::open(&dir.path(FOLDER).join(name))?)
}

/// Removes the folders of the spool but those of these names.
fn retire_others(dir: &RunDir, kept: &[&str]) {
    for entry in fs::read_dir(dir.path(FOLDER)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !kept.contains(&name.as_str()) {
            retire(dir, &name);
        }
    }
}

/// Removes a folder of the spool. It loses its name first, so that no worker meets a part of it. What cannot be
/// removed, because a worker still writes there, is removed with the next generation.
fn retire(dir: &RunDir, name: &str) {
    let spool = dir.path(FOLDER);
    let old = spool.join(format!("old-{}", name.trim_start_matches("old-")));
    let _ = fs::rename(spool.join(name), &old);
    let _ = fs::remove_dir_all(old);
}
