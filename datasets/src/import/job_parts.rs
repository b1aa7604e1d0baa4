//! Jobs of which the pieces stand anywhere in a file, in parts that fit in memory.
//!
//! Each pass over the file holds the jobs of one part, by the hash of their names. The first pass begins with one
//! part of all jobs. Where that becomes too large, it is halved, and the jobs that are no longer in it are dropped.
//! Memory is therefore bounded, and a file takes as many passes as its jobs make parts. Jobs come part by part, and
//! within a part in the order of the file.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Jobs that are held at once, at most.
pub(super) const MOST_HELD: usize = 1 << 20;

/// Jobs of the part that is read, by key.
#[derive(Debug)]
pub(super) struct JobParts<T> {
    /// Number of parts, a power of two.
    parts: u128,
    /// The part that is read, from 0.
    part: u128,
    most: usize,
    held: BTreeMap<u128, T>,
}

/// Key of a name. Among a million names, two have one key with a probability below 1 in 10^26.
pub(super) fn key(name: &[u8]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, name).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    (half(0) << 64) | half(1)
}

impl<T> JobParts<T> {
    /// The first part, of which at most `most` jobs are held.
    pub(super) fn first(most: usize) -> Self {
        Self { parts: 1, part: 0, most, held: BTreeMap::new() }
    }

    /// Whether the first part is read: what is wrong with a piece of the file is said in this pass.
    pub(super) fn is_first(&self) -> bool {
        self.part == 0
    }

    /// Whether a key is in the part that is read.
    pub(super) fn has(&self, key: u128) -> bool {
        key % self.parts == self.part
    }

    /// The job of a key, where it is held.
    pub(super) fn get(&self, key: u128) -> Option<&T> {
        self.held.get(&key)
    }

    /// Changes the job of a key that is in the part. `change` gets the job, and gives a new one where there is none.
    pub(super) fn change(&mut self, key: u128, change: impl FnOnce(Option<&mut T>) -> Option<T>) {
        if !self.has(key) {
            return;
        }
        let Some(new) = change(self.held.get_mut(&key)) else { return };
        self.held.insert(key, new);
        while self.is_first() && self.held.len() > self.most {
            self.parts *= 2;
            let parts = self.parts;
            self.held.retain(|key, _| key % parts == 0);
        }
    }

    /// The jobs of the part in ascending order of `line`. The part then holds none.
    pub(super) fn take(&mut self, line: impl Fn(&T) -> u64) -> impl Iterator<Item = T> + '_ {
        let mut order: Vec<(u64, u128)> = self.held.iter().map(|(key, job)| (line(job), *key)).collect();
        order.sort_unstable();
        order.into_iter().filter_map(move |(_, key)| self.held.remove(&key))
    }

    /// Goes on to the next part, which holds no job yet; `false` after the last one.
    pub(super) fn next_part(&mut self) -> bool {
        self.held.clear();
        self.part += 1;
        self.part < self.parts
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::import::rows::Each;
    use crate::import::{Row, TraceSource, kubernetes, pai};

    #[test]
    fn a_list_in_parts_has_the_rows_of_the_whole_list() {
        let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name);
        let rows = |read: &dyn Fn(Each<'_>)| {
            let mut rows: Vec<(u64, String)> = Vec::new();
            read(&mut |row: Row| {
                let line = row.as_ref().map_or_else(|(line, _)| *line, |row| row.job.line);
                rows.push((line, format!("{row:?}")));
                Ok(())
            });
            rows.sort();
            rows
        };
        let (pods, tasks) = (file("kubernetes.json"), file("pai/pai_task_table.csv"));
        let [pods, tasks] = [TraceSource::File(&pods), TraceSource::File(&tasks)];
        let pods = |most| rows(&|each| kubernetes::read_parts(&pods, each, most).unwrap());
        let tasks = |most| rows(&|each| pai::read_parts(&tasks, each, most).unwrap());
        for (whole, parts) in [(pods(MOST_HELD), pods(2)), (tasks(MOST_HELD), tasks(2))] {
            assert!(whole.len() > 10);
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn every_job_is_in_one_part_and_no_part_holds_too_many() {
        let pieces: Vec<u64> = (0..1000).map(|piece| piece % 300).collect();
        let mut parts = JobParts::first(50);
        let (mut jobs, mut passes) = (Vec::new(), 0);
        loop {
            for (line, name) in pieces.iter().enumerate() {
                parts.change(key(&name.to_le_bytes()), |job: Option<&mut (u64, u64, u64)>| match job {
                    Some((_, _, count)) => {
                        *count += 1;
                        None
                    }
                    None => Some((line as u64, *name, 1)),
                });
                assert!(parts.held.len() <= 50);
            }
            let part: Vec<_> = parts.take(|(line, _, _)| *line).collect();
            assert!(part.is_sorted());
            jobs.extend(part);
            passes += 1;
            if !parts.next_part() {
                break;
            }
        }
        jobs.sort_unstable();
        let expected: Vec<_> = (0..300).map(|name| (name, name, if name < 100 { 4 } else { 3 })).collect();
        assert_eq!(jobs, expected);
        assert_eq!(passes, 8, "300 jobs in parts of up to 50");
    }
}
