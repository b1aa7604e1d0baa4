//! The shipped accelerators: the right type for each model, missing figures, energy, and what is
//! refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_datasets::Accelerators;
use goodput_datasets::accelerators::{Evidence, PowerAt, PowerOf};
use goodput_env::cluster::{Cluster, Kind};

fn shipped() -> &'static Accelerators {
    Accelerators::shipped()
}

/// Affinity is a matter of the model: matrix work goes to TPUs, irregular work does not.
#[test]
fn the_best_type_depends_on_the_model() {
    let best = |model: &str| shipped().best("training-0.7", model).unwrap().0.name.as_str();
    for (model, expected) in [
        ("resnet-50", "tpu-v4"),
        ("bert", "tpu-v4"),
        ("ssd", "tpu-v4"),
        ("transformer", "a100"),
        ("gnmt", "a100"),
        ("mask-r-cnn", "a100"),
        ("dlrm", "a100"),
    ] {
        assert_eq!(best(model), expected, "{model}");
    }
    assert_eq!(shipped().best("inference-offline", "resnet-50").unwrap().0.name, "a100-pcie");
    assert_eq!(shipped().best("training-0.7", "gpt-5"), None);
}

#[test]
fn speeds_relative_to_v100_are_those_of_the_logs() {
    let rate = |name: &str, model: &str| shipped().get(name).unwrap().rate("training-0.7", model).unwrap();
    for (name, model, expected) in [
        ("a100", "resnet-50", 1.79),
        ("tpu-v4", "resnet-50", 2.32),
        ("tpu-v3", "resnet-50", 1.24),
        ("a100", "bert", 3.39),
        ("tpu-v4", "bert", 3.65),
        ("tpu-v3", "bert", 1.46),
        ("a100", "mask-r-cnn", 1.87),
        ("tpu-v4", "mask-r-cnn", 1.49),
    ] {
        let found = rate(name, model) / rate("v100", model);
        assert!((found - expected).abs() < 0.006, "{name} {model}: {found}");
    }
}

#[test]
fn what_nobody_measured_is_none() {
    let rate = |name: &str, model: &str| shipped().get(name).unwrap().rate("training-0.7", model);
    assert_eq!(rate("tpu-v3", "transformer"), None);
    assert_eq!(rate("v100", "dlrm"), None);
    assert_eq!(rate("k80", "resnet-50"), None, "Gavel measured it, in another benchmark");
    assert_eq!(shipped().get("vck5000").unwrap().memory, None);
    assert_eq!(shipped().get("u250").unwrap().watts(PowerOf::Mean, PowerAt::Board), None);
    assert_eq!(shipped().get("a100").unwrap().watts(PowerOf::Mean, PowerAt::Chip), None, "a limit is no mean");
}

#[test]
fn a_name_is_known_in_any_case() {
    for (asked, known) in [("A100", "a100"), ("RTX 2080 Ti", "rtx-2080-ti"), ("tpu_v5e", "tpu-v5e"), ("H100", "h100")] {
        assert_eq!(shipped().canonical(asked), known);
    }
    assert_eq!(shipped().canonical("abacus"), "abacus");
    let mut cluster = Cluster::parse("T4:2x4,abacus:1x4").unwrap();
    shipped().describe(&mut cluster);
    let names: Vec<&str> = cluster.types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["t4", "abacus"]);
    let mut twice = Cluster::parse("T4:2x4,t4:1x4").unwrap();
    shipped().describe(&mut twice);
    assert_eq!(twice.types.len(), 2, "two spellings in one cluster stay two types");
}

/// The time to fine-tune a language model falls from each generation to the next, by the logs of one round.
#[test]
fn types_of_today_are_rated() {
    let rate = |name: &str| shipped().get(name).unwrap().rate("training-5.1", "llama2-70b-lora").unwrap();
    assert!(
        (rate("h200") / rate("mi300x") - 1.2153).abs() < 1e-3 && (rate("b200") / rate("h200") - 2.402).abs() < 1e-3
    );
    for name in ["h100", "h200", "b200", "l4", "l40s", "a10", "mi300x", "tpu-v5e", "tpu-v5p", "tpu-v6e"] {
        let known = shipped().get(name).unwrap();
        assert!(known.memory.is_some() && !known.throughput.is_empty(), "{name}");
    }
}

