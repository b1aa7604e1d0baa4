//! Placement of whole and fractional accelerators: worked examples, and the incremental placer
//! against one without state.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::placement::fractional::strategy::{Fgd, Gradient, STRATEGIES, by_name};
use goodput_agents::placement::fractional::{
    Fragmentation, Kinds, Node, Placed, Placer, Request, RequestError, Strategy, TieBreak, Typical,
};
use goodput_env::cluster::TypeId;
use goodput_env::seed::{Stream, rng};
use proptest::prelude::*;
use rand::RngExt;

fn request(cpu_milli: u32, accelerators: u32, milli: u32) -> Request {
    Request { cpu_milli, memory_mib: 1, accelerators, milli, kinds: Kinds::ANY }.checked().unwrap()
}

/// A node with these thousandths idle.
fn node(idle: &[u16]) -> Node {
    let mut node = Node::idle(TypeId(0), 10_000, 1_000, idle.len() as u32);
    node.idle.copy_from_slice(idle);
    node
}

fn typical(requests: &[(Request, u32)]) -> Fragmentation {
    Fragmentation::new(requests.iter().map(|&(request, count)| Typical { request: request.shape(), count }).collect())
}

fn score(strategy: &dyn Strategy, node: &Node, request: &Request) -> i32 {
    strategy.score(node, strategy.potential(node), request)
}

#[test]
fn fragmentation_of_one_typical_request() {
    let half = typical(&[(request(1_000, 1, 500), 1)]);
    assert_eq!(half.of(&node(&[400, 1000])), 400, "the first accelerator is too small");
    assert_eq!(half.of(&node(&[400, 400])), 800, "it does not run here: all is lost");
    let mut busy = node(&[1000]);
    busy.cpu_milli = 999;
    assert_eq!(half.of(&busy), 1000, "no cores");
    let other_type = Request { kinds: Kinds::ANY.with(TypeId(3)), ..request(1_000, 1, 500) };
    assert_eq!(typical(&[(other_type, 1)]).of(&node(&[1000])), 1000, "another type");
    assert_eq!(typical(&[(request(1_000, 0, 0), 1)]).of(&node(&[1000, 200])), 1200, "needs none: all is lost");
    let two = typical(&[(request(1_000, 1, 500), 3), (request(1_000, 2, 1000), 1)]);
    assert_eq!(two.of(&node(&[400, 1000])), 3 * 400 + 1400);
    assert_eq!((two.weight(), two.of(&node(&[0, 0]))), (4, 0));
}

#[test]
fn fgd_scores_and_picks_as_worked_in_the_docs() {
    let half = typical(&[(request(1_000, 1, 500), 7)]);
    let fgd = Fgd::new(half.clone(), Gradient::Percent);
    let here = node(&[400, 1000]);
    assert_eq!(score(&fgd, &here, &request(0, 1, 300)), 57);
    assert_eq!(score(&fgd, &here, &request(0, 1, 600)), 40);
    assert_eq!(score(&fgd, &here, &request(0, 0, 0)), 50, "nothing changes");
    let mut draw = rng(0, Stream::Policy);
    assert_eq!(fgd.share(&here, fgd.potential(&here), &request(0, 1, 300), &mut draw), Some(0));
    assert_eq!(fgd.share(&here, fgd.potential(&here), &request(0, 1, 600), &mut draw), Some(1));
    assert_eq!(score(&Fgd::new(half, Gradient::Exact), &here, &request(0, 1, 300)), 300 * 7);
}

#[test]
fn baselines_score_as_worked() {
    let scored =
        |name: &str, node: &Node, request: &Request| score(&*by_name(name, &typical(&[])).unwrap(), node, request);
    let (used, idle) = (node(&[300, 1000, 1000, 1000]), node(&[1000; 4]));
    assert_eq!(
        (scored("gpu-packing", &used, &request(0, 1, 200)), scored("gpu-packing", &idle, &request(0, 1, 200))),
        (97, 29)
    );
    assert_eq!(
        (scored("gpu-packing", &used, &request(0, 2, 1000)), scored("gpu-packing", &idle, &request(0, 2, 1000))),
        (48, 29)
    );
    assert_eq!(scored("gpu-packing", &used, &request(0, 1, 400)), 49, "the used one is too small");
    assert_eq!(scored("gpu-packing", &idle, &request(1, 0, 0)), 0);
    // 8,000 of 128,000 cores and 3,100 of 8,000 thousandths left: 6.25 % and 38.75 %, mean 22.5.
    assert_eq!(scored("best-fit", &used, &request(2_000, 1, 200)), 77);
    // 10/128 x 2/128 and 3.3/8 x 0.2/8: 0.00122 and 0.0103, mean 0.58 %.
    assert_eq!(scored("dot-product", &used, &request(2_000, 1, 200)), 99);
    assert_eq!(scored("gpu-clustering", &idle, &request(0, 1, 200)), 25 + 12);
    let mut shared = node(&[1000; 4]);
    shared.take(&request(0, 1, 700), &[0]);
    assert_eq!(scored("gpu-clustering", &shared, &request(0, 1, 200)), 75 + 14);
    assert_eq!(scored("gpu-clustering", &shared, &request(0, 1, 1000)), 14, "other work");
    shared.take(&request(0, 1, 1000), &[1]);
    assert_eq!(scored("gpu-clustering", &shared, &request(0, 1, 1000)), 50 + 17);
    assert!(scored("packed", &shared, &request(0, 1, 1)) > scored("packed", &idle, &request(0, 1, 1)));
    assert!(scored("spread", &shared, &request(0, 1, 1)) < scored("spread", &idle, &request(0, 1, 1)));
}

