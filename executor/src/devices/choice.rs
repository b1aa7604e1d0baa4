//! The accelerators that an agent offers: those of the driver, of another library, or of the
//! stand-in for NVML.

use std::path::Path;

use goodput_configs::live::devices::DeviceChoice;

use super::{DeviceError, NvmlSource, fake};

/// Opens the accelerators of a choice. What does not exist is described by files in `folder`, for
/// the node called `node`.
///
/// # Errors
/// As [`NvmlSource::open_library`], and where the folder of the stand-in cannot be written.
pub fn open(choice: &DeviceChoice, folder: &Path, node: &str) -> Result<NvmlSource, DeviceError> {
    match choice {
        DeviceChoice::Nvml => NvmlSource::open(),
        DeviceChoice::Library(path) => NvmlSource::open_library(path),
        DeviceChoice::Fake { count, kind } => NvmlSource::open_library(&fake::prepare(folder, node, *count, kind)?),
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
