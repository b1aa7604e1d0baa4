//! Monitoring at three levels: cluster, node, application. All numbers are whole and add up: the applications of a node are the node, the nodes are the
//! cluster.

use goodput_datasets::store::{Column, Table};
use goodput_env::cluster::NodeId;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

use crate::run::{Evaluation, Run};

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// Everything.
    Cluster,
    /// One node.
    Node(NodeId),
    /// One application or service on one node.
    Application(NodeId, String),
}

/// What was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRow {
    /// Where.
    pub level: Level,
    /// Accelerator time there was, GPU-milliseconds; zero for an application.
    pub capacity_gpu_millis: i64,
    /// Accelerator time that training held.
    pub training_gpu_millis: i64,
    /// Accelerator time that replicas held.
    pub serving_gpu_millis: i64,
    /// Requests, micro-requests, that fell to replicas there.
    pub requests: u64,
    /// Of these, those that missed their objective.
    pub violated: u64,
}

impl LevelRow {
    fn new(level: Level) -> Self {
        let (capacity_gpu_millis, training_gpu_millis, serving_gpu_millis) = (0, 0, 0);
        Self { level, capacity_gpu_millis, training_gpu_millis, serving_gpu_millis, requests: 0, violated: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.capacity_gpu_millis += other.capacity_gpu_millis;
        self.training_gpu_millis += other.training_gpu_millis;
        self.serving_gpu_millis += other.serving_gpu_millis;
        self.requests += other.requests;
        self.violated += other.violated;
    }
}

/// The cluster, then each node followed by its applications. Requests that came while a service had no ready replica fell to no node; they are in the records
/// of the services only.
pub fn levels(scenario: &Scenario, outcome: &Outcome) -> Vec<LevelRow> {
    let workload = &scenario.workload;
    let names = workload.applications.iter().map(|app| app.name.as_str());
    let names = names.chain(workload.classes.iter().map(|class| class.name.as_str()));
    let names: Vec<&str> = names.chain(["jobs of known duration"]).collect();
    let mut rows = vec![LevelRow::new(Level::Cluster)];
    let mut training = outcome.training.iter().peekable();
    let mut serving: Vec<_> = outcome.services.iter().flat_map(|service| &service.nodes).collect();
    serving.sort_by_key(|on| (on.node, on.service));
    let mut serving = serving.into_iter().peekable();
    for (node, machine) in scenario.cluster.nodes.iter().enumerate() {
        let id = node as NodeId;
        let mut apps = Vec::new();
        while let Some(on) = training.next_if(|on| on.node == id) {
            let level = Level::Application(id, names[usize::from(on.application)].into());
            apps.push(LevelRow { training_gpu_millis: on.gpu_millis, ..LevelRow::new(level) });
        }
        while let Some(on) = serving.next_if(|on| on.node == id) {
            let level = Level::Application(id, workload.services[on.service.index()].name.clone());
            let (serving_gpu_millis, requests, violated) = (on.gpu_millis, on.requests, on.violated);
            apps.push(LevelRow { serving_gpu_millis, requests, violated, ..LevelRow::new(level) });
        }
        let mut row = LevelRow::new(Level::Node(id));
        apps.iter().for_each(|app| row.add(app));
        row.capacity_gpu_millis = i64::from(machine.gpus) * outcome.end.as_millis();
        rows[0].add(&row);
        rows.push(row);
        rows.extend(apps);
    }
    rows
}

/// The rows of every run, for `usage.parquet`.
pub fn levels_table<'a>(evaluation: &'a Evaluation) -> Table {
    let of_run = |run: &'a Run| levels(&run.scenario, &run.outcome).into_iter().map(move |row| (run, row));
    let rows: Vec<(&Run, LevelRow)> = evaluation.runs.iter().flat_map(of_run).collect();
    let whole = |of: &dyn Fn(&LevelRow) -> i64| rows.iter().map(|(_, row)| of(row)).collect::<Vec<i64>>();
    let text = |of: &dyn Fn(&Level) -> String| rows.iter().map(|(_, row)| of(&row.level)).collect::<Vec<String>>();
    let named = |names: &[String], of: &dyn Fn(&Run) -> usize| {
        rows.iter().map(|(run, _)| names[of(run)].clone()).collect::<Vec<String>>()
    };
    let node = |level: &Level| match level {
        Level::Cluster => None,
        Level::Node(node) | Level::Application(node, _) => Some(i64::from(*node)),
    };
    Table::new(vec![
        Column::new("policy", named(&evaluation.policies, &|run| run.policy)),
        Column::new("workload", named(&evaluation.workloads, &|run| run.workload)),
        Column::new("seed", rows.iter().map(|(run, _)| run.seed as i64).collect::<Vec<i64>>()),
        Column::new(
            "level",
            text(&|level| {
                let name = match level {
                    Level::Cluster => "cluster",
                    Level::Node(_) => "node",
                    Level::Application(..) => "application",
                };
                name.into()
            }),
        ),
        Column::new("node", rows.iter().map(|(_, row)| node(&row.level)).collect::<Vec<Option<i64>>>()),
        Column::new(
            "application",
            text(&|level| match level {
                Level::Application(_, name) => name.clone(),
                Level::Cluster | Level::Node(_) => String::new(),
            }),
        ),
        Column::new("capacity_gpu_millis", whole(&|row| row.capacity_gpu_millis)),
        Column::new("training_gpu_millis", whole(&|row| row.training_gpu_millis)),
        Column::new("serving_gpu_millis", whole(&|row| row.serving_gpu_millis)),
        Column::new("requests_micro", whole(&|row| row.requests as i64)),
        Column::new("violated_micro", whole(&|row| row.violated as i64)),
    ])
}
