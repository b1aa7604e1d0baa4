//! Made-up loads, from which a net of all series learns what real ones rarely show.
//!
//! A load is a product: a level that wanders and jumps, a shape of the day, a factor for each day of the week, noise
//! that lasts, and bursts; requests are counted on top. Training on drawn series beside real ones is that of Das and
//! others ("A decoder-only foundation model for time-series forecasting", ICML 2024, appendix on synthetic data) and of
//! Ansari and others ("Chronos", TMLR 2024, KernelSynth).

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Series;

/// Steps in a day: ten minutes each.
const DAY: usize = 144;
const STEP_MILLIS: i64 = 600_000;

/// Load number `number` under `seed`, of `days` days in steps of ten minutes, in requests per second or another unit.
pub fn synthetic_load(seed: u64, number: u64, days: usize) -> Series {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    let mut draw = Draw(random);
    let shape = draw.shape();
    let week = draw.week();
    let (wander, drift) = (draw.size(0.002, 0.15), 0.02 * draw.normal());
    let (lasting, rough) = (draw.size(1.0, 300.0), draw.size(0.01, 0.35));
    let keep = (-1.0 / lasting).exp();
    let bursts = if draw.chance(0.4) { draw.size(0.1, 6.0) / DAY as f64 } else { 0.0 };
    let jumps = if draw.chance(0.3) { draw.size(0.05, 0.5) / DAY as f64 } else { 0.0 };
    let requests = draw.size(2.0, 1e5);
    let (mut level, mut noise, mut burst, mut fade) = (0.0, 0.0, 0.0, 0.5);
    let load = (0..days * DAY).map(|step| {
        let of_day = step % DAY;
        if of_day == 0 {
            level += drift + wander * draw.normal();
        }
        if draw.chance(jumps) {
            level += 0.7 * draw.normal();
        }
        if draw.chance(bursts) {
            (burst, fade) = (burst + draw.size(0.2, 4.0), (-1.0 / draw.size(0.5, 18.0)).exp());
        }
        noise = keep * noise + (1.0 - keep * keep).sqrt() * rough * draw.normal();
        burst *= fade;
        let rate = (level + shape[of_day] + week[step / DAY % 7] + noise).clamp(-12.0, 12.0).exp() * (1.0 + burst);
        let expected = requests * rate;
        (expected + expected.sqrt() * draw.normal()).max(0.0)
    });
    Series::new(0, STEP_MILLIS, load.collect()).expect("ten minutes are a step")
}

struct Draw(ChaCha8Rng);

impl Draw {
    /// Standard normal number: Box and Muller, 1958.
    fn normal(&mut self) -> f64 {
        let (a, b): (f64, f64) = (self.0.random(), self.0.random());
        (-2.0 * (1.0 - a).ln()).sqrt() * (TAU * b).cos()
    }

    /// Whether something of this probability happens.
    fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// A positive number between two, its logarithm uniform.
    fn size(&mut self, least: f64, most: f64) -> f64 {
        (least.ln() + (most / least).ln() * self.0.random::<f64>()).exp()
    }

    /// Logarithms of the load by step of the day: waves of the day and of its parts, hours of work, or nothing.
    fn shape(&mut self) -> Vec<f64> {
        let mut shape = vec![0.0; DAY];
        if self.chance(0.12) {
            return shape;
        }
        let size = self.size(0.1, 1.2);
        for part in 1..=5 {
            let (height, phase) = (size * self.normal() / f64::from(part), TAU * self.0.random::<f64>());
            for (step, value) in shape.iter_mut().enumerate() {
                *value += height * (TAU * f64::from(part) * step as f64 / DAY as f64 + phase).sin();
            }
        }
        if self.chance(0.3) {
            let (begin, hours, height) = (24.0 * self.0.random::<f64>(), self.size(1.0, 12.0), self.normal());
            let steep = self.size(1.0, 20.0);
            for (step, value) in shape.iter_mut().enumerate() {
                let hour = (24.0 * step as f64 / DAY as f64 - begin).rem_euclid(24.0);
                *value += height / (1.0 + (steep * (hour - hours)).clamp(-60.0, 60.0).exp());
            }
        }
        shape
    }

    /// Logarithms of the load by day of the week.
    fn week(&mut self) -> [f64; 7] {
        let (spread, weekend) = (self.size(0.01, 0.2), if self.chance(0.6) { self.size(0.05, 1.2) } else { 0.0 });
        let first = self.0.random_range(0..7_usize);
        let mut week = [0.0; 7];
        for (day, value) in week.iter_mut().enumerate() {
            *value = spread * self.normal() - if (day + first) % 7 < 2 { weekend } else { 0.0 };
        }
        week
    }
}
