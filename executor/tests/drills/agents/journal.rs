//! Drill 18: the journal is lost, or put back from an old copy, and agents have seen later terms.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_whose_journal_is_lost_or_old_takes_the_terms_of_the_agents() {
    let site = Site::new(&["n0", "n1"], Fencing::Keep);
    let agents = site.agents().await;
    let mut keys = Vec::new();
    // Four lives: agents have seen term 4.
    for life in 0..4 {
        let mut daemon = site.daemon(&agents, &format!("d{life}"));
        all_up(&mut daemon).await;
        keys.push(daemon.submit("drill", &job(&format!("before-{life}"), 0.2)).await.unwrap());
        all_over(&mut daemon).await;
        daemon.resign().await;
        drop(daemon);
        if life == 0 {
            copy(&site.at("state"), &site.at("old"));
        }
    }
    for (round, what) in ["lost", "old"].into_iter().enumerate() {
        let seen = agents.iter().map(|agent| agent.agent.status().term).max().unwrap();
        fs::remove_dir_all(site.at("state")).unwrap();
        if what == "old" {
            copy(&site.at("old"), &site.at("state"));
        }
        let mut daemon = site.daemon(&agents, &format!("after-{what}"));
        daemon.cycle().await.unwrap();
        assert!(daemon.journal().lease().unwrap().term < seen, "the journal knows nothing of term {seen}");
        for index in 0..3 {
            keys.push(daemon.submit("drill", &job(&format!("after-{what}-{index}"), 0.2)).await.unwrap());
        }
        let status = until(&mut daemon, "placed again", |status| {
            status.queue.is_empty() && status.ended.iter().filter(|row| row.name.starts_with("after")).count() >= 3
        })
        .await;
        assert!(daemon.journal().lease().unwrap().term > seen, "round {round}");
        let told = alerts(&status, "term");
        assert!(told.len() == 1 && told[0].contains(&format!("seen term {seen}")), "{told:?}");
        daemon.resign().await;
    }
    assert_eq!((distinct(&keys), site.doubled_and_lost(&keys)), (10, (0, 0)));
}

/// A daemon with a state directory of its own beside one that leads is told so, and takes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_takes_no_terms_while_their_leader_speaks() {
    let site = Site::new(&["n0"], Fencing::Keep);
    let agents = site.agents().await;
    let mut leader = site.daemon(&agents, "leader");
    all_up(&mut leader).await;
    leader.resign().await;
    drop(leader);
    let mut leader = site.daemon(&agents, "leader");
    all_up(&mut leader).await;
    let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
    let mut settings = site.settings(&addresses, "stranger", "");
    settings.state.directory = site.at("other-state");
    let mut stranger = open(settings).unwrap();
    let began = Instant::now();
    // Longer than a lease of agents.
    while began.elapsed() < Duration::from_secs(5) {
        leader.cycle().await.unwrap();
        stranger.cycle().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let status = stranger.status().lock().unwrap().clone();
    assert!(alerts(&status, "rival").iter().any(|text| text.contains("\"leader\" in term 2")), "{:?}", status.alerts);
    assert_eq!((stranger.journal().lease().unwrap().term, agents[0].agent.status().term), (1, 2));
    let key = leader.submit("drill", &job("a", 0.1)).await.unwrap();
    all_over(&mut leader).await;
    assert_eq!(site.lines(&key, "ends"), 1, "the leader is obeyed");
}
