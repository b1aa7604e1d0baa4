//! Alert rules, runbooks and the alerts of the daemon speak of one set of things.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(clippy::print_stderr, reason = "a test that could not run says so")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_executor::daemon::interface::alert::KINDS;
use goodput_executor::daemon::interface::metrics::Metrics;

fn of_executor(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn rules() -> String {
    fs::read_to_string(of_executor("prometheus/alerts.yml")).unwrap()
}

/// Values of a key of the rules, quotes taken off.
fn values(key: &str) -> Vec<String> {
    let values =
        rules().lines().filter_map(|line| line.trim().strip_prefix(key).map(str::to_owned)).collect::<Vec<_>>();
    values.into_iter().map(|value| value.trim().trim_matches('\'').to_owned()).collect()
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(fs::read_to_string(path).unwrap()),
        }
    }
}

/// Kinds of the alerts that the source raises.
fn raised() -> BTreeSet<String> {
    let mut texts = Vec::new();
    sources(&of_executor("src/daemon"), &mut texts);
    let calls = texts.iter().flat_map(|text| text.split(".alert(").skip(1));
    calls.filter_map(|call| Some(call.trim_start().strip_prefix('"')?.split('"').next()?.to_owned())).collect()
}

#[test]
fn every_alert_of_the_daemon_has_a_rule_and_every_rule_a_runbook() {
    let raised = raised();
    let kinds: BTreeSet<String> = KINDS.map(str::to_owned).into();
    assert!(raised.len() > 10 && raised.is_subset(&kinds), "{raised:?} are not all in the list of kinds");
    let expressions = values("expr:");
    let ruled = expressions.iter().filter_map(|expr| Some(expr.split_once("kind=\"")?.1.split('"').next()?.to_owned()));
    assert_eq!(ruled.collect::<BTreeSet<_>>(), kinds, "the kinds of the rules are those of the list");

    let book = of_executor("../docs/src");
    let summary = fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let overview = fs::read_to_string(book.join("runbooks/overview.md")).unwrap();
    let (names, urls) = (values("- alert:"), values("runbook_url:"));
    assert_eq!(names.len(), urls.len());
    for (name, url) in names.iter().zip(&urls) {
        let page = url.rsplit_once('/').unwrap().1.replace(".html", ".md");
        let text =
            fs::read_to_string(book.join("runbooks").join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        for heading in ["## Meaning", "## Look at", "## Do"] {
            assert!(text.contains(heading), "{page} has no {heading}");
        }
        assert!(
            text.contains(name.as_str()) && overview.contains(name.as_str()),
            "{page} and the overview name {name}"
        );
        assert!(summary.contains(&format!("runbooks/{page}")), "{page} is not in the summary");
    }
}

/// Rules of the Prometheus operator are those that Prometheus reads from a file.
#[test]
fn the_rules_of_the_operator_are_the_rules_of_the_file() {
    let rule = fs::read_to_string(of_executor("deploy/kubernetes/monitoring/prometheusrule.yaml")).unwrap();
    let (_, specification) = rule.split_once("\nspec:\n").unwrap();
    let indented = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    let groups: String = rules().lines().skip_while(|line| *line != "groups:").map(indented).collect();
    assert!(
        specification == groups,
        "prometheusrule.yaml needs the groups of prometheus/alerts.yml, two spaces further in"
    );
}

#[test]
fn rules_speak_of_metrics_that_exist() {
    let text = Metrics::new().text();
    for expression in values("expr:") {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| word.starts_with("goodput_")) {
            let exported = |line: &str| line.starts_with(&format!("{word}{{")) || line.starts_with(&format!("{word} "));
            // Families without a first value are in the text by their name alone.
            let declared = Metrics::NAMES.contains(&word);
            assert!(declared || text.lines().any(exported), "{word} of {expression} is not exported:\n{text}");
        }
    }
    for kind in KINDS {
        let zero = format!("goodput_alerts_total{{kind=\"{kind}\"}} 0");
        assert!(text.lines().any(|line| line == zero), "the counter of {kind} does not begin at zero");
    }
}

#[test]
fn prometheus_takes_the_rules_and_fires_them_when_it_should() {
    let promtool = std::env::var("PROMTOOL").unwrap_or_else(|_| "promtool".into());
    let run = |arguments: [&str; 3]| {
        let output = Command::new(&promtool).args(arguments).current_dir(of_executor("prometheus")).output();
        output.map(|output| {
            (
                output.status.success(),
                String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
            )
        })
    };
    match run(["check", "rules", "alerts.yml"]) {
        Ok((good, said)) => assert!(good, "{said}"),
        Err(error) => {
            eprintln!("THE RULES ARE NOT CHECKED BY PROMETHEUS: {promtool}: {error}; apt-get install prometheus");
            return;
        }
    }
    let (good, said) = run(["test", "rules", "alerts_test.yml"]).unwrap();
    assert!(good, "{said}");
}
