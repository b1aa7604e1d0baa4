//! Control daemon of CUDA MPS on a node: NVIDIA's Multi-Process Service keeps jobs to parts of accelerators.
//!
//! The daemon is the administrator's: `nvidia-cuda-mps-control -d`. It listens on the pipe `control` in its folder, and
//! writes its process id beside it (NVIDIA, Multi-Process Service, "Environment Variables" and "Starting MPS").
//!
//! A program connects to the daemon with its pipes in `CUDA_MPS_PIPE_DIRECTORY`, or in `/tmp/nvidia-mps` where the
//! variable is not set. If the attempt to connect fails, the program runs as it does without MPS (NVIDIA, manual page
//! nvidia-cuda-mps-control(1), "Description"). So a job that is not to use MPS is given a folder without pipes.

use std::fs;
use std::path::Path;

/// Variable that names the folder with the pipes of the control daemon.
pub(super) const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";

/// Start of the names of the daemon and of its server, `nvidia-cuda-mps-server`; Linux keeps 15 bytes of a name.
const PROGRAMS: &str = "nvidia-cuda-mps";

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

/// Whether a process is the server of MPS. The server stays on an accelerator after its last client has ended, and does
/// no work of its own; clients have processes of their own.
pub(super) fn is_server(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(PROGRAMS))
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
