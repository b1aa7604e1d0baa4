//! Numbers for people: one unit a column, three significant digits.

use crate::metrics::MetricUnit;
use crate::stats::Estimate;

/// Format of the numbers of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NumberFormat {
    per: f64,
    decimals: usize,
    /// Unit below the column's name; empty for plain ratios.
    pub(crate) unit: &'static str,
}

impl NumberFormat {
    /// The unit in which these values read best together, and as many decimals as the smallest
    /// needs for three digits, but no more than two and one more than the largest needs.
    pub(crate) fn new(unit: MetricUnit, values: impl Iterator<Item = f64>) -> Self {
        let (smallest, largest) = extent(values);
        let (per, name) = match unit {
            MetricUnit::Secs if largest >= 144.0 * 3600.0 => (86_400.0, "d"),
            MetricUnit::Secs if largest >= 2.0 * 3600.0 => (3600.0, "h"),
            MetricUnit::Secs if largest >= 120.0 => (60.0, "min"),
            unit => written(unit),
        };
        Self::fitted(per, name, smallest, largest)
    }

    /// The unit in which `summary.json` and the terminal have these values, but percent for shares
    /// and hours for millions of seconds. Shares near one have as many decimals as what is missing
    /// to one needs for two digits.
    pub(crate) fn as_written(unit: MetricUnit, values: impl Iterator<Item = f64> + Clone) -> Self {
        let (smallest, largest) = extent(values.clone());
        let (per, name) = match unit {
            MetricUnit::Secs if largest >= 1e6 => (3600.0, "h"),
            unit => written(unit),
        };
        let format = Self::fitted(per, name, smallest, largest);
        if unit != MetricUnit::Share {
            return format;
        }
        let (missing, _) = extent(values.map(|value| 1.0 - value));
        Self { decimals: format.decimals.max(digits(missing / per).saturating_sub(1)), ..format }
    }

    fn fitted(per: f64, unit: &'static str, smallest: f64, largest: f64) -> Self {
        let decimals = digits(smallest / per).min(digits(largest / per) + 1).min(2);
        Self { per, decimals, unit }
    }

    /// Size of the unit.
    pub(crate) fn per(&self) -> f64 {
        self.per
    }

    /// A number without its unit.
    pub(crate) fn number(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.per).replace('-', "−")
    }

    /// The interval of an estimate as `low–high`; empty where there is none.
    pub(crate) fn interval(&self, estimate: &Estimate) -> String {
        estimate.ci.map_or_else(String::new, |ci| format!("{}–{}", self.number(ci.low), self.number(ci.high)))
    }
}

/// The smallest and the largest size among values other than zero.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let sizes = values.map(f64::abs).filter(|&size| size > 0.0);
    sizes.fold((f64::INFINITY, 0.0), |(smallest, largest), size| (smallest.min(size), largest.max(size)))
}

/// Size and name of the unit of a metric.
fn written(unit: MetricUnit) -> (f64, &'static str) {
    match unit {
        MetricUnit::Secs => (1.0, "s"),
        MetricUnit::Share => (0.01, "%"),
        MetricUnit::PerJob => (1.0, "per job"),
        MetricUnit::GpuHours => (1.0, "GPU h"),
        MetricUnit::NodeHours => (1.0, "node h"),
        MetricUnit::KilowattHours => (1.0, "kWh"),
        MetricUnit::Dollars => (1.0, "$"),
        MetricUnit::Ratio | MetricUnit::Count => (1.0, ""),
    }
}

/// Three significant digits, no more than three decimals, a real minus sign.
pub(crate) fn significant(value: f64) -> String {
    let digits = digits(value);
    let text = format!("{value:.digits$}");
    let text = if value == 0.0 { "0".into() } else { text };
    text.replace('-', "−")
}

fn digits(value: f64) -> usize {
    match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    }
}

/// A ratio as a signed percentage: 0.8 is `−20.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let text = format!("{percent:+.1}").replace('-', "−");
    match text.as_str() {
        "+0.0" | "−0.0" => "0.0".into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    #[test]
    fn three_digits() {
        let shown = [1234.5, 99.96, 12.34, 1.234, 0.1234, 0.0, -2.5].map(significant);
        assert_eq!(shown, ["1234", "100", "12.3", "1.23", "0.123", "0", "−2.50"]);
    }

    #[test]
    fn a_unit_that_suits_the_largest() {
        let unit = |largest| NumberFormat::new(MetricUnit::Secs, [largest].into_iter()).unit;
        assert_eq!([60.0, 600.0, 8000.0, 1e6].map(unit), ["s", "min", "h", "d"]);
    }

    #[test]
    fn a_column_has_one_number_of_decimals() {
        let column = |values: [f64; 3]| {
            let shown = NumberFormat::new(MetricUnit::Count, values.into_iter());
            values.map(|value| shown.number(value))
        };
        assert_eq!(column([45.62, 59.7, 108.2]), ["45.6", "59.7", "108.2"]);
        assert_eq!(column([2.73, 0.927, 0.0]), ["2.73", "0.93", "0.00"]);
        assert_eq!(column([0.0, 0.0, 0.0]), ["0", "0", "0"]);
        assert_eq!(column([5.0, 12_000.0, 340.0]), ["5.0", "12000.0", "340.0"]);
        let hours = NumberFormat::new(MetricUnit::Secs, [7200.0].into_iter());
        let estimate = Estimate { value: 7200.0, ci: Some(Interval { low: 3600.0, high: 9000.0 }) };
        assert_eq!(hours.interval(&estimate), "1.00–2.50");
        let secs = NumberFormat::as_written(MetricUnit::Secs, [7200.0].into_iter());
        assert_eq!((secs.interval(&estimate).as_str(), secs.unit), ("3600–9000", "s"));
        let shares = NumberFormat::as_written(MetricUnit::Share, [0.999_12, 0.5].into_iter());
        assert_eq!(shares.number(0.999_12), "99.91");
    }

    #[test]
    fn changes() {
        assert_eq!([0.8, 1.0, 1.234, 0.9999].map(change), ["−20.0", "0.0", "+23.4", "0.0"]);
    }
}
