//! Every architecture: both forwards agree, gradients are those of finite differences, training
//! learns, and the same seed gives the same bits.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_forecast::neural::{
    Architecture, Centre, Dlinear, FittedNet, Global, Lstm, NetLoss, NetTrainError, Neural, NeuralNet, Nhits, PatchTst,
    Probe, Spec, Trainer, Training, synthetic_load,
};
use goodput_forecast::{Fit, Horizon, Predict, Series};

const DAY: usize = 12;

fn architectures() -> [Architecture; 5] {
    let patchtst = PatchTst { patch: 4, stride: 2, width: 8, heads: 2, hidden: 12, layers: 2, dropout: 0.0 };
    [
        Architecture::Dlinear(Dlinear { kernel: 5 }),
        Architecture::Lstm(Lstm { hidden: 6, chunk: 3 }),
        Architecture::Nhits(Nhits { pools: vec![4, 2, 1], rates: vec![6, 3, 1], width: 10, layers: 2 }),
        Architecture::PatchTst(patchtst),
        Architecture::Global(Global { width: 12, layers: 2 }),
    ]
}

fn spec(architecture: Architecture) -> Spec {
    Spec { levels: vec![0.1, 0.5, 0.9], ..Spec::daily(architecture, DAY) }
}

/// A daily load with a wander and gaps.
fn series(days: usize) -> Series {
    let load = |step: usize| {
        let shape = (step as f64 * std::f64::consts::TAU / DAY as f64).sin();
        let wander = (step * 7_919 % 101) as f64 / 20.0;
        if step % 37 == 5 { f64::NAN } else { 100.0 + 30.0 * shape + wander }
    };
    Series::new(0, 7_200_000, (0..days * DAY).map(load).collect()).unwrap()
}

fn trainer(spec: &Spec, training: &Training) -> Trainer {
    Trainer::new(spec, training, &[series(20)], 16 * DAY, 7).unwrap()
}

fn net(spec: &Spec) -> NeuralNet {
    trainer(spec, &Training::default()).net().clone()
}

fn probe(spec: &Spec, rows: usize) -> Probe {
    Probe::new(&trainer(spec, &Training::default()), rows)
}

