//! Checkpoints as the contract wants them: written aside, forced to disk, renamed; the last two are
//! kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const KEPT: usize = 2;

#[derive(Debug, Serialize, Deserialize)]
struct BenchCheckpoint {
    step: u64,
    /// Stands for the weights.
    weights: String,
    /// Of `step` and `weights`.
    digest: String,
}

fn digest(step: u64, weights: &str) -> String {
    Sha256::digest(format!("{step} {weights}")).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checkpoints in `folder`, oldest first.
fn list(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let step = |path: &Path| path.file_name()?.to_str()?.strip_prefix("step-")?.strip_suffix(".json")?.parse().ok();
    let mut found: Vec<(u64, PathBuf)> = entries.filter_map(|path| Some((step(&path)?, path))).collect();
    found.sort_unstable();
    found
}

/// Step of the newest checkpoint, 0 where there is none; `None`: it is damaged. It is put aside
/// then, so that the next attempt goes on from the one before.
pub(super) fn load(folder: &Path) -> Option<u64> {
    let Some((step, path)) = list(folder).pop() else { return Some(0) };
    let read: Option<BenchCheckpoint> = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    match read {
        Some(read) if read.step == step && read.digest == digest(step, &read.weights) => Some(step),
        _ => {
            // If it cannot be put aside, the next attempt fails as this one does, and the retry
            // budget ends it.
            let _ = fs::rename(&path, path.with_extension("damaged"));
            None
        }
    }
}

/// Part of a checkpoint that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it.
    Whole,
    /// Half of it, as a full disk or a lost machine leaves it.
    Half,
}

/// Writes a checkpoint.
pub(super) fn save(folder: &Path, step: u64, written: Written) -> io::Result<()> {
    let weights = format!("{:x}", step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let digest = digest(step, &weights);
    let mut text = serde_json::to_vec(&BenchCheckpoint { step, weights, digest })?;
    if written == Written::Half {
        text.truncate(text.len() / 2);
    }
    let new = folder.join(format!("step-{step}.new"));
    let mut file = File::create(&new)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(format!("step-{step}.json")))?;
    File::open(folder)?.sync_all()?;
    let found = list(folder);
    for (_, old) in &found[..found.len().saturating_sub(KEPT)] {
        fs::remove_file(old)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_kept_and_a_damaged_one_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()), Some(0));
        for step in [10, 20, 30] {
            save(folder.path(), step, Written::Whole).unwrap();
        }
        assert_eq!(list(folder.path()).iter().map(|(step, _)| *step).collect::<Vec<_>>(), [20, 30]);
        assert_eq!(load(folder.path()), Some(30));
        save(folder.path(), 40, Written::Half).unwrap();
        assert_eq!(load(folder.path()), None);
        assert_eq!(load(folder.path()), Some(30));
    }
}
