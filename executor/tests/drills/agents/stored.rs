//! State on disk: written by the program before formats were numbered, torn, or written by a later program.
//!
//! `fixtures/state-0` was recorded from that program when daemon and agents were killed: one job had ended, one ran on
//! `n0`, one waited with its order open, and `n1` was drained.

use super::*;
use goodput_executor::agent::serve;
use goodput_executor::engine::NodeHealth;
use rusqlite::Connection;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state-0")
}

/// The recorded state in the place of a site with its nodes.
fn recorded() -> Site {
    let site = Site::new(&["n0", "n1"], Fencing::Keep);
    copy(&fixture().join("jobs"), &site.at("engine"));
    copy(&fixture().join("checkpoints"), &site.at("checkpoints"));
    copy(&fixture().join("n0"), &site.nodes[0].config.state_dir);
    copy(&fixture().join("state"), &site.at("state"));
    let sql = fs::read_to_string(site.at("state/journal.sql")).unwrap();
    fs::remove_file(site.at("state/journal.sql")).unwrap();
    Connection::open(site.at("state/journal.sqlite")).unwrap().execute_batch(&sql).unwrap();
    site
}

fn file(site: &Site, name: &str) -> PathBuf {
    let files = fs::read_dir(site.at("engine/jobs")).unwrap().flatten().map(|entry| entry.path());
    files.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_the_program_before_is_taken_up() {
    let site = recorded();
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    assert_eq!(daemon.mode().name(), "act", "a call had set it");
    let status =
        until(&mut daemon, "all is known", |status| status.queue.len() == 2 && status.nodes[0].gpus == 2).await;
    assert_eq!((status.nodes[1].health, status.nodes[1].note.as_str()), (NodeHealth::Drained, "a fan"));
    assert_eq!(daemon.journal().lease().unwrap().term, 2, "terms go on");
    let status = all_over(&mut daemon).await;
    let mut ended: Vec<_> =
        status.ended.iter().map(|row| (row.name.as_str(), row.phase.as_str(), row.starts)).collect();
    ended.sort_unstable();
    // What ran had no process any more, as after a crash of the machine, and went on from its checkpoint.
    assert_eq!(ended, [("runs", "done", 2), ("waits", "done", 1)]);
    assert!(status.alerts.is_empty(), "{:?}", status.alerts);
    let audit = goodput_executor::daemon::interface::audit::verify(&site.at("state/audit.jsonl")).unwrap();
    assert!(audit.first == 1 && audit.lines > 12, "the chain goes on: {audit:?}");
    let text = fs::read_to_string(file(&site, "runs")).unwrap();
    assert!(text.contains("\"$format\":1"), "what is written anew has the new format: {text}");
    let journal = Connection::open(site.at("state/journal.sqlite")).unwrap();
    let format: i64 = journal.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(format, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_later_program_is_refused_with_what_to_do() {
    let refused = |change: &dyn Fn(&Site)| {
        let site = recorded();
        change(&site);
        let addresses = [SocketAddr::from(([127, 0, 0, 1], 1)); 2];
        open(site.settings(&addresses, "a", "")).err().unwrap()
    };
    let journal = refused(&|site| {
        let journal = Connection::open(site.at("state/journal.sqlite")).unwrap();
        journal.pragma_update(None, "user_version", 7).unwrap();
    });
    assert!(journal.contains("journal.sqlite has format 7, and this program reads formats up to 1"), "{journal}");
    let job = refused(&|site| {
        let path = file(site, "waits");
        let text = fs::read_to_string(&path).unwrap().replacen('{', "{\"$format\":7,", 1);
        fs::write(path, text).unwrap();
    });
    assert!(job.contains(".json has format 7") && job.contains("restore the state from before the upgrade"), "{job}");

    let site = recorded();
    let term = site.nodes[0].config.state_dir.join("term.json");
    fs::write(&term, r#"{"term":1,"leader":"a","$format":7}"#).unwrap();
    let agent = serve(site.nodes[0].config.clone()).await.err().unwrap().to_string();
    assert!(agent.contains("term.json has format 7"), "{agent}");
    fs::write(&term, r#"{"term":1,"lea"#).unwrap();
    let agent = serve(site.nodes[0].config.clone()).await.err().unwrap().to_string();
    assert!(agent.contains("term.json is damaged") && agent.contains("backup"), "{agent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_file_is_an_alert_and_its_job_comes_back_with_its_copy() {
    let site = recorded();
    let torn = file(&site, "waits");
    let whole = fs::read(&torn).unwrap();
    fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    let status = until(&mut daemon, "the other job", |status| status.ended.iter().any(|row| row.name == "runs")).await;
    let told = alerts(&status, "damaged");
    assert!(told.len() == 1 && told[0].contains("waits") && told[0].contains("backup"), "{:?}", status.alerts);
    fs::write(&torn, whole).unwrap();
    let status = until(&mut daemon, "comes back", |status| status.ended.iter().any(|row| row.name == "waits")).await;
    assert_eq!(alerts(&status, "damaged").len(), 1, "it is said once");
    daemon.resign().await;
    drop(daemon);

    // Which nodes are drained is told by no other file, so nothing is done without it.
    fs::write(site.at("engine/drained.json"), "{\"n1\":\"a f").unwrap();
    let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
    let refused = open(site.settings(&addresses, "a", "")).err().unwrap();
    assert!(refused.contains("drained.json is damaged"), "{refused}");
}

/// The record of an attempt is torn: its processes may run, so the node is given nothing until a person has looked.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_torn_record_of_an_attempt_is_given_no_jobs() {
    let site = recorded();
    let attempts = site.nodes[0].config.state_dir.join("attempts");
    let attempt = fs::read_dir(&attempts).unwrap().flatten().next().unwrap().path();
    fs::write(attempt.join("launch.json"), "{\"launch\":").unwrap();
    let mut agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    let status = until(&mut daemon, "unfit", |status| status.nodes[0].health == NodeHealth::Drained).await;
    let told = alerts(&status, "unfit");
    assert!(told.iter().any(|text| text.contains("launch.json is damaged")), "{:?}", status.alerts);
    daemon.resign().await;
    drop(daemon);
    fs::remove_dir_all(attempt).unwrap();
    drop(agents.remove(0));
    agents.insert(0, site.nodes[0].agent().await);
    all_over(&mut site.daemon(&agents, "a")).await;
}
