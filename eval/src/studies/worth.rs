//! The worth of a forecast to an autoscaler: accelerator-hours of published rules and of ours, on real loads, at one
//! share of steps with enough capacity.

use std::path::PathBuf;

use goodput_configs::forecast::{SeriesConfig, WorthConfig, WorthLoad};
use goodput_forecast::Series;
use goodput_forecast::worth::{
    ColdStart, JudgedRule, LoanTerms, Match, Parts, ScalingRule, ServiceLoad, judge, least, saving,
};
use rayon::prelude::*;
use serde::Serialize;

use super::forecasting::{StudyError, read_series};

/// All rules on one load, with one cold start, at one target.
#[derive(Clone, Debug)]
pub struct WorthCell {
    /// Name of the load.
    pub load: String,
    /// Seconds from an order to service.
    pub cold_start_secs: f64,
    /// Seconds for which accelerators are lent that are given back.
    pub lease_secs: f64,
    /// Seconds of an accelerator that a recall within the lease costs.
    pub recall_secs: f64,
    /// Share of the steps that is to be attained.
    pub target: f64,
    /// Least mean number of accelerators of any rule that attains the target: a lower bound, without recalls.
    pub least: f64,
    /// The rules, ours first.
    pub rules: Vec<Match>,
    day_steps: usize,
}

/// A rule of a cell, in hours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleRow {
    /// Name of the rule.
    pub rule: &'static str,
    /// Accelerator-hours a day of the test, with the dial that the validation chose.
    pub hours: f64,
    /// Share of the steps of the test that was attained.
    pub attained: f64,
    /// Whether that is the target at least.
    pub reached: bool,
    /// Accelerator-hours a day with the least dial that attains the target on the test; `None` where none does.
    pub hindsight_hours: Option<f64>,
}

/// Ours beside the best rival of a cell, both with the dial that attains the target with the fewest hours in hindsight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HoursSaved {
    /// Rival with the fewest hours.
    pub rival: &'static str,
    /// Share of the hours of the rival that ours saves; negative where it needs more.
    pub saved: f64,
    /// 95 % interval by a bootstrap of whole days; `None` for less than two days.
    pub interval: Option<(f64, f64)>,
}

impl WorthCell {
    /// Accelerator-hours a day of the lower bound.
    pub fn least_hours(&self) -> f64 {
        24.0 * self.least
    }

    /// The rules in their order.
    pub fn rows(&self) -> Vec<RuleRow> {
        let row = |Match { rule, chosen, hindsight }: &Match| RuleRow {
            rule: rule.name(),
            hours: 24.0 * chosen.accelerators,
            attained: chosen.attained,
            reached: chosen.attained >= self.target - 1e-9,
            hindsight_hours: hindsight.as_ref().map(|scored| 24.0 * scored.accelerators),
        };
        self.rules.iter().map(row).collect()
    }

    /// Saving of ours; `None` where it, or every rival, has no dial that attains the target.
    pub fn saving(&self) -> Option<HoursSaved> {
        let (ours, rivals) = self.rules.split_first()?;
        let rivals = rivals.iter().filter_map(|rival| Some((rival.rule.name(), rival.hindsight.as_ref()?)));
        let order = |a: &(&str, &JudgedRule), b: &(&str, &JudgedRule)| a.1.accelerators.total_cmp(&b.1.accelerators);
        let (rival, best) = rivals.min_by(order)?;
        let (saved, interval) = saving(ours.hindsight.as_ref()?, best, self.day_steps);
        Some(HoursSaved { rival, saved, interval })
    }
}

