//! The scheduling framework: extension points in order, the default queue, gangs, affinity,
//! spreading, preemption and shares.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use goodput_agents::placement::framework::plugins::{
    Allocated, Gang, NodeAffinity, Preemption, PrioritySort, ResourcesFit, Shares,
};
use goodput_agents::placement::framework::{
    Affinity, Filtered, Framework, Permit, Plugin, Pod, PodId, Queue, QueueSort, Remedy, Resident, Scheduled, Snapshot,
};
use goodput_env::cluster::{Cluster, NodeId, TypeId};
use goodput_env::job::JobId;
use goodput_env::model::sharing::{Card, ShareRequest, Spread};
use goodput_env::seed::{Stream, rng};
use goodput_env::time::SimTime;
use rand::RngExt;

fn pod(job: u32, index: u32, members: u32, gpus: u32) -> Pod {
    Pod {
        id: PodId { job: JobId(job), index },
        members,
        tenant: 0,
        priority: 0,
        created: SimTime::from_secs(i64::from(job)),
        gpus,
        share: None,
        affinity: Affinity::default(),
    }
}

fn nodes(count: u32, gpus: u32) -> Snapshot {
    let cluster = Cluster::homogeneous(count, gpus);
    Snapshot::new(&cluster, &vec![gpus; count as usize], SimTime::ZERO)
}

fn priority(mut pod: Pod, priority: i32) -> Pod {
    pod.priority = priority;
    pod
}

/// The heap of the queue gives the order that sorting gives.
#[test]
fn the_heap_is_in_order() {
    let mut rng = rng(1, Stream::Policy);
    let pods: Vec<Pod> = (0..10_000)
        .map(|at| {
            let mut pod = priority(pod(at, 0, 1, 1), rng.random_range(-5..5));
            pod.created = SimTime::from_secs(rng.random_range(0..100));
            pod
        })
        .collect();
    let framework = Framework::new(PrioritySort);
    let mut queue = Queue::default();
    pods.iter().for_each(|pod| framework.enqueue(&mut queue, pod.clone()));
    let heap: Vec<Pod> = std::iter::from_fn(|| framework.dequeue(&mut queue)).collect();
    let mut sorted = pods;
    sorted.sort_by(|one, other| PrioritySort.compare(one, other));
    assert_eq!(heap, sorted);
    assert!(sorted.windows(2).all(|pair| pair[0].priority > pair[1].priority
        || pair[0].priority == pair[1].priority && pair[0].created <= pair[1].created));
}

/// Plugin that only records its calls.
#[derive(Clone, Default)]
struct Witness {
    log: Arc<Mutex<Vec<&'static str>>>,
    full: bool,
    refuses: Option<&'static str>,
}

impl Witness {
    fn note(&self, point: &'static str) -> bool {
        self.log.lock().unwrap().push(point);
        self.refuses != Some(point)
    }
}

impl QueueSort for Witness {
    fn compare(&self, one: &Pod, other: &Pod) -> std::cmp::Ordering {
        self.note("QueueSort");
        PrioritySort.compare(one, other)
    }
}

impl Plugin for Witness {
    fn pre_filter(&mut self, _: &Snapshot, _: &Pod) -> bool {
        self.note("PreFilter")
    }
    fn filter(&self, _: &Snapshot, _: &Pod, _: NodeId) -> Filtered {
        self.note("Filter");
        if self.full { Filtered::Unschedulable } else { Filtered::Fits }
    }
    fn post_filter(&mut self, _: &Snapshot, _: &Pod, _: &[NodeId]) -> Remedy {
        self.note("PostFilter");
        self.full = false;
        Remedy::Evict(vec![JobId(9)])
    }
    fn score(&self, _: &Snapshot, _: &Pod, _: NodeId) -> Option<i64> {
        self.note("Score");
        Some(1)
    }
    fn normalise(&self, _: &mut [i64]) {
        self.note("NormalizeScore");
    }
    fn reserve(&mut self, _: &Snapshot, _: &Pod, _: NodeId) -> bool {
        self.note("Reserve")
    }
    fn unreserve(&mut self, _: &Snapshot, _: &Pod, _: NodeId) {
        self.note("Unreserve");
    }
    fn permit(&mut self, _: &Snapshot, _: &Pod, _: NodeId) -> Permit {
        if self.note("Permit") { Permit::Allow } else { Permit::Reject }
    }
    fn pre_bind(&mut self, _: &Pod, _: NodeId) -> bool {
        self.note("PreBind")
    }
    fn bind(&mut self, _: &Pod, _: NodeId) -> bool {
        self.note("Bind")
    }
    fn post_bind(&mut self, _: &Pod, _: NodeId) {
        self.note("PostBind");
    }
}

