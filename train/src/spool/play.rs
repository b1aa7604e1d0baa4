//! Play of a posted generation on the threads of this process, for the coordinator and for workers.

use std::time::Instant;

use goodput_eval::sweep::SharedFolder;

use super::board::{Board, RunPace};
use super::posted::Posted;
use crate::error::TrainError;
use crate::evolution::{GenerationRound, Objective};

/// A run that failed, and its error.
type FailedRun = (usize, Box<TrainError>);

/// Plays runs on rayon's current threads until every run has its cost, or another process removes the folder. Gives the
/// number of runs that this process has played.
pub(super) fn play(round: &GenerationRound<'_>, board: &Board<'_>, pace: &RunPace) -> Result<u64, TrainError> {
    let mut played = 0;
    let mut failed: Option<FailedRun> = None;
    for thread in rayon::broadcast(|_| on_thread(round, board, pace)) {
        match thread {
            Ok(runs) => played += runs,
            Err(error) if failed.as_ref().is_none_or(|first| error.0 < first.0) => failed = Some(error),
            Err(_) => {}
        }
    }
    match failed {
        None => Ok(played),
        Some((_, error)) => Err(*error),
    }
}

/// Plays runs on this thread. An error comes with its run.
fn on_thread(round: &GenerationRound<'_>, board: &Board<'_>, pace: &RunPace) -> Result<u64, FailedRun> {
    let mut played = 0;
    loop {
        let run = match board.claim() {
            Ok(Some(run)) => run,
            Ok(None) => return Ok(played),
            Err(error) => return stopped(board, played, (0, Box::new(error.into()))),
        };
        let began = Instant::now();
        let stored = round.cost(run).and_then(|cost| {
            pace.note(began.elapsed());
            Ok(board.store(run, &cost)?)
        });
        match stored {
            Ok(()) => played += 1,
            Err(error) => return stopped(board, played, (run, Box::new(error))),
        }
    }
}

/// End of a thread by an error. Where the folder is gone, the generation is over, and that is no error.
fn stopped(board: &Board<'_>, played: u64, failed: FailedRun) -> Result<u64, FailedRun> {
    board.close();
    match &*failed.1 {
        TrainError::Spool(error) if error.is_absence() => Ok(played),
        _ => Err(failed),
    }
}

/// Plays the sample of a coordinator: the teacher and a candidate on one episode. Costs that are stored must be equal.
pub(super) fn play_sample(objective: &Objective<'_>, posted: &Posted, folder: SharedFolder) -> Result<(), TrainError> {
    let round = objective.round(&posted.generation);
    let pace = RunPace::default();
    let board = Board::new(folder, round.runs(), &pace);
    for run in [0, round.first_of(0)] {
        board.store(run, &round.cost(run)?)?;
    }
    Ok(())
}
