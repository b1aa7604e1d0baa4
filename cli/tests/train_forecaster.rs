//! `goodput train` of a forecaster, and its bundle in `goodput forecast`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use crate::support::{hourly_load, plain, run};

/// Twenty days of an hourly load, a study of it and a small net for it.
fn place() -> tempfile::TempDir {
    let dir = hourly_load(480, None);
    let study = "[series]\npath = \"load.csv\"\n[backtest]\ninitial_share = 0.7\nstride_hours = 6.0\n\
                 [lending]\naccelerators = 20\nlease_hours = 2.0\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    let tiny = "name = \"tiny\"\n[series]\npath = \"load.csv\"\n[forecaster.nhits]\npools = [4, 2, 1]\nrates = [12, 4, 1]\n\
                width = 16\nlayers = 2\n[window]\nlevels = [0.1, 0.5, 0.9]\n[data]\nknown_share = 0.7\n\
                [train]\nsteps = 60\nbatch = 16\nvalidate_every = 20\n";
    fs::write(dir.path().join("tiny.toml"), tiny).unwrap();
    dir
}

fn predicted(dir: &Path, bundle: &str) -> String {
    let levels = ["--hours", "6", "--levels", "0.1,0.5,0.9", "-o", "csv"];
    let (code, rows, said) =
        run(dir, &[&["forecast", "predict", bundle, "--study", "study.toml"], &levels[..]].concat());
    assert_eq!(code, 0, "{said}");
    rows
}

