//! Jobs that ask for a part of an accelerator, in the simulator.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::guard::Violation;
use goodput_env::job::{JobId, JobSpec, Workload};
use goodput_env::model::fault::Bugs;
use goodput_env::model::sharing::ShareRequest;
use goodput_env::model::{Checkpointing, FaultModel};
use goodput_env::placement::{CardShare, Placement};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Release, Rounds, Scenario, SimOptions};
use goodput_env::seed::{Stream, rng};
use goodput_env::sim::{SimError, Simulator, Status};
use goodput_env::tenant::{Group, ShareLimit, Tenants};
use goodput_env::time::SimTime;
use goodput_env::view::ClusterView;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::support::fixed;

fn amount(compute_percent: u32, memory_mib: u32) -> ShareRequest {
    ShareRequest { compute_percent, memory_mib }
}

fn sharing(name: &str, submit: i64, cards: u32, share: ShareRequest, secs: i64) -> JobSpec {
    let mut job = fixed(name, submit, cards, secs);
    job.request.share = Some(share);
    job
}

fn on(node: u32, cards: &[u16], amount: ShareRequest) -> Placement {
    Placement::shared(NodeId(node), CardShare { cards: cards.iter().copied().collect(), amount })
}

/// `cluster` of cards of 16 GiB; nothing costs anything.
fn run_of(cluster: &str, jobs: Vec<JobSpec>) -> Simulator {
    limited(cluster, jobs, Vec::new())
}

/// As [`run_of`] with tenants.
fn limited(cluster: &str, jobs: Vec<JobSpec>, tenants: Vec<Group>) -> Simulator {
    under(SimOptions::standard(), cluster, jobs, tenants)
}

/// As [`limited`] with other options.
fn under(options: SimOptions, cluster: &str, jobs: Vec<JobSpec>, tenants: Vec<Group>) -> Simulator {
    let mut cluster = Cluster::parse(cluster).unwrap();
    cluster.types.iter_mut().for_each(|kind| kind.memory_mib = Some(16_384));
    let switch_cost = goodput_env::model::SwitchCost::Constant { millis: 0 };
    let options = SimOptions { switch_cost, ..options };
    let tenants = Arc::new(Tenants::new(tenants, Vec::new(), Vec::new(), &["gpu"]).unwrap());
    let workload = Workload { tenants, ..Workload::new(Vec::new(), jobs) };
    Simulator::new(Arc::new(Scenario::new(Arc::new(cluster), Arc::new(workload), options, 0)))
}

fn refusal(run: &mut Simulator, plan: &Plan) -> Vec<Violation> {
    match run.apply(plan) {
        Err(SimError::Refused { violations, .. }) => violations,
        other => panic!("{other:?}"),
    }
}

#[test]
fn jobs_on_one_card_slow_one_another_by_the_model() {
    let half = amount(50, 8_000);
    let jobs = vec![sharing("one", 0, 1, half, 1_000), sharing("two", 0, 1, half, 500)];
    let mut run = run_of("1x1", jobs);
    assert_eq!(run.run_until_decision().unwrap(), Status::Decision);
    let mut plan = Plan::keep();
    plan.set(JobId(0), on(0, &[0], half));
    plan.set(JobId(1), on(0, &[0], half));
    run.apply(&plan).unwrap();
    assert_eq!(run.view().free_on(NodeId(0)), 0);
    assert_eq!(run.view().cards_on(NodeId(0))[0].card.compute_percent, 100);
    while run.run_until_decision().unwrap() == Status::Decision {
        run.apply(&Plan::keep()).unwrap();
    }
    // Beside a busy half, a tenth of a half of the speed is lost: the second job takes 500 / 0.95 s. Then the first one
    // goes on alone.
    let (one, two) = (run.records()[0], run.records()[1]);
    let beside = 500.0 / 0.95;
    assert!((two.finish.unwrap().as_secs_f64() - beside).abs() < 0.01, "{two:?}");
    assert!((one.finish.unwrap().as_secs_f64() - (beside + 500.0)).abs() < 0.01, "{one:?}");
    // A share counts by its compute, and the card once.
    let held = one.finish.unwrap().as_millis() / 2;
    assert!((one.attained_gpu_millis - held).abs() <= 1, "{one:?}");
    assert_eq!(run.gpu_millis(), one.finish.unwrap().as_millis());
    let training: i64 = run.training_by_node().iter().map(|row| row.gpu_millis).sum();
    assert_eq!(training, run.gpu_millis());
}

