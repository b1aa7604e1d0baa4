//! `goodput forecast` from a table to a page.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::{fs, iter, thread};

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
    assert!(!page.split("<script>").next().unwrap().contains("NaN"), "a picture with no number");
    let origin = page.split_once("How this page was made").unwrap().1;
    for part in ["<pre>goodput forecast compare study.toml</pre>", "<p>goodput 0.", "lease_hours = 2.0"] {
        assert!(origin.contains(part), "{part}");
    }
    let again = dir.path().join("again.html");
    run(dir.path(), &["forecast", "compare", "study.toml", "--report", "again.html"]);
    assert_eq!(fs::read_to_string(again).unwrap(), page, "same study, same bytes");
}

#[test]
fn a_backtest_has_the_naive_forecasts_beside_ours_and_says_what_mase_is() {
    let dir = study();
    let (code, rows, said) = run(dir.path(), &["forecast", "backtest", "study.toml"]);
    assert_eq!(code, 0, "{said}");
    let models: Vec<&str> = rows.lines().skip(1).map(|row| row.split_whitespace().next().unwrap()).collect();
    assert_eq!(models, ["default", "naive", "day", "week"].repeat(3));
    assert!(plain(&said).contains("the value of one day before"), "{said}");
}

/// Two series of one panel in the form of Nixtla's libraries, hourly for twelve days, and a study of it.
fn panel(dates: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut table = String::from("unique_id,ds,y\n");
    for (id, scale) in [("a", 1.0), ("b", 20.0)] {
        for hour in 0..24 * 12 {
            let time = match dates {
                true => format!("2026-03-{:02} {:02}:00:00", 1 + hour / 24, hour % 24),
                false => format!("{hour}"),
            };
            let load = 50.0 + 20.0 * (hour as f64 * std::f64::consts::TAU / 24.0).sin() + (hour * 7_919 % 11) as f64;
            table += &format!("{id},{time},{}\n", scale * load);
        }
    }
    fs::write(dir.path().join("panel.csv"), table).unwrap();
    let day = if dates { "" } else { "[model]\nday_steps = 24\n" };
    fs::write(dir.path().join("panel.toml"), format!("[series]\npath = \"panel.csv\"\n{day}")).unwrap();
    dir
}

#[test]
fn a_panel_has_rows_a_series_and_their_mean_and_its_forecasts_are_a_table() {
    for dates in [true, false] {
        let dir = panel(dates);
        let tell = ["forecast", "backtest", "panel.toml", "--forecasts", "all.csv", "-o", "csv"];
        let (code, rows, said) = run(dir.path(), &tell);
        assert_eq!(code, 0, "{said}");
        let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
        assert_eq!(rows.len(), 1 + 3 * 3 * 4, "{rows:?}");
        let mase = |id: &str, model: &str| -> f64 {
            let row = rows.iter().find(|row| row[..3] == [id, model, "24"]).unwrap();
            row[3].parse().unwrap()
        };
        assert!((mase("a", "default") - mase("b", "default")).abs() < 0.05, "{rows:?}");
        let mean = 0.5 * (mase("a", "day") + mase("b", "day"));
        assert!((mase("mean", "day") - mean).abs() < 1e-3, "{rows:?}");
        let table = fs::read_to_string(dir.path().join("all.csv")).unwrap();
        let mut lines = table.lines();
        assert!(lines.next().unwrap().starts_with("unique_id,cutoff,ds,model,y,point,q0.01,q0.05,"), "{table}");
        // The first origin is at 65 % of 288 steps: it knows step 186, and forecasts step 187.
        let begin = if dates { "a,2026-03-08 18:00:00,2026-03-08 19:00:00,default," } else { "a,186,187,default," };
        assert!(lines.next().unwrap().starts_with(begin), "{}", table.lines().nth(1).unwrap());
        let origins = (288 - 187 - 24) + 1;
        assert_eq!(table.lines().count(), 1 + 2 * 4 * origins * 24);
    }
}

#[test]
fn the_forecasts_of_a_panel_are_a_panel_in_parquet() {
    let dir = panel(true);
    let tell = ["forecast", "backtest", "panel.toml", "--forecasts", "all.parquet", "--set", "series.ids=[\"b\"]"];
    assert_eq!(run(dir.path(), &tell).0, 0);
    let table = goodput_datasets::store::Table::read_parquet(&dir.path().join("all.parquet")).unwrap();
    assert_eq!(table.column("ds").unwrap().kind(), "moments");
    // The table can be read as a panel again: what came, by step.
    let again = "[series]\npath = \"all.parquet\"\n";
    fs::write(dir.path().join("again.toml"), again).unwrap();
    assert_eq!(run(dir.path(), &["forecast", "backtest", "again.toml", "-o", "csv"]).0, 0);
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "panel.toml", "--forecasts", "all.txt"]);
    assert!(code == 2 && said.contains(".parquet"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "panel.toml", "--report", "page.html"]);
    assert!(code == 2 && plain(&said).contains("series.ids"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "panel.toml", "--set", "series.ids=[\"c\"]"]);
    assert!(code == 2 && plain(&said).contains("found a, b"), "{said}");
}

