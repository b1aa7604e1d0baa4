//! Listings of a live cluster: its queue and its nodes.

use goodput_console::{Cell, Listing};
use goodput_env::cluster::Pool;
use goodput_executor::daemon::interface::status::{QueueRow, ServiceRow};
use goodput_executor::engine::{NodeSeen, OnNode, ReplicaStage, ServiceSeen};

/// Time of the Unix epoch in milliseconds as a date and a time of day, UTC.
pub fn moment(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms)
        .map_or_else(|_| at_ms.to_string(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Placement in words: `node:accelerators` for each node.
pub fn place(placement: &[OnNode]) -> String {
    placement.iter().map(|on| format!("{}:{}", on.node, on.gpus)).collect::<Vec<_>>().join(" ")
}

/// Jobs that wait or run, with the reason why each is where it is.
pub fn queue(jobs: &[QueueRow]) -> Listing {
    let mut rows =
        Listing::new(&["job", "name", "tenant", "phase", "gpus", "placement", "age_secs", "starts", "reason", "score"]);
    for job in jobs {
        let [min, asked, max] = job.gpus;
        rows.push(vec![
            job.key.as_str().into(),
            job.name.as_str().into(),
            job.tenant.as_str().into(),
            job.phase.as_str().into(),
            if min == max { asked.to_string() } else { format!("{asked} ({min}-{max})") }.into(),
            place(&job.placement).into(),
            Cell::Number(job.age_secs, 1),
            Cell::Whole(i64::from(job.starts)),
            job.reason.as_str().into(),
            Cell::option(job.score, |score| Cell::Number(f64::from(score), 3)),
        ]);
    }
    rows
}

/// Nodes with the accelerators that are free on them.
pub fn nodes(nodes: &[NodeSeen]) -> Listing {
    let mut rows = Listing::new(&["node", "accelerator", "gpus", "free", "pool", "health", "note"]);
    for node in nodes {
        rows.push(vec![
            node.name.as_str().into(),
            node.accelerator.as_str().into(),
            Cell::Whole(i64::from(node.gpus)),
            Cell::Whole(i64::from(node.free)),
            pool(node).into(),
            format!("{:?}", node.health).to_lowercase().into(),
            node.note.as_str().into(),
        ]);
    }
    rows
}

/// Pool of a node, and where a node of the inference pool is: at home, lent, or called back.
fn pool(node: &NodeSeen) -> &'static str {
    let called = node.loan.is_some_and(|loan| loan.recall.is_some());
    match node.pool {
        Pool::Shared => "shared",
        Pool::Training => "training",
        Pool::Inference if called => "inference, called back",
        Pool::Inference if node.lent => "inference, lent",
        Pool::Inference => "inference",
    }
}

/// Number of replicas of a service that are ready, that start, and that drain.
fn replicas(service: &ServiceSeen) -> [i64; 3] {
    let count = |wanted: fn(&ReplicaStage) -> bool| {
        service.replicas.iter().filter(|replica| wanted(&replica.phase)).count() as i64
    };
    [
        count(|phase| matches!(phase, ReplicaStage::Ready)),
        count(|phase| matches!(phase, ReplicaStage::Starting { .. })),
        count(|phase| matches!(phase, ReplicaStage::Draining { .. })),
    ]
}

/// Inference services with their replicas and their load.
pub fn services(services: &[ServiceRow]) -> Listing {
    let mut rows = Listing::new(&[
        "service",
        "tenant",
        "ready",
        "starting",
        "draining",
        "replicas",
        "gpus",
        "rate",
        "usual",
        "high",
        "windows",
        "above_high",
        "nodes",
    ]);
    for ServiceRow { seen: service, forecast } in services {
        let spec = &service.spec;
        let [ready, starting, draining] = replicas(service);
        let mut nodes: Vec<&str> = service.replicas.iter().map(|replica| replica.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let on = |node: &&str| {
            let there = service.replicas.iter().filter(|replica| replica.node == **node).count();
            format!("{node}:{there}")
        };
        rows.push(vec![
            service.name.as_str().into(),
            spec.tenant.as_str().into(),
            Cell::Whole(ready),
            Cell::Whole(starting),
            Cell::Whole(draining),
            format!("{}-{}", spec.min_replicas, spec.max_replicas).into(),
            Cell::Whole(i64::from(spec.gpus_per_replica)),
            rate(service).into(),
            Cell::option(forecast.as_ref(), |record| Cell::Number(record.last.usual, 1)),
            Cell::option(forecast.as_ref(), |record| Cell::Number(record.last.high, 1)),
            Cell::option(forecast.as_ref(), |record| Cell::Whole(record.windows as i64)),
            Cell::option(forecast.as_ref(), |record| Cell::Whole(record.above_high as i64)),
            nodes.iter().map(on).collect::<Vec<_>>().join(" ").into(),
        ]);
    }
    rows
}

/// Requests per second of a service; `unknown` where its replicas do not report them.
fn rate(service: &ServiceSeen) -> String {
    service.rate.map_or_else(|| "unknown".into(), |rate| format!("{rate:.1}"))
}

/// Line about a service, for the screen.
pub fn service_line(row: &ServiceRow) -> String {
    let ServiceRow { seen: service, forecast } = row;
    let [ready, starting, draining] = replicas(service);
    let load = service.rate.map_or_else(|| "load unknown".into(), |rate| format!("{rate:.1} requests/s"));
    let ahead = forecast.as_ref().map_or_else(String::new, |record| {
        format!(" · expected {:.1}, seldom above {:.1}", record.last.usual, record.last.high)
    });
    format!("service {}: {ready} ready, {starting} starting, {draining} draining · {load}{ahead}", service.name)
}
