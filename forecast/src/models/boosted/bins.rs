//! Columns cut into at most 255 bins, so that a split is looked for among those and not among all
//! values.

/// The last bin of any column.
const LAST: usize = 254;
/// Values a column is cut by, at most.
const SAMPLE: usize = 4_096;

/// Rows of features as bins.
pub(super) struct Binned {
    /// Bin of each feature, row by row.
    bins: Vec<u8>,
    /// Edges of the bins of each column: values up to `edges[b]` are in bin `b` or below, larger
    /// values in the bin after the last.
    edges: Vec<Vec<f64>>,
}

impl Binned {
    /// Cuts rows of `width` finite features.
    pub fn new(rows: &[f64], width: usize) -> Self {
        let count = rows.len() / width.max(1);
        let every = count.div_ceil(SAMPLE).max(1);
        let column = |feature: usize| rows.chunks_exact(width).step_by(every).map(move |row| row[feature]).collect();
        let edges: Vec<Vec<f64>> = (0..width).map(|feature| cut(column(feature))).collect();
        // There are at most 254 edges, so a bin always fits in a byte.
        let bin = |(&value, edges): (&f64, &Vec<f64>)| edges.partition_point(|edge| *edge < value) as u8;
        let bins = rows.chunks_exact(width.max(1)).flat_map(|row| row.iter().zip(&edges).map(bin)).collect();
        Self { bins, edges }
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.edges.len()
    }

    /// Bins of one row.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bins[row * self.width()..(row + 1) * self.width()]
    }

    /// The upper edges of a feature's bins, all but the last.
    pub fn edges(&self, feature: usize) -> &[f64] {
        &self.edges[feature]
    }
}

/// Edges between the values: one between any two where they are few, equally many values to a bin
/// where they are not.
fn cut(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    if distinct.len() <= LAST + 1 {
        return distinct.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
    }
    let mut edges: Vec<f64> = (1..=LAST).map(|edge| values[edge * values.len() / (LAST + 1)]).collect();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each_and_many_share() {
        let few = Binned::new(&[1.0, 5.0, 2.0, 5.0, 9.0, 5.0], 2);
        assert_eq!((few.row(0), few.row(1), few.row(2)), (&[0, 0][..], &[1, 0][..], &[2, 0][..]));
        assert_eq!(few.edges(0), [1.5, 5.5]);
        let many = Binned::new(&(0..4_000).map(f64::from).collect::<Vec<_>>(), 1);
        let mut counts = [0; 256];
        (0..4_000).for_each(|row| counts[usize::from(many.row(row)[0])] += 1);
        assert_eq!(counts[255], 0);
        assert!(counts[..255].iter().all(|count| (14..=18).contains(count)), "{counts:?}");
    }
}
