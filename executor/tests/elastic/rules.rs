//! The Python client's rules for the learning rate, beside those of goodput's model.

use std::process::Command;

use goodput_env::model::{GradientStats, LearningRateRule};

/// Review of fidelity, finding 2 (A12): the rules had no caller but a test.
#[test]
fn rules_for_the_learning_rate_are_those_of_the_model() {
    let rules = [
        ("ada_scale", LearningRateRule::AdaScale),
        ("square_root", LearningRateRule::SquareRoot),
        ("linear", LearningRateRule::Linear),
        ("legw", LearningRateRule::Legw { warmup_steps: 50.0 }),
    ];
    let mut cases = Vec::new();
    for (name, rule) in rules {
        for scale in [1.0, 2.5, 16.0] {
            for (sqr, var) in [(1.0, 4.0), (0.5, 0.0), (0.0, 3.0), (-1.0, 2.0)] {
                for progress in [0.0, 70.0, 1e6] {
                    let factor = rule.factor(scale, GradientStats { sqr, var }, progress);
                    cases.push((format!("('{name}', {scale}, ({sqr}, {var}), {progress}, 50.0)"), factor));
                }
            }
        }
    }
    let calls: Vec<&str> = cases.iter().map(|(call, _)| call.as_str()).collect();
    let script = format!(
        "import sys; sys.path.insert(0, {:?}); from goodput_job import learning_rate_factor as rule\n\
         for call in [{}]: print(repr(rule(*call)))",
        concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python"),
        calls.join(", ")
    );
    let said = Command::new("python3").args(["-B", "-c", &script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said: Vec<f64> = String::from_utf8(said.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(said.len(), cases.len());
    for ((call, factor), said) in cases.iter().zip(said) {
        assert!((factor - said).abs() <= 1e-12 * factor.abs(), "{call}: {factor} in the model, {said} in the client");
    }
}
