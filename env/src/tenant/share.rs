//! Dominant resource share of Kueue's fair sharing (KEP-1714): the borrowed fraction of the
//! lendable accelerators, over the weight of the group.

use crate::cluster::TypeId;
use std::cmp::Ordering;

/// Dominant resource share of a group.
///
/// The dominant resource is the one of which the group borrows the largest fraction of all that its
/// cohort could lend. The share is that fraction over the weight of the group, and comparisons are
/// exact. A group of weight 0 that borrows has an infinite share; two such groups compare without
/// their weights.
#[derive(Clone, Copy, Debug)]
pub struct DominantShare {
    borrowed: u64,
    lendable: u64,
    weight_milli: u32,
    borrowing: bool,
    resource: Option<TypeId>,
}

impl DominantShare {
    /// Share of a group that borrows nothing.
    pub(super) fn none(weight_milli: u32) -> Self {
        Self { borrowed: 0, lendable: 1, weight_milli, borrowing: false, resource: None }
    }

    /// Includes `borrowed` of the `lendable` accelerators of `resource`.
    pub(super) fn include(&mut self, resource: TypeId, borrowed: u64, lendable: u64) {
        if borrowed == 0 {
            return;
        }
        self.borrowing = true;
        // Fractions are compared by their cross products, which do not round.
        let cross = |part: u64, whole: u64| u128::from(part) * u128::from(whole);
        if lendable > 0 && cross(borrowed, self.lendable) > cross(self.borrowed, lendable) {
            (self.borrowed, self.lendable, self.resource) = (borrowed, lendable, Some(resource));
        }
    }

    /// Whether the group borrows any accelerator.
    pub fn is_borrowing(&self) -> bool {
        self.borrowing
    }

    /// Index of the dominant resource.
    pub fn resource(&self) -> Option<TypeId> {
        self.resource
    }

    /// Share in thousandths, rounded up as Kueue reports it; `None`: infinite.
    pub fn permille(&self) -> Option<u64> {
        if self.borrowed == 0 {
            return Some(0);
        }
        let weight = u128::from(self.weight_milli);
        let share = (u128::from(self.borrowed) * 1_000_000).div_ceil(u128::from(self.lendable) * weight.max(1));
        (weight > 0).then_some(share.min(u128::from(u64::MAX)) as u64)
    }

    fn is_infinite(&self) -> bool {
        self.weight_milli == 0 && self.borrowed > 0
    }
}

impl Ord for DominantShare {
    fn cmp(&self, other: &Self) -> Ordering {
        let weights = match (self.is_infinite(), other.is_infinite()) {
            // A group of weight 0 that is not infinite borrows nothing, so any weight gives a share
            // of 0.
            (false, false) => (self.weight_milli.max(1), other.weight_milli.max(1)),
            (true, true) => (1, 1),
            (one, _) => return if one { Ordering::Greater } else { Ordering::Less },
        };
        // Parts and wholes are numbers of accelerators, far below the 48 bits that remain of 128
        // beside two weights.
        let cross = |part: u64, whole: u64, weight: u32| u128::from(part) * u128::from(whole) * u128::from(weight);
        cross(self.borrowed, other.lendable, weights.1).cmp(&cross(other.borrowed, self.lendable, weights.0))
    }
}

impl PartialOrd for DominantShare {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DominantShare {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for DominantShare {}
