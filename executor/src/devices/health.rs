//! Health of devices: whether each is fit for work.
//!
//! A device is taken out by a failed reading, a critical error (XID) or a memory error that could
//! not be corrected. It comes back after it has been well for a while, or when an administrator
//! says so. Devices are remembered by UUID, because one that fell off the bus cannot tell its name
//! any more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dcgm::{self, DcgmFault, DcgmValues};
use super::{DeviceFault, DeviceInfo, FaultKind, Inventory};

/// Critical errors that programs cause and devices survive: 13 and 31 (bad access), 43 and 45 (a
/// program was stopped), 63 (a bad memory row was put aside) (NVIDIA, XID errors, table of common
/// causes).
const OF_PROGRAMS: [u64; 5] = [13, 31, 43, 45, 63];

/// Whether a device may be given to jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceHealth {
    /// The device is fit for work.
    Fit,
    /// The device is taken out.
    Out {
        /// Reason of the fault: `lost`, `xid 79`, `ecc_uncorrectable`, ...
        reason: String,
        /// Since when, milliseconds of the caller's clock.
        since_ms: i64,
        /// Since when it has been well again; `None`: it is not.
        well_since_ms: Option<i64>,
    },
}

/// A device, its last good reading and its health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracked {
    /// UUID of the device, as the driver reports it.
    pub uuid: String,
    /// Position in the driver's list.
    pub index: u32,
    /// Newest reading that succeeded.
    pub info: DeviceInfo,
    /// Health of the device: whether jobs may be given to the device.
    pub health: DeviceHealth,
}

/// The devices of a machine and their health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HealthBook {
    back_after_ms: i64,
    devices: Vec<Tracked>,
    /// Newest values of the DCGM exporter, by UUID.
    #[serde(default)]
    dcgm: BTreeMap<String, DcgmValues>,
}

impl HealthBook {
    /// Devices come back after `back_after_ms` of good readings.
    #[must_use]
    pub fn new(back_after_ms: i64) -> Self {
        Self { back_after_ms, devices: Vec::new(), dcgm: BTreeMap::new() }
    }

    /// All devices ever seen, by index.
    #[must_use]
    pub fn devices(&self) -> &[Tracked] {
        &self.devices
    }

    /// Goes on from what an earlier process knew: what was out stays out.
    pub fn inherit(&mut self, earlier: HealthBook) {
        (self.devices, self.dcgm) = (earlier.devices, earlier.dcgm);
    }

    /// Takes in a listing made at `now_ms`.
    pub fn observe(&mut self, inventory: &Inventory, now_ms: i64) {
        for info in &inventory.devices {
            match self.devices.iter_mut().find(|device| device.uuid == info.uuid) {
                Some(device) => device.good(info, self.back_after_ms, now_ms),
                None => {
                    let (uuid, index) = (info.uuid.clone(), info.index);
                    // Splitting a GPU mends nothing.
                    let kin = self
                        .devices
                        .iter()
                        .find(|known| known.info.shares_device_with(info) && known.health != DeviceHealth::Fit);
                    let health = kin.map_or(DeviceHealth::Fit, |known| known.health.clone());
                    self.devices.push(Tracked { uuid, index, info: info.clone(), health });
                }
            }
        }
        let listed = |uuid: &str| inventory.devices.iter().any(|info| info.uuid == uuid);
        self.devices.retain_mut(|device| {
            let hit = |fault: &&DeviceFault| match &fault.uuid {
                Some(uuid) => device.info.is_of(uuid),
                None => device.index == fault.index,
            };
            match inventory.faults.iter().find(hit) {
                _ if listed(&device.uuid) => true,
                Some(fault) => {
                    device.bad(reason(fault.kind, &fault.message), now_ms);
                    true
                }
                // Split otherwise than before: what it was is no device any more.
                None if inventory.devices.iter().any(|info| info.shares_device_with(&device.info)) => false,
                None => {
                    device.bad("missing".to_owned(), now_ms);
                    true
                }
            }
        });
        self.devices.sort_by_key(|device| device.index);
    }

    /// Takes in a critical error of a device, which is one of all its instances.
    pub fn xid(&mut self, uuid: &str, code: u64, now_ms: i64) {
        if OF_PROGRAMS.contains(&code) {
            return;
        }
        let hit = self.devices.iter_mut().filter(|device| device.info.is_of(uuid));
        hit.for_each(|device| device.bad(format!("xid {code}"), now_ms));
    }

    /// Takes in what a DCGM exporter serves. Only what it says newly, or what lasts, takes a device out.
    pub fn observe_dcgm(&mut self, values: &BTreeMap<String, DcgmValues>, hottest_c: Option<f64>, now_ms: i64) {
        for (uuid, now) in values {
            for fault in dcgm::faults(self.dcgm.get(uuid), now, hottest_c) {
                match fault {
                    DcgmFault::Xid(code) => self.xid(uuid, code, now_ms),
                    DcgmFault::Lasting(reason) => {
                        let hit = self.devices.iter_mut().filter(|device| device.info.is_of(uuid));
                        hit.for_each(|device| device.bad(reason.clone(), now_ms));
                    }
                }
            }
        }
        self.dcgm.clone_from(values);
    }

