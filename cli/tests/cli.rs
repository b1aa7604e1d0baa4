//! Output that a user sees: help, listings, and for each kind of bad input a clear error and exit code 2.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use goodput_configs::kind::Kind;

use super::explain::{elastic, explain};

/// Runs `goodput` in `dir`; gives exit code, stdout and stderr as one text.
pub(super) fn run(dir: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&dir.display().to_string(), "[DIR]");
    let code = output.status.code().map_or_else(|| "signal".to_string(), |code| code.to_string());
    format!("exit: {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

fn set_encoder() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/set-encoder.toml")).unwrap()
}

/// A directory with one file in it.
pub(super) fn with(name: &str, content: impl AsRef<[u8]>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), content).unwrap();
    dir
}

fn check_config(text: &str) -> String {
    let dir = with("x.toml", text);
    run(dir.path(), &["config", "check", "x.toml"])
}

fn sim(workload: impl AsRef<[u8]>) -> String {
    let dir = with("w.csv", workload);
    run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "fifo"])
}

pub(super) const HEADER: &str = "name,time,application,num_replicas,batch_size\n";

#[test]
fn help() {
    let dir = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("help", run(dir.path(), &["--help"]));
    insta::assert_snapshot!("help_sim", run(dir.path(), &["sim", "--help"]));
    insta::assert_snapshot!("help_train", run(dir.path(), &["train", "--help"]));
    insta::assert_snapshot!("help_explain", run(dir.path(), &["explain", "--help"]));
}

#[test]
fn listings() {
    let dir = tempfile::tempdir().unwrap();
    for what in [
        "policies",
        "zoo",
        "metrics",
        "formats",
        "reproductions",
        "accelerators",
        "placements",
        "switch-costs",
        "presets",
    ] {
        insta::assert_snapshot!(format!("list_{what}"), run(dir.path(), &["list", what]));
    }
    insta::assert_snapshot!("list_parameters", run(dir.path(), &["list", "policies", "--parameters"]));
}

#[test]
fn a_job_alone() {
    insta::assert_snapshot!("sim_one_job", sim(format!("{HEADER}cifar10-0,53,cifar10,4,512\n")));
}

/// Two settings of one policy are two rows, each with its own name and its own figures.
#[test]
fn a_table_names_the_parameters_that_differ_from_their_defaults() {
    let dir = with("x.toml", set_encoder());
    let wanted = "gandiva,gandiva(quantum_secs=60),gandiva(quantum_secs=1800.0)";
    let twice = run(dir.path(), &["eval", "x.toml", "--policies", wanted, "--seeds", "1"]);
    assert!(twice.starts_with("exit: 2"), "two rows of one name: {twice}");
    let wanted = "fifo,gandiva,gandiva(quantum_secs=60)";
    let args =
        ["eval", "x.toml", "--policies", wanted, "--reference", "gandiva(quantum_secs=6e1)", "--seeds", "1", "-o"];
    let said = run(dir.path(), &[&args[..], &["csv"]].concat());
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("gandiva")).collect();
    let [usual, short] = rows[..] else { panic!("{said}") };
    assert!(usual.starts_with("gandiva,") && short.starts_with("gandiva(quantum_secs=60),"), "{said}");
    assert_ne!(usual.split_once(','), short.split_once(','));
    let summary = fs::read_to_string(dir.path().join("runs/eval/summary.json")).unwrap();
    assert!(summary.contains("gandiva(quantum_secs=60)"));
    let report = fs::read_to_string(dir.path().join("runs/eval/report.html")).unwrap();
    assert!(report.contains("gandiva(quantum_secs=60)"));
}

