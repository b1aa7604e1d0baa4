//! `goodput sim --preset` runs as `goodput reproduce` does, row by row: on the publication's own files and on
//! traces drawn here.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_agents::compose;
use goodput_agents::placement::fractional::{TieBreak, strategy};
use goodput_datasets::import::{gavel as gavel_trace, pollux_profiles, sia_profiles};
use goodput_datasets::{Catalog, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::sim::Outcome;
use goodput_env::time::SimTime;
use goodput_eval::reproduce::gavel::{MAX_MIN_FAIRNESS, MEDIUM_TEST};
use goodput_eval::reproduce::{deepboot, fgd, pollux_table, sia, tiresias};

use crate::support::{plain, run};

fn shared(path: &str) -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    assert!(root.exists(), "{} is absent: these tests compare with the public data in it", root.display());
    root.join(path)
}

/// Start, end, restarts and accelerator-seconds of a job, as `sim` prints them.
type Row = (String, String, String, String);

/// Rows of `goodput sim` with these arguments, and what it said besides.
fn sim(args: &[&str]) -> (Vec<Row>, String) {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<&str> = ["sim"].iter().chain(args).chain(&["-o", "csv"]).copied().collect();
    let (code, stdout, stderr) = run(dir.path(), &all);
    assert_eq!(code, 0, "{stderr}");
    let mut reader = csv::Reader::from_reader(stdout.as_bytes());
    let rows = reader.records().map(|record| {
        let record = record.unwrap();
        let field = |at: usize| record[at].to_owned();
        (field(3), field(4), field(6), field(7))
    });
    (rows.collect(), stderr)
}

