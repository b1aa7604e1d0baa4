//! Neural forecasters on ETTh1, the standard 12/4/4-month split:
//! `cargo run --release --workspace --example etth1 -- dlinear`, or `patchtst`, `nhits`, `lstm`.
//!
//! Options are KEY=VALUE: lookback, horizon, steps, batch, rate, decay, dropout, width, hidden,
//! layers, patch, stride, seed.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints figures of reference data")]

#[path = "../tests/etth1/mod.rs"]
mod etth1;

use std::collections::BTreeMap;

use etth1::{Etth1, MONTHS4, TRAIN};
use goodput_forecast::neural::{
    Architecture, Centre, Dlinear, Lstm, NetLoss, Nhits, PatchTst, Spec, Trainer, Training,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "dlinear".into());
    let options: BTreeMap<String, f64> = arguments
        .map(|option| option.split_once('=').map(|(key, value)| (key.to_string(), value.parse().unwrap())).unwrap())
        .collect();
    let number = |key: &str, default: f64| options.get(key).copied().unwrap_or(default);
    let count = |key: &str, default: usize| number(key, default as f64) as usize;
    let (architecture, steps, rate) = match name.as_str() {
        "dlinear" => (Architecture::Dlinear(Dlinear::default()), 6000, 2e-3),
        "lstm" => (Architecture::Lstm(Lstm { chunk: 12, ..Lstm::default() }), 2000, 1e-3),
        "nhits" => (Architecture::Nhits(Nhits::default()), 2000, 1e-3),
        _ => {
            let base = PatchTst::default();
            let net = PatchTst {
                patch: count("patch", base.patch),
                stride: count("stride", base.stride),
                width: count("width", base.width),
                hidden: count("hidden", base.hidden),
                layers: count("layers", base.layers),
                heads: count("heads", base.heads),
                dropout: number("dropout", 0.3),
            };
            (Architecture::PatchTst(net), 2000, 1e-3)
        }
    };
    let centre = match (name.as_str(), count("centre", 9)) {
        (_, 0) => Centre::Last,
        (_, 1) => Centre::Mean,
        ("dlinear", _) | (_, 2) => Centre::Series,
        _ => Centre::Mean,
    };
    let spec = Spec {
        architecture,
        day_steps: 24,
        lookback: count("lookback", 336),
        horizon: count("horizon", 96),
        levels: vec![0.5],
        centre,
        loss: NetLoss::Squared,
        series_day_steps: None,
    };
    let training = Training {
        steps: number("steps", f64::from(steps)) as u64,
        batch: count("batch", 256),
        learning_rate: number("rate", rate),
        weight_decay: number("decay", 0.0),
        validate_every: 100,
        ..Training::default()
    };
    println!("{spec:?}\n{training:?}");
    let data = Etth1::load();
    let known = data.known(TRAIN + MONTHS4);
    let mut trainer = Trainer::new(&spec, &training, &known, TRAIN, count("seed", 1) as u64).unwrap();
    println!("{} parameters", trainer.net().weights().len());
    let start = cpu_secs();
    let mut sum = 0.0;
    while !trainer.is_done() {
        sum += trainer.step().unwrap();
        if trainer.is_due() {
            let validation = trainer.validate().unwrap();
            let loss = sum / training.validate_every as f64;
            println!("{} loss {loss:.4} validation {validation:.4} cpu {:.0} s", trainer.steps(), cpu_secs() - start);
            sum = 0.0;
        }
    }
    for (which, net) in [("best", trainer.best()), ("last", trainer.net().clone())] {
        let (mse, mae) = data.errors(&net, TRAIN + MONTHS4, TRAIN + 2 * MONTHS4, count("every", 1));
        println!(
            "{name} {which} L={} H={}: MSE {mse:.4} MAE {mae:.4}, cpu {:.0} s",
            spec.lookback,
            spec.horizon,
            cpu_secs() - start
        );
    }
}

/// Processor time of this process so far, seconds; 0 where the system does not tell.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