#[test]
fn whole_cards_and_shares_do_not_overlap() {
    let share = amount(30, 4_000);
    let jobs = vec![sharing("share", 0, 1, share, 100), fixed("whole", 0, 2, 100), fixed("one", 0, 1, 100)];
    let mut run = run_of("1x2", jobs);
    run.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), on(0, &[1], share));
    plan.set(JobId(1), Placement::on(NodeId(0), 2));
    assert_eq!(refusal(&mut run, &plan), [Violation::Capacity { node: NodeId(0), missing: 1 }]);
    let mut plan = Plan::keep();
    plan.set(JobId(0), on(0, &[1], share));
    plan.set(JobId(2), Placement::on(NodeId(0), 1));
    run.apply(&plan).unwrap();
    assert_eq!(run.view().free_on(NodeId(0)), 0);
    // When the share is given up, the card is whole again.
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::none());
    run.apply(&plan).unwrap();
    assert_eq!(run.view().free_on(NodeId(0)), 1);
    assert!(run.view().cards_on(NodeId(0)).is_empty());
}

#[test]
fn the_guard_says_why_a_share_is_refused() {
    let (share, wide) = (amount(60, 9_000), amount(150, 20_000));
    let jobs = vec![
        sharing("a", 0, 1, share, 100),
        sharing("b", 0, 1, share, 100),
        fixed("whole", 0, 1, 100),
        sharing("wide", 0, 2, wide, 100),
    ];
    let mut run = run_of("1x4", jobs);
    run.run_until_decision().unwrap();
    let cases: [(Vec<(u32, Placement)>, &str); 6] = [
        (vec![(0, on(0, &[0], share)), (1, on(0, &[0], share))], "card 0: not enough memory is left"),
        (vec![(0, on(0, &[4], share))], "there is no card 4"),
        (vec![(0, on(0, &[0], amount(10, 9_000)))], "it asks for 60 % and 9000 MiB"),
        (vec![(2, on(0, &[0], share))], "it asks for whole accelerators"),
        (vec![(3, on(0, &[1, 1], wide))], "card 1 is named twice"),
        (vec![(0, on(1, &[0], share))], "there is no such node"),
    ];
    for (changes, expected) in cases {
        let mut plan = Plan::keep();
        changes.into_iter().for_each(|(job, placement)| plan.set(JobId(job), placement));
        let said: Vec<String> = refusal(&mut run, &plan).iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.contains(expected)), "{expected}: {said:?}");
    }
    let mut plan = Plan::keep();
    plan.set(JobId(3), on(0, &[1, 2], wide));
    // A job that asks for a share may have a whole accelerator.
    plan.set(JobId(0), Placement::on(NodeId(0), 1));
    run.apply(&plan).unwrap();
    assert_eq!(run.view().cards_on(NodeId(0)).iter().map(|card| card.card.compute_percent).sum::<u32>(), 150);
    assert_eq!(run.view().free_on(NodeId(0)), 1);
}

fn tenant(name: &str, compute_percent: u64, memory_mib: u64) -> Group {
    let share_limit = ShareLimit { compute_percent: Some(compute_percent), memory_mib: Some(memory_mib) };
    Group { share_limit, ..Group::named(name) }
}

