//! Panels: long and wide tables, csv and Parquet.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use goodput_datasets::DataError;
use goodput_datasets::import::panel::{SeriesPanel, UNIQUE_ID, parse};
use goodput_datasets::import::series::SeriesOptions;
use goodput_datasets::store::{Column, Table, Values};

const LONG: &str = "unique_id,ds,y\na,2014-07-01 00:00:00,1\na,2014-07-01 01:00:00,2\nb,2014-07-01 00:30:00,5\n\
                    b,2014-07-01 01:00:00,6\na,2014-07-01 03:00:00,4\n";

fn values(panel: &SeriesPanel) -> Vec<(Option<&str>, Vec<Option<f64>>)> {
    panel.series.iter().map(|series| (series.id.as_deref(), series.series.iter().collect())).collect()
}

fn read(bytes: &[u8], ids: &[&str]) -> Result<SeriesPanel, DataError> {
    let ids: Vec<String> = ids.iter().map(|&id| id.into()).collect();
    parse(Path::new("x.csv"), bytes, &SeriesOptions::default(), &ids)
}

#[test]
fn a_long_table_has_a_series_for_every_name_with_steps_of_its_own() {
    let panel = read(LONG.as_bytes(), &[]).unwrap();
    let a = (Some("a"), vec![Some(1.0), Some(2.0), None, Some(4.0)]);
    assert_eq!(values(&panel), [a.clone(), (Some("b"), vec![Some(5.0), Some(6.0)])]);
    assert_eq!((panel.series[1].series.step_millis(), panel.dated), (1_800_000, true));
    assert_eq!(values(&read(LONG.as_bytes(), &["a*"]).unwrap()), [a]);
    let said = read(LONG.as_bytes(), &["c"]).unwrap_err().to_string();
    assert!(said.contains("no series `c`; found a, b"), "{said}");
}

#[test]
fn whole_numbers_of_steps_are_times_and_a_bad_row_has_its_line() {
    let text = "unique_id,ds,y\na,1,1\na,2,2\nb,1,x\nb,2,4\nb,3,5\n";
    let panel = read(text.as_bytes(), &[]).unwrap();
    assert_eq!((panel.series[0].series.step_millis(), panel.dated), (1000, false));
    assert_eq!(panel.report.refused.examples[0].0, 4);
}

#[test]
fn a_wide_table_has_a_series_for_every_column_that_is_named() {
    let text = "t_s,x1,x2,z\n0,1,2,3\n600,4,,6\n1200,7,8,9\n";
    let panel = read(text.as_bytes(), &["x*"]).unwrap();
    assert_eq!(
        values(&panel),
        [(Some("x1"), vec![Some(1.0), Some(4.0), Some(7.0)]), (Some("x2"), vec![Some(2.0), None, Some(8.0)])]
    );
    assert_eq!(values(&read(text.as_bytes(), &[]).unwrap()), [(None, vec![Some(1.0), Some(4.0), Some(7.0)])]);
}

#[test]
fn parquet_with_moments_is_read_as_csv_is() {
    let minutes = |minute: i64| 1_404_172_800_000 + minute * 60_000;
    let table = Table::new(vec![
        Column::new(UNIQUE_ID, ["a", "a", "b", "b", "a"].map(str::to_owned).to_vec()),
        Column::new("ds", Values::Moments([0, 60, 30, 60, 180].map(|at| Some(minutes(at))).to_vec())),
        Column::new("y", vec![1.0, 2.0, 5.0, 6.0, 4.0]),
    ]);
    let bytes = table.to_parquet(Path::new("x.parquet")).unwrap();
    let (read, csv) = (read(&bytes, &[]).unwrap(), read(LONG.as_bytes(), &[]).unwrap());
    assert_eq!(values(&read), values(&csv));
    assert_eq!(read.series[0].series, csv.series[0].series);
    assert!(read.dated);
}
