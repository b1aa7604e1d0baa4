//! The house keeps its shape: dependencies run one way, and `env` cannot see the world.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates of the workspace that each crate may use.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("goodput-env", &[]),
    ("goodput-forecast", &[]),
    ("goodput-datasets", &["goodput-env", "goodput-forecast"]),
    ("goodput-agents", &["goodput-env", "goodput-forecast"]),
    ("goodput-configs", &["goodput-env", "goodput-forecast", "goodput-datasets", "goodput-agents"]),
    ("goodput-eval", &["goodput-env", "goodput-forecast", "goodput-datasets", "goodput-agents", "goodput-configs"]),
    (
        "goodput-train",
        &["goodput-env", "goodput-forecast", "goodput-datasets", "goodput-agents", "goodput-configs", "goodput-eval"],
    ),
    (
        "goodput-executor",
        &["goodput-env", "goodput-forecast", "goodput-agents", "goodput-configs", "goodput-nvml-double"],
    ),
    ("goodput-nvml-double", &[]),
    // Only tests and benchmarks may use it.
    ("goodput-testkit", &["goodput-configs", "goodput-env", "goodput-executor"]),
    ("goodput-console", &[]),
    ("goodputd", &["goodput-configs", "goodput-console", "goodput-datasets", "goodput-env", "goodput-executor"]),
    (
        "goodput-cli",
        &[
            "goodput-console",
            "goodputd",
            "goodput-env",
            "goodput-forecast",
            "goodput-datasets",
            "goodput-agents",
            "goodput-configs",
            "goodput-eval",
            "goodput-train",
        ],
    ),
    (
        "goodput",
        &[
            "goodput-env",
            "goodput-forecast",
            "goodput-datasets",
            "goodput-agents",
            "goodput-configs",
            "goodput-eval",
            "goodput-train",
            "goodput-cli",
        ],
    ),
    ("goodput-python", &["goodput-agents", "goodput-configs", "goodput-env", "goodput-forecast"]),
    ("xtask", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Direct dependencies of each workspace package, development ones excluded.
fn dependencies() -> BTreeMap<String, Vec<(String, bool)>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let direct = package["dependencies"].as_array().unwrap().iter().filter(|dep| dep["kind"].is_null());
            (text(&package["name"]), direct.map(|dep| (text(&dep["name"]), dep["optional"] == true)).collect())
        })
        .collect()
}

#[test]
fn dependencies_run_one_way() {
    let dependencies = dependencies();
    assert_eq!(dependencies.len(), MAY_USE.len(), "a new room needs a line here and in ARCHITECTURE.md");
    for (room, allowed) in MAY_USE {
        let ours = dependencies[room].iter().filter(|(name, _)| name.starts_with("goodput"));
        for (name, _) in ours {
            assert!(allowed.contains(&name.as_str()), "{room} may not use {name}");
        }
        for name in allowed {
            assert!(
                dependencies[room].iter().any(|(used, _)| used == name),
                "{room} does not use {name}: drop the arrow"
            );
        }
    }
}

/// The table of folders in ARCHITECTURE.md says of each crate which crates it uses.
#[test]
fn the_architecture_page_has_these_arrows() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = page.split("| folder | what it is | may use |").nth(1).unwrap().split("\n\n").next().unwrap();
    let package = |name: &str| match name {
        "goodput" | "goodputd" => name.to_owned(),
        name => format!("goodput-{name}"),
    };
    let arrows = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let folder = cells[0].strip_prefix('`')?.strip_suffix("/`").filter(|folder| !folder.contains('`'))?;
        let used = cells[2].split(", ").filter(|name| !name.is_empty()).map(package).collect::<BTreeSet<_>>();
        Some((package(folder.rsplit('/').next().unwrap()), used))
    };
    let found: BTreeMap<String, BTreeSet<String>> = table.lines().skip(2).filter_map(arrows).collect();
    // The tools share a row without arrows.
    let rooms = MAY_USE.iter().filter(|(room, _)| *room != "xtask");
    let expected: BTreeMap<String, BTreeSet<String>> =
        rooms.map(|(room, uses)| (room.to_string(), uses.iter().map(ToString::to_string).collect())).collect();
    assert_eq!(found, expected, "the table of folders in ARCHITECTURE.md");
}

#[test]
fn heavy_packages_live_in_one_room() {
    for (room, direct) in dependencies() {
        let uses = |package: &str| direct.iter().any(|(name, _)| name == package);
        for package in ["arrow", "parquet"] {
            assert!(!uses(package) || room == "goodput-datasets", "{room} uses {package}; go through goodput-datasets");
        }
        assert!(!uses("tensorboard-rs") || room == "goodput-train", "{room} uses tensorboard-rs");
        assert!(!uses("nvml-wrapper") || room == "goodput-executor", "{room} uses nvml-wrapper");
        let burn = direct.iter().find(|(name, _)| name == "burn");
        let may = room == "goodput-agents" || room == "goodput-forecast";
        let allowed = burn.is_none_or(|(_, optional)| may && *optional);
        assert!(allowed, "{room} uses burn");
    }
}

