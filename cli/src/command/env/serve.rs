//! `goodput env serve`: vectorised environments for learners in other languages, over stdin and stdout.
//!
//! First one line of JSON with the shapes, then requests of one byte each, all numbers little-endian, `N` environments:
//!
//! | request | answer |
//! |---|---|
//! | `r` | observations f32 `[N, obs_dim]`, masks u8 `[N, actions]` of new episodes |
//! | `s`, actions u32 `[N]` | results of the step, as listed below |
//!
//! Results of a step, in this order: observations; masks; rewards f64 `[N]`; seconds that passed f64
//! `[N]`; ends u8 `[N]` (0 goes on, 1 terminated, 2 truncated); mean completion times f64 `[N]` in
//! seconds, NaN where no episode ended; and the last observation of each episode that ended.
//!
//! An environment that ends an episode begins the next episode in the same step. The end of stdin ends the process.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use goodput_env::gym::{EnvError, Environment, VecBuffers, VecEnv};
use serde::Serialize;
use thiserror::Error;

/// Version of the protocol.
const PROTOCOL: u32 = 1;

/// Error that ended the server before its client did.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The pipe broke, or ended within a request.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An action that the mask forbids, or an episode that cannot begin.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Not a request.
    #[error("request {0:?}: expected \"r\" (reset) or \"s\" (step)")]
    Request(char),
}

/// The first line.
#[derive(Debug, Serialize)]
struct Greeting {
    protocol: u32,
    envs: usize,
    obs_dim: usize,
    actions: usize,
    slots: usize,
    slot_features: usize,
    globals: usize,
    verbs: usize,
}

/// Answers requests until `input` ends.
pub fn serve<E: Environment>(mut envs: VecEnv<E>, input: impl Read, output: impl Write) -> Result<(), ServeError> {
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    let (layout, count) = (envs.layout(), envs.len());
    let greeting = Greeting {
        protocol: PROTOCOL,
        envs: count,
        obs_dim: layout.obs_dim(),
        actions: layout.actions(),
        slots: layout.slots,
        slot_features: layout.slot_features,
        globals: layout.globals,
        verbs: layout.verbs,
    };
    serde_json::to_writer(&mut output, &greeting).map_err(io::Error::from)?;
    output.write_all(b"\n")?;
    output.flush()?;
    let mut buffers = VecBuffers::new(count, &layout);
    let mut words = vec![0; count * size_of::<u32>()];
    let mut answer = Vec::new();
    while let Some(request) = next(&mut input)? {
        answer.clear();
        match request {
            b'r' => {
                envs.reset(&mut buffers)?;
                put_observations(&mut answer, &buffers);
            }
            b's' => {
                input.read_exact(&mut words)?;
                let words = words.as_chunks().0.iter();
                let actions: Vec<usize> = words.map(|word| u32::from_le_bytes(*word) as usize).collect();
                envs.step(&actions, &mut buffers)?;
                put_observations(&mut answer, &buffers);
                put_steps(&mut answer, &buffers, layout.obs_dim());
            }
            other => return Err(ServeError::Request(char::from(other))),
        }
        output.write_all(&answer)?;
        output.flush()?;
    }
    Ok(())
}

/// The next byte; `None` at the end.
fn next(input: &mut impl Read) -> io::Result<Option<u8>> {
    let mut byte = [0];
    match input.read_exact(&mut byte) {
        Ok(()) => Ok(Some(byte[0])),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn put_observations(answer: &mut Vec<u8>, buffers: &VecBuffers) {
    answer.extend(buffers.features.iter().flat_map(|feature| feature.to_le_bytes()));
    answer.extend(&buffers.mask);
}

fn put_steps(answer: &mut Vec<u8>, buffers: &VecBuffers, obs_dim: usize) {
    let mut put = |numbers: &[f64]| answer.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    put(&buffers.reward);
    put(&buffers.elapsed_secs);
    let ends = buffers.terminated.iter().zip(&buffers.truncated);
    let ends: Vec<u8> =
        ends.map(|(&terminated, &truncated)| if terminated { 1 } else { 2 * u8::from(truncated) }).collect();
    answer.extend(&ends);
    answer.extend(buffers.jct_mean_secs.iter().flat_map(|secs| secs.to_le_bytes()));
    for (_, last) in ends.iter().zip(buffers.final_features.chunks_exact(obs_dim)).filter(|(end, _)| **end > 0) {
        answer.extend(last.iter().flat_map(|feature| feature.to_le_bytes()));
    }
}