#[test]
fn tables_show_what_rented_nodes_cost() {
    let rented = format!("{}\n[environment.rental]\nprice_per_hour = 2.0\n", set_encoder());
    let dir = with("x.toml", rented);
    let args = ["eval", "x.toml", "--policies", "fifo", "--seeds", "1", "-o", "csv"];
    let said = run(dir.path(), &args);
    let row = said.lines().find(|line| line.starts_with("fifo,")).unwrap_or_else(|| panic!("{said}"));
    let head = said.lines().find(|line| line.starts_with("policy,")).unwrap();
    let number = |key: &str| -> f64 {
        let at = head.split(',').position(|column| column == key).unwrap_or_else(|| panic!("{key}: {head}"));
        row.split(',').nth(at).unwrap().parse().unwrap()
    };
    assert!(number("cost") > 0.0 && (number("cost") - 2.0 * number("node_hours")).abs() < 0.02, "{row}");
    assert!(number("cost_per_job") < number("cost"), "{row}");
    let shown = run(dir.path(), &["results", "runs/eval"]);
    assert!(shown.contains("| cost, $ |") && shown.contains("node hours, node h"), "{shown}");
    let report = fs::read_to_string(dir.path().join("runs/eval/report.html")).unwrap();
    assert!(report.contains("cost per job"));
    fs::write(dir.path().join("x.toml"), set_encoder()).unwrap();
    let plain = run(dir.path(), &args);
    assert!(plain.starts_with("exit: 0") && !plain.contains("cost"), "{plain}");
}

#[test]
fn a_wrong_parameter_is_refused_before_a_simulation() {
    let dir = with("w.csv", format!("{HEADER}cifar10-0,53,cifar10,4,512\n"));
    for (policy, words) in [
        ("gandiva(quantm_secs=60)", "did you mean \"quantum_secs\"?"),
        ("gandiva(quantum_secs=0)", "expected a number from 1"),
        ("gandiva(60)", "a parameter is PARAMETER=VALUE"),
        ("srtf(quantum_secs=60)", "policy srtf has no parameters"),
    ] {
        let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", policy]);
        assert!(said.starts_with("exit: 2") && said.contains(words) && said.contains("help"), "{policy}: {said}");
    }
    let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "gandiva(quantum_secs=60)+none"]);
    assert!(said.starts_with("exit: 0") && said.contains("policy: gandiva(quantum_secs=60)+none"), "{said}");
    let said = run(dir.path(), &["list", "zoo", "--parameters"]);
    assert!(said.starts_with("exit: 2"), "{said}");
}

/// Power and price of types come from the catalog, so a policy that goes by them is refused where the catalog has none.
#[test]
fn a_policy_by_power_or_price_wants_types_of_the_catalog() {
    let dir = with("w.csv", "job_id,submit_secs,duration_secs,gpus\na,0,60,1\n");
    for (policy, figure) in [("gavel-per-watt", "watts"), ("gavel-per-dollar", "dollars_per_hour")] {
        let on = |cluster| run(dir.path(), &["sim", "--workload", "w.csv", "--policy", policy, "--cluster", cluster]);
        let said = on("gpu:1x4");
        assert!(
            said.starts_with("exit: 2") && said.contains("accelerator types by") && said.contains(figure),
            "{said}"
        );
        assert!(on("t4:1x4").starts_with("exit: 0"), "{policy}");
    }
}

#[test]
fn a_job_larger_than_the_cluster_is_refused_before_the_run() {
    let dir = with("w.csv", "job_id,submit_secs,duration_secs,gpus\nwide,0,60,200\n");
    let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "fifo", "--cluster", "2x4"]);
    assert!(said.starts_with("exit: 2"), "{said}");
    assert!(said.contains("job \"wide\" needs 200 accelerators, and --cluster 2x4 has 8"), "{said}");
    let said = run(dir.path(), &["data", "validate", "w.csv", "--cluster", "2x4"]);
    assert!(said.contains("1 job, 0 errors, 1 remark\n"), "{said}");
}

