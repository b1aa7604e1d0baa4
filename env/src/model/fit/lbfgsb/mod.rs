//! L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995; version 3.0 of 2011) for seven parameters in a box, with the stop
//! rule of scipy's `minimize`.
//!
//! Public simulators of Pollux, Sia and DeepBoot fit their models with it. The search stops where one step lowers
//! the loss by less than 2.2e-9 (of the loss where it is above 1). On this loss that is often far from a minimum, and
//! so their policies go by other models than a search to the end would give. For the conventions of those simulators
//! only: the descent beside this is the better fit.

mod cauchy;
mod line_search;
mod linear;
mod memory;
mod subspace;

use super::loss::{Quadratic, Theta};
use line_search::{LineSearch, Verdict};
use memory::StepMemory;

/// Decrease, relative to the loss or to 1 if that is larger, at which the search stops: scipy's `ftol`.
const LEAST_DECREASE: f64 = 2.220_446_049_250_313e-9;
/// Projected gradient at which the search stops: scipy's `gtol`.
const LEAST_GRADIENT: f64 = 1e-5;
/// Most evaluations of the loss, and most steps: scipy's `maxfun` and `maxiter`.
const MOST_EVALUATIONS: usize = 15_000;
/// Most evaluations of one line search: scipy's `maxls`.
const MOST_IN_LINE: usize = 20;
/// Limit of a step where no bound limits it.
const FAR: f64 = 1e10;

/// Box of the parameters. Equal bounds hold a parameter fixed; an upper bound may be infinite.
struct SearchBox<'a> {
    lower: &'a Theta,
    upper: &'a Theta,
}

/// Point of the search with the loss and its gradient.
#[derive(Clone, Copy)]
struct SearchPoint {
    at: Theta,
    value: f64,
    gradient: Theta,
}

/// Point at which scipy's L-BFGS-B stops from `start` in the box `lower..=upper`.
pub(super) fn minimise(expand: impl Fn(&Theta) -> Quadratic, start: Theta, lower: &Theta, upper: &Theta) -> Theta {
    let bounds = SearchBox { lower, upper };
    let evaluate = |at: Theta| {
        let Quadratic { value, gradient, .. } = expand(&at);
        SearchPoint { at, value, gradient }
    };
    let mut here = evaluate(bounds.clamp(start));
    let mut evaluations = 1;
    let mut memory = StepMemory::default();
    let mut first = true;
    while bounds.projected_gradient(&here) > LEAST_GRADIENT && evaluations < MOST_EVALUATIONS {
        let towards = cauchy::point(&here, &bounds, &memory);
        let target = subspace::minimum(&here, &bounds, &memory, &towards);
        let direction = difference(&target, &here.at);
        match along(&here, &direction, &target, &bounds, first, &evaluate, &mut evaluations) {
            Some((there, step, slopes)) => {
                first = false;
                let scale = here.value.abs().max(there.value.abs()).max(1.0);
                let done = here.value - there.value <= LEAST_DECREASE * scale;
                memory.take(
                    direction.map(|part| part * step),
                    difference(&there.gradient, &here.gradient),
                    slopes,
                    step,
                );
                here = there;
                if done {
                    break;
                }
            }
            // A search that fails starts again without its memory; where it has none, it ends.
            None if memory.is_empty() => break,
            None => memory = StepMemory::default(),
        }
    }
    here.at
}

/// Line search from `here` along `direction`: the new point, the step, and the slopes at both ends. `None` where the
/// direction does not descend or no step is good enough.
fn along(
    here: &SearchPoint,
    direction: &Theta,
    target: &Theta,
    bounds: &SearchBox<'_>,
    first: bool,
    evaluate: &impl Fn(Theta) -> SearchPoint,
    evaluations: &mut usize,
) -> Option<(SearchPoint, f64, [f64; 2])> {
    let slope = dot(&here.gradient, direction);
    if slope >= 0.0 {
        return None;
    }
    // The target is in the box, whatever rounding says of the longest step.
    let longest = if first { 1.0 } else { bounds.longest(&here.at, direction).max(1.0) };
    let step = if first { (1.0 / dot(direction, direction).sqrt()).min(longest) } else { 1.0 };
    let mut search = LineSearch::new(here.value, slope, step, longest);
    for _ in 0..MOST_IN_LINE {
        let step = search.step();
        let at = if step == 1.0 { *target } else { std::array::from_fn(|i| step * direction[i] + here.at[i]) };
        let there = evaluate(bounds.clamp(at));
        *evaluations += 1;
        let slope_there = dot(&there.gradient, direction);
        if search.judge(there.value, slope_there) == Verdict::Stop {
            return Some((there, step, [slope, slope_there]));
        }
    }
    None
}

impl SearchBox<'_> {
    fn clamp(&self, theta: Theta) -> Theta {
        std::array::from_fn(|i| theta[i].max(self.lower[i]).min(self.upper[i]))
    }

    /// Largest part of the gradient that the box lets a step follow.
    fn projected_gradient(&self, here: &SearchPoint) -> f64 {
        let part = |i: usize| match here.gradient[i] {
            slope if slope < 0.0 => (here.at[i] - self.upper[i]).max(slope),
            slope => (here.at[i] - self.lower[i]).min(slope),
        };
        (0..7).map(|i| part(i).abs()).fold(0.0, f64::max)
    }

    /// Longest step along `direction` that stays in the box.
    fn longest(&self, at: &Theta, direction: &Theta) -> f64 {
        let room = |i: usize| match direction[i] {
            part if part < 0.0 => (self.lower[i] - at[i], part),
            part => (self.upper[i] - at[i], part),
        };
        (0..7).filter(|&i| direction[i] != 0.0).map(room).fold(FAR, |longest, (room, part)| {
            match room == 0.0 || (room > 0.0) != (part > 0.0) {
                true => 0.0,
                false if (part * longest).abs() > room.abs() => room / part,
                false => longest,
            }
        })
    }
}

fn dot(one: &Theta, other: &Theta) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn difference(one: &Theta, other: &Theta) -> Theta {
    std::array::from_fn(|i| one[i] - other[i])
}
