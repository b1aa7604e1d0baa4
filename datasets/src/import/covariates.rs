//! Covariates of load series: tables of values by time, and dates of holidays.

use std::path::Path;

use goodput_forecast::Series;
use goodput_forecast::calendar::MILLIS_PER_DAY;
use goodput_forecast::covariates::NamedSeries;

use super::dates;
use super::panel::{self, UNIQUE_ID};
use super::series::{SeriesOptions, TIMES};
use crate::csv_rows::first_line;
use crate::error::DataError;

/// Name of the covariate that dates of holidays become.
pub const HOLIDAY: &str = "holiday";
/// Column of the load in tables of Nixtla's libraries, which is no covariate.
const LOAD: &str = "y";

/// First millisecond since 1970 of a day that is written as `2026-12-25`; `None` where the text is no such day.
pub fn epoch_millis_of_day(day: &str) -> Option<i64> {
    let whole = (day.len() == 10).then(|| format!("{day} 00:00:00"))?;
    dates::seconds(whole.as_bytes()).map(|secs| 1000 * secs)
}

/// The covariate `holiday`: 1 on the days that begin at `holidays`, and 0 on the others from `start_epoch_millis` to
/// `end_epoch_millis`.
pub fn holidays(holidays: &[i64], start_epoch_millis: i64, end_epoch_millis: i64) -> NamedSeries {
    let first = start_epoch_millis.div_euclid(MILLIS_PER_DAY);
    let days = (end_epoch_millis.div_euclid(MILLIS_PER_DAY) + 1 - first).max(1);
    let is_holiday = |day: i64| f64::from(u8::from(holidays.contains(&((first + day) * MILLIS_PER_DAY))));
    let values = (0..days).map(is_holiday).map(Some);
    #[expect(clippy::expect_used, reason = "zeros and ones, on days that are on the time line already")]
    let series = Series::from_options(first * MILLIS_PER_DAY, MILLIS_PER_DAY, values).expect("a series of days");
    NamedSeries { name: HOLIDAY.into(), series }
}

/// Reads the covariates of the series `id` from a table, csv or Parquet: the columns that are named, or all of them.
///
/// # Errors
/// Where a column or the rows of the series are missing, or times are not a series; the first row that is refused.
pub fn parse(path: &Path, bytes: &[u8], columns: &[String], id: Option<&str>) -> Result<Vec<NamedSeries>, DataError> {
    let text = panel::csv_of(path, bytes)?;
    let header = String::from_utf8_lossy(first_line(&text)).into_owned();
    let names: Vec<&str> = header.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let is_covariate = |name: &str| !TIMES.contains(&name) && name != UNIQUE_ID && name != LOAD;
    let columns: Vec<String> = match columns {
        [] => names.iter().filter(|name| is_covariate(name)).map(|name| (*name).to_owned()).collect(),
        columns => columns.to_vec(),
    };
    let ids: Vec<String> = id.filter(|_| names.contains(&UNIQUE_ID)).map(str::to_owned).into_iter().collect();
    let read = |name: String| {
        let options = SeriesOptions { column: Some(name.clone()), ..SeriesOptions::default() };
        let series = panel::parse(path, &text, &options, &ids)?.strict(path)?.only(path)?;
        Ok(NamedSeries { name, series })
    };
    columns.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: &str = "ds,promotion,y,degrees\n2026-11-26 00:00:00,0,7,3.5\n2026-11-26 01:00:00,1,8,4\n";

    #[test]
    fn all_columns_but_times_names_and_loads_are_covariates() {
        let read = parse(Path::new("x.csv"), HOURS.as_bytes(), &[], None).unwrap();
        let names: Vec<&str> = read.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["promotion", "degrees"]);
        assert_eq!(read[1].series.values().to_vec(), [3.5, 4.0]);
        let missing = parse(Path::new("x.csv"), HOURS.as_bytes(), &["wind".into()], None).unwrap_err();
        assert!(missing.to_string().contains("`wind` is missing"), "{missing}");
    }

    #[test]
    fn each_series_of_a_panel_has_the_rows_of_its_name() {
        let text = "unique_id,ds,sale\na,0,0\na,60,1\nb,0,5\nb,60,6\n";
        let read = parse(Path::new("x.csv"), text.as_bytes(), &[], Some("b")).unwrap();
        assert_eq!(read[0].series.values().to_vec(), [5.0, 6.0]);
        let other = parse(Path::new("x.csv"), text.as_bytes(), &[], Some("c")).unwrap_err();
        assert!(other.to_string().contains('c'), "{other}");
    }

    #[test]
    fn a_holiday_lasts_its_day() {
        let day = epoch_millis_of_day("2026-11-26").unwrap();
        let NamedSeries { series, .. } = holidays(&[day], day - MILLIS_PER_DAY + 5, day + MILLIS_PER_DAY + 5);
        assert_eq!((series.start_epoch_millis(), series.step_millis()), (day - MILLIS_PER_DAY, MILLIS_PER_DAY));
        assert_eq!(series.values().to_vec(), [0.0, 1.0, 0.0]);
        assert_eq!([epoch_millis_of_day("2026-13-01"), epoch_millis_of_day("tomorrow")], [None, None]);
    }
}
