//! Policies from outside on the command line: programs, graphs, and what a command says where they do not decide.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use goodput_agents::bundle::{Model, PolicyBundle, Provenance};
use goodput_agents::nets::onnx::OnnxNet;
use goodput_agents::policies::rounds::Decoder;
use goodput_env::gym::layout;
use goodput_env::scenario::{Batching, Information};

use crate::support::{plain, run};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn shipped(name: &str) -> PathBuf {
    Path::new(WORKSPACE).join("configs/experiment").join(name)
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        eprintln!("python3 is missing: POLICIES IN PYTHON ARE NOT TESTED ON THE COMMAND LINE");
    }
    found
}

fn deployment(policy: &str) -> String {
    let head = "mode = \"observe\"\n[engine.slurm]\n[state]\ndirectory = \"state\"\n[api]\nlisten = \"\"\n";
    format!("{head}[policy]\nname = \"{policy}\"\n")
}

#[test]
fn the_search_of_a_module_has_a_limit() {
    if !has_python() {
        return;
    }
    let policy = deployment("python:slow.policy:Policy");
    let slow = "import time\ntime.sleep(60)\n";
    let dir = folder(&[("goodput_gym/__init__.py", ""), ("slow/__init__.py", slow), ("x.toml", &policy)]);
    let began = Instant::now();
    let (code, _, said) = run(dir.path(), &["config", "check", "x.toml"]);
    assert_eq!(code, 0, "{said}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    // A module that is not there is found to be missing all the same.
    fs::write(dir.path().join("slow/__init__.py"), "print('hello')\n").unwrap();
    let (code, _, said) = run(dir.path(), &["config", "check", "x.toml"]);
    assert!(code == 2 && said.contains("no module \"slow.policy\""), "{said}");
}

#[test]
fn a_module_is_found_without_running_it() {
    if !has_python() {
        return;
    }
    let policy = deployment("python:mine.policy:Policy");
    let runs = "open('ran', 'w')\n";
    let packages = [("goodput_gym/__init__.py", ""), ("mine/__init__.py", ""), ("mine/policy.py", runs)];
    let dir = folder(&[&packages[..], &[("x.toml", policy.as_str())]].concat());
    let (code, _, said) = run(dir.path(), &["config", "check", "x.toml"]);
    assert!(code == 0 && !dir.path().join("ran").exists(), "{said}");
}

/// One free node and a job.
const SEEN: &str = r#"{"version": 7, "at_ms": 600000,
  "nodes": [{"name": "n0", "accelerator": "t4", "gpus": 4, "free": 4}],
  "jobs": [{"key": "job", "phase": "held", "starts": 0, "spec": {"work": {"fixed": {"duration": 60000}}, "request":
    {"name": "job", "tenant": 0, "submit": 0, "gpus": 4, "batch_size": null, "elasticity": "rigid"}}}]}"#;

#[test]
fn a_replay_says_that_the_fallback_decided() {
    let (program, fifo) = (deployment("proc:sh -c exit"), deployment("fifo"));
    let dir = folder(&[("seen.json", SEEN), ("program.toml", &program), ("fifo.toml", &fifo)]);
    let replay = |file: &str| run(dir.path(), &["live", "replay", file, "seen.json"]);
    let (code, orders, said) = replay("fifo.toml");
    assert!(code == 0 && orders.contains("n0:4") && !said.contains("fallback decided"), "{orders}{said}");
    let (code, orders, said) = replay("program.toml");
    assert!(code == 1 && orders.contains("n0:4"), "{orders}{said}");
    let said = plain(&said);
    assert!(said.contains("the fallback decided instead of the policy") && said.contains("snapshot 7: "), "{said}");
}

/// Number of processes with `mark` as the last argument.
fn marked(mark: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.ends_with(format!("\0{mark}\0").as_bytes())).count()
}

