//! Choice of the accelerators that an agent offers: `nvml`, `nvml:/path/to/library` or
//! `fake:8xA100`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DeviceError, NvmlSource, fake};

/// Source of accelerators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl DeviceChoice {
    /// Opens them. What does not exist is described by files in `folder`, for the node called
    /// `node`.
    ///
    /// # Errors
    /// As [`NvmlSource::open_library`], and where the stand-in or its folder is missing.
    pub fn open(&self, folder: &Path, node: &str) -> Result<NvmlSource, DeviceError> {
        match self {
            DeviceChoice::Nvml => NvmlSource::open(),
            DeviceChoice::Library(path) => NvmlSource::open_library(path),
            DeviceChoice::Fake { count, kind } => NvmlSource::open_library(&fake::prepare(folder, node, *count, kind)?),
        }
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
            Some((count, kind)) if (1..=64).contains(&count) && fake::memory_mib(&kind).is_some() => {
                Ok(DeviceChoice::Fake { count, kind })
            }
            _ => Err(format!(
                "{text:?}: expected `nvml`, `nvml:/path/to/library` or `fake:COUNTxTYPE` with 1 to 64 of {}",
                fake::types()
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

/// Type of an accelerator by its product name, as the catalog writes it: `NVIDIA A100-SXM4-80GB` is
/// `a100`, and its instance `NVIDIA A100-SXM4-80GB MIG 1g.10gb` is `a100-1g.10gb`, a type of its
/// own.
#[must_use]
pub fn accelerator_type(product: &str) -> String {
    if let Some((whole, profile)) = product.split_once(" MIG ") {
        return format!("{}-{}", accelerator_type(whole), profile.trim().to_ascii_lowercase());
    }
    let mut words = product.split([' ', '-', '_']).filter(|word| !matches!(*word, "NVIDIA" | "Tesla" | "GeForce" | ""));
    let first = words.next().unwrap_or("gpu").to_ascii_lowercase();
    let number = if matches!(first.as_str(), "rtx" | "gtx" | "quadro") { words.next().unwrap_or_default() } else { "" };
    format!("{first}{}", number.to_ascii_lowercase())
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

    #[test]
    fn products_have_types() {
        let rows = [
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("Tesla V100-SXM2-32GB", "v100"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA GeForce RTX 3090", "rtx3090"),
            ("Tesla T4", "t4"),
            ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-1g.5gb"),
            ("", "gpu"),
        ];
        for (product, kind) in rows {
            assert_eq!(accelerator_type(product), kind);
        }
    }
}
