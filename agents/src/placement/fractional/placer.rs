//! Places requests one after the other, scoring again only what changed.
//!
//! Two things repeat in a trace: requests (the openb trace has 91 shapes among 8,152) and nodes
//! (549 of its 1,213 are one model). So the placer keeps the score of every node for every shape
//! seen, and for each shape where it stopped reading the log of changes. Before a shape is placed
//! again only nodes in the log since then are scored; and a score is computed once for all nodes
//! that look the same.

use std::collections::BTreeMap;

use goodput_env::seed::{self, Stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Node, Request, Strategy, TakenAccelerators, TieBreak};

/// Score of a node that the request does not fit.
const NOWHERE: i32 = i32::MIN;

/// Place of a request: node and accelerators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the node in the list given.
    pub node: u32,
    /// Accelerators of it, by index.
    pub accelerators: TakenAccelerators,
}

/// Nodes, a strategy, and the scores kept. Inside, nodes are in the order that breaks ties, so the
/// first best one wins.
pub struct Placer {
    strategy: Box<dyn Strategy>,
    draws: bool,
    rng: ChaCha8Rng,
    nodes: Vec<Node>,
    memory: Vec<u32>,
    /// Index in the caller's list of each node, and back.
    original: Vec<u32>,
    place_of: Vec<u32>,
    /// Look of each node.
    look: Vec<u32>,
    looks: NodePotentials,
    /// Nodes in the order they changed, and the length of the log just after the last change of
    /// each.
    changes: Vec<u32>,
    last_change: Vec<usize>,
    shapes: BTreeMap<Request, u32>,
    scores: Vec<Scores>,
}

/// The different ways nodes look, each with its potential.
#[derive(Default)]
struct NodePotentials {
    ids: BTreeMap<Node, u32>,
    potentials: Vec<i32>,
}

/// Cached scores for one shape of request.
struct Scores {
    by_node: Vec<i32>,
    /// By look; `None` where not asked yet.
    by_look: Vec<Option<i32>>,
    /// Changes read so far.
    read: usize,
}

impl Placer {
    /// Over these nodes; the seed is for ties and strategies that draw.
    pub fn new(nodes: Vec<Node>, strategy: Box<dyn Strategy>, ties: TieBreak, seed: u64) -> Self {
        let mut rng = seed::rng(seed, Stream::Policy);
        let mut original: Vec<u32> = (0..nodes.len() as u32).collect();
        if ties == TieBreak::FixedRandom {
            original.shuffle(&mut rng);
        }
        let mut place_of = vec![0; nodes.len()];
        for (place, &node) in original.iter().enumerate() {
            place_of[node as usize] = place as u32;
        }
        let nodes: Vec<Node> = original.iter().map(|&node| nodes[node as usize].clone()).collect();
        let mut looks = NodePotentials::default();
        Self {
            draws: ties == TieBreak::Random || strategy.draws(),
            rng,
            memory: nodes.iter().map(|node| node.memory_mib).collect(),
            look: nodes.iter().map(|node| looks.id(node, &*strategy)).collect(),
            last_change: vec![0; nodes.len()],
            looks,
            strategy,
            nodes,
            original,
            place_of,
            changes: Vec::new(),
            shapes: BTreeMap::new(),
            scores: Vec::new(),
        }
    }

    /// Puts a request on the best node that fits; `None`, and nothing changes, where none does.
    pub fn place(&mut self, request: &Request) -> Option<Placed> {
        let shape = self.shape(request);
        self.catch_up(shape, &request.shape());
        let place = self.best(shape, request)?;
        let at = place as usize;
        let potential = self.looks.potentials[self.look[at] as usize];
        let accelerators = self.strategy.take(&self.nodes[at], potential, request, &mut self.rng);
        self.nodes[at].take(request, &accelerators);
        self.changed(place);
        Some(Placed { node: self.original[at], accelerators })
    }

    /// Takes back what [`Self::place`] gave for this request.
    pub fn release(&mut self, request: &Request, placed: &Placed) {
        let place = self.place_of[placed.node as usize];
        self.nodes[place as usize].give_back(request, &placed.accelerators);
        self.changed(place);
    }

    /// The nodes as they are now, in the caller's order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.place_of.iter().map(|&place| &self.nodes[place as usize])
    }

    /// Nodes that look different now or looked so before.
    pub fn looks(&self) -> usize {
        self.looks.potentials.len()
    }

    fn changed(&mut self, place: u32) {
        let at = place as usize;
        self.memory[at] = self.nodes[at].memory_mib;
        self.look[at] = self.looks.id(&self.nodes[at], &*self.strategy);
        self.changes.push(place);
        self.last_change[at] = self.changes.len();
    }

    fn shape(&mut self, request: &Request) -> usize {
        let next = self.scores.len() as u32;
        let shape = *self.shapes.entry(request.shape()).or_insert(next);
        if shape == next {
            self.scores.push(Scores { by_node: Vec::new(), by_look: Vec::new(), read: 0 });
        }
        shape as usize
    }

    /// Scores again, for one shape, the nodes that changed since it was last asked.
    fn catch_up(&mut self, shape: usize, request: &Request) {
        let Self { strategy, nodes, look, looks, changes, last_change, scores, .. } = self;
        let Scores { by_node, by_look, read } = &mut scores[shape];
        by_look.resize(looks.potentials.len(), None);
        let mut score = |at: usize| {
            let look = look[at] as usize;
            *by_look[look].get_or_insert_with(|| match nodes[at].fits(request) {
                true => strategy.score(&nodes[at], looks.potentials[look], request),
                false => NOWHERE,
            })
        };
        if by_node.is_empty() {
            by_node.extend((0..nodes.len()).map(score));
        // A log longer than the cluster costs more to read than each node's last change.
        } else if changes.len() - *read > nodes.len() {
            for (at, found) in by_node.iter_mut().enumerate().filter(|(at, _)| last_change[*at] > *read) {
                *found = score(at);
            }
        } else {
            for (at, &place) in changes.iter().enumerate().skip(*read) {
                // A node that changed several times is scored once, at its last change.
                if last_change[place as usize] == at + 1 {
                    by_node[place as usize] = score(place as usize);
                }
            }
        }
        *read = changes.len();
    }

    /// The first best node with enough memory, or one of the best drawn evenly.
    fn best(&mut self, shape: usize, request: &Request) -> Option<u32> {
        let candidates = || self.scores[shape].by_node.iter().zip(&self.memory).enumerate();
        let fitting = |score: i32, memory: u32| if memory >= request.memory_mib { score } else { NOWHERE };
        let (mut best, mut place, mut equal) = (NOWHERE, 0, 0_u32);
        for (at, (&score, &memory)) in candidates() {
            let score = fitting(score, memory);
            if score > best {
                (best, place, equal) = (score, at as u32, 1);
            } else {
                equal += u32::from(score == best);
            }
        }
        if best == NOWHERE {
            return None;
        }
        if self.draws {
            let drawn = self.rng.random_range(0..equal) as usize;
            let tied = candidates().filter(|&(_, (&score, &memory))| fitting(score, memory) == best);
            place = tied.map(|(at, _)| at as u32).nth(drawn).expect("as many as were counted");
        }
        Some(place)
    }
}

impl NodePotentials {
    fn id(&mut self, node: &Node, strategy: &dyn Strategy) -> u32 {
        let next = self.potentials.len() as u32;
        let id = *self.ids.entry(node.key()).or_insert(next);
        if id == next {
            self.potentials.push(strategy.potential(node));
        }
        id
    }
}
