//! The pages in a real browser: scripts run without an error, and controls change what is shown.
//!
//! The tests need Chromium. They say so where there is none.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::browser::Browser;
use crate::support::{hourly_load, run};
use crate::ui::{AskedDaemon, Page};

/// The comparison of a few small runs, in `runs/NAME`.
fn compared(dir: &Path, name: &str, policies: &str) -> Value {
    let to = format!("runs/{name}");
    if !dir.join("x.toml").exists() {
        assert_eq!(run(dir, &["init", "quickstart", "--to", "x.toml"]).0, 0);
    }
    let few = ["--seeds", "3", "--set", "workload.synthetic.diurnal.jobs=60", "-q"];
    let eval = ["eval", "x.toml", "--policies", policies, "--run-dir", &to];
    let (code, _, said) = run(dir, &[&eval[..], &few].concat());
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&fs::read_to_string(dir.join(to).join("summary.json")).unwrap()).unwrap()
}

/// Value of a metric of a policy in a summary.
fn metric(summary: &Value, policy: &str, key: &str) -> f64 {
    let policies = summary["policies"].as_array().unwrap();
    let found = policies.iter().find(|found| found["name"] == policy).unwrap();
    found["metrics"][key]["value"].as_f64().unwrap()
}

/// Names of policies in a table, from the top.
fn names(browser: &mut Browser, table: &str) -> Vec<String> {
    let rows = format!("[...document.querySelectorAll('{table} tbody .name')].map(name => name.textContent).join(' ')");
    browser.text(&rows).split(' ').map(str::to_owned).collect()
}

fn report_url(dir: &Path, name: &str) -> String {
    format!("file://{}", dir.canonicalize().unwrap().join("runs").join(name).join("report.html").display())
}

const READY: &str = "document.documentElement.dataset.ready === 'true'";

#[test]
fn a_report_opened_from_the_disk_answers_to_the_hand() {
    let Some(mut browser) = Browser::open(1300, 900) else { return };
    let dir = tempfile::tempdir().unwrap();
    let summary = compared(dir.path(), "a", "fifo,srtf,pollux-fast");
    browser.go(&report_url(dir.path(), "a"), READY);
    assert_eq!(browser.eval("performance.getEntriesByType('resource').length"), 0, "the page fetches nothing");

    // A click on a heading sorts, and a second one turns the order round.
    let head = "document.querySelector('#results thead th:nth-child(2)')";
    browser.click(head);
    let mut expected = vec!["fifo", "srtf", "pollux-fast"];
    expected.sort_by(|a, b| metric(&summary, a, "jct_mean_secs").total_cmp(&metric(&summary, b, "jct_mean_secs")));
    assert_eq!(names(&mut browser, "#results"), expected);
    browser.click(head);
    expected.reverse();
    assert_eq!(names(&mut browser, "#results"), expected);

    // Another metric gives other values, those of the summary.
    let shown = "document.querySelector('#explore .sortable tbody tr td:nth-child(2)').dataset.value";
    let before = browser.text(shown);
    browser.choose("document.querySelectorAll('#explore select')[0]", "makespan");
    let (before, after): (f64, f64) = (before.parse().unwrap(), browser.text(shown).parse().unwrap());
    let makespan = metric(&summary, "fifo", "makespan_secs");
    let per = makespan / after;
    assert!([1.0, 60.0, 3600.0, 86_400.0].iter().any(|unit| (per / unit - 1.0_f64).abs() < 1e-3), "{makespan} {after}");
    assert!((before - after).abs() > 1e-6);

    // One seed leaves one run of each policy.
    let runs = "document.querySelector('#explore .sortable tbody tr td:last-child').textContent";
    assert_eq!(browser.text(runs), "3");
    let seed = browser.text("document.querySelectorAll('#explore select')[1].options[2].text");
    browser.choose("document.querySelectorAll('#explore select')[1]", &seed);
    assert_eq!(browser.text(runs), "1");

    // A policy is hidden by its name, and comes back.
    let chip = "document.querySelector('#explore .chips button')";
    browser.click(chip);
    assert_eq!(names(&mut browser, "#explore"), ["srtf", "pollux-fast"]);
    browser.click(chip);
    assert_eq!(names(&mut browser, "#explore"), ["fifo", "srtf", "pollux-fast"]);

    // The legend of a chart has the values under the pointer.
    browser.point("document.querySelector('#completion .u-over')", 0.9, 0.5);
    let legend = "[...document.querySelectorAll('#completion .u-legend .u-value')].map(v => v.textContent).join(' ')";
    browser.wait(&format!("!({legend}).includes('--') && /[0-9]/.test({legend})"));
    browser.assert_no_faults();
}

