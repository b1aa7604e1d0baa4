//! From values to pixels, and where to put gridlines.

use super::WIDTH;
use super::canvas::{Anchor, Canvas, Type};
use super::ink::Ink;

/// A value with its label.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// A linear or logarithmic map of values to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl AxisScale {
    pub(super) fn linear(values: (f64, f64), pixels: (f64, f64)) -> Self {
        let (low, high) = values;
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from: pixels.0, to: pixels.1, log: false }
    }

    pub(super) fn log(values: (f64, f64), pixels: (f64, f64)) -> Self {
        let low = values.0.max(f64::MIN_POSITIVE);
        let high = if values.1 > low { values.1 } else { low * 10.0 };
        Self { low, high, from: pixels.0, to: pixels.1, log: true }
    }

    /// The pixel of a value, kept inside the axis.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = match self.log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + (self.to - self.from) * share
    }

    pub(super) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The rectangle that data is drawn in.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotPanel {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl PlotPanel {
    /// A panel with these margins in a figure of this height.
    pub(super) fn inside(height: f64, left: f64, right: f64, top: f64, bottom: f64) -> Self {
        Self { left, right: WIDTH - right, top, bottom: height - bottom }
    }

    pub(super) fn x(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Ends of the vertical axis, bottom first.
    pub(super) fn y(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Vertical gridlines with labels below them, and what the axis says.
    pub(super) fn x_axis(&self, canvas: &Canvas<'_>, scale: AxisScale, ticks: &[Tick], name: &str) {
        for tick in ticks.iter().filter(|tick| scale.contains(tick.value)) {
            let x = scale.at(tick.value);
            canvas.line(&[(x, self.top), (x, self.bottom)], Ink::Grid, 1.0);
            canvas.text((x, self.bottom + 16.0), &tick.label, Type::new(Ink::Muted, Anchor::Middle));
        }
        canvas.text(((self.left + self.right) / 2.0, self.bottom + 38.0), name, Type::new(Ink::Muted, Anchor::Middle));
    }

    /// Horizontal gridlines with labels to their left; what the axis says stands above them.
    pub(super) fn y_axis(&self, canvas: &Canvas<'_>, scale: AxisScale, ticks: &[Tick], name: &str) {
        for tick in ticks.iter().filter(|tick| scale.contains(tick.value)) {
            let y = scale.at(tick.value);
            canvas.line(&[(self.left, y), (self.right, y)], Ink::Grid, 1.0);
            canvas.text((self.left - 10.0, y), &tick.label, Type::new(Ink::Muted, Anchor::End));
        }
        canvas.text((0.0, self.top - 18.0), name, Type::new(Ink::Muted, Anchor::Start));
    }
}

/// About `count` round values between `low` and `high`.
pub(super) fn linear_ticks(low: f64, high: f64, count: usize, label: impl Fn(f64) -> String) -> Vec<Tick> {
    let step = nice_step((high - low) / count.max(1) as f64);
    let from = (low / step).ceil() as i64;
    let to = (high / step).floor() as i64;
    // Multiplying whole numbers keeps labels free of accumulated rounding.
    (from..=to).take(100).map(|n| n as f64 * step).map(|value| Tick { value, label: label(value) }).collect()
}

/// The first of 1, 2, 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    if !(rough > 0.0 && rough.is_finite()) {
        return 1.0;
    }
    let power = 10.0_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|&step| step >= rough * 0.999).unwrap_or(10.0 * power)
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// Ticks for a logarithmic axis of time, seconds: round numbers of the unit that people would use.
pub(super) fn log_time_ticks(low: f64, high: f64) -> Vec<Tick> {
    const COARSE: [(f64, &str); 9] = [
        (1.0, "1 s"),
        (10.0, "10 s"),
        (MINUTE, "1 min"),
        (10.0 * MINUTE, "10 min"),
        (HOUR, "1 h"),
        (10.0 * HOUR, "10 h"),
        (4.0 * DAY, "4 d"),
        (40.0 * DAY, "40 d"),
        (400.0 * DAY, "400 d"),
    ];
    const FINE: [(f64, &str); 8] = [
        (3.0, "3 s"),
        (30.0, "30 s"),
        (3.0 * MINUTE, "3 min"),
        (30.0 * MINUTE, "30 min"),
        (3.0 * HOUR, "3 h"),
        (DAY + 6.0 * HOUR, "30 h"),
        (12.0 * DAY, "12 d"),
        (120.0 * DAY, "120 d"),
    ];
    let pick = |ticks: &[(f64, &str)]| -> Vec<Tick> {
        let inside = ticks.iter().filter(|(value, _)| (low..=high).contains(value));
        inside.map(|&(value, label)| Tick { value, label: label.into() }).collect()
    };
    let mut ticks = pick(&COARSE);
    if ticks.len() < 5 {
        ticks.extend(pick(&FINE));
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
    }
    ticks
}

/// Ticks for a linear axis of time from zero to `high` seconds, and the unit of their labels.
pub(super) fn time_ticks(high: f64) -> (Vec<Tick>, &'static str) {
    let (unit, name) = match high {
        _ if high > 6.0 * DAY => (DAY, "days"),
        _ if high > 2.0 * HOUR => (HOUR, "hours"),
        _ if high > 2.0 * MINUTE => (MINUTE, "minutes"),
        _ => (1.0, "seconds"),
    };
    let mut ticks = linear_ticks(0.0, high / unit, 8, |value| format!("{value}"));
    for tick in &mut ticks {
        tick.value *= unit;
    }
    (ticks, name)
}
