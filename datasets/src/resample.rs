//! Other traces that could have been: blocks of arrivals drawn with replacement from a trace. Blocks do not overlap,
//! and each keeps what belongs together, such as the busy hours of a day (Carlstein, Annals of Statistics 1986).

use goodput_env::job::{JobSpec, Workload};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;

/// Number of blocks of length `block` in which jobs are submitted, counted from time 0.
pub fn blocks(workload: &Workload, block: SimTime) -> usize {
    let last = workload.jobs.last().map_or(SimTime::ZERO, |job| job.request.submit);
    (last.as_millis() / block.as_millis().max(1)) as usize + 1
}

/// Workload of as many blocks as `workload` has, each drawn from its blocks by `seed`. A job keeps its time within the
/// block, and its deadline stays as far ahead. Job names get the number of their new block, so that they stay unique.
pub fn resample(workload: &Workload, block: SimTime, seed: u64) -> Workload {
    let count = blocks(workload, block);
    let begins: Vec<usize> = (0..=count)
        .map(|index| {
            let begin = SimTime::from_millis(block.as_millis() * index as i64);
            workload.jobs.partition_point(|job| job.request.submit < begin)
        })
        .collect();
    let mut rng = rng(seed, Stream::Resampling);
    let (mut jobs, mut models) = (Vec::with_capacity(workload.jobs.len()), workload.models.clone());
    for index in 0..count {
        let drawn = rng.random_range(0..count);
        let shift = SimTime::from_millis(block.as_millis() * (index as i64 - drawn as i64));
        for job in &workload.jobs[begins[drawn]..begins[drawn + 1]] {
            let JobSpec { mut request, work } = job.clone();
            let name = format!("{}@{index}", request.name);
            if let Some(model) = workload.models.get(&request.name) {
                models.insert(name.clone(), model.clone());
            }
            request.submit += shift;
            request.deadline = request.deadline.map(|deadline| deadline + shift);
            request.name = name;
            jobs.push(JobSpec { request, work });
        }
    }
    Workload { jobs, models, ..workload.clone() }
}

#[cfg(test)]
mod tests {
    use goodput_env::job::{JobRequest, Work};

    use super::*;

    fn trace() -> Workload {
        let job = |submit: i64| {
            let submit = SimTime::from_secs(submit);
            let request = JobRequest { name: format!("j{submit}"), submit, ..JobRequest::default() };
            JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(9) } }
        };
        Workload::new(Vec::new(), [0, 10, 99, 100, 250, 399].map(job).to_vec())
    }

    #[test]
    fn blocks_move_as_a_whole_and_in_order() {
        let (trace, block) = (trace(), SimTime::from_secs(100));
        assert_eq!(blocks(&trace, block), 4);
        let within = |jobs: &[JobSpec], index: i64| -> Vec<i64> {
            let millis = jobs.iter().map(|job| job.request.submit.as_millis());
            millis.filter(|at| at / 100_000 == index).map(|at| at % 100_000).collect()
        };
        let own: Vec<Vec<i64>> = (0..4).map(|index| within(&trace.jobs, index)).collect();
        let mut seen = [false; 4];
        for seed in 0..20 {
            let drawn = resample(&trace, block, seed);
            assert!(drawn.jobs.is_sorted_by_key(|job| job.request.submit));
            for index in 0..4 {
                let found = within(&drawn.jobs, index);
                let from = own.iter().position(|block| *block == found).expect("a block of the trace");
                seen[from] = true;
            }
            let names: std::collections::BTreeSet<_> = drawn.jobs.iter().map(|job| &job.request.name).collect();
            assert_eq!(names.len(), drawn.jobs.len());
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(resample(&trace, block, 3).jobs, resample(&trace, block, 3).jobs);
    }
}
