//! Sentences about advice.

use goodput_agents::compose::NamedPolicy;
use goodput_agents::start_time;

use super::change::ClusterChange;
use super::figures::JobGroup;
use super::study::{Advice, AdviceRow};
use crate::stats::{Estimate, Interval};

/// Figure that the sentences are about.
pub(super) const WAIT: &str = "wait_mean_hours";

impl Advice {
    /// Sentences about the policies with the shortest mean wait.
    pub fn verdict(&self) -> Vec<String> {
        let about = |policy: &String, kind: &str| {
            let less = self.plain(policy, &JobGroup::All)?.difference.as_ref()?.get(WAIT)?;
            let beside = against(less, &format!("under {}", self.policies[0]));
            Some(format!("Of {kind}, {policy} has the shortest mean wait: {beside}."))
        };
        let without =
            self.best_without_stops.as_ref().and_then(|policy| about(policy, "the policies that never stop a job"));
        let best = about(&self.best, "all policies").filter(|_| self.best_without_stops.as_ref() != Some(&self.best));
        let mut sentences: Vec<String> = without.into_iter().chain(best).collect();
        if sentences.is_empty() {
            sentences.push(format!("No policy has a shorter mean wait than {}.", self.policies[0]));
        }
        let lies_outside = |row: &AdviceRow| {
            let differences = row.difference.as_ref().and_then(|figures| figures.get(WAIT));
            row.figures.get(WAIT).into_iter().chain(differences).any(|wait| wait.excludes(wait.value))
        };
        if self.rows.iter().filter(|row| row.group == JobGroup::All).any(lies_outside) {
            sentences.push(
                "A wait or a difference of the trace lies outside its range: busy blocks follow one another in the \
                 trace, and not in those drawn. Longer blocks keep more of this (--block-hours)."
                    .into(),
            );
        }
        sentences
    }

    /// Name of a group of jobs.
    pub fn group_name(&self, group: &JobGroup) -> String {
        match group {
            JobGroup::All => "all jobs".into(),
            JobGroup::Size { from, to: Some(to) } if from == to => format!("{from}"),
            JobGroup::Size { from, to: Some(to) } => format!("{from} to {to}"),
            JobGroup::Size { from, to: None } => format!("{from} or more"),
            JobGroup::Tenant(tenant) => {
                self.tenants.get(*tenant as usize).cloned().unwrap_or_else(|| format!("tenant {tenant}"))
            }
        }
    }

    /// Sentences about each policy and its results, with the name of the policy.
    pub(super) fn told(&self) -> Vec<(String, String)> {
        let row = |policy: &String| {
            let row = self.plain(policy, &JobGroup::All)?;
            Some((format!("{policy}:"), [rule(policy), self.waits(row), used(row)].concat()))
        };
        self.policies.iter().filter_map(row).collect()
    }

    fn waits(&self, row: &AdviceRow) -> String {
        let Some(wait) = row.figures.get(WAIT) else { return "No job was complete.".into() };
        let beside = row.difference.as_ref().and_then(|difference| difference.get(WAIT));
        let beside = beside
            .map_or_else(String::new, |less| format!(", {}", against(less, &format!("under {}", self.policies[0]))));
        let longest = row.figures.get("wait_p95_hours");
        let longest =
            longest.map_or_else(String::new, |p95| format!(" Of 100 jobs, 95 wait for at most {}.", span(p95.value)));
        format!("A job waits for {}{beside}.{longest}", around(wait))
    }

    /// Sentences about each change and its results, with the change.
    pub(super) fn changes(&self) -> Vec<(String, String)> {
        let changed = self.rows.iter().filter(|row| row.change != ClusterChange::Nothing && row.group == JobGroup::All);
        let sentence = |row: &AdviceRow| {
            let (wait, less) = (row.figures.get(WAIT)?, row.difference.as_ref()?.get(WAIT)?);
            let beside = against(less, "without it");
            let mut text = format!("under {}, a job waits for {}, {beside}.", row.policy, around(wait));
            if let ClusterChange::DoubleWeight { tenant } = &row.change {
                text += &self.of_tenant(row, tenant).unwrap_or_default();
            }
            Some((capital(&row.change.words()) + ":", text))
        };
        changed.filter_map(sentence).collect()
    }

    /// Sentence about a change for the jobs of its tenant.
    fn of_tenant(&self, of_all: &AdviceRow, tenant: &str) -> Option<String> {
        let is_own = |group: &JobGroup| matches!(group, JobGroup::Tenant(_)) && self.group_name(group) == tenant;
        let mut rows = self.rows.iter().filter(|row| row.change == of_all.change && row.policy == of_all.policy);
        let own = rows.find(|row| is_own(&row.group))?;
        let (wait, less) = (own.figures.get(WAIT)?, own.difference.as_ref()?.get(WAIT)?);
        Some(format!(" A job of {tenant} waits for {}, {}.", around(wait), against(less, "without it")))
    }
}