/// The chart of nodes has a bar for each job, names the job under the pointer, and changes with the policy.
#[test]
fn jobs_on_the_nodes_are_drawn_and_named() {
    let Some(mut browser) = Browser::open(1300, 900) else { return };
    let dir = tempfile::tempdir().unwrap();
    compared(dir.path(), "a", "fifo,srtf");
    browser.go(&report_url(dir.path(), "a"), READY);
    let painted = "(() => { const canvas = document.querySelector('#nodes canvas');
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let at = 3; at < pixels.length; at += 4) count += pixels[at] > 0;
        return count / (canvas.width * canvas.height); })()";
    assert!(browser.eval(painted).as_f64().unwrap() > 0.05, "bars are painted");
    let bars = "Number(document.querySelector('#nodes canvas').dataset.bars)";
    assert!(browser.eval(bars).as_u64().unwrap() >= 60, "each of the 60 jobs has a bar");

    let canvas = "document.querySelector('#nodes canvas')";
    let told = (1..20).find_map(|step| {
        browser.point(canvas, 0.05 * f64::from(step), 0.3);
        let tip = browser.eval("(tip => tip.hidden ? null : tip.textContent)(document.querySelector('#nodes .tip'))");
        tip.as_str().map(str::to_owned)
    });
    let told = told.expect("some job runs on the row");
    assert!(told.starts_with("job ") && told.contains(" accelerators of n"), "{told}");

    // Another policy is another picture.
    let image = "document.querySelector('#nodes canvas').toDataURL()";
    let chosen = browser.text("document.querySelector('#nodes select').selectedOptions[0].text");
    let before = browser.text(image);
    browser.choose("document.querySelector('#nodes select')", if chosen == "fifo" { "srtf" } else { "fifo" });
    browser.wait(&format!("{image} !== {}", serde_json::to_string(&before).unwrap()));
    browser.assert_no_faults();
}

#[test]
fn a_folder_of_runs_is_opened_compared_and_followed() {
    let Some(mut browser) = Browser::open(1300, 900) else { return };
    let dir = tempfile::tempdir().unwrap();
    let first = compared(dir.path(), "a", "fifo,srtf");
    compared(dir.path(), "b", "tiresias");
    let progress = dir.path().join("runs/t/progress.csv");
    fs::create_dir_all(progress.parent().unwrap()).unwrap();
    let mut rows = String::from("time/total_timesteps,eval/jct_mean_secs,train/loss\n100,50.5,2\n");
    fs::write(&progress, &rows).unwrap();
    let page = Page::serve(&dir.path().join("runs"), &[]);
    browser.go(&page.url, "document.documentElement.dataset.runs === '3'");

    // The training that runs is followed by itself, and its new rows arrive.
    browser.wait("document.documentElement.dataset.rows === '1' && document.querySelector('#curve canvas')");
    rows += "200,40,1.5\n300,30,1.25\n";
    fs::write(&progress, &rows).unwrap();
    browser.wait("document.documentElement.dataset.rows === '3'");
    browser.choose("document.querySelector('#training select')", "train/loss");
    browser.wait("document.querySelector('#curve .u-legend').textContent.includes('train/loss')");

    // Two ticked runs stand in one table, by a metric of one's choice.
    let tick = |run: &str| {
        let row = format!(
            "[...document.querySelectorAll('#list tbody tr')].find(row => row.cells[1].textContent === '{run}')"
        );
        format!("{row}.querySelector('input')")
    };
    browser.click(&tick("a"));
    browser.wait("document.querySelectorAll('#grid tbody tr').length === 2");
    browser.click(&tick("b"));
    browser.wait("document.querySelectorAll('#grid tbody tr').length === 3");
    browser.choose("document.querySelector('#compare select')", "makespan_secs");
    let value = "Number([...document.querySelectorAll('#grid tbody tr')].find(row => row.cells[0].textContent === 'a' \
                 && row.cells[1].textContent === 'fifo').cells[2].dataset.value)";
    assert_eq!(browser.eval(value).as_f64().unwrap(), metric(&first, "fifo", "makespan_secs"));
    let head = "document.querySelector('#grid thead th:nth-child(3)')";
    let column = "[...document.querySelectorAll('#grid tbody tr')].map(row => Number(row.cells[2].dataset.value))";
    browser.click(head);
    let ascending = browser.eval(column);
    browser.click(head);
    let mut descending: Vec<Value> = browser.eval(column).as_array().unwrap().clone();
    descending.reverse();
    assert_eq!(ascending, Value::from(descending));

    // A run is opened by its link.
    browser.click("document.querySelector('#list a[href$=\"run=a\"]')");
    browser.wait(&format!("location.pathname === '/report' && {READY}"));
    let mut policies = names(&mut browser, "#results");
    policies.sort();
    assert_eq!(policies, ["fifo", "srtf"]);
    browser.assert_no_faults();
}

