//! Figures: well-formed, themed, and correct where that can be told without eyes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::comparison;
use goodput_env::time::SimTime;
use goodput_eval::report::picture::{HeldGpus, Picture};
use goodput_eval::report::plots::*;
use goodput_eval::{Estimate, Evaluation, Interval};

fn evaluation() -> Evaluation {
    comparison(2, 12).run(&|_, _| {}).unwrap()
}

fn figures() -> Vec<(&'static str, Figure)> {
    let evaluation = evaluation();
    let run = &evaluation.runs[0];
    let estimate = |value: f64| Estimate { value, ci: Some(Interval { low: value * 0.9, high: value * 1.1 }) };
    let until = run.outcome.end;
    let picture = Picture::of(&run.scenario, &run.outcome);
    let strip = UtilizationRow::new("fifo <1>", 0, &picture, until, 0.5);
    let times = CompletionTimes::of(run.outcome.jobs.iter().filter_map(|job| Some(job.jct()?.as_secs_f64())).collect());
    let learning = LearningCurve {
        name: "ppo".into(),
        x_name: "minutes".into(),
        y_name: "hours".into(),
        points: vec![CurvePoint { x: 0.0, mean: 2.0, ci: None }, CurvePoint { x: 1.0, mean: 1.0, ci: None }],
        baselines: vec![("fifo".into(), 1.5)],
    };
    vec![
        ("cdf", cdf(&[CdfSeries { name: "fifo & co".into(), color: 0, times }])),
        ("forest", forest("fifo", &[ForestRow { name: "srtf".into(), ratio: estimate(0.8) }])),
        ("gantt", gantt(picture.chart.as_ref().unwrap(), GanttFrame::new([&picture]))),
        ("learning", learning_curve(&learning, 0)),
        ("utilization", utilization(&[strip], until)),
        (
            "profiles",
            performance_profiles(
                "fifo",
                &[0.5, 1.0, 2.0],
                &[ProfileSeries { name: "srtf".into(), color: 1, shares: vec![estimate(0.5); 3] }],
            ),
        ),
    ]
}

#[test]
fn figures_use_roles_and_nest_properly() {
    for (name, figure) in figures() {
        let svg = figure.inline();
        assert!(!svg.contains("=\"#"), "{name} has a fixed colour");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert!(!svg.contains("<1>") && !svg.contains("& co"), "{name} escapes names");
        let opened = svg.matches("<text").count();
        assert!(opened > 0 && opened == svg.matches("</text>").count(), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("-2147483648"), "{name} has a point at nowhere");
        if let Some(folder) = std::env::var_os("GOODPUT_SAMPLE_FIGURES") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.svg")), figure.standalone()).unwrap();
        }
    }
}

#[test]
fn a_figure_alone_brings_its_theme() {
    let alone = figures().remove(0).1.standalone();
    assert!(alone.contains("<style>") && alone.contains("prefers-color-scheme:dark"));
}

#[test]
fn empty_data_makes_empty_figures_not_panics() {
    cdf(&[]);
    cdf(&[CdfSeries { name: "none".into(), color: 0, times: CompletionTimes::of(Vec::new()) }]);
    forest("fifo", &[]);
    utilization(&[], SimTime::ZERO);
    performance_profiles("fifo", &[], &[]);
    let curve = LearningCurve {
        name: String::new(),
        x_name: String::new(),
        y_name: String::new(),
        points: vec![],
        baselines: vec![],
    };
    learning_curve(&curve, 0);
    let one = LearningCurve { points: vec![CurvePoint { x: 0.0, mean: 0.0, ci: None }], ..curve };
    learning_curve(&one, 0);
}

#[test]
fn what_is_held_over_time_adds_up_to_what_jobs_attained() {
    for run in evaluation().runs {
        // Logged for the first scenario of each policy, spread evenly for the others: the sum is
        // the same.
        let until = run.outcome.end;
        for bins in [1, 7, 360] {
            let held: f64 = HeldGpus::of(&run.outcome).mean_gpus(until, until, bins).iter().sum::<f64>()
                * until.as_secs_f64()
                / bins as f64;
            let attained = run.outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>() as f64 / 1000.0;
            assert!((held - attained).abs() < 1e-6 * attained, "{held} is not {attained}");
        }
    }
}

#[test]
fn a_large_run_has_no_gantt_chart() {
    let mut large = comparison(1, GANTT_MOST_JOBS + 1);
    large.policies.truncate(1);
    large.scenarios.truncate(1);
    let evaluation = large.run(&|_, _| {}).unwrap();
    let run = &evaluation.runs[0];
    assert!(Picture::of(&run.scenario, &run.outcome).chart.is_none());
}