/// Rows of a run in this process, as `sim` prints them.
fn rows(outcome: &Outcome) -> Vec<Row> {
    let number = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let secs = |time: Option<SimTime>| time.map_or_else(String::new, |time| number(time.as_secs_f64()));
    let row = |job: &goodput_env::sim::JobRecord| {
        let held = number(job.attained_gpu_millis as f64 / 1000.0);
        (secs(job.start), secs(job.finish), job.restarts.to_string(), held)
    };
    outcome.jobs.iter().map(row).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// File with jobs of the catalog's applications that no publication has.
fn drawn(dir: &Path) -> PathBuf {
    let kinds =
        [("cifar10", 4, 512), ("bert", 2, 24), ("deepspeech2", 4, 160), ("ncf", 1, 32_768), ("cifar10", 1, 128)];
    let mut trace = String::from("name,time,application,num_replicas,batch_size\n");
    for at in 0..30 {
        let (application, gpus, batch) = kinds[at * 7 % 5];
        writeln!(trace, "{application}-{at},{},{application},{gpus},{batch}", at * 173 + at * at % 59).unwrap();
    }
    let path = dir.join("drawn.csv");
    fs::write(&path, trace).unwrap();
    path
}

#[test]
fn gavel() {
    let throughputs = shared("data/gavel/simulation_throughputs.json");
    let own = shared("data/gavel/medium_test.trace");
    let sim = |trace: &Path, cluster: &str, policy: &str| {
        let files = ["--workload", text(trace), "--throughputs", text(&throughputs)];
        sim(&[&files[..], &["--cluster", cluster, "--policy", policy, "--preset", "gavel-osdi20"]].concat()).0
    };
    for policy in ["gavel-isolated@replica", "gavel-max-min@replica", "gavel-max-min"] {
        let jobs = Arc::new(MEDIUM_TEST.workload(&shared("")).unwrap());
        let table = rows(&MEDIUM_TEST.simulate(policy, &jobs, 0).unwrap());
        assert_eq!(sim(&own, "v100:2x1,p100:4x1,k80:6x1", policy), table, "{policy}");
    }
    let dir = tempfile::tempdir().unwrap();
    let classes = ["ResNet-18 (batch size 128)", "LM (batch size 40)", "Transformer (batch size 256)"];
    let mut trace = String::new();
    for at in 0..40_u32 {
        let (class, gpus) = (classes[at as usize % 3], [1, 1, 2, 4][(at * 5 % 4) as usize]);
        writeln!(trace, "{class}\tc\td\t-n\t1\t{}\t{gpus}\t1\t-1\t{}", 20_000 + at * 997, at * 211).unwrap();
    }
    let path = dir.path().join("drawn.trace");
    fs::write(&path, trace).unwrap();
    let jobs = Arc::new(gavel_trace::read(&path, &throughputs).unwrap());
    for policy in ["gavel-isolated@replica", "gavel-fifo-perf@replica", "srtf"] {
        let table = rows(&MAX_MIN_FAIRNESS.simulate(policy, &jobs, 0).unwrap());
        assert_eq!(sim(&path, "v100:8x1,p100:16x1,k80:24x1", policy), table, "{policy}");
    }
}

#[test]
fn tiresias_simulator() {
    let compare = |trace: &Path| {
        let jobs = Arc::new(read_workload(trace, Catalog::shipped()).unwrap().workload);
        for policy in ["tiresias-l@replica", "srtf@replica", "fifo"] {
            let mut made = compose::by_name(policy, 0).unwrap();
            let table = rows(&tiresias::play(&Cluster::homogeneous(4, 4), &jobs, &mut *made).unwrap());
            let args = ["--cluster", "4x4", "--policy", policy, "--preset", "tiresias-nsdi19"];
            assert_eq!(sim(&[&["--workload", text(trace)][..], &args].concat()).0, table, "{policy}");
        }
    };
    compare(&shared("reference/tiresias/60_job.csv"));
    let dir = tempfile::tempdir().unwrap();
    let mut trace = String::from("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n");
    for at in 0..50 {
        let (gpus, model) = ([1, 2, 4, 8][at * 3 % 4], ["vgg19", "resnet50"][at % 2]);
        writeln!(trace, "{at},{gpus},{},100,{model},{},1", at * 37, 60 + at * at * 13 % 1500).unwrap();
    }
    let path = dir.path().join("drawn.csv");
    fs::write(&path, trace).unwrap();
    compare(&path);
}

#[test]
fn pollux() {
    let (profiles, dir) = (shared("data/pollux/traces"), tempfile::tempdir().unwrap());
    let catalog = pollux_profiles::catalog(&profiles, None).unwrap();
    for trace in [shared("data/pollux/workloads-0.5/workload-1.csv"), drawn(dir.path())] {
        for policy in ["tiresias", "optimus"] {
            let table = rows(&pollux_table::simulate(policy, &trace, 0.0, &catalog).unwrap());
            let args = ["--profiles", text(&profiles), "--policy", policy, "--preset", "pollux-osdi21", "--seed", "1"];
            assert_eq!(sim(&[&["--workload", text(&trace)][..], &args].concat()).0, table, "{policy}");
        }
    }
}

#[test]
fn sia_simulator() {
    let (profiles, dir) = (shared("data/sia"), tempfile::tempdir().unwrap());
    let catalog = sia_profiles::catalog(&profiles).unwrap();
    for trace in [shared("reference/sia/philly1-19noimg.csv"), drawn(dir.path())] {
        for policy in ["sia@replica", "gavel-max-throughput"] {
            let table = rows(&sia::run(policy, &trace, &catalog).unwrap());
            let args = ["--cluster", "aws:6x4,dgx-ext:2x8,rtx:3x8", "--preset", "sia-sosp23", "--seed", "1"];
            let files = ["--workload", text(&trace), "--profiles", text(&profiles), "--policy", policy];
            assert_eq!(sim(&[&files[..], &args].concat()).0, table, "{policy}");
        }
    }
}

#[test]
fn deepboot_simulator() {
    let (profiles, dir) = (shared("data/pollux/traces"), tempfile::tempdir().unwrap());
    let catalog = pollux_profiles::deepboot_catalog(&profiles).unwrap();
    // The first hours of the artifact's workload: requests and jobs.
    let whole = fs::read_to_string(shared("data/deepboot/small.csv")).unwrap();
    let first = dir.path().join("first.csv");
    fs::write(&first, whole.lines().take(250).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    for trace in [first, drawn(dir.path())] {
        for policy in ["deepboot@replica", "tiresias+ats-i"] {
            let table = deepboot::artifact_run(policy, &trace, &catalog, |_| {}).unwrap();
            let args =
                ["--profiles", text(&profiles), "--policy", policy, "--preset", "deepboot-tpds23", "--seed", "1"];
            assert_eq!(sim(&[&["--workload", text(&trace)][..], &args].concat()).0, rows(&table), "{policy}");
        }
    }
}

/// Pods of openb under FGD, on its own lists and on drawn ones: the place of every pod.
#[test]
fn fgd_simulator() {
    let dir = tempfile::tempdir().unwrap();
    let mut nodes = String::from("sn,cpu_milli,memory_mib,gpu,model\n");
    (0..20).for_each(|at| writeln!(nodes, "node-{at},96000,786432,{},V100M32", 2 << (at % 3)).unwrap());
    let header = fs::read_to_string(shared("data/openb/openb_pod_list_default.csv")).unwrap();
    let header = header.lines().next().unwrap();
    let mut pods = format!("{header}\n");
    for at in 0..60 {
        let (count, milli) = if at % 3 == 0 { (1 + at % 2, 1000) } else { (1, 100 + at * 37 % 900) };
        let row = |column: &str| match column {
            "name" => format!("pod-{at}"),
            "cpu_milli" => "4000".into(),
            "memory_mib" => "8192".into(),
            "num_gpu" => count.to_string(),
            "gpu_milli" => milli.to_string(),
            "creation_time" | "deletion_time" | "scheduled_time" => (at * 10).to_string(),
            _ => String::new(),
        };
        let fields: Vec<String> = header.split(',').map(row).collect();
        writeln!(pods, "{}", fields.join(",")).unwrap();
    }
    let drawn = [("nodes.csv", nodes), ("pods.csv", pods)].map(|(name, text)| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    });
    let own =
        ["openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"].map(|name| shared("data/openb").join(name));
    for [nodes, pods] in [own, drawn] {
        let trace = fgd::Openb::of_files(&nodes, &pods).unwrap();
        for strategy in ["fgd", "best-fit"] {
            let made = strategy::by_name(strategy, &trace.typical).unwrap();
            let ours = trace.placements(made, TieBreak::FixedRandom, 3);
            let args = ["sim", "--workload", text(&pods), "--cluster", text(&nodes), "--policy", strategy, "-o", "csv"];
            let (code, stdout, stderr) =
                run(dir.path(), &[&args[..], &["--preset", "fgd-atc23", "--seed", "3"]].concat());
            assert_eq!(code, 0, "{stderr}");
            let places: Vec<String> =
                stdout.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().to_owned()).collect();
            let expected: Vec<String> =
                ours.iter().map(|(_, node)| node.map_or_else(String::new, |node| node.to_string())).collect();
            assert_eq!(places, expected, "{strategy}");
            assert!(stderr.contains(&format!("allocated: {:.2} %", trace.percent(&ours))), "{stderr}");
        }
    }
}

