//! Static division of a cluster: every tenant owns a part, and nothing is lent.

use std::cmp::Reverse;

use super::{Quota, QuotaTree, Tenants};
use crate::time::SimTime;

impl Tenants {
    /// Tenants without lending: each holds at most what it owns. Where no group has a quota, each tenant owns its
    /// weighted part of `capacity`, the accelerators by type in the cluster's order.
    #[must_use]
    pub fn partitioned(&self, capacity: &[u64]) -> Self {
        let kept = |tree: &QuotaTree| tree.with_quotas(|_, _, quota| Quota { borrowing_limit: Some(0), ..quota });
        let mut trees: Vec<_> = self.trees.iter().map(|(at, tree)| (*at, kept(tree))).collect();
        if self.quota_owner.is_none() {
            let weights: Vec<u32> = self.iter().map(|tenant| tenant.weight_milli).collect();
            trees = vec![(SimTime::ZERO, QuotaTree::partitioned(&weights, capacity))];
        }
        Self { trees, ..self.clone() }
    }
}

impl QuotaTree {
    /// Creates a tree of tenants of these weights, in thousandths, that own their parts of `capacity`, by resource, and
    /// borrow nothing.
    pub fn partitioned(weights_milli: &[u32], capacity: &[u64]) -> Self {
        let owned: Vec<Vec<u64>> = capacity.iter().map(|&whole| largest_remainder(weights_milli, whole)).collect();
        let nothing = vec![0; capacity.len()];
        Self::shared(weights_milli.iter().copied(), &nothing).with_quotas(|group, kind, quota| {
            let nominal = owned[kind.index()].get(group);
            nominal.map_or(quota, |&nominal| Quota { nominal, borrowing_limit: Some(0), lending_limit: None })
        })
    }
}

/// `whole` in proportion to `weights`, in whole numbers that add up to it (Hamilton's method; lower
/// indices first on ties).
fn largest_remainder(weights: &[u32], whole: u64) -> Vec<u64> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum::<u64>().max(1);
    let exact = |weight: u32| u64::from(weight) * whole;
    let mut parts: Vec<u64> = weights.iter().map(|&weight| exact(weight) / total).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|&at| weights[at] > 0).collect();
    order.sort_by_key(|&at| (Reverse(exact(weights[at]) % total), at));
    let left = whole - parts.iter().sum::<u64>();
    for &at in order.iter().take(left as usize) {
        parts[at] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::largest_remainder;

    #[test]
    fn parts_add_up() {
        assert_eq!(largest_remainder(&[1000, 1000], 8), [4, 4]);
        assert_eq!(largest_remainder(&[1000, 1000, 1000], 8), [3, 3, 2]);
        assert_eq!(largest_remainder(&[3000, 1000, 0], 6), [5, 1, 0]);
        assert_eq!(largest_remainder(&[0, 0], 6), [0, 0]);
    }
}
