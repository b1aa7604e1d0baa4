//! Bundles: reading gives what was written, and errors name what is wrong.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use goodput_agents::bundle::{Card, Model, PolicyBundle, Provenance};
use goodput_agents::nets::normaliser::Normaliser;
use goodput_agents::nets::weights::{MlpConfig, NetConfig, SetConfig, Weights};
use goodput_agents::policies::linear::Linear;
use goodput_env::cluster::Cluster;
use goodput_env::gym::{Layout, layout, schema_hash, schema_hash_by_type};
use proptest::prelude::*;

const LAYOUT: Layout = Layout { slots: 3, slot_features: 2, globals: 1, verbs: 2, services: 0, pools: false, types: 0 };

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("goodput-bundle-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bundle(model: Model) -> PolicyBundle {
    let provenance = Provenance {
        argv: ["goodput", "train", "x.toml"].map(String::from).to_vec(),
        seed: 7,
        steps: 1_000_000,
        config_sha256: "ab".repeat(32),
    };
    let card = Card {
        schema_hash: "5c".repeat(32),
        information: "profiled".into(),
        decoder: serde_json::json!({ "units": [1, 2, 4], "work_conserving": true }),
        provenance,
        bounds: [("load".to_owned(), [0.6, 1.1]), ("gpus".to_owned(), [64.0, 128.0])].into(),
        types: vec!["t4".into()],
    };
    let normaliser = Normaliser::new(LAYOUT, vec![0.0, 1.5, -2.0], vec![1.0, 2.0, 0.1], 10.0);
    PolicyBundle { model, normaliser, card }
}

fn models() -> [Model; 4] {
    let width = NonZeroUsize::new(5).unwrap();
    [
        Model::Net(Weights::new(&NetConfig::Set(SetConfig::new(width)), LAYOUT, 1)),
        Model::Net(Weights::new(&NetConfig::Mlp(MlpConfig { hidden: vec![width] }), LAYOUT, 1)),
        Model::Linear(Linear::new(LAYOUT, vec![1.0, -2.0, 0.5, 3.0, 0.25]).unwrap()),
        Model::Net(Weights::new(&NetConfig::Set(SetConfig { width, heads: 2 }), LAYOUT, 1)),
    ]
}

#[test]
fn a_bundle_that_tells_types_apart_is_refused_on_others() {
    let mut told = bundle(models()[0].clone());
    told.card.types = vec!["t4".into(), "a100".into()];
    let check = |text: &str| told.check_types(&Cluster::parse(text).unwrap()).map_err(|error| error.to_string());
    assert_eq!(check("t4:2x4,a100:1x8"), Ok(()));
    for other in ["a100:1x8,t4:2x4", "t4:2x4", "t4:2x4,a100:1x8,v100:1x8"] {
        let refused = check(other).unwrap_err();
        assert!(refused.starts_with("it was trained on t4, a100, in this order; this cluster has "), "{refused}");
    }
    let blind = PolicyBundle { card: Card { types: Vec::new(), ..told.card }, ..told };
    assert_eq!(blind.check_types(&Cluster::parse("t4:2x4,v100:1x8").unwrap()), Ok(()));
}

#[test]
fn a_bundle_comes_back_as_it_was_byte_for_byte() {
    let folder = Folder::new("round-trip");
    for (index, (model, kind)) in models().into_iter().zip(["set", "mlp", "linear", "set"]).enumerate() {
        let path = folder.0.join(index.to_string());
        let written = bundle(model);
        written.save(&path).unwrap();
        let read = PolicyBundle::inspect(&path).unwrap();
        assert_eq!((&read, read.kind()), (&written, kind));
        assert_eq!(read.to_bytes(), fs::read(&path).unwrap());
        let (observation, mask) = ([1.0, 0.5, 0.0, 0.0, 1.0, 9.0, 2.0], [0, 1, 0, 0, 1, 1, 1]);
        assert_eq!(read.deploy().decide(&observation, &mask), written.deploy().decide(&observation, &mask));
    }
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "no temporary files: {names:?}");
}

#[test]
fn a_linear_policy_keeps_its_scores_of_services_and_pools() {
    let layout = Layout { services: 1, pools: true, ..LAYOUT };
    let weights: Vec<f32> = (0..Linear::parameters(&layout)).map(|at| at as f32 - 2.5).collect();
    let linear = Linear::new(layout, weights).unwrap();
    let written = PolicyBundle { normaliser: None, ..bundle(Model::Linear(linear)) };
    let read = PolicyBundle::from_bytes(&written.to_bytes(), Path::new("policy.bundle")).unwrap();
    assert_eq!(read, written);
}

/// Error message for a file with these bytes.
fn refused(bytes: &[u8]) -> String {
    PolicyBundle::from_bytes(bytes, Path::new("policy.bundle")).unwrap_err().to_string()
}

/// Bundle with `from` in its header replaced by `to`.
fn altered(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replace(from, to);
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(&bytes[8 + length..]);
    out
}

