//! The toy of `tests/toy.rs` end to end on one thread: decisions learnt from per second of CPU, and
//! what was learnt, beside the 4,664 a second and -79.44 of Stable-Baselines3's MaskablePPO (flat
//! net, eight environments, 400,000 decisions) on the machine of its measurement. Run with `cargo
//! xtask bench toy`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "support/mod.rs"]
mod support;
#[path = "../tests/toy_support/mod.rs"]
mod toy_support;

use goodput_agents::nets::fused::Fused;
use goodput_agents::nets::weights::{MlpConfig, NetConfig};
use support::on_one_thread;
use toy_support::{Recipe, play, play_net, shortest};

/// Decisions per second of CPU of the stock implementation.
const STOCK: f64 = 4664.0;
const SEEDS: u64 = 200;

fn main() {
    let recipe = Recipe::default;
    let hidden = [64, 64].into_iter().filter_map(std::num::NonZeroUsize::new).collect();
    let flat = NetConfig::Mlp(MlpConfig { hidden });
    let rows = [
        ("recipe: imitation, then PPO; seed 1", recipe()),
        ("recipe, seed 2", Recipe { seed: 2, ..recipe() }),
        ("recipe, seed 3", Recipe { seed: 3, ..recipe() }),
        ("PPO alone", Recipe { imitation: 0, ..recipe() }),
        ("PPO alone, flat net of the stock's size", Recipe { imitation: 0, net: flat, ..recipe() }),
    ];
    let mean = |play: &dyn Fn(u64) -> f64| (1_000_000..1_000_000 + SEEDS).map(play).sum::<f64>() / SEEDS as f64;
    println!("shortest job first: {:.2} over {SEEDS} seeds not trained on", mean(&|seed| play(seed, shortest).0));
    println!("{:<42} {:>9} {:>9} {:>12} {:>7} {:>8}", "", "decisions", "CPU s", "per CPU s", "x stock", "return");
    for (name, recipe) in rows {
        let (secs, weights) = on_one_thread(|| recipe.train());
        let net = Fused::new(&weights[1]);
        let rate = recipe.decisions() as f64 / secs;
        let learned = mean(&|seed| play_net(seed, &net).0);
        println!("{name:<42} {:>9} {secs:>9.1} {rate:>12.0} {:>7.1} {learned:>8.2}", recipe.decisions(), rate / STOCK);
    }
}
