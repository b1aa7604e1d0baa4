//! Requests of the workload so far.

use goodput_env::view::{ClusterView, JobView};

use crate::placement::fractional::{Fragmentation, Kinds, MILLI, Request};

/// Part of all requests that the typical ones make up at least, percent (Weng et al., ATC'23, the artifact).
const TYPICAL_PERCENT: u32 = 95;

/// Requests seen, in order of submission.
#[derive(Clone, Debug, Default)]
pub struct TypicalSoFar {
    seen: Vec<Request>,
    /// Jobs with smaller ids have been counted.
    next: u32,
    /// Requests at the last summary.
    summed: usize,
}

impl TypicalSoFar {
    /// Counts jobs that were submitted since. Returns a new summary where it has grown by a tenth.
    pub fn learn(&mut self, view: &ClusterView<'_>) -> Option<Fragmentation> {
        for job in view.jobs().rev().take_while(|job| job.id().0 >= self.next) {
            let request = request_of(&job);
            // Rounded up to two percent, so that there are no more sizes than scores tell apart.
            self.seen.push(Request { milli: request.milli.next_multiple_of(20), ..request });
        }
        self.next = self.next.max(view.jobs().next_back().map_or(0, |job| job.id().0 + 1));
        let grown = self.seen.len() > self.summed + self.summed / 10;
        grown.then(|| {
            self.summed = self.seen.len();
            Fragmentation::of_requests(&self.seen, TYPICAL_PERCENT)
        })
    }
}

/// Thousandths of each card that a job asks for, and the number of cards. A request over several cards counts as whole
/// cards, because scores know no other.
pub fn request_of(job: &JobView<'_>) -> Request {
    let request = job.request();
    let milli = match request.share {
        // A job without compute of its own still takes up a place.
        Some(share) if request.gpus == 1 => 10 * share.compute_percent.clamp(1, 100),
        _ => MILLI,
    };
    Request { cpu_milli: 0, memory_mib: 0, accelerators: request.gpus, milli, kinds: Kinds::ANY }
}