#[test]
fn contradictory_requests_are_refused() {
    let made = |accelerators, milli| Request { accelerators, milli, ..request(1, 1, 1) }.checked();
    assert!(made(0, 0).is_ok() && made(1, 1).is_ok() && made(1, 1000).is_ok() && made(8, 1000).is_ok());
    assert_eq!(made(2, 500), Err(RequestError::SharedSeveral { accelerators: 2, milli: 500 }));
    for (accelerators, milli) in [(0, 5), (1, 0), (1, 1001), (2, 0), (2, 1001), (0, 1000)] {
        assert_eq!(made(accelerators, milli), Err(RequestError::Milli { accelerators, milli }));
    }
}

#[test]
fn typical_requests_are_the_most_frequent() {
    let [often, seldom, rare] = [request(1, 1, 100), request(2, 1, 200), request(3, 1, 300)];
    let all: Vec<Request> = [(often, 90), (seldom, 6), (rare, 4)].iter().flat_map(|&(r, n)| vec![r; n]).collect();
    let found = Fragmentation::of_requests(&all, 95);
    assert_eq!(found.typical().iter().map(|typical| typical.count).collect::<Vec<_>>(), [90, 6]);
    assert_eq!(found.typical()[0].request, often.shape(), "memory does not tell requests apart");
    assert_eq!(Fragmentation::of_requests(&all, 90).typical().len(), 1);
    assert_eq!(Fragmentation::of_requests(&all, 100).typical().len(), 3);
}

#[test]
fn a_fixed_order_is_kept_and_drawn_by_the_seed() {
    let placed = |ties, seed| -> Vec<u32> {
        let strategy = by_name("packed", &typical(&[])).unwrap();
        let mut placer = Placer::new(vec![node(&[1000]); 20], strategy, ties, seed);
        (0..20).map(|_| placer.place(&request(0, 1, 1000)).unwrap().node).collect()
    };
    assert!(placed(TieBreak::LowestIndex, 1).is_sorted());
    let fixed = placed(TieBreak::FixedRandom, 1);
    assert_eq!(fixed, placed(TieBreak::FixedRandom, 1));
    assert_ne!(fixed, placed(TieBreak::FixedRandom, 2));
    assert!(!fixed.is_sorted());
    let mut drawn = placed(TieBreak::Random, 1);
    drawn.sort_unstable();
    assert!(drawn.into_iter().eq(0..20), "each node once");
}

/// First best node, with all scores computed anew.
fn forgetful(nodes: &mut [Node], strategy: &dyn Strategy, request: &Request) -> Option<Placed> {
    let mut best: Option<(i32, usize)> = None;
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.fits(request) && node.has_memory(request)) {
        let found = score(strategy, node, request);
        if best.is_none_or(|(score, _)| found > score) {
            best = Some((found, at));
        }
    }
    let at = best?.1;
    let accelerators = strategy.take(&nodes[at], strategy.potential(&nodes[at]), request, &mut rng(0, Stream::Policy));
    nodes[at].take(request, &accelerators);
    Some(Placed { node: at as u32, accelerators })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// State kept between requests does not change a decision, whatever jobs come and go.
    #[test]
    fn the_placer_forgets_nothing_it_needs(seed in any::<u64>()) {
        let mut draw = rng(seed, Stream::Workload);
        let shapes: Vec<Request> = (0..12).map(|_| {
            let shared = draw.random_range(0..3);
            let (accelerators, milli) = match shared {
                0 => (0, 0),
                1 => (1, draw.random_range(1..10) * 100),
                _ => (draw.random_range(1..5), 1000),
            };
            let kinds = if draw.random_range(0..3) == 0 { Kinds::ANY.with(TypeId(draw.random_range(0..2))) } else { Kinds::ANY };
            Request { cpu_milli: draw.random_range(0..3_000), memory_mib: draw.random_range(0..200), accelerators, milli, kinds }
        }).collect();
        let nodes: Vec<Node> = (0..draw.random_range(1..12_u16))
            .map(|at| Node::idle(TypeId(at % 2), 8_000, 500, draw.random_range(0..5)))
            .collect();
        let events: Vec<(usize, bool)> = (0..80).map(|_| (draw.random_range(0..100), draw.random_range(0..4) == 0)).collect();
        let typical = Fragmentation::of_requests(&shapes, 95);
        for listed in STRATEGIES.iter().filter(|listed| listed.name != "random") {
            let strategy = by_name(listed.name, &typical).unwrap();
            let mut placer = Placer::new(nodes.clone(), by_name(listed.name, &typical).unwrap(), TieBreak::LowestIndex, 0);
            let (mut plain, mut running) = (nodes.clone(), Vec::new());
            for &(number, leaves) in &events {
                if leaves && !running.is_empty() {
                    let (request, placed): (Request, Placed) = running.swap_remove(number % running.len());
                    placer.release(&request, &placed);
                    plain[placed.node as usize].give_back(&request, &placed.accelerators);
                    continue;
                }
                let request = shapes[number % shapes.len()];
                let found = placer.place(&request);
                prop_assert_eq!(&found, &forgetful(&mut plain, &*strategy, &request), "{}", listed.name);
                running.extend(found.map(|placed| (request, placed)));
            }
            prop_assert!(placer.nodes().eq(plain.iter()), "{}", listed.name);
        }
    }
}
