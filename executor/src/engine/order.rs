//! The name of an order: equal for equal subject, attempt, verb and plan, so that an order is never
//! given twice.

use sha2::{Digest, Sha256};

use super::action::{EngineAction, Order, OrderId};

/// The first 16 hexadecimal digits of the SHA-256 of `parts`, told apart.
pub fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl Order {
    /// The order with its name: a hash of plan, subject, attempt and verb.
    pub fn named(plan: &str, job: &str, starts: u32, action: EngineAction) -> Self {
        let subject = action.subject().unwrap_or_else(|| job.to_string());
        let id = OrderId(digest(&[plan, &subject, &starts.to_string(), action.verb()]));
        Self { id, job: job.into(), starts, action }
    }
}
