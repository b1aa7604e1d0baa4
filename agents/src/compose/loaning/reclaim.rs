//! Choice of the lent servers to recall: the servers with the least preemption (cost of stopped
//! jobs) (Aryl, arXiv:2202.07896, section 4).
//!
//! A job that can go on without what it holds on a server gives just that up; it is scaled in, not
//! preempted. The *server preemption cost* is the sum over the jobs that a server's return would
//! preempt of 1 over the number of servers the job is on: preempting a job frees all of its
//! servers, so each bears a part. The cheapest server is taken, its jobs are gone, the costs of
//! their other servers fall, and so on. The abstract names the notion and the greedy rule; one over
//! the number of servers is our reading of it. It is a heuristic: finding the fewest preemptions is
//! a hitting set problem. Preemptions count alike unless they are given [`Prices`].

use goodput_env::cluster::NodeId;
use goodput_env::job::JobId;

/// One preempted job counts this much. Divisible by 1 to 16, so that costs of equal jobs compare
/// exactly.
const WHOLE: u64 = 720_720;

/// A job on servers that may have to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Job on the server.
    pub job: JobId,
    /// Accelerators by server, lent or not, each server once.
    pub servers: Vec<(NodeId, u32)>,
    /// Accelerators that it can do without: its flexible workers. 0 for a job that runs on all it
    /// holds or not at all.
    pub spare: u32,
    /// Prices of stopping this job.
    pub prices: Prices,
}

/// Prices of stopping a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Price of losing all its accelerators.
    preempted: u64,
    /// Price of losing only the workers on a server that the job can do without.
    scaled_in: u64,
}

impl Default for Prices {
    /// As published: one job as good as another, and only preemption counts.
    fn default() -> Self {
        Self { preempted: WHOLE, scaled_in: 0 }
    }
}

impl Prices {
    /// `times` as much as a usual job for preemption, and a part `scaling_in` of it for scaling in.
    pub fn relative(times: f64, scaling_in: f64) -> Self {
        let whole = |times: f64| (WHOLE as f64 * times).round() as u64;
        Self { preempted: whole(times), scaled_in: whole(times * scaling_in) }
    }
}

/// Recall: the servers that return, and its price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Servers in the order in which they were chosen.
    pub servers: Vec<NodeId>,
    /// Jobs that lose all they hold, in the order in which it happens. Other occupants lose what
    /// they hold on `servers`.
    pub preempted: Vec<JobId>,
}

/// Chooses `count` of the servers in `lent`, or all of them where there are fewer: the lowest
/// preemption cost first, then the fewest accelerators given up by scaling in, then the lowest id.
pub fn cheapest(lent: &[NodeId], occupants: &[Occupant], count: usize) -> Returned {
    let mut market = Market::new(lent, occupants);
    let mut returned = Returned::default();
    // Each return changes the costs of others, so the cheapest is looked for anew.
    while returned.servers.len() < count {
        let open = market.servers.iter().enumerate().filter(|(_, server)| !server.returned);
        let Some((at, _)) = open.min_by_key(|(_, server)| (server.cost, server.given_up, server.node)) else { break };
        returned.servers.push(market.servers[at].node);
        market.take_back(at, &mut returned.preempted);
    }
    returned
}

struct Market {
    servers: Vec<Server>,
    tenants: Vec<Tenant>,
}

struct Server {
    node: NodeId,
    tenants: Vec<usize>,
    returned: bool,
    cost: u64,
    /// Accelerators that jobs would give up here without being preempted.
    given_up: u32,
}

struct Tenant {
    job: JobId,
    /// Accelerators that the job still holds, lent or not.
    held: Vec<(NodeId, u32)>,
    spare: u32,
    prices: Prices,
}

impl Market {
    fn new(lent: &[NodeId], occupants: &[Occupant]) -> Self {
        let mut nodes = lent.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        let server = |node| Server { node, tenants: Vec::new(), returned: false, cost: 0, given_up: 0 };
        let mut servers: Vec<Server> = nodes.into_iter().map(server).collect();
        for (index, occupant) in occupants.iter().enumerate() {
            for (node, _) in &occupant.servers {
                if let Ok(at) = servers.binary_search_by_key(node, |server| server.node) {
                    servers[at].tenants.push(index);
                }
            }
        }
        let tenant =
            |of: &Occupant| Tenant { job: of.job, held: of.servers.clone(), spare: of.spare, prices: of.prices };
        let mut market = Self { servers, tenants: occupants.iter().map(tenant).collect() };
        (0..market.servers.len()).for_each(|at| market.price(at));
        market
    }

    fn price(&mut self, at: usize) {
        let node = self.servers[at].node;
        let (mut cost, mut given_up) = (0, 0);
        for &index in &self.servers[at].tenants {
            let tenant = &self.tenants[index];
            match tenant.on(node) {
                0 => {}
                here if here <= tenant.spare => {
                    given_up += here;
                    cost += tenant.prices.scaled_in;
                }
                _ => cost += tenant.prices.preempted / tenant.held.len() as u64,
            }
        }
        (self.servers[at].cost, self.servers[at].given_up) = (cost, given_up);
    }

    fn take_back(&mut self, at: usize, preempted: &mut Vec<JobId>) {
        self.servers[at].returned = true;
        let node = self.servers[at].node;
        for index in std::mem::take(&mut self.servers[at].tenants) {
            let tenant = &mut self.tenants[index];
            let here = tenant.on(node);
            // Prices of all servers of the job change, so they are noted before it lets go of them.
            let touched = tenant.held.clone();
            match here {
                0 => continue,
                _ if here <= tenant.spare => {
                    tenant.spare -= here;
                    tenant.held.retain(|(server, _)| *server != node);
                }
                _ => {
                    tenant.held.clear();
                    preempted.push(tenant.job);
                }
            }
            for (node, _) in touched {
                if let Ok(at) = self.servers.binary_search_by_key(&node, |server| server.node) {
                    self.price(at);
                }
            }
        }
    }
}

impl Tenant {
    fn on(&self, node: NodeId) -> u32 {
        self.held.iter().find(|(server, _)| *server == node).map_or(0, |(_, gpus)| *gpus)
    }
}
