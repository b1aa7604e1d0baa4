//! Window of rounds: which jobs run in which of them, given the number of rounds of each job.

/// A job of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Accelerators of the job.
    pub gpus: u32,
    /// Rounds that the job gets.
    pub rounds: usize,
    /// Weight of the job: heavy jobs run in early rounds.
    pub weight: f64,
    /// Run time that the job has left, seconds.
    pub left_secs: f64,
}

/// Indices of the jobs of each of `rounds` rounds on `gpus` accelerators.
///
/// A job that needs all rounds that are left runs in each of them, the widest first. Others follow by weight over
/// number of rounds, which makes the weighted sum of the jobs' mean rounds small. What is idle then goes to jobs that
/// the round does not have, those with the longest time left first. Where jobs of several accelerators leave gaps in a
/// window that is full, a job can get a round less than planned.
pub fn lay_out(shares: &[Share], rounds: usize, gpus: u32) -> Vec<Vec<usize>> {
    let mut todo: Vec<usize> = shares.iter().map(|share| share.rounds).collect();
    let descending = |key: &dyn Fn(&Share) -> f64| {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|&one, &other| key(&shares[other]).total_cmp(&key(&shares[one])));
        order
    };
    let by_weight = descending(&|share| share.weight / share.rounds.max(1) as f64);
    let by_width = descending(&|share| f64::from(share.gpus));
    let by_time = descending(&|share| share.left_secs);
    let mut window = Vec::with_capacity(rounds);
    for left in (1..=rounds).rev() {
        let mut free = gpus;
        let mut runs = vec![false; shares.len()];
        let mut chosen = Vec::new();
        let due: Vec<usize> = by_width.iter().copied().filter(|&job| todo[job] >= left).collect();
        let planned: Vec<usize> =
            due.into_iter().chain(by_weight.iter().copied().filter(|&job| todo[job] > 0)).collect();
        for job in planned.into_iter().chain(by_time.iter().copied()) {
            if !runs[job] && shares[job].gpus <= free {
                free -= shares[job].gpus;
                runs[job] = true;
                todo[job] = todo[job].saturating_sub(1);
                chosen.push(job);
            }
        }
        window.push(chosen);
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(gpus: u32, rounds: usize, weight: f64, left_secs: f64) -> Share {
        Share { gpus, rounds, weight, left_secs }
    }

    #[test]
    fn every_job_gets_its_rounds_where_there_is_room() {
        let shares = [share(4, 1, 1.0, 9.0), share(2, 3, 1.0, 8.0), share(1, 4, 1.0, 7.0), share(1, 2, 1.0, 6.0)];
        let window = lay_out(&shares, 5, 4);
        for (job, share) in shares.iter().enumerate() {
            let runs = window.iter().filter(|round| round.contains(&job)).count();
            assert!(runs >= share.rounds, "job {job} runs in {runs} rounds: {window:?}");
        }
        assert!(window.iter().all(|round| round.iter().map(|&job| shares[job].gpus).sum::<u32>() <= 4));
    }

    #[test]
    fn heavy_jobs_run_early_and_long_ones_fill_up() {
        let shares = [share(1, 1, 1.0, 100.0), share(1, 1, 9.0, 50.0), share(1, 0, 1.0, 300.0)];
        let window = lay_out(&shares, 2, 1);
        assert_eq!(window[0], [1], "nine times the weight");
        assert_eq!(window[1], [0]);
        assert_eq!(lay_out(&shares, 1, 2)[0], [0, 1]);
        assert_eq!(lay_out(&shares[2..], 1, 1)[0], [0], "an idle accelerator is of no use to anybody");
    }
}