#[test]
fn what_is_wrong_is_said() {
    let good = bundle(models()[0].clone()).to_bytes();
    for (bytes, want) in [
        (
            b"id,submit\n1,2,3,4\n".to_vec(),
            "policy.bundle: not a policy bundle: not a safetensors file: it does not begin with the length of a JSON header",
        ),
        (
            altered(&good, "goodput.bundle", "somebody.else"),
            "policy.bundle: not a policy bundle: a safetensors file without `goodput.bundle` in its metadata",
        ),
        (good[..good.len() - 9].to_vec(), "policy.bundle: damaged policy bundle: truncated: "),
        (good[..100].to_vec(), "policy.bundle: damaged policy bundle: truncated: 100 bytes of at least "),
        (Vec::new(), "policy.bundle: damaged policy bundle: truncated: 0 bytes of at least 8"),
        (
            altered(&good, r#"{\"format\":1"#, r#"{\"format\":9"#),
            "policy.bundle: bundle format 9, this program reads format 1; export the policy again with this version",
        ),
        (
            altered(&good, "slot2.weight", "slot9.weight"),
            "policy.bundle: damaged policy bundle: tensor `slot2.weight` is missing",
        ),
        (
            altered(&good, r#"\"width\":5"#, r#"\"width\":4"#),
            "policy.bundle: damaged policy bundle: tensor `slot1.weight` is F32 [2, 5], expected F32 [2, 4]",
        ),
        (
            altered(&good, r#"\"information\""#, r#"\"informatoin\""#),
            "policy.bundle: damaged policy bundle: its header cannot be read: unknown field `informatoin`",
        ),
        (
            [&good[..good.len() - 4], &f32::INFINITY.to_le_bytes()].concat(),
            "policy.bundle: damaged policy bundle: tensor `wait.weight` is not finite at 4",
        ),
        (
            altered(&good, r#"\"slots\":3"#, r#"\"slots\":3000000000000"#),
            "policy.bundle: damaged policy bundle: its header cannot be read: a layout of [3000000000000, 2, 1, 2, 0, 0] is not one of ours",
        ),
        (
            [&good[..], b"more"].concat(),
            "policy.bundle: not a policy bundle: not a safetensors file: bytes after the last tensor",
        ),
    ] {
        let message = refused(&bytes);
        assert!(message.starts_with(want), "{message}\nwanted {want}");
    }
}

#[test]
fn another_schema_is_refused_with_both_hashes_and_a_remedy() {
    let folder = Folder::new("schema");
    let path = folder.0.join("policy.bundle");
    bundle(models()[2].clone()).save(&path).unwrap();
    let message = PolicyBundle::load(&path).unwrap_err().to_string();
    for part in [&"5c".repeat(32), &schema_hash(), "train the policy again", "policy.bundle"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(PolicyBundle::inspect(&path).unwrap().card.information, "profiled");
}

#[test]
fn a_shape_that_is_not_ours_is_refused() {
    let shaped = |layout: Layout, types: &[&str], schema_hash: String| {
        let width = NonZeroUsize::new(5).unwrap();
        let model = Model::Net(Weights::new(&NetConfig::Set(SetConfig::new(width)), layout, 1));
        let plain = bundle(models()[0].clone());
        let card = Card { schema_hash, types: types.iter().map(|&name| name.into()).collect(), ..plain.card };
        let bundle = PolicyBundle { model, normaliser: None, card };
        bundle.checked(Path::new("policy.bundle")).map_err(|error| error.to_string())
    };
    let (one, two) = (layout(4), layout(4).by_type(2));
    assert!(shaped(one, &[], schema_hash()).is_ok());
    assert!(shaped(two, &["t4", "a100"], schema_hash_by_type()).is_ok());
    for (layout, types, hash) in [
        (two, &[][..], schema_hash_by_type()),
        (two, &["t4"][..], schema_hash_by_type()),
        (Layout { types: 3, ..two }, &["t4", "a100", "v100"][..], schema_hash_by_type()),
        (Layout { verbs: 9, ..one }, &[][..], schema_hash()),
        (one.by_type(Layout::MOST_TYPES + 1), &[][..], schema_hash_by_type()),
    ] {
        let refused = shaped(layout, types, hash).unwrap_err();
        assert!(refused.starts_with("policy.bundle: damaged policy bundle: its header cannot be read: "), "{refused}");
    }
}

#[test]
fn paths_that_cannot_be_used_are_named() {
    let folder = Folder::new("paths");
    let missing = folder.0.join("nowhere").join("policy.bundle");
    let read = PolicyBundle::inspect(&missing).unwrap_err().to_string();
    let write = bundle(models()[0].clone()).save(&missing).unwrap_err().to_string();
    assert!(read.contains("nowhere/policy.bundle: cannot read: "), "{read}");
    assert!(write.contains("nowhere/policy.bundle: cannot write: "), "{write}");
}

proptest! {
    #[test]
    fn no_damage_panics(
        kind in 0usize..3, cut in 0usize..3000, flips in prop::collection::vec((any::<u16>(), any::<u8>()), 0..6)
    ) {
        let mut bytes = bundle(models()[kind].clone()).to_bytes();
        for (at, value) in flips {
            let at = at as usize % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(1500)));
        if let Ok(read) = PolicyBundle::from_bytes(&bytes, Path::new("x")) {
            let (observation, mask) = (vec![0.5; read.layout().obs_dim()], vec![1; read.layout().actions()]);
            read.deploy().decide(&observation, &mask);
        }
    }
}