#[test]
fn least_energy_compares_like_with_like() {
    let chip = (PowerOf::Mean, PowerAt::Chip);
    let (accelerator, joules) = shipped().most_frugal(("training-0.7", "resnet-50"), chip, None).unwrap();
    assert_eq!(accelerator.name, "tpu-v4");
    assert!((joules - 170.0 * 30.77 * 8.0 * 60.0).abs() < 1e-6, "{joules}");
    let v3 = shipped().get("tpu-v3").unwrap().joules("training-0.7", "resnet-50", chip.0, chip.1).unwrap();
    assert!((v3 / joules - 2.41).abs() < 0.01, "{}", v3 / joules);

    // Some 97 images a joule at the wall (MLPerf v1.0, MaxQ).
    let maxq = ("inference-offline-maxq", "resnet-50");
    let (accelerator, joules) = shipped().most_frugal(maxq, (PowerOf::Mean, PowerAt::Wall), None).unwrap();
    assert_eq!(accelerator.name, "a100-pcie");
    assert!((1.0 / joules - 97.1).abs() < 0.1, "{}", 1.0 / joules);

    // A latency objective leaves out types that state no latency.
    assert_eq!(shipped().most_frugal(maxq, (PowerOf::Mean, PowerAt::Wall), Some(10.0)), None);
    let single = ("inference-single-stream", "resnet-50");
    assert_eq!(shipped().most_frugal(single, (PowerOf::Mean, PowerAt::Wall), Some(1.0)).unwrap().0.name, "a100-pcie");
    assert_eq!(shipped().most_frugal(single, (PowerOf::Mean, PowerAt::Wall), Some(0.1)), None);
}

#[test]
fn every_type_is_listed_with_its_sources() {
    let rows = shipped().rows();
    let names: Vec<&str> = rows.iter().map(|row| row.accelerator.name.as_str()).collect();
    for name in [
        "k80",
        "p100",
        "v100",
        "t4",
        "rtx-2080-ti",
        "rtx-6000",
        "a100",
        "tpu-v2",
        "tpu-v3",
        "tpu-v4",
        "vck5000",
        "u250",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(rows.iter().all(|row| !row.sources.is_empty() && row.models > 0));
    let v3 = shipped().get("tpu-v3").unwrap().accelerator_type();
    assert_eq!((v3.kind, v3.memory_mib), (Kind::Tpu, Some(32_768)));
    let k80 = rows.iter().find(|row| row.accelerator.name == "k80").unwrap();
    assert_eq!((k80.benchmarks.as_slice(), k80.models), (["gavel-training"].as_slice(), 7));
    assert_eq!(k80.accelerator.throughput[0].kind, Evidence::Measured);
    // Figures that were not read in their source are counted.
    assert_eq!(k80.unchecked, 0);
    let fpga = rows.iter().find(|row| row.accelerator.name == "stratix-10-280").unwrap();
    let power = fpga.accelerator.greatest_power().unwrap();
    assert_eq!((power.watts, power.kind, fpga.unchecked), (125.0, Evidence::Unchecked, 2));
}

fn refusal(text: &str) -> String {
    let error = Accelerators::parse(Path::new("a.toml"), text).unwrap_err();
    assert!(!error.remedy().is_empty());
    assert_eq!(error.path(), Path::new("a.toml"));
    error.to_string()
}

#[test]
fn wrong_files_are_refused_with_the_place() {
    let head = "[sources]\ns = \"me\"\n[[accelerator]]\nname = \"x\"\nkind = \"gpu\"\n";
    let row = |value: &str| {
        format!(
            "{head}throughput = [\n  {{ benchmark = \"b\", model = \"m\", unit = \"samples-per-second\", {value} }},\n]\n"
        )
    };
    assert!(Accelerators::parse(Path::new("a.toml"), head).is_ok());
    let error = refusal(&head.replace("\"gpu\"", "\"abacus\""));
    assert!(error.starts_with("a.toml:5:8: unknown variant `abacus`"), "{error}");
    let error = refusal(&format!("{head}memmory = 3\n"));
    assert!(error.starts_with("a.toml:6:1: unknown field `memmory`"), "{error}");
    let error = refusal(&row("value = 0.0, devices = 1, kind = \"measured\", source = \"s\""));
    assert!(error.contains("accelerator `x`: b m: 0 by 1 devices") && error.contains("leave out"), "{error}");
    let error = refusal(&row("value = 2.0, devices = 1, kind = \"measured\", source = \"you\""));
    assert!(error.ends_with("source \"you\" is not among [sources]"), "{error}");
    let error = refusal(&row("value = 2.0, devices = 1, source = \"s\""));
    assert!(error.contains("missing field `kind`"), "{error}");
    let twice = format!("{head}[[accelerator]]\nname = \"x\"\nkind = \"tpu\"\n");
    assert!(refusal(&twice).ends_with("is described twice"));
}
