//! Gittins table of the public Tiresias simulator, defects included; for reproduction only.
//!
//! It differs from the textbook ([`super::GittinsSample`]) in four ways:
//! - Expected service adds up whole lengths `d_k` instead of what is left of them, `d_k - a`, so
//!   the index of an old job is too small.
//! - The mean is cut to whole GPU-seconds (integer division).
//! - A horizon beyond the longest sample leaves that sample out of the numerator.
//! - The table holds one value a sample, computed one GPU-second short of it and used for
//!   everything since the sample before: an index lags behind the job's service by up to a gap.

/// Table of indices over ascending whole lengths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArtifactTable {
    lengths: Vec<i64>,
    index: Vec<f64>,
}

impl ArtifactTable {
    /// A table from lengths in GPU-seconds, cut to whole ones, and a quantum in GPU-seconds.
    pub fn new(lengths: impl IntoIterator<Item = f64>, quantum: i64) -> Self {
        let mut lengths: Vec<i64> = lengths.into_iter().map(|length| length as i64).collect();
        lengths.sort_unstable();
        let mut sums = vec![0];
        sums.extend(lengths.iter().scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        }));
        let count = lengths.len();
        let index = lengths.iter().map(|&length| {
            let attained = length - 1;
            let above = |service: i64| lengths.partition_point(|&other| other <= service);
            let from = above(attained);
            let beyond = attained + quantum > lengths[count - 1] - 1;
            let to = if beyond { count - 1 } else { above(attained + quantum) };
            let left = (count - from) as i64;
            let share = rounded((to - from) as f64 / left as f64, 5);
            let mean = (sums[to] - sums[from] + quantum * (count - to) as i64) / left;
            rounded(share * 1e6 / mean as f64, 4)
        });
        let index = index.collect();
        Self { lengths, index }
    }

    /// Index of a job that has had `attained` GPU-seconds, per million GPU-seconds.
    pub fn index(&self, attained: i64) -> f64 {
        let next = self.lengths.partition_point(|&length| length <= attained);
        self.index.get(next).copied().unwrap_or(0.0)
    }

    /// Expected remainder of the simulator's `shortest-expected`: the mean of the lengths above
    /// `attained`, the longest left out, to two places. It is the mean of whole lengths, not of
    /// what is left of them.
    pub fn mean_length_above(&self, attained: i64) -> f64 {
        let next = self.lengths.partition_point(|&length| length <= attained);
        match self.lengths.get(next..) {
            None | Some([]) => 0.0,
            Some(&[longest]) => longest as f64,
            Some([above @ .., _]) => rounded(above.iter().sum::<i64>() as f64 / above.len() as f64, 2),
        }
    }
}

/// `value` rounded to so many decimal places, from the exact decimal expansion, as Python rounds.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    let scaled = value * scale;
    if scaled < 1e9 && (scaled.fract() - 0.5).abs() > 1e-4 {
        return scaled.round() / scale;
    }
    // So close to a half that the error of the product could decide.
    format!("{value:.*}", places as usize).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn rounding_is_that_of_the_decimal_expansion() {
        // 2.675 and 1.005 lie below their decimal spelling, 0.335 above its.
        assert_eq!([rounded(2.675, 2), rounded(1.005, 2), rounded(0.335, 2)], [2.67, 1.0, 0.34]);
        for at in 0..2000 {
            let value = f64::from(at) / 997.0;
            assert_eq!(rounded(value, 5), format!("{value:.5}").parse::<f64>().unwrap());
        }
    }
}
