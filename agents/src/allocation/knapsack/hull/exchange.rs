//! Exchanges after a climb along hulls: one group takes more, and where there is no room another
//! group makes room, by taking less, an offer of another type, or nothing.
//!
//! The group that makes room at the least loss is looked up by type and by how much is needed, in
//! powers of two, so that finding the best exchange takes two passes over the offers and not one
//! over all pairs of them.

use super::{Groups, Offer, take};

/// Exchanges at most; few climbs need more.
const MOST: usize = 8;
/// Powers of two that an amount may need.
const POWERS: usize = 32;

/// The search with its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct HullExchange {
    /// By type and power of two: the two groups that free as much at least loss.
    releases: Vec<[Option<ReleasedItem>; 2]>,
}

/// A group that takes something else, or nothing.
#[derive(Clone, Copy, Debug)]
struct ReleasedItem {
    loss: f64,
    group: usize,
    item: Option<u32>,
}

/// Group that takes a better offer, and the group that makes room for it.
#[derive(Clone, Copy, Debug)]
struct Gain {
    gain: f64,
    group: usize,
    item: u32,
    release: Option<ReleasedItem>,
}

impl HullExchange {
    /// Makes the exchange that gains most until none gains anything, or often enough. `left` is by
    /// type.
    pub fn improve(&mut self, groups: &Groups, chosen: &mut [Option<u32>], left: &mut [u32]) {
        for _ in 0..MOST {
            self.look(groups, chosen, left);
            let Some(best) = self.best(groups, chosen, left) else { return };
            if let Some(release) = best.release {
                let held = groups.chosen(release.group, chosen[release.group]);
                if let Some(held) = held {
                    left[held.kind.index()] += held.weight;
                }
                if let Some(next) = groups.chosen(release.group, release.item) {
                    left[next.kind.index()] -= next.weight;
                }
                chosen[release.group] = release.item;
            }
            let next = groups.of(best.group)[best.item as usize];
            if !take(groups.chosen(best.group, chosen[best.group]), next, left) {
                return;
            }
            chosen[best.group] = Some(best.item);
        }
    }

    /// Groups that could make room, with their losses.
    fn look(&mut self, groups: &Groups, chosen: &[Option<u32>], left: &[u32]) {
        self.releases.clear();
        self.releases.resize(left.len() * POWERS, [None; 2]);
        for (group, &taken) in chosen.iter().enumerate() {
            let Some(held) = groups.chosen(group, taken) else { continue };
            self.offer(&held, held.weight, ReleasedItem { loss: held.value, group, item: None });
            for (next, item) in groups.of(group).iter().zip(0..) {
                let freed = match next.kind == held.kind {
                    true => held.weight.saturating_sub(next.weight),
                    // A group may change its type only where the other type has room already.
                    false if next.weight <= left[next.kind.index()] => held.weight,
                    false => 0,
                };
                self.offer(&held, freed, ReleasedItem { loss: held.value - next.value, group, item: Some(item) });
            }
        }
        // A group that frees more frees enough.
        // The last power of a type has none above it, because the next entry is another type's.
        for at in (0..self.releases.len()).rev().filter(|at| (at + 1) % POWERS != 0) {
            for more in self.releases[at + 1].into_iter().flatten() {
                keep(&mut self.releases[at], more);
            }
        }
    }

    fn offer(&mut self, held: &Offer, freed: u32, release: ReleasedItem) {
        if let Some(power) = freed.checked_ilog2() {
            keep(&mut self.releases[held.kind.index() * POWERS + power as usize], release);
        }
    }

    fn best(&self, groups: &Groups, chosen: &[Option<u32>], left: &[u32]) -> Option<Gain> {
        let mut best: Option<Gain> = None;
        for (group, &taken) in chosen.iter().enumerate() {
            let held = groups.chosen(group, taken);
            let now = held.map_or(0.0, |held| held.value);
            for (next, item) in groups.of(group).iter().zip(0..).filter(|(next, _)| next.value > now) {
                let kind = next.kind.index();
                let back = held.filter(|held| held.kind == next.kind).map_or(0, |held| held.weight);
                let missing = next.weight.saturating_sub(left[kind] + back);
                let release = match missing {
                    0 => None,
                    // Releases are kept by the power of two that they reach, so the need is rounded up.
                    missing => {
                        let power = (u64::from(missing) * 2 - 1).ilog2() as usize;
                        let row = self.releases.get(kind * POWERS + power).filter(|_| power < POWERS);
                        let other = row.and_then(|row| row.iter().flatten().find(|release| release.group != group));
                        let Some(other) = other else { continue };
                        Some(*other)
                    }
                };
                let gain = next.value - now - release.map_or(0.0, |release| release.loss);
                // A gain as small as an error of rounding is none.
                if gain > 1e-12 * next.value && best.is_none_or(|best| gain > best.gain) {
                    best = Some(Gain { gain, group, item, release });
                }
            }
        }
        best
    }
}

/// Keeps the two least losses of different groups, the earlier one first on ties.
fn keep(row: &mut [Option<ReleasedItem>; 2], release: ReleasedItem) {
    let less = |other: &Option<ReleasedItem>| other.is_none_or(|other| release.loss < other.loss);
    let same = |other: &Option<ReleasedItem>| other.is_some_and(|other| other.group == release.group);
    if less(&row[0]) {
        // The second entry must be of another group, because the first one's may be the one that
        // asks.
        if !same(&row[0]) {
            row[1] = row[0];
        }
        row[0] = Some(release);
    } else if !same(&row[0]) && less(&row[1]) {
        row[1] = Some(release);
    }
}