#[test]
fn the_plain_forward_is_burns() {
    for architecture in architectures() {
        for centre in [Centre::Last, Centre::Mean, Centre::Series] {
            let spec = Spec { centre, ..spec(architecture.clone()) };
            let probe = probe(&spec, 5);
            let (ours, theirs) = (probe.plain(), probe.by_burn());
            assert_eq!(ours.len(), 5 * 3 * DAY);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert!((ours - theirs).abs() < 1e-5, "{}: {ours} and {theirs}", architecture.name());
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for architecture in architectures() {
        for loss in [NetLoss::Pinball, NetLoss::Squared] {
            let levels = if loss == NetLoss::Squared { vec![0.5] } else { vec![0.1, 0.5, 0.9] };
            let spec = Spec { loss, levels, ..spec(architecture.clone()) };
            let mut probe = probe(&spec, 8);
            // Away from where weights are all alike and one small move is over many kinks at once.
            for (index, weight) in probe.weights_mut().iter_mut().enumerate() {
                *weight += 0.05 * (1.7 * index as f32).sin();
            }
            let (value, gradient) = probe.gradient();
            assert!((probe.loss() - value).abs() < 1e-6);
            let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            assert!(norm > 1e-3, "{}: no gradient", architecture.name());
            // Along fixed directions, because single weights of a f32 net drown in rounding.
            for direction in 0..4_usize {
                let sign =
                    |index: usize| if (index * 2_654_435_761 + direction * 97) >> 7 & 1 == 0 { 1.0 } else { -1.0 };
                let moved = |size: f32| {
                    let mut moved = probe.clone();
                    for (index, weight) in moved.weights_mut().iter_mut().enumerate() {
                        *weight += size * sign(index);
                    }
                    moved.loss()
                };
                let size = 2e-4;
                let slope = (moved(size) - moved(-size)) / f64::from(2.0 * size);
                let theirs: f64 = gradient.iter().enumerate().map(|(index, &g)| f64::from(g * sign(index))).sum();
                // The pinball loss has kinks between the two ends.
                let slack = if loss == NetLoss::Pinball { 0.05 } else { 0.01 };
                let close = (slope - theirs).abs() <= slack * (theirs.abs() + norm);
                assert!(close, "{} {loss:?}: slope {slope}, gradient {theirs}, norm {norm}", architecture.name());
            }
        }
    }
}

#[test]
fn one_batch_is_learnt_by_heart() {
    for architecture in architectures() {
        let spec = spec(architecture.clone());
        let mut probe = probe(&spec, 4);
        let first = probe.loss();
        for _ in 0..400 {
            probe.step(1e-2).unwrap();
        }
        let last = probe.loss();
        assert!(last < 0.12 * first, "{}: {first} became {last}", architecture.name());
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_a_resumed_run_too() {
    for architecture in architectures() {
        let training = Training { steps: 6, batch: 8, validate_every: 2, ..Training::default() };
        let architecture = match architecture {
            Architecture::PatchTst(patchtst) => Architecture::PatchTst(PatchTst { dropout: 0.3, ..patchtst }),
            other => other,
        };
        let spec = spec(architecture);
        let whole = {
            let mut trainer = trainer(&spec, &training);
            trainer.run().unwrap();
            trainer.best()
        };
        let mut half = trainer(&spec, &training);
        for _ in 0..3 {
            half.step().unwrap();
            if half.is_due() {
                half.validate();
            }
        }
        let text = serde_json::to_string(&half.checkpoint()).unwrap();
        let mut resumed = trainer(&spec, &training);
        resumed.resume(serde_json::from_str(&text).unwrap()).unwrap();
        resumed.run().unwrap();
        assert_eq!(resumed.best(), whole, "{}", spec.architecture.name());
        let other = Trainer::new(&spec, &training, &[series(20)], 16 * DAY, 8).unwrap();
        let random = spec.architecture.name() != "dlinear";
        assert_eq!(random, other.net() != trainer(&spec, &training).net(), "another seed, another start");
    }
}

#[test]
fn training_beats_the_mean_and_quantiles_are_where_they_should_be() {
    for architecture in architectures() {
        let training = Training { steps: 300, learning_rate: 1e-2, batch: 32, ..Training::default() };
        let neural = Neural { spec: spec(architecture.clone()), training, validation_share: 0.1, seed: 1 };
        let all = series(40);
        let mut fitted = neural.fit(&all.slice(0..30 * DAY).unwrap()).unwrap();
        let (mut error, mut covered, mut count) = (0.0, 0.0, 0.0);
        for day in 30..39 {
            let forecast = fitted.predict(Horizon::steps(DAY), &[0.1, 0.5, 0.9]);
            for step in 0..DAY {
                let Some(y) = all.get(day * DAY + step) else { continue };
                error += (y - forecast.point()[step]).abs();
                covered += f64::from(u8::from(y <= forecast.quantiles()[(step, 2)]));
                count += 1.0;
            }
            fitted.update(&all.values().to_vec()[day * DAY..(day + 1) * DAY]);
        }
        // The wander alone has a mean absolute deviation of 1.25, the daily shape one of 19.
        let (error, covered) = (error / count, covered / count);
        assert!(error < 4.0, "{}: {error}", architecture.name());
        assert!((0.7..=1.0).contains(&covered), "{}: {covered}", architecture.name());
    }
}

/// A linear net that has learnt nothing says that it stays as it is, with quantiles around it: no
/// level of its own has to be unlearnt.
#[test]
fn a_linear_net_begins_at_the_last_value() {
    let fitted = net(&spec(architectures()[0].clone())).fit(&series(10)).unwrap();
    let last = series(10).values().to_vec().pop().unwrap();
    let forecast = fitted.predict(Horizon::steps(DAY), &[0.1, 0.5, 0.9]);
    for row in forecast.quantiles().rows() {
        assert!((row[1] - last).abs() < 1e-9, "{row} for {last}");
        assert!((row[1] - row[0] - (row[2] - row[1])).abs() < 1e-3 && row[0] < row[1], "{row}");
    }
}

#[test]
fn the_future_is_never_seen_and_a_level_shift_moves_the_forecast() {
    for architecture in architectures() {
        let spec = spec(architecture.clone());
        let fitted = net(&spec).fit(&series(10)).unwrap();
        let shifted: Vec<f64> = series(10).values().iter().map(|y| 3.0 * y + 1000.0).collect();
        let shifted = net(&spec).fit(&Series::new(0, 7_200_000, shifted.into()).unwrap()).unwrap();
        let (one, other) = (
            fitted.predict(Horizon::steps(DAY + 3), &[0.05, 0.5, 0.95]),
            shifted.predict(Horizon::steps(DAY + 3), &[0.05, 0.5, 0.95]),
        );
        for (a, b) in one.quantiles().iter().zip(other.quantiles()) {
            assert!((3.0 * a + 1000.0 - b).abs() < 0.05, "{}: {a} and {b}", architecture.name());
        }
        // Training on a series with another validation part starts from equal weights and makes equal
        // steps.
        let mut changed = series(20).values().to_vec();
        changed[16 * DAY..].iter_mut().for_each(|y| *y = 1e6);
        let changed = Series::new(0, 7_200_000, changed.into()).unwrap();
        let training = Training { steps: 3, batch: 4, ..Training::default() };
        let mut a = trainer(&spec, &training);
        let mut b = Trainer::new(&spec, &training, &[changed], 16 * DAY, 7).unwrap();
        for _ in 0..3 {
            assert_eq!(a.step().unwrap().to_bits(), b.step().unwrap().to_bits());
        }
        assert_eq!(a.net(), b.net());
    }
}

#[test]
fn short_constant_empty_and_wild_series_are_answered_or_refused() {
    for architecture in architectures() {
        let spec = spec(architecture.clone());
        let net = net(&spec);
        for values in [vec![5.0], vec![0.0; 100], vec![f64::NAN, 3.0], vec![1e300, -1e300, 1e300, 0.0]] {
            let fitted = net.fit(&Series::new(0, 1, values.clone().into()).unwrap()).unwrap();
            let forecast = fitted.predict(Horizon::steps(30), &[0.001, 0.5, 0.999]);
            assert!(forecast.quantiles().iter().all(|q| !q.is_nan()), "{values:?}");
            if values.len() == 100 {
                assert!(forecast.point().iter().all(|y| y.abs() < 10.0), "a constant is not blown up");
            }
        }
        assert!(net.fit(&Series::new(0, 1, vec![f64::NAN; 9].into()).unwrap()).is_err());
        let short = Trainer::new(&spec, &Training::default(), &[series(2)], 2 * DAY, 1).unwrap_err();
        assert_eq!(short, NetTrainError::TooShort { known: 24, needed: spec.lookback + DAY });
    }
}

#[test]
fn a_snapshot_reads_back_and_a_broken_one_is_refused() {
    let spec = spec(architectures()[2].clone());
    let fitted = net(&spec).fit(&series(5)).unwrap();
    let text = serde_json::to_string(&fitted).unwrap();
    let read: FittedNet = serde_json::from_str(&text).unwrap();
    assert_eq!(read, fitted);
    let broken = text.replace("\"lookback\":24", "\"lookback\":20");
    let said = serde_json::from_str::<FittedNet>(&broken).unwrap_err().to_string();
    assert!(said.contains("weights for a net that has"), "{said}");
    let bad = Spec { lookback: 0, ..spec.clone() };
    assert_eq!(bad.check().unwrap_err().to_string(), "`lookback`: expected at least 2 steps");
    let bad = Spec { architecture: Architecture::Lstm(Lstm { chunk: 5, ..Lstm::default() }), ..spec };
    assert!(bad.check().unwrap_err().to_string().contains("a divisor of the lookback of 24"));
}

/// `neural_reference.py` writes the nets down a second time, from their papers and in double
/// precision.
#[test]
fn forwards_are_those_of_the_second_statement() {
    let text = include_str!("neural_reference.json");
    let reference: serde_json::Value = serde_json::from_str(text).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let window = numbers(&reference["window"]);
    let patchtst = PatchTst { patch: 4, stride: 2, width: 4, heads: 2, hidden: 6, layers: 2, dropout: 0.0 };
    for architecture in [
        Architecture::Dlinear(Dlinear { kernel: 5 }),
        Architecture::Lstm(Lstm { hidden: 4, chunk: 3 }),
        Architecture::Nhits(Nhits { pools: vec![4, 2, 1], rates: vec![6, 3, 1], width: 5, layers: 2 }),
        Architecture::PatchTst(patchtst),
    ] {
        let spec = Spec { horizon: 6, lookback: 12, levels: vec![0.1, 0.5, 0.9], ..Spec::daily(architecture, 6) };
        let count: usize = NeuralNet::shapes(&spec).unwrap().iter().map(|(_, [rows, columns])| rows * columns).sum();
        let weights = (0..count).map(|i| (0.3 * (1.7 * i as f64 + 0.3).sin()) as f32).collect();
        let name = spec.architecture.name();
        let ours = NeuralNet::from_parts(spec, 0.0, 1.0, weights).unwrap().quantiles(&window);
        let theirs = numbers(&reference["quantiles"][name]);
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() < 1e-5 * theirs.abs().max(10.0), "{name}: {ours} and {theirs}");
        }
    }
}

#[test]
fn the_net_of_all_series_is_that_of_the_second_statement() {
    let reference: serde_json::Value = serde_json::from_str(include_str!("neural_reference.json")).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let architecture = Architecture::Global(Global { width: 5, layers: 2 });
    let spec = Spec { horizon: 3, levels: vec![0.1, 0.5, 0.9], ..Spec::daily(architecture, 4) };
    let count: usize = NeuralNet::shapes(&spec).unwrap().iter().map(|(_, [rows, columns])| rows * columns).sum();
    let weights = (0..count).map(|i| (0.3 * (1.7 * i as f64 + 0.3).sin()) as f32).collect();
    let window = numbers(&reference["global"]["window"]);
    let ours = NeuralNet::from_parts(spec, 0.0, 1.0, weights).unwrap().quantiles(&window);
    let theirs = numbers(&reference["global"]["quantiles"]);
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < 1e-4 * theirs.abs().max(10.0), "{ours} and {theirs}");
    }
}