fn points(witness: Witness) -> (Vec<&'static str>, Scheduled, u32) {
    let log = witness.log.clone();
    let mut framework = Framework::new(witness.clone()).with(witness, 1);
    let mut queue = Queue::default();
    framework.enqueue(&mut queue, pod(0, 0, 1, 1));
    framework.enqueue(&mut queue, pod(1, 0, 1, 1));
    let mut snapshot = nodes(1, 1);
    let first = framework.dequeue(&mut queue).unwrap();
    let scheduled = framework.schedule(&mut snapshot, &first);
    (log.lock().unwrap().clone(), scheduled, snapshot.nodes[0].free)
}

/// A plugin at each point is called, in the order of kube-scheduler.
#[test]
fn extension_points_in_order() {
    let (log, scheduled, free) = points(Witness::default());
    let bound = ["PreFilter", "Filter", "Score", "NormalizeScore", "Reserve", "Permit", "PreBind", "Bind", "PostBind"];
    assert_eq!((&log[..1], &log[1..]), (&["QueueSort"][..], &bound[..]));
    assert_eq!((scheduled, free), (Scheduled::Bound(NodeId(0)), 0));

    let (log, scheduled, _) = points(Witness { full: true, ..Witness::default() });
    assert_eq!(log[1..4], ["PreFilter", "Filter", "PostFilter"]);
    assert_eq!(log[4..], bound);
    assert_eq!(scheduled, Scheduled::Bound(NodeId(0)));

    for refuses in ["Permit", "PreBind"] {
        let (log, scheduled, free) = points(Witness { refuses: Some(refuses), ..Witness::default() });
        assert_eq!(log[log.len() - 2..], [refuses, "Unreserve"]);
        assert_eq!((scheduled, free), (Scheduled::Unschedulable, 1));
    }
    let (log, scheduled, free) = points(Witness { refuses: Some("Reserve"), ..Witness::default() });
    assert_eq!((log.last(), scheduled, free), (Some(&"Reserve"), Scheduled::Unschedulable, 1));
}

fn basic(nodes: Allocated) -> Framework {
    Framework::new(PrioritySort).with(ResourcesFit(nodes), 1).with(NodeAffinity, 2)
}

fn bound_jobs(framework: &mut Framework) -> BTreeMap<u32, u32> {
    let mut jobs = BTreeMap::new();
    for (pod, _) in framework.take_bound() {
        *jobs.entry(pod.job.0).or_default() += 1;
    }
    jobs
}

