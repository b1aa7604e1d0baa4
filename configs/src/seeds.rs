//! Ranges of seeds: those that policies train on, and those that are held out.

/// First held-out seed; training seeds are far away from it (see [`training_seed`]).
pub const HELD_OUT: u64 = 1_000_000;

/// First validation seed.
pub const VALIDATION: u64 = 2_000_000;

/// First episode seed of environment `index`: far from all others, and never a held-out or
/// validation seed.
pub fn training_seed(master: u64, index: u64) -> u64 {
    let spread = (master.wrapping_mul(1_000_003).wrapping_add(index)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (1 << 63) | (spread >> 1)
}
