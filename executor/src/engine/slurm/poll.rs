//! Jobs of the cluster, look by look, without reading all of them each time.
//!
//! A job in JSON has 3 kB and a hundred fields. So each look lists all jobs by one short line, and
//! reads in JSON those with a changed line. Releases before 23.02 give all jobs or none.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::commands::Commands;
use super::facts_key::FactsKey;
use super::read::{self, RawJob};
use super::version::SlurmRelease;
use crate::engine::EngineError;

/// List of all jobs, over or not: later releases leave out those that are over unless they are asked.
const ALL: [&str; 2] = ["--json", "--states=all"];

/// Number, tasks, state, reason, priority, submission, nodes, queue, account, limits, resources and
/// comment of a job: one of these changes with everything that is read. Estimates of starts are left
/// out, because they change without any event.
const LINE: &str = "--format=%A|%K|%t|%r|%Q|%V|%N|%n|%P|%q|%a|%l|%b|%D|%C|%m|%v|%k";

/// Time after which all jobs are read again, whatever their lines say.
const WHOLE: Duration = Duration::from_secs(60);

/// Most jobs that are read by their numbers; more are read as all.
const MANY: usize = 1000;

/// Jobs as they were last read.
#[derive(Debug, Default)]
pub(super) struct JobPoll {
    records: BTreeMap<u64, SlurmRecord>,
    /// Time of the last reading of all jobs.
    whole_at: Option<Instant>,
}

/// Record of slurmctld: a job, or the tasks of an array that wait together.
#[derive(Debug)]
struct SlurmRecord {
    /// Line of the record when it was read; `None` where the record has to be read again.
    line: Option<String>,
    jobs: Vec<RawJob>,
}

impl JobPoll {
    /// All jobs now.
    pub async fn look(
        &mut self,
        commands: &Commands,
        release: Option<SlurmRelease>,
        key: &FactsKey,
    ) -> Result<Vec<RawJob>, EngineError> {
        if !release.is_some_and(SlurmRelease::filters_json) {
            return read::jobs(&commands.run("squeue", &ALL, "").await?, key);
        }
        let list = commands.run("squeue", &["--noheader", "--states=all", LINE], "").await?;
        let lines = by_number(&list);
        let changed = self.changed(&lines);
        let whole = changed.len() > MANY || self.whole_at.is_none_or(|at| at.elapsed() >= WHOLE);
        if whole {
            let jobs = read::jobs(&commands.run("squeue", &ALL, "").await?, key)?;
            self.records.clear();
            self.take(jobs, &lines);
            self.whole_at = Some(Instant::now());
        } else if !changed.is_empty() {
            let numbers: Vec<String> = changed.iter().map(ToString::to_string).collect();
            let jobs = format!("--jobs={}", numbers.join(","));
            let answer = commands.run("squeue", &[ALL[0], ALL[1], &jobs], "").await;
            // The only job that was asked for is gone by now.
            let gone = |error: &EngineError| matches!(error, EngineError::Refused { problem, .. } if problem.contains("Invalid job id"));
            match answer {
                Err(error) if gone(&error) => {}
                answer => self.take(read::jobs(&answer?, key)?, &lines),
            }
        }
        self.records.retain(|number, _| lines.contains_key(number));
        let mut jobs: Vec<RawJob> = self.records.values().flat_map(|record| record.jobs.iter().cloned()).collect();
        read::throttle(&mut jobs);
        Ok(jobs)
    }

    /// Has the record of a job read again, because the daemon has altered what its line does not show.
    pub fn forget(&mut self, number: u64) {
        if let Some(record) = self.records.get_mut(&number) {
            record.line = None;
        }
    }

    fn changed(&self, lines: &BTreeMap<u64, &str>) -> Vec<u64> {
        let known = |number: &u64, line: &str| {
            self.records.get(number).is_some_and(|record| record.line.as_deref() == Some(line))
        };
        lines.iter().filter(|(number, line)| !known(number, line)).map(|(number, _)| *number).collect()
    }

    /// Takes records that were read after `lines`. A record that changed in between has another line at
    /// the next look, and is read again.
    fn take(&mut self, jobs: Vec<RawJob>, lines: &BTreeMap<u64, &str>) {
        let mut records: BTreeMap<u64, Vec<RawJob>> = BTreeMap::new();
        for job in jobs {
            records.entry(job.number).or_default().push(job);
        }
        for (number, jobs) in records {
            let line = lines.get(&number).map(ToString::to_string);
            self.records.insert(number, SlurmRecord { line, jobs });
        }
    }
}

/// Lines by the number at their beginning. What follows a line break within a comment has none.
fn by_number(list: &str) -> BTreeMap<u64, &str> {
    let numbered = |line: &'_ str| line.split_once('|').and_then(|(number, _)| number.trim().parse::<u64>().ok());
    list.lines().filter_map(|line| Some((numbered(line)?, line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_again_when_their_lines_change() {
        let mut poll = JobPoll::default();
        let job = |number: u64| RawJob { id: number.into(), number, ..RawJob::default() };
        let first = by_number("1|PD|a\n2|R|b\nrest of a comment\n3|PD|c");
        assert_eq!(poll.changed(&first), [1, 2, 3]);
        poll.take(vec![job(1), job(2), job(3)], &first);
        assert!(poll.changed(&first).is_empty());
        let second = by_number("1|PD|a\n2|CG|b\n4|PD|d");
        assert_eq!(poll.changed(&second), [2, 4]);
        poll.forget(1);
        assert_eq!(poll.changed(&second), [1, 2, 4]);
        poll.take(vec![job(1), job(2), job(4)], &second);
        assert!(poll.changed(&second).is_empty());
    }
}
