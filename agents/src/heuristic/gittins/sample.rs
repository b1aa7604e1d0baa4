//! Gittins index of an empirical distribution (Gittins 1979; Aalto, Ayesta and Righter 2009 for its
//! use in scheduling).
//!
//! For a job that has had service `a`, of length `X` drawn from the sample,
//!
//! ```text
//! G(a, quantum) = P(X - a <= quantum | X > a) / E[min(X - a, quantum) | X > a]
//! ```
//!
//! is the number of completions per unit of service invested, and `G(a)` is its supremum over the
//! quantum. With `F` the number of samples up to a point and `H` the integral of the number above
//! it, both conditional expectations become differences: `G = (F(b) - F(a)) / (H(b) - H(a))`, the
//! slope of a chord. So the supremum is the tangent from one point to the upper hull of the points
//! to its right: the hulls of all suffixes share one array of links, and a query walks along it.

/// Quantum of service over which an index looks ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GittinsHorizon {
    /// All quanta: the supremum, which is the Gittins index proper.
    Supremum,
    /// A fixed quantum of service, in the unit of the sample.
    Quantum(f64),
}

/// Empirical distribution of lengths of jobs, in any unit of service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GittinsSample {
    /// Distinct lengths, ascending.
    lengths: Vec<f64>,
    /// Number of samples up to each length.
    up_to: Vec<f64>,
    /// Integral of the number of samples above, from 0 to each length.
    above: Vec<f64>,
    /// Next vertex of the upper hull of the points (`above`, `up_to`) from each point on; the last
    /// points to itself.
    hull: Vec<u32>,
}

impl GittinsSample {
    /// A distribution from lengths in any order; lengths that are not positive finite numbers are
    /// ignored.
    pub fn new(lengths: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = lengths.into_iter().filter(|length| *length > 0.0 && length.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let mut sample = Self::default();
        let (mut seen, mut integral, mut last) = (0.0, 0.0, 0.0);
        for chunk in sorted.chunk_by(|a, b| a == b) {
            integral += (count - seen) * (chunk[0] - last);
            seen += chunk.len() as f64;
            last = chunk[0];
            sample.lengths.push(last);
            sample.up_to.push(seen);
            sample.above.push(integral);
        }
        sample.link();
        sample
    }

    /// Number of samples.
    pub fn count(&self) -> f64 {
        self.up_to.last().copied().unwrap_or(0.0)
    }

    /// Index of a job that has had service `attained`, completions per unit of service; zero where
    /// no sample is longer.
    ///
    /// ```
    /// use goodput_agents::heuristic::gittins::{GittinsHorizon, GittinsSample};
    ///
    /// // Half of all jobs end within the first second, which no longer quantum beats.
    /// let sample = GittinsSample::new([1.0, 1.0, 4.0, 16.0]);
    /// assert_eq!(sample.index(0.0, GittinsHorizon::Supremum), 0.5);
    /// ```
    pub fn index(&self, attained: f64, horizon: GittinsHorizon) -> f64 {
        let (next, from) = self.from(attained);
        if next == self.lengths.len() {
            return 0.0;
        }
        match horizon {
            GittinsHorizon::Quantum(quantum) => {
                let (_, to) = self.from(attained + quantum);
                slope(from, to)
            }
            GittinsHorizon::Supremum => {
                let mut at = next;
                let mut best = slope(from, self.point(at));
                loop {
                    let further = self.hull[at] as usize;
                    let index = slope(from, self.point(further));
                    // On a concave hull the slope rises to the tangent point and falls behind it.
                    if further == at || index < best {
                        return best;
                    }
                    (at, best) = (further, index);
                }
            }
        }
    }

    /// Expected service left of a job that has had `attained`; zero where no sample is longer.
    pub fn mean_remaining(&self, attained: f64) -> f64 {
        let (next, (above, up_to)) = self.from(attained);
        match self.above.last() {
            Some(all) if next < self.lengths.len() => (all - above) / (self.count() - up_to),
            _ => 0.0,
        }
    }

    /// First length above `service`, and the point (`above`, `up_to`) at `service`.
    fn from(&self, service: f64) -> (usize, (f64, f64)) {
        let next = self.lengths.partition_point(|&length| length <= service);
        let (length, (above, up_to)) = match next.checked_sub(1) {
            Some(last) => (self.lengths[last], self.point(last)),
            None => (0.0, (0.0, 0.0)),
        };
        (next, (above + (self.count() - up_to) * (service - length), up_to))
    }

    fn point(&self, at: usize) -> (f64, f64) {
        (self.above[at], self.up_to[at])
    }

    fn link(&mut self) {
        let count = self.lengths.len();
        self.hull = (0..count as u32).collect();
        // From the right, so that the hull of every suffix exists before the point in front of it
        // joins.
        for at in (0..count.saturating_sub(1)).rev() {
            let mut next = at + 1;
            loop {
                let further = self.hull[next] as usize;
                if further == next
                    || slope(self.point(at), self.point(further)) < slope(self.point(at), self.point(next))
                {
                    break;
                }
                next = further;
            }
            self.hull[at] = next as u32;
        }
    }
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    if to.0 > from.0 { (to.1 - from.1) / (to.0 - from.0) } else { 0.0 }
}
