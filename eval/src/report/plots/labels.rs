//! Labels beside their series, pushed apart where they would overlap.

use super::canvas::{Anchor, Canvas, Type};
use super::ink::Ink;

const LINE: f64 = 17.0;

/// A label that wants to be at a height.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub y: f64,
    pub text: String,
    pub ink: Ink,
}

/// Heights at least a line apart, in order of the wanted ones, as near to them as a single sweep
/// gets, inside the bounds.
pub(super) fn spread(mut labels: Vec<Label>, top: f64, bottom: f64) -> Vec<Label> {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut least = top;
    for label in &mut labels {
        label.y = label.y.max(least);
        least = label.y + LINE;
    }
    let mut most = bottom;
    for label in labels.iter_mut().rev() {
        label.y = label.y.min(most);
        most = label.y - LINE;
    }
    labels
}

/// Draws labels to the right of `x`.
pub(super) fn beside(canvas: &Canvas<'_>, x: f64, labels: Vec<Label>, top: f64, bottom: f64) {
    for label in spread(labels, top, bottom) {
        canvas.text((x + 8.0, label.y), &label.text, Type::new(label.ink, Anchor::Start).bold());
    }
}

/// Draws a column of swatches and names from its top left corner downwards.
pub(super) fn stack(canvas: &Canvas<'_>, left: f64, top: f64, entries: &[(Ink, &str)]) {
    for (row, (ink, name)) in entries.iter().enumerate() {
        let y = top + LINE * (row as f64 + 0.5);
        canvas.line(&[(left, y), (left + 18.0, y)], *ink, 2.5);
        canvas.text((left + 26.0, y), name, Type::new(Ink::Text, Anchor::Start));
    }
}

/// Height of a [`stack`].
pub(super) fn stack_height(entries: usize) -> f64 {
    LINE * entries as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_a_line_of_distance() {
        let label = |y| Label { y, text: String::new(), ink: Ink::Text };
        let ys: Vec<f64> = spread(vec![label(50.0), label(48.0), label(10.0)], 0.0, 60.0).iter().map(|l| l.y).collect();
        assert_eq!(ys, vec![10.0, 43.0, 60.0]);
    }
}
