//! Utility of the rented nodes, and what it would be with another number of them.
//!
//! Utility is the sum of the jobs' speed-ups over the number of accelerators in service (Pollux, OSDI'21, section
//! 4.2.2; the simulator of its artifact). A speed-up is what the job's agent expects of its own model, within the
//! information level of the run: the model that the agent has fitted where the run is `profiled`. A job without a model
//! counts as many as it holds, as in the artifact.
//!
//! The published rule asks the policy for the allocation on every size that it considers. Here the accelerators of a
//! size go, one step at a time, to the job that gains most by each of them, so the rule does not depend on the
//! policy. For one job, and for concave speed-ups, that is the allocation with the largest sum.

use super::{RunRental, Simulator};
use crate::model::autoscale::{Measure, speedup, utility};
use crate::view::JobView;

/// Speed-ups of one job at the sizes that it can have now, ascending: accelerators and speed-up.
type SpeedupCurve = Vec<(u32, f64)>;

impl Simulator {
    /// Takes a sample of the utility where one is due, and chooses the number of nodes anew.
    pub(super) fn sample_utility(&mut self) {
        let now = self.state.now;
        if self.rental.as_ref().is_none_or(|rental| rental.next_sample > now) {
            return;
        }
        let Some(mut rental) = self.rental.take() else { return };
        rental.next_sample = now + rental.terms.interval();
        let wanted = self.choose_size(&mut rental);
        rental.wanted = wanted;
        self.rental = Some(rental);
    }

    /// Number of nodes that the rule wants now.
    fn choose_size(&self, rental: &mut RunRental) -> u32 {
        let (serving, wanted) = (rental.serving(), rental.wanted);
        let cluster = &self.state.scenario.cluster;
        let (nodes, per_node) = (cluster.nodes.len() as u32, cluster.gpus_per_node());
        let (Some(measure), Some(scaler)) = (rental.terms.rule.measure(), &mut rental.scaler) else { return wanted };
        let view = self.state.view();
        let held = |job: JobView<'_>| {
            let placement = &job.state.placement;
            speedup_of(&job, measure, placement.nodes(), placement.gpus())
        };
        let held = view.jobs().filter(|job| job.state.is_allocated()).map(held);
        let mut curves = None;
        let size = scaler.observe(wanted, utility(held, serving.max(1), per_node), |size| {
            let all = || view.jobs().map(|job| curve(&job, measure, per_node, nodes * per_node)).collect::<Vec<_>>();
            utility(divide(curves.get_or_insert_with(all), size * per_node), size, per_node)
        });
        // An empty cluster has no utility at any size.
        let size = if view.active() == 0 && size != wanted { rental.terms.min_nodes } else { size };
        // A job that needs more accelerators than are rented would wait for ever. Where jobs wait and none runs, the
        // policy may start them at the size that they ask for only.
        let none_runs = view.jobs().all(|job| !job.state.is_allocated());
        let needed = view.jobs().map(|job| if none_runs { job.request().gpus } else { job.min_gpus() }).max();
        let needed = needed.map_or(0, |gpus| gpus.div_ceil(per_node));
        size.max(needed).min(nodes)
    }
}

/// Speed-up of a job on `gpus` accelerators of `nodes` nodes; `gpus` where nothing is known of the job, and 0 where it
/// has no valid batch there.
fn speedup_of(job: &JobView<'_>, measure: Measure, nodes: u32, gpus: u32) -> f64 {
    match job.goodput_model() {
        Some(model) => speedup(&model, measure, nodes, gpus).unwrap_or(0.0),
        None => f64::from(gpus),
    }
}

/// Speed-ups of a job on packed accelerators: one at a time up to a node, then node by node.
fn curve(job: &JobView<'_>, measure: Measure, per_node: u32, total: u32) -> SpeedupCurve {
    let (least, most) = (job.min_gpus(), job.max_gpus().min(total));
    let ladder = (1..=per_node).chain((2..=total / per_node).map(|nodes| nodes * per_node));
    let between = ladder.filter(|&gpus| gpus > least && gpus < most);
    let mut sizes: Vec<u32> = std::iter::once(least).chain(between).chain((most > least).then_some(most)).collect();
    sizes.retain(|&gpus| gpus <= total);
    sizes.into_iter().map(|gpus| (gpus, speedup_of(job, measure, gpus.div_ceil(per_node), gpus))).collect()
}

/// Speed-ups of the jobs when `gpus` accelerators go, one step of a curve at a time, to the job that gains most by
/// each of them; the first job among equals.
fn divide(curves: &[SpeedupCurve], gpus: u32) -> Vec<f64> {
    let mut steps = vec![0; curves.len()];
    let mut left = gpus;
    // A size and its speed-up after so many steps; nothing before the first.
    let at = |curve: &SpeedupCurve, step: usize| step.checked_sub(1).map_or((0, 0.0), |last| curve[last]);
    loop {
        let next = |(job, curve): (usize, &SpeedupCurve)| {
            let (size, speedup) = at(curve, steps[job]);
            let &(larger, faster) = curve.get(steps[job])?;
            let more = larger - size;
            (more <= left).then(|| (job, more, (faster - speedup) / f64::from(more)))
        };
        let best =
            curves.iter().enumerate().filter_map(next).reduce(|best, next| if next.2 > best.2 { next } else { best });
        match best {
            Some((job, more, gain)) if gain > 0.0 => {
                steps[job] += 1;
                left -= more;
            }
            _ => return curves.iter().zip(&steps).map(|(curve, &step)| at(curve, step).1).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_go_where_they_gain_most() {
        let steep = vec![(1, 1.0), (2, 1.9), (4, 3.4)];
        let flat = vec![(1, 1.0), (2, 1.2)];
        let rigid = vec![(4, 3.8)];
        assert_eq!(divide(&[flat.clone(), steep.clone()], 3), [1.0, 1.9]);
        assert_eq!(divide(&[flat.clone(), steep.clone()], 5), [1.0, 3.4]);
        assert_eq!(divide(&[steep, rigid], 5), [1.0, 3.8]);
        assert_eq!(divide(&[flat], 0), [0.0]);
    }
}
