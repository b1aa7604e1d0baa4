//! Line search of Moré and Thuente (1994), with the constants of L-BFGS-B.

/// Part of the expected decrease that a step must reach.
const DECREASE: f64 = 1e-3;
/// Part of the first slope that the slope at the step may keep.
const CURVATURE: f64 = 0.9;
/// Relative width at which the interval is too narrow to go on.
const WIDTH: f64 = 0.1;

/// Verdict on a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The step is good, or the best that can be had.
    Stop,
    /// Another step is to be tried.
    Go,
}

/// End of the interval: step, value and slope there.
#[derive(Clone, Copy, Debug)]
struct LineEnd {
    step: f64,
    value: f64,
    slope: f64,
}

impl LineEnd {
    /// End on the loss less a line of slope `by` through the start.
    fn lowered(self, by: f64) -> Self {
        Self { value: self.value - self.step * by, slope: self.slope - by, ..self }
    }

    fn raised(self, by: f64) -> Self {
        self.lowered(-by)
    }
}

/// Search along one direction.
pub(super) struct LineSearch {
    start: LineEnd,
    best: LineEnd,
    other: LineEnd,
    step: f64,
    longest: f64,
    limits: [f64; 2],
    widths: [f64; 2],
    bracketed: bool,
    second_stage: bool,
}

impl LineSearch {
    /// Search from a point of this value and slope, with the first step and the longest one.
    pub(super) fn new(value: f64, slope: f64, step: f64, longest: f64) -> Self {
        let start = LineEnd { step: 0.0, value, slope };
        Self {
            start,
            best: start,
            other: start,
            step,
            longest,
            limits: [0.0, step + 4.0 * step],
            widths: [longest, 2.0 * longest],
            bracketed: false,
            second_stage: false,
        }
    }

    /// Step to be tried.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// Judges the step by the value and the slope there, and chooses another one.
    pub(super) fn judge(&mut self, value: f64, slope: f64) -> Verdict {
        let line = DECREASE * self.start.slope;
        let enough = self.start.value + self.step * line;
        self.second_stage |= value <= enough && slope >= 0.0;
        let [least, most] = self.limits;
        let narrow = self.bracketed && (self.step <= least || self.step >= most || most - least <= WIDTH * most);
        let at_end = self.step == self.longest && value <= enough && slope <= line;
        let at_start = self.step == 0.0 && (value > enough || slope >= line);
        let good = value <= enough && slope.abs() <= CURVATURE * -self.start.slope;
        // A loss that is no number ends the search: comparisons with it are all false.
        if narrow || at_end || at_start || good || value.is_nan() || slope.is_nan() {
            return Verdict::Stop;
        }
        let here = LineEnd { step: self.step, value, slope };
        // In the first stage a lowered function has its minimum where the decrease is enough.
        if !self.second_stage && value <= self.best.value && value > enough {
            (self.best, self.other) = (self.best.lowered(line), self.other.lowered(line));
            self.narrow(here.lowered(line));
            (self.best, self.other) = (self.best.raised(line), self.other.raised(line));
        } else {
            self.narrow(here);
        }
        let (best, other) = (self.best.step, self.other.step);
        if self.bracketed {
            if (other - best).abs() >= 0.66 * self.widths[1] {
                self.step = best + 0.5 * (other - best);
            }
            self.widths = [(other - best).abs(), self.widths[0]];
            self.limits = [best.min(other), best.max(other)];
        } else {
            self.limits = [1.1, 4.0].map(|factor| self.step + factor * (self.step - best));
        }
        self.step = self.step.max(0.0).min(self.longest);
        let [least, most] = self.limits;
        if self.bracketed && (self.step <= least || self.step >= most || most - least <= WIDTH * most) {
            self.step = best;
        }
        Verdict::Go
    }

    /// Takes `here` into the interval and chooses the next step in it.
    fn narrow(&mut self, here: LineEnd) {
        let (best, other) = (self.best, self.other);
        let opposite = here.slope * best.slope.signum();
        let distance = here.step - best.step;
        let cubic_root =
            |theta: f64, scale: f64, one: f64, two: f64| (theta / scale).powi(2) - one / scale * (two / scale);
        let toward_best = 3.0 * (best.value - here.value) / distance + best.slope + here.slope;
        let scale = toward_best.abs().max(best.slope.abs()).max(here.slope.abs());
        let next = if here.value > best.value {
            // A higher value: the minimum is bracketed.
            let root = scale * cubic_root(toward_best, scale, best.slope, here.slope).sqrt();
            let root = if here.step < best.step { -root } else { root };
            let part = (root - best.slope + toward_best) / (root - best.slope + root + here.slope);
            let cubic = best.step + part * distance;
            let quadratic =
                best.step + best.slope / ((best.value - here.value) / distance + best.slope) / 2.0 * distance;
            self.bracketed = true;
            match (cubic - best.step).abs() < (quadratic - best.step).abs() {
                true => cubic,
                false => cubic + (quadratic - cubic) / 2.0,
            }
        } else if opposite < 0.0 {
            // A lower value and a slope of the other sign: the minimum is bracketed.
            let root = scale * cubic_root(toward_best, scale, best.slope, here.slope).sqrt();
            let root = if here.step > best.step { -root } else { root };
            let part = (root - here.slope + toward_best) / (root - here.slope + root + best.slope);
            let cubic = here.step - part * distance;
            let secant = here.step - here.slope / (here.slope - best.slope) * distance;
            self.bracketed = true;
            if (cubic - here.step).abs() > (secant - here.step).abs() { cubic } else { secant }
        } else if here.slope.abs() < best.slope.abs() {
            // A lower value and a flatter slope of one sign: the cubic may have no minimum ahead.
            let root = scale * cubic_root(toward_best, scale, best.slope, here.slope).max(0.0).sqrt();
            let root = if here.step > best.step { -root } else { root };
            let part = (root - here.slope + toward_best) / (root + (best.slope - here.slope) + root);
            let cubic = match part {
                part if part < 0.0 && root != 0.0 => here.step - part * distance,
                _ if here.step > best.step => self.limits[1],
                _ => self.limits[0],
            };
            let secant = here.step - here.slope / (here.slope - best.slope) * distance;
            let cubic_is_closer = (cubic - here.step).abs() < (secant - here.step).abs();
            if self.bracketed {
                let next = if cubic_is_closer { cubic } else { secant };
                let far = here.step + 0.66 * (other.step - here.step);
                if here.step > best.step { far.min(next) } else { far.max(next) }
            } else {
                let next = if cubic_is_closer { secant } else { cubic };
                next.max(self.limits[0]).min(self.limits[1])
            }
        } else if self.bracketed {
            // A lower value and a steeper slope of one sign: on to the other end.
            let distance = other.step - here.step;
            let toward_other = 3.0 * (here.value - other.value) / distance + other.slope + here.slope;
            let scale = toward_other.abs().max(other.slope.abs()).max(here.slope.abs());
            let root = scale * cubic_root(toward_other, scale, other.slope, here.slope).sqrt();
            let root = if here.step > other.step { -root } else { root };
            let part = (root - here.slope + toward_other) / (root - here.slope + root + other.slope);
            here.step + part * distance
        } else if here.step > best.step {
            self.limits[1]
        } else {
            self.limits[0]
        };
        if here.value > best.value {
            self.other = here;
        } else {
            if opposite < 0.0 {
                self.other = best;
            }
            self.best = here;
        }
        self.step = next;
    }
}
