//! What an agent must not forget: small files, each written whole and forced to disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What was asked for; `Launch` and when.
pub const LAUNCH: &str = "launch.json";
/// What the keeper is to do.
pub const ORDER: &str = "order.json";
/// Who does it: keeper and job.
pub const PROCESSES: &str = "processes.json";
/// That, and when at the latest, it is to end.
pub const STOP: &str = "stop.json";
/// What was going on when it ended.
pub const CAUSE: &str = "cause.json";
/// How it ended.
pub const EXIT: &str = "exit.json";
/// Made by the keeper before it starts the job, or by an agent that gives up waiting for it: who comes second lets it be.
pub const CLAIM: &str = "claim";
/// What the job prints.
pub const OUTPUT: &str = "output.log";

/// Writes a file so that after a crash there is the old one or the new one.
///
/// # Errors
/// The disk is full or fails; the old file is then still there.
pub fn write<T: Serialize>(folder: &Path, name: &str, value: &T) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Reads a file; `None` where it is missing or not what it should be.
#[must_use]
pub fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok()
}

/// Makes the claim. `false`: somebody else did.
///
/// # Errors
/// The disk is full or fails.
pub fn claim(folder: &Path) -> io::Result<bool> {
    match File::create_new(folder.join(CLAIM)) {
        Ok(file) => file.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Folders of attempts, in the order of their names.
#[must_use]
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort_unstable();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_and_a_claim_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), EXIT, &7).unwrap();
        write(folder.path(), EXIT, &8).unwrap();
        assert_eq!(read::<i32>(folder.path(), EXIT), Some(8));
        assert_eq!(read::<String>(folder.path(), EXIT), None);
        assert!(claim(folder.path()).unwrap());
        assert!(!claim(folder.path()).unwrap());
    }
}
