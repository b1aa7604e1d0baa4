//! Generalised Cauchy point: the first minimum of the quadratic model along the path of steepest descent, bent at
//! the bounds.

use super::super::loss::Theta;
use super::memory::StepMemory;
use super::{SearchBox, SearchPoint};

/// End of the path.
pub(super) struct CauchyPoint {
    pub(super) at: Theta,
    /// `W'` times the way to the point.
    pub(super) projected: Vec<f64>,
    /// Whether each parameter is off its bounds.
    pub(super) free: [bool; 7],
}

/// Cauchy point of the model of `memory` around `here`.
pub(super) fn point(here: &SearchPoint, bounds: &SearchBox<'_>, memory: &StepMemory) -> CauchyPoint {
    let scale = memory.scale();
    let mut free = [true; 7];
    let mut direction = [0.0; 7];
    let mut breaks: Vec<(f64, usize)> = Vec::new();
    // Whether every parameter that moves meets a bound in the end.
    let mut bounded = true;
    let mut slope = 0.0;
    for i in 0..7 {
        let down = -here.gradient[i];
        let (below, above) = (here.at[i] - bounds.lower[i], bounds.upper[i] - here.at[i]);
        free[i] = bounds.lower[i] < bounds.upper[i] && !(below <= 0.0 && down <= 0.0) && !(above <= 0.0 && down >= 0.0);
        if !free[i] || down == 0.0 {
            continue;
        }
        direction[i] = down;
        slope -= down * down;
        let room = if down < 0.0 { below / -down } else { above / down };
        match room.is_finite() {
            true => breaks.push((room, i)),
            false => bounded = false,
        }
    }
    let mut at = here.at;
    let mut projected = vec![0.0; memory.row(0).len()];
    if direction == [0.0; 7] {
        return CauchyPoint { at, projected, free };
    }
    breaks.sort_by(|one, other| one.0.total_cmp(&other.0));
    let inner = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let mut along = memory.project(&direction);
    let mut curvature = -scale * slope;
    let first_curvature = curvature;
    if !memory.is_empty() {
        curvature -= inner(&memory.middle(&along), &along);
    }
    let mut ahead = -slope / curvature;
    let mut passed = 0.0;
    for (done, &(time, i)) in breaks.iter().enumerate() {
        let span = time - passed;
        if ahead < span {
            break;
        }
        passed = time;
        let part = std::mem::take(&mut direction[i]);
        at[i] = if part > 0.0 { bounds.upper[i] } else { bounds.lower[i] };
        free[i] = false;
        let way = at[i] - here.at[i];
        slope += span * curvature + part * part - scale * part * way;
        curvature -= scale * part * part;
        if !memory.is_empty() {
            projected.iter_mut().zip(&along).for_each(|(sum, part)| *sum += span * part);
            let row = memory.row(i);
            let middle = memory.middle(&row);
            slope += part * inner(&projected, &middle);
            curvature += 2.0 * part * inner(&along, &middle) - part * part * inner(&row, &middle);
            along.iter_mut().zip(&row).for_each(|(sum, entry)| *sum -= part * entry);
        }
        curvature = curvature.max(f64::EPSILON * first_curvature);
        // Where all parameters that move have met their bounds the path ends.
        ahead = if bounded && done + 1 == breaks.len() { 0.0 } else { -slope / curvature };
    }
    let ahead = ahead.max(0.0);
    let time = passed + ahead;
    for i in 0..7 {
        if direction[i] != 0.0 {
            at[i] += time * direction[i];
        }
    }
    projected.iter_mut().zip(&along).for_each(|(sum, part)| *sum += ahead * part);
    CauchyPoint { at, projected, free }
}
