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

#[test]
fn what_a_forecast_is_worth_has_a_row_for_every_cell_and_every_rule() {
    let dir = tempfile::tempdir().unwrap();
    let load = |step: i64| 20.0 + if (8..16).contains(&(step % 24)) { 60.0 } else { (step * 7_919 % 11) as f64 };
    let rows: String = (0..24 * 16).map(|step| format!("{},{}\n", step * 3600, load(step))).collect();
    fs::write(dir.path().join("load.csv"), format!("t_s,rate\n{rows}")).unwrap();
    let study = "cold_start_secs = [60, 3600]\ntargets = [0.95, 0.99]\n[[loads]]\nname = \"day\"\n\
                 series = { path = \"load.csv\" }\nknown_days = 6\nvalidation_days = 5\n";
    fs::write(dir.path().join("worth.toml"), study).unwrap();
    assert_eq!(run(dir.path(), &["config", "check", "worth.toml"]).0, 0);
    let (code, cells, said) = run(dir.path(), &["forecast", "worth", "worth.toml", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    // A cold start of a minute is too short for a series of hours.
    let cells: Vec<Vec<&str>> = cells.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(cells.len(), 1 + 2, "{cells:?}");
    let column = |name: &str| cells[0].iter().position(|column| *column == name).unwrap();
    let of = |row: usize, name: &str| cells[row][column(name)].parse::<f64>().unwrap();
    assert_eq!(cells[1][column("cold_start_s")], "3600");
    assert!(of(2, "decide_hindsight") >= of(2, "least_hours_a_day"), "{cells:?}");
    let (_, rules, _) = run(dir.path(), &["forecast", "worth", "worth.toml", "--rules", "-o", "csv"]);
    assert_eq!(rules.lines().count(), 1 + 2 * 9, "{rules}");
    // Eight of 24 hours are high, which is known a day before: by the last value the peak is held all day.
    let at_99 = |rule: &str| {
        let row = rules.lines().find(|row| row.starts_with(&format!("day,3600,0.99,{rule},"))).unwrap();
        row.split(',').nth(7).unwrap().parse::<f64>().unwrap()
    };
    assert!(at_99("decide") < 0.8 * at_99("reactive"), "{rules}");
    assert_eq!(run(dir.path(), &["forecast", "worth", "worth.toml", "--rules", "-o", "csv"]).1, rules, "same bytes");
    let (code, _, said) = run(dir.path(), &["forecast", "worth", "worth.toml", "--set", "folder=nowhere"]);
    assert!(code == 2 && plain(&said).contains("--set folder=FOLDER"), "{said}");
    fs::write(dir.path().join("worth.toml"), study.replace("known_days = 6", "known_days = 60")).unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "worth", "worth.toml"]);
    assert!(code == 2 && said.contains("16.0 days"), "{said}");
}
