//! Errors of listing the devices of a machine, with remedies for its owner.

use std::path::PathBuf;
use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use thiserror::Error;

/// Reason why no inventory could be taken. [`DeviceError::remedy`] says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver's library could not be loaded: there is no driver, or it is elsewhere.
    #[error("NVIDIA management library `{looked_for}` could not be loaded: {detail}")]
    LibraryNotFound {
        /// The path tried, or the name looked for in the places where the system keeps its
        /// libraries.
        looked_for: String,
        /// Error of the system's loader.
        detail: String,
    },
    /// The library is there, and the kernel driver it talks to is not running.
    #[error("NVIDIA driver is installed but not loaded")]
    DriverNotLoaded,
    /// This user may not ask.
    #[error("no permission to {action}")]
    NoPermission {
        /// Action that failed.
        action: &'static str,
    },
    /// The driver has not answered for a while, as happens when a device dies.
    #[error("NVIDIA driver has not answered for {} s", waited.as_secs_f64())]
    Stuck {
        /// Time since the driver was asked.
        waited: Duration,
    },
    /// The source of devices panicked, and no more will come from it.
    #[error("device source panicked")]
    SourcePanicked,
    /// Accelerators that do not exist could not be set up.
    #[error("fake accelerators in {}: {problem}", folder.display())]
    Fake {
        /// Folder of their script and library.
        folder: PathBuf,
        /// Problem with the folder.
        problem: String,
    },
    /// Anything else that NVML reports.
    #[error("failed to {action}")]
    Nvml {
        /// Action that failed.
        action: &'static str,
        /// Error of NVML.
        source: NvmlError,
    },
}

impl DeviceError {
    /// Remedy for the owner of the machine, in a sentence or two; `None` where there is nothing
    /// general to say.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            DeviceError::LibraryNotFound { .. } => Some(
                "install the NVIDIA driver, of which the library is a part; in a container, start it with GPU support \
                 (`--gpus all` with the NVIDIA Container Toolkit)",
            ),
            DeviceError::DriverNotLoaded => Some(
                "load the driver with `modprobe nvidia`, or restart the machine if the driver was just installed or updated",
            ),
            DeviceError::NoPermission { .. } => {
                Some("run as a user who may read and write /dev/nvidiactl and /dev/nvidia*")
            }
            DeviceError::Stuck { .. } => {
                Some("look for `NVRM: Xid` in the kernel log (`dmesg`); a device that died needs a reset or a restart")
            }
            DeviceError::Nvml { source: NvmlError::LibRmVersionMismatch, .. } => {
                Some("restart the machine: the driver was updated while the old one was loaded")
            }
            DeviceError::Nvml { .. } | DeviceError::SourcePanicked | DeviceError::Fake { .. } => None,
        }
    }

    /// Sorts an NVML error by what can be done about it. `library` is the path or name from which
    /// NVML was loaded.
    pub(super) fn from_nvml(source: NvmlError, action: &'static str, library: &str) -> Self {
        match source {
            NvmlError::LibloadingError(error) => {
                DeviceError::LibraryNotFound { looked_for: library.to_owned(), detail: error.to_string() }
            }
            NvmlError::LibraryNotFound => DeviceError::LibraryNotFound {
                looked_for: library.to_owned(),
                detail: "a library it depends on was not found".to_owned(),
            },
            NvmlError::DriverNotLoaded => DeviceError::DriverNotLoaded,
            NvmlError::NoPermission => DeviceError::NoPermission { action },
            source => DeviceError::Nvml { action, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    fn sorted(source: NvmlError) -> DeviceError {
        DeviceError::from_nvml(source, "count devices", "libnvidia-ml.so.1")
    }

    #[test]
    fn nvml_errors_are_sorted_by_what_can_be_done() {
        assert!(matches!(sorted(NvmlError::DriverNotLoaded), DeviceError::DriverNotLoaded));
        assert_eq!(sorted(NvmlError::NoPermission).to_string(), "no permission to count devices");
        assert!(matches!(sorted(NvmlError::LibraryNotFound), DeviceError::LibraryNotFound { .. }));

        let other = sorted(NvmlError::Unknown);
        assert_eq!(other.to_string(), "failed to count devices");
        assert_eq!(other.source().unwrap().to_string(), "an internal driver error occurred");
    }

    #[test]
    fn what_can_be_remedied_has_a_remedy() {
        assert!(sorted(NvmlError::DriverNotLoaded).remedy().unwrap().contains("modprobe"));
        assert!(sorted(NvmlError::LibRmVersionMismatch).remedy().unwrap().contains("restart"));
        assert!(DeviceError::Stuck { waited: Duration::from_secs(5) }.remedy().unwrap().contains("Xid"));
        assert_eq!(sorted(NvmlError::Unknown).remedy(), None);
    }
}
