//! Experiments that ship: the files of `configs/experiment`, for programs that are installed without them.

/// Name and text of every experiment that ships.
#[rustfmt::skip] // a line a file
pub const SHIPPED: [(&str, &str); 13] = [
    ("elastic", include_str!("../../experiment/elastic.toml")),
    ("elastic-16", include_str!("../../experiment/elastic-16.toml")),
    ("faults", include_str!("../../experiment/faults.toml")),
    ("heterogeneous", include_str!("../../experiment/heterogeneous.toml")),
    ("heterogeneous-ppo", include_str!("../../experiment/heterogeneous-ppo.toml")),
    ("heterogeneous-tpu", include_str!("../../experiment/heterogeneous-tpu.toml")),
    ("linear", include_str!("../../experiment/linear.toml")),
    ("live", include_str!("../../experiment/live.toml")),
    ("mixed", include_str!("../../experiment/mixed.toml")),
    ("offline", include_str!("../../experiment/offline.toml")),
    ("offline-ppo", include_str!("../../experiment/offline-ppo.toml")),
    ("quickstart", include_str!("../../experiment/quickstart.toml")),
    ("tenants", include_str!("../../experiment/tenants.toml")),
];
