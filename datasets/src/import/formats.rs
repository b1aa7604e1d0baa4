//! Formats of files that are read, for `goodput list formats`.

use super::{
    deepboot, elasticflow, helios, job_csv, openb, openb_jobs, pai, philly, pollux, sacct, series, shockwave,
    sia_workloads, step_times, supercloud, swf, tiresias, tiresias_cluster, tiresias_samples,
};
use crate::store;

/// Description of a format of files.
#[derive(Clone, Copy, Debug)]
pub struct FileFormat {
    /// Short name of the format.
    pub name: &'static str,
    /// Content of the file, and the command or option that reads the file where a workload's path
    /// does not.
    pub reads: &'static str,
    /// Names of the columns; empty where the format is no table with a header.
    pub columns: &'static [&'static str],
    /// Place where files in the format are published.
    pub origin: &'static str,
}

/// Formats that the product reads, workloads first.
pub const FORMATS: [FileFormat; 32] = [
    FileFormat {
        name: "goodput",
        reads: "Parquet: job table; all columns but job_id, submit_secs and gpus are optional",
        columns: store::jobs::COLUMNS,
        origin: "`goodput data import` and `goodput data synth`",
    },
    FileFormat {
        name: "job-csv",
        reads: "csv: one job a row, a trace of your own; all columns but the first four are optional",
        columns: job_csv::ALL_COLUMNS,
        origin: "your own",
    },
    FileFormat {
        name: "pollux",
        reads: "csv: workload",
        columns: pollux::COLUMNS,
        origin: "petuum/adaptdl, branch osdi21-artifact, simulator/workloads",
    },
    FileFormat {
        name: "deepboot",
        reads: "csv: workload of training jobs and inference requests",
        columns: deepboot::COLUMNS,
        origin: "czq693497091/DeepBoot, experiment/workload",
    },
    FileFormat {
        name: "philly",
        reads: "csv: trace",
        columns: philly::COLUMNS,
        origin: "petuum/adaptdl, branch osdi21-artifact, extract of msr-fiddle/philly-traces",
    },
    FileFormat {
        name: "tiresias",
        reads: "csv: trace",
        columns: tiresias::COLUMNS,
        origin: "SymbioticLab/Tiresias, simulator/trace-data",
    },
    FileFormat {
        name: "tiresias-cluster",
        reads: "csv: cluster (`sim --cluster`)",
        columns: tiresias_cluster::COLUMNS,
        origin: "SymbioticLab/Tiresias, simulator",
    },
    FileFormat {
        name: "tiresias-samples",
        reads: "csv: samples of service for the Gittins index (`reproduce`)",
        columns: tiresias_samples::COLUMNS,
        origin: "SymbioticLab/Tiresias, simulator/yarn-gput1000.csv",
    },
    FileFormat {
        name: "openb-jobs",
        reads: "csv: full list of pods, as jobs on parts of cards; import it first, because pods \
                that never ran are refused",
        columns: openb_jobs::COLUMNS,
        origin: "alibaba/clusterdata, cluster-trace-gpu-v2023",
    },
    FileFormat {
        name: "sacct",
        reads: "output of sacct --parsable2 --allocations with a header: jobs that held accelerators; with --duplicates \
                and State, the runs of a job become one; all columns but the first four are optional",
        columns: sacct::COLUMNS,
        origin: "your own Slurm cluster",
    },
    FileFormat {
        name: "helios",
        reads: "csv: Slurm log of Helios or Acme; import it first, because jobs without accelerators are refused; vc is \
                optional",
        columns: helios::COLUMNS,
        origin: "S-Lab-System-Group/HeliosData, InternLM/AcmeTrace",
    },
    FileFormat {
        name: "elasticflow",
        reads: "csv: trace with deadlines; num_iteration is optional and not used",
        columns: elasticflow::COLUMNS,
        origin: "microsoft/elasticflow-traces",
    },
    FileFormat {
        name: "philly-log",
        reads: "JSON: the published job log of Philly, cluster_job_log; import it first, because jobs that never ran or \
                had not ended are refused",
        columns: &[],
        origin: "msr-fiddle/philly-traces",
    },
    FileFormat {
        name: "pai",
        reads: "csv without a header: pai_task_table.csv, and pai_job_table.csv beside it; import it first, because jobs \
                without accelerators are refused",
        columns: &pai::FIELDS,
        origin: "alibaba/clusterdata, cluster-trace-gpu-v2020",
    },
    FileFormat {
        name: "supercloud",
        reads: "csv: slurm-log.csv; import it first, because jobs without accelerators are refused; id_user, timelimit and \
                tres_alloc are optional",
        columns: supercloud::COLUMNS,
        origin: "MIT-AI-Accelerator/MIT-Supercloud-Dataset",
    },
    FileFormat {
        name: "shockwave",
        reads: "twelve tab-separated fields without a header: trace; with `--throughputs`, changes of the batch size \
                count",
        columns: &shockwave::FIELDS,
        origin: "uw-mad-dash/shockwave, scheduler/traces",
    },
    FileFormat {
        name: "kubernetes",
        reads: "JSON: kubectl get jobs,pods --all-namespaces -o json; import it first, because jobs that hold no \
                accelerator or still run are refused",
        columns: &[],
        origin: "your own Kubernetes cluster",
    },
    FileFormat {
        name: "kueue",
        reads: "JSON: kubectl get workloads --all-namespaces -o json; import it first, because workloads that have not \
                finished are refused",
        columns: &[],
        origin: "your own cluster with Kueue",
    },
    FileFormat {
        name: "swf",
        reads: "18 numbers between blanks, comments after a semicolon: trace; processors count \
                as accelerators",
        columns: &swf::FIELDS,
        origin: "Parallel Workloads Archive",
    },
    FileFormat {
        name: "gavel",
        reads: "ten tab-separated fields without a header: trace (`--throughputs` of `sim` and `data import`)",
        columns: &[],
        origin: "stanford-futuredata/gavel, scheduler/traces",
    },
    FileFormat {
        name: "gavel-throughputs",
        reads: "JSON, also compressed as .gz: steps per second by accelerator type, type of the job and type of its \
                neighbour (`sim --throughputs`)",
        columns: &[],
        origin: "stanford-futuredata/gavel, scheduler",
    },
    FileFormat {
        name: "sia",
        reads: "csv: workload of Pollux with an optional column category (`reproduce`)",
        columns: sia_workloads::COLUMNS,
        origin: "artifact of Sia (SOSP'23)",
    },
    FileFormat {
        name: "sia-profiles",
        reads: "directory by accelerator type: profiles of applications (`reproduce`)",
        columns: &[],
        origin: "artifact of Sia (SOSP'23), sia-simulator/traces",
    },
    FileFormat {
        name: "openb-nodes",
        reads: "csv: nodes (`reproduce fgd-openb`)",
        columns: openb::NODE_COLUMNS,
        origin: "alibaba/clusterdata, cluster-trace-gpu-v2023",
    },
    FileFormat {
        name: "openb-pods",
        reads: "csv: pods, with an optional column gpu_spec (`reproduce fgd-openb`)",
        columns: openb::POD_COLUMNS,
        origin: "alibaba/clusterdata, cluster-trace-gpu-v2023",
    },
    FileFormat {
        name: "pollux-profiles",
        reads: "directory: profiles APP/{placements,scalability,validation-B}.csv (`--profiles`)",
        columns: &[],
        origin: "petuum/adaptdl, branch osdi21-artifact, simulator/traces",
    },
    FileFormat {
        name: "pollux-step-times",
        reads: "Parquet: step times of placements that profiles interpolate (`--step-times`)",
        columns: step_times::COLUMNS,
        origin: "made with the simulator of the Pollux artifact",
    },
    FileFormat {
        name: "load",
        reads: "csv: a column of times under one of these names, and columns of values (`forecast`, loads of services)",
        columns: &series::TIMES,
        origin: "any; rate tables of alibaba/ServeGen, numenta/NAB, zhouhaoyi/ETDataset",
    },
    FileFormat {
        name: "azure-llm",
        reads: "csv: log of requests (`forecast`, loads of services, `data replay-llm`)",
        columns: &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        origin: "Azure/AzurePublicDataset",
    },
    FileFormat {
        name: "burstgpt",
        reads: "csv: log of requests (`forecast`, loads of services, `data replay-llm`)",
        columns: &["Timestamp", "Model", "Request tokens", "Log Type"],
        origin: "HPMLL/BurstGPT",
    },
    FileFormat {
        name: "genai-requests",
        reads: "csv: log of requests (`forecast`, loads of services)",
        columns: &["gmt_create", "predict_type", "predict_status", "exec_time_seconds"],
        origin: "alibaba/clusterdata, cluster-trace-v2026-GenAI",
    },
    FileFormat {
        name: "genai-samples",
        reads: "csv: samples of containers, with an optional column request_type (`forecast`, loads of services)",
        columns: &["timestamp_anon", "value", "container_ip"],
        origin: "alibaba/clusterdata, cluster-trace-v2026-GenAI",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_format_says_what_it_is() {
        let names: BTreeSet<_> = FORMATS.iter().map(|format| format.name).collect();
        assert_eq!(names.len(), FORMATS.len());
        assert!(FORMATS.iter().all(|format| !format.reads.is_empty() && !format.origin.is_empty()));
    }
}
