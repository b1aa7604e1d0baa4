//! Jobs of which the pieces stand anywhere in a file, in parts that fit in memory.
//!
//! Each pass over the file holds the jobs of one part, by the hash of their names. The first pass begins with one
//! part of all jobs. Where that becomes too large, it is halved, and the jobs that are no longer in it are dropped.
//! The number of jobs in memory is therefore bounded. An import reads a file two to four times, and each time once for
//! each part. Jobs come part by part, and within a part in the order of the file.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// Jobs that are held at once, at most. The published table of PAI has 1,055,501 jobs, which are therefore one part.
pub(super) const MOST_HELD: usize = 1 << 21;

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

/// Key of a name: the first half of its SHA-256, so that every build makes the parts, and the order of the rows, alike.
/// Among a million names, two have one key with a probability below 1 in 10^26.
pub(super) fn key(name: &[u8]) -> u128 {
    Sha256::digest(name).iter().take(16).fold(0, |key, byte| (key << 8) | u128::from(*byte))
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
        key & (self.parts - 1) == self.part
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
            let mask = self.parts - 1;
            self.held.retain(|key, _| key & mask == 0);
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
    fn the_key_of_a_name_is_half_of_its_sha_256() {
        assert_eq!(key(b""), 0xe3b0_c442_98fc_1c14_9afb_f4c8_996f_b924);
        assert_eq!(key(b"abc"), 0xba78_16bf_8f01_cfea_4141_40de_5dae_2223);
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