#[test]
fn the_shipped_files_are_valid() {
    for folder in ["experiment", "leaderboard", "scenario", "forecast", "live"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(folder);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = run(&folder, &["config", "check", path.to_str().unwrap()]);
            if path.ends_with("leaderboard/elasticflow.toml") {
                // The only file with traces that the user fetches.
                assert!(text.starts_with("exit: 2") && text.contains("microsoft/elasticflow-traces"), "{text}");
                continue;
            }
            assert!(text.starts_with("exit: 0"), "{text}");
        }
    }
}

#[test]
fn published_tables_say_what_they_need() {
    let dir = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("reproduce_unknown", run(dir.path(), &["reproduce", "nope", "--data", "."]));
    insta::assert_snapshot!("reproduce_absent", run(dir.path(), &["reproduce", "sia-19", "--data", "nowhere"]));
}

#[test]
fn clusters_with_types() {
    let dir = with("w.csv", format!("{HEADER}cifar10-0,53,cifar10,4,512\n"));
    let on = |cluster| run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "fifo", "--cluster", cluster]);
    insta::assert_snapshot!("cluster_types", on("t4:1x4,a100:1x8"));
    insta::assert_snapshot!("cluster_malformed", on("t4:4"));
    insta::assert_snapshot!("cluster_unknown_type", on("abacus:1x4"));
}

#[test]
fn nothing_to_train() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/leaderboard");
    insta::assert_snapshot!("train_no_agent", run(Path::new(folder), &["train", "pollux.toml", "--run-dir", "x"]));
    let replica = set_encoder().replace("teacher = \"pollux-fast\"", "teacher = \"srtf@replica\"");
    let dir = with("x.toml", replica);
    insta::assert_snapshot!("train_replica", run(dir.path(), &["train", "x.toml", "--run-dir", "run"]));
}

#[test]
fn broken_toml() {
    insta::assert_snapshot!("broken_toml", check_config("name = \"x\"\n[cluster\n"));
}

#[test]
fn values_are_set_in_files_of_every_kind() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    for (file, set, line) in [
        ("experiment/set-encoder.toml", "evaluate.policies.0=afs-p", "\"afs-p\""),
        ("scenario/cross-cluster.toml", "clusters.0.movable=7", "movable = 7"),
        ("forecast/servegen.toml", "model.models.0=naive", "\"naive\""),
        ("forecast/nhits.toml", "window.levels=[0.5]", "levels = [0.5]"),
        ("live/agents.toml", "engine.agents.nodes.1.name=n7", "name = \"n7\""),
        ("live/node.toml", "keeper.0=/bin/keep", "\"/bin/keep\""),
    ] {
        let shown = run(&configs, &["config", "show", file, "--set", set]);
        assert!(shown.starts_with("exit: 0") && shown.contains(line), "{file}: {shown}");
        let checked = run(&configs, &["config", "check", file, "--set", set]);
        assert!(checked.starts_with("exit: 0"), "{file}: {checked}");
        let refused = run(&configs, &["config", "check", file, "--set", "nonsense=1"]);
        assert!(refused.starts_with("exit: 2") && refused.contains("unknown key `nonsense`"), "{file}: {refused}");
    }
}

#[test]
fn unknown_key() {
    insta::assert_snapshot!("unknown_key", check_config(&set_encoder().replace("learning_rate", "learningrate")));
}

#[test]
fn value_out_of_range() {
    insta::assert_snapshot!(
        "out_of_range",
        check_config(&set_encoder().replace("round_secs = 600.0", "round_secs = -5.0"))
    );
}

#[test]
fn not_a_number() {
    insta::assert_snapshot!(
        "config_nan",
        check_config(&set_encoder().replace("round_secs = 600.0", "round_secs = nan"))
    );
    insta::assert_snapshot!("workload_nan", sim(format!("{HEADER}a,NaN,cifar10,4,512\n")));
}

#[test]
fn negative_time() {
    insta::assert_snapshot!("negative_time", sim(format!("{HEADER}a,5,cifar10,4,512\nb,-5,cifar10,4,512\n")));
}

