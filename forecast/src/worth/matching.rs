//! Rules matched at one attainment of the objective.

use std::ops::Range;

use super::{ColdStart, Damping, Fleet, LoanTerms, Played, ScalingRule, ServiceLoad};
use crate::significance::saving_bootstrap;

/// A rule on the test part.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedRule {
    /// Mean number of accelerators paid for.
    pub accelerators: f64,
    /// Share of the steps that was attained.
    pub attained: f64,
    /// Accelerators paid for on each step.
    pub held: Vec<f64>,
}

impl JudgedRule {
    fn of(played: &Played) -> Self {
        Self { accelerators: played.accelerators(), attained: played.attained(), held: played.held.clone() }
    }
}

/// A rule with the dial set to a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// Rule that was played.
    pub rule: ScalingRule,
    /// The test, with the dial that the validation part chose.
    pub chosen: JudgedRule,
    /// The test, with the dial that needs the least among those that attain the target there; `None` where no dial
    /// does.
    pub hindsight: Option<JudgedRule>,
}

/// Plays `rule` at all of its dials under each of `loans`, and matches it at each target share of attained steps,
/// shape `[loans, targets]`.
///
/// Where recalls cost something, each dial is played twice: with the damping of the rule, and with one that gives
/// nothing back that was asked for within the time that a recall costs. That is the break-even rule of ski rental
/// (Karlin, Manasse, Rudolph, Sleator, "Competitive snoopy caching", Algorithmica 3, 1988), and every rule has it.
pub fn judge(
    service: &ServiceLoad,
    rule: ScalingRule,
    cold: ColdStart,
    loans: &[LoanTerms],
    targets: &[f64],
) -> Vec<Vec<Match>> {
    let [validation, test] = [&service.parts.validation, &service.parts.test]
        .map(|part| (part, rule.asked(service, part, cold, &rule.dials())));
    let under = |&terms: &LoanTerms| {
        let play = |(part, asked): &(&Range<usize>, Vec<Vec<f64>>)| -> Vec<JudgedRule> {
            let each =
                asked.iter().flat_map(|asked| dampings(rule, service, terms).map(move |damping| (asked, damping)));
            let played =
                each.map(|(asked, damping)| Fleet::play(service, (*part).clone(), cold, terms, asked, damping));
            played.map(|played| JudgedRule::of(&played)).collect()
        };
        let (validation, test) = (play(&validation), play(&test));
        let matched = |&target: &f64| {
            let chosen = least_that_attains(&validation, target).or_else(|| most_attained(&validation)).unwrap_or(0);
            let hindsight = least_that_attains(&test, target).map(|dial| test[dial].clone());
            Match { rule, chosen: test[chosen].clone(), hindsight }
        };
        targets.iter().map(matched).collect()
    };
    loans.iter().map(under).collect()
}

/// Dampings that `rule` is played with.
fn dampings(rule: ScalingRule, service: &ServiceLoad, terms: LoanTerms) -> impl Iterator<Item = Damping> {
    let own = rule.scaling(service.step_secs);
    let hold = own.hold.max(terms.recall.round() as usize);
    let longer = (terms.has_cost() && hold > own.hold).then_some(Damping { hold, ..own });
    std::iter::once(own).chain(longer)
}

fn least_that_attains(scores: &[JudgedRule], target: f64) -> Option<usize> {
    // Shares are sums of parts of steps, so that equality has a tolerance.
    let attains = |&dial: &usize| scores[dial].attained >= target - 1e-9;
    (0..scores.len()).filter(attains).min_by(|&a, &b| scores[a].accelerators.total_cmp(&scores[b].accelerators))
}

fn most_attained(scores: &[JudgedRule]) -> Option<usize> {
    (0..scores.len()).max_by(|&a, &b| {
        let order = scores[a].attained.total_cmp(&scores[b].attained);
        order.then(scores[b].accelerators.total_cmp(&scores[a].accelerators))
    })
}

