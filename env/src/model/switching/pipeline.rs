//! Pipelined transfer of a model to an accelerator: earlier layers compute while later layers are
//! sent (PipeSwitch, Bai et al., OSDI'20, section 4.2).
//!
//! Layers are sent in groups, with one call per group. A group computes after it has arrived and
//! the group before it has computed. Large groups save calls; small groups overlap better.

/// Time until the last layer has computed, for the given sizes of consecutive groups. `transfer`
/// and `compute` are by layer and `overhead` is per call, all in one unit of time.
#[must_use]
pub fn makespan(transfer: &[f64], compute: &[f64], overhead: f64, groups: &[usize]) -> f64 {
    let (mut at, mut sent, mut done) = (0, 0.0, 0.0_f64);
    for &size in groups {
        let layers = at..at + size;
        sent += overhead + transfer[layers.clone()].iter().sum::<f64>();
        done = done.max(sent) + compute[layers].iter().sum::<f64>();
        at += size;
    }
    done
}

/// Sizes of the consecutive groups with the earliest end, and that end.
///
/// The method is dynamic programming over (layers sent, number of groups). The arrival of a prefix
/// depends only on these two, so the earliest end of its computation is sufficient state. Fewer
/// groups win ties.
#[must_use]
pub fn best_groups(transfer: &[f64], compute: &[f64], overhead: f64) -> (Vec<usize>, f64) {
    let layers = transfer.len().min(compute.len());
    let prefix = |values: &[f64]| -> Vec<f64> {
        let sums = values.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        });
        std::iter::once(0.0).chain(sums).collect()
    };
    let (sent, work) = (prefix(transfer), prefix(compute));
    // By number of groups, then layers: the earliest end, and the first layer of the last group.
    let mut ends = vec![vec![(f64::INFINITY, 0); layers + 1]; layers + 1];
    ends[0][0] = (0.0, 0);
    for groups in 1..=layers {
        for to in groups..=layers {
            let arrived = sent[to] + overhead * groups as f64;
            for from in groups - 1..to {
                let end = ends[groups - 1][from].0.max(arrived) + work[to] - work[from];
                if end < ends[groups][to].0 {
                    ends[groups][to] = (end, from);
                }
            }
        }
    }
    let fewest = |best: usize, groups: usize| if ends[groups][layers].0 < ends[best][layers].0 { groups } else { best };
    // Only a model without layers needs no group; for any other the search starts with one.
    let mut groups = (0..=layers).fold(layers.min(1), fewest);
    let end = ends[groups][layers].0;
    let (mut sizes, mut to) = (Vec::with_capacity(groups), layers);
    while groups > 0 {
        let from = ends[groups][to].1;
        sizes.push(to - from);
        (to, groups) = (from, groups - 1);
    }
    sizes.reverse();
    (sizes, end)
}
