//! Control daemon of CUDA MPS on a node: NVIDIA's Multi-Process Service keeps jobs to parts of accelerators.
//!
//! The daemon is the administrator's: `nvidia-cuda-mps-control -d`. It listens on the pipe `control` in its folder, and
//! writes its process id beside it (NVIDIA, Multi-Process Service, "Environment Variables" and "Starting MPS").

use std::fs;
use std::path::Path;

/// File with the process id of the control daemon.
const PROCESS: &str = "nvidia-cuda-mps-control.pid";

/// Whether the control daemon of the folder `pipes` runs. A pipe that a dead daemon left behind does not count, where
/// its process id is known.
pub(super) fn runs(pipes: &Path) -> bool {
    if !pipes.join("control").exists() {
        return false;
    }
    let id = fs::read_to_string(pipes.join(PROCESS)).ok().and_then(|text| text.trim().parse::<u32>().ok());
    id.is_none_or(|id| Path::new("/proc").join(id.to_string()).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_its_daemon_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!runs(folder.path()));
        fs::write(folder.path().join("control"), "").unwrap();
        assert!(runs(folder.path()));
        fs::write(folder.path().join(PROCESS), format!("{}\n", std::process::id())).unwrap();
        assert!(runs(folder.path()));
        // No process has the largest id that Linux can be told.
        fs::write(folder.path().join(PROCESS), "4194305").unwrap();
        assert!(!runs(folder.path()));
    }
}
