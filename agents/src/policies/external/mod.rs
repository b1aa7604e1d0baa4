//! Policies in another process and in any language: they play the rounds of a learned policy over a pipe.
//!
//! - [`ExternalProgram`]: the program, by the name that users type: `proc:./policy` or `python:package.module:Class`.
//! - [`ExternalPolicy`]: the program behind the interface of all schedulers, one process a run.
//! - `patience`: when a program that fails is asked again.
//! - `process`: the process, and the protocol that it speaks.
//!
//! The protocol is that of `goodput env serve` seen from the other side, all numbers little-endian:
//!
//! | direction | bytes |
//! |---|---|
//! | to the program, once | one line of JSON, the [`Introduction`] |
//! | from the program, once | one line of JSON with the protocol: `{"protocol": 1}` |
//! | to the program | `d`, observation f32 `[obs_dim]`, mask u8 `[actions]` |
//! | from the program | action u32, a number with 1 in the mask |
//!
//! The end of standard input ends the program. Standard error is the program's own.
//!
//! A program that dies, answers late, or answers with an action that the mask forbids loses its turn: the round ends
//! with the changes made so far. A later decision starts another process, ever later from fault to fault.

mod patience;
mod policy;
mod process;
mod program;

pub use policy::ExternalPolicy;
pub use process::{Introduction, ProcessError};
pub use program::{ExternalProgram, Faults, PREFIXES};
