//! Rows of replicas by node, 16 nodes at a time: one byte a node, so that a row of a usual cluster
//! is one vector register.
//!
//! Bytes are compared and summed as one 128-bit integer. That is as fast as vector instructions,
//! and unlike those it does not depend on what the compiler makes of a loop.

use goodput_env::placement::Placement;

/// Replicas on 16 nodes.
pub type Lanes = [u8; 16];

const LOW_SEVEN: u128 = u128::from_le_bytes([0x7f; 16]);
const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
const EVEN_BYTES: u128 = u128::from_le_bytes([0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0]);

#[inline(always)]
fn zip(a: Lanes, b: Lanes, f: impl Fn(u8, u8) -> u8) -> Lanes {
    let mut result = [0; 16];
    for lane in 0..16 {
        result[lane] = f(a[lane], b[lane]);
    }
    result
}

/// Minimum by byte.
#[inline]
pub(super) fn min(a: Lanes, b: Lanes) -> Lanes {
    zip(a, b, u8::min)
}

/// Difference by byte; `b` must not be larger.
#[inline]
pub(super) fn sub(a: Lanes, b: Lanes) -> Lanes {
    u128::from_le_bytes(a).wrapping_sub(u128::from_le_bytes(b)).to_le_bytes()
}

/// Sum by byte, at most 255.
#[inline]
pub(super) fn add(a: Lanes, b: Lanes) -> Lanes {
    zip(a, b, u8::saturating_add)
}

/// 1 in each byte that is not zero.
#[inline]
pub(super) fn ones(a: Lanes) -> Lanes {
    min(a, [1; 16])
}

/// 0xff in each byte of which `a` is smaller than `b`.
#[inline]
pub(super) fn smaller(a: Lanes, b: Lanes) -> u128 {
    nonzero(zip(b, a, u8::saturating_sub))
}

/// 0xff in each byte that is not zero.
#[inline]
pub(super) fn nonzero(a: Lanes) -> u128 {
    let flags = flags(a);
    // The shift loses the flag of the topmost byte, and wrapping makes up for it.
    (flags << 8).wrapping_sub(flags)
}

#[inline]
fn flags(a: Lanes) -> u128 {
    let bits = u128::from_le_bytes(a);
    // Adding 0x7f carries into the high bit of a byte exactly if one of its other bits is set.
    ((((bits & LOW_SEVEN) + LOW_SEVEN) | bits) & HIGH) >> 7
}

/// Bytes at which the mask is set, zero elsewhere.
#[inline]
pub(super) fn and(a: Lanes, mask: u128) -> Lanes {
    (u128::from_le_bytes(a) & mask).to_le_bytes()
}

/// Positions at which the mask is set, ascending.
#[inline]
pub(super) fn set_lanes(mask: u128) -> impl Iterator<Item = usize> {
    let mut left = mask & (HIGH >> 7);
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize / 8;
        left &= left.wrapping_sub(1);
        (lane < 16).then_some(lane)
    })
}

/// Number of replicas of a row.
#[inline]
pub(super) fn sum(row: &[Lanes]) -> u32 {
    row.iter().map(|lanes| sum_one(*lanes)).sum()
}

#[inline]
fn sum_one(lanes: Lanes) -> u32 {
    let bits = u128::from_le_bytes(lanes);
    // A lane of 16 bits never exceeds 16 times 255, so nothing carries into the next one.
    let pairs = (bits & EVEN_BYTES) + ((bits >> 8) & EVEN_BYTES);
    let quads = (pairs as u64) + ((pairs >> 64) as u64);
    (quads.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

/// Number of nodes that a row uses.
pub(super) fn nodes(row: &[Lanes]) -> u32 {
    row.iter().map(|lanes| sum_one(ones(*lanes))).sum()
}

/// Nodes that the accelerators of a job are on. The network takes part where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeSpan {
    OneNode,
    ManyNodes,
}

impl NodeSpan {
    /// Span of so many replicas where one node has room for `per_node`.
    #[inline]
    pub(super) const fn packed(replicas: u32, per_node: u32) -> Self {
        if replicas > per_node { Self::ManyNodes } else { Self::OneNode }
    }

    /// Span of a job that holds `placement`.
    pub(super) fn of(placement: &Placement) -> Self {
        if placement.is_distributed() { Self::ManyNodes } else { Self::OneNode }
    }

    /// Number of nodes by which a model of goodput knows the span.
    pub(super) const fn nodes(self) -> u32 {
        match self {
            Self::OneNode => 1,
            Self::ManyNodes => 2,
        }
    }
}

/// Nodes that a row is on.
#[inline]
pub(super) fn span(row: &[Lanes]) -> NodeSpan {
    if is_distributed(row) { NodeSpan::ManyNodes } else { NodeSpan::OneNode }
}

/// Whether a row uses more than one node.
#[inline]
pub(super) fn is_distributed(row: &[Lanes]) -> bool {
    let mut seen = false;
    for lanes in row {
        let used = flags(*lanes);
        if used & used.wrapping_sub(1) != 0 || (seen && used != 0) {
            return true;
        }
        seen |= used != 0;
    }
    false
}

/// Whether a row uses no node.
#[inline]
pub(super) fn is_empty(row: &[Lanes]) -> bool {
    row.iter().all(|lanes| u128::from_le_bytes(*lanes) == 0)
}

/// Whether two rows are equal.
#[inline]
pub(super) fn same(a: &[Lanes], b: &[Lanes]) -> bool {
    a.iter().zip(b).all(|(a, b)| u128::from_le_bytes(*a) == u128::from_le_bytes(*b))
}

/// Hash of a row and its position. The hashes of a state's rows are added up.
#[inline]
pub(super) fn hash(lanes: Lanes, at: usize) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let bits = u128::from_le_bytes(lanes);
    let key = ODD.wrapping_mul(2 * at as u64 + 1);
    let mixed = (bits as u64).wrapping_mul(key) ^ ((bits >> 64) as u64).wrapping_mul(key.rotate_left(32) | 1);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_env::seed::{Stream, rng};
    use rand::RngExt;

    #[test]
    fn tricks_equal_their_definitions() {
        let mut rng = rng(1, Stream::Policy);
        for round in 0..2000 {
            let scale = [1, 2, 5, 256][round % 4];
            let mut draw = || -> Lanes { std::array::from_fn(|_| rng.random_range(0..scale) as u8) };
            let row = [draw(), draw()];
            let used = row.iter().flatten().filter(|&&replicas| replicas > 0).count();
            assert_eq!(sum(&row), row.iter().flatten().map(|&replicas| u32::from(replicas)).sum::<u32>());
            assert_eq!(nodes(&row), used as u32);
            assert_eq!(is_distributed(&row), used > 1);
            assert_eq!(is_distributed(&row[..1]), nodes(&row[..1]) > 1);
            assert_eq!(is_empty(&row), used == 0);
            let set: Vec<usize> = set_lanes(nonzero(row[0])).collect();
            assert_eq!(set, (0..16).filter(|&lane| row[0][lane] > 0).collect::<Vec<_>>());
        }
    }
}
