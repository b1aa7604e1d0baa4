//! Nets of any shape as ONNX graphs: they score as torch does, go through a bundle, and are refused where they do not
//! fit. `fixtures/onnx/make.py` wrote them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::random_workload;
use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::nets::distribution::argmax;
use goodput_agents::nets::onnx::{OnnxError, OnnxNet};
use goodput_agents::policies::rounds::{Decoder, RoundPlayer};
use goodput_env::cluster::Cluster;
use goodput_env::gym::{ExpectedPeak, layout};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Batching, Information, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::Simulator;
use goodput_env::view::ClusterView;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/onnx");
const SLOTS: usize = 4;

fn bytes(name: &str) -> Vec<u8> {
    fs::read(format!("{FOLDER}/{name}.onnx")).unwrap()
}

fn net(name: &str) -> OnnxNet {
    OnnxNet::new(bytes(name), layout(SLOTS)).unwrap()
}

fn bundle(name: &str) -> PolicyBundle {
    let decoder = Decoder::new(Batching::Requested, Information::Profiled);
    PolicyBundle::trained(Model::Onnx(net(name)), decoder, &[], [16; 2], Provenance::default())
}

#[test]
fn a_graph_scores_as_torch_does() {
    let text = fs::read_to_string(format!("{FOLDER}/expected.json")).unwrap();
    let expected: BTreeMap<String, Vec<f32>> = serde_json::from_str(&text).unwrap();
    let observation: Vec<f32> = (0..layout(SLOTS).obs_dim()).map(|at| (at as f32 * 0.37).sin()).collect();
    for (name, scores) in expected {
        let mut scorer = net(&name).at_work();
        let found = scorer.logits(&observation).unwrap().to_vec();
        assert_eq!(found.len(), scores.len());
        let far = found.iter().zip(&scores).map(|(found, score)| (found - score).abs()).fold(0.0, f32::max);
        assert!(far < 1e-5, "{name}: {far}");
        assert_eq!(scorer.logits(&observation).unwrap(), found, "equal bits the second time");
        assert_eq!(net(&name).at_work().logits(&observation).unwrap(), found, "equal bits in another scorer");
    }
}

/// The graph at work outside of any bundle.
struct Direct {
    scorer: goodput_agents::nets::onnx::OnnxScorer,
    player: RoundPlayer,
}

impl Policy for Direct {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let Self { scorer, player } = self;
        player.play(view, |observation, mask| argmax(scorer.logits(observation).unwrap(), mask))
    }
}

#[test]
fn a_graph_in_a_bundle_decides_as_by_itself() {
    for name in ["tanh", "attention"] {
        let written = bundle(name);
        assert_eq!((written.kind(), written.plays_rounds()), ("onnx", true));
        let read = PolicyBundle::from_bytes(&written.to_bytes(), Path::new("a.bundle")).unwrap();
        let read = read.checked(Path::new("a.bundle")).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.sha256(), written.sha256());
        let play = |policy: &mut dyn Policy| {
            let workload = random_workload(&mut rng(3, Stream::Workload), 4, 16);
            let cluster = Arc::new(Cluster::homogeneous(4, 4));
            let scenario = Scenario::new(cluster, Arc::new(workload), SimOptions::standard(), 3);
            Simulator::new(Arc::new(scenario)).run(policy).unwrap().jobs
        };
        let direct = play(&mut Direct { scorer: net(name).at_work(), player: RoundPlayer::new(&layout(SLOTS)) });
        assert_eq!(play(&mut *read.policy(ExpectedPeak::default()).unwrap()), direct, "{name}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let wrong = |bytes: Vec<u8>| OnnxNet::new(bytes, layout(SLOTS)).unwrap_err();
    for (name, words) in [
        ("determinant", "Det operator not supported"),
        ("short-input", "input \"observation\" of the net is tensor(f32) [1, 111], expected f32 [1, 112]"),
        ("short-output", "of the net is tensor(f32) [1, 12], expected f32 [1, 13]: a score for each action"),
        ("two-inputs", "the net has the inputs [\"observation\", \"mask\"], expected one"),
    ] {
        let error = wrong(bytes(name)).to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    for damaged in [Vec::new(), b"no graph".to_vec(), bytes("tanh")[..300].to_vec()] {
        let error = wrong(damaged);
        assert!(!matches!(error, OnnxError::Inputs { .. }) || error.to_string().contains("[]"), "{error}");
    }
    // In a bundle, for observations of another number of slots.
    let mut bytes = bundle("tanh").to_bytes();
    let at = bytes.windows(12).position(|window| window == b"\\\"slots\\\":4,").unwrap();
    bytes[at + 10] = b'5';
    let error = PolicyBundle::from_bytes(&bytes, Path::new("a.bundle")).unwrap_err().to_string();
    assert!(error.contains("a.bundle") && error.contains("expected f32 [1, 136]"), "{error}");
}

/// `root` gives scores that are no numbers, and `lookup` fails, at every observation but zeros.
#[test]
fn what_a_graph_does_not_score_is_counted() {
    for (name, words) in [("root", "the score of an allowed action is no number"), ("lookup", "cannot be computed")] {
        let bundle = bundle(name);
        assert_eq!(bundle.fault(), None, "{name}");
        let workload = random_workload(&mut rng(3, Stream::Workload), 4, 16);
        let scenario =
            Scenario::new(Arc::new(Cluster::homogeneous(4, 4)), Arc::new(workload), SimOptions::standard(), 3);
        let mut simulator = Simulator::new(Arc::new(scenario));
        simulator.run_until_decision().unwrap();
        bundle.policy(ExpectedPeak::default()).unwrap().decide(&simulator.view());
        let fault = bundle.fault().unwrap();
        assert!(fault.contains("faults: 1") && fault.contains(words), "{name}: {fault}");
    }
}
