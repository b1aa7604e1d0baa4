//! Ascending set of small numbers.

use smallvec::SmallVec;

/// Ascending set of the numbers below a bound, as bits. Above the bits of the members lie levels in which a bit says
/// whether a word of the level below has any, so an insertion, a removal, and the search for a neighbour take one step
/// for each factor of 64 in the bound, and a walk over the members takes time for the members alone.
#[derive(Clone, Debug, Default)]
pub struct IdSet {
    /// Words of all levels, members first.
    words: Vec<u64>,
    /// Index of the first word of each level, and of the end.
    levels: SmallVec<[u32; 5]>,
    len: usize,
}

impl IdSet {
    /// An empty set of numbers below `bound`.
    pub fn below(bound: usize) -> Self {
        let (mut levels, mut words, mut width): (SmallVec<[u32; 5]>, _, _) = (SmallVec::new(), 0, bound);
        levels.push(0);
        while width > 0 {
            width = width.div_ceil(64);
            words += width;
            levels.push(words as u32);
            if width == 1 {
                break;
            }
        }
        Self { words: vec![0; words], levels, len: 0 }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Words of a level.
    fn width(&self, level: usize) -> usize {
        self.levels.get(level + 1).map_or(0, |end| (end - self.levels[level]) as usize)
    }

    fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// Makes `id`, which is below the bound, a member.
    pub fn insert(&mut self, id: usize) {
        let mut at = id;
        for level in 0..self.depth() {
            let word = &mut self.words[self.levels[level] as usize + at / 64];
            let (before, bit) = (*word, 1 << (at % 64));
            *word |= bit;
            self.len += usize::from(level == 0 && before & bit == 0);
            if before != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Makes `id`, which is below the bound, no member.
    pub fn remove(&mut self, id: usize) {
        let mut at = id;
        for level in 0..self.depth() {
            let word = &mut self.words[self.levels[level] as usize + at / 64];
            let (before, bit) = (*word, 1 << (at % 64));
            *word &= !bit;
            self.len -= usize::from(level == 0 && before & bit != 0);
            if before & !bit != 0 || before == 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Makes `id` a member, or none.
    pub fn set(&mut self, id: usize, member: bool) {
        if member { self.insert(id) } else { self.remove(id) }
    }

    /// The least member that is at least `from`.
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for level in 0..self.depth() {
            let word = at / 64;
            if word >= self.width(level) {
                return None;
            }
            let bits = self.words[self.levels[level] as usize + word] & (u64::MAX << (at % 64));
            if bits != 0 {
                return Some(self.descend(level, word * 64 + bits.trailing_zeros() as usize, u64::trailing_zeros));
            }
            at = word + 1;
        }
        None
    }

    /// The greatest member that is less than `end`.
    pub fn prev(&self, end: usize) -> Option<usize> {
        let mut end = end.min(64 * self.width(0));
        for level in 0..self.depth() {
            let last = end.checked_sub(1)?;
            let word = last / 64;
            let bits = self.words[self.levels[level] as usize + word] & (u64::MAX >> (63 - last % 64));
            if bits != 0 {
                let highest = |bits: u64| 63 - bits.leading_zeros();
                return Some(self.descend(level, word * 64 + highest(bits) as usize, highest));
            }
            end = word;
        }
        None
    }

    /// The member that bit `at` of a level leads to, where `pick` names a bit of each word on the way.
    fn descend(&self, level: usize, mut at: usize, pick: impl Fn(u64) -> u32) -> usize {
        for lower in (0..level).rev() {
            at = at * 64 + pick(self.words[self.levels[lower] as usize + at]) as usize;
        }
        at
    }

    /// Members, ascending.
    pub fn iter(&self) -> Members<'_> {
        Members { set: self, front: 0, bits: 0, back: usize::MAX, left: self.len }
    }
}

/// Members of an [`IdSet`], ascending.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    set: &'a IdSet,
    /// Number of the lowest bit of `bits`; where there is none, from which to search on.
    front: usize,
    /// Members of the front's word that are still to come.
    bits: u64,
    back: usize,
    left: usize,
}

impl Iterator for Members<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        if self.bits == 0 {
            let word = self.set.next(self.front)? / 64;
            (self.front, self.bits) = (word * 64, self.set.words[word]);
        }
        let id = self.front + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        self.front += if self.bits == 0 { 64 } else { 0 };
        Some(id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Members<'_> {
    fn next_back(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        self.back = self.set.prev(self.back)?;
        Some(self.back)
    }
}

impl ExactSizeIterator for Members<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A set of bits answers as a tree of numbers does.
        #[test]
        fn equals_an_ordered_set(
            bound in 1_usize..9000,
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..200),
        ) {
            let (mut set, mut known) = (IdSet::below(bound), BTreeSet::new());
            for (at, member) in steps {
                let id = at.index(bound);
                set.set(id, member);
                if member { known.insert(id); } else { known.remove(&id); }
                prop_assert_eq!(set.len(), known.len());
                let near = at.index(bound + 100);
                prop_assert_eq!(set.next(near), known.range(near..).next().copied());
                prop_assert_eq!(set.prev(near), known.range(..near).next_back().copied());
            }
            prop_assert!(set.iter().eq(known.iter().copied()));
            prop_assert!(set.iter().rev().eq(known.iter().rev().copied()));
            let (mut both, mut ends) = (set.iter(), known.iter().copied());
            while let Some(first) = both.next() {
                prop_assert_eq!(Some(first), ends.next());
                prop_assert_eq!(both.next_back(), ends.next_back());
                prop_assert_eq!(both.len(), ends.len());
            }
        }
    }

    #[test]
    fn a_set_below_nothing_has_no_member() {
        for set in [IdSet::below(0), IdSet::default()] {
            assert_eq!((set.next(0), set.prev(5), set.len()), (None, None, 0));
            assert_eq!(set.iter().next(), None);
        }
    }
}
