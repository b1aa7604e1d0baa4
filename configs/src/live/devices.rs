//! Choice of the accelerators that a node agent offers: `nvml`, `nvml:/path/to/library` or
//! `fake:8xA100`.

use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Source of accelerators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// Accelerators of the driver.
    #[default]
    Nvml,
    /// Accelerators of a library in an unusual place.
    Library(PathBuf),
    /// So many of that type, which do not exist, through a stand-in for NVML.
    Fake {
        /// Number of accelerators.
        count: u32,
        /// Type of the accelerators, such as `a100`.
        kind: String,
    },
}

/// Type of accelerator that the stand-in for NVML can play.
#[derive(Debug, Clone, Copy)]
pub struct FakeAccelerator {
    /// Name of the type in files.
    pub name: &'static str,
    /// Name of the product, as the driver reports it.
    pub product: &'static str,
    /// Memory in MiB, as the driver reports it.
    pub memory_mib: u64,
}

const fn fake(name: &'static str, product: &'static str, memory_mib: u64) -> FakeAccelerator {
    FakeAccelerator { name, product, memory_mib }
}

impl FakeAccelerator {
    /// All types that the stand-in can play.
    pub const ALL: [Self; 8] = [
        fake("a100", "NVIDIA A100-SXM4-80GB", 81_920),
        fake("h100", "NVIDIA H100 80GB HBM3", 81_559),
        fake("h200", "NVIDIA H200", 143_771),
        fake("v100", "Tesla V100-SXM2-32GB", 32_768),
        fake("a40", "NVIDIA A40", 46_068),
        fake("l40s", "NVIDIA L40S", 46_068),
        fake("t4", "Tesla T4", 15_360),
        fake("rtx3090", "NVIDIA GeForce RTX 3090", 24_576),
    ];

    /// Type called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fake| fake.name == name)
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "nvml" {
            return Ok(DeviceChoice::Nvml);
        }
        if let Some(path) = text.strip_prefix("nvml:") {
            return Ok(DeviceChoice::Library(path.into()));
        }
        let of = text.strip_prefix("fake:").and_then(|rest| rest.split_once('x'));
        let of = of.and_then(|(count, kind)| Some((count.parse::<u32>().ok()?, kind.to_ascii_lowercase())));
        match of {
            Some((count, kind)) if (1..=64).contains(&count) && FakeAccelerator::by_name(&kind).is_some() => {
                Ok(DeviceChoice::Fake { count, kind })
            }
            _ => Err(format!(
                "{text:?}: expected `nvml`, `nvml:/path/to/library` or `fake:COUNTxTYPE` with 1 to 64 of {}",
                FakeAccelerator::ALL.map(|fake| fake.name).join(", ")
            )),
        }
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceChoice> for String {
    fn from(choice: DeviceChoice) -> Self {
        match choice {
            DeviceChoice::Nvml => "nvml".to_owned(),
            DeviceChoice::Library(path) => format!("nvml:{}", path.display()),
            DeviceChoice::Fake { count, kind } => format!("fake:{count}x{kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_written_as_they_are_read() {
        for text in ["nvml", "nvml:/opt/libnvidia-ml.so.1", "fake:8xa100"] {
            assert_eq!(String::from(text.parse::<DeviceChoice>().unwrap()), text);
        }
        assert_eq!("fake:8xA100".parse(), Ok(DeviceChoice::Fake { count: 8, kind: "a100".to_owned() }));
        for bad in ["", "fake", "fake:8", "fake:0xa100", "fake:8xabacus", "fake:-1xa100", "cpu"] {
            assert!(bad.parse::<DeviceChoice>().unwrap_err().contains("fake:COUNTxTYPE"), "{bad}");
        }
    }
}
