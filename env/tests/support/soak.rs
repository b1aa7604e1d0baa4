//! Conservation, checked at every decision and at the end of a run. What another part of the
//! simulator must keep true is one more line in [`ALWAYS`] or [`IN_THE_END`].

use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId, Pool};
use goodput_env::guard::Guard;
use goodput_env::job::{Work, Workload};
use goodput_env::model::fault::{Bugs, Cause, Causes, Lemons, LogNormal, Scripted};
use goodput_env::model::{Checkpointing, FaultModel, Interval, Store};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::request::{Assign, InferenceRequest, RequestId, ServedModel, Target};
use goodput_env::scenario::{Batching, Release, Resize, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::service::ServiceId;
use goodput_env::sim::{Outcome, Simulator, Status};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use rand::RngExt;

type Always = fn(&Simulator) -> Result<(), String>;
type InTheEnd = fn(&Scenario, &Simulator, &Outcome) -> Result<(), String>;

/// Rules that hold at every decision.
pub const ALWAYS: &[(&str, Always)] = &[
    ("what a node's jobs hold and what is free is what it has in service", capacity),
    ("every job that has arrived is active or has left", no_job_is_lost),
    ("jobs hold what they can run on, on nodes that have not failed", placements_are_sound),
    ("free instances are on accelerators that are free", sleepers_have_room),
    ("fragments are free accelerators on nodes too full for the widest job that waits", fragments_are_counted),
];

/// Rules that hold when a run is over.
pub const IN_THE_END: &[(&str, InTheEnd)] = &[
    ("Little's law", littles_law),
    ("accelerator time adds up", gpu_time),
    ("work is done once", work_is_done_once),
    ("services add up over nodes and latencies", services_add_up),
    ("requests are answered once and whole", requests_are_answered_once),
];

/// Runs `policy` to the end and panics where a rule breaks.
pub fn run(scenario: &Arc<Scenario>, policy: &mut dyn Policy) -> Outcome {
    let mut simulator = Simulator::new(scenario.clone());
    let check = |simulator: &Simulator| {
        for (rule, check) in ALWAYS {
            check(simulator).unwrap_or_else(|what| panic!("{rule}, at {}: {what}", simulator.now()));
        }
    };
    while simulator.run_until_decision().unwrap() == Status::Decision {
        check(&simulator);
        let plan = policy.decide(&simulator.view());
        simulator.apply(&plan).unwrap();
        simulator.wake_at(policy.wake_at());
        check(&simulator);
    }
    let outcome = simulator.clone().outcome();
    for (rule, check) in IN_THE_END {
        check(scenario, &simulator, &outcome).unwrap_or_else(|what| panic!("{rule}: {what}"));
    }
    outcome
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, one: T, other: T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what}: {one:?} and {other:?}")) }
}

fn capacity(simulator: &Simulator) -> Result<(), String> {
    let view = simulator.view();
    // What completed jobs hold until the next round is in no job's placement.
    let exact = simulator.scenario().options.release == Release::Immediately;
    let mut used: Vec<u32> = view.cluster().node_ids().map(|node| view.idle_on(node)).collect();
    for job in view.jobs().filter(|job| job.state.counts()) {
        job.state.placement.slices().iter().for_each(|slice| used[slice.node.index()] += slice.gpus);
    }
    for (node, used) in used.iter_mut().enumerate() {
        *used += view.served_on(NodeId::at(node));
    }
    view.instances().iter().filter(|(_, one)| !one.is_free()).for_each(|(_, one)| used[one.node.index()] += 1);
    let has: Vec<u32> = view.cluster().nodes.iter().map(|node| node.gpus).collect();
    if exact {
        equal("used and there", used, has)
    } else {
        equal("none too many", used.iter().zip(&has).all(|(u, h)| u <= h), true)
    }
}

fn no_job_is_lost(simulator: &Simulator) -> Result<(), String> {
    let arrived = simulator.scenario().workload.jobs.iter().filter(|job| job.request.submit <= simulator.now()).count();
    let left = simulator.records().iter().filter(|record| record.left().is_some()).count();
    equal("arrived and known", arrived, left + simulator.view().active())
}

fn placements_are_sound(simulator: &Simulator) -> Result<(), String> {
    let view = simulator.view();
    for job in view.jobs().filter(|job| job.gpus() > 0) {
        let healthy = job.state.placement.slices().iter().all(|slice| view.healthy(slice.node));
        equal(&job.request().name, (healthy, job.request().accepts(job.gpus())), (true, true))?;
    }
    Ok(())
}

fn sleepers_have_room(simulator: &Simulator) -> Result<(), String> {
    let view = simulator.view();
    let nodes = view.cluster().node_ids();
    let crowded = nodes.filter(|&node| view.instances().sleeping_on(node) > view.idle_on(node)).count();
    equal("nodes with more sleepers than room", crowded, 0)
}

