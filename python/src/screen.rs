//! An environment as text: the clock, the free accelerators, and the jobs in their slots.

use std::fmt::Write;

use goodput_env::gym::{ClusterEnv, Slot};
use goodput_env::view::ClusterView;

/// Text of an environment; a line for an environment that has not been reset.
pub fn text(env: &ClusterEnv) -> String {
    let Some(view) = env.view() else { return "no episode has begun\n".to_owned() };
    let round = env.round();
    let names = view.cluster().types.iter().map(|kind| kind.name.as_str());
    let free: Vec<String> = names.zip(round.free()).map(|(name, free)| format!("{free} {name}")).collect();
    let (days, rest) = (view.now.as_millis() / 86_400_000, view.now.as_millis() % 86_400_000 / 1000);
    let mut text = format!(
        "day {days} {:02}:{:02}:{:02}  {} of {} accelerators free ({})  {} jobs, {} without a slot\n",
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        round.free().iter().sum::<u32>(),
        view.cluster().total_gpus(),
        free.join(", "),
        view.active(),
        round.hidden(),
    );
    if !round.slots().is_empty() {
        text.push_str("slot  job                       application   size  asked  age h  left h\n");
    }
    for (at, slot) in round.slots().iter().enumerate() {
        line(&mut text, at, slot, &view);
    }
    for (at, slot) in round.shared().services().iter().enumerate() {
        let name = view.service(slot.service).map_or_else(String::new, |service| service.name().to_owned());
        // Writing to a text cannot fail.
        let _ = writeln!(text, "service {at}  {name}  {} replicas{}", slot.held, change(slot.held, slot.working));
    }
    text
}

/// Adds the line of one slot.
fn line(text: &mut String, at: usize, slot: &Slot, view: &ClusterView<'_>) {
    let Some(job) = view.job(slot.job) else { return };
    let left = match job.remaining_secs(slot.working.max(slot.ladder.min())) {
        Some(secs) => format!("{:.1}", secs / 3600.0),
        None => "?".to_owned(),
    };
    let size = format!("{}{}", slot.held, change(slot.held, slot.working));
    // Writing to a text cannot fail.
    let _ = writeln!(
        text,
        "{at:>4}  {:<24.24}  {:<12.12}  {size:>5}  {:>5}  {:>5.1}  {left:>6}",
        job.request().name,
        job.model_name(),
        job.request().gpus,
        job.age().as_secs_f64() / 3600.0,
    );
}

/// The number that the draft of the round makes of `held`, where it is another one.
fn change(held: u32, working: u32) -> String {
    if held == working { String::new() } else { format!(">{working}") }
}