#[test]
fn options_beside_a_preset_replace_it_and_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let trace = drawn(dir.path());
    let common = ["--workload", text(&trace), "--policy", "srtf", "--preset", "tiresias-nsdi19"];
    let (free, said) = sim(&common);
    assert_eq!(said, "");
    let (costly, said) = sim(&[&common[..], &["--switch-cost", "deepboot_full"]].concat());
    assert_ne!(free, costly);
    assert_eq!(plain(&said), "note: --switch-cost deepboot_full replaces zero of tiresias-nsdi19");
    let (_, said) = sim(&[&common[..], &["--information", "estimate"]].concat());
    assert_eq!(plain(&said), "note: --information estimate (sigma 0.5) replaces oracle of tiresias-nsdi19");
}

#[test]
fn a_replica_outside_its_preset_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let trace = drawn(dir.path());
    let common = ["--workload", text(&trace), "--policy", "srtf@replica"];
    let (_, said) = sim(&common);
    assert!(plain(&said).ends_with("add --preset tiresias-nsdi19"), "{said}");
    let (_, said) = sim(&[&common[..], &["--preset", "pollux-osdi21"]].concat());
    assert!(plain(&said).ends_with("add --preset tiresias-nsdi19"), "{said}");
    assert_eq!(sim(&[&common[..], &["--preset", "tiresias-nsdi19"]].concat()).1, "");
}

