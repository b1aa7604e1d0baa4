//! New tenants by one model of many: `cargo run --release -p goodput-forecast --example global -- RATES.csv`, a rate table with a column a client
//! (`servegen_top_clients_rate_10min.csv`, or `servegen_language_clients_rate_10min.parquet` as CSV by `pandas.read_parquet(P).to_csv(C, index=False)`).
//!
//! Every third client is new: of it two days are known at each origin. The others' first nine days make the global model, so nothing of the scored days is in it.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table of reference data")]

use goodput_forecast::{Adaptive, Fit, GlobalRidge, Horizon, Model, Predict, Series};

const DAY: usize = 144;
const KNOWN: usize = 9 * DAY;

fn main() {
    let path = std::env::args().nth(1).expect("the path of a rate table");
    let text = std::fs::read_to_string(path).unwrap();
    let names: Vec<&str> = text.lines().next().unwrap().split(',').skip(1).collect();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(1).map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
        .collect();
    // A zero is a gap of the collector; clients with a tenth of gaps or more are too intermittent for a daily model.
    let series = |column: usize| {
        let values: Vec<f64> = rows.iter().map(|row| if row[column] > 0.0 { row[column] } else { f64::NAN }).collect();
        Series::new(0, 600_000, values.into()).unwrap()
    };
    let all: Vec<(&str, Series)> = (0..names.len())
        .map(|column| (names[column], series(column)))
        .filter(|(_, series)| series.len() > KNOWN + DAY && series.observed_len() * 10 > series.len() * 9)
        .collect();
    let known: Vec<Series> =
        all.iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, (_, s))| s.slice(0..KNOWN).unwrap()).collect();
    let global = GlobalRidge { day_steps: DAY, horizon_steps: DAY }.fit(&known).unwrap();
    println!("{} clients, {} in the global model\n", all.len(), known.len());
    println!("| new client | seasonal naive | own default | own direct ridge | global ridge |\n|---|---|---|---|---|");
    let mut ratios = vec![];
    for (name, series) in all.iter().step_by(3).map(|(name, series)| (name, series)) {
        let mut errors = [0.0; 4];
        let mut count = 0.0;
        for origin in (KNOWN..=series.len() - DAY).step_by(DAY / 4) {
            let two_days = series.slice(origin - 2 * DAY..origin).unwrap();
            let own =
                |model: &Adaptive| model.fit(&two_days).unwrap().predict(Horizon::steps(DAY), &[0.5]).point().to_vec();
            let filled = two_days.fill_gaps(DAY);
            let points = [
                filled.values().to_vec()[DAY..].to_vec(),
                own(&Adaptive::daily(DAY)),
                own(&Adaptive::single(Model::DirectRidge, DAY)),
                global.predict(&two_days, DAY),
            ];
            for step in 0..DAY {
                if let Some(y) = series.get(origin + step).filter(|_| !points[0][step].is_nan()) {
                    count += 1.0;
                    for (error, point) in errors.iter_mut().zip(&points) {
                        *error += (y - point[step]).abs();
                    }
                }
            }
        }
        let cells: Vec<String> = errors.iter().map(|error| format!("{:.3}", error / count)).collect();
        println!("| {name} | {} |", cells.join(" | "));
        ratios.push(errors.map(|error| (error / errors[0]).ln()));
    }
    let mean = |k: usize| (ratios.iter().map(|r| r[k]).sum::<f64>() / ratios.len() as f64).exp();
    println!("| geometric mean, naive = 1 | 1.000 | {:.3} | {:.3} | {:.3} |", mean(1), mean(2), mean(3));
    let wins = |k: usize| ratios.iter().filter(|r| r[3] < r[k]).count();
    println!("\nglobal ahead of naive on {}, of own default on {} of {}", wins(0), wins(1), ratios.len());
}
