//! Nodes of a private cluster as `slurm.conf` writes them.

use std::path::Path;

use goodput_executor::machine::host_name;

use super::accounting::Accounting;
use super::user;

/// Nodes of a cluster, and whether it has accounts.
pub(super) struct ClusterShape<'a> {
    pub nodes: u32,
    /// Accelerators of each node.
    pub gpus: u32,
    pub accelerator: &'a str,
    /// Seconds from SIGTERM to SIGKILL.
    pub kill_wait: u32,
    pub accounting: Option<Accounting>,
}

impl ClusterShape<'_> {
    /// `slurm.conf` of a cluster in `directory`: the controller listens on the first port, and the nodes on the others.
    /// Nodes have the feature `even` or `odd` by their number.
    pub fn configuration(&self, directory: &Path, ports: &[u16]) -> String {
        let Self { nodes, gpus, accelerator, kill_wait, .. } = *self;
        let user = user();
        let host = host_name().split('.').next().unwrap_or_default().to_string();
        let place = directory.display();
        let mut text = format!(
            "ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={place}/run/munge.sock
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/run/slurmctld.pid
SlurmdPidFile={place}/run/slurmd-%n.pid
SlurmctldLogFile={place}/log/slurmctld.log
SlurmdLogFile={place}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=1000
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,bf_continue
PriorityType=priority/basic
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=15
KillWait={kill_wait}
MinJobAge=60
MaxJobCount=50000
MaxArraySize=50001
",
            port = ports[0]
        );
        text.extend(self.accounting.as_ref().map(|accounting| accounting.configuration(directory)));
        for (node, port) in (0..nodes).zip(&ports[1..]) {
            let feature = if node % 2 == 0 { "even" } else { "odd" };
            text.push_str(&format!(
            "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=512000 Feature={feature} Gres=gpu:{accelerator}:{gpus}\n"
        ));
        }
        text.push_str("PartitionName=train Nodes=ALL Default=YES State=UP MaxTime=INFINITE\n");
        text
    }
}
