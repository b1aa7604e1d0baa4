//! Choice of a node and of its cards.

use goodput_env::cluster::NodeId;
use goodput_env::model::sharing::{Grant, ShareRequest, Spread, place_on};
use goodput_env::placement::{CardShare, Placement};
use goodput_env::seed::{Stream, rng};
use goodput_env::view::JobView;
use rand_chacha::ChaCha8Rng;

use super::nodes::NodesOfCards;
use super::scores::KeptScores;
use super::typical::request_of;
use crate::placement::fractional::Fragmentation;
use crate::placement::fractional::strategy::{Strategy, by_name};

/// Rule by which nodes and cards are chosen.
pub enum CardChoice {
    /// The best score of a strategy.
    Scored {
        /// Name of the strategy in the list of strategies.
        name: &'static str,
        /// The strategy, for what is typical so far.
        strategy: Box<dyn Strategy>,
        /// Draws of strategies that draw.
        rng: Box<ChaCha8Rng>,
        /// Scores that were worked out.
        scores: KeptScores,
    },
    /// The fullest, or the emptiest.
    Filled(Spread),
}

impl CardChoice {
    /// By the listed strategy called `name`.
    pub fn scored(name: &'static str, seed: u64) -> Self {
        let strategy = named(name, &Fragmentation::new(Vec::new()));
        Self::Scored { name, strategy, rng: Box::new(rng(seed, Stream::Policy)), scores: KeptScores::default() }
    }

    /// By how full nodes and cards are.
    pub fn filled(spread: Spread) -> Self {
        Self::Filled(spread)
    }

    /// Tells the strategy what is typical from now on.
    pub fn set_typical(&mut self, typical: Fragmentation) {
        if let Self::Scored { name, strategy, scores, .. } = self {
            *strategy = named(name, &typical);
            *scores = KeptScores::default();
        }
    }

    /// Whole cards of one node, for a job that asks for no more than a node has.
    pub fn whole(&mut self, nodes: &mut NodesOfCards, job: &JobView<'_>) -> Option<Placement> {
        let request = request_of(job);
        let at = match self {
            Self::Scored { strategy, scores, .. } => scores.best_of(&**strategy, nodes, job, (request, None))?,
            Self::Filled(spread) => {
                let of = |at: usize| &nodes.nodes[at].node;
                let fits = |at: &usize| of(*at).fits(&request) && job.runs_on(of(*at).kind);
                by_fill(*spread, (0..nodes.nodes.len()).filter(fits), |at| fill(nodes, at, 100 * request.accelerators))?
            }
        };
        let placement = Placement::on(NodeId::at(at), request.accelerators);
        nodes.take_whole(&placement);
        Some(placement)
    }

    /// A share of cards of one node.
    pub fn share(&mut self, nodes: &mut NodesOfCards, job: &JobView<'_>, amount: ShareRequest) -> Option<Placement> {
        let (request, cards) = (request_of(job), job.request().gpus);
        let (at, taken) = match self {
            Self::Scored { strategy, rng, scores, .. } if cards == 1 => {
                let at = scores.best_of(&**strategy, nodes, job, (request, Some(amount)))?;
                let node = &nodes.nodes[at];
                let shown = node.without_unfit(&amount);
                let shown = shown.as_ref().unwrap_or(&node.node);
                let taken = strategy.take(shown, strategy.potential(shown), &request, rng);
                (at, vec![(*taken.first()?, amount)])
            }
            Self::Scored { .. } => filled(Spread::Fullest, nodes, job, &amount)?,
            Self::Filled(spread) => filled(*spread, nodes, job, &amount)?,
        };
        let node = NodeId::at(at);
        nodes.take_share(node, &taken);
        Some(Placement::shared(node, CardShare { cards: taken.iter().map(|(card, _)| *card).collect(), amount }))
    }
}

fn named(name: &str, typical: &Fragmentation) -> Box<dyn Strategy> {
    by_name(name, typical).expect("a listed strategy")
}

/// Percent of all cards of a node that is taken with so much more.
fn fill(nodes: &NodesOfCards, at: usize, more: u32) -> u64 {
    let cards = &nodes.nodes[at].cards;
    let taken: u64 = cards.iter().map(|card| u64::from(card.compute_percent)).sum();
    (taken + u64::from(more)) * 1_000 / cards.len().max(1) as u64
}

fn by_fill(spread: Spread, nodes: impl Iterator<Item = usize>, fill: impl Fn(usize) -> u64) -> Option<usize> {
    match spread {
        Spread::Fullest => nodes.max_by_key(|&at| (fill(at), std::cmp::Reverse(at))),
        Spread::Emptiest => nodes.min_by_key(|&at| (fill(at), at)),
    }
}

/// Node and parts by HAMi's rule: the fullest or emptiest node that holds the request, and of it such cards.
fn filled(
    spread: Spread,
    nodes: &NodesOfCards,
    job: &JobView<'_>,
    amount: &ShareRequest,
) -> Option<(usize, Vec<(u16, ShareRequest)>)> {
    let count = job.request().gpus;
    let grants = |at: usize| place_on(&nodes.nodes[at].cards, amount, spread, count);
    let fits = |at: &usize| job.runs_on(nodes.nodes[*at].node.kind) && grants(*at).is_some();
    let at = by_fill(spread, (0..nodes.nodes.len()).filter(fits), |at| fill(nodes, at, amount.compute_percent))?;
    let parts = grants(at)?.into_iter().map(|Grant { card, part }| (card as u16, part));
    Some((at, parts.collect()))
}