fn fragments_are_counted(simulator: &Simulator) -> Result<(), String> {
    let view = simulator.view();
    let widest = view.jobs().filter(|job| job.gpus() == 0).map(|job| job.min_gpus()).max().unwrap_or(0);
    let nodes = view.cluster().nodes.iter().zip(view.free());
    let fragments: u32 = nodes.filter(|(node, free)| **free < widest.min(node.gpus)).map(|(_, free)| free).sum();
    equal("counted and there", simulator.fragmented_gpus(), fragments)
}

fn littles_law(_: &Scenario, simulator: &Simulator, outcome: &Outcome) -> Result<(), String> {
    let arrived = outcome.jobs.iter().filter(|job| job.submit <= outcome.end);
    let in_system: i64 = arrived.map(|job| (job.left().unwrap_or(outcome.end) - job.submit).as_millis()).sum();
    equal("job time", in_system, simulator.job_millis())?;
    equal("cut off", outcome.truncated, outcome.jobs.iter().any(|job| job.left().is_none()))
}

fn gpu_time(scenario: &Scenario, simulator: &Simulator, outcome: &Outcome) -> Result<(), String> {
    if scenario.options.release == Release::Immediately {
        equal("held", outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum(), simulator.gpu_millis())?;
    }
    equal("idle", outcome.jobs.iter().map(|job| job.faults.idle_gpu_millis).sum(), outcome.idle_gpu_millis)?;
    for job in &outcome.jobs {
        let parts = [job.faults.idle_gpu_millis, job.faults.writing_gpu_millis, job.faults.lost_gpu_millis];
        equal("none negative", parts.iter().all(|&part| part >= 0) && job.kept_gpu_millis() >= 0, true)?;
        equal("restarts fit", job.restarting <= job.executed, true)?;
    }
    Ok(())
}

/// A completed job of a given length has made lasting progress for just as long, to the rounding of
/// each stretch it ran; for longer only where interference slowed it.
fn work_is_done_once(scenario: &Scenario, _: &Simulator, outcome: &Outcome) -> Result<(), String> {
    for job in outcome.jobs.iter().filter(|job| job.finish.is_some()) {
        let spec = &scenario.workload.jobs[job.job.index()];
        if let Work::Fixed { duration } = spec.work {
            let gpus = i64::from(spec.request.gpus);
            let more = job.kept_gpu_millis() - gpus * duration.as_millis();
            let off = if scenario.options.interference > 0.0 { -more } else { more.abs() };
            let rounding = gpus * (2 + i64::from(job.restarts));
            equal(&format!("{} is off by {off}", spec.request.name), off <= rounding, true)?;
        }
    }
    Ok(())
}

fn services_add_up(_: &Scenario, _: &Simulator, outcome: &Outcome) -> Result<(), String> {
    for record in &outcome.services {
        equal("by node", record.nodes.iter().map(|on| on.gpu_millis).sum::<i64>(), record.gpu_millis)?;
        equal("by latency", record.latencies.iter().sum::<u64>(), record.requests)?;
        equal("late at most all", record.violated <= record.requests, true)?;
    }
    equal("no more came back than were lent", outcome.loans.returned <= outcome.loans.lent, true)
}

fn requests_are_answered_once(scenario: &Scenario, _: &Simulator, outcome: &Outcome) -> Result<(), String> {
    equal("records", outcome.requests.len(), scenario.workload.requests.len())?;
    for (record, request) in outcome.requests.iter().zip(&scenario.workload.requests) {
        let ordered = record.start.is_none_or(|start| start >= request.submit);
        let whole = record.finish.zip(record.start).is_none_or(|(end, start)| end - start >= request.duration);
        equal("in order", (ordered, whole, record.finish.is_some() && record.start.is_none()), (true, true, false))?;
    }
    Ok(())
}

/// Storm number `seed` on training, inference and shared nodes, with two services and four thousand
/// requests to three models.
fn shared(seed: u64) -> Arc<Scenario> {
    let mut cluster = Cluster { types: Vec::new(), nodes: Vec::new() };
    for pool in [Pool::Training, Pool::Inference, Pool::Shared] {
        cluster.add_to(pool, "gpu", 4, 4);
    }
    let mut random = rng(seed, Stream::Workload);
    let mut service = |name: &str, gpus: u32| {
        let rates: Vec<f64> = (0..300).map(|_| f64::from(random.random_range(0..400_u32))).collect();
        super::service(name, SimTime::from_secs(60), &rates, gpus)
    };
    let services = vec![service("one", 1), service("two", 2)];
    let request = |_| InferenceRequest {
        model: random.random_range(0..3),
        submit: SimTime::from_secs(random.random_range(0..18_000)),
        duration: SimTime::from_secs(random.random_range(1..20)),
    };
    let mut requests: Vec<InferenceRequest> = (0..4000).map(request).collect();
    requests.sort_by_key(|request| request.submit);
    let model = |name: &str| ServedModel { name: format!("infer-{name}").into(), application: name.into() };
    let workload = Workload {
        services,
        requests,
        served: ["bert", "ncf", "yolov3"].map(model).to_vec(),
        ..Workload::new(vec![super::application()], super::mixed_jobs(seed, 300, 60))
    };
    let options = SimOptions { horizon: Some(SimTime::from_secs(60_000)), ..features(seed) };
    Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, seed))
}

