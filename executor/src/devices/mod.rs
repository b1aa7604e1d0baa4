//! The accelerators of this machine.
//!
//! The driver is behind a trait, [`DeviceSource`], because most machines on which this is developed
//! and tested have none, and because a machine without a driver is an ordinary case with an
//! ordinary error, not a crash. [`NvmlSource`] asks NVIDIA's library, [`watch()`] asks any source
//! again and again.
//!
//! Cards differ in what they report: a reading that a card does not support is `None`, never 0,
//! which would look like an idle card. A card that fails altogether is listed among the faults of
//! the [`Inventory`], and the others are listed as ever.
//!
//! A site's DCGM exporter may tell more about the health of devices ([`dcgm`]).
//!
//! An agent keeps a [`Telemetry`]: the newest readings, whether the driver answers, and which
//! devices are fit for work ([`HealthBook`]).

mod choice;
pub mod dcgm;
mod error;
mod events;
mod fake;
mod health;
mod inventory;
mod nvml;
mod telemetry;
mod watch;

pub use choice::accelerator_type;
pub use error::DeviceError;
pub use health::{DeviceHealth, HealthBook, Tracked};
pub use inventory::{DeviceFault, DeviceInfo, FaultKind, Inventory, MigMode};
pub use nvml::NvmlSource;
pub use telemetry::{Readings, Telemetry};
pub use watch::watch;

/// Something that knows the devices of a machine.
///
/// Asking may take long: drivers hang when a device dies. Async code asks through [`watch()`].
pub trait DeviceSource: Send {
    /// The devices and their readings as they are now.
    ///
    /// # Errors
    /// Only what concerns the whole machine; a device that fails alone is a [`DeviceFault`] in the
    /// inventory.
    fn list(&mut self) -> Result<Inventory, DeviceError>;
}