/// Two gangs of four on six accelerators, pod by pod in turn: without gangs both hold half and
/// neither can run; with them, exactly one runs.
#[test]
fn gangs_do_not_deadlock() {
    let turns = || (0..4).flat_map(|index| [pod(0, index, 4, 1), pod(1, index, 4, 1)]);
    let mut plain = basic(Allocated::Least);
    let mut snapshot = nodes(3, 2);
    for pod in turns() {
        plain.schedule(&mut snapshot, &pod);
    }
    assert_eq!(bound_jobs(&mut plain), BTreeMap::from([(0, 3), (1, 3)]), "both wait for ever");

    let mut eager = basic(Allocated::Least).with(Gang::new(SimTime::from_secs(60)), 0);
    let mut snapshot = nodes(3, 2);
    for job in [0, 1] {
        for index in 0..4 {
            if eager.schedule(&mut snapshot, &pod(job, index, 4, 1)) == Scheduled::Unschedulable {
                break;
            }
        }
    }
    assert_eq!(bound_jobs(&mut eager), BTreeMap::from([(0, 4)]));
    assert_eq!((eager.waiting().len(), snapshot.free_of(TypeId(0))), (0, 2), "nothing is held for the other");
}

/// Pods that hold their places wait; when their time is up all places are free again, and the next
/// to come gets them.
#[test]
fn permit_gives_back_when_the_time_is_up() {
    let mut framework = basic(Allocated::Least).with(Gang::patient(SimTime::from_secs(60)), 0);
    let mut snapshot = nodes(3, 2);
    for index in 0..3 {
        for job in [0, 1] {
            let scheduled = framework.schedule(&mut snapshot, &pod(job, index, 4, 1));
            assert!(matches!(scheduled, Scheduled::Waiting(_)));
        }
    }
    assert_eq!(framework.schedule(&mut snapshot, &pod(0, 3, 4, 1)), Scheduled::Unschedulable);
    assert_eq!((framework.waiting().len(), snapshot.free_of(TypeId(0))), (6, 0));
    snapshot.now = SimTime::from_secs(59);
    framework.expire(&mut snapshot);
    assert_eq!(framework.waiting().len(), 6);
    snapshot.now = SimTime::from_secs(60);
    framework.expire(&mut snapshot);
    assert_eq!((framework.waiting().len(), snapshot.free_of(TypeId(0))), (0, 6));
    assert!(framework.take_bound().is_empty(), "no part of a gang was ever seen");
    for index in 0..4 {
        framework.schedule(&mut snapshot, &pod(1, index, 4, 1));
    }
    assert_eq!(bound_jobs(&mut framework), BTreeMap::from([(1, 4)]));
}

#[test]
fn affinity_filters_hard_and_scores_soft() {
    let cluster = Cluster::parse("t4:2x4,a100:1x4").unwrap();
    let mut snapshot = Snapshot::new(&cluster, &[4, 4, 4], SimTime::ZERO);
    snapshot.nodes[1].labels.insert("disk".into(), "ssd".into());
    let mut framework = basic(Allocated::Least);
    let mut choosy = pod(0, 0, 1, 4);
    choosy.affinity.required = BTreeMap::from([("accelerator".into(), vec!["a100".into()])]);
    assert_eq!(framework.schedule(&mut snapshot, &choosy), Scheduled::Bound(NodeId(2)));
    choosy.id.job = JobId(1);
    assert_eq!(framework.schedule(&mut snapshot, &choosy), Scheduled::Unschedulable, "though other nodes are free");
    let mut prefers = pod(2, 0, 1, 1);
    prefers.affinity.preferred = vec![("disk".into(), "ssd".into(), 10)];
    assert_eq!(framework.schedule(&mut snapshot, &prefers), Scheduled::Bound(NodeId(1)));
    prefers.affinity.preferred[0].1 = "tape".into();
    assert_eq!(
        framework.schedule(&mut snapshot, &prefers),
        Scheduled::Bound(NodeId(0)),
        "no node has it, and it is a preference only"
    );
}

/// Four small pods on four nodes: with spreading no node is left whole for a wide pod.
#[test]
fn binpack_keeps_room_for_wide_pods() {
    let run = |nodes_first| {
        let mut framework = basic(nodes_first);
        let mut snapshot = nodes(4, 4);
        for job in 0..4 {
            framework.schedule(&mut snapshot, &pod(job, 0, 1, 1));
        }
        let whole = snapshot.nodes.iter().filter(|node| node.free == 4).count();
        (whole, framework.schedule(&mut snapshot, &pod(9, 0, 1, 4)) != Scheduled::Unschedulable)
    };
    assert_eq!(run(Allocated::Least), (0, false));
    assert_eq!(run(Allocated::Most), (3, true));
}

