//! Environments over a pipe are the environments that the library has, bit by bit.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use goodput_configs::experiment::Experiment;
use goodput_configs::seeds::training_seed;
use goodput_env::gym::{ClusterEnv, ResetOptions, VecBuffers, VecEnv};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/quickstart.toml");
const ENVS: usize = 2;

fn served() -> Child {
    Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(["env", "serve", FILE, "--envs", "2", "--seed", "7", "--set", "environment.slots=8"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn local() -> VecEnv<ClusterEnv> {
    let mut experiment: Experiment = toml::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    experiment.environment.slots = 8;
    let setup = experiment.setup().unwrap();
    let env = experiment.cluster_env(setup);
    let seeds = (0..ENVS as u64).map(|index| training_seed(7, index)).collect();
    VecEnv::new(vec![env; ENVS], seeds, ResetOptions::default()).unwrap()
}

fn bytes(from: &mut impl Read, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_pipe_changes_nothing() {
    let mut process = served();
    let mut input = process.stdin.take().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let greeting: serde_json::Value = serde_json::from_str(&line).unwrap();
    let mut envs = local();
    let layout = envs.layout();
    assert_eq!(greeting["obs_dim"], layout.obs_dim());
    assert_eq!(greeting["actions"], layout.actions());
    let mut buffers = VecBuffers::new(ENVS, &layout);
    envs.reset(&mut buffers).unwrap();
    input.write_all(b"r").unwrap();
    let mut ended = 0;
    let mut at = 0_usize;
    loop {
        let features: Vec<u8> = buffers.features.iter().flat_map(|feature| feature.to_le_bytes()).collect();
        assert_eq!(bytes(&mut output, features.len()), features);
        assert_eq!(bytes(&mut output, buffers.mask.len()), buffers.mask);
        if at > 0 {
            let put = |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_le_bytes()).collect() };
            assert_eq!(bytes(&mut output, 8 * ENVS), put(&buffers.reward));
            assert_eq!(bytes(&mut output, 8 * ENVS), put(&buffers.elapsed_secs));
            let ends = bytes(&mut output, ENVS);
            assert_eq!(ends.iter().map(|&end| end == 1).collect::<Vec<_>>(), buffers.terminated);
            assert_eq!(ends.iter().map(|&end| end == 2).collect::<Vec<_>>(), buffers.truncated);
            assert_eq!(bytes(&mut output, 8 * ENVS), put(&buffers.jct_mean_secs));
            for env in (0..ENVS).filter(|&env| ends[env] > 0) {
                ended += 1;
                let last = &buffers.final_features[env * layout.obs_dim()..(env + 1) * layout.obs_dim()];
                let last: Vec<u8> = last.iter().flat_map(|feature| feature.to_le_bytes()).collect();
                assert_eq!(bytes(&mut output, last.len()), last);
            }
        }
        if ended > 0 || at > 100_000 {
            break;
        }
        at += 1;
        // The first that is allowed, and now and then another one.
        let allowed = |env: usize| -> usize {
            let mask = &buffers.mask[env * layout.actions()..(env + 1) * layout.actions()];
            let actions: Vec<usize> = (0..mask.len()).filter(|&action| mask[action] > 0).collect();
            actions[if at.is_multiple_of(3) { at % actions.len() } else { 0 }]
        };
        let actions: Vec<usize> = (0..ENVS).map(allowed).collect();
        input.write_all(b"s").unwrap();
        actions.iter().for_each(|&action| input.write_all(&(action as u32).to_le_bytes()).unwrap());
        envs.step(&actions, &mut buffers).unwrap();
    }
    assert!(ended > 0, "no episode ended");
    drop(input);
    assert!(process.wait().unwrap().success());
}

#[test]
fn what_is_no_request_or_not_allowed_ends_it_with_a_reason() {
    let forbidden = u32::MAX.to_le_bytes();
    let step = [&b"rs"[..], &forbidden, &forbidden].concat();
    for (request, reason) in [(&b"x"[..], "request 'x': expected \"r\""), (&step[..], "action 4294967295")] {
        let mut process = served();
        process.stdin.take().unwrap().write_all(request).unwrap();
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}
