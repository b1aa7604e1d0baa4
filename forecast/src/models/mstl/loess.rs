//! Loess on evenly spaced values: at each place a line by least squares, weighed by the tricube of the distance.
//!
//! Cleveland, Cleveland, McRae, Terpenning, "STL: a seasonal-trend decomposition procedure based on loess", Journal of Official Statistics 6(1), 1990, sections 2 and 3.
//! Far neighbours hardly change from one place to the next, so the smoother is evaluated every `jump` places and joined by straight lines, as that paper does.

/// A smoother over the `width` nearest values (odd), evaluated every `jump` of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loess {
    pub width: usize,
    pub jump: usize,
}

impl Loess {
    /// The smoother of a `width` as published software has it: a tenth of the width from one place to the next.
    pub fn jumping(width: usize) -> Self {
        Self { width, jump: width.div_ceil(10) }
    }

    /// The smooth of `y` at each of its places.
    pub fn smooth(self, y: &[f64], out: &mut [f64]) {
        let n = y.len();
        if n < 2 {
            return out.copy_from_slice(y);
        }
        let jump = self.jump.clamp(1, n - 1);
        let mut from = 0;
        out[0] = self.at(y, 0);
        while from < n - 1 {
            let to = (from + jump).min(n - 1);
            out[to] = self.at(y, to);
            let slope = (out[to] - out[from]) / (to - from) as f64;
            for place in from + 1..to {
                out[place] = out[from] + slope * (place - from) as f64;
            }
            from = to;
        }
    }

    /// The smooth at the place of `y[place]`, from the window around it that stays within `y`.
    fn at(self, y: &[f64], place: usize) -> f64 {
        let first = place.saturating_sub(self.width / 2).min(y.len().saturating_sub(self.width));
        self.line(y, place as f64, first)
    }

    /// The smooth one step before the first and one step after the last value.
    pub fn beyond(self, y: &[f64]) -> (f64, f64) {
        (self.line(y, -1.0, 0), self.line(y, y.len() as f64, y.len().saturating_sub(self.width)))
    }

    /// The weighted line through the window from `first` on, at place `x`.
    fn line(self, y: &[f64], x: f64, first: usize) -> f64 {
        let window = &y[first..(first + self.width).min(y.len())];
        let start = first as f64;
        let end = start + window.len() as f64 - 1.0;
        let beyond = self.width.saturating_sub(y.len()) / 2;
        let reach = (x - start).max(end - x) + beyond as f64;
        let weight = |place: f64| {
            let distance = (place - x).abs();
            if distance <= 0.001 * reach {
                1.0
            } else if distance <= 0.999 * reach {
                let ratio = distance / reach;
                let inner = 1.0 - ratio * ratio * ratio;
                inner * inner * inner
            } else {
                0.0
            }
        };
        // Sums of the weights times 1, d, d^2, y and d y with d the distance from x.
        let mut sums = [0.0; 5];
        for (offset, y) in window.iter().enumerate() {
            let place = start + offset as f64;
            let (w, d) = (weight(place), place - x);
            let wd = w * d;
            for (sum, term) in sums.iter_mut().zip([w, wd, wd * d, w * y, wd * y]) {
                *sum += term;
            }
        }
        let [w, d, dd, wy, dy] = sums;
        if w <= 0.0 {
            return y[(x.max(0.0) as usize).min(y.len() - 1)];
        }
        let (centre, mean) = (d / w, wy / w);
        let spread = dd / w - centre * centre;
        // Without spread there is no slope: the paper's bound, relative to the whole range.
        if reach > 0.0 && spread.max(0.0).sqrt() > 0.001 * (y.len() as f64 - 1.0) {
            mean - centre * (dy / w - centre * mean) / spread
        } else {
            mean
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line_and_goes_on_beyond_the_ends() {
        let y: Vec<f64> = (0..40).map(|i| 3.0 + 0.5 * f64::from(i)).collect();
        let mut out = vec![0.0; 40];
        for loess in [Loess { width: 7, jump: 1 }, Loess { width: 7, jump: 6 }, Loess { width: 81, jump: 9 }] {
            loess.smooth(&y, &mut out);
            assert!(y.iter().zip(&out).all(|(a, b)| (a - b).abs() < 1e-9), "{loess:?} {out:?}");
            let (before, after) = loess.beyond(&y);
            assert!((before - 2.5).abs() < 1e-9 && (after - 23.0).abs() < 1e-9, "{loess:?} {before} {after}");
        }
    }

    #[test]
    fn one_or_two_values_are_kept() {
        let mut out = [0.0; 2];
        Loess { width: 3, jump: 1 }.smooth(&[4.0, 6.0], &mut out);
        assert_eq!(out, [4.0, 6.0]);
        Loess { width: 3, jump: 1 }.smooth(&[4.0], &mut out[..1]);
        assert_eq!(out[0], 4.0);
    }
}
