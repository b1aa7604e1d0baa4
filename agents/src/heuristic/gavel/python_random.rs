//! Random numbers of Python's `random.Random`: MT19937 (Matsumoto and Nishimura, 1998) and the
//! draws that Python makes from it.
//!
//! Gavel's simulator shuffles accelerator types and pairs jobs with these draws. With equal draws a
//! run can be compared with the artifact's job by job instead of in distribution. For replicas
//! only.

const STATE: usize = 624;
const SHIFT: usize = 397;

/// Generator seeded as `random.Random(seed)`.
#[derive(Clone, Debug)]
pub struct PythonRandom {
    state: [u32; STATE],
    at: usize,
}

impl PythonRandom {
    /// Seeds by array, the array being the 32-bit digits of `seed`, lowest first.
    pub fn new(seed: u64) -> Self {
        let digits = [seed as u32, (seed >> 32) as u32];
        let key = if digits[1] == 0 { &digits[..1] } else { &digits[..] };
        let mut state = [0_u32; STATE];
        state[0] = 19_650_218;
        for i in 1..STATE {
            state[i] = 1_812_433_253_u32.wrapping_mul(state[i - 1] ^ (state[i - 1] >> 30)).wrapping_add(i as u32);
        }
        let mut i = 1;
        let mut step = |factor: u32, add: &dyn Fn(usize) -> u32, turns: usize| {
            for turn in 0..turns {
                let before = state[i - 1] ^ (state[i - 1] >> 30);
                let mixed = state[i] ^ before.wrapping_mul(factor);
                state[i] = mixed.wrapping_add(add(if factor == 1_664_525 { turn } else { i }));
                i += 1;
                if i == STATE {
                    state[0] = state[STATE - 1];
                    i = 1;
                }
            }
        };
        step(1_664_525, &|turn| key[turn % key.len()].wrapping_add((turn % key.len()) as u32), STATE);
        step(1_566_083_941, &|i| (i as u32).wrapping_neg(), STATE - 1);
        // The topmost bit makes sure that the state is not all zeros.
        state[0] = 0x8000_0000;
        Self { state, at: STATE }
    }

    fn word(&mut self) -> u32 {
        if self.at == STATE {
            for i in 0..STATE {
                let joined = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE] & 0x7fff_ffff);
                let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + SHIFT) % STATE] ^ (joined >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// A number below `limit`, which is at least 1 and below 2^31, as `randrange(limit)` draws it.
    pub fn below(&mut self, limit: usize) -> usize {
        // Python draws as many bits as the limit has, and draws again where they exceed it.
        let bits = usize::BITS - limit.leading_zeros();
        loop {
            let drawn = (self.word() >> (32 - bits)) as usize;
            if drawn < limit {
                return drawn;
            }
        }
    }

    /// Shuffles as `shuffle(items)` does.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }

    /// Two different positions below `len`, which is at least 2, as `sample(items, 2)` draws them.
    pub fn two_of(&mut self, len: usize) -> [usize; 2] {
        let first = self.below(len);
        // Python copies short lists and draws without the first; of long lists it draws again until
        // the two differ.
        const SHORT: usize = 21;
        if len <= SHORT {
            let second = self.below(len - 1);
            return [first, if second == first { len - 1 } else { second }];
        }
        loop {
            let second = self.below(len);
            if second != first {
                return [first, second];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.Random(seed)` in CPython 3.12: `randrange` of 3, 5, 100 and 1000 in turn.
    #[test]
    fn draws_as_cpython_does() {
        let draws = |seed| {
            let mut random = PythonRandom::new(seed);
            [3, 5, 100, 1000].map(|limit| random.below(limit))
        };
        assert_eq!(draws(0), EXPECTED_0);
        assert_eq!(draws(5), EXPECTED_5);
        assert_eq!(draws(1 << 40), EXPECTED_2_40);
        let mut random = PythonRandom::new(5);
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        random.shuffle(&mut items);
        assert_eq!(items, EXPECTED_SHUFFLE);
        assert_eq!([random.two_of(20), random.two_of(30)], EXPECTED_SAMPLES);
    }

    const EXPECTED_0: [usize; 4] = [1, 3, 5, 265];
    const EXPECTED_5: [usize; 4] = [2, 2, 94, 367];
    const EXPECTED_2_40: [usize; 4] = [0, 2, 85, 67];
    const EXPECTED_SHUFFLE: [u32; 8] = [6, 3, 1, 0, 7, 2, 5, 4];
    const EXPECTED_SAMPLES: [[usize; 2]; 2] = [[1, 5], [3, 11]];
}