/// Beside jobs it also scales, lends, calls back and answers at random; what the guard refuses is left out.
struct SharedChaos {
    jobs: super::Chaos,
    guard: Guard,
}

impl Policy for SharedChaos {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = self.jobs.decide(view);
        if self.guard.check(view, &plan).is_err() {
            plan = Plan::keep();
        }
        let random = &mut self.jobs.0;
        for _ in 0..6 {
            let before = plan.clone();
            let node = NodeId(random.random_range(0..view.cluster().nodes.len() as u32));
            match random.random_range(0..5) {
                0 => plan.scale(ServiceId(random.random_range(0..2)), node, random.random_range(0..4)),
                1 => plan.lend(node),
                2 => plan.reclaim(node, view.now + SimTime::from_secs(random.random_range(0..90))),
                _ => {
                    let taken = |request: &&RequestId| plan.assign.iter().all(|assign| assign.request != **request);
                    let Some(&request) = view.waiting_requests().iter().find(taken) else { continue };
                    let idle = view.instances().iter().nth(random.random_range(0..4));
                    let idle = idle.filter(|_| random.random_bool(0.5)).map(|(id, _)| Target::Instance(id));
                    plan.assign.push(Assign { request, target: idle.unwrap_or(Target::Node(node)) });
                }
            }
            if self.guard.check(view, &plan).is_err() {
                plan = before;
            }
        }
        plan
    }
}

/// Counts of the events that a soak went through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub runs: u64,
    pub events: u64,
    pub decisions: u64,
    pub faults: u64,
    pub hits: u64,
    pub failed: u64,
    pub lent: u64,
    pub replicas: u64,
    pub answered: u64,
}

/// Options of storm number `seed`: each feature is a line, on or off by the digits of the number.
fn features(seed: u64) -> SimOptions {
    let every = |step: u64, cycle: u64| (seed / step) % cycle;
    let mut options = SimOptions::standard();
    options.resize = [Resize::StopRestart, Resize::Overlapped, Resize::OverlappedSerial, Resize::OverlappedMerge]
        [every(1, 4) as usize];
    options.interference = [0.0, 0.25][every(4, 2) as usize];
    options.batching = [Batching::Agent, Batching::Catalog, Batching::Requested][every(8, 3) as usize];
    options.release = [Release::Immediately, Release::NextRound][every(24, 2) as usize];
    options.free_moves = every(5, 4) == 3;
    options.faults = Some(FaultModel {
        mtbf_hours: [2.0, 20.0][every(2, 2) as usize],
        causes: Causes { accelerator: 2.0, node: 1.0, network: 1.0 },
        repair: LogNormal { median_secs: 300.0, sigma: 1.0 },
        bugs: Some(Bugs::default()),
        lemons: Some(Lemons { share: 0.1, factor: 5.0 }),
        script: vec![Scripted { at_secs: 5000.0, cause: Cause::Scheduler, node: NodeId(0), lasts_secs: Some(600.0) }],
        ..FaultModel::default()
    });
    let interval =
        [Interval::Young, Interval::Daly, Interval::Adaptive, Interval::Fixed { secs: 60.0 }][every(3, 4) as usize];
    let store = [Store::Shared, Store::Memory][every(7, 2) as usize];
    options.checkpoint = Some(Checkpointing { interval, store, ..Checkpointing::default() });
    options
}

/// Random runs until there have been `events`.
pub fn storms(events: u64) -> Tally {
    let mut tally = Tally::default();
    while tally.events < events {
        let seed = tally.runs;
        let outcome = if seed % 2 == 0 {
            let scenario = super::scenario("8x4", super::mixed_jobs(seed, 300, 60), features(seed / 2));
            run(&scenario, &mut super::Chaos::new(seed))
        } else {
            run(&shared(seed / 2), &mut SharedChaos { jobs: super::Chaos::new(seed), guard: Guard::default() })
        };
        tally.lent += outcome.loans.lent;
        tally.replicas += outcome.services.iter().map(|service| service.starts).sum::<u64>();
        tally.answered += outcome.requests.iter().filter(|request| request.finish.is_some()).count() as u64;
        tally.runs += 1;
        tally.events += outcome.events;
        tally.decisions += outcome.decisions;
        tally.faults += u64::from(outcome.hardware.accelerators + outcome.hardware.nodes + outcome.hardware.networks);
        tally.hits += outcome.jobs.iter().map(|job| u64::from(job.faults.hits)).sum::<u64>();
        tally.failed += outcome.jobs.iter().filter(|job| job.faults.failed.is_some()).count() as u64;
    }
    tally
}
