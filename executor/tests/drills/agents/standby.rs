//! Drill 17: jobs are handed in to daemons that lead and to daemons that stand by, while leaders die.

use super::*;
use goodput_configs::live::token::{ApiVerb, Token};
use goodput_executor::daemon::DaemonError;
use goodput_executor::daemon::interface::api;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A daemon that serves its interface.
struct Served {
    url: String,
    task: JoinHandle<()>,
    // Dropped with it: the daemon is not told to end.
    _stop: oneshot::Sender<()>,
}

impl Site {
    fn serve(&self, agents: &[Running], daemon: &str) -> Served {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let addresses: Vec<_> = agents.iter().map(|agent| agent.address).collect();
        let mut settings = self.settings(&addresses, daemon, &format!("127.0.0.1:{port}"));
        // A daemon that a busy machine stops for a second goes on leading.
        settings.state.lease_secs = 4;
        settings.api.tokens.push(Token {
            name: "drill".into(),
            sha256: api::hash("secret"),
            verbs: vec![ApiVerb::Admin],
            ..Token::default()
        });
        let daemon = open(settings).unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            api::run(daemon, stopped).await.map(drop).unwrap();
        });
        Served { url: format!("http://127.0.0.1:{port}"), task, _stop: stop }
    }
}

impl Served {
    /// Ends the daemon where it stands: its lease is not given up.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn client() -> ureq::Agent {
    let timeout = Some(Duration::from_secs(5));
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(timeout).build().new_agent()
}

/// Status and body of a GET.
async fn get(url: String) -> Option<(u16, Value)> {
    let asked = tokio::task::spawn_blocking(move || {
        let mut answer = client().get(&url).call().ok()?;
        let text = answer.body_mut().read_to_string().ok()?;
        Some((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
    });
    asked.await.unwrap()
}

/// Status and body of one try to hand a job in; `None` where nothing answers.
async fn post(url: &str, key: &str, job: &Submission) -> Option<(u16, Value)> {
    let (url, key, job) = (format!("{url}/v1/jobs"), key.to_owned(), job.clone());
    let asked = tokio::task::spawn_blocking(move || {
        let request = client().post(&url).header("authorization", "Bearer secret").header("idempotency-key", &key);
        let mut answer = request.send_json(&job).ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_json().ok()?))
    });
    asked.await.unwrap()
}

