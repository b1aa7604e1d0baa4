//! Monitoring at three levels: cluster, node, application. All numbers are whole and add up: the
//! applications of a node are the node, the nodes are the cluster.

use goodput_env::cluster::NodeId;
use goodput_env::scenario::Scenario;
use goodput_env::sim::Outcome;

/// Level of the cluster that a row describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// The whole cluster.
    Cluster,
    /// One node of the cluster.
    Node(NodeId),
    /// One application or service on one node.
    Application(NodeId, String),
}

/// Accelerator time and requests of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRow {
    /// Level that the row describes.
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

/// The cluster, then each node followed by its applications. Requests that came while a service had
/// no ready replica fell to no node; they are in the records of the services only.
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
        let id = NodeId::at(node);
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
