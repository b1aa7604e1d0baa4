//! Builds the stand-in for NVML as a shared object of its own, which the programs carry in themselves.
//!
//! Cargo has no stable way to depend on the shared object of another package, so this script asks cargo for it. The
//! result lies in the script's own folder, and the order of builds is right from a cold cache on.

use std::path::PathBuf;
use std::process::Command;
use std::{env, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = env::var("TARGET")?;
    let folder = PathBuf::from(env::var("OUT_DIR")?).join("double");
    let mut build = Command::new(env::var("CARGO")?);
    build.args(["build", "--quiet", "--locked", "--release", "--lib", "--manifest-path", "nvml-double/Cargo.toml"]);
    build.args(["--target", &target]).arg("--target-dir").arg(&folder);
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    // A linter around the outer compiler makes no shared object.
    build.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
    if !build.status()?.success() {
        return Err(io::Error::other("the stand-in for NVML cannot be built").into());
    }
    let library = folder.join(target).join("release/libgoodput_nvml_double.so");
    println!("cargo::rustc-env=NVML_DOUBLE={}", library.display());
    println!("cargo::rerun-if-changed=nvml-double");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