/// A wheel stays small: it needs no tensor framework and no plotting.
#[test]
fn the_wheel_links_no_training() {
    let linked = tree("goodput-python");
    assert!(linked.iter().any(|name| name == "goodput-env"), "{linked:?}");
    let banned = ["burn", "plotters", "tensorboard-rs", "tokio"];
    let found: Vec<_> = linked.iter().filter(|name| banned.iter().any(|banned| belongs(name, banned))).collect();
    assert!(found.is_empty(), "the wheel links {found:?}");
}

/// A machine that only deploys a policy needs no tensor framework, no Arrow and no plotting.
#[test]
fn the_daemon_links_no_training() {
    let linked = tree("goodputd");
    assert!(linked.iter().any(|name| name == "goodput-executor"), "{linked:?}");
    let banned = ["burn", "arrow", "parquet", "plotters", "tensorboard-rs"];
    let found: Vec<_> = linked.iter().filter(|name| banned.iter().any(|banned| belongs(name, banned))).collect();
    assert!(found.is_empty(), "goodputd links {found:?}");
}

/// Names of all packages that a package links.
fn tree(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", package, "-e", "normal", "--prefix", "none", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Whether a package is `family`, or one of its parts.
fn belongs(package: &str, family: &str) -> bool {
    package.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[test]
fn env_cannot_see_the_world() {
    let direct = &dependencies()["goodput-env"];
    for banned in ["burn", "tokio", "arrow", "parquet", "rayon", "csv"] {
        assert!(!direct.iter().any(|(name, _)| name == banned), "env uses {banned}");
    }
    let words = [
        "std::fs",
        "std::io",
        "std::net",
        "std::env",
        "std::thread",
        "std::process",
        "SystemTime",
        "Instant",
        "rand::rng(",
    ];
    for file in sources(&root().join("env/src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in words {
            assert!(!text.contains(word), "{} mentions {word}", file.display());
        }
    }
}

/// Configuration has one room: the others take its tables, and read files with its reader.
#[test]
fn tables_of_files_live_in_configs() {
    for room in ["eval", "train", "executor", "goodputd", "cli", "python"] {
        assert!(dependencies()[room_package(room)].iter().any(|(name, _)| name == "goodput-configs"), "{room}");
        for file in sources(&root().join(room).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            for word in ["impl ConfigFile for", "toml::from_str", "toml_edit", "pub use goodput_configs"] {
                assert!(!product.contains(word), "{} has `{word}`; go through configs", file.display());
            }
        }
    }
}

/// Name of the package in a folder.
fn room_package(room: &str) -> &str {
    MAY_USE.iter().map(|(package, _)| *package).find(|package| package.trim_start_matches("goodput-") == room).unwrap()
}

#[test]
fn the_product_names_no_path_of_the_workshop() {
    let rooms = [
        "env", "forecast", "datasets", "agents", "configs", "eval", "train", "executor", "console", "goodputd", "cli",
        "python",
    ];
    for file in rooms.iter().flat_map(|room| sources(&root().join(room).join("src"))) {
        let text = std::fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(!product.contains("../shared"), "{} names ../shared outside tests", file.display());
    }
}

/// Tests that docs/src/results/coverage.md names are there.
#[test]
fn coverage_names_tests_that_exist() {
    let rooms = ["env", "forecast", "datasets", "agents", "configs", "eval", "train", "executor", "cli"];
    let files = rooms.iter().flat_map(|room| sources(&root().join(room)));
    let code: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let table = std::fs::read_to_string(root().join("docs/src/results/coverage.md")).unwrap();
    let quoted = table.split('`').skip(1).step_by(2);
    let is_name =
        |text: &&str| text.matches('_').count() >= 2 && text.bytes().all(|b| b == b'_' || b.is_ascii_lowercase());
    let missing: Vec<&str> = quoted.filter(is_name).filter(|name| !code.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/src/results/coverage.md names what is not there: {missing:?}");
}

/// Integration tests of a room are one program, so a file that `main.rs` does not name is a test that never runs.
#[test]
fn every_test_file_runs() {
    for room in ["env", "forecast", "datasets", "agents", "configs", "eval", "train", "executor", "cli"] {
        let tests = root().join(room).join("tests");
        let manifest = std::fs::read_to_string(root().join(room).join("Cargo.toml")).unwrap();
        let main = std::fs::read_to_string(tests.join("main.rs")).unwrap();
        for entry in std::fs::read_dir(&tests).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let holds_tests =
                path.extension().is_some_and(|extension| extension == "rs") || path.join("mod.rs").exists();
            let runs = name == "main"
                || main.contains(&format!("mod {name};\n"))
                || manifest.contains(&format!("\"tests/{name}.rs\""));
            assert!(!holds_tests || runs, "{} is in no test program: name it in {room}/tests/main.rs", path.display());
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// `cargo xtask test` runs the tests of the executor by their name, and all others by patterns that leave out what
/// begins with `ex`.
#[test]
fn no_other_test_program_is_called_like_that_of_the_executor() {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let targets = metadata["packages"].as_array().unwrap().iter().flat_map(|of| of["targets"].as_array().unwrap());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let names: Vec<&str> = tests.map(|target| target["name"].as_str().unwrap()).collect();
    let alike: Vec<&&str> = names.iter().filter(|name| name.starts_with("ex")).collect();
    assert!(names.len() > 15 && alike == [&"executor"], "{alike:?} of {names:?}");
}
