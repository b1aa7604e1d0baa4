//! A stand-in for NVIDIA's management library (`libnvidia-ml.so.1`), at its C interface.
//!
//! A program that opens this library sees the accelerators of the [`MachineScript`] in `state.json` beside
//! it, read again at each call, so a test breaks and mends devices while the program runs. Critical
//! errors (XID) are lines of the file `events` beside it. Each copy of the library in a folder of
//! its own is a machine of its own, also within one process.
//!
//! Which processes use a device is *not* scripted: the double looks for its UUID in
//! `CUDA_VISIBLE_DEVICES` of every process in /proc. So it is a witness of what runs where that the
//! executor did not write itself.
//!
//! The words for faults are those of NVIDIA's own mock (k8s-test-infra, mocknvml): lost, fallen off
//! the bus, uncorrectable ECC error, XID.

#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs, reason = "NVIDIA names and documents the functions")]

mod device;
mod events;
mod place;
mod script;
mod system;
mod witness;

pub use script::{Device, MachineScript, ScriptedFault, ScriptedInstance};
