//! Convex program over shares of time: the constraints that all of Gavel's objectives have in
//! common, and the solver.
//!
//! The solver is an interior-point method, and not only for speed. Where many allocations are
//! optimal it ends in the middle of them, not at a corner: equal jobs get equal shares, which a
//! simplex method would not give.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SecondOrderConeT, SolverStatus, SupportedConeT,
};

use super::instance::{GavelInstance, TimeShares};

/// Weighted sum of columns: column and coefficient.
pub type ColumnTerms = Vec<(usize, f64)>;

/// Program that minimises a sum of columns under linear and hyperbolic constraints, over the shares
/// of an instance and further columns.
#[derive(Clone, Debug)]
pub struct ShareProgram<'a> {
    instance: &'a GavelInstance,
    /// Column of each share, by row and type; `None` where the row cannot run.
    shares: Vec<Option<usize>>,
    cost: Vec<f64>,
    at_most: Vec<(ColumnTerms, f64)>,
    hyperbolas: Vec<(usize, ColumnTerms)>,
}

impl<'a> ShareProgram<'a> {
    /// The shares of `instance`: none below 0, no job above 1 over all types, no type used beyond
    /// its accelerators.
    pub fn new(instance: &'a GavelInstance) -> Self {
        let mut program =
            Self { instance, shares: Vec::new(), cost: Vec::new(), at_most: Vec::new(), hyperbolas: Vec::new() };
        let kinds = instance.kinds();
        let mut capacity = vec![ColumnTerms::new(); kinds];
        let mut time = vec![ColumnTerms::new(); instance.jobs.len()];
        for row in &instance.rows {
            let gpus = instance.jobs[row.first].gpus;
            for (kind, held) in capacity.iter_mut().enumerate() {
                let fits = row.rates[kind].is_some() && gpus <= instance.counts[kind];
                let column = fits.then(|| program.column(0.0));
                program.shares.push(column);
                let Some(column) = column else { continue };
                // Two jobs of a pair share accelerators, so a pair takes as many as one job, and the time of both.
                held.push((column, f64::from(gpus)));
                time[row.first].push((column, 1.0));
                if let Some(second) = row.second {
                    time[second].push((column, 1.0));
                }
            }
        }
        for column in 0..program.cost.len() {
            program.at_most(vec![(column, -1.0)], 0.0);
        }
        for (terms, &count) in capacity.into_iter().zip(&instance.counts) {
            program.at_most(terms, f64::from(count));
        }
        for terms in time {
            program.at_most(terms, 1.0);
        }
        program
    }

    /// Adds a column of any sign and returns its index.
    pub fn column(&mut self, cost: f64) -> usize {
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// Adds `terms` to the cost.
    pub fn add_cost(&mut self, terms: &[(usize, f64)]) {
        for &(column, factor) in terms {
            self.cost[column] += factor;
        }
    }

    /// Requires that the sum of `terms` is at most `bound`.
    pub fn at_most(&mut self, terms: ColumnTerms, bound: f64) {
        if !terms.is_empty() {
            self.at_most.push((terms, bound));
        }
    }

    /// Requires that `column` is at least the reciprocal of the sum of `terms`: their product is at
    /// least 1, and both are positive.
    pub fn reciprocal(&mut self, column: usize, terms: ColumnTerms) {
        self.hyperbolas.push((column, terms));
    }

    /// Steps per second of `job`, times `factor`, as a sum of shares.
    pub fn rate(&self, job: usize, factor: f64) -> ColumnTerms {
        let kinds = self.instance.kinds();
        let of_row = |at: usize| {
            (0..kinds).filter_map(move |kind| {
                let rate = self.instance.rows[at].rate_of(job, kind)?;
                Some((self.shares[at * kinds + kind]?, rate * factor))
            })
        };
        let pairs = (self.instance.jobs.len()..self.instance.rows.len()).flat_map(of_row);
        of_row(job).chain(pairs).collect()
    }

    /// Column of the share of row `row` on accelerator type `kind`.
    pub fn share(&self, row: usize, kind: usize) -> Option<usize> {
        self.shares[row * self.instance.kinds() + kind]
    }

    /// Minimum of the program; `None` where the constraints contradict each other or the solver
    /// gives up.
    pub fn minimise(&self) -> Option<ShareSolution> {
        // The solver takes the rows of one cone together: first all linear rows, then three rows for each hyperbola.
        let (rows, columns) = (self.at_most.len(), self.cost.len());
        let height = rows + 3 * self.hyperbolas.len();
        let mut triplets = (Vec::new(), Vec::new(), Vec::new());
        let mut put = |row: usize, column: usize, value: f64| {
            triplets.0.push(row);
            triplets.1.push(column);
            triplets.2.push(value);
        };
        let mut right = vec![0.0; height];
        for (row, (terms, bound)) in self.at_most.iter().enumerate() {
            right[row] = *bound;
            terms.iter().for_each(|&(column, factor)| put(row, column, factor));
        }
        // u v >= 1 with u, v >= 0 is the second-order cone |(u - v, 2)| <= u + v.
        for (at, (column, terms)) in self.hyperbolas.iter().enumerate() {
            let row = rows + 3 * at;
            put(row, *column, -1.0);
            put(row + 1, *column, -1.0);
            for &(term, factor) in terms {
                put(row, term, -factor);
                put(row + 1, term, factor);
            }
            right[row + 2] = 2.0;
        }
        let matrix = CscMatrix::new_from_triplets(height, columns, triplets.0, triplets.1, triplets.2);
        let linear: SupportedConeT<f64> = NonnegativeConeT(rows);
        let cones: Vec<_> =
            std::iter::once(linear).chain(self.hyperbolas.iter().map(|_| SecondOrderConeT(3))).collect();
        let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
        let quadratic = CscMatrix::zeros((columns, columns));
        let mut solver = DefaultSolver::new(&quadratic, &self.cost, &matrix, &right, &cones, settings).ok()?;
        solver.solve();
        let solved = matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
        solved.then(|| ShareSolution { values: std::mem::take(&mut solver.solution.x) })
    }

    /// Shares of a solution, clipped into [0, 1].
    pub fn allocation(&self, solution: &ShareSolution) -> TimeShares {
        let mut allocation = TimeShares::zero(self.instance);
        let kinds = self.instance.kinds();
        for row in 0..self.instance.rows.len() {
            for (kind, share) in allocation.row_mut(row).iter_mut().enumerate() {
                *share = self.shares[row * kinds + kind].map_or(0.0, |column| solution.value(column).clamp(0.0, 1.0));
            }
        }
        allocation
    }
}

/// Values of the columns at the minimum.
#[derive(Clone, Debug)]
pub struct ShareSolution {
    values: Vec<f64>,
}

impl ShareSolution {
    /// Value of one column.
    pub fn value(&self, column: usize) -> f64 {
        self.values[column]
    }

    /// Value of a sum of columns.
    pub fn sum(&self, terms: &[(usize, f64)]) -> f64 {
        terms.iter().map(|&(column, factor)| self.values[column] * factor).sum()
    }
}
