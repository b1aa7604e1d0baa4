//! The screen on a cluster of 1,000 nodes, drawn into memory.

use goodput_executor::daemon::interface::status::QueueRow;
use goodput_executor::engine::NodeSeen;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::reading::{Reading, ScreenNews, ScreenQuestion};
use super::screen::{KeyAnswer, TopScreen};

const HEIGHT: u16 = 30;

fn reading() -> Reading {
    let node = |at: u32| -> NodeSeen {
        serde_json::from_value(
            json!({"name": format!("node{at:04}"), "accelerator": "h100", "gpus": 8, "free": at % 9}),
        )
        .unwrap()
    };
    let job = |at: u32| QueueRow {
        key: format!("{at}"),
        name: format!("train-{at}"),
        phase: if at < 10 { "running" } else { "waiting" }.into(),
        gpus: [1, 1 + at % 8, 8],
        age_secs: f64::from(6_000 - at),
        ..QueueRow::default()
    };
    let status = json!({
        "engine": "agents", "policy": "tiresias", "mode": "act", "term": 3, "fallback": "", "now_secs": 0.0, "at_ms": 0,
        "decisions": 7, "decision_ms": 1.5, "open_orders": 0, "alerts": ["first", "last"], "nodes": [], "queue": []
    });
    Reading {
        status: serde_json::from_value(status).unwrap(),
        nodes: (0..1_000).map(node).collect(),
        services: Vec::new(),
        queue: (0..5_000).map(job).collect(),
    }
}

/// A screen, and what it shows.
struct ShownScreen(TopScreen, Terminal<TestBackend>);

impl ShownScreen {
    fn new() -> Self {
        Self(TopScreen::new(reading()), Terminal::new(TestBackend::new(110, HEIGHT)).unwrap())
    }

    fn press(&mut self, keys: &[KeyCode]) -> KeyAnswer {
        let press = |code: &KeyCode| self.0.press(KeyEvent::new(*code, KeyModifiers::NONE));
        keys.iter().map(press).last().unwrap_or(KeyAnswer::Nothing)
    }

    fn text(&mut self) -> String {
        self.1.draw(|frame| self.0.draw(frame)).unwrap();
        let cells = self.1.backend().buffer().content().chunks(110);
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        cells.map(|cells| line(cells).trim_end().to_owned() + "\n").collect()
    }
}

#[test]
fn it_shows_the_daemon_the_views_and_a_part_of_the_queue() {
    let shown = ShownScreen::new().text();
    assert!(shown.starts_with("agents · act · leads, term 3 · policy tiresias · 7 decisions"), "{shown}");
    assert!(shown.contains("jobs 10 running, 4990 waiting"), "{shown}");
    assert!(shown.contains(" 1 jobs 5000  2 nodes 1000  3 services 0  4 alerts 2"), "{shown}");
    assert!(shown.contains("train-0 ") && !shown.contains("train-40 ") && shown.contains("q quit"), "{shown}");
}

#[test]
fn keys_move_through_all_rows() {
    let mut screen = ShownScreen::new();
    screen.press(&[KeyCode::Char('2'), KeyCode::End]);
    let shown = screen.text();
    assert!(shown.contains("node0999") && shown.contains("node0980") && !shown.contains("node0500"), "{shown}");
    screen.press(&[KeyCode::Home, KeyCode::PageDown, KeyCode::PageDown]);
    let shown = screen.text();
    assert!(shown.contains("node0040") && !shown.contains("node0000") && !shown.contains("node0999"), "{shown}");
}

#[test]
fn rows_are_sorted_by_the_column_that_is_asked_for() {
    let mut screen = ShownScreen::new();
    // node, accelerator, gpus, free.
    screen.press(&[KeyCode::Char('2'), KeyCode::Char('s'), KeyCode::Char('s'), KeyCode::Char('s'), KeyCode::Char('s')]);
    let shown = screen.text();
    assert!(shown.contains("FREE ▴") && shown.contains("node0009") && !shown.contains("node0001"), "{shown}");
    screen.press(&[KeyCode::Char('r')]);
    let shown = screen.text();
    assert!(shown.contains("FREE ▾") && !shown.contains("node0009"), "{shown}");
}

#[test]
fn a_filter_keeps_the_rows_that_contain_it() {
    let mut screen = ShownScreen::new();
    screen.press(&[KeyCode::Char('/')]);
    screen.press(&"TRAIN-4999q".chars().map(KeyCode::Char).collect::<Vec<_>>());
    screen.press(&[KeyCode::Backspace, KeyCode::Enter]);
    let shown = screen.text();
    assert!(
        shown.contains("train-4999") && !shown.contains("train-0 ") && shown.contains("only \"train-4999\""),
        "{shown}"
    );
    screen.press(&[KeyCode::Esc]);
    assert!(screen.text().contains("train-0 "));
}

#[test]
fn enter_asks_for_the_chosen_job_and_its_text_lies_on_top() {
    let mut screen = ShownScreen::new();
    let asked = screen.press(&[KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    assert!(matches!(asked, KeyAnswer::Ask(ScreenQuestion::Job(key)) if key == "2"));
    screen.0.hear(ScreenNews::Job("it waits for room".into()));
    assert!(screen.text().contains("it waits for room"));
    screen.press(&[KeyCode::Esc]);
    assert!(!screen.text().contains("it waits for room"));
}

#[test]
fn a_screen_that_is_held_keeps_its_picture_and_a_silent_daemon_is_named() {
    let mut screen = ShownScreen::new();
    let emptied = || ScreenNews::State(Box::new(Reading { queue: Vec::new(), ..reading() }));
    screen.press(&[KeyCode::Char(' ')]);
    screen.0.hear(emptied());
    let shown = screen.text();
    assert!(shown.contains("jobs 5000") && shown.contains("HELD"), "{shown}");
    screen.press(&[KeyCode::Char(' ')]);
    screen.0.hear(emptied());
    screen.0.hear(ScreenNews::Silent("connection refused".into()));
    let shown = screen.text();
    assert!(shown.contains("jobs 0") && shown.contains("! connection refused"), "{shown}");
    assert!(matches!(screen.press(&[KeyCode::Char('q')]), KeyAnswer::Quit));
}
