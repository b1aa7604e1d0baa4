//! Programs and definitions of Go modules that the tests of Kubernetes need.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use xtask::source::root;

use super::run;

/// Programs of Go modules that tests start, with their folders: the control plane of Kubernetes, and Kueue.
const GO_PROGRAMS: [(&str, &str); 2] =
    [("executor/testkit/kubernetes", "kubernetes-1.36.3"), ("executor/testkit/kueue", "kueue-0.17.0")];
/// Definitions of objects that tests take from Go modules: module, folder in it, and folder of the cache.
const DEFINITIONS: [(&str, &str, &str); 2] = [
    ("sigs.k8s.io/kueue@v0.17.0", "config/components/crd/bases", "kueue-0.17.0-crds"),
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd",
        "prometheus-operator-0.85.0-crds",
    ),
];

/// Builds the control plane of Kubernetes and Kueue for tests: eleven minutes of a processor, once. Go keeps what it
/// compiled, and the programs stay in the cache of the machine, or in `target` where that may not be written. Without
/// Go the task says that the tests do nothing.
pub fn kubernetes() -> bool {
    let go = Command::new("go").arg("version").output().is_ok_and(|output| output.status.success());
    if !go {
        eprintln!("Go is not installed: THE TESTS OF KUBERNETES DO NOTHING");
        return true;
    }
    let folders = [PathBuf::from("/var/cache/goodput-testkit"), root().join("target/kubernetes")];
    let writable =
        |folder: &PathBuf| fs::create_dir_all(folder).is_ok() && fs::write(folder.join(".writable"), "").is_ok();
    let Some(folder) = folders.into_iter().find(writable) else {
        eprintln!("cannot make a folder for the control plane of Kubernetes: ITS TESTS DO NOTHING");
        return true;
    };
    for (module, name) in GO_PROGRAMS {
        let (module, binary) = (root().join(module).display().to_string(), folder.join(name).display().to_string());
        // Two at a time: the compiler needs a gigabyte for each of the large packages.
        if !run("go", &["-C", &module, "build", "-p", "2", "-trimpath", "-ldflags=-s -w", "-o", &binary, "."]) {
            eprintln!("{name} cannot be built: ITS TESTS DO NOTHING");
        }
    }
    for (module, within, name) in DEFINITIONS {
        if let Err(problem) = definitions(module, within, &folder.join(name)) {
            eprintln!("{module}: {problem}: TESTS WITH ITS OBJECTS DO NOTHING");
        }
    }
    true
}

/// Copies the folder `within` of a Go module to `to`, whole or not at all.
fn definitions(module: &str, within: &str, to: &Path) -> io::Result<()> {
    let output = Command::new("go").args(["mod", "download", "-json", module]).current_dir("/").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    let Some(from) = told else { return Err(io::Error::other(text.into_owned())) };
    let half = to.with_extension("new");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half)?;
    for file in fs::read_dir(Path::new(from).join(within))? {
        let file = file?;
        // Files of modules are read-only, and their copies are not.
        fs::write(half.join(file.file_name()), fs::read(file.path())?)?;
    }
    let _ = fs::remove_dir_all(to);
    fs::rename(half, to)
}