#[test]
fn the_local_page_shows_a_cluster_with_its_queue_and_its_services() {
    let Some(mut browser) = Browser::open(1300, 900) else { return };
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "secret").unwrap();
    let daemon = AskedDaemon::serve();
    let page = Page::serve(dir.path(), &["--daemon", &daemon.url, "--token-file", token.to_str().unwrap()]);
    browser.go(&page.url, "document.documentElement.dataset.nodes === '1'");
    assert!(browser.text("document.querySelector('#machines').textContent").contains("n0"));
    assert!(browser.text("document.querySelector('#queue tbody tr').textContent").contains("it waits"));
    let cells =
        "[...document.querySelectorAll('#served tbody tr td')].slice(0, 6).map(cell => cell.textContent).join('|')";
    assert_eq!(browser.text(cells), "web|1 of 1|12.5|14.0|21.0|2 of 40");
    browser.assert_no_faults();
}

/// Pages of all commands that write one, and the local page, have one look: type, width and colours.
#[test]
fn all_pages_have_one_look_in_both_themes_and_fit_a_narrow_screen() {
    let Some(mut browser) = Browser::open(1300, 900) else { return };
    let dir = hourly_load(240, None);
    compared(dir.path(), "a", "fifo,srtf");
    let elastic = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/experiment/elastic-16.toml"));
    fs::write(dir.path().join("e.toml"), elastic.unwrap().replace("jobs = 40", "jobs = 14\nhours = 1")).unwrap();
    fs::write(dir.path().join("study.toml"), STUDY).unwrap();
    assert_eq!(run(dir.path(), &["init", "advise"]).0, 0);
    for args in [
        &["advise", "jobs.csv", "--cluster", "4x8", "--resamples", "2", "-q", "--report", "advice.html"][..],
        &["explain", "zoo:elastic-16", "--config", "e.toml", "--report", "why.html"],
        &["forecast", "compare", "study.toml", "--report", "forecast.html"],
    ] {
        let (code, _, said) = run(dir.path(), args);
        assert_eq!(code, 0, "{args:?}: {said}");
    }
    let served = Page::serve(&dir.path().join("runs"), &[]);
    let file = |name: &str| format!("file://{}", dir.path().canonicalize().unwrap().join(name).display());
    let pages = [
        (report_url(dir.path(), "a"), READY),
        (served.url.clone(), "document.documentElement.dataset.runs === '1'"),
        (file("advice.html"), READY),
        (file("why.html"), READY),
        (file("forecast.html"), READY),
    ];
    let look = "JSON.stringify(['body', 'h1', 'h2', 'thead th'] \
                .map(tag => getComputedStyle(document.querySelector(tag))) \
                .map(style => [style.fontFamily, style.fontSize, style.color, style.maxWidth]) \
                .concat(getComputedStyle(document.documentElement).backgroundColor))";
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        let mut looks = Vec::new();
        for (url, ready) in &pages {
            browser.resize(1300, 900);
            browser.go(url, ready);
            looks.push(browser.text(look));
            browser.resize(500, 900);
            // Pictures take the new width in a later frame, so the page is given time.
            let fits = "document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth";
            browser.wait(&format!("/* {url} on a narrow screen */ {fits}"));
        }
        looks.dedup();
        assert_eq!(looks.len(), 1, "{scheme}: {looks:#?}");
        assert!(
            looks[0].contains(if scheme == "dark" { "rgb(21, 23, 27)" } else { "rgb(255, 255, 255)" }),
            "{looks:?}"
        );
    }
    // Tables of the written pages are sorted as those of the report are.
    browser.resize(1300, 900);
    browser.go(&file("advice.html"), READY);
    let table = "[...document.querySelectorAll('table')].at(-1)";
    let head = format!("{table}.tHead.rows[0].cells[1]");
    let order = format!("[...{table}.tBodies[0].rows].map(row => parseFloat(row.cells[1].textContent))");
    browser.click(&head);
    let waits: Vec<f64> = serde_json::from_value(browser.eval(&order)).unwrap();
    assert!(waits.len() == 7 && waits.is_sorted() && waits[0] < waits[6], "{waits:?}");
    browser.click(&head);
    let turned: Vec<f64> = serde_json::from_value(browser.eval(&order)).unwrap();
    assert!(turned.is_sorted_by(|a, b| a >= b), "{turned:?}");
    assert!(browser.sheets_of_a4() <= 2, "advice is one leaf of paper");
    browser.assert_no_faults();
}

/// A study of the load of [`hourly_load`].
const STUDY: &str = "[series]\npath = \"load.csv\"\n[lending]\naccelerators = 20\nlease_hours = 2.0\n";