/// Eight weeks of an hourly load that a release moves up by half on every ninth day, and a daily table of releases
/// that reaches two days further.
fn released() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let release = |day: usize| usize::from(day % 9 == 4);
    let (mut load, mut releases) = (String::from("ds,y\n"), String::from("ds,release\n"));
    for hour in 0..24 * 56 {
        let shape = 100.0 + 40.0 * (hour as f64 * std::f64::consts::TAU / 24.0).sin() + (hour * 7_919 % 11) as f64;
        let load_now = shape * (1.0 + 0.5 * release(hour / 24) as f64);
        load += &format!("{},{load_now}\n", 3600 * hour);
    }
    for day in 0..58 {
        releases += &format!("{},{}\n", 86_400 * day, release(day));
    }
    fs::write(dir.path().join("load.csv"), load).unwrap();
    fs::write(dir.path().join("releases.csv"), releases).unwrap();
    let study = "[series]\npath = \"load.csv\"\n[covariates]\npath = \"releases.csv\"\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    dir
}

#[test]
fn covariates_halve_the_error_of_a_load_that_they_move_and_reach_into_the_forecast() {
    let dir = released();
    let (code, rows, said) = run(dir.path(), &["forecast", "backtest", "study.toml", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    let mase = |model: &str| -> f64 {
        let row = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
        row.into_iter().find(|row| row[..2] == [model, "24"]).unwrap()[2].parse().unwrap()
    };
    assert!(mase("default") < 0.5 * mase("without_covariates"), "{rows}");
    assert_eq!(run(dir.path(), &["forecast", "fit", "study.toml", "--to", "fitted.json"]).0, 0);
    let predict = |hours| run(dir.path(), &["forecast", "predict", "fitted.json", "--hours", hours, "-o", "csv"]);
    assert_eq!(predict("48").0, 0);
    let (code, _, said) = predict("49");
    assert!(code == 2 && plain(&said).contains("covariate `release` has no value"), "{said}");
    assert!(plain(&said).contains("add rows to the table of covariates"), "{said}");
    let gap = fs::read_to_string(dir.path().join("releases.csv")).unwrap().replace("691200,0\n", "691200,\n");
    fs::write(dir.path().join("releases.csv"), gap).unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "study.toml"]);
    assert!(code == 2 && plain(&said).contains("`release` has no value"), "{said}");
}

#[test]
fn covariates_that_cannot_be_are_refused_by_the_check() {
    let dir = released();
    let of = |keys: &str| {
        fs::write(dir.path().join("other.toml"), format!("[series]\npath = \"load.csv\"\n[covariates]\n{keys}\n"))
            .unwrap();
        let (code, _, said) = run(dir.path(), &["config", "check", "other.toml"]);
        (code, plain(&said))
    };
    for (keys, named) in [
        ("", "covariates"),
        ("holidays = [\"2026-02-30\"]", "covariates.holidays"),
        ("columns = [\"release\"]", "covariates.columns"),
        ("path = \"load.csv\"", "covariates.columns"),
        ("path = \"load.csv\"\ncolumns = [\"y\"]", "covariates.columns"),
        ("holidays = [\"2026-02-03\"]\n[lending]\naccelerators = 2\nlease_hours = 1.0", "lending"),
    ] {
        let (code, said) = of(keys);
        assert!(code == 2 && said.contains(named), "{keys}: {code} {said}");
    }
    assert_eq!(of("path = \"absent.csv\"").0, 0, "the check opens no table");
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "other.toml"]);
    assert!(code == 2 && plain(&said).contains("absent.csv") && said.contains("[covariates]"), "{said}");
    assert_eq!(of("holidays = [\"2026-02-03\"]").0, 0);
}

#[test]
fn a_panel_is_fitted_into_a_folder_and_predicted_from_it() {
    let dir = panel(true);
    assert_eq!(run(dir.path(), &["forecast", "fit", "panel.toml", "--to", "fitted"]).0, 0);
    let (code, rows, said) = run(dir.path(), &["forecast", "predict", "fitted", "--hours", "2", "-o", "csv"]);
    assert_eq!(code, 0, "{said}");
    let ids: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(ids, [["a"; 6], ["b"; 6]].concat());
}

