//! Development tasks: `cargo xtask {test, bench, drill, package, dist, wheel, schema, docs, results, tidy}`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks on the terminal")]

mod compiler;
mod go_programs;
mod suite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use go_programs::kubernetes;
use suite::{example, suite};
use xtask::book::Book;
use xtask::dist;
use xtask::package;
use xtask::results::{ResultBlock, blocks, rewritten};
use xtask::source::root;
use xtask::tidy;
use xtask::wheel;

const HELP: &str = "\
cargo xtask test           everything: format, lints, unit, property, golden, parity and command-line tests
cargo xtask bench [NAME]   benchmarks: all of them, or those whose name contains NAME
cargo xtask drill [KILLS]  the long drills: so many kills (200) while the daemon drives real Slurm, and real Kubernetes
cargo xtask package        builds the Debian package with goodputd and goodput-node in target/package
cargo xtask dist           builds a tarball and a Debian package with all programs in target/dist
cargo xtask wheel [full]   builds the wheel of the Python package goodput-gym in target/wheels; full: with the program
cargo xtask schema         writes the JSON schemas of the configuration files to configs/schema
cargo xtask docs           writes the reference pages, checks the links, and builds the book into target/book
cargo xtask results [PAGE [BLOCK]]
                           runs the commands of the blocks in docs/src/results/PAGE.md, and writes their tables
cargo xtask tidy [PATH]    lists comments, names and sentences that break a rule of language, below PATH or everywhere
";

