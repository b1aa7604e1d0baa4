//! The page: deterministic, self-contained, and complete.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{comparison, many_policies};
use goodput_eval::report::origin::markdown_results;
use goodput_eval::report::plots::{CurvePoint, LearningCurve};
use goodput_eval::{ComparisonResults, Estimate, Interval, Report, ReportError};

fn report() -> Report {
    let points = (0..40).map(|k| {
        let x = f64::from(k) * 0.1;
        let mean = 0.55 + 0.75 * (-x * 1.4).exp() + 0.015 * (x * 9.0).sin();
        CurvePoint { x, mean, ci: Some(Interval { low: mean - 0.05, high: mean + 0.06 }) }
    });
    Report {
        title: "Sample: stand-in policies on a test workload".into(),
        lead: "Made by a test to look at the page; the learning curve is drawn from a formula.".into(),
        focus: Some("equal-6".into()),
        command:
            "GOODPUT_SAMPLE_REPORT=/tmp/sample.html cargo nextest run --release --workspace -E 'test(/^report::/)'"
                .into(),
        config: "[cluster]\nnodes = 4\n\n[agent.ppo]\nlr = 0.001\nnote = \"<b>\"\n".into(),
        versions: vec![("goodput".into(), "0.1.0".into()), ("burn".into(), "0.22.1".into())],
        learning: Some(LearningCurve {
            name: "equal-6".into(),
            x_name: "decisions, millions".into(),
            y_name: "mean JCT on validation seeds, hours".into(),
            points: points.collect(),
            baselines: vec![("fifo".into(), 1.1), ("shortest".into(), 0.72), ("equal-2".into(), 0.69)],
        }),
    }
}

fn results() -> ComparisonResults {
    let mut comparison = comparison(6, 40);
    comparison.policies = many_policies();
    comparison.reference = Some("equal-2".into());
    comparison.run(&|_, _| {}).unwrap().results()
}

#[test]
fn policies_that_refuse_jobs_are_named_with_what_that_does_to_their_means() {
    let mut results = results();
    assert!(!report().render(&results).unwrap().contains("refused at admission"));
    let refused = Estimate { value: 12.0, ci: None };
    results.summary.policies[1].metrics.insert("refused_jobs".into(), refused);
    let page = report().render(&results).unwrap();
    let named = format!("Jobs refused at admission: {} (12", results.summary.policies[1].name);
    assert!(page.contains(&named), "{named}");
}

#[test]
fn the_page_is_the_same_twice_and_fetches_nothing() {
    let page = report().render(&results()).unwrap();
    assert_eq!(page, report().render(&results()).unwrap());
    // The empty icon of the page fetches nothing.
    let linked = page.replace("<link rel=\"icon\" href=\"data:,\">", "");
    assert!(!linked.contains("<link"), "<link");
    for foreign in ["<script src", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // The name of the form of figures, and the home of the chart library in a comment.
    let named =
        ["http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"].map(|name| page.matches(name).count());
    assert_eq!(page.matches("http").count(), named.iter().sum::<usize>());
    assert!(page.contains("Copyright (c)") && page.contains("Leon Sorokin"), "the licence of the chart library");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("&lt;b&gt;"), "the configuration is escaped");
    assert!(page.contains("prefers-color-scheme:dark"));
    // Only roles reach the figures, never a colour that one theme would not show.
    assert!(!page.contains("fill=\"#") && !page.contains("stroke=\"#"));
    if let Some(path) = std::env::var_os("GOODPUT_SAMPLE_REPORT") {
        std::fs::write(path, page).unwrap();
    }
}

#[test]
fn every_part_is_there() {
    let page = report().render(&results()).unwrap();
    for id in [
        "results",
        "differences",
        "learning",
        "completion",
        "utilisation",
        "gantt",
        "gantt-reference",
        "explore",
        "nodes",
        "profiles",
        "evidence",
        "workloads",
        "provenance",
    ] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("estimate (sigma 0.5)"));
}

#[test]
fn a_single_run_of_a_single_policy_makes_a_page() {
    let mut one = comparison(1, 3);
    one.policies.truncate(1);
    one.scenarios.truncate(1);
    let page =
        Report { title: "One".into(), ..Report::default() }.render(&one.run(&|_, _| {}).unwrap().results()).unwrap();
    assert!(page.contains("no intervals"));
    assert!(!page.contains("id=\"differences\""));
}

#[test]
fn few_seeds_are_no_confidence() {
    let page = report().render(&results()).unwrap();
    assert!(page.contains("bootstrap ranges over 6 seeds") && !page.contains("95\u{a0}% interval"), "six seeds");
    assert_eq!(results().summary.statistics.confidence, None);
    assert!(!results().summary.to_json().contains("confidence"), "six seeds");
    let eight = comparison(8, 6).run(&|_, _| {}).unwrap().results();
    let page = Report { title: "Eight".into(), ..Report::default() }.render(&eight).unwrap();
    assert!(page.contains("95\u{a0}% intervals") && !page.contains("bootstrap ranges"), "eight seeds");
    assert_eq!(eight.summary.statistics.confidence, Some(0.95));
    let [few, many] = [results(), eight].map(|results| markdown_results(&results.summary, &["jct_mean_secs"], None));
    assert!(few.contains("bootstrap ranges over 6 seeds, which show the spread") && !many.contains("ranges"));
}

#[test]
fn the_best_policy_is_set_beside_the_next_one() {
    let sentence = |seeds| {
        let mut comparison = comparison(seeds, 12);
        comparison.reference = Some("equal".into());
        let page = Report::default().render(&comparison.run(&|_, _| {}).unwrap().results()).unwrap();
        page.split("Under equal a job takes ").nth(1).unwrap().split("</").next().unwrap().to_owned()
    };
    let sure = sentence(10);
    assert!(
        sure.contains("on average; under shortest, the next best, it takes ") && sure.contains(" longer (95"),
        "{sure}"
    );
    let unsure = sentence(3);
    assert!(unsure.ends_with("no other policy here is faster on average."), "{unsure}");
}

#[test]
fn an_assumption_about_scaling_is_with_the_results() {
    let mut results = results();
    assert!(!report().render(&results).unwrap().contains("Assumption:"));
    results.summary.workloads[0].assumption = Some("vgg16 scales as imagenet".into());
    let page = report().render(&results).unwrap();
    assert!(page.contains("vgg16 scales as imagenet. The results rest on it."));
    assert!(results.summary.to_json().contains("\"assumption\": \"vgg16 scales as imagenet\""));
    assert!(markdown_results(&results.summary, &["jct_mean_secs"], None).contains("vgg16 scales as imagenet"));
}

#[test]
fn an_unknown_focus_is_an_error() {
    let report = Report { focus: Some("ppo".into()), ..Report::default() };
    assert!(matches!(report.render(&results()), Err(ReportError::UnknownFocus(name)) if name == "ppo"));
}
