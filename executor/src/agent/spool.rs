//! Spool of an agent, which survives its death: small files, each written whole and forced to disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record;
use crate::private;

/// Launch of the attempt and its time.
pub const LAUNCH: &str = "launch.json";
/// Order to the keeper.
pub const ORDER: &str = "order.json";
/// Process ids of keeper and job.
pub const PROCESSES: &str = "processes.json";
/// Order to stop, and the latest time of the end.
pub const STOP: &str = "stop.json";
/// Circumstances of the end.
pub const CAUSE: &str = "cause.json";
/// Exit status of the job.
pub const EXIT: &str = "exit.json";
/// Plan for the members of an elastic attempt, which the job reads.
pub const MEMBERS: &str = "members.json";
/// Claim on an attempt, made by its keeper before it starts the job, or by an agent that gives up
/// waiting for the keeper. The second to come leaves the attempt alone.
pub const CLAIM: &str = "claim";
/// Output of the job.
pub const OUTPUT: &str = "output.log";
/// Folder beside those of attempts: output of jobs, kept when their attempts are forgotten.
pub const OUTPUTS: &str = "output";
/// So many of those are kept.
const KEPT: usize = 1000;

/// Writes a file so that after a crash there is the old one or the new one.
///
/// # Errors
/// The disk is full or fails; the old file is then still there.
pub fn write<T: Serialize>(folder: &Path, name: &str, value: &T) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut file = private::create(&new)?;
    file.write_all(&record::encode(value)?)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    // The new name is an entry of the folder, which has to be on disk as well.
    File::open(folder)?.sync_all()
}

/// Reads a file; `None` where it is missing or not what it should be. For files of which nothing is lost with
/// either; others are read by [`record::load`].
#[must_use]
pub fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    record::load(&folder.join(name)).ok().flatten()
}

/// Makes the claim. `false` where the claim was made before.
///
/// # Errors
/// The disk is full or fails.
pub fn claim(folder: &Path) -> io::Result<bool> {
    match private::options().write(true).create_new(true).open(folder.join(CLAIM)) {
        Ok(file) => file.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves what the job printed out of an attempt's folder, to `output/ATTEMPT.log` beside the
/// attempts: people look for it when a job has failed. The oldest go where there are more than a
/// thousand.
///
/// # Errors
/// The disk is full or fails.
pub fn keep_output(folder: &Path) -> io::Result<()> {
    let printed = folder.join(OUTPUT);
    let (Some(name), Some(spool)) = (folder.file_name(), folder.parent().and_then(Path::parent)) else { return Ok(()) };
    if fs::metadata(&printed).map_or(0, |data| data.len()) == 0 {
        return Ok(());
    }
    let outputs = spool.join(OUTPUTS);
    private::folder(&outputs)?;
    let mut name = name.to_owned();
    name.push(".log");
    fs::rename(printed, outputs.join(name))?;
    let files = fs::read_dir(&outputs)?.flatten();
    let mut files: Vec<_> =
        files.map(|file| (file.metadata().and_then(|data| data.modified()).ok(), file.path())).collect();
    files.sort_unstable();
    let surplus = files.len().saturating_sub(KEPT);
    files[..surplus].iter().try_for_each(|(_, file)| fs::remove_file(file))
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
    fn what_a_job_printed_outlives_its_attempt() {
        let root = tempfile::tempdir().unwrap();
        let attempt = |name: String, text: &str| {
            let folder = root.path().join("attempts").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(OUTPUT), text).unwrap();
            keep_output(&folder).unwrap();
            folder
        };
        let folder = attempt("job.0".into(), "Traceback");
        assert!(!folder.join(OUTPUT).exists());
        assert_eq!(fs::read_to_string(root.path().join("output/job.0.log")).unwrap(), "Traceback");
        attempt("silent.0".into(), "");
        assert!(!root.path().join("output/silent.0.log").exists(), "nothing to look at");
        let old = std::time::SystemTime::UNIX_EPOCH;
        File::open(root.path().join("output/job.0.log")).unwrap().set_modified(old).unwrap();
        (0..KEPT).for_each(|index| drop(attempt(format!("other.{index}"), "x")));
        assert_eq!(fs::read_dir(root.path().join("output")).unwrap().count(), KEPT);
        assert!(!root.path().join("output/job.0.log").exists(), "the oldest goes");
    }

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
