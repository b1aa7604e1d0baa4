//! Memory that is freed stays with the process while it trains.
//!
//! A gradient takes and gives back a few megabytes hundreds of times a second. glibc hands blocks
//! of that size to the kernel when they are freed and gets new, zeroed pages for the next ones,
//! which was a fifth of training.

/// The largest block, bytes, that glibc still learns from.
const LARGEST: usize = 31 << 20;

/// Raises glibc's thresholds: they follow the largest block that was freed, up to 32 MiB
/// (mallopt(3), "dynamic adjustment of the mmap threshold"). The block is never touched, so it
/// takes no memory. Elsewhere this does nothing.
pub fn keep_freed() {
    drop(std::hint::black_box(vec![0u8; LARGEST]));
}
