//! Guarantees of `[resilience]` on agents in processes of their own: a reserve is kept, a node that fails again and
//! again is left alone, and a job that fails again and again waits.

use super::*;
use goodput_executor::engine::NodeHealth;
use goodput_executor::job::RetryBudget;

/// A site of agents in processes of their own, which kill their jobs when no daemon is heard.
struct Processes {
    // Agents go before the nodes that they run on.
    agents: Vec<AgentProcess>,
    site: Site,
}

impl Processes {
    fn new(names: &[&str]) -> Self {
        let mut site = Site::new(names, Fencing::Kill { after_ms: 1500 });
        let agents: Vec<AgentProcess> = site.nodes.iter().map(Node::spawn).collect();
        // An agent that comes back is found where it was.
        for (node, agent) in site.nodes.iter_mut().zip(&agents) {
            node.config.listen = agent.address;
        }
        Self { agents, site }
    }

    /// A daemon with the tables `text` beside its usual ones.
    fn daemon(&self, text: &str) -> Daemon<AgentsEngine> {
        let addresses: Vec<_> = self.agents.iter().map(|agent| agent.address).collect();
        let usual = reader::resolved(&self.site.settings(&addresses, "a", "")).unwrap();
        let settings: Deployment = reader::parse("guaranteed.toml", &format!("{usual}\n{text}")).unwrap();
        let EngineConfig::Agents(agents) = settings.engine.clone() else { panic!("it drives agents") };
        let tenants = Arc::new(settings.tenants().unwrap());
        daemon::open(AgentsEngine::open(agents).unwrap(), settings, Vec::new(), tenants).unwrap()
    }

    /// Kills the agent of a node, and waits until the daemon knows that the node is down.
    async fn fail(&mut self, daemon: &mut Daemon<AgentsEngine>, node: usize) {
        self.agents[node].kill();
        until(daemon, "the node is down", |status| status.nodes[node].health == NodeHealth::Down).await;
    }

    /// Starts the agent of a node again, and waits until the node takes jobs.
    async fn repair(&mut self, daemon: &mut Daemon<AgentsEngine>, node: usize) {
        self.agents[node] = self.site.nodes[node].spawn();
        until(daemon, "the node is back", |status| status.nodes[node].health == NodeHealth::Up).await;
    }
}

/// Jobs that run, and of those the ones on `node`.
fn running(status: &DaemonStatus, node: &str) -> (usize, usize) {
    let runs = status.queue.iter().filter(|row| row.phase == "running");
    let there = runs.clone().filter(|row| row.placement.iter().any(|on| on.node == node));
    (runs.count(), there.count())
}

/// Cycles through some more decisions, of which there is one a second.
async fn decide_on(daemon: &mut Daemon<AgentsEngine>, decisions: u32) -> DaemonStatus {
    let mut left = decisions;
    while left > 0 {
        left -= u32::from(daemon.cycle().await.is_ok_and(|report| report.decided));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    daemon.status().lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_fails_again_and_again_is_left_alone() {
    let mut processes = Processes::new(&["n0", "n1", "n2"]);
    let mut daemon = processes.daemon("[resilience.quarantine]\nfailures = 2\nmost_percent = 34.0\n");
    all_up(&mut daemon).await;
    for _ in 0..2 {
        processes.fail(&mut daemon, 0).await;
        processes.repair(&mut daemon, 0).await;
    }
    for at in 0..6 {
        daemon.submit("drill", &job(&format!("j{at}"), 600.0)).await.unwrap();
    }
    until(&mut daemon, "the other nodes are full", |status| running(status, "n0").0 == 4).await;
    let status = decide_on(&mut daemon, 3).await;
    assert_eq!(running(&status, "n0"), (4, 0), "{:?}", status.queue);
    assert_eq!(status.nodes[0].health, NodeHealth::Up, "the node is fit, and left alone");
    // Without the table, and with all else as it is, the node takes jobs.
    drop(daemon);
    let mut plain = processes.daemon("");
    until(&mut plain, "every node is full", |status| running(status, "n0") == (6, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loop_backs_off() {
    let processes = Processes::new(&["n0"]);
    let mut daemon = processes.daemon("[resilience.back_off]\nfirst_secs = 4.0\nlongest_secs = 60.0\n");
    all_up(&mut daemon).await;
    // The engine itself would try the job again at once.
    let retry = RetryBudget { failures: 9, first_wait_s: 0, ..RetryBudget::default() };
    let script = "cd \"$SCHED_CHECKPOINT_DIR\"; date +%s%3N >> starts; exit 1";
    let loops = Submission { retry, ..told("loops", 2, script) };
    let loops = daemon.submit("drill", &loops).await.unwrap();
    let honest = daemon.submit("drill", &sized("honest", 2, 0.1)).await.unwrap();
    let starts = |key: &str| -> Vec<u64> {
        let text = fs::read_to_string(processes.site.at("checkpoints").join(key).join("starts")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    until(&mut daemon, "the second start", |_| starts(&loops).len() >= 2).await;
    assert_eq!(processes.site.lines(&honest, "ends"), 1, "the job behind it has run meanwhile");
    until(&mut daemon, "the third start", |_| starts(&loops).len() >= 3).await;
    let gaps: Vec<u64> = starts(&loops).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= 4000 && gaps[1] >= 8000, "{gaps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_is_kept_when_its_node_is_lost() {
    let mut processes = Processes::new(&["n0", "n1", "n2"]);
    let mut daemon = processes.daemon(
        "[[tenants]]\nname = \"rest\"\n[[tenants]]\nname = \"key\"\n[resilience.reserve]\ngpus = 2\ntenants = [\"key\"]\n",
    );
    all_up(&mut daemon).await;
    for at in 0..6 {
        let job = Submission { tenant: "rest".into(), ..job(&format!("rest-{at}"), 600.0) };
        daemon.submit("drill", &job).await.unwrap();
    }
    until(&mut daemon, "the rest is full", |status| running(status, "").0 == 4).await;
    let status = decide_on(&mut daemon, 3).await;
    assert_eq!(running(&status, "").0, 4, "two accelerators are kept: {:?}", status.queue);
    let key = Submission { tenant: "key".into(), ..sized("key", 2, 600.0) };
    let key = daemon.submit("drill", &key).await.unwrap();
    let place = |status: &DaemonStatus| {
        let row = status.queue.iter().find(|row| row.key == key && row.phase == "running");
        row.map(|row| row.placement[0].node.clone())
    };
    let status = until(&mut daemon, "the key job runs", |status| place(status).is_some()).await;
    assert_eq!(running(&status, "").0, 5, "nothing made way for it");
    let lost = place(&status).unwrap();
    let node = status.nodes.iter().position(|node| node.name == lost).unwrap();
    processes.fail(&mut daemon, node).await;
    // Other jobs make way on the node that takes the place of the lost one.
    let status = until(&mut daemon, "it runs elsewhere", |status| place(status).is_some_and(|at| at != lost)).await;
    assert_eq!(running(&status, "").0, 3, "{:?}", status.queue);
}
