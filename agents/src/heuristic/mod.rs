//! Published scheduling policies, one file or folder a paper, and the list of them by the names
//! that users type.

pub mod afs;
pub mod allox;
pub mod aryl;
pub mod backfill;
pub mod card_sharing;
pub mod deepboot;
pub mod drf;
pub mod elasticflow;
mod expectation;
pub mod fifo;
pub mod gandiva;
pub mod gavel;
pub mod gittins;
pub mod kai;
pub mod kubernetes;
pub mod kueue;
mod listed;
pub mod optimus;
pub mod parameters;
pub mod pollux;
pub mod shockwave;
pub mod sia;
pub mod srtf;
pub mod themis;
pub mod tiresias;

pub use expectation::Expectation;
pub use listed::{ListedPolicy, Traits};

/// Entries of each paper's file.
pub(crate) const PAPERS: &[&[ListedPolicy]] = &[
    fifo::LISTED,
    backfill::LISTED,
    srtf::LISTED,
    tiresias::LISTED,
    gittins::LISTED,
    optimus::LISTED,
    pollux::LISTED,
    sia::LISTED,
    afs::LISTED,
    themis::LISTED,
    gandiva::LISTED,
    drf::LISTED,
    kubernetes::LISTED,
    kueue::LISTED,
    kai::LISTED,
    gavel::LISTED,
    allox::LISTED,
    shockwave::LISTED,
    deepboot::LISTED,
    elasticflow::LISTED,
    aryl::LISTED,
    card_sharing::LISTED,
];
