//! The page in a browser: its script runs without an error, sorts tables, and draws the jobs on the nodes.
//!
//! The tests need Chromium. They say so where there is none.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test, which says aloud where it cannot run")]

use std::fs;
use std::process::Command;

use crate::common::comparison;
use goodput_eval::Report;

/// The page after its script and `probe`, a script of the test, have run; `None` where no browser is installed.
fn opened(page: &str, probe: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, page.replace("</body>", &format!("<script>{probe}</script>\n</body>"))).unwrap();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1300,2000"];
    let open = |name: &str| {
        let mut browser = Command::new(name);
        browser
            .args(options)
            .args(["--virtual-time-budget=20000", "--dump-dom"])
            .arg(format!("file://{}", file.display()));
        // The browser keeps its profile and its caches in the folder, which ends with the test.
        browser.arg(format!("--user-data-dir={}", folder.path().join("profile").display())).output().ok()
    };
    let Some(output) = names.iter().find_map(|name| open(name)) else {
        eprintln!("no browser is installed: THE PAGE IS NOT TESTED IN A BROWSER. apt-get install chromium");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(errors.is_empty(), "the console of the browser: {errors:?}");
    let dom = String::from_utf8(output.stdout).unwrap();
    let root = dom.lines().find(|line| line.starts_with("<html")).unwrap_or_default().to_owned();
    assert!(root.contains("interactive") && !root.contains("data-error"), "{root}");
    Some(dom)
}

/// Value of an attribute that a probe or the page's script set.
fn attribute<'a>(dom: &'a str, name: &str) -> &'a str {
    let from = dom.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}")).1;
    from.split('"').next().unwrap_or_default()
}

/// Sorts the first table by the column `$0`, as often as `$1`, and notes the names of its rows.
const SORT: &str = "
    const table = document.querySelector('#results table');
    const head = table.tHead.rows[0].cells[$0];
    for (let click = 0; click < $1; click++) head.click();
    const names = [...table.tBodies[0].rows].map(row => row.querySelector('.name').textContent);
    document.body.setAttribute('data-order', names.join(' '));
    document.body.setAttribute('data-sorted', head.getAttribute('aria-sort'));";

#[test]
fn the_script_sorts_tables_and_draws_the_jobs_of_a_large_run() {
    let results = comparison(2, 300).run(&|_, _| {}).unwrap().results();
    let page = Report { title: "Large".into(), ..Report::default() }.render(&results).unwrap();
    assert!(page.contains("There is no chart of single jobs"), "a page on paper says what it leaves out");
    let sorted = |column: &str, clicks: &str| opened(&page, &SORT.replace("$0", column).replace("$1", clicks));
    let Some(by_name) = sorted("0", "1") else { return };
    assert_eq!(attribute(&by_name, "data-sorted"), "ascending");
    let mut names = results.layout.policies.clone();
    names.sort();
    assert_eq!(attribute(&by_name, "data-order"), names.join(" "));
    let chart = results.pictures[0].nodes.as_ref().unwrap();
    assert!(attribute(&by_name, "data-bars").parse::<usize>().unwrap() >= 300, "each of the 300 jobs has a bar");
    assert_eq!(chart.bars, chart.all_bars);
    assert!(by_name.contains("data-ready=\"true\"") && by_name.contains("class=\"uplot"), "charts are drawn");

    let by_jct = sorted("1", "2").unwrap();
    assert_eq!(attribute(&by_jct, "data-sorted"), "descending");
    let mut ranked: Vec<_> = results.summary.policies.iter().collect();
    ranked.sort_by(|a, b| b.metrics["jct_mean_secs"].value.total_cmp(&a.metrics["jct_mean_secs"].value));
    let ranked: Vec<&str> = ranked.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(attribute(&by_jct, "data-order"), ranked.join(" "));
}

/// Chooses the second metric and hides the first policy, and notes what the table of runs then shows.
const CHOOSE: &str = "
    const list = document.querySelector('#explore select');
    list.value = '1';
    list.dispatchEvent(new Event('change'));
    document.querySelector('#explore .chips button').click();
    const rows = [...document.querySelectorAll('#explore tbody .name')].map(name => name.textContent);
    document.body.setAttribute('data-rows', rows.join(' '));
    document.body.setAttribute('data-label', document.querySelector('#explore .note').textContent);";

#[test]
fn charts_follow_the_choice_of_metric_and_policies() {
    let results = comparison(3, 20).run(&|_, _| {}).unwrap().results();
    let page = Report { title: "Choice".into(), ..Report::default() }.render(&results).unwrap();
    let Some(dom) = opened(&page, CHOOSE) else { return };
    assert_eq!(attribute(&dom, "data-rows"), results.layout.policies[1..].join(" "));
    let second =
        goodput_eval::METRICS.iter().filter(|metric| results.heads[0].measures.get(metric.key).is_some()).nth(1);
    assert!(attribute(&dom, "data-label").starts_with(second.unwrap().description), "{dom}");
}
