//! Conventions for which the replica of an artifact was made.

use goodput_env::scenario::Preset;

use super::{REPLICA, policies};

/// Preset under which the policy called `name` behaves as its artifact does; `None` where it is no replica.
pub fn preset_of(name: &str) -> Option<Preset> {
    let (plain, _) = name.split_once(REPLICA)?;
    policies().find(|entry| entry.name == plain)?.replica?;
    match plain {
        "sia" => Some(Preset::SiaSosp23),
        // This AFS is the one of DeepBoot's simulator.
        "deepboot" | "afs-l" => Some(Preset::DeepbootTpds23),
        "srtf" | "srsf" | "tiresias-l" => Some(Preset::TiresiasNsdi19),
        _ if plain.starts_with("gavel") => Some(Preset::GavelOsdi20),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::preset_of;
    use crate::compose::{REPLICA, policies};

    #[test]
    fn replicas_have_a_preset_and_no_other_policy_has() {
        for policy in policies() {
            let replica = format!("{}{}", policy.name, REPLICA);
            // ElasticFlow's simulator is the policy: what surrounds the policy there is a restart cost, and no preset.
            let has_preset = policy.replica.is_some() && policy.name != "elasticflow";
            assert_eq!(preset_of(&replica).is_some(), has_preset, "{replica}");
            assert_eq!(preset_of(policy.name), None);
        }
    }
}
