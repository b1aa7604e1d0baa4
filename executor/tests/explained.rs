//! The reasons of a learned policy for the last change of a job, as `live explain` tells them.
#![allow(clippy::print_stdout, reason = "tests print the explanations that results record")]

use goodput_executor::daemon::interface::status::QueueRow;

/// Asserts that the last change of a job is explained: the reason names the bundle, its parts add up to the difference
/// from the usual job, and the size that the job is given is among those valued. Prints the explanation after the name
/// `engine`.
pub fn the_bundle_says_why(engine: &str, row: &QueueRow, bundle: &str) {
    let why = row.change.as_ref().unwrap_or_else(|| panic!("nothing is explained: {row:#?}"));
    assert_eq!(why.by, bundle);
    let sum = why.parts.iter().map(|part| part.contribution).sum::<f64>() + why.others;
    assert!(!why.parts.is_empty() && (why.score - why.usual - sum).abs() < 1e-9, "{why:?}");
    assert!(why.gpus > 0 && why.sizes.iter().any(|size| size.gpus == why.gpus && size.value > 0.0), "{why:?}");
    let accelerators = if why.gpus == 1 { "accelerator" } else { "accelerators" };
    let begin = format!("{bundle} gives it {} {accelerators}: an accelerator is worth", why.gpus);
    assert!(why.words().starts_with(&begin), "{}", why.words());
    println!("{engine}: last change: {}", why.words());
    let Some(resize) = &row.resize else { return };
    // A job that waited since its resize has a later reason.
    assert!(resize.by == bundle && (resize.at_ms < why.at_ms || resize.to == why.gpus), "{resize:?}, {why:?}");
    println!("{engine}: last resize: {}", resize.words());
}
