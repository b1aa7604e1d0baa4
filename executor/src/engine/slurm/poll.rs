//! Jobs of the cluster, look by look, without reading all of them each time.
//!
//! A job in JSON has 3 to 8 kB and a hundred fields. So each look lists all jobs by one short line, and
//! reads in JSON those with a changed line, and a few of those that were read long ago. Releases before
//! 23.02 give all jobs or none.

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

/// Age after which a job is read again, whatever its line says: a line does not show every field.
const OLD: Duration = Duration::from_secs(60);

/// Most jobs that a look reads for their age.
const RENEWED: usize = 100;

/// Most jobs that one command reads: thousands of them would take longer than a command may.
const MANY: usize = 2000;

/// Jobs as they were last read.
#[derive(Debug, Default)]
pub(super) struct JobPoll {
    records: BTreeMap<u64, SlurmRecord>,
}

/// Record of slurmctld: a job, or the tasks of an array that wait together.
#[derive(Debug)]
struct SlurmRecord {
    /// Lines of the record when it was read, one for each task; `None` where the record has to be read again.
    lines: Option<String>,
    read_at: Instant,
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
        // Without `--array` one line stands for several records of an array.
        let list = commands.run("squeue", &["--noheader", "--states=all", "--array", LINE], "").await?;
        let lines = by_number(&list);
        // Before the records are read: one that is new since the list has no line yet.
        self.records.retain(|number, _| lines.contains_key(number));
        let mut wanted = self.changed(&lines);
        wanted.extend(self.old());
        let began = Instant::now();
        while !wanted.is_empty() {
            let numbers: Vec<String> =
                wanted.drain(..wanted.len().min(MANY)).map(|number| number.to_string()).collect();
            let jobs = format!("--jobs={}", numbers.join(","));
            let answer = commands.run("squeue", &[ALL[0], ALL[1], &jobs], "").await;
            // The only job that was asked for is gone by now.
            let gone = |error: &EngineError| matches!(error, EngineError::Refused { problem, .. } if problem.contains("Invalid job id"));
            match answer {
                Err(error) if gone(&error) => {}
                answer => self.take(read::jobs(&answer?, key)?, &lines),
            }
            // The number of an array brings all of its tasks.
            wanted.retain(|number| self.records.get(number).is_none_or(|record| record.read_at < began));
        }
        let mut jobs: Vec<RawJob> = self.records.values().flat_map(|record| record.jobs.iter().cloned()).collect();
        read::throttle(&mut jobs);
        Ok(jobs)
    }

    /// Has the record of a job read again, because the daemon has altered what its line does not show.
    pub fn forget(&mut self, number: u64) {
        if let Some(record) = self.records.get_mut(&number) {
            record.lines = None;
        }
    }

    fn changed(&self, lines: &BTreeMap<u64, String>) -> Vec<u64> {
        let known = |number: &u64, line: &String| {
            self.records.get(number).is_some_and(|record| record.lines.as_ref() == Some(line))
        };
        lines.iter().filter(|(number, line)| !known(number, line)).map(|(number, _)| *number).collect()
    }

    /// Unchanged records that were read longest ago.
    fn old(&self) -> Vec<u64> {
        let is_old = |record: &SlurmRecord| record.lines.is_some() && record.read_at.elapsed() >= OLD;
        let mut old: Vec<(Instant, u64)> = self
            .records
            .iter()
            .filter(|(_, record)| is_old(record))
            .map(|(id, record)| (record.read_at, *id))
            .collect();
        old.sort_unstable();
        old.into_iter().take(RENEWED).map(|(_, number)| number).collect()
    }

    /// Takes records that were read after `lines`. A record that changed in between has another line at
    /// the next look, and is read again.
    fn take(&mut self, jobs: Vec<RawJob>, lines: &BTreeMap<u64, String>) {
        let mut records: BTreeMap<u64, Vec<RawJob>> = BTreeMap::new();
        for job in jobs {
            records.entry(job.number).or_default().push(job);
        }
        for (number, jobs) in records {
            let lines = lines.get(&number).cloned();
            self.records.insert(number, SlurmRecord { lines, read_at: Instant::now(), jobs });
        }
    }
}

/// Lines by the number at their beginning. What follows a line break within a comment has none.
fn by_number(list: &str) -> BTreeMap<u64, String> {
    let numbered = |line: &'_ str| line.split_once('|').and_then(|(number, _)| number.trim().parse::<u64>().ok());
    let mut lines: BTreeMap<u64, String> = BTreeMap::new();
    for line in list.lines() {
        if let Some(number) = numbered(line) {
            let of_record = lines.entry(number).or_default();
            of_record.push_str(line);
            of_record.push('\n');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_again_when_their_lines_change() {
        let mut poll = JobPoll::default();
        let job = |number: u64| RawJob { id: number.into(), number, ..RawJob::default() };
        let first = by_number("1|PD|a\n2|R|b\nrest of a comment\n3|PD|c\n3|PD|d");
        assert_eq!(poll.changed(&first), [1, 2, 3]);
        poll.take(vec![job(1), job(2), job(3)], &first);
        assert!(poll.changed(&first).is_empty());
        let second = by_number("1|PD|a\n2|CG|b\n3|PD|d\n4|PD|c");
        assert_eq!(poll.changed(&second), [2, 3, 4], "a task of record 3 has a record of its own");
        poll.forget(1);
        assert_eq!(poll.changed(&second), [1, 2, 3, 4]);
        poll.take(vec![job(1), job(2), job(3), job(4)], &second);
        assert!(poll.changed(&second).is_empty() && poll.old().is_empty());
        poll.records.values_mut().for_each(|record| record.read_at -= OLD);
        poll.take(vec![job(2)], &second);
        assert_eq!(poll.old(), [1, 3, 4], "these were read a minute ago");
    }
}
