//! State under construction, with the accelerators that are free in it.

use super::lanes::{self, Lanes, NodeSpan};
use super::objective::PolluxProblem;

/// Rows of all jobs and the quantities derived from them.
#[derive(Clone, Debug, Default)]
pub(super) struct StateDraft {
    pub rows: Vec<Lanes>,
    /// Term of each job.
    pub term: Vec<f64>,
    /// Replicas of each job. Most jobs of a long queue have none, and their rows are not looked at.
    pub held: Vec<u32>,
    /// Most replicas for one job, until accelerators are taken or given back.
    room: Option<(u32, u32)>,
    /// Free accelerators by node.
    free: Vec<u8>,
    /// Whether a distributed job is on the node; there is at most one.
    shared: Vec<bool>,
    row: Vec<Lanes>,
}

impl StateDraft {
    /// Starts from the present state. A job that breaks a rule there, such as the second
    /// distributed job on a node, loses its place.
    pub fn start(&mut self, problem: &mut PolluxProblem) {
        self.rows.clear();
        self.rows.resize(problem.current.len(), [0; 16]);
        self.free.clear();
        self.free.extend(problem.capacity.iter().flatten().take(problem.nodes));
        self.shared.clear();
        self.shared.resize(problem.nodes, false);
        self.term.clear();
        self.held.clear();
        self.held.resize(problem.jobs.len(), 0);
        self.room = None;
        for job in 0..problem.jobs.len() {
            self.term.push(problem.stopped(job)[0]);
            if problem.held(job) > 0 && self.can_stay(problem, job) {
                self.stay(problem, job);
            }
        }
    }

    /// Sum of terms: the smaller, the fitter.
    pub fn terms(&self) -> f64 {
        self.term.iter().sum()
    }

    pub fn row(&self, problem: &PolluxProblem, job: usize) -> &[Lanes] {
        &self.rows[job * problem.width..(job + 1) * problem.width]
    }

    /// Takes all accelerators from a job.
    pub fn remove(&mut self, problem: &mut PolluxProblem, job: usize) {
        self.term[job] = problem.stopped(job)[0];
        if std::mem::take(&mut self.held[job]) == 0 {
            return;
        }
        self.room = None;
        let row = &mut self.rows[job * problem.width..(job + 1) * problem.width];
        let distributed = lanes::is_distributed(row);
        for (node, replicas) in used(row) {
            self.free[node] += replicas;
            // There is one distributed job on a node at most, so if it was this one, none is left.
            self.shared[node] &= !distributed;
        }
        row.fill([0; 16]);
    }

    /// Gives a job without accelerators a row, which must fit and have replicas.
    pub fn put(&mut self, problem: &mut PolluxProblem, job: usize, row: &[Lanes]) {
        (self.held[job], self.room) = (lanes::sum(row), None);
        let distributed = lanes::is_distributed(row);
        for (node, replicas) in used(row) {
            self.free[node] -= replicas;
            self.shared[node] |= distributed;
        }
        self.rows[job * problem.width..(job + 1) * problem.width].copy_from_slice(row);
        self.term[job] = match lanes::same(row, problem.row(job)) {
            true => problem.kept(job)[0],
            false => problem.moved(job, lanes::span(row), self.held[job])[0],
        };
    }

    fn can_stay(&self, problem: &PolluxProblem, job: usize) -> bool {
        let row = problem.row(job);
        let distributed = lanes::is_distributed(row);
        used(row).all(|(node, replicas)| replicas <= self.free[node] && !(distributed && self.shared[node]))
            && problem.held(job) <= problem.jobs[job].max
    }

    fn stay(&mut self, problem: &mut PolluxProblem, job: usize) {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend_from_slice(problem.row(job));
        self.put(problem, job, &row);
        self.row = row;
    }

    /// Most replicas for one job: on one node, and on all nodes without a distributed job together.
    pub fn room(&mut self) -> (u32, u32) {
        let Self { room, free, shared, .. } = self;
        *room.get_or_insert_with(|| {
            let single = free.iter().copied().max().unwrap_or(0);
            let open = free.iter().zip(&*shared).filter(|(_, shared)| !**shared);
            (single.into(), open.map(|(&free, _)| u32::from(free)).sum())
        })
    }

    /// Whether there is room for `count` replicas, on one node if they are no more than a node has.
    pub fn fits(&mut self, problem: &PolluxProblem, count: u32) -> bool {
        let (single, distributed) = self.room();
        if count <= problem.largest_node() { count <= single } else { count <= distributed }
    }

    /// Node with the fewest replicas, at least one; nodes with a distributed job last, lower ids
    /// first.
    pub fn easiest_to_clear(&self, problem: &PolluxProblem) -> Option<usize> {
        let replicas = |node: usize| problem.capacity[node / 16][node % 16] - self.free[node];
        let occupied = (0..problem.nodes).filter(|&node| replicas(node) > 0);
        occupied.min_by_key(|&node| (self.shared[node], replicas(node)))
    }

    /// Gives a job without accelerators the best row of at most `most` replicas: its present one,
    /// one on a node, or one on several. The fewest replicas among equals.
    pub fn place(&mut self, problem: &mut PolluxProblem, job: usize, most: u32) {
        let (single, distributed) = self.room();
        let mut best = (self.term[job], 0);
        for replicas in problem.sizes(job).take_while(|&replicas| replicas <= most.min(single.max(distributed))) {
            let [term, _] = problem.moved(job, NodeSpan::packed(replicas, single), replicas);
            best = if term < best.0 { (term, replicas) } else { best };
        }
        let held = problem.held(job);
        if held > 0 && held <= most && problem.kept(job)[0] <= best.0 && self.can_stay(problem, job) {
            self.stay(problem, job);
        } else if best.1 > 0 {
            let mut row = std::mem::take(&mut self.row);
            self.find_nodes(problem, best.1, NodeSpan::packed(best.1, single), &mut row);
            self.put(problem, job, &row);
            self.row = row;
        }
    }

    /// Best fit on one node, or the emptiest nodes without a distributed job; lower ids first among
    /// equals.
    fn find_nodes(&self, problem: &PolluxProblem, replicas: u32, span: NodeSpan, row: &mut Vec<Lanes>) {
        row.clear();
        row.resize(problem.width, [0; 16]);
        if span == NodeSpan::OneNode {
            let fitting = (0..problem.nodes).filter(|&node| u32::from(self.free[node]) >= replicas);
            if let Some(node) = fitting.min_by_key(|&node| self.free[node]) {
                row[node / 16][node % 16] = replicas as u8;
            }
            return;
        }
        // The emptiest nodes first: a distributed job bars others of its kind from each of its nodes, so it is to take
        // few.
        let mut left = replicas;
        while left > 0 {
            let unused = (0..problem.nodes).filter(|&node| !self.shared[node] && row[node / 16][node % 16] == 0);
            let Some(node) = unused.max_by_key(|&node| (self.free[node], std::cmp::Reverse(node))) else { break };
            let here = left.min(self.free[node].into());
            row[node / 16][node % 16] = here as u8;
            left -= here;
        }
    }
}

/// Nodes with replicas, and how many. Most lanes of a large cluster's row are empty and are passed over whole.
fn used(row: &[Lanes]) -> impl Iterator<Item = (usize, u8)> {
    row.iter()
        .enumerate()
        .flat_map(|(at, lanes)| lanes::set_lanes(lanes::nonzero(*lanes)).map(move |lane| (16 * at + lane, lanes[lane])))
}