/// Plays all rules on the loads of a file, cell by cell: load, cold start, lease and cost of a recall, target.
///
/// # Errors
/// A series that cannot be read, has no days, is too short for its parts, is almost always 0, or cannot be
/// fitted.
pub fn worth(config: &WorthConfig) -> Result<Vec<WorthCell>, StudyError> {
    let series: Vec<(&WorthLoad, Series)> =
        config.loads.par_iter().map(|load| Ok((load, series(config, load)?))).collect::<Result<_, StudyError>>()?;
    let mut cells: Vec<(&WorthLoad, &Series, f64)> = Vec::new();
    for (load, series) in &series {
        cells.extend(played(config, series.step_millis() as f64 / 1e3).map(|secs| (*load, series, secs)));
    }
    // A forecaster looks as far ahead as its cold start needs.
    let cells: Vec<(&WorthLoad, ServiceLoad, f64)> = cells
        .into_par_iter()
        .map(|(load, series, secs)| Ok((load, service(config, load, series, secs)?, secs)))
        .collect::<Result<_, StudyError>>()?;
    let jobs: Vec<(usize, ScalingRule)> =
        (0..cells.len()).flat_map(|cell| ScalingRule::ALL.map(|rule| (cell, rule))).collect();
    let loans = loans(config);
    let judged: Vec<Vec<Vec<Match>>> = jobs
        .into_par_iter()
        .map(|(cell, rule)| {
            let (_, service, secs) = &cells[cell];
            let terms = |&(lease, recall): &(f64, f64)| LoanTerms::new(lease, recall, service.step_secs);
            let terms: Vec<LoanTerms> = loans.iter().map(terms).collect();
            judge(service, rule, ColdStart::new(*secs, service.step_secs), &terms, &config.targets)
        })
        .collect();
    let under: Vec<(usize, usize)> =
        (0..loans.len()).flat_map(|terms| (0..config.targets.len()).map(move |target| (terms, target))).collect();
    let of_cell = cells.par_iter().zip(judged.par_chunks(ScalingRule::ALL.len()));
    let all = of_cell.flat_map_iter(|((load, service, secs), rules)| {
        let bounds: Vec<f64> = config.targets.iter().map(|&target| bound(service, *secs, target)).collect();
        let (loans, under) = (&loans, &under);
        under.iter().map(move |&(terms, target)| WorthCell {
            load: load.name.clone(),
            cold_start_secs: *secs,
            lease_secs: loans[terms].0,
            recall_secs: loans[terms].1,
            target: config.targets[target],
            least: bounds[target],
            rules: rules.iter().map(|matches| matches[terms][target].clone()).collect(),
            day_steps: service.day_steps,
        })
    });
    Ok(all.collect())
}

/// Pairs of a lease and the cost of a recall, in seconds. Without one of the two the other says nothing, so that such
/// pairs are one.
fn loans(config: &WorthConfig) -> Vec<(f64, f64)> {
    let pairs =
        config.lease_secs.iter().flat_map(|&lease| config.recall_secs.iter().map(move |&recall| (lease, recall)));
    let mut loans: Vec<(f64, f64)> = Vec::new();
    for (lease, recall) in pairs {
        let pair = if lease > 0.0 && recall > 0.0 { (lease, recall) } else { (0.0, 0.0) };
        if !loans.contains(&pair) {
            loans.push(pair);
        }
    }
    loans
}

/// Cold starts with which a load of this step is played: nothing is known of what happens within half a step.
fn played(config: &WorthConfig, step_secs: f64) -> impl Iterator<Item = f64> {
    config.cold_start_secs.iter().copied().filter(move |secs| 2.0 * secs >= step_secs)
}

fn bound(service: &ServiceLoad, cold_start_secs: f64, target: f64) -> f64 {
    let need: Vec<Option<u32>> = service.parts.test.clone().map(|step| service.need(step)).collect();
    least(&need, ColdStart::new(cold_start_secs, service.step_secs), 1.0 - target)
}

fn series(config: &WorthConfig, load: &WorthLoad) -> Result<Series, StudyError> {
    let path: PathBuf = config.folder.join(&load.series.path);
    Ok(read_series(&SeriesConfig { path, ..load.series.clone() })?)
}

fn service(config: &WorthConfig, load: &WorthLoad, series: &Series, secs: f64) -> Result<ServiceLoad, StudyError> {
    let step_millis = series.step_millis();
    let day_steps = series.steps_per_day().ok_or(StudyError::Day { season: "day", step_millis })?;
    let steps = |days: f64| (days * day_steps as f64).round() as usize;
    let validation = steps(load.known_days)..steps(load.known_days) + steps(load.validation_days);
    // Two days of test, so that an interval by days has something to draw from.
    let needed = validation.end + 2 * day_steps;
    if series.len() < needed {
        let days = |steps: usize| steps as f64 / day_steps as f64;
        return Err(StudyError::Short { name: load.name.clone(), days: days(series.len()), needed: days(needed) });
    }
    let reach = ColdStart::new(secs, step_millis as f64 / 1e3).reach();
    let parts = Parts { test: validation.end..series.len(), validation };
    let service = ServiceLoad::new(series, day_steps, config.accelerators, reach, parts)?;
    service.ok_or_else(|| StudyError::Idle { name: load.name.clone() })
}