fn wait_for(mark: &str, count: usize) {
    let began = Instant::now();
    while marked(mark) != count {
        assert!(began.elapsed() < Duration::from_secs(20), "{} processes in place of {count}", marked(mark));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_program_and_its_children_end_with_a_process_that_is_killed() {
    if !has_python() {
        return;
    }
    let dir = folder(&[("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n")]);
    let mark = format!("killed-{}", std::process::id());
    let script = Path::new(WORKSPACE).join("agents/tests/fixtures/external_policy.py");
    let policy = format!("proc:python3 {} forks@1 {mark}", script.display());
    let mut goodput = Command::new(env!("CARGO_BIN_EXE_goodput"));
    goodput.args(["sim", "--workload", "w.csv", "--policy", &policy]).current_dir(dir.path());
    let mut goodput = goodput.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&mark, 2);
    goodput.kill().unwrap();
    goodput.wait().unwrap();
    wait_for(&mark, 0);
}

/// A graph that scores an observation of zeros alone has no row of results.
#[test]
fn a_graph_that_gives_no_scores_has_no_results() {
    let dir = folder(&[("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n")]);
    for name in ["root", "lookup"] {
        let graph = Path::new(WORKSPACE).join(format!("agents/tests/fixtures/onnx/{name}.onnx"));
        let net = OnnxNet::new(fs::read(graph).unwrap(), layout(4)).unwrap();
        let decoder = Decoder::new(Batching::Requested, Information::Estimate { sigma: 0.5 });
        let bundle = PolicyBundle::trained(Model::Onnx(net), decoder, &[], [16; 2], Provenance::default());
        bundle.save(&dir.path().join("x.bundle")).unwrap();
        let file = shipped("set-encoder.toml").display().to_string();
        let jobs = "workload.synthetic.diurnal.jobs=5";
        let (code, table, said) =
            run(dir.path(), &["eval", &file, "--policies", "x.bundle", "--seeds", "1", "--set", jobs]);
        assert!(code == 2 && table.is_empty() && said.contains("x.bundle has no results"), "{name}: {table}{said}");
        let (code, table, said) = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "x.bundle"]);
        assert!(code == 1 && table.is_empty() && said.contains("has no results"), "{name}: {table}{said}");
        let (code, table, said) = run(dir.path(), &["explain", "x.bundle", "--workload", "w.csv"]);
        assert!(code == 1 && table.is_empty() && said.contains("has no reasons"), "{name}: {table}{said}");
    }
}

#[test]
fn an_agent_is_trained_beside_published_policies_alone() {
    let text = fs::read_to_string(shipped("set-encoder.toml")).unwrap();
    for other in ["proc:sh -c exit", "zoo:elastic"] {
        let text = text.replace("\"fifo\", \"srtf\"", &format!("\"fifo\", \"{other}\""));
        let dir = folder(&[("x.toml", &text)]);
        let (code, _, said) = run(dir.path(), &["config", "check", "x.toml"]);
        let said = plain(&said);
        let refused = format!("\"{other}\" is no published policy");
        let words = [refused.as_str(), "x.toml", "goodput eval FILE --policies"];
        assert!(code == 2 && words.iter().all(|words| said.contains(words)), "{said}");
    }
}

/// `eval` gives the policy estimates there, without which it never starts a job.
#[test]
fn a_published_policy_is_explained_in_the_run_that_eval_makes() {
    let dir = folder(&[]);
    let file = shipped("heterogeneous.toml").display().to_string();
    for policy in ["gavel-max-min", "srtf"] {
        let (code, shown, said) = run(dir.path(), &["explain", policy, "--config", &file, "--at", "1800"]);
        assert!(code == 0 && shown.contains("Decision at "), "{policy}: {shown}{said}");
        assert!(!shown.contains("64 of 64 accelerators free"), "{policy}: {shown}");
    }
}

