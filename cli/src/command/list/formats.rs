//! Formats of files that the program reads.

use crate::output::Rows;

/// Formats: name, header or file by which the format is recognised, and origin.
const FORMATS: [(&str, &str, &str); 14] = [
    (
        "goodput",
        "Parquet with job_id, submit_secs, duration_secs, gpus, ...",
        "`goodput data import` and `goodput data synth`",
    ),
    (
        "pollux",
        "csv: name,time,application,num_replicas,batch_size",
        "petuum/adaptdl, branch osdi21-artifact, simulator/workloads",
    ),
    (
        "philly",
        "csv: timestamp,duration,num_gpus,gpu_time,cluster",
        "petuum/adaptdl, branch osdi21-artifact: an extract of msr-fiddle/philly-traces",
    ),
    (
        "tiresias",
        "csv: job_id,num_gpu,submit_time,iterations,model_name,duration,interval",
        "SymbioticLab/Tiresias, simulator/trace-data",
    ),
    (
        "tiresias-cluster",
        "csv: num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node (`sim --cluster`)",
        "SymbioticLab/Tiresias, simulator",
    ),
    (
        "gavel",
        "ten tab-separated fields, no header (`sim --throughputs`)",
        "stanford-futuredata/gavel, scheduler/traces",
    ),
    (
        "gavel-throughputs",
        "JSON: steps a second by accelerator type, job type and job type beside it (`sim --throughputs`)",
        "stanford-futuredata/gavel, scheduler",
    ),
    ("openb", "csv of nodes and of pods (`reproduce fgd-openb`)", "alibaba/clusterdata, cluster-trace-gpu-v2023"),
    (
        "pollux-profiles",
        "directory: APP/{placements,scalability,validation-B}.csv",
        "petuum/adaptdl, branch osdi21-artifact, simulator/traces",
    ),
    (
        "load",
        "csv: times (t_s, timestamp, t, date) and columns of values (`forecast`, loads of services)",
        "any; rate tables of alibaba/ServeGen, numenta/NAB, zhouhaoyi/ETDataset",
    ),
    ("azure-llm", "csv: TIMESTAMP,ContextTokens,GeneratedTokens (`forecast`)", "Azure/AzurePublicDataset"),
    ("burstgpt", "csv: Timestamp,Model,Request tokens,...,Log Type (`forecast`)", "HPMLL/BurstGPT"),
    (
        "genai-requests",
        "csv: gmt_create,predict_type,predict_status,exec_time_seconds,... (`forecast`)",
        "alibaba/clusterdata, cluster-trace-v2026-GenAI",
    ),
    (
        "genai-samples",
        "csv: timestamp_anon,value,container_ip[,request_type] (`forecast`)",
        "alibaba/clusterdata, cluster-trace-v2026-GenAI, qps and other tables of containers",
    ),
];

/// Rows of `goodput list formats`.
pub fn formats() -> Rows {
    let mut rows = Rows::new(&["format", "recognised_by", "origin"]);
    for (format, header, origin) in FORMATS {
        rows.push(vec![format.into(), header.into(), origin.into()]);
    }
    rows
}
