//! Contents of a picture of an environment: its nodes, the stays of jobs on them, and the jobs that wait.

use goodput_env::gym::{ClusterEnv, Stay};
use goodput_env::time::SimTime;

/// A stay for Python: job, node, accelerators, and hours from and to; the end is `None` while the job stays.
pub type DrawnStay = (u32, u32, u32, f64, Option<f64>);

/// Hours since the beginning of the workload; accelerator type and number of accelerators of every node; stays; hour
/// and number of waiting jobs from then on; application of every job.
pub type Picture = (f64, Vec<(String, u32)>, Vec<DrawnStay>, Vec<(f64, usize)>, Vec<String>);

/// Contents of a picture of `env`; without stays and waiting jobs where they are not noted.
pub fn picture(env: &ClusterEnv) -> Picture {
    (now(env), nodes(env), stays(env), waiting(env), applications(env))
}

fn hours(at: SimTime) -> f64 {
    at.as_secs_f64() / 3600.0
}

/// Stays of the current episode.
fn stays(env: &ClusterEnv) -> Vec<DrawnStay> {
    let drawn = |stay: &Stay| (stay.job.0, stay.node.0, stay.gpus, hours(stay.from), stay.to.map(hours));
    env.timeline().map(|timeline| timeline.stays().iter().map(drawn).collect()).unwrap_or_default()
}

/// Jobs that wait, over time.
fn waiting(env: &ClusterEnv) -> Vec<(f64, usize)> {
    let drawn = |&(at, jobs): &(SimTime, usize)| (hours(at), jobs);
    env.timeline().map(|timeline| timeline.waiting().iter().map(drawn).collect()).unwrap_or_default()
}

/// Hours since the beginning of the workload.
fn now(env: &ClusterEnv) -> f64 {
    env.simulator().map_or(0.0, |simulator| hours(simulator.now()))
}

/// Accelerator type and number of accelerators of every node.
fn nodes(env: &ClusterEnv) -> Vec<(String, u32)> {
    let Some(view) = env.view() else { return Vec::new() };
    let cluster = view.cluster();
    let name = |index: usize| cluster.types.get(index).map_or_else(String::new, |kind| kind.name.as_str().to_owned());
    cluster.nodes.iter().map(|node| (name(node.accelerator.index()), node.gpus)).collect()
}

/// Application of every job of the workload; `""` where the trace does not tell.
fn applications(env: &ClusterEnv) -> Vec<String> {
    let Some(simulator) = env.simulator() else { return Vec::new() };
    let workload = &simulator.scenario().workload;
    let ids = (0..).map(goodput_env::job::JobId).take(workload.jobs.len());
    ids.map(|job| workload.model_name(job).to_owned()).collect()
}
