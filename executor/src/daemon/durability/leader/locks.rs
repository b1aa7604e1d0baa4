//! Locks on files that keep the daemons of one state directory apart.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::private;

/// The two lock files of a state directory.
#[derive(Debug)]
pub struct Locks {
    act: File,
    life: File,
}

/// A file that is locked as long as this lives, whatever other descriptors of it are open.
#[derive(Debug)]
pub struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Where it cannot be unlocked it is as good as held by a leader that lives: the lease
        // decides.
        let _ = self.0.unlock();
    }
}

impl Locks {
    /// The files at `lock` and beside it.
    ///
    /// # Errors
    /// Where they cannot be opened.
    pub fn open(lock: &Path) -> std::io::Result<Self> {
        let open = |path: &Path| private::options().create(true).truncate(false).write(true).open(path);
        Ok(Self { life: open(&lock.with_extension("alive"))?, act: open(lock)? })
    }

    /// The lock of an act; `None` where another daemon is in the middle of one.
    pub fn act(&self) -> Option<Locked> {
        try_lock(&self.act)
    }

    /// The lock that a leader holds as long as it lives; `None` where another daemon has it.
    pub fn live(&self) -> Option<Locked> {
        try_lock(&self.life)
    }
}

/// Lock on an open file. The file is locked rather than the process: a second open file of one
/// process is kept out as well.
fn try_lock(file: &File) -> Option<Locked> {
    let file = file.try_clone().ok()?;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(Locked(file)),
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
