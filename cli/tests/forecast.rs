//! `goodput forecast` from a table to a page.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use crate::support::{hourly_load, plain, run};

/// Ten days of an hourly load with a gap, and a study of it.
fn study() -> tempfile::TempDir {
    let dir = hourly_load(240, Some(100));
    let study =
        "[series]\npath = \"load.csv\"\nzeros_are_gaps = true\n[lending]\naccelerators = 20\nlease_hours = 2.0\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    dir
}

#[test]
fn a_fitted_forecaster_predicts_rising_quantiles() {
    let dir = study();
    assert_eq!(run(dir.path(), &["forecast", "fit", "study.toml", "--to", "fitted.json"]).0, 0);
    let (code, rows, said) =
        run(dir.path(), &["forecast", "predict", "fitted.json", "--hours", "6", "--levels", "0.1,0.9", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    let rows: Vec<Vec<f64>> =
        rows.lines().skip(1).map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[0][0], 240.0 * 3_600_000.0, "the step after the last one");
    assert!(rows.chunks(2).all(|pair| pair[0][2] <= pair[1][2]), "{rows:?}");
}

#[test]
fn a_comparison_has_a_row_a_model_and_distance_and_a_page_with_pictures() {
    let dir = study();
    let (code, rows, said) =
        run(dir.path(), &["forecast", "compare", "study.toml", "--report", "page.html", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(rows.lines().count(), 1 + 3 * 16, "{rows}");
    assert!(rows.lines().nth(1).unwrap().starts_with("default,1,"), "{rows}");
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    for part in ["Forecast with quantile bands", "Calibration", "Lending frontier", "oracle", "reactive"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("NaN"), "a picture with no number");
    let origin = page.split_once("How this page was made").unwrap().1;
    for part in ["<pre>goodput forecast compare study.toml</pre>", "<p>goodput 0.", "lease_hours = 2.0"] {
        assert!(origin.contains(part), "{part}");
    }
    let again = dir.path().join("again.html");
    run(dir.path(), &["forecast", "compare", "study.toml", "--report", "again.html"]);
    assert_eq!(fs::read_to_string(again).unwrap(), page, "same study, same bytes");
}

#[test]
fn mistakes_are_named() {
    let dir = study();
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "study.toml", "--set", "series.path=none.csv"]);
    assert!(code == 2 && said.contains("none.csv"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "study.toml", "--set", "series.colum=x"]);
    assert!(code == 2 && said.contains("unknown key `colum`"), "{said}");
    fs::write(dir.path().join("bad.json"), "{}").unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "predict", "bad.json"]);
    assert!(code == 2 && plain(&said).contains("forecast fit"), "{said}");
    let (code, _, said) =
        run(dir.path(), &["forecast", "backtest", "study.toml", "--set", "backtest.initial_share=1.0"]);
    assert!(code == 2 && said.contains("study.toml:") && said.contains("below 1"), "{said}");
    let (code, _, said) =
        run(dir.path(), &["forecast", "backtest", "study.toml", "--set", "backtest.initial_share=0.999"]);
    assert!(code == 2 && said.contains("too short"), "{said}");
    fs::write(dir.path().join("bad.csv"), "t_s,rate\n0,1\n600,lots\n1200,3\n").unwrap();
    let (code, _, said) = run(
        dir.path(),
        &["forecast", "backtest", "study.toml", "--set", "series.path=bad.csv", "--set", "series.column=rate"],
    );
    assert!(code == 2 && said.contains("bad.csv:3") && said.contains("lots"), "{said}");
    let (code, _, said) = run(dir.path(), &["config", "check", "study.toml"]);
    assert!(code == 0 && said.contains("ok"), "{said}");
}