/// `eval` takes the preset from the file or the option, and each policy's own batching and information with it.
#[test]
fn an_experiment_runs_under_a_preset() {
    let dir = tempfile::tempdir().unwrap();
    let trace = drawn(dir.path());
    let experiment = format!(
        "name = \"preset\"\n[[cluster.groups]]\nnodes = 16\ngpus_per_node = 4\n[workload.file]\npath = {:?}\n\
         [environment]\nPRESET\n[evaluate]\nseeds = 1\npolicies = [\"tiresias\", \"optimus\"]\n",
        text(&trace)
    );
    let mean = |name: &str, preset: &str, options: &[&str]| {
        let file = dir.path().join(name);
        fs::write(&file, experiment.replace("PRESET", preset)).unwrap();
        let args: Vec<&str> =
            ["eval", text(&file), "--run-dir", "out", "-o", "json"].iter().chain(options).copied().collect();
        let (code, stdout, stderr) = run(dir.path(), &args);
        assert_eq!(code, 0, "{stderr}");
        let notes: Vec<String> = stderr.lines().filter(|line| line.starts_with("note: ")).map(String::from).collect();
        (stdout, notes)
    };
    let (by_file, notes) = mean("a.toml", "preset = \"pollux-osdi21\"", &[]);
    assert!(notes.is_empty(), "{notes:?}");
    let (by_option, _) = mean("b.toml", "", &["--preset", "pollux-osdi21"]);
    assert_eq!(by_file, by_option);
    let (other, notes) = mean("c.toml", "switch_cost = \"zero\"", &["--preset", "pollux-osdi21"]);
    assert_ne!(by_file, other);
    assert_eq!(notes, ["note: environment.switch_cost = \"zero\" replaces \"pollux_const\" of pollux-osdi21"]);
    let dir_of = tempfile::tempdir().unwrap();
    for policy in ["tiresias", "optimus"] {
        let args = ["sim", "--workload", text(&trace), "--policy", policy, "--preset", "pollux-osdi21", "-o", "csv"];
        let (code, stdout, stderr) = run(dir_of.path(), &args);
        assert_eq!(code, 0, "{stderr}");
        let jcts: Vec<f64> =
            stdout.lines().skip(1).map(|line| line.split(',').nth(5).unwrap().parse().unwrap()).collect();
        let mean = jcts.iter().sum::<f64>() / jcts.len() as f64;
        let found = by_file.contains(&format!("{mean:.0}")) || by_file.contains(&format!("{mean:.1}"));
        assert!(found, "{policy}: {mean} s under sim, and under eval {by_file}");
    }
}

/// Two tenants of a job table on four accelerators. Static: each keeps to its half. Dynamic: the first to come has all,
/// until its jobs end, or until the other one comes where the policy may preempt.
#[test]
fn an_allocation_divides_the_tenants_of_a_job_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = String::from("job_id,submit_secs,duration_secs,gpus,tenant\n");
    (0..8).for_each(|at| writeln!(table, "a{at},0,1000,1,alice").unwrap());
    (0..2).for_each(|at| writeln!(table, "b{at},100,500,1,bob").unwrap());
    let path = dir.path().join("two.csv");
    fs::write(&path, table).unwrap();
    let started = |allocation: &str| {
        let args = ["--workload", text(&path), "--policy", "kueue", "--cluster", "1x4", "--switch-cost", "zero"];
        let (rows, _) = sim(&[args.as_slice(), &["--allocation", allocation]].concat());
        let restarts = rows.iter().filter(|(_, _, restarts, _)| restarts != "0").count();
        (rows[2].0.clone(), rows[8].0.clone(), restarts)
    };
    let of = |third: &str, other: &str, restarts: usize| (third.to_owned(), other.to_owned(), restarts);
    assert_eq!(started("static"), of("1000", "100", 0));
    assert_eq!(started("static-preemptive"), of("1000", "100", 0));
    assert_eq!(started("dynamic"), of("0", "1000", 0));
    assert_eq!(started("dynamic-preemptive"), of("0", "100", 2));
}
