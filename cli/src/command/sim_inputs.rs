//! Inputs of `goodput sim`: the cluster, the applications and the workload, from files.

use std::path::Path;
use std::sync::Arc;

use goodput_configs::names::did_you_mean;
use goodput_configs::scenario::{ANY_TYPE, SetupError, known_speeds, too_large};
use goodput_console::{CommandError, say};
use goodput_datasets::{Accelerators, Catalog, DataError, LoadedWorkload, import, read_workload};
use goodput_env::cluster::Cluster;
use goodput_env::job::Workload;
use goodput_env::scenario::Preset;
use goodput_env::tenant::{Group, Tenants};

use super::sim::data_fault;
use crate::args::Sim;
use crate::config::setup_error;

/// The machines: groups of nodes, or a file; with what the shipped catalog says of the power and price of their types.
pub fn cluster(text: &str) -> Result<Cluster, CommandError> {
    let path = Path::new(text);
    let mut cluster = match path.is_file() {
        true => import::tiresias_cluster::read(path).map_err(data_fault)?.cluster(),
        false => Cluster::parse(text).map_err(CommandError::input)?,
    };
    Accelerators::shipped().describe(&mut cluster);
    Ok(cluster)
}

/// The jobs, over speeds that are known on `cluster` and with sizes that it has.
pub fn workload(args: &Sim, cluster: &Cluster) -> Result<Workload, CommandError> {
    let measured;
    let catalog = match &args.profiles {
        Some(dir) => {
            measured = profiles(args, dir).map_err(data_fault)?;
            &measured
        }
        None => Catalog::shipped(),
    };
    let workload = match &args.throughputs {
        Some(throughputs) => import::gavel::read(&args.workload, throughputs).map_err(data_fault)?,
        // Only Sia's reader knows which of its jobs are rigid.
        None if args.conventions() == Some(Preset::SiaSosp23) && is_csv(&args.workload) => {
            import::sia_workloads::read(&args.workload, catalog).map_err(data_fault)?
        }
        None => {
            let LoadedWorkload { mut workload, tenants } =
                read_workload(&args.workload, catalog).map_err(data_fault)?;
            if args.allocation.is_some() {
                // Jobs without a tenant are all of the tenant `default`.
                let declares = tenants != ["default"];
                workload.tenants = equals(if declares { tenants } else { Vec::new() })?;
            }
            workload
        }
    };
    if let Some(allocation) = args.allocation.filter(|_| workload.tenants.is_empty()) {
        let file = args.workload.display();
        return Err(CommandError::input(format!(
            "--allocation {}: the jobs of {file} have no tenants to divide the cluster among",
            allocation.name()
        ))
        .with_help("give the table of jobs a column `tenant`, or leave out --allocation"));
    }
    fits(cluster, &args.cluster, &workload)?;
    Ok(workload)
}

/// Warns of accelerator types that no catalog knows. Jobs of which only a duration is known run on every type.
fn warn_of_types(cluster: &Cluster, named: &str) {
    let known = Accelerators::shipped();
    let names = cluster.types.iter().map(|of| of.name.as_str());
    for name in names.filter(|name| *name != ANY_TYPE && known.get(name).is_none()) {
        let near = did_you_mean(name, known.rows().iter().map(|row| row.accelerator.name.as_str()));
        say(&format!(
            "warning: --cluster {named}: no catalog knows the accelerator type {name:?}{near}. Jobs of a known duration \
             run on it as on any type; `goodput list accelerators` names the types"
        ));
    }
}

/// Checks that every job has a known speed on `cluster`, which the command line calls `named`, and that the cluster is
/// large enough for the job.
pub fn fits(cluster: &Cluster, named: &str, workload: &Workload) -> Result<(), CommandError> {
    known_speeds(cluster, workload).map_err(|error| match error {
        SetupError::Value { value, expected, .. } => {
            CommandError::input(format!("--cluster has {value}, expected {expected}"))
        }
        error => setup_error(error),
    })?;
    warn_of_types(cluster, named);
    let Some(request) = too_large(cluster, workload) else { return Ok(()) };
    let (name, needs, has) = (&request.name, request.min_gpus(), cluster.total_gpus());
    let problem =
        format!("job {name:?} needs {needs} accelerators, and --cluster {named} has {has}: it would wait for ever");
    Err(CommandError::input(problem)
        .with_help("choose a larger cluster; `goodput data validate FILE --cluster CLUSTER` lists all such jobs"))
}

/// Tenants of equal weight.
pub fn equals(names: Vec<String>) -> Result<Arc<Tenants>, CommandError> {
    let groups = names.into_iter().map(Group::named).collect();
    Tenants::new(groups, Vec::new(), Vec::new(), &[]).map(Arc::new).map_err(CommandError::input)
}

/// Measured applications as the simulator of the preset reads them, and as Pollux's does without a preset.
fn profiles(args: &Sim, dir: &Path) -> Result<Catalog, DataError> {
    match args.conventions() {
        Some(Preset::SiaSosp23) => import::sia_profiles::catalog(dir),
        Some(Preset::DeepbootTpds23) if args.step_times.is_none() => import::pollux_profiles::deepboot_catalog(dir),
        _ => import::pollux_profiles::catalog(dir, args.step_times.as_deref()),
    }
}

fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "csv")
}
