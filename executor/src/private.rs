//! Files and folders that are readable by their owner only: state holds fences, environments of jobs
//! and names of users.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of files.
const FILE: u32 = 0o600;

/// Mode of folders.
const FOLDER: u32 = 0o700;

/// Bit of folders such as `/tmp`, which all users share.
const STICKY: u32 = 0o1000;

/// Makes a folder, or closes one that is there to others. A folder that all users share, such
/// as `/tmp`, stays as it is.
///
/// # Errors
/// The folder cannot be made, or belongs to another user.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o777 == FOLDER || mode & STICKY != 0 { Ok(()) } else { set(path, FOLDER) }
}

/// Closes a file that may be there to others.
///
/// # Errors
/// The file belongs to another user.
pub fn file(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() && data.permissions().mode() & 0o777 != FILE => set(path, FILE),
        _ => Ok(()),
    }
}

/// Closes all files directly in a folder of this program to others.
///
/// # Errors
/// A file belongs to another user.
pub fn files(folder: &Path) -> io::Result<()> {
    fs::read_dir(folder).into_iter().flatten().flatten().try_for_each(|entry| file(&entry.path()))
}

/// Options that make a file readable by its owner only.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// An empty file at `path`, in place of what is there.
///
/// # Errors
/// The file cannot be made.
pub fn create(path: &Path) -> io::Result<File> {
    let file = options().write(true).create(true).truncate(true).open(path)?;
    // A file that was there keeps its mode when it is opened.
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

fn set(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_an_earlier_version_left_open_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let (inner, old) = (root.path().join("a/b"), root.path().join("a/b/old.json"));
        folder(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&root.path().join("a"))), (0o700, 0o700));
        fs::write(&old, "x").unwrap();
        set(&old, 0o644).unwrap();
        set(&inner, 0o755).unwrap();
        folder(&inner).unwrap();
        files(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&old)), (0o700, 0o600));
        set(&old, 0o644).unwrap();
        create(&old).unwrap();
        assert_eq!((mode(&old), fs::read(&old).unwrap().len()), (0o600, 0));
        file(&root.path().join("missing")).unwrap();
    }

    #[test]
    fn a_folder_of_everyone_stays_open() {
        let root = tempfile::tempdir().unwrap();
        set(root.path(), 0o1777).unwrap();
        folder(root.path()).unwrap();
        assert_eq!(mode(root.path()), 0o1777);
    }
}
