//! Two daemons on two hosts: one lease outside both. etcd is real; its tests are skipped, loudly,
//! where it is not installed.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

mod late;
mod lease;
mod network;
mod partition;
mod shared;

use std::time::Duration;

use goodput_testkit::etcd::PrivateEtcd;
use tempfile::TempDir;

/// A running etcd and its folder; `None`, said loudly, where etcd is not installed.
pub fn started() -> Option<(TempDir, PrivateEtcd)> {
    if skipped() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let etcd = PrivateEtcd::start(folder.path(), None).unwrap();
    assert!(etcd.wait(Duration::from_secs(60)));
    Some((folder, etcd))
}

/// Whether the test is to be skipped; says so.
pub fn skipped() -> bool {
    let missing = goodput_testkit::etcd::missing();
    if missing {
        assert!(std::env::var_os("CI").is_none(), "etcd is not installed; `cargo xtask test` installs etcd");
        eprintln!("NOT TESTED: etcd is not installed; apt-get install --no-install-recommends etcd-server");
    }
    missing
}
