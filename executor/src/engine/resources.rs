//! Resources of a job beside its accelerators.

use serde::{Deserialize, Serialize};

/// Resources of a job beside its accelerators, and its place in the books of the cluster. An absent
/// value leaves the choice to the deployment, then to the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobResources {
    /// Processors for each accelerator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_gpu: Option<u32>,
    /// Memory for each accelerator, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_gpu_mib: Option<u64>,
    /// Time after which the engine ends an attempt, minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_mins: Option<u32>,
    /// Account that is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Quality of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// Partition in which the job runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Features that every node of the job must have, in Slurm's notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
}

impl JobResources {
    /// Whether the job asks for accelerators only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks numbers and names.
    ///
    /// # Errors
    /// The first value that is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        for (key, zero) in [
            ("cpus_per_gpu", self.cpus_per_gpu == Some(0)),
            ("memory_per_gpu_mib", self.memory_per_gpu_mib == Some(0)),
            ("time_limit_mins", self.time_limit_mins == Some(0)),
        ] {
            if zero {
                return Err(format!("{key} = 0: expected a positive number; leave it out for the cluster's own"));
            }
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // Features are joined by operators, and counted in brackets.
        let feature = |byte: u8| plain(byte) || b"&|,*()[]:=".contains(&byte);
        for (key, value, known) in [
            ("account", &self.account, &plain as &dyn Fn(u8) -> bool),
            ("qos", &self.qos, &plain),
            ("partition", &self.partition, &plain),
            ("constraint", &self.constraint, &feature),
        ] {
            let Some(value) = value else { continue };
            if value.is_empty() || value.len() > 256 || !value.bytes().all(known) {
                return Err(format!("{key} {value:?}: expected a name of Slurm in at most 256 letters"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positive_and_names_are_plain() {
        let named = |account: &str| JobResources { account: Some(account.into()), ..JobResources::default() };
        assert!(JobResources::default().check().is_ok() && JobResources::default().is_empty());
        assert!(named("vision-1").check().is_ok() && !named("vision-1").is_empty());
        for account in ["", "a b", "x\n--uid=0", "é"] {
            assert!(named(account).check().is_err_and(|text| text.starts_with("account")), "{account:?}");
        }
        let zero = JobResources { cpus_per_gpu: Some(0), ..JobResources::default() };
        assert!(zero.check().is_err_and(|text| text.contains("cpus_per_gpu = 0")));
        let constraint = JobResources { constraint: Some("[a100*2&ib]|h100".into()), ..JobResources::default() };
        assert!(constraint.check().is_ok());
    }
}