#[test]
fn a_tenant_holds_its_limit_and_not_one_percent_or_one_mib_more() {
    let jobs = || vec![sharing("a", 0, 1, amount(60, 4_000), 100), sharing("b", 0, 1, amount(41, 4_001), 100)];
    let mut plan = Plan::keep();
    plan.set(JobId(0), on(0, &[0], amount(60, 4_000)));
    plan.set(JobId(1), on(0, &[1], amount(41, 4_001)));
    let apply = |compute, memory| {
        let mut run = limited("1x2", jobs(), vec![tenant("t", compute, memory)]);
        run.run_until_decision().unwrap();
        match run.apply(&plan) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(apply(101, 8_001), "");
    assert!(apply(100, 8_001).contains("tenant 0 would hold 101 % of an accelerator, and its limit is 100"));
    assert!(apply(101, 8_000).contains("tenant 0 would hold 8001 MiB, and its limit is 8000"));
    // Whole cards count with all of their compute and memory.
    let mut run = limited("1x2", vec![fixed("whole", 0, 2, 100)], vec![tenant("t", 199, 40_000)]);
    run.run_until_decision().unwrap();
    let mut plan = Plan::keep();
    plan.set(JobId(0), Placement::on(NodeId(0), 2));
    assert_eq!(
        refusal(&mut run, &plan),
        [Violation::ShareLimit { tenant: 0, of: "% of an accelerator", held: 200, limit: 199 }]
    );
}

/// A policy that puts jobs on random cards that have room, moves some and stops some.
struct Restless {
    rng: ChaCha8Rng,
    placed: u64,
    /// Times a limit of a tenant kept a job off a card that had room.
    limited: u64,
}

impl Policy for Restless {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut cards = BTreeMap::new();
        let mut held: Vec<[u64; 2]> = (0..view.tenants().len() as u32).map(|tenant| view.held_by(tenant)).collect();
        let mut whole: Vec<u32> = view.free().to_vec();
        for (node, machine) in view.cluster().node_ids().zip(&view.cluster().nodes) {
            for number in 0..machine.gpus as u16 {
                let shared = view.cards_on(node).iter().find(|card| card.number == number);
                cards.insert((node, number), shared.map_or(view.blank_card(node), |card| card.card));
            }
        }
        for job in view.jobs() {
            let Some(asked) = job.request().share else { continue };
            if job.state.is_allocated() {
                if self.rng.random_range(0..20) == 0 {
                    plan.set(job.id(), Placement::none());
                }
                continue;
            }
            let node = NodeId(self.rng.random_range(0..view.cluster().nodes.len() as u32));
            let number = self.rng.random_range(0..8);
            let Some(card) = cards.get_mut(&(node, number)) else { continue };
            let opens = card.jobs == 0;
            if card.fit(&asked).is_ok() && (!opens || whole[node.index()] > 0) {
                let tenant = job.request().tenant as usize;
                let limit = view.tenants().get(tenant as u32).unwrap().share_limit.amounts();
                let more =
                    [held[tenant][0] + u64::from(asked.compute_percent), held[tenant][1] + u64::from(asked.memory_mib)];
                if more[0] > limit[0] || more[1] > limit[1] {
                    self.limited += 1;
                    continue;
                }
                held[tenant] = more;
                whole[node.index()] -= u32::from(opens);
                card.take(&asked);
                plan.set(job.id(), on(node.0, &[number], asked));
                self.placed += 1;
            }
        }
        plan
    }
}