    /// An administrator says that a device is well, and with it all its instances. `false`: there
    /// is none of that name.
    pub fn restore(&mut self, uuid: &str) -> bool {
        let mut named = self.devices.iter_mut().filter(|device| device.info.is_of(uuid)).peekable();
        let known = named.peek().is_some();
        named.for_each(|device| device.health = DeviceHealth::Fit);
        known
    }
}

impl Tracked {
    fn good(&mut self, info: &DeviceInfo, back_after_ms: i64, now_ms: i64) {
        // The first value of a counter tells nothing about new errors.
        let worse = info.ecc_uncorrected > self.info.ecc_uncorrected && self.info.ecc_uncorrected.is_some();
        self.info = info.clone();
        self.index = info.index;
        if worse {
            self.bad("ecc_uncorrectable".to_owned(), now_ms);
        }
        if let DeviceHealth::Out { well_since_ms, .. } = &mut self.health {
            let since = *well_since_ms.get_or_insert(now_ms);
            if now_ms - since >= back_after_ms {
                self.health = DeviceHealth::Fit;
            }
        }
    }

    /// The first reason stays: what follows from it is less telling.
    fn bad(&mut self, reason: String, now_ms: i64) {
        match &mut self.health {
            DeviceHealth::Fit => self.health = DeviceHealth::Out { reason, since_ms: now_ms, well_since_ms: None },
            DeviceHealth::Out { well_since_ms, .. } => *well_since_ms = None,
        }
    }
}

fn reason(kind: FaultKind, message: &str) -> String {
    match kind {
        FaultKind::Lost => "lost".to_owned(),
        FaultKind::ResetRequired => "reset_required".to_owned(),
        FaultKind::NoPermission => "no_permission".to_owned(),
        FaultKind::Other => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MINUTES: i64 = 600_000;

    fn listing(ecc: u64, lost: bool) -> Inventory {
        let info = |index: u32| -> DeviceInfo {
            let text = format!(r#"{{"index":{index},"uuid":"GPU-{index}","name":"x","ecc_uncorrected":{ecc}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let fault = DeviceFault { index: 1, uuid: None, kind: FaultKind::Lost, message: "GPU is lost".to_owned() };
        match lost {
            false => Inventory { devices: vec![info(0), info(1)], ..Inventory::default() },
            true => Inventory { devices: vec![info(0)], faults: vec![fault], ..Inventory::default() },
        }
    }

    fn reasons(book: &HealthBook) -> Vec<&str> {
        let reason = |device: &Tracked| match &device.health {
            DeviceHealth::Fit => "",
            DeviceHealth::Out { reason, .. } => Box::leak(reason.clone().into_boxed_str()),
        };
        book.devices().iter().map(reason).collect()
    }

    #[test]
    fn a_lost_device_is_out_at_once_and_back_after_ten_good_minutes() {
        let mut book = HealthBook::new(TEN_MINUTES);
        book.observe(&listing(0, false), 0);
        assert_eq!(reasons(&book), ["", ""]);
        book.observe(&listing(0, true), 1_000);
        assert_eq!(reasons(&book), ["", "lost"]);
        book.observe(&listing(0, false), 2_000);
        book.observe(&listing(0, true), 300_000);
        book.observe(&listing(0, false), 301_000);
        book.observe(&listing(0, false), 301_000 + TEN_MINUTES - 1);
        assert_eq!(reasons(&book), ["", "lost"], "the minutes count from the last bad reading");
        book.observe(&listing(0, false), 301_000 + TEN_MINUTES);
        assert_eq!(reasons(&book), ["", ""]);
    }

    #[test]
    fn memory_errors_count_from_what_was_there_before() {
        let mut book = HealthBook::new(TEN_MINUTES);
        book.observe(&listing(3, false), 0);
        book.observe(&listing(3, false), 1);
        assert_eq!(reasons(&book), ["", ""]);
        book.observe(&listing(4, false), 2);
        assert_eq!(reasons(&book), ["ecc_uncorrectable"; 2]);
        assert!(book.restore("GPU-0") && !book.restore("GPU-9"));
        book.observe(&listing(4, false), 3);
        assert_eq!(reasons(&book), ["", "ecc_uncorrectable"]);
    }

    #[test]
    fn critical_errors_take_a_device_out_unless_programs_cause_them() {
        let mut book = HealthBook::new(TEN_MINUTES);
        book.observe(&listing(0, false), 0);
        for code in OF_PROGRAMS {
            book.xid("GPU-0", code, 1);
        }
        assert_eq!(reasons(&book), ["", ""]);
        book.xid("GPU-0", 79, 1);
        book.xid("GPU-0", 48, 2);
        assert_eq!(reasons(&book), ["xid 79", ""]);
        let mut next = HealthBook::new(TEN_MINUTES);
        next.inherit(book);
        next.observe(&listing(0, false), 3);
        assert_eq!(reasons(&next), ["xid 79", ""], "also for the next agent");
    }
}