#[test]
fn duplicate_job() {
    insta::assert_snapshot!("duplicate_job", sim(format!("{HEADER}a,5,cifar10,4,512\na,6,cifar10,4,512\n")));
}

#[test]
fn empty_trace() {
    insta::assert_snapshot!("empty_trace", sim(HEADER));
    insta::assert_snapshot!("empty_file", sim(""));
}

#[test]
fn unknown_application_policy_and_format() {
    insta::assert_snapshot!("unknown_application", sim(format!("{HEADER}a,5,resnet,4,512\n")));
    insta::assert_snapshot!("unknown_format", sim("one,two\n1,2\n"));
    let dir = with("w.csv", HEADER);
    insta::assert_snapshot!("unknown_policy", run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "fifoo"]));
}

#[test]
fn profile_with_a_hole() {
    let dir = with("w.csv", format!("{HEADER}a,5,toy,1,8\n"));
    let app = dir.path().join("profiles/toy");
    fs::create_dir_all(&app).unwrap();
    fs::write(app.join("placements.csv"), "placement,local_bsz,step_time,sync_time\n1,8,0.1,0\n1,16,nan,0\n").unwrap();
    fs::write(app.join("validation-8.csv"), "progress,iteration,metric,grad_sqr,grad_var\n10,10,0.1,1,1\n").unwrap();
    let args = ["sim", "--workload", "w.csv", "--policy", "fifo", "--profiles", "profiles"];
    insta::assert_snapshot!("profile_hole", run(dir.path(), &args));
}

#[test]
fn truncated_bundle() {
    let dir = with("policy.bundle", [9u8, 0, 0, 0, 0, 0, 0, 0, b'{']);
    fs::write(dir.path().join("w.csv"), format!("{HEADER}a,5,cifar10,1,128\n")).unwrap();
    insta::assert_snapshot!(
        "truncated_bundle",
        run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "policy.bundle"])
    );
}

#[test]
fn bundle_of_another_schema() {
    use goodput_agents::bundle::{Card, Model, PolicyBundle};
    use goodput_agents::nets::weights::{NetConfig, Weights};
    let dir = with("w.csv", format!("{HEADER}a,5,cifar10,1,128\n"));
    let weights = Weights::new(&NetConfig::Set(Default::default()), goodput_env::gym::layout(8), 0);
    let card = Card { schema_hash: "0123".into(), ..Card::default() };
    let bundle = PolicyBundle { model: Model::Net(weights), normaliser: None, card };
    bundle.save(&dir.path().join("policy.bundle")).unwrap();
    let text = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "policy.bundle"]);
    insta::assert_snapshot!("other_schema", text.replace(&goodput_env::gym::schema_hash(), "[HASH]"));
}

#[test]
fn unwritable_directory() {
    // A file in the place of a directory stops even an administrator.
    let dir = with("x.toml", set_encoder());
    fs::write(dir.path().join("taken"), "").unwrap();
    insta::assert_snapshot!("unwritable", run(dir.path(), &["train", "x.toml", "--run-dir", "taken/run"]));
}

#[test]
fn no_driver() {
    let dir = tempfile::tempdir().unwrap();
    let text = run(dir.path(), &["live", "devices", "--nvml", "/nonexistent/libnvidia-ml.so.1"]);
    assert!(text.starts_with("exit: 1") && text.contains("driver"), "{text}");
}

#[test]
fn the_committed_schemas_are_what_the_program_prints() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &["config", "schema", "--write", "."]);
    for kind in Kind::ALL {
        let name = kind.schema_file();
        let printed = fs::read_to_string(dir.path().join(&name)).unwrap();
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/schema").join(&name);
        let shown = run(dir.path(), &["config", "schema", kind.name()]);
        assert!(shown.contains(printed.trim_end()), "{name} is not what the command prints");
        assert!(printed == fs::read_to_string(committed).unwrap(), "{name}: run `cargo xtask schema`");
    }
}