#[test]
fn a_trained_forecaster_is_a_bundle_that_predicts_and_is_compared() {
    let dir = place();
    let (code, _, said) = run(dir.path(), &["train", "tiny.toml"]);
    assert_eq!(code, 0, "{said}");
    let made = dir.path().join("runs/tiny/1");
    for file in [
        "config.toml",
        "manifest.json",
        "progress.csv",
        "tb",
        "checkpoints/forecaster.safetensors",
        "forecaster.bundle",
    ] {
        assert!(made.join(file).exists(), "{file}");
    }
    let progress = fs::read_to_string(made.join("progress.csv")).unwrap();
    assert_eq!(progress.lines().count(), 1 + 3, "{progress}");
    let rows = predicted(dir.path(), "runs/tiny/1/forecaster.bundle");
    assert_eq!(rows.lines().count(), 1 + 6 * 3, "{rows}");
    assert!(rows.lines().nth(1).unwrap().starts_with(&format!("{},0.1,", 480 * 3_600_000)), "{rows}");

    // One file trains one net, and a finished run that is resumed stays as it is.
    assert_eq!(run(dir.path(), &["train", "tiny.toml", "--run-dir", "again"]).0, 0);
    assert_eq!(predicted(dir.path(), "again/forecaster.bundle"), rows);
    assert_eq!(run(dir.path(), &["train", "--resume", "again"]).0, 0);
    assert_eq!(predicted(dir.path(), "again/forecaster.bundle"), rows);

    let bundle = ["--bundle", "runs/tiny/1/forecaster.bundle"];
    let (code, rows, said) =
        run(dir.path(), &[&["forecast", "compare", "study.toml", "-o", "csv"], &bundle[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(rows.lines().filter(|row| row.starts_with("tiny,")).count(), 3, "{rows}");
    let (code, _, said) =
        run(dir.path(), &[&["forecast", "fit", "study.toml", "--to", "f.json"], &bundle[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(run(dir.path(), &["forecast", "predict", "f.json"]).0, 0);
}

#[test]
fn a_net_of_all_series_is_trained_on_many_and_fits_a_series_of_another_step() {
    let dir = place();
    let many = "name = \"many\"\n[synthetic]\nseries = 4\ndays = 12\n[forecaster.global]\nwidth = 8\nlayers = 1\n\
                [window]\nlookback_hours = 168.0\nhorizon_hours = 24.0\ncentre = \"own\"\nlevels = [0.1, 0.5, 0.9]\n\
                [data]\nknown_share = 1.0\n[train]\nsteps = 20\nbatch = 4\nvalidate_every = 10\n";
    fs::write(dir.path().join("many.toml"), many).unwrap();
    let (code, _, said) = run(dir.path(), &["train", "many.toml"]);
    assert_eq!(code, 0, "{said}");
    // The net was trained on steps of ten minutes, and the series has steps of an hour.
    let bundle = ["--bundle", "runs/many/1/forecaster.bundle"];
    let (code, rows, said) =
        run(dir.path(), &[&["forecast", "compare", "study.toml", "-o", "csv"], &bundle[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(rows.lines().filter(|row| row.starts_with("many,")).count(), 3, "{rows}");
    assert_eq!(predicted(dir.path(), "runs/many/1/forecaster.bundle").lines().count(), 1 + 6 * 3);
    let (code, _, said) = run(dir.path(), &["train", "many.toml", "--set", "synthetic.days=3"]);
    assert!(code == 2 && said.contains("10 to 366"), "{said}");
    // What is kept out for a test has to be there: a slip of the pen would train on it.
    let (code, _, said) = run(dir.path(), &["train", "many.toml", "--set", "keep_out=[\"load:rate\"]"]);
    assert!(code == 2 && plain(&said).contains("none without [[sources]]"), "{said}");
    let days = (0..144 * 12).map(|step| format!("{},{}\n", step * 600, 20 + step % 144)).collect::<String>();
    fs::write(dir.path().join("ten.csv"), format!("t_s,rate\n{days}")).unwrap();
    let kept = |pattern: &str| {
        let text = format!("keep_out = [\"{pattern}\"]\n{many}[[sources]]\npath = \"ten.csv\"\ncolumn = \"rate\"\n");
        fs::write(dir.path().join("kept.toml"), text).unwrap();
        run(dir.path(), &["train", "kept.toml", "--run-dir", "kept"])
    };
    let (code, _, said) = kept("ten:rat");
    assert!(code == 2 && plain(&said).contains("a pattern that fits a series"), "{said}");
    let (code, _, said) = kept("ten:rate");
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_study_of_a_series_that_a_net_was_trained_on_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let load = |step: i64| 20 + step % 144 / 12;
    let rows: String = (0..144 * 12).map(|step| format!("{},{}\n", step * 600, load(step))).collect();
    let study = |stem: &str| {
        fs::write(dir.path().join(format!("{stem}.csv")), format!("t_s,m-mid__100\n{rows}")).unwrap();
        let text =
            format!("[series]\npath = \"{stem}.csv\"\ncolumn = \"m-mid__100\"\n[backtest]\nstride_hours = 24.0\n");
        fs::write(dir.path().join("study.toml"), text).unwrap();
        run(dir.path(), &["forecast", "backtest", "study.toml", "--bundle", "zoo:load"])
    };
    let (code, _, said) = study("servegen_language_clients_rate_10min");
    assert!(
        code == 2 && plain(&said).contains("was trained on servegen_language_clients_rate_10min:m-mid__100"),
        "{said}"
    );
    let (code, _, said) = study("mine");
    assert_eq!(code, 0, "{said}");
}

/// Cluster with a service under the load of the study, and a forecaster made for that load.
fn cluster(dir: &Path, saved: &str) {
    let text = format!(
        "name = \"lend\"\n[[cluster.groups]]\nnodes = 2\ngpus_per_node = 4\npool = \"training\"\n\
         [[cluster.groups]]\nnodes = 4\ngpus_per_node = 4\npool = \"inference\"\n\
         [workload.synthetic.diurnal]\njobs = 60\njobs_per_hour = 2.0\nstart_hour = 0.0\n\
         lengths = {{ median_secs = 4000.0, sigma = 0.8, widths = [[1, 1.0], [2, 1.0], [4, 1.0]] }}\n[environment]\non_churn = true\n\
         switch_cost = \"pollux_const\"\ninformation = \"oracle\"\n[forecaster]\n{saved}\n[[services]]\nname = \"web\"\n\
         profiles = {{ gpu = [[1, 10.0]] }}\nslo = {{ latency_ms = 100 }}\ncold_start_secs = 600.0\n\
         load = {{ file = {{ path = \"load.csv\", scale = 5.0 }} }}\n[evaluate]\npolicies = [\"aryl+forecast\"]\nseeds = 1\n"
    );
    fs::write(dir.join("lend.toml"), text).unwrap();
}

#[test]
fn a_bundle_drives_a_cluster_or_is_told_why_it_does_not_fit() {
    let dir = place();
    assert_eq!(run(dir.path(), &["train", "tiny.toml", "--run-dir", "net"]).0, 0);
    let eval = |saved: &str| {
        cluster(dir.path(), saved);
        run(dir.path(), &["eval", "lend.toml", "--run-dir", "out", "-q", "-o", "csv"])
    };
    let net = "saved = { web = \"net/forecaster.bundle\" }";
    // Replicas and their answers follow the forecast under every training policy.
    let summary = |saved: &str| {
        let (code, _, said) = eval(saved);
        assert_eq!(code, 0, "{said}");
        fs::read_to_string(dir.path().join("out/summary.json")).unwrap()
    };
    let found = summary(net);
    assert_eq!(summary(net), found, "the same again");
    assert_ne!(summary(""), found, "the default says something else");

    let refused = |saved: &str, what: &str| {
        let (code, _, said) = eval(saved);
        let said = plain(&said);
        assert!(code == 2 && said.contains("forecaster.saved") && said.contains(what), "{what}: {said}");
    };
    refused("saved = { search = \"net/forecaster.bundle\" }", "expected web");
    refused("saved = { web = \"nowhere.bundle\" }", "cannot read");
    refused("saved = { web = \"load.csv\" }", "not a sound forecaster bundle");
    let coarse = ["train", "tiny.toml", "--run-dir", "coarse", "--set", "series.step_secs=7200.0"];
    let (code, _, said) = run(dir.path(), &[&coarse[..], &["--set", "train.steps=2"]].concat());
    assert_eq!(code, 0, "{said}");
    refused("saved = { web = \"coarse/forecaster.bundle\" }", "its steps are 7200000 ms");
}

#[test]
fn the_shipped_file_is_sound_and_shows_its_defaults() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/forecast/nhits.toml");
    let dir = place();
    assert_eq!(run(dir.path(), &["config", "check", shipped]).0, 0);
    let (code, text, said) = run(dir.path(), &["config", "show", shipped]);
    assert!(code == 0 && text.contains("processor = \"cpu\""), "{text}{said}");
}

#[test]
fn a_checkpoint_continues_to_the_same_net() {
    let dir = place();
    assert_eq!(run(dir.path(), &["train", "tiny.toml", "--set", "checkpoint_every=25", "--run-dir", "a"]).0, 0);
    let whole = predicted(dir.path(), "a/forecaster.bundle");
    fs::create_dir_all(dir.path().join("b/checkpoints")).unwrap();
    for file in ["config.toml", "manifest.json"] {
        fs::copy(dir.path().join("a").join(file), dir.path().join("b").join(file)).unwrap();
    }
    let (code, _, said) = run(dir.path(), &["train", "--resume", "b"]);
    assert_eq!(code, 0, "{said}");
    // Equal bundles name equal commands: that of the start, with its overrides, and not the one that resumed it.
    let bundle = |run: &str| fs::read(dir.path().join(run).join("forecaster.bundle")).unwrap();
    let holds = |text: &str| bundle("b").windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("checkpoint_every=25") && !holds("--resume"));
    assert!(bundle("a") == bundle("b"), "a bundle tells whether its run was resumed");
    assert_eq!(predicted(dir.path(), "b/forecaster.bundle"), whole, "from no checkpoint, the beginning");
    fs::write(
        dir.path().join("b/config.toml"),
        fs::read_to_string(dir.path().join("a/config.toml")).unwrap() + "\n# changed\n",
    )
    .unwrap();
    let (code, _, said) = run(dir.path(), &["train", "--resume", "b"]);
    assert!(code == 2 && said.contains("another configuration"), "{said}");
}

#[test]
fn mistakes_are_named_with_their_place() {
    let dir = place();
    assert_eq!(run(dir.path(), &["train", "tiny.toml"]).0, 0);
    let bundle = ["--bundle", "runs/tiny/1/forecaster.bundle"];
    let backtest = ["forecast", "backtest", "study.toml", "--set", "backtest.initial_share=0.5"];
    let (code, _, said) = run(dir.path(), &[&backtest[..], &bundle[..]].concat());
    assert!(code == 2 && said.contains("initial_share to at least 0.7"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "predict", "runs/tiny/1/forecaster.bundle"]);
    assert!(code == 2 && said.contains("--study"), "{said}");
    let set = |key: &str| run(dir.path(), &["train", "tiny.toml", "--run-dir", "bad", "--set", key]);
    let (code, _, said) = set("forecaster.nhits.pools=[5,1,1]");
    assert!(code == 2 && said.contains("tiny.toml:") && said.contains("divisors of the lookback of 48"), "{said}");
    let (code, _, said) = set("data.known_share=0");
    assert!(code == 2 && said.contains("tiny.toml:12") && said.contains("above 0"), "{said}");
    let (code, _, said) = set("train.stepz=3");
    assert!(code == 2 && said.contains("unknown key `stepz`"), "{said}");
    let (code, _, said) = set("data.known_share=0.05");
    assert!(code == 2 && said.contains("too few for one window"), "{said}");
    let (code, _, said) = set("train.processor=gpu");
    let said = plain(&said);
    assert!(code == 2 && said.contains("--features wgpu") && said.contains("processor"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "tiny.toml"]);
    assert!(code == 2 && said.contains("goodput train FILE"), "{said}");
    fs::write(dir.path().join("study2.toml"), "[series]\npath = \"load.csv\"\nstep_secs = 7200.0\n").unwrap();
    let (code, _, said) = run(dir.path(), &[&["forecast", "backtest", "study2.toml"], &bundle[..]].concat());
    assert!(code == 2 && said.contains("was trained on steps of 3600 s"), "{said}");
}