#[test]
fn a_season_is_named_or_found_and_a_short_series_repeats_its_last_value() {
    let dir = panel(false);
    let with = |sets: &[&str]| {
        let mut tell = vec!["forecast", "backtest", "panel.toml", "-o", "csv", "--set", "series.ids=[\"a\"]"];
        sets.iter().for_each(|set| tell.extend(["--set", set]));
        run(dir.path(), &tell)
    };
    // A season of 24 steps is found, and scales MASE as the named one does.
    let (found, named) = (with(&["model.season=\"detected\""]), with(&[]));
    assert_eq!((found.0, found.1), (0, named.1));
    let (code, _, said) = with(&["model.season=\"hour\"", "model.day_steps=25"]);
    assert!(code == 2 && said.contains("one hour is not a whole number"), "{said}");
    // With less than a day before the first origin, the forecaster is the last value, and nothing is certain.
    let (code, rows, said) = with(&["model.day_steps=200", "backtest.horizon_hours=1.0"]);
    assert_eq!(code, 0, "{said}");
    let of = |model: &str| rows.lines().find(|row| row.starts_with(&format!("a,{model},"))).unwrap();
    let cells = |model: &str| of(model).split(',').skip(3).take(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells("default"), cells("naive"));
    assert!(of("naive").ends_with(",,"), "no interval of one block: {}", of("naive"));
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
fn a_sample_of_another_name_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("study.toml"), "[series]\npath = \"sample:lod\"\n").unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "backtest", "study.toml"]);
    assert!(code == 2 && plain(&said).contains("the sample of a load is sample:load"), "{said}");
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
    // A cold start of a minute is too short for a series of hours.
    assert!(code == 0 && plain(&said).contains("day is left out at 60 s"), "{said}");
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
        let row = rules.lines().find(|row| row.starts_with(&format!("day,3600,0,0,0.99,{rule},"))).unwrap();
        row.split(',').nth(9).unwrap().parse::<f64>().unwrap()
    };
    assert!(at_99("decide") < 0.8 * at_99("reactive"), "{rules}");
    assert_eq!(run(dir.path(), &["forecast", "worth", "worth.toml", "--rules", "-o", "csv"]).1, rules, "same bytes");
    // Without a lease, or without a cost of recalls, there is one row for all of them.
    let loans = ["forecast", "worth", "worth.toml", "-o", "csv", "--set", "lease_secs=[0,7200]", "--set"];
    let (code, lent, said) = run(dir.path(), &[&loans[..], &["recall_secs=[0,36000]"]].concat());
    assert_eq!((code, lent.lines().count()), (0, 1 + 2 * 2), "{lent}{said}");
    let hours =
        |row: usize| lent.lines().nth(row).unwrap().split(',').nth(column("decide_hindsight")).unwrap().to_owned();
    assert!(hours(4).parse::<f64>().unwrap() > hours(2).parse::<f64>().unwrap(), "recalls cost: {lent}");
    let (code, _, said) = run(dir.path(), &[&loans[..], &["recall_secs=[-1]"]].concat());
    assert!(code == 2 && plain(&said).contains("0 to 604800 seconds"), "{said}");
    let (code, _, said) = run(dir.path(), &["forecast", "worth", "worth.toml", "--set", "folder=nowhere"]);
    assert!(code == 2 && plain(&said).contains("--set folder=FOLDER"), "{said}");
    fs::write(dir.path().join("worth.toml"), study.replace("known_days = 6", "known_days = 60")).unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "worth", "worth.toml"]);
    assert!(code == 2 && said.contains("16.0 days"), "{said}");
    let empty: String = (0..24 * 16).map(|step| format!("{},0\n", step * 3600)).collect();
    fs::write(dir.path().join("load.csv"), format!("t_s,rate\n{empty}")).unwrap();
    fs::write(dir.path().join("worth.toml"), study).unwrap();
    let (code, _, said) = run(dir.path(), &["forecast", "worth", "worth.toml"]);
    assert!(code == 2 && plain(&said).contains("day is 0 on 99 of 100 steps"), "{said}");
}

/// An HTTP server that gives every request after the first, which asks for the time, `answer` as its data.
fn prometheus(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let data = iter::once(r#"{"resultType":"scalar","result":[1.7e9,"1.7e9"]}"#).chain(iter::repeat(answer));
        for (stream, data) in listener.incoming().zip(data) {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            // The requests of the program are shorter than a packet.
            let _ = stream.read(&mut request).unwrap();
            let body = format!(r#"{{"status":"success","data":{data}}}"#);
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    address
}

#[test]
fn a_query_with_two_series_is_told_with_its_place_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(dir.path(), &["init", "forecast/serve"]).0, 0);
    assert_eq!(run(dir.path(), &["config", "check", "serve.toml"]).0, 0);
    let two = r#"{"resultType":"matrix","result":[{"metric":{},"values":[]},{"metric":{},"values":[]}]}"#;
    let url = format!("prometheus.url=http://{}", prometheus(two));
    let (code, _, said) = run(dir.path(), &["forecast", "serve", "serve.toml", "--set", &url]);
    let said = plain(&said);
    assert!(
        code == 2 && said.contains("service \"chat\": the query gives 2 series, expected one: put sum(...)"),
        "{said}"
    );
    assert!(said.contains("serve.toml:15:"), "{said}");
}
