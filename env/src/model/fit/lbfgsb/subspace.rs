//! Minimum of the quadratic model over the parameters that the Cauchy point leaves free.

use super::super::loss::Theta;
use super::cauchy::CauchyPoint;
use super::linear::Factors;
use super::memory::StepMemory;
use super::{SearchBox, SearchPoint, difference, dot};

/// Target of the next line search: the minimum, brought into the box.
pub(super) fn minimum(here: &SearchPoint, bounds: &SearchBox<'_>, memory: &StepMemory, cauchy: &CauchyPoint) -> Theta {
    let free: Vec<usize> = (0..7).filter(|&i| cauchy.free[i]).collect();
    if free.is_empty() || memory.is_empty() {
        return cauchy.at;
    }
    let step = newton_step(here, memory, cauchy, &free);
    let mut target = cauchy.at;
    let mut cut = false;
    for (&i, step) in free.iter().zip(&step) {
        target[i] = (cauchy.at[i] + step).max(bounds.lower[i]).min(bounds.upper[i]);
        cut |= target[i] == bounds.lower[i] || target[i] == bounds.upper[i];
    }
    if !cut || dot(&difference(&target, &here.at), &here.gradient) <= 0.0 {
        return target;
    }
    shortened(bounds, cauchy, &free, &step)
}

/// Newton step of the model in the free parameters, from the Cauchy point.
fn newton_step(here: &SearchPoint, memory: &StepMemory, cauchy: &CauchyPoint, free: &[usize]) -> Vec<f64> {
    let scale = memory.scale();
    let rows: Vec<Vec<f64>> = free.iter().map(|&i| memory.row(i)).collect();
    let inner = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let bend = memory.middle(&cauchy.projected);
    let residual: Vec<f64> = free
        .iter()
        .zip(&rows)
        .map(|(&i, row)| -here.gradient[i] - scale * (cauchy.at[i] - here.at[i]) + inner(row, &bend))
        .collect();
    let curvature = rows.iter().enumerate().map(|(at, row)| {
        let middle = memory.middle(row);
        let entry =
            |(other, column): (usize, &Vec<f64>)| if at == other { scale } else { 0.0 } - inner(column, &middle);
        rows.iter().enumerate().map(entry).collect()
    });
    Factors::new(curvature.collect()).solve(&residual)
}

/// Newton step from the Cauchy point up to the first bound.
fn shortened(bounds: &SearchBox<'_>, cauchy: &CauchyPoint, free: &[usize], step: &[f64]) -> Theta {
    let (mut part, mut stops) = (1.0, None);
    for (&i, &step) in free.iter().zip(step) {
        let (room, bound) = match step < 0.0 {
            true => (bounds.lower[i] - cauchy.at[i], bounds.lower[i]),
            false => (bounds.upper[i] - cauchy.at[i], bounds.upper[i]),
        };
        let most = match step {
            0.0 => continue,
            _ if room == 0.0 || (room > 0.0) != (step > 0.0) => 0.0,
            _ if (step * part).abs() > room.abs() => room / step,
            _ => continue,
        };
        if most < part {
            (part, stops) = (most, Some((i, bound)));
        }
    }
    let mut target = cauchy.at;
    for (&i, &step) in free.iter().zip(step) {
        target[i] += part * step;
    }
    if let Some((i, bound)) = stops {
        target[i] = bound;
    }
    target
}
