//! Replica of a service in tests: a Python program that reports a load to the daemon.
use goodput_executor::engine::{ReplicaStage, ServiceSeen};

/// Folder of the Python client of the job protocol.
pub const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");

/// A replica that reports the requests per second which a file says, and nothing where there is
/// none.
pub const REPLICA: &str = r#"
import os, time, goodput_job
job, step = goodput_job.Job(report_every_s=0.1), 0
while True:
    job.exit_if_stopped()
    try:
        qps = float(open(os.environ["LOAD"]).read())
        step += 1
        job.report(step, serving={"qps": qps, "p50_ms": 10.0, "p99_ms": 20.0, "inflight": 1})
    except (OSError, ValueError):
        pass
    time.sleep(0.05)
"#;

/// Number of replicas of the service that answer requests.
pub fn ready(service: &ServiceSeen) -> usize {
    service.replicas.iter().filter(|replica| replica.phase == ReplicaStage::Ready).count()
}
