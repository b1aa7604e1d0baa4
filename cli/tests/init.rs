//! Files that ship, written where a program is installed without them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use crate::support::{plain, run};

#[test]
fn a_file_that_ships_is_written_once_and_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let (code, listed, _) = run(dir.path(), &["init", "-o", "csv"]);
    assert_eq!(code, 0);
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(names.contains(&"experiment/quickstart") && names.contains(&"live/slurm"), "{names:?}");
    for name in ["quickstart", "scenario/faults", "live/slurm", "nhits"] {
        let (code, _, said) = run(dir.path(), &["init", name]);
        assert!(code == 0 && said.contains("goodput "), "{said}");
    }
    let files = ["quickstart.toml", "faults.toml", "slurm.toml", "nhits.toml"];
    let (code, _, said) = run(dir.path(), &[&["config", "check"], &files[..]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(!fs::read_to_string(dir.path().join("quickstart.toml")).unwrap().contains("#:schema"));

    // Both run as they are written.
    for (name, next) in [
        ("forecast", &["forecast", "backtest", "sample.toml"][..]),
        ("advise", &["advise", "jobs.csv", "--cluster", "4x8", "--policies", "fifo,easy", "--resamples", "2"]),
    ] {
        assert_eq!(run(dir.path(), &["init", name]).0, 0);
        let (code, shown, said) = run(dir.path(), next);
        assert!(code == 0 && shown.lines().count() > 2, "{said}");
    }

    fs::write(dir.path().join("quickstart.toml"), "mine").unwrap();
    let (code, _, said) = run(dir.path(), &["init", "quickstart"]);
    assert!(code == 2 && plain(&said).contains("choose another name with --to"), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("quickstart.toml")).unwrap(), "mine");
    let (code, _, said) = run(dir.path(), &["init", "quickstrat"]);
    assert!(code == 2 && plain(&said).contains("quickstart"), "{said}");
}