async fn ready(url: &str, wanted: u16) -> Value {
    let began = Instant::now();
    loop {
        match get(format!("{url}/readyz")).await {
            Some((code, report)) if code == wanted => return report,
            other => assert!(began.elapsed() < PATIENCE, "{url}: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_names_the_leader_and_no_acknowledged_job_stands() {
    let site = Site::new(&["n0", "n1"], Fencing::Keep);
    let agents = site.agents().await;
    let mut leader = site.serve(&agents, "d0");
    ready(&leader.url, 200).await;
    let mut standby = site.serve(&agents, "d1");
    let began = Instant::now();
    let (report, seen) = loop {
        let (code, report) = get(format!("{}/healthz", standby.url)).await.unwrap_or_default();
        // The leader is known from the first cycle on.
        if let (200, Some(leader)) = (code, report["leader"]["address"].as_str()) {
            break (report.clone(), leader.to_owned());
        }
        assert!(began.elapsed() < PATIENCE, "{report}");
    };
    assert_eq!((report["leads"].as_bool(), seen), (Some(false), leader.url.clone()), "a standby is healthy");
    let (code, report) = get(format!("{}/readyz", standby.url)).await.unwrap();
    assert_eq!((code, report["status"].as_str()), (503, Some("ok")), "and takes no submissions");
    let (code, refusal) = post(&standby.url, "by-standby", &job("by-standby", 0.1)).await.unwrap();
    assert_eq!((code, refusal["leader"]["address"].as_str()), (421, Some(leader.url.as_str())), "{refusal}");
    assert_eq!(fs::read_dir(site.at("engine/jobs")).unwrap().count(), 0, "a refused job is nowhere");

    let (mut keys, mut misdirected, mut tries) = (Vec::new(), 0, 0);
    for round in 0..4 {
        for index in 0..10 {
            let (name, mut url) = (format!("j{round}-{index}"), standby.url.clone());
            let work = job(&name, 0.05);
            let began = Instant::now();
            let key = loop {
                tries += 1;
                match post(&url, &name, &work).await {
                    Some((200 | 201, answer)) => break answer["key"].as_str().unwrap().to_owned(),
                    Some((421, refusal)) => {
                        misdirected += 1;
                        url = refusal["leader"]["address"].as_str().unwrap_or(&url).to_owned();
                    }
                    // None leads, or the daemon is dead: the other one is asked.
                    other => {
                        assert!(other.is_none_or(|(code, _)| code == 503) && began.elapsed() < PATIENCE);
                        url = standby.url.clone();
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            };
            keys.push(key);
            if index == 4 {
                leader.kill().await;
                leader = standby;
                standby = site.serve(&agents, &format!("d{}", round + 2));
            }
        }
    }
    ready(&leader.url, 200).await;
    let began = Instant::now();
    while site.doubled_and_lost(&keys).1 > 0 {
        assert!(began.elapsed() < PATIENCE, "{} of {} stand", site.doubled_and_lost(&keys).1, keys.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("4 leaders killed, {} jobs, {tries} tries, {misdirected} misdirected", keys.len());
    assert_eq!((distinct(&keys), site.doubled_and_lost(&keys)), (40, (0, 0)));
    assert!(misdirected > 0);
    leader.kill().await;
    standby.kill().await;
}

/// A leader that was paused for longer than its lease acknowledges nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_deposed_leader_acknowledges_no_job() {
    let site = Site::new(&["n0"], Fencing::Keep);
    let agents = site.agents().await;
    let mut old = site.daemon(&agents, "old");
    all_up(&mut old).await;
    let mut new = site.daemon(&agents, "new");
    assert!(!new.cycle().await.unwrap().leads);
    let early = new.submit("drill", &job("a", 0.1)).await.unwrap_err();
    assert!(early.to_string().contains("\"old\" leads"), "{early}");
    until(&mut new, "takes over", |status| status.term == Some(2)).await;
    let late = old.submit("drill", &job("b", 0.1)).await.unwrap_err();
    assert!(matches!(late, DaemonError::Standby(_)), "{late}");
    let cancel = goodput_executor::engine::EngineAction::Cancel { grace_s: 1 };
    assert!(matches!(old.order_by_hand("drill", "b", cancel).await, Err(DaemonError::Standby(_))));
    let key = new.submit("drill", &job("c", 0.1)).await.unwrap();
    all_over(&mut new).await;
    assert_eq!(site.doubled_and_lost(&[key]), (0, 0));
    assert_eq!(fs::read_dir(site.at("engine/jobs")).unwrap().count(), 1);
}

/// The engine's folder is damaged: health says so and nothing is accepted, until it is mended.
#[tokio::test(flavor = "multi_thread")]
async fn health_and_submissions_tell_that_the_engine_is_down() {
    let site = Site::new(&["n0"], Fencing::Keep);
    let agents = site.agents().await;
    let daemon = site.serve(&agents, "d0");
    ready(&daemon.url, 200).await;
    assert_eq!(get(format!("{}/livez", daemon.url)).await.unwrap().0, 200);
    let (folder, aside) = (site.at("engine/jobs"), site.at("engine/aside"));
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "no folder").unwrap();
    let report = ready(&daemon.url, 503).await;
    assert_eq!((report["status"].as_str(), report["leads"].as_bool()), (Some("failing"), Some(true)));
    assert_eq!(report["problems"][0]["check"], "engine", "{report}");
    let (code, refusal) = post(&daemon.url, "a", &job("a", 0.1)).await.unwrap();
    let text = refusal["error"].as_str().unwrap();
    assert!(code == 503 && text.contains("nothing was accepted") && text.contains("its folder"), "{code} {text}");
    assert_eq!(get(format!("{}/livez", daemon.url)).await.unwrap().0, 200, "starting it anew would not help");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    ready(&daemon.url, 200).await;
    let (code, answer) = post(&daemon.url, "a", &job("a", 0.1)).await.unwrap();
    assert_eq!(code, 201, "{answer}");
    daemon.kill().await;
}
