//! Queue of a live cluster for `goodput advise job --snapshot`, on the machines and with the tenants of the command.

use std::path::Path;

use goodput_console::CommandError;
use goodput_env::cluster::{Cluster, NodeId};
use goodput_env::job::{Elasticity, JobRequest, Workload};
use goodput_eval::studies::starts::{AskedJob, RunningSeen, SeenJob, SeenQueue};
use goodputd::queue_file::{self, FileJob, QueueFile, QueueNode};

use crate::command::sim_inputs;

/// A queue that is asked about.
pub struct AskedQueue {
    /// Name of the file.
    pub name: String,
    /// The queue by nodes of the cluster and tenants of the trace.
    pub seen: SeenQueue,
    /// The queue as it was read; its jobs are in the order of `seen`.
    pub file: QueueFile,
}

impl AskedQueue {
    /// Reads the queue. Tenants that the trace does not have are added to it.
    pub fn read(path: &Path, cluster: &Cluster, trace: &mut Workload) -> Result<Self, CommandError> {
        let file = queue_file::read(path)?;
        let name = path.display().to_string();
        let fault = |problem: String| CommandError::input(format!("{name}: {problem}"));
        if cluster.types.len() > 1 && file.nodes.iter().any(|node| node.accelerator.is_empty()) {
            let problem = "it does not say which accelerators its nodes have, and --cluster has several types";
            return Err(fault(problem.to_owned()).with_help("a snapshot of `goodput live plan --record` says it"));
        }
        let places = places(&file, cluster).map_err(fault)?;
        let mut seen = SeenQueue {
            nodes: (0..cluster.nodes.len()).map(|node| format!("node {node}")).collect(),
            service: cluster.nodes.iter().map(|node| node.gpus).collect(),
            jobs: Vec::new(),
        };
        for (node, place) in file.nodes.iter().zip(&places) {
            seen.nodes[place.index()].clone_from(&node.name);
            if file.lists_nodes {
                seen.service[place.index()] = node.gpus;
            }
        }
        let mut held = vec![0; cluster.nodes.len()];
        for job in &file.jobs {
            let run = job.run.as_ref().map(|run| {
                let on = run.on.iter().map(|(name, gpus)| {
                    let place = file.nodes.iter().zip(&places).find(|(node, _)| node.name == *name);
                    let (_, place) = place
                        .ok_or_else(|| fault(format!("job {} is on {name}, a node that it does not list", job.key)))?;
                    held[place.index()] += gpus;
                    Ok((*place, *gpus))
                });
                Ok::<_, CommandError>(RunningSeen { ran: run.ran, on: on.collect::<Result<_, _>>()? })
            });
            if job.gpus > cluster.total_gpus() {
                let (key, gpus, all) = (&job.key, job.gpus, cluster.total_gpus());
                return Err(fault(format!("job {key} asks for {gpus} accelerators, and --cluster has {all}")));
            }
            seen.jobs.push(SeenJob {
                request: request(job, tenant(&job.tenant, trace)?),
                age: job.age,
                run: run.transpose()?,
            });
        }
        if let Some(node) = (0..held.len()).find(|&node| held[node] > seen.service[node]) {
            let (name, held, has) = (&seen.nodes[node], held[node], seen.service[node]);
            return Err(fault(format!("jobs hold {held} accelerators of {name}, which has {has} in service")));
        }
        // What is free on a node where no job starts is out of service.
        for (node, place) in file.nodes.iter().zip(&places).filter(|(node, _)| node.closed) {
            seen.service[place.index()] = held[place.index()].min(node.gpus);
        }
        Ok(Self { name, seen, file })
    }

    /// The waiting job of that number, key or name, or a new one.
    pub fn asked(&self, job: Option<&str>, new: &JobRequest) -> Result<AskedJob, CommandError> {
        let Some(asked) = job else { return Ok(AskedJob::New(new.clone())) };
        let found = |by: &dyn Fn(&FileJob) -> bool| self.file.jobs.iter().position(by);
        let waits = |job: &FileJob| job.name == asked && job.run.is_none();
        let place = found(&|job| job.key == asked);
        let named: Vec<&str> = self.file.jobs.iter().filter(|job| waits(job)).map(|job| job.key.as_str()).collect();
        if place.is_none() && named.len() > 1 {
            let problem = format!("--job {asked}: {} waiting jobs have that name", named.len());
            return Err(CommandError::input(problem).with_help(format!("ask by number: {}", named.join(", "))));
        }
        match place.or_else(|| found(&waits)).or_else(|| found(&|job| job.name == asked)) {
            Some(place) if self.file.jobs[place].run.is_none() => Ok(AskedJob::Waits(place)),
            Some(_) => Err(CommandError::input(format!("--job {asked}: it runs"))),
            None => {
                let problem =
                    format!("--job {asked}: no job of {} that may start has that number, key or name", self.name);
                Err(CommandError::input(problem).with_help(
                    "jobs that a person holds, and those that wait for another job, a time, a limit or a partition, \
                     are left out",
                ))
            }
        }
    }
}

/// Number of the tenant of that name.
fn tenant(name: &str, trace: &mut Workload) -> Result<u32, CommandError> {
    if let Some(place) = trace.tenants.iter().position(|of| of.name == name) {
        return Ok(place as u32);
    }
    // A trace without tenants has one for all jobs.
    if trace.tenants.len() < 2 || name.is_empty() {
        return Ok(0);
    }
    let mut known: Vec<String> = trace.tenants.iter().map(|tenant| tenant.name.clone()).collect();
    known.push(name.to_owned());
    let place = known.len() - 1;
    trace.tenants = sim_inputs::equals(known)?;
    Ok(place as u32)
}

fn request(job: &FileJob, tenant: u32) -> JobRequest {
    JobRequest {
        name: if job.name.is_empty() { job.key.clone() } else { format!("{} {}", job.key, job.name) },
        gpus: job.gpus,
        elasticity: job.elastic.map_or(Elasticity::Rigid, |(min, max)| Elasticity::Elastic { min, max }),
        priority: job.priority,
        tenant,
        limit: job.limit,
        ..JobRequest::default()
    }
}

/// By node of the queue: the node of the cluster that it is, in the order of their names.
fn places(file: &QueueFile, cluster: &Cluster) -> Result<Vec<NodeId>, String> {
    let [listed, all] = [file.nodes.len(), cluster.nodes.len()];
    if file.lists_nodes && listed != all {
        return Err(format!("it lists {listed} nodes, and --cluster has {all}"));
    }
    let mut taken = vec![false; all];
    let mut places = Vec::with_capacity(listed);
    for node in &file.nodes {
        // An accelerator may be out of service, so a larger node will do.
        let may = (0..all).filter(|&place| !taken[place] && fits(node, cluster, place));
        let place = may.min_by_key(|&place| cluster.nodes[place].gpus).ok_or_else(|| {
            let QueueNode { name, gpus, accelerator, .. } = node;
            let kind = if cluster.types.len() > 1 { format!(" of type {accelerator}") } else { String::new() };
            format!("--cluster has no node left that can be {name}, with {gpus} accelerators{kind} in use or service")
        })?;
        taken[place] = true;
        places.push(NodeId(place as u32));
    }
    Ok(places)
}

/// Whether a node of the queue may be that node of the cluster.
fn fits(node: &QueueNode, cluster: &Cluster, place: usize) -> bool {
    let there = &cluster.nodes[place];
    let is_of_type = cluster.types.len() == 1 || cluster.types[there.accelerator.index()].name == node.accelerator;
    is_of_type && there.gpus >= node.gpus
}