#[test]
fn a_net_of_all_series_knows_no_units_and_takes_steps_of_another_length() {
    let spec = spec(Architecture::Global(Global { width: 12, layers: 1 }));
    let mut probe = probe(&spec, 8);
    for _ in 0..50 {
        probe.step(1e-2).unwrap();
    }
    let net = NeuralNet::from_parts(spec.clone(), 0.0, 1.0, probe.weights_mut().to_vec()).unwrap();
    let values: Vec<f64> = series(9).fill_gaps(DAY).values().to_vec();
    let window = &values[values.len() - net.lookback()..];
    let scaled: Vec<f64> = window.iter().map(|value| 1000.0 * value).collect();
    for (one, other) in net.quantiles(window).iter().zip(net.quantiles(&scaled)) {
        assert!((1000.0 * one - other).abs() < 1e-3 * other.abs(), "{one} and {other}");
    }
    // A step of a third of the length, with equal values, has equal forecasts.
    let fine: Vec<f64> = window.iter().flat_map(|&value| [value; 3]).collect();
    let finer = net.clone().for_day(3 * DAY).unwrap();
    assert_eq!((finer.lookback(), finer.horizon()), (21 * DAY, 3 * DAY));
    let (coarse, fine) = (net.median(window), finer.median(&fine));
    for (step, value) in fine.iter().enumerate() {
        assert!((value - coarse[step / 3]).abs() < 1e-6 * value.abs(), "step {step}");
    }
    let dlinear = Architecture::Dlinear(Dlinear { kernel: 5 });
    let other = Spec { series_day_steps: Some(24), ..Spec::daily(dlinear, DAY) };
    assert!(other.check().unwrap_err().to_string().contains("a net of all series"));
}

#[test]
fn made_up_loads_are_drawn_by_name_and_are_all_finite_and_not_negative() {
    for number in 0..50 {
        let load = synthetic_load(3, number, 21);
        assert_eq!((load.len(), load.observed_len(), load.step_millis()), (21 * 144, 21 * 144, 600_000));
        assert!(load.iter().flatten().all(|value| value.is_finite() && value >= 0.0));
    }
    assert_eq!(synthetic_load(3, 7, 2), synthetic_load(3, 7, 2));
    assert_ne!(synthetic_load(3, 7, 2), synthetic_load(3, 8, 2));
}
