//! Rules of autoscaling, each with one dial, and the documents that they are taken from.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::rivals::{Arima, LocalTrend, UsageHistogram, hourly};
use super::{ColdStart, Damping, ServiceLoad, ours};

/// Rule that says how much capacity a fleet should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalingRule {
    /// Ours: [`decide`](crate::decide). The dial is the share of steps that the level aims to miss.
    Decide,
    /// The last load times a headroom.
    Reactive,
    /// Kubernetes' HorizontalPodAutoscaler on the load: tolerance 0.1, stabilisation window 300 s downwards
    /// (Kubernetes documentation, "Horizontal Pod Autoscaling", algorithm details). The dial is 1 / target utilisation.
    Hpa,
    /// A threshold of load for each accelerator, as KEDA's scalers have, and 300 s before any fall. KEDA's own
    /// `cooldownPeriod` is for the way to zero alone.
    Threshold,
    /// NVIDIA Dynamo's planner, predictor `constant`: the load of the last adjustment interval, 180 s or a step.
    DynamoConstant,
    /// NVIDIA Dynamo's planner, predictor `arima`: the next interval by an ARIMA model of automatic order.
    /// The results page states the estimation.
    DynamoArima,
    /// NVIDIA Dynamo's planner, predictor `kalman`: the next interval by a local linear trend with variances 1 of the
    /// level, 0.1 of the trend and 10 of the measurement (`planner/utils/load_predictor.py`).
    DynamoKalman,
    /// AWS predictive scaling: an hourly forecast made every six hours, launched before its hour by the cold start or
    /// 300 s, whichever is longer, and never below the last load (Amazon EC2 Auto Scaling User Guide, "Predictive
    /// scaling", `SchedulingBufferTime`). Amazon does not publish the forecaster: ours on hourly means stands in.
    AwsPredictive,
    /// Google Autopilot's moving window: the 95th percentile of a load-adjusted histogram with a half-life of 12 hours,
    /// its largest value of the last hour (Rzadca et al., "Autopilot: workload autoscaling at Google", EuroSys 2020,
    /// section 3.2.2). The dial is the safety margin.
    Autopilot,
}

impl ScalingRule {
    /// Every rule; ours comes first.
    pub const ALL: [Self; 9] = [
        Self::Decide,
        Self::Reactive,
        Self::Hpa,
        Self::Threshold,
        Self::DynamoConstant,
        Self::DynamoArima,
        Self::DynamoKalman,
        Self::AwsPredictive,
        Self::Autopilot,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Reactive => "reactive",
            Self::Hpa => "hpa",
            Self::Threshold => "threshold",
            Self::DynamoConstant => "dynamo_constant",
            Self::DynamoArima => "dynamo_arima",
            Self::DynamoKalman => "dynamo_kalman",
            Self::AwsPredictive => "aws_predictive",
            Self::Autopilot => "autopilot",
        }
    }

    /// Positions of the dial, in an order in which the capacity does not fall.
    pub fn dials(self) -> Vec<f64> {
        match self {
            Self::Decide => (0..48).map(|index| 0.5 * 2e-5_f64.powf(f64::from(index) / 47.0)).collect(),
            _ => (0..73).map(|index| 0.5 * 16.0_f64.powf(f64::from(index) / 72.0)).collect(),
        }
    }

    /// Damping between the load that the rule asks capacity for and the accelerators.
    pub fn scaling(self, step_secs: f64) -> Damping {
        let steps = |secs: f64| (secs / step_secs).ceil() as usize;
        match self {
            Self::Hpa => Damping { tolerance: 0.1, hold: steps(300.0) },
            Self::Threshold => Damping { tolerance: 0.0, hold: steps(300.0) },
            Self::Autopilot => Damping { tolerance: 0.0, hold: steps(3600.0) },
            _ => Damping { tolerance: 0.0, hold: 0 },
        }
    }

    /// Loads that capacity is asked for at each step of `part`, for each dial, shape `[dials, steps]`. At each step the
    /// rule knows the load of the steps before.
    pub fn asked(self, service: &ServiceLoad, part: &Range<usize>, cold: ColdStart, dials: &[f64]) -> Vec<Vec<f64>> {
        // The interval just before the part is the first that a predictor is told in it.
        let before = part.start.saturating_sub(interval(service));
        let expected = match self {
            Self::Decide => return ours::asked(service, part, cold.reach(), dials),
            Self::Reactive | Self::Hpa | Self::Threshold => last(service, part),
            Self::DynamoConstant => by_interval(service, part, |mean| mean),
            Self::DynamoArima => {
                let mut model = Arima::fit(&interval_means(service, before));
                by_interval(service, part, |mean| model.next(mean))
            }
            Self::DynamoKalman => {
                let mut filter = LocalTrend::new(1.0, 0.1, 10.0);
                interval_means(service, before).into_iter().for_each(|mean| _ = filter.next(mean));
                by_interval(service, part, |mean| filter.next(mean))
            }
            Self::AwsPredictive => hourly::expected(service, part, cold),
            Self::Autopilot => autopilot(service, part),
        };
        dials.iter().map(|dial| expected.iter().map(|load| load.max(0.0) * dial).collect()).collect()
    }
}

fn last(service: &ServiceLoad, part: &Range<usize>) -> Vec<f64> {
    part.clone().map(|step| step.checked_sub(1).map_or(0.0, |last| service.seen[last])).collect()
}

/// Steps of Dynamo's adjustment interval of 180 s, at least one.
fn interval(service: &ServiceLoad) -> usize {
    (180.0 / service.step_secs).ceil().max(1.0) as usize
}

/// Mean loads of the whole intervals that end at step `end`.
fn interval_means(service: &ServiceLoad, end: usize) -> Vec<f64> {
    let steps = interval(service);
    service.seen[end % steps..end].chunks_exact(steps).map(|loads| loads.iter().sum::<f64>() / steps as f64).collect()
}

/// Expected load of each interval of `part` under a predictor that is told the mean of the interval before.
fn by_interval(service: &ServiceLoad, part: &Range<usize>, mut next: impl FnMut(f64) -> f64) -> Vec<f64> {
    let steps = interval(service);
    let mut expected = 0.0;
    let each = part.clone().map(|step| {
        if (step - part.start).is_multiple_of(steps) {
            let before = &service.seen[step.saturating_sub(steps)..step];
            expected = next(before.iter().sum::<f64>() / before.len().max(1) as f64);
        }
        expected
    });
    each.collect()
}

fn autopilot(service: &ServiceLoad, part: &Range<usize>) -> Vec<f64> {
    let most = service.seen[..part.start].iter().copied().fold(0.0, f64::max);
    let mut usage = UsageHistogram::new(most, 0.5 * service.day_steps as f64);
    service.seen[..part.start].iter().for_each(|&load| usage.add(load));
    let each = part.clone().map(|step| {
        let expected = usage.percentile(0.95);
        usage.add(service.seen[step]);
        expected
    });
    each.collect()
}
