//! Jobs in Python and jobs written for AdaptDL, on a real agent.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::nodes::*;
use goodput_executor::job::{AcceleratorGrant, Exit, ExitMeaning, GangPlan};
use serde_json::json;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");

fn python(script: &str) -> Vec<String> {
    assert!(Path::new(CLIENTS).join(script).exists());
    vec!["python3".to_owned(), format!("{CLIENTS}/{script}")]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_job_reports_checkpoints_leaves_and_goes_on() {
    let node = Node::new("n1");
    let agent = node.agent().await;
    let client = node.client(agent.address);
    let grants = vec![AcceleratorGrant::whole(&uuids(&client).await[0])];
    let run = |attempt, steps: &str| {
        let mut launched = launch("py", attempt, python("train_example.py"), grants.clone());
        let env = [("STEPS", steps), ("PYTHONDONTWRITEBYTECODE", "1")];
        launched.program.env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        start(launched)
    };
    client.start(&run(0, "100000")).await.unwrap();
    let first = reported(&client, "py.0").await.report.unwrap();
    assert_eq!((first.batch_size, first.samples), (Some(128), Some(first.step * 128)));
    assert!(first.loss.is_some() && first.step_time_s.is_some_and(|step| step > 0.0));
    ask_for_checkpoint(&client, "py.0").await;
    let began = Instant::now();
    while node.checkpoints("py").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(10), "SIGUSR1 writes a checkpoint");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.stop("py.0", &stop(10_000)).await.unwrap();
    assert_eq!(ended(&client, "py.0").await.0, Exit::Code(143));
    let newest = node.checkpoints("py").last().unwrap().clone();
    let step: u64 = newest.strip_prefix("step-").unwrap().parse().unwrap();

    client.start(&run(1, &(step + 20).to_string())).await.unwrap();
    let second = reported(&client, "py.1").await.report.unwrap();
    assert!(second.step > step, "{} after {step}", second.step);
    assert_eq!(ended(&client, "py.1").await.1, ExitMeaning::Done);
    let kept = node.checkpoints("py");
    assert!(kept.len() == 2 && kept.contains(&format!("step-{}", step + 20)), "{kept:?}");
}

/// Calls of adaptdl 0.2.11: `adaptdl.sched_hints.post_sched_hints` and the discovery of
/// `adaptdl.torch.init_process_group`.
#[tokio::test(flavor = "multi_thread")]
async fn an_adaptdl_job_hints_and_finds_its_peers() {
    let node = Node::new("n1");
    let agent = node.agent().await;
    let client = node.client(agent.address);
    let uuids = uuids(&client).await;
    let script = "import json,os,urllib.request as u\n\
        url=os.environ['ADAPTDL_SUPERVISOR_URL']; job=os.environ['ADAPTDL_JOB_ID']; group=os.environ['ADAPTDL_NUM_RESTARTS']\n\
        u.urlopen(url+'/healthz').read()\n\
        hints={'initBatchSize':128,'localBszBounds':[64,256],'gradParams':{'norm':1.0,'var':2.0},'noSuchField':1}\n\
        put=u.Request(url+'/hints/'+job,data=json.dumps(hints).encode(),method='PUT',headers={'Content-Type':'application/json'})\n\
        assert u.urlopen(put).status==200\n\
        peers=json.loads(u.urlopen(url+'/discover/'+job+'/'+group+'?timeout=5').read())\n\
        assert len(peers)==int(os.environ['ADAPTDL_NUM_REPLICAS']), peers\n\
        open(os.environ['ADAPTDL_CHECKPOINT_PATH']+'/peers','w').write(','.join(peers))\n\
        import time; time.sleep(60)\n";
    let command = vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()];
    let mut launched = launch("adl", 3, command, uuids.iter().map(AcceleratorGrant::whole).collect());
    launched.gang =
        GangPlan { peers: vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()], ..GangPlan::alone(2, 47_000) };
    let key = launched.fence.supervisor_key();
    client.start(&start(launched)).await.unwrap();
    let began = Instant::now();
    while !node.checkpoints("adl").contains(&"peers".to_owned()) {
        let output =
            std::fs::read_to_string(node.config.state_dir.join("attempts/adl.3/output.log")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(10), "{output}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let status = client.attempt("adl.3").await.unwrap();
    let hints = json!({"initBatchSize": 128, "localBszBounds": [64, 256], "gradParams": {"norm": 1.0, "var": 2.0}});
    assert_eq!(status.hints, Some(hints), "what AdaptDL's scheduler does not know is dropped");

    let call = |method: &'static str, path: String| {
        let url = format!("http://{}{path}", agent.jobs);
        tokio::task::spawn_blocking(move || {
            let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
            let request = ureq::http::Request::builder().method(method).uri(url);
            agent.run(request.body(r#"{"initBatchSize":1}"#).unwrap()).unwrap().status().as_u16()
        })
    };
    let next = format!("/adaptdl/{key}/discover/goodput/adl/4?timeout=0");
    assert_eq!(call("GET", next).await.unwrap(), 408, "the next attempt is not there yet");
    assert_eq!(call("GET", format!("/adaptdl/{key}/healthz")).await.unwrap(), 200);
    let stranger = "0123456789abcdef0123456789abcdef";
    for path in ["/hints/goodput/adl".to_owned(), format!("/adaptdl/{stranger}/hints/goodput/adl")] {
        assert_eq!(call("PUT", path.clone()).await.unwrap(), 404, "{path}: a stranger");
    }
    assert_eq!(call("PUT", format!("/adaptdl/{key}/hints/goodput/other")).await.unwrap(), 404, "another job");
    let after = client.attempt("adl.3").await.unwrap().hints.unwrap();
    assert_eq!(after["initBatchSize"], 128, "and none of it counted");
}