fn resident(job: u32, gpus: u32, priority: i32, since: i64) -> Resident {
    Resident { job: JobId(job), tenant: 0, gpus, priority, since: SimTime::from_secs(since) }
}

#[test]
fn preemption_hurts_as_little_as_it_can() {
    let mut snapshot = nodes(3, 4);
    snapshot.nodes[0].residents = vec![resident(10, 2, 5, 0), resident(11, 2, 1, 0)];
    snapshot.nodes[1].residents = vec![resident(12, 1, 1, 0), resident(13, 1, 1, 5), resident(14, 2, 9, 0)];
    snapshot.nodes[2].residents = vec![resident(15, 4, 2, 0)];
    snapshot.nodes.iter_mut().for_each(|node| node.free = 0);
    let framework = || basic(Allocated::Least).with(Preemption, 0);
    let evicted = |asking: Pod| {
        let (mut framework, mut snapshot) = (framework(), snapshot.clone());
        let scheduled = framework.schedule(&mut snapshot, &asking);
        (scheduled, framework.take_evicted().iter().map(|job| job.0).collect::<Vec<_>>())
    };
    assert_eq!(
        evicted(priority(pod(0, 0, 1, 2), 8)),
        (Scheduled::Bound(NodeId(0)), vec![11]),
        "one victim rather than two"
    );
    assert_eq!(
        evicted(priority(pod(0, 0, 1, 1), 8)),
        (Scheduled::Bound(NodeId(1)), vec![13]),
        "the one that started last"
    );
    assert_eq!(evicted(priority(pod(0, 0, 1, 4), 8)), (Scheduled::Bound(NodeId(2)), vec![15]));
    assert_eq!(evicted(priority(pod(0, 0, 1, 4), 2)), (Scheduled::Unschedulable, vec![]), "nobody of equal priority");
    let mut gang = basic(Allocated::Least).with(Preemption, 0).with(Gang::new(SimTime::ZERO), 0);
    let mut all = snapshot.clone();
    for index in 0..5 {
        gang.schedule(&mut all, &priority(pod(0, index, 5, 1), 8));
    }
    assert_eq!(bound_jobs(&mut gang), BTreeMap::from([(0, 5)]));
    assert_eq!(gang.take_evicted(), [JobId(13), JobId(15)], "those in between turned out not to be needed");
}

/// A card split between pods, a pod over two cards, and nothing held once they are released.
#[test]
fn shares_are_reserved_and_given_back() {
    let mut snapshot = nodes(2, 0);
    snapshot.nodes.iter_mut().for_each(|node| node.cards = vec![Card::new(16_000, 8); 2]);
    let mut framework = Framework::new(PrioritySort).with(Shares::new(Spread::Fullest), 1);
    let share = |job, compute_percent, memory_mib| Pod {
        share: Some(ShareRequest { compute_percent, memory_mib }),
        ..pod(job, 0, 1, 0)
    };
    assert_eq!(framework.schedule(&mut snapshot, &share(0, 50, 8000)), Scheduled::Bound(NodeId(0)));
    assert_eq!(framework.schedule(&mut snapshot, &share(1, 50, 8000)), Scheduled::Bound(NodeId(0)), "beside the first");
    assert_eq!(
        framework.schedule(&mut snapshot, &share(2, 150, 20_000)),
        Scheduled::Bound(NodeId(1)),
        "over two cards"
    );
    assert_eq!(framework.schedule(&mut snapshot, &share(3, 150, 1000)), Scheduled::Unschedulable);
    assert_eq!(framework.schedule(&mut snapshot, &share(4, 100, 16_000)), Scheduled::Bound(NodeId(0)), "the card left");
}