/// Benchmarks: package and target.
const BENCHES: [(&str, &str); 25] = [
    ("goodput-env", "gym"),
    ("goodput-env", "fit"),
    ("goodput-env", "soak"),
    ("goodput-env", "requests"),
    ("goodput-agents", "queues"),
    ("goodput-datasets", "datasets"),
    ("goodput-eval", "replay"),
    ("goodput-eval", "faults"),
    ("goodput-eval", "fidelity"),
    ("goodput-eval", "decisions"),
    ("goodput-eval", "large_cluster"),
    ("goodput-eval", "request_decisions"),
    ("goodput-eval", "placement"),
    ("goodput-eval", "tiresias"),
    ("goodput-eval", "gavel"),
    ("goodput-eval", "sia"),
    ("goodput-eval", "loaning"),
    ("goodput-train", "training_loop"),
    ("goodput-train", "toy"),
    ("goodput-train", "offline"),
    ("goodput-executor", "latency"),
    ("goodput-executor", "live_scale"),
    ("goodput-executor", "live_soak"),
    ("goodput-executor", "slurm_polling"),
    ("goodput-executor", "sim_to_real"),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if compiler::is_called(&args) {
        return compiler::compile(&args);
    }
    let ok = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test(),
        ["bench"] => bench(""),
        ["bench", name] => bench(name),
        ["drill"] => drill("200"),
        ["drill", kills] => drill(kills),
        ["package"] => package(),
        ["dist"] => dist(),
        ["wheel"] => wheel(false),
        ["wheel", "full"] => wheel(true),
        ["schema"] => run(
            "cargo",
            &["run", "--release", "--quiet", "--bin", "goodput", "--", "config", "schema", "--write", "configs/schema"],
        ),
        ["docs"] => docs(),
        ["results"] => results(None, None),
        ["results", page] => results(Some(page), None),
        ["results", page, block] => results(Some(page), Some(block)),
        ["tidy"] => tidy(""),
        ["tidy", path] => tidy(path),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Programs of a cluster.
const CLUSTER_PROGRAMS: [&str; 2] = ["goodputd", "goodput-node"];

/// Builds the programs of a cluster, without what training needs.
fn build_cluster_programs() -> bool {
    let [daemon, node] = CLUSTER_PROGRAMS;
    run("cargo", &["build", "--release", "-p", "goodputd", "-p", "goodput-executor", "--bin", daemon, "--bin", node])
}

/// Folder of what cargo builds.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds all programs, and the tarball and the Debian package that one installs them from.
fn dist() -> bool {
    let folder = target().join("dist");
    let names = ["goodput", CLUSTER_PROGRAMS[0], CLUSTER_PROGRAMS[1]];
    if !run("cargo", &["build", "--release", "--workspace", "--bin", names[0]]) || !build_cluster_programs() {
        return false;
    }
    let programs = names.map(|name| target().join("release").join(name));
    match fs::create_dir_all(&folder).and_then(|()| dist::build(&programs, &folder)) {
        Ok(archives) => {
            println!("{}", archives.tarball.display());
            match archives.package {
                Some(package) => println!("{}", package.display()),
                None => println!("no Debian package: dpkg-deb is not installed"),
            }
        }
        Err(error) => {
            eprintln!("cannot build the archives: {error}");
            return false;
        }
    }
    true
}

/// Builds the programs of a cluster and their Debian package.
fn package() -> bool {
    let folder = target().join("package");
    if !build_cluster_programs() {
        return false;
    }
    let programs = CLUSTER_PROGRAMS.map(|name| target().join("release").join(name));
    match fs::create_dir_all(&folder).and_then(|()| package::build(&programs, &[], &folder)) {
        Ok(path) => println!("{}", path.display()),
        Err(error) => {
            eprintln!("cannot build the package: {error}");
            return false;
        }
    }
    true
}

/// Builds the wheel of the Python package, with the program `goodput` in it where it is to be `full`.
fn wheel(full: bool) -> bool {
    let Some(python) = wheel::python(&[]) else {
        eprintln!("cannot build the wheel: it needs Python 3.10 or newer with venv. apt-get install python3-venv");
        return false;
    };
    let built = || {
        let program = full.then(wheel::program).transpose()?;
        wheel::pack(python, &wheel::library()?, program.as_deref(), &root().join("target/wheels"))
    };
    match built() {
        Ok(path) => println!("{}", path.display()),
        Err(error) => {
            eprintln!("cannot build the wheel: {error}");
            return false;
        }
    }
    true
}

/// Lists what breaks a rule of language below `path`, then the figures of the source.
fn tidy(path: &str) -> bool {
    let read = || -> std::io::Result<bool> {
        let mut counts = BTreeMap::<&str, usize>::new();
        for offence in tidy::offences()?.iter().filter(|offence| offence.place.starts_with(path)) {
            println!("{offence}");
            *counts.entry(offence.rule).or_default() += 1;
        }
        let names = tidy::TypeNames::read()?;
        for (name, places) in names.reused().filter(|(_, places)| places.iter().any(|place| place.starts_with(path))) {
            println!("{name} is defined at {}", places.join(", "));
        }
        println!("rules broken: {counts:?}");
        println!("{:.1} % of {} type names are reused", names.reused_percent(), names.places.len());
        println!("{:?}", tidy::Figures::read()?);
        Ok(counts.is_empty())
    };
    read().unwrap_or_else(|error| {
        eprintln!("cannot read the source: {error}");
        false
    })
}

/// Writes the reference pages from the program, checks the links of the book, and builds the book.
fn docs() -> bool {
    let reference =
        ["run", "--release", "--quiet", "--bin", "goodput", "--", "reference", "--write", "docs/src/reference"];
    run("cargo", &reference) && book_links() && build_book()
}

fn book_links() -> bool {
    match Book::read() {
        Ok(book) => {
            let faults = book.faults();
            faults.iter().for_each(|fault| eprintln!("{fault}"));
            for (kind, extent) in book.extents() {
                let xtask::book::Extent { pages, words, longest_sentence } = extent;
                println!("{kind}: {pages} pages, {words} words, longest sentence {longest_sentence} words");
            }
            faults.is_empty()
        }
        Err(error) => {
            eprintln!("cannot read the book: {error}");
            false
        }
    }
}

/// Runs the commands of blocks in pages of results, and writes what the runs say into the pages: the blocks of
/// every page, of `page`, or one of them.
fn results(page: Option<&str>, block: Option<&str>) -> bool {
    let Ok(book) = Book::read() else { return false };
    let asked = |path: &Path| page.is_none_or(|page| path.file_stem().is_some_and(|stem| stem == page));
    let pages: Vec<PathBuf> = book.results().map(|(path, _)| path.to_path_buf()).filter(|path| asked(path)).collect();
    // The table names the commit that the program was built from, so the source must be that commit.
    let changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"];
    if output("git", &changed).is_none_or(|changed| !changed.is_empty()) {
        eprintln!("the source differs from its commit: commit first, for the tables name the commit");
        return false;
    }
    let mut written = 0;
    let ok = run("cargo", &["build", "--release", "--workspace", "--bin", "goodput"])
        && pages.iter().all(|page| write_results(&root().join("docs/src").join(page), block, &mut written));
    if written == 0 {
        eprintln!("no block was written");
    }
    ok && written > 0
}

/// Folder of the runs that pages of results show, below the root.
const RUNS: &str = "target/results";

fn write_results(path: &Path, asked: Option<&str>, written: &mut usize) -> bool {
    let read = || fs::read_to_string(path).map_err(|error| error.to_string());
    let blocks = match read().and_then(|page| blocks(&page).map_err(|(line, fault)| format!("line {line}: {fault}"))) {
        Ok(blocks) => blocks,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return false;
        }
    };
    blocks.into_iter().filter(|block| asked.is_none_or(|asked| block.name == asked)).all(|block| {
        let folder = format!("{RUNS}/{}", block.name);
        // Training takes an empty folder only.
        let _ = fs::remove_dir_all(root().join(&folder));
        let table = match block.columns.as_slice() {
            [] => format!("goodput results {folder}"),
            columns => format!("goodput results {folder} --columns {}", columns.join(",")),
        };
        println!("\n$ {} --run-dir {folder}", block.command);
        let text = output("sh", &["-c", &format!("{} --run-dir {folder} --quiet >&2 && {table}", block.command)]);
        // Earlier blocks have moved this one, so the page is read anew.
        let Some((text, page)) = text.zip(read().ok()) else { return false };
        let now = blocks_of(&page).into_iter().find(|now| now.name == block.name);
        let wrote = now.is_some_and(|now| fs::write(path, rewritten(&page, &now, &text)).is_ok());
        *written += usize::from(wrote);
        wrote
    })
}

