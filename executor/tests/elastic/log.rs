//! Records that members keep of the samples that they use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folder in which each member writes a line for each step that it tries and for each that counts.
#[derive(Clone)]
pub struct SampleLog {
    folder: PathBuf,
    /// Samples of the data set.
    count: usize,
}

/// A step that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedStep {
    /// Attempt and agreement of the members that made the step.
    pub made: (u32, u64),
    /// Members that made the step.
    pub members: usize,
    /// Samples of the step, sorted.
    pub samples: Vec<u32>,
    /// Time at which the first member had the step, seconds since the Unix epoch, and the loss where it is known.
    pub told: (f64, f64),
}

impl SampleLog {
    pub fn of(folder: PathBuf, count: usize) -> Self {
        fs::create_dir_all(&folder).unwrap();
        Self { folder, count }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Tells the job to end with its epoch.
    pub fn enough(&self) {
        fs::write(self.folder.join("enough"), "").unwrap();
    }

    /// The steps that count, by number. A step that was made twice is an error, unless its first result was lost with
    /// an attempt.
    pub fn steps(&self) -> BTreeMap<u64, LoggedStep> {
        let (mut tried, mut done) = (BTreeMap::new(), BTreeMap::<u64, BTreeMap<(u32, u64), (f64, f64)>>::new());
        for file in fs::read_dir(&self.folder).unwrap().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let Some(attempt) = name.split('.').next().and_then(|attempt| attempt.parse::<u32>().ok()) else {
                continue;
            };
            for line in fs::read_to_string(file.path()).unwrap().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                // A member that is killed may leave half a line.
                let (Some(step), Some(agreement)) = (number(&words, 1), number(&words, 2)) else { continue };
                let made = (attempt, agreement);
                match (words[0], words.get(3)) {
                    ("try", Some(samples)) => {
                        let ids = samples.split(',').filter_map(|id| id.parse::<u32>().ok());
                        tried.entry((step, made)).or_insert_with(Vec::new).push(ids.collect::<Vec<_>>());
                    }
                    ("done", Some(at)) => {
                        let at: f64 = at.parse().unwrap_or(f64::INFINITY);
                        let loss = words.get(4).and_then(|loss| loss.parse().ok()).unwrap_or(f64::NAN);
                        let first = done.entry(step).or_default().entry(made).or_insert((at, loss));
                        first.0 = first.0.min(at);
                    }
                    _ => {}
                }
            }
        }
        let logged = done.into_iter().map(|(step, made)| {
            let of_last = made.keys().filter(|(attempt, _)| Some(attempt) == made.keys().map(|(a, _)| a).max()).count();
            assert_eq!(of_last, 1, "step {step} counts twice: {made:?}");
            let (&made, &told) = made.iter().next_back().unwrap();
            let parts = &tried[&(step, made)];
            let mut samples = parts.concat();
            samples.sort_unstable();
            (step, LoggedStep { made, members: parts.len(), samples, told })
        });
        logged.collect()
    }

    /// Checks that each epoch used each sample once, and that no step is missing.
    pub fn check(&self) {
        self.check_begun();
        let used: usize = self.steps().values().map(|step| step.samples.len()).sum();
        assert!(used > 0 && used.is_multiple_of(self.count), "{used} samples");
    }

    /// Checks that each epoch used each sample once, but for the last one that may not be over, and that no step is
    /// missing.
    pub fn check_begun(&self) {
        let steps = self.steps();
        assert!(steps.keys().copied().eq(0..steps.len() as u64), "a step is missing");
        let used: Vec<u32> = steps.values().flat_map(|step| step.samples.iter().copied()).collect();
        for (epoch, samples) in used.chunks(self.count).enumerate() {
            let once: BTreeSet<u32> = samples.iter().copied().filter(|id| (*id as usize) < self.count).collect();
            assert_eq!(once.len(), samples.len(), "epoch {epoch} lost or doubled a sample");
        }
    }

    /// Samples of each step.
    pub fn order(&self) -> Vec<Vec<u32>> {
        self.steps().into_values().map(|step| step.samples).collect()
    }

    /// Loss of each step.
    pub fn losses(&self) -> Vec<f64> {
        self.steps().into_values().map(|step| step.told.1).collect()
    }

    /// Number of members at each agreement, in order.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<((u32, u64), usize)> =
            self.steps().into_values().map(|step| (step.made, step.members)).collect();
        sizes.dedup();
        sizes.into_iter().map(|(_, size)| size).collect()
    }

    /// Longest time between two steps, seconds.
    pub fn longest_gap(&self) -> f64 {
        let at: Vec<f64> = self.steps().into_values().map(|step| step.told.0).collect();
        at.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
    }
}

fn number(words: &[&str], at: usize) -> Option<u64> {
    words.get(at)?.parse().ok()
}
