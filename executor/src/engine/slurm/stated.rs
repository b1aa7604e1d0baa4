//! Facts in a job's comment: more than Slurm knows, kept where a daemon that is started anew finds
//! them.
//!
//! Any user may write any comment on a job of their own. So a comment is believed about the job
//! itself: its sizes, its duration, its application, its retries, its token. Facts that weigh against
//! jobs of others, which are tenant, owner, priority and time of submission, are believed in two cases only:
//! the comment is signed with the key of the daemon ([`FactsKey`]), or the facts stand in Slurm's
//! `AdminComment`, which operators alone can write.

use goodput_env::model::BatchLimits;

use crate::engine::batch_text;

/// Begins the comment of jobs that say more of themselves than Slurm knows.
pub(super) const MARK: &str = "goodput";

/// Facts in a job's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommentFacts {
    pub gpus: Option<u32>,
    pub min: Option<u32>,
    pub max: Option<u32>,
    pub submit_ms: Option<i64>,
    pub priority: Option<i32>,
    pub duration_ms: Option<i64>,
    pub application: Option<String>,
    pub tenant: Option<String>,
    /// Owner of the token that handed it in through the daemon.
    pub owner: Option<String>,
    pub batch: Option<BatchLimits>,
    /// Hash of the token with which it reports.
    pub token: Option<String>,
    /// Number of failures within an hour that the job may have. Where not stated, the site's own
    /// rules decide whether the job is tried again.
    pub retries: Option<u32>,
    /// Times of its failures, seconds of the Unix epoch.
    pub failed: Vec<i64>,
}

impl CommentFacts {
    /// As a comment.
    pub fn text(&self) -> String {
        let mut text = String::from(MARK);
        let mut add = |name: &str, value: Option<String>| {
            // It goes into a line of `scontrol`, which takes quotes for a part of a comment.
            let plain = |c: char| c.is_ascii_graphic() && !['"', '\'', '\\', ';'].contains(&c);
            let word = value.filter(|value| !value.is_empty() && value.chars().all(plain));
            text.extend(word.map(|word| format!(";{name}={word}")));
        };
        add("gpus", self.gpus.map(|n| n.to_string()));
        add("min", self.min.map(|n| n.to_string()));
        add("max", self.max.map(|n| n.to_string()));
        add("submit_ms", self.submit_ms.map(|n| n.to_string()));
        add("priority", self.priority.map(|n| n.to_string()));
        add("duration_ms", self.duration_ms.map(|n| n.to_string()));
        add("application", self.application.clone());
        add("tenant", self.tenant.clone());
        add("owner", self.owner.clone());
        add("batch", self.batch.map(batch_text::write));
        add("token", self.token.clone());
        add("retries", self.retries.map(|n| n.to_string()));
        add("failed", Some(joined(self.failed.iter(), ",")));
        text
    }

    /// Whether a comment gives its job to the daemon: its first word is `goodput`.
    pub fn gives(text: &str) -> bool {
        text.split(|c: char| c == ';' || c.is_whitespace()).next() == Some(MARK)
    }

    /// The facts without those that weigh against jobs of others.
    pub fn of_a_user(self) -> Self {
        Self { tenant: None, owner: None, priority: None, submit_ms: None, ..self }
    }

    /// Facts of a comment; none where the comment is not the daemon's.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(|c: char| c == ';' || c.is_whitespace());
        let mut stated = Self::default();
        if words.next() != Some(MARK) {
            return stated;
        }
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            match name {
                "gpus" => stated.gpus = value.parse().ok(),
                "min" => stated.min = value.parse().ok(),
                "max" => stated.max = value.parse().ok(),
                "submit_ms" => stated.submit_ms = value.parse().ok(),
                "priority" => stated.priority = value.parse().ok(),
                "duration_ms" => stated.duration_ms = value.parse().ok(),
                "application" => stated.application = Some(value.into()),
                "tenant" => stated.tenant = Some(value.into()),
                "owner" => stated.owner = Some(value.into()),
                "batch" => stated.batch = batch_text::read(value).ok(),
                "token" => stated.token = Some(value.into()),
                "retries" => stated.retries = value.parse().ok(),
                "failed" => stated.failed = value.split(',').filter_map(|at| at.parse().ok()).collect(),
                _ => {}
            }
        }
        stated
    }
}

fn joined<T: ToString>(items: impl Iterator<Item = T>, by: &str) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(by)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_comment_says_what_was_stated_and_nothing_that_ends_a_line_of_scontrol() {
        let stated =
            CommentFacts { gpus: Some(4), min: Some(1), tenant: Some("a b".into()), ..CommentFacts::default() };
        assert_eq!(CommentFacts::parse(&stated.text()), CommentFacts { tenant: None, ..stated.clone() });
        assert_eq!(CommentFacts::parse("a comment of mine"), CommentFacts::default());
        assert!(CommentFacts::gives(&stated.text()) && CommentFacts::gives("goodput"));
        assert!(!CommentFacts::gives("") && !CommentFacts::gives("goodputs") && !CommentFacts::gives("my goodput"));
        let quoted =
            CommentFacts { tenant: Some("a\" Priority=9".into()), application: Some("x\"y".into()), ..stated.clone() };
        assert_eq!(CommentFacts::parse(&quoted.text()), CommentFacts { tenant: None, ..stated.clone() });
        let full = CommentFacts {
            batch: BatchLimits::new(128, 4096, 32, 512).ok(),
            token: Some("0a".into()),
            owner: Some("anna@site".into()),
            retries: Some(2),
            failed: vec![1_700_000_000, 1_700_000_100],
            ..CommentFacts { tenant: None, ..stated }
        };
        assert_eq!(CommentFacts::parse(&full.text()), full);
    }
}
