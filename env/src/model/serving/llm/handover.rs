//! Keys and values on the way from the replica that has prefilled a request to the one that decodes it.
//!
//! A transfer begins when the decode replica has set aside the memory for it, and the prefill replica holds its own
//! memory until the end: keys and values are pulled, so that the prefill replicas are the buffer of a burst
//! (DistServe: Zhong et al., OSDI 2024, section 4.3). Each transfer has the whole bandwidth of the link.

use super::request::SECOND_PS;
use super::sequences::Sequence;

/// Link over which the keys and values of a request move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLink {
    /// Bytes of the keys and values of a token; 0 for a transfer that takes no time.
    pub bytes_per_token: u32,
    /// Bandwidth, bytes a second; 0 counts as 1.
    pub bytes_per_sec: u64,
}

impl KvLink {
    /// Link over which a transfer takes no time.
    pub const FREE: Self = Self { bytes_per_token: 0, bytes_per_sec: 1 };

    /// Time in which the keys and values of `tokens` tokens move, picoseconds, rounded up.
    pub fn transfer_ps(&self, tokens: u32) -> u64 {
        let bytes = u128::from(tokens) * u128::from(self.bytes_per_token);
        let ps = (bytes * u128::from(SECOND_PS)).div_ceil(u128::from(self.bytes_per_sec.max(1)));
        u64::try_from(ps).unwrap_or(u64::MAX)
    }
}

/// A transfer that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct KvTransfer {
    /// Number of the request.
    pub(super) id: u32,
    /// Time from the first token until the keys and values are on the decode replica, picoseconds.
    pub(super) handover_ps: u64,
    /// Moment at which the keys and values are on the decode replica.
    pub(super) end_ps: u64,
}

/// A sequence with memory on this replica.
#[derive(Clone, Copy, Debug)]
struct Moving {
    end_ps: u64,
    sequence: Sequence,
    admitted: u64,
}

/// The sequences that have memory on a replica, and of which the keys and values are not there yet.
#[derive(Clone, Debug)]
pub(super) struct OnTheWay {
    link: KvLink,
    /// The next one to arrive is the last.
    moving: Vec<Moving>,
    begun: Vec<KvTransfer>,
}

impl OnTheWay {
    /// No sequences over a link.
    pub(super) fn over(link: KvLink) -> Self {
        Self { link, moving: Vec::new(), begun: Vec::new() }
    }

    /// Number of the sequences.
    pub(super) fn count(&self) -> usize {
        self.moving.len()
    }

    /// Moment at which the next transfer ends; `u64::MAX` where none is under way.
    pub(super) fn next_ps(&self) -> u64 {
        self.moving.last().map_or(u64::MAX, |next| next.end_ps)
    }

    /// Begins the transfer of a sequence, and says whether it takes no time. Otherwise [`Self::take_arrived`] gives
    /// the sequence later.
    pub(super) fn begin(&mut self, sequence: Sequence, admitted: u64, now_ps: u64) -> bool {
        let end_ps = now_ps.saturating_add(self.link.transfer_ps(sequence.request.input));
        self.begun.push(KvTransfer { id: sequence.id, handover_ps: end_ps - sequence.since_ps(), end_ps });
        if end_ps == now_ps {
            return true;
        }
        // Of transfers with one end, the one that began first comes first.
        let at = self.moving.partition_point(|other| other.end_ps > end_ps);
        self.moving.insert(at, Moving { end_ps, sequence, admitted });
        false
    }

    /// Takes a sequence of which the transfer has ended, and its position in the order of admission.
    pub(super) fn take_arrived(&mut self, now_ps: u64) -> Option<(Sequence, u64)> {
        let next = self.moving.pop_if(|next| next.end_ps <= now_ps)?;
        Some((next.sequence, next.admitted))
    }

    /// Transfers that have begun since the last call.
    pub(super) fn take_begun(&mut self) -> impl Iterator<Item = KvTransfer> + '_ {
        self.begun.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_its_bytes_over_the_bandwidth() {
        // 1000 tokens of 327,680 bytes over 50 GB/s: 6.5536 ms.
        let link = KvLink { bytes_per_token: 327_680, bytes_per_sec: 50_000_000_000 };
        assert_eq!(link.transfer_ps(1000), 6_553_600_000);
        assert_eq!(KvLink { bytes_per_sec: 3, bytes_per_token: 1 }.transfer_ps(1), SECOND_PS.div_ceil(3));
        assert_eq!(KvLink::FREE.transfer_ps(u32::MAX), 0);
        assert_eq!(KvLink { bytes_per_token: u32::MAX, bytes_per_sec: 0 }.transfer_ps(u32::MAX), u64::MAX);
    }
}