#[test]
fn a_hundred_thousand_random_requests_leave_nothing_behind() {
    let mut random = rng(7, Stream::Workload);
    let mut now = 0;
    let jobs = (0..100_000).map(|index| {
        now += random.random_range(0..20);
        let share = amount(random.random_range(1..=100), random.random_range(1..=16_384));
        let mut job = sharing(&format!("job-{index}"), now, 1, share, random.random_range(1..400));
        job.request.tenant = random.random_range(0..2);
        job
    });
    let tenants = vec![tenant("a", 801, 140_003), tenant("b", 1_200, 130_001)];
    let limits: Vec<[u64; 2]> = tenants.iter().map(|tenant| tenant.share_limit.amounts()).collect();
    let mut run = limited("8x8", jobs.collect(), tenants);
    let mut policy = Restless { rng: rng(8, Stream::Policy), placed: 0, limited: 0 };
    while run.run_until_decision().unwrap() == Status::Decision {
        let plan = policy.decide(&run.view());
        run.apply(&plan).unwrap();
        let mut held = [[0_u64; 2]; 2];
        for node in run.view().cluster().node_ids() {
            for (job, part) in run.view().cards_on(node).iter().flat_map(|card| &card.jobs) {
                let of = &mut held[run.view().job(*job).unwrap().request().tenant as usize];
                *of = [of[0] + u64::from(part.compute_percent), of[1] + u64::from(part.memory_mib)];
            }
        }
        // What tenants hold is what lies on the cards, and within their limits.
        for (tenant, (held, limit)) in held.iter().zip(&limits).enumerate() {
            assert_eq!(*held, run.view().held_by(tenant as u32));
            assert!(held[0] <= limit[0] && held[1] <= limit[1], "{held:?} {limit:?}");
        }
        for node in run.view().cluster().node_ids() {
            let shared = run.view().cards_on(node);
            for card in shared {
                // Books in whole numbers: the parts add up to what the card says, and to no more than there is.
                let sum = |of: fn(&ShareRequest) -> u32| card.jobs.iter().map(|(_, part)| of(part)).sum::<u32>();
                assert_eq!(sum(|part| part.compute_percent), card.card.compute_percent);
                assert_eq!(sum(|part| part.memory_mib), card.card.memory_mib);
                assert!(card.card.compute_percent <= 100 && card.card.memory_mib <= 16_384);
            }
            assert_eq!(run.view().free_on(node) + shared.len() as u32, 8);
        }
    }
    assert!(policy.placed >= 100_000 && policy.limited > 1_000, "{} {}", policy.placed, policy.limited);
    let outcome = run.clone().outcome();
    assert_eq!(outcome.shared.over_committed, 0);
    assert!(outcome.shared.most_jobs > 3 && outcome.shared.joint_card_millis > 0, "{:?}", outcome.shared);
    assert!(run.view().cluster().node_ids().all(|node| run.view().cards_on(node).is_empty()));
    assert_eq!(run.view().total_free(), 64);
    let end = SimTime::from_secs(now);
    assert!(run.records().iter().all(|job| job.finish.is_some()) && run.now() > end);
}

/// Accelerators and nodes break, jobs fail by themselves, and completed jobs keep their parts until the next round.
#[test]
fn books_balance_while_shared_cards_break() {
    for seed in 0..20 {
        let mut random = rng(seed, Stream::Workload);
        let jobs = (0..1_000).map(|index| {
            let share = amount(random.random_range(1..=60), random.random_range(1..=4_096));
            sharing(&format!("job-{index}"), 20 * index, 1, share, random.random_range(1..2_000))
        });
        let bugs = Bugs { share: 0.3, retries: 1, ..Bugs::default() };
        let options = SimOptions {
            rounds: Rounds { period: Some(SimTime::from_secs(60)), on_churn: seed % 2 == 0 },
            release: if seed % 4 < 2 { Release::NextRound } else { Release::Immediately },
            faults: Some(FaultModel { mtbf_hours: 0.5, bugs: Some(bugs), ..FaultModel::default() }),
            checkpoint: (seed % 3 == 0).then(Checkpointing::default),
            ..SimOptions::standard()
        };
        let mut run = under(options, "4x8", jobs.collect(), vec![tenant("all", 10_000, 10_000_000)]);
        let mut policy = Restless { rng: rng(seed, Stream::Policy), placed: 0, limited: 0 };
        while run.run_until_decision().unwrap() == Status::Decision {
            let plan = policy.decide(&run.view());
            run.apply(&plan).unwrap();
            let view = run.view();
            for (node, machine) in view.cluster().node_ids().zip(&view.cluster().nodes) {
                // No job asks for whole accelerators, so what is not shared is free.
                assert_eq!(view.free_on(node) + view.cards_on(node).len() as u32, machine.gpus, "seed {seed}");
                let active = |(job, _): &(JobId, ShareRequest)| {
                    view.job(*job).is_none_or(|job| job.state.placement.share().is_some())
                };
                assert!(view.cards_on(node).iter().all(|card| card.jobs.iter().all(active)), "seed {seed}");
            }
        }
        let outcome = run.clone().outcome();
        assert_eq!(outcome.shared.over_committed, 0);
        assert!(outcome.hardware.accelerators > 0 && outcome.shared.most_jobs > 2, "{:?}", outcome.hardware);
        assert!(run.view().cluster().node_ids().all(|node| run.view().cards_on(node).is_empty()));
    }
}
