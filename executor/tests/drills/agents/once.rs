//! One job for all tries under one idempotency key, whenever the daemon dies in between.

use super::*;
use goodput_executor::daemon::DaemonError;

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_is_tried_again_is_one_job() {
    let site = Site::new(&["n0"], Fencing::Keep);
    let agents = site.agents().await;
    let mut daemon = site.daemon(&agents, "a");
    all_up(&mut daemon).await;
    let work = job("a", 0.1);
    let first = daemon.submit_once("ci", &work, "k1").await.unwrap();
    let again = daemon.submit_once("ci", &work, "k1").await.unwrap();
    assert_eq!((again.key.clone(), again.repeated, first.repeated), (first.key.clone(), true, false));
    let other = daemon.submit_once("somebody", &work, "k1").await.unwrap();
    assert_ne!(other.key, first.key, "keys belong to their caller");
    let refused = daemon.submit_once("ci", &job("b", 0.1), "k1").await.unwrap_err();
    assert!(refused.to_string().contains("was used for another job"), "{refused}");

    let (mut keys, mut tries) = (vec![first.key, other.key], 4);
    for place in ["before-hand-in", "after-hand-in"] {
        let work = job(place, 0.1);
        daemon.set_hook(Box::new(move |at| at == place));
        let cut = daemon.submit_once("ci", &work, place).await.unwrap_err();
        assert!(matches!(cut, DaemonError::Drill(at) if at == place), "{cut}");
        daemon.resign().await;
        drop(daemon);
        daemon = site.daemon(&agents, "a");
        all_up(&mut daemon).await;
        let handed_in = daemon.submit_once("ci", &work, place).await.unwrap();
        assert_eq!(handed_in.repeated, place == "after-hand-in");
        let again = daemon.submit_once("ci", &work, place).await.unwrap();
        assert!(again.repeated && again.key == handed_in.key);
        keys.push(handed_in.key);
        tries += 3;
    }
    let over = all_over(&mut daemon).await;
    assert_eq!(fs::read_dir(site.at("engine/jobs")).unwrap().count(), 4, "{tries} tries, four jobs");
    assert_eq!((over.ended.len(), site.doubled_and_lost(&keys)), (4, (0, 0)));
}
