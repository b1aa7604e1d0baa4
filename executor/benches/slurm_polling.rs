//! Cost of a look at real Slurm with thousands of held jobs: all of them in JSON, none changed, and a
//! few changed. `GOODPUT_JOBS` is the number of jobs (20000), `GOODPUT_SUITE` the release of Debian
//! with the Slurm (`trixie`), or `installed`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use goodput_configs::reader;
use goodput_env::tenant::Tenants;
use goodput_executor::daemon;
use goodput_executor::engine::Engine;
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_testkit::slurm::{PrivateCluster, SlurmInstall, SlurmRelease};

/// Looks of which the mean is printed.
const LOOKS: u32 = 5;
/// Jobs that change before a look.
const CHANGED: u32 = 100;

/// Processor time of this process and of the commands that it has run, seconds.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // User and system time, each of the process and of its children, in ticks of 10 ms.
    fields[11..15].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// Gives lines to one session of `scontrol`.
fn control(cluster: &PrivateCluster, lines: impl Iterator<Item = String>) {
    let mut command = cluster.command("scontrol");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let text: String = lines.map(|line| line + "\n").chain(["quit\n".to_owned()]).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Prints the mean time of `looks` calls, and the processor time of one.
fn row(what: &str, looks: u32, mut look: impl FnMut()) {
    let (began, cpu) = (Instant::now(), cpu_secs());
    (0..looks).for_each(|_| look());
    let (wall, cpu) = (began.elapsed().as_secs_f64() / f64::from(looks), (cpu_secs() - cpu) / f64::from(looks));
    println!("| {what} | {wall:.2} | {cpu:.2} |");
}

fn main() {
    let jobs: u32 = std::env::var("GOODPUT_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let suite = std::env::var("GOODPUT_SUITE").unwrap_or_else(|_| "trixie".into());
    let install = match suite.as_str() {
        "installed" => SlurmInstall::installed(),
        suite => SlurmInstall::of(SlurmRelease::ALL.into_iter().find(|release| release.suite() == suite).unwrap()),
    };
    let directory = tempfile::tempdir().unwrap();
    let cluster = PrivateCluster::start_release(&install.unwrap(), &directory.path().join("slurm"), 8, 8, "a100", 5);
    let cluster = cluster.unwrap();
    let array = format!("--array=0-{}", jobs - 1);
    let job = ["--parsable", "--chdir=/tmp", "--hold", "--comment=goodput", "--gpus=1", &array, "--wrap=sleep 1"];
    let id = cluster.ask("sbatch", &job).trim().to_owned();
    // slurmctld makes a record of a task that is altered.
    let facts = |task: u32, retries: u32| format!("update JobId={id}_{task} Comment=goodput;gpus=1;retries={retries}");
    control(&cluster, (0..jobs).map(|task| facts(task, 3)));

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let key = FactsKey::in_directory(&directory.path().join("state")).unwrap();
    let mut engine = SlurmEngine::new(&cluster.settings(), key);
    runtime.block_on(engine.find_release()).unwrap();
    println!("Slurm {}, {jobs} held jobs\n", engine.release().unwrap());
    println!("| look | seconds | processor seconds |\n|---|---|---|");
    let look = |engine: &mut SlurmEngine| {
        let seen = runtime.block_on(engine.snapshot()).unwrap();
        assert_eq!(seen.jobs.len(), jobs as usize);
    };
    row("all jobs read", 1, || look(&mut engine));
    row("no job changed", LOOKS, || look(&mut engine));
    control(&cluster, (0..CHANGED).map(|task| facts(task, 2)));
    row(&format!("{CHANGED} jobs changed"), 1, || look(&mut engine));
    let text = format!(
        "mode = \"observe\"\n[engine.slurm]\n[policy]\nname = \"srtf\"\n[reliance]\ntimeout_ms = 5000\n\
         fallback = \"fifo\"\n[state]\ndirectory = {:?}\n[api]\nlisten = \"\"\n",
        directory.path().join("state").display().to_string()
    );
    let settings = reader::parse("polling.toml", &text).unwrap();
    let mut daemon = daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap();
    let mut cycle = || {
        runtime.block_on(daemon.cycle()).unwrap();
    };
    row("first cycle of the daemon", 1, &mut cycle);
    row("cycle of the daemon", LOOKS, &mut cycle);
}