/// Rule of a policy, and whether it stops jobs.
fn rule(policy: &str) -> String {
    let Ok(named) = policy.parse::<NamedPolicy>() else { return String::new() };
    let stops = if named.traits().preemptive { "It stops running jobs" } else { "It never stops a job" };
    format!("{}. {stops}. ", capital(named.entry().about))
}

/// Use of the cluster.
fn used(row: &AdviceRow) -> String {
    let of = |name: &str| row.figures.get(name).map(|figure| figure.value);
    let figures = of("utilisation_percent").zip(of("idle_gpu_hours")).zip(of("fragmentation_percent"));
    let Some(((used, idle), pieces)) = figures else { return String::new() };
    format!(
        " Jobs hold {used:.1}\u{a0}% of the accelerators, {idle:.0} accelerator-hours are idle, and {pieces:.1}\u{a0}% of all \
         accelerator time is free in pieces too small for a job that waits."
    )
}

/// A wait on average, with its range.
fn around(hours: &Estimate) -> String {
    let range =
        hours.ci.map_or_else(String::new, |Interval { low, high }| format!(" ({} to {})", span(low), span(high)));
    format!("{} on average{range}", span(hours.value))
}

/// A difference of waits from those of a policy or a cluster, which `other` names.
fn against(less: &Estimate, other: &str) -> String {
    let side = |hours: f64| if hours < 0.0 { "less" } else { "more" };
    let size = |hours: f64| span(hours.abs());
    let range = match less.ci {
        None => String::new(),
        Some(Interval { low: 0.0, high: 0.0 }) => String::new(),
        Some(Interval { low, high }) if low > 0.0 || high < 0.0 => {
            let (near, far) = if low > 0.0 { (low, high) } else { (high, low) };
            format!(" ({} to {} {})", size(near), size(far), side(near + far))
        }
        Some(Interval { low, high }) => format!(" ({} less to {} more, which may be chance)", size(low), size(high)),
    };
    // A sentence cannot show less than half a second.
    match less.value.abs() < 0.5 / 3600.0 {
        true => format!("as long as {other}{range}"),
        false => format!("{} {} than {other}{range}", size(less.value), side(less.value)),
    }
}

/// A span of time as people say it.
fn span(hours: f64) -> String {
    start_time::span(3600.0 * hours)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, ci: Some(Interval { low, high }) }
    }

    #[test]
    fn a_difference_says_which_way_and_whether_it_may_be_chance() {
        let of = |value, low, high| against(&estimate(value, low, high), "under fifo");
        assert_eq!(of(-1.0, -3.0, -0.5), "60 min less than under fifo (30 min to 3.0 h less)");
        assert_eq!(of(2.0, 1.0, 3.0), "2.0 h more than under fifo (60 min to 3.0 h more)");
        assert_eq!(of(-1.0, -3.0, 0.5), "60 min less than under fifo (3.0 h less to 30 min more, which may be chance)");
        // A range that touches no difference at all may be chance, and one without a width says nothing.
        assert_eq!(of(1.0, 0.0, 3.0), "60 min more than under fifo (0 s less to 3.0 h more, which may be chance)");
        assert_eq!(of(0.0, 0.0, 0.0), "as long as under fifo");
        assert_eq!(against(&Estimate { value: 0.0, ci: None }, "without it"), "as long as without it");
    }

    #[test]
    fn a_difference_outside_its_range_is_explained() {
        let row = |policy: &str, wait: Estimate, less: Option<Estimate>| AdviceRow {
            policy: policy.into(),
            change: ClusterChange::Nothing,
            group: JobGroup::All,
            jobs: 9,
            figures: [(WAIT, wait)].into(),
            difference: less.map(|less| [(WAIT, less)].into()),
        };
        let verdict = |less: Estimate| {
            let rows =
                vec![row("fifo", estimate(5.0, 1.0, 6.0), None), row("srtf", estimate(2.0, 1.0, 3.0), Some(less))];
            let advice = Advice {
                jobs: 9,
                span_hours: 72.0,
                gpus: 8,
                resamples: 20,
                block_hours: 24.0,
                tenants: Vec::new(),
                policies: vec!["fifo".into(), "srtf".into()],
                best: "srtf".into(),
                best_without_stops: Some("fifo".into()),
                rows,
            };
            advice.verdict()
        };
        let inside = verdict(estimate(-3.0, -4.0, -1.0));
        assert_eq!(
            inside,
            ["Of all policies, srtf has the shortest mean wait: 3.0 h less than under fifo (60 min to 4.0 h less)."]
        );
        let outside = verdict(estimate(-3.0, -2.5, -1.0));
        assert!(outside.len() == 2 && outside[1].contains("--block-hours"), "{outside:?}");
    }

    #[test]
    fn a_span_has_the_unit_that_people_say() {
        assert_eq!([0.01, 0.5, 2.5, 60.0].map(span), ["36 s", "30 min", "2.5 h", "2.5 days"]);
    }
}
