//! A convolutional net in PyTorch, on processors: resized without a stop, beside a stop and a restart.

use std::io::Write;
use std::process::Command;

use goodput_testkit::not_tested;

use super::*;

/// The example that ships: a program of one process that `goodput_elastic` makes elastic.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python/elastic_cnn.py");

/// Samples of its data set.
const IMAGES: usize = 960;

/// Steps of an epoch.
const EPOCH: usize = IMAGES / 48;

/// A Python with PyTorch; `None` where there is none.
fn python() -> Option<&'static str> {
    let has_torch = |python: &&str| {
        let tried = Command::new(python).args(["-c", "import torch.distributed"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_torch)
}

fn stripes(python: &str, log: &SampleLog, elastic: bool) -> Submission {
    let folder = log.folder().to_string_lossy().into_owned();
    let command = [python, PROGRAM, "100000", &folder].map(ToOwned::to_owned).to_vec();
    Submission { command, elastic, ..submission(log, 0.0) }
}

/// Stops the job for good and returns its losses by step.
async fn stop(lab: &mut Lab, starts: u32) -> Vec<f64> {
    carry_out(&mut lab.engine, &order(&lab.key, starts, EngineAction::Cancel { grace_s: 30 })).await;
    lab.log.check_begun();
    lab.log.losses()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_convolutional_net_is_resized_without_a_stop_and_learns_as_one_of_fixed_size() {
    let Some(python) = python() else {
        return not_tested("elastic training with PyTorch: no python3 here has it (apt-get install python3-torch)");
    };
    let mut lab = Lab::new(0.0).await;
    let mut runs = Vec::new();
    for (name, elastic) in [("elastic", true), ("restarted", false), ("fixed", false)] {
        let log = SampleLog::of(lab.site.shared.path().join(name), IMAGES);
        lab.key = lab.engine.submit(&stripes(python, &log, elastic)).await.unwrap();
        lab.log = log;
        let sizes = match name {
            "elastic" => vec![
                vec![on("n1", 1)],
                vec![on("n1", 1), on("n2", 1)],
                vec![on("n1", 1), on("n2", 1), on("n3", 1)],
                vec![on("n2", 1)],
            ],
            "restarted" => vec![vec![on("n1", 1)], vec![on("n1", 1), on("n2", 1)], vec![on("n2", 1)]],
            _ => vec![vec![on("n1", 1)]],
        };
        for placement in sizes {
            match elastic {
                true => drop(lab.on(placement).await),
                false => {
                    let starts = job(&lab.engine.snapshot().await.unwrap(), &lab.key).starts;
                    let action = match starts {
                        0 => place(placement),
                        _ => EngineAction::Resize { placement, grace_s: 30 },
                    };
                    carry_out(&mut lab.engine, &order(&lab.key, starts, action)).await;
                }
            }
            let steps = lab.log.steps().len();
            lab.reaches(steps + EPOCH).await;
        }
        let enough = runs.first().map_or(0, |(losses, _): &(Vec<f64>, f64)| losses.len());
        lab.reaches(enough.max(10 * EPOCH)).await;
        let starts = job(&lab.engine.snapshot().await.unwrap(), &lab.key).starts;
        assert_eq!(starts, if name == "restarted" { 3 } else { 1 }, "{name}");
        runs.push((stop(&mut lab, starts).await, lab.log.longest_gap()));
        if elastic {
            assert_eq!(lab.log.sizes(), [1, 2, 3, 1]);
        }
    }
    let [(elastic, gap), (_, restart_gap), (fixed, _)] = &runs[..] else { panic!("three runs") };
    let means = |losses: &[f64]| -> Vec<f64> {
        losses.chunks_exact(EPOCH).map(|epoch| epoch.iter().sum::<f64>() / EPOCH as f64).collect()
    };
    let (elastic, fixed) = (means(elastic), means(fixed));
    let far = elastic.iter().zip(&fixed).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
    // Straight to stderr: the harness swallows what a test that passes prints.
    let _ = writeln!(
        std::io::stderr(),
        "longest time without a step: {gap:.2} s without a stop, {restart_gap:.2} s with stop and restart; mean loss of an \
         epoch {:.3} to {:.3}, at most {far:.4} from that of one process throughout",
        elastic[0],
        elastic[9]
    );
    assert!(elastic[9] < elastic[0] / 2.0, "it learns: {elastic:?}");
    assert!(far < 0.1, "{elastic:?} against {fixed:?}");
    assert!(gap < restart_gap, "a resize without a stop took {gap} s, one with a stop {restart_gap} s");
}
