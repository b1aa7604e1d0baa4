//! Expense of accelerators while they run: power or price, by type.

use goodput_env::cluster::AcceleratorType;

/// Expense of an accelerator while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expense {
    /// Greatest power, watts.
    Power,
    /// Price, dollars an hour.
    Price,
}

impl Expense {
    /// Name of the figure in the list of accelerators.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Power => "watts",
            Self::Price => "dollars_per_hour",
        }
    }

    /// Whether the expense of some type is known: where it is of none, an objective per expense is one of throughput.
    pub fn is_known(self, types: &[AcceleratorType]) -> bool {
        types.iter().any(|kind| self.figure_of(kind).is_some())
    }

    fn figure_of(self, kind: &AcceleratorType) -> Option<f64> {
        match self {
            Self::Power => kind.watts,
            Self::Price => kind.dollars_per_hour,
        }
    }

    /// Expense of each type. A type of which it is not known counts as the dearest of the others, and where it is known
    /// of none, all count alike.
    pub fn of(self, types: &[AcceleratorType]) -> Vec<f64> {
        let known = |kind| self.figure_of(kind);
        let dearest = types.iter().filter_map(known).reduce(f64::max).unwrap_or(1.0);
        types.iter().map(|kind| known(kind).unwrap_or(dearest)).collect()
    }
}
