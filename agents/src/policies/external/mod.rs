//! Policies in another process and in any language: they play the rounds of a learned policy over a pipe.
//!
//! - [`ExternalProgram`]: the program, by the name that users type: `proc:./policy` or `python:package.module:Class`.
//! - [`ExternalPolicy`]: the program behind the interface of all schedulers, one process a run.
//! - `patience`: when a program that fails is asked again.
//! - `found`: whether the program is there at all.
//! - `process`: the process; `protocol`: what it reads and writes.
//!
//! The protocol is that of `goodput env serve` seen from the other side, all numbers little-endian:
//!
//! | direction | bytes |
//! |---|---|
//! | to the program, once | one line of JSON, the [`Introduction`] |
//! | from the program, once | one line of JSON: `{"protocol": 1}`, or `{"protocol": 1, "reasons": true}` |
//! | to the program | `d`, observation f32 `[obs_dim]`, mask u8 `[actions]` |
//! | from the program | action u32, a number with 1 in the mask |
//! | from a program with reasons | after the action: length u32, and so many bytes of a reason in UTF-8 |
//!
//! The end of standard input ends the program. Standard error is the program's own.
//!
//! A program that dies, answers late, or answers with an action that the mask forbids loses its turn: the round ends
//! with the changes made so far. A later decision starts another process, ever later from fault to fault. On a live
//! cluster the fallback decides a lost turn.

mod found;
mod patience;
mod policy;
mod process;
mod program;
mod protocol;

pub use found::MissingProgram;
pub use policy::{ChosenAction, ExternalPolicy};
pub use program::{ExternalProgram, Faults, PREFIXES};
pub use protocol::{Introduction, ProcessEnd, ProcessError};