fn blocks_of(page: &str) -> Vec<ResultBlock> {
    blocks(page).unwrap_or_default()
}

/// Text that a program prints, with the built programs on its path; `None` where the program fails.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let path = format!("{}:{}", root().join("target/release").display(), env::var("PATH").unwrap_or_default());
    let run = Command::new(program).args(args).current_dir(root()).env("PATH", path).stderr(Stdio::inherit()).output();
    run.ok().filter(|run| run.status.success()).and_then(|run| String::from_utf8(run.stdout).ok())
}

/// Version of mdBook that builds the book.
const MDBOOK: &str = "0.5.4";

/// Folder of the programs that tasks install for themselves.
const TOOLS: &str = "target/tools";

fn mdbook() -> PathBuf {
    root().join(TOOLS).join("bin/mdbook")
}

/// Builds the book into `target/book`. mdBook is installed once, below `target/tools`, and not optimised: to compile it
/// takes longer than to run it.
fn build_book() -> bool {
    let (tools, mdbook) = (root().join(TOOLS).display().to_string(), mdbook());
    let program = mdbook.display().to_string();
    let install =
        ["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features", "--debug", "--root", &tools];
    let book = root().join("target/book").display().to_string();
    let docs = root().join("docs").display().to_string();
    (mdbook.exists() || run("cargo", &install)) && run(&program, &["build", &docs, "--dest-dir", &book])
}

/// Stops at the first step that fails. One set of options throughout, so that nothing is compiled twice.
fn test() -> bool {
    run("cargo", &["fmt", "--all", "--check"])
        && slurm()
        && kubernetes()
        && pytorch()
        && suite(|| example() && book())
        && deny()
}

/// Programs and Debian packages of Slurm, etcd and Prometheus, which the executor's tests start for themselves.
const SLURM: ([&str; 5], [&str; 7]) = (
    ["slurmctld", "slurmd", "munged", "etcd", "promtool"],
    ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "etcd-server", "prometheus"],
);

/// Finds these programs, or installs them where that is allowed. Without them the task names the tests that do
/// nothing, and fails where the variable `CI` is set.
fn slurm() -> bool {
    let (programs, packages) = SLURM;
    let found = || {
        let place = |program: &str| {
            ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(|at| format!("{at}/{program}"))
        };
        programs.iter().all(|program| place(program).iter().any(|path| std::path::Path::new(path).exists()))
    };
    if found() {
        return true;
    }
    if installs(&packages) && found() {
        return true;
    }
    let ci = env::var_os("CI").is_some();
    eprintln!(
        "Slurm or etcd is not installed: {}. apt-get install {}",
        if ci { "failing" } else { "ITS TESTS DO NOTHING" },
        packages.join(" ")
    );
    !ci
}