/// The training of a set encoder, cut down to seconds.
const SMALL: [&str; 20] = [
    "--set",
    "workload.synthetic.diurnal.jobs=10",
    "--set",
    "agent.ppo.envs=4",
    "--set",
    "agent.ppo.steps_per_env=32",
    "--set",
    "agent.ppo.warm_start.decisions=256",
    "--set",
    "train.decisions=256",
    "--set",
    "train.validation_seeds=2",
    "--set",
    "train.gate_percent=1e6",
    "--set",
    "evaluate.seeds=3",
    "--set",
    "evaluate.policies=[\"fifo\", \"srtf\"]",
    "--set",
    "environment.slots=16",
];

#[test]
fn train_from_end_to_end_gives_the_same_bytes_on_any_number_of_threads() {
    let dir = with("x.toml", set_encoder());
    let train = |threads: &str| {
        let out = format!("run-{threads}");
        let mut args = vec!["train", "x.toml", "--run-dir", &out, "-j", threads];
        args.extend(SMALL);
        let said = run(dir.path(), &args);
        assert!(said.starts_with("exit: 0"), "{said}");
        let latest = fs::read_to_string(dir.path().join(&out).join("checkpoints/latest")).unwrap();
        let files = ["jobs.parquet", "summary.json", "progress.csv", "config.toml"].map(String::from);
        let state = ["learner.bin", "state.json"].map(|name| format!("{latest}/{name}"));
        let read = |name: &String| fs::read(dir.path().join(&out).join(name)).unwrap();
        files.iter().chain(&state).map(read).collect::<Vec<_>>()
    };
    assert!(train("1") == train("2"), "the number of threads changed a file");
    let report = fs::read_to_string(dir.path().join("run-1/report.html")).unwrap();
    assert!(report.contains("learned") && report.contains("</html>"));

    // The bundle works wherever a policy's name does.
    let args = ["eval", "x.toml", "--policies", "srtf,run-1/policy.bundle", "--seeds", "2", "-o", "csv"];
    let said = run(dir.path(), &args);
    assert!(said.starts_with("exit: 0") && said.contains("learned (run-1)"), "{said}");
    // Two seeds show a spread: the table does not call it an interval, and csv keeps its columns.
    assert!(said.contains(",ci_low,ci_high,"), "{said}");
    let said = run(dir.path(), &args[..args.len() - 2]);
    assert!(said.contains("RANGE_LOW") && !said.contains("CI_LOW"), "{said}");
    // The results are a Markdown table that names the command which made them.
    let said = run(dir.path(), &["results", "run-1", "runs/eval"]);
    let rows = |policy: &str| said.matches(&format!("\n| {policy} ")).count();
    assert!(said.starts_with("exit: 0") && rows("srtf") == 2, "{said}");
    let command = "- Command: `goodput eval x.toml --policies srtf,run-1/policy.bundle --seeds 2`, on 20";
    assert!(said.contains("- Command: `goodput train x.toml ") && !said.contains("--run-dir"), "{said}");
    assert!(said.contains(command), "{said}");
    let said = run(dir.path(), &["results", "runs/eval", "--columns", "restarts_mean,jct_mean_secs"]);
    let place = |name: &str| said.find(name).unwrap_or_else(|| panic!("{name} is missing: {said}"));
    assert!(place("| restarts, per job |") < place(" mean JCT, "), "{said}");
    let said = run(dir.path(), &["results", "runs/eval", "--columns", "jct_mean_sec"]);
    assert!(said.starts_with("exit: 2") && said.contains("did you mean \"jct_mean_secs\"?"), "{said}");
    let said = run(dir.path(), &["results", "nowhere"]);
    assert!(said.starts_with("exit: 2") && said.contains("summary.json"), "{said}");
    let again = run(dir.path(), &["train", "x.toml", "--run-dir", "run-1"]);
    assert!(again.starts_with("exit: 2") && again.contains("--resume"), "{again}");

    // A run that is resumed leaves what it would have left, and names the command of its start.
    let kept = ["policy.bundle", "manifest.json"].map(|name| dir.path().join("run-1").join(name));
    let before = kept.each_ref().map(|path| fs::read(path).unwrap());
    let said = run(dir.path(), &["train", "--resume", "run-1", "-j", "1"]);
    assert!(said.starts_with("exit: 0"), "{said}");
    assert!(kept.each_ref().map(|path| fs::read(path).unwrap()) == before, "a resumed run names another command");
    for name in ["report.html", "origin.json"] {
        let text = fs::read_to_string(dir.path().join("run-1").join(name)).unwrap();
        assert!(text.contains("goodput train x.toml ") && !text.contains("--resume"), "{name}");
    }

    // It can be given away with a card that names what made it, and asked why it does what it does.
    let said = run(dir.path(), &["export", "run-1", "--to", "given/away"]);
    assert!(said.starts_with("exit: 0"), "{said}");
    let card = fs::read_to_string(dir.path().join("given/away/card.md")).unwrap();
    let command = "    goodput train x.toml --set workload.synthetic.diurnal.jobs=10";
    assert!(card.starts_with("# away\n") && card.contains(command) && !card.contains("run-1"), "{card}");
    let explained = explain(dir.path(), &["given/away/policy.bundle", "--config", "x.toml", SMALL[0], SMALL[1]]);
    assert_eq!(explained["kind"], "set");
    assert!(explained["explained"]["features"].as_array().unwrap().len() == 24, "{explained}");
    let said = run(dir.path(), &["export", "nowhere", "--to", "given"]);
    assert!(said.starts_with("exit: 2") && said.contains("nowhere"), "{said}");
}

