//! Ranges of seeds: those that policies train on, and those that are held out.

/// First held-out seed; training seeds are far away from it (see [`training_seed`]).
pub const HELD_OUT: u64 = 1_000_000;

/// First seed of the streams of held-out and validation workloads after the first hundred. Bit 61 tells the two apart.
const LATER: u64 = 1 << 62;

/// Number of streams of one master seed.
pub const STREAMS: u64 = 1 << 40;

/// First validation seed.
pub const VALIDATION: u64 = 2_000_000;

/// First episode seed of environment `index`: far from all others, and never a held-out or
/// validation seed.
pub const fn training_seed(master: u64, index: u64) -> u64 {
    let spread = (master.wrapping_mul(1_000_003).wrapping_add(index)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (1 << 63) | (spread >> 1)
}

/// Workloads that are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    #[default]
    Training,
    /// To choose by.
    Validation,
    /// To compare on, in the end.
    HeldOut,
}

impl Split {
    /// Every split, in the order in which a study needs them.
    pub const ALL: [Self; 3] = [Self::Training, Self::Validation, Self::HeldOut];

    /// Name on the command line and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Validation => "validation",
            Self::HeldOut => "held-out",
        }
    }

    /// Use of the workloads, for listings.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Training => "To learn from",
            Self::Validation => "To choose by",
            Self::HeldOut => "To compare on, in the end",
        }
    }

    /// Split called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|split| split.name() == name)
    }

    /// Split that workloads of `seed` belong to. A seed of no split, such as 1, counts as held out.
    pub const fn of(seed: u64) -> Self {
        if seed >> 63 == 1 {
            Self::Training
        } else if (seed >= VALIDATION && seed < VALIDATION + (VALIDATION - HELD_OUT)) || seed >> 61 == 3 {
            Self::Validation
        } else {
            Self::HeldOut
        }
    }

    /// The first seed of the `index`-th of several environments that play one episode after another under this
    /// master seed. `index` is below [`STREAMS`], and counts again from 0 there.
    pub const fn first_seed(self, master: u64, index: u64) -> u64 {
        let index = index % STREAMS;
        match self {
            Self::Training => training_seed(master, index),
            Self::Validation => stream(VALIDATION, LATER | (1 << 61), index),
            Self::HeldOut => stream(HELD_OUT, LATER, index),
        }
    }
}

/// First seed of the stream `index`. The first hundred streams lie between `first` and the next split, the others from
/// `later` on.
const fn stream(first: u64, later: u64, index: u64) -> u64 {
    /// Episodes of one stream.
    const APART: u64 = 10_000;
    let begin = if index < (VALIDATION - HELD_OUT) / APART { first } else { later };
    begin + index * APART
}

#[cfg(test)]
mod tests {
    use super::{HELD_OUT, STREAMS, Split, VALIDATION};

    #[test]
    fn streams_of_the_splits_never_meet() {
        let streams = |split: Split| (0..1000).chain(STREAMS - 1000..STREAMS).map(move |at| split.first_seed(7, at));
        for split in Split::ALL {
            assert!(streams(split).all(|first| Split::of(first) == split), "{}", split.name());
        }
        let mut firsts: Vec<u64> = Split::ALL.into_iter().flat_map(streams).collect();
        firsts.sort_unstable();
        let nearest = firsts.windows(2).map(|pair| pair[1] - pair[0]).min();
        assert!(nearest >= Some(10_000), "two streams are {nearest:?} episodes apart");
        assert_eq!(Split::HeldOut.first_seed(7, 99), HELD_OUT + 99 * 10_000);
        assert_eq!(Split::Validation.first_seed(7, 99), VALIDATION + 99 * 10_000);
    }
}