#[test]
fn explain_refuses_a_policy_that_eval_and_sim_refuse() {
    let dir = folder(&[("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n")]);
    let explain = |policy: &str, more: &[&str]| run(dir.path(), &[&["explain", policy][..], more].concat());
    let (code, _, said) = explain("gavel-per-watt", &["--workload", "w.csv", "--cluster", "gpu:1x4"]);
    assert!(code == 2 && said.contains("accelerator types by"), "{said}");
    let file = Path::new(WORKSPACE).join("configs/scenario/allocation-modes.toml").display().to_string();
    let sets = ["--set", "environment.allocation=dynamic", "--set", "evaluate.policies=[\"kueue\"]"];
    let (code, _, said) = explain("fifo", &[&["--config", &file][..], &sets].concat());
    assert!(code == 2 && said.contains("does not go by an allocation"), "{said}");
}

#[test]
fn an_allocation_needs_tenants() {
    let dir = folder(&[("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n")]);
    for allocation in ["static", "dynamic-preemptive"] {
        let args = ["sim", "--workload", "w.csv", "--policy", "kueue", "--allocation", allocation];
        let (code, _, said) = run(dir.path(), &args);
        assert!(code == 2 && said.contains("have no tenants") && said.contains("`tenant`"), "{said}");
    }
}

/// A tenant with half of four accelerators never runs a job of four.
#[test]
fn a_job_wider_than_its_tenant_owns_is_refused_before_the_run() {
    let table = "job_id,submit_secs,duration_secs,gpus,tenant\na,0,60,4,x\nb,0,60,2,y\n";
    let dir = folder(&[("w.csv", table)]);
    let sim = |allocation: &str| {
        let args = ["sim", "--workload", "w.csv", "--policy", "kueue", "--cluster", "1x4", "--allocation", allocation];
        run(dir.path(), &args)
    };
    let (code, _, said) = sim("static");
    let said = plain(&said);
    assert!(code == 2 && said.contains("job \"a\" would wait for ever: tenant \"x\" owns 2 accelerators"), "{said}");
    assert!(said.contains("larger weight or quota, or choose a dynamic allocation"), "{said}");
    assert_eq!(sim("dynamic").0, 0);
}

#[test]
fn a_command_may_have_commas_and_other_policies_of_the_file_need_not_be_there() {
    if !has_python() {
        return;
    }
    let text = fs::read_to_string(shipped("set-encoder.toml")).unwrap();
    let text = text.replace("\"fifo\", \"srtf\"", "\"fifo\", \"proc:./gone\"");
    let dir = folder(&[("x.toml", &text)]);
    let script = Path::new(WORKSPACE).join("agents/tests/fixtures/external_policy.py");
    let policy = format!("proc:python3 {} first --weights=1,2", script.display());
    let asked = ["--policies", "fifo,srtf", "--policies", &policy, "-o", "csv"];
    let few = ["--seeds", "1", "--set", "workload.synthetic.diurnal.jobs=5"];
    let (code, table, said) = run(dir.path(), &[&["eval", "x.toml"][..], &asked, &few].concat());
    let has = |name: &str| table.contains(&format!("\n{name},"));
    assert!(code == 0 && has("fifo") && has("srtf") && has(&format!("\"{policy}\"")), "{table}{said}");
    let (code, _, said) = run(dir.path(), &[&["eval", "x.toml"][..], &few].concat());
    assert!(code == 2 && said.contains("./gone"), "{said}");
}

#[test]
fn a_program_that_ends_is_named_with_its_exit_status() {
    let reliance = format!("{}[reliance]\nfallback = \"proc:sh -c exit\"\n", deployment("fifo"));
    let dir = folder(&[("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n"), ("x.toml", &reliance)]);
    let (code, _, said) = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "proc:sh -c exit"]);
    let said = plain(&said);
    assert!(code == 2 && said.contains("the process has ended with exit status 0"), "{said}");
    assert!(said.contains("it was started as `sh -c exit`") && !said.contains("write proc:COMMAND"), "{said}");
    let (code, _, said) = run(dir.path(), &["config", "check", "x.toml"]);
    assert!(code == 2 && plain(&said).contains("only a published policy can stand here"), "{said}");
}