#[test]
fn a_shipped_policy_goes_wherever_a_policy_does() {
    let dir = with("x.toml", elastic());
    fs::write(dir.path().join("w.csv"), format!("{HEADER}a,5,cifar10,1,128\n")).unwrap();
    let said = run(dir.path(), &["sim", "--workload", "w.csv", "--policy", "zoo:elastic-16", "-o", "csv"]);
    assert!(said.starts_with("exit: 0") && said.contains("\na,cifar10,5,"), "{said}");
    let args = [
        "eval",
        "x.toml",
        "--policies",
        "zoo:elastic-16,fifo",
        "--seeds",
        "1",
        "--set",
        "evaluate.loads=[]",
        "-o",
        "csv",
    ];
    let said = run(dir.path(), &args);
    assert!(said.starts_with("exit: 0") && said.contains("zoo:elastic-16,profiled"), "{said}");
}

/// An import that left rows out is no success, unless the user says that it may leave them out.
#[test]
fn an_import_with_refused_rows_ends_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let listing = "JobID|Submit|ElapsedRaw|TimelimitRaw|AllocTRES|User\n\
        11|2026-10-01T08:30:10|3600|120|cpu=8,gres/gpu=4|ann\n12|2026-10-01T08:31:00|0|60||bob\n";
    fs::write(dir.path().join("jobs.txt"), listing).unwrap();
    let import = |more: &[&str]| crate::support::run(dir.path(), &[&["data", "import", "jobs.txt"], more].concat());
    let (code, _, said) = import(&[]);
    assert!(code == 3 && said.contains("1 row kept, 0 repaired, 1 refused"), "{code} {said}");
    assert_eq!(import(&["--allow-refused"]).0, 0);
    let (code, rows, said) =
        crate::support::run(dir.path(), &["sim", "--workload", "jobs.parquet", "--cluster", "1x4", "--policy", "easy"]);
    assert!(code == 0 && rows.contains("11 "), "{said}");
}