/// Share of the accelerators of `rival` that `ours` saves, with its 95 % interval by a bootstrap of whole days,
/// which are drawn for both; negative where `ours` needs more.
pub fn saving(ours: &JudgedRule, rival: &JudgedRule, day_steps: usize) -> (f64, Option<(f64, f64)>) {
    let days =
        |scored: &JudgedRule| -> Vec<f64> { scored.held.chunks(day_steps).map(|day| day.iter().sum()).collect() };
    let (ours_days, rival_days) = (days(ours), days(rival));
    let saved = 1.0 - ours.accelerators / rival.accelerators;
    (saved, saving_bootstrap(&ours_days, &rival_days, 2_000, 0.95))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worth::Parts;

    /// Thirty days of hours that need 1 accelerator, and 9 from 8 to 16 o'clock.
    fn sawtooth() -> ServiceLoad {
        let load: Vec<f64> = (0..720).map(|step| if (8..16).contains(&(step % 24)) { 8.5 } else { 0.5 }).collect();
        ServiceLoad {
            seen: load.clone(),
            load_per_accelerator: 1.0,
            fleet: 9,
            day_steps: 24,
            step_secs: 3600.0,
            parts: Parts { validation: 240..480, test: 480..720 },
            first: 120,
            points: (120..720).flat_map(|step| [load[step], load[(step + 1) % 720]]).collect(),
            load,
            reach: 2,
        }
    }

    #[test]
    fn foresight_of_a_sawtooth_pays_for_the_cold_start_alone() {
        let service = sawtooth();
        let cold = ColdStart::new(3600.0, 3600.0);
        let judge = |rule| judge(&service, rule, cold, &[LoanTerms::default()], &[0.99]).remove(0).remove(0);
        let ours = judge(ScalingRule::Decide).hindsight.unwrap();
        // 16 hours of 1 and 8 of 9, and 8 accelerators that start for an hour each day.
        let need: Vec<Option<u32>> = service.parts.test.clone().map(|step| service.need(step)).collect();
        let oracle = super::super::least(&need, cold, 0.0);
        assert!((oracle - 96.0 / 24.0).abs() < 1e-9, "{oracle}");
        assert!((ours.accelerators - oracle).abs() < 1e-9 && ours.attained == 1.0, "{ours:?}");
        // A rule that sees the last hour only has to hold the peak all day.
        let reactive = judge(ScalingRule::Reactive);
        assert!(reactive.hindsight.is_none() && reactive.chosen.attained < 0.99, "no headroom up to eight is enough");
        let autopilot = judge(ScalingRule::Autopilot).hindsight.unwrap();
        assert!((autopilot.accelerators - 9.0).abs() < 1e-9, "{}", autopilot.accelerators);
        let (saved, interval) = saving(&ours, &autopilot, 24);
        assert!((saved - 5.0 / 9.0).abs() < 1e-9);
        let (low, high) = interval.unwrap();
        assert!(low <= saved + 1e-9 && saved <= high + 1e-9);
    }

    #[test]
    fn a_dear_recall_keeps_what_comes_back_and_a_lease_that_is_over_costs_nothing() {
        let service = sawtooth();
        let cold = ColdStart::new(3600.0, 3600.0);
        let terms = |lease, recall| LoanTerms::new(lease * 3600.0, recall * 3600.0, 3600.0);
        // Eight accelerators are lent from 16 to 7 o'clock: fifteen hours.
        let loans = [terms(15.0, 0.0), terms(15.0, 2.0), terms(16.0, 2.0), terms(16.0, 40.0)];
        let judged = judge(&service, ScalingRule::Decide, cold, &loans, &[0.99]);
        let hours: Vec<f64> =
            judged.into_iter().map(|mut rows| rows.remove(0).hindsight.unwrap().accelerators).collect();
        assert!((hours[0] - 4.0).abs() < 1e-9 && hours[1] == hours[0], "{hours:?}");
        // The first morning of the test knows of no lease.
        assert!((hours[2] - (4.0 + 16.0 / 24.0 * 0.9)).abs() < 1e-9, "{hours:?}");
        assert!(hours[3] < 9.0 + 1e-9 && hours[3] > 8.0, "all nine are held once they were needed: {hours:?}");
    }
}