/// Installs Debian packages where that is allowed.
fn installs(packages: &[&str]) -> bool {
    let install = [&["install", "-y", "--no-install-recommends"][..], packages].concat();
    // Lists of packages may be missing or old.
    let installed = || run("apt-get", &install) || (run("apt-get", &["update"]) && run("apt-get", &install));
    is_root() && has_apt() && installed()
}

/// Finds a Python that makes virtual environments and has PyTorch, or installs Debian's where that is allowed (150 MB):
/// tests train a net that grows and shrinks, and try the wheel. Without PyTorch tests do nothing, in continuous
/// integration as well. Without a Python for the wheel the task fails where the variable `CI` is set.
fn pytorch() -> bool {
    let found = || wheel::python(&["torch.distributed"]).is_some();
    let packages = ["python3-torch", "python3-venv"];
    if found() || (installs(&packages) && found()) {
        return true;
    }
    let install = packages.join(" ");
    if wheel::python(&[]).is_some() {
        eprintln!("PyTorch is not installed: TESTS OF TRAINING IN PYTHON DO NOTHING. apt-get install {install}");
        return true;
    }
    let ci = env::var_os("CI").is_some();
    let then = if ci { "failing" } else { "THE PACKAGE goodput-gym IS NOT TESTED" };
    eprintln!("Python 3.10 or newer with venv is not installed: {then}. apt-get install {install}");
    !ci
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn has_apt() -> bool {
    Command::new("apt-get").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Kills the daemon `kills` times while the daemon drives real Slurm, then kills the controller of
/// Slurm after an acknowledgement, and then whatever there is of Kubernetes.
fn drill(kills: &str) -> bool {
    let drills = [
        "slurm::killed_for_real_it_goes_on",
        "slurm::the_controller_may_forget_what_it_acknowledged",
        "kubernetes::drills::whatever_is_killed_no_job_is_lost_and_none_runs_twice",
    ];
    slurm()
        && kubernetes()
        && drills.into_iter().all(|name| {
            let test = ["test", "--release", "--workspace", "--test", "executor", "--"];
            let arguments = [&test[..], &[name, "--exact", "--include-ignored", "--nocapture"]].concat();
            let many = [("GOODPUT_KILLS", kills), ("GOODPUT_CONTROLLERS", "10")];
            println!("$ GOODPUT_KILLS={kills} GOODPUT_CONTROLLERS=10 cargo {}", arguments.join(" "));
            let status = Command::new("cargo").args(arguments).envs(many).status();
            status.is_ok_and(|status| status.success())
        })
}

/// Builds the book, where mdBook is installed or can be.
fn book() -> bool {
    build_book() || {
        let installed = mdbook().exists();
        println!("the book is not built{}", if installed { "" } else { ": mdBook cannot be installed" });
        !installed
    }
}

/// Licences and advisories, where cargo-deny is installed.
fn deny() -> bool {
    if has(&["deny", "--version"]) {
        return run("cargo", &["deny", "check"]);
    }
    println!("cargo-deny is not installed: licences and advisories not checked");
    true
}

fn bench(filter: &str) -> bool {
    let chosen = BENCHES.iter().filter(|(package, name)| format!("{package}/{name}").contains(filter));
    // The whole workspace, so that features are those of every other build and nothing is compiled twice.
    chosen.fold(true, |ok, (_, name)| run("cargo", &["bench", "--workspace", "--bench", name]) && ok)
}

fn has(args: &[&str]) -> bool {
    Command::new("cargo").args(args).output().is_ok_and(|output| output.status.success())
}

fn run(program: &str, args: &[&str]) -> bool {
    run_with(&[], program, args)
}

/// Runs a program with variables of its environment.
fn run_with(variables: &[(&str, String)], program: &str, args: &[&str]) -> bool {
    let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    println!("\n$ {set}{program} {}", args.join(" "));
    match Command::new(program).args(args).envs(variables.iter().map(|(name, value)| (*name, value))).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {program}: {error}");
            false
        }
    }
}
