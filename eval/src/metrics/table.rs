//! The table of all metrics.

use super::{Better, HEADLINE, Metric, MetricUnit, jain_index, requests, services, starves, tenants, wait_secs};
use crate::stats::quantiles;

/// All metrics, the headline first.
pub static METRICS: &[Metric] = &[
    Metric {
        key: HEADLINE,
        name: "mean JCT",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Mean job completion time: completion minus submission, over completed jobs",
        of: |run| mean(&run.jct_secs),
    },
    Metric {
        key: "jct_p50_secs",
        name: "p50 JCT",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Median job completion time (quantiles interpolate linearly, as numpy's default)",
        of: |run| quantiles(&run.jct_secs, [0.5]).map(|[p50]| p50),
    },
    Metric {
        key: "jct_p90_secs",
        name: "p90 JCT",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "90th percentile of job completion time",
        of: |run| quantiles(&run.jct_secs, [0.9]).map(|[p90]| p90),
    },
    Metric {
        key: "jct_p99_secs",
        name: "p99 JCT",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "99th percentile of job completion time",
        of: |run| quantiles(&run.jct_secs, [0.99]).map(|[p99]| p99),
    },
    Metric {
        key: "makespan_secs",
        name: "makespan",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "First submission to last completion; to the end of the run where it was cut off",
        of: |run| Some(run.makespan_secs),
    },
    Metric {
        key: "queueing_mean_secs",
        name: "queueing delay",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Mean time from submission to the first accelerator, over jobs that started",
        of: |run| mean(&run.queueing_secs),
    },
    Metric {
        key: "slowdown_bounded_mean",
        name: "bounded slowdown",
        unit: MetricUnit::Ratio,
        better: Better::Lower,
        description: "Mean of JCT over wall time with accelerators, the latter taken as at least 10 s, and at least 1",
        of: |run| mean(&run.slowdowns),
    },
    Metric {
        key: "utilization",
        name: "utilisation",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "GPU time held by jobs, restarts included, over capacity times makespan, or the paid time of \
                     rented nodes",
        of: |run| run.share_of_capacity(run.held_gpu_secs),
    },
    Metric {
        key: "fragmentation",
        name: "fragmentation",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "Free GPU time on nodes that had some accelerators taken and fewer free than the widest waiting \
                     job needs there, over capacity times makespan, or the paid time of rented nodes",
        of: |run| run.share_of_capacity(run.outcome.fragmented_gpu_millis as f64 / 1e3),
    },
    Metric {
        key: "productive_share",
        name: "productive share",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "GPU time held minus restarting (at the job's mean size), over capacity times makespan, or the \
                     paid time of rented nodes",
        of: |run| run.share_of_capacity(run.productive_gpu_secs),
    },
    Metric {
        key: "goodput",
        name: "goodput",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Work of completed jobs, in GPU time at the size where the job needs least of it, over capacity \
                     times makespan, or the paid time of rented nodes: what is left of capacity after idling, \
                     restarts, scaling losses and statistical inefficiency",
        of: |run| run.share_of_capacity(run.reference_gpu_secs?),
    },
    Metric {
        key: "restarts_mean",
        name: "restarts",
        unit: MetricUnit::PerJob,
        better: Better::Lower,
        description: "Mean number of placement changes after the first start",
        of: |run| mean(&run.restarts),
    },
    Metric {
        key: "fairness_mean",
        name: "mean finish-time fairness",
        unit: MetricUnit::Ratio,
        better: Better::Lower,
        description: "Mean of rho: JCT over the JCT alone on 1/n of the cluster, n the mean number of jobs in the system over the job's life (Themis); at most 1 keeps the promise of a fair share",
        of: |run| mean(&run.rho),
    },
    Metric {
        key: "fairness_p99",
        name: "p99 finish-time fairness",
        unit: MetricUnit::Ratio,
        better: Better::Lower,
        description: "99th percentile of rho",
        of: |run| quantiles(&run.rho, [0.99]).map(|[p99]| p99),
    },
    Metric {
        key: "fairness_max",
        name: "worst finish-time fairness",
        unit: MetricUnit::Ratio,
        better: Better::Lower,
        description: "Largest rho",
        of: |run| run.rho.iter().copied().max_by(f64::total_cmp),
    },
    Metric {
        key: "unfair_share",
        name: "unfairly treated jobs",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "Share of completed jobs with rho above 1",
        of: |run| mean(&run.rho.iter().map(|&rho| f64::from(u8::from(rho > 1.0))).collect::<Vec<_>>()),
    },
    Metric {
        key: "jain_slowdown",
        name: "Jain index of slowdown",
        unit: MetricUnit::Ratio,
        better: Better::Higher,
        description: "Jain's index of the bounded slowdowns: 1 where all jobs are slowed alike, 1/n where one bears it all",
        of: |run| (!run.slowdowns.is_empty()).then(|| jain_index(&run.slowdowns)),
    },
    Metric {
        key: "tenant_jain_gpu_time",
        name: "Jain index of tenants' GPU time",
        unit: MetricUnit::Ratio,
        better: Better::Higher,
        description: "Jain's index of the GPU time that tenants held. Where all work is done, the index only reflects the demand, so it is for runs that are cut off",
        of: |run| tenants::jain_of(&run.tenants, |tenant| Some(tenant.gpu_secs)),
    },
    Metric {
        key: "tenant_jain_weighted_share",
        name: "Jain index of tenants' weighted shares",
        unit: MetricUnit::Ratio,
        better: Better::Higher,
        description: "Jain's index of GPU time over weight, of tenants with a weight above 0",
        of: |run| {
            let weighted: Vec<_> = run.tenants.iter().filter(|tenant| tenant.weight > 0.0).copied().collect();
            tenants::jain_of(&weighted, |tenant| Some(tenant.gpu_secs / tenant.weight))
        },
    },
    Metric {
        key: "tenant_jain_slowdown",
        name: "Jain index of tenants' slowdowns",
        unit: MetricUnit::Ratio,
        better: Better::Higher,
        description: "Jain's index of tenants' mean bounded slowdowns; none where a tenant has no completed job",
        of: |run| tenants::jain_of(&run.tenants, |tenant| tenant.slowdown_mean),
    },
    Metric {
        key: "tenant_max_share",
        name: "largest tenant's share",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "GPU time of the tenant that held most, over capacity times the length of the run: its dominant share over time",
        of: |run| (run.tenants.len() > 1).then(|| run.tenants.iter().map(|of| of.share).fold(0.0, f64::max)),
    },
    Metric {
        key: "tenant_jct_worst_secs",
        name: "worst tenant's mean JCT",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Largest of the tenants' mean completion times; none where a tenant has no completed job",
        of: |run| {
            let means = run.tenants.iter().map(|of| of.jct_mean_secs).collect::<Option<Vec<f64>>>()?;
            (means.len() > 1).then(|| means.into_iter().fold(0.0, f64::max))
        },
    },
    Metric {
        key: "wait_max_secs",
        name: "longest wait",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Longest time from submission to the first accelerator, to the end of the run for jobs that never got one",
        of: |run| run.arrived().map(|job| wait_secs(job, run.outcome)).max_by(f64::total_cmp),
    },
    Metric {
        key: "starving_share",
        name: "starving jobs",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "Share of jobs that waited, in all, more than 10 times as long as they held accelerators",
        of: |run| mean(&run.arrived().map(|job| f64::from(u8::from(starves(job, run.outcome)))).collect::<Vec<_>>()),
    },
    Metric {
        key: "request_latency_mean_secs",
        name: "request latency",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Mean time from an inference request to its answer, cold starts included",
        of: |run| requests::latency_mean_secs(run.outcome),
    },
    Metric {
        key: "request_protect_hits",
        name: "protect hits",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Share of answered inference requests that found a protected instance of their model",
        of: |run| requests::protect_hits(run.outcome),
    },
    Metric {
        key: "request_cold_starts",
        name: "cold requests",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "Share of answered inference requests for which an instance was started",
        of: |run| requests::cold_starts(run.outcome),
    },
    Metric {
        key: "training_kwh",
        name: "energy of training",
        unit: MetricUnit::KilowattHours,
        better: Better::Lower,
        description: "Accelerator time that jobs held, at the greatest power of each type; none where a type has no \
                     power",
        of: |run| run.expenses.kwh,
    },
    Metric {
        key: "training_dollars",
        name: "price of training",
        unit: MetricUnit::Dollars,
        better: Better::Lower,
        description: "Accelerator time that jobs held, at the price of each type; none where a type has no price",
        of: |run| run.expenses.dollars,
    },
    Metric {
        key: "serving_kwh",
        name: "energy of services",
        unit: MetricUnit::KilowattHours,
        better: Better::Lower,
        description: "Accelerator time that replicas held, at the greatest power of each type; none where a type has \
                     no power",
        of: |run| run.serving.kwh,
    },
    Metric {
        key: "serving_dollars",
        name: "price of services",
        unit: MetricUnit::Dollars,
        better: Better::Lower,
        description: "Accelerator time that replicas held, at the price of each type; none where a type has no price",
        of: |run| run.serving.dollars,
    },
    Metric {
        key: "unfinished_jobs",
        name: "unfinished jobs",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Jobs that were not complete when the run was cut off",
        of: |run| Some(run.unfinished as f64),
    },
    Metric {
        key: "deadlines_met",
        name: "deadlines met",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Share of the jobs with a deadline that were done by it (deadline satisfactory ratio of ElasticFlow); a \
                      refused job missed its deadline",
        of: |run| mean(&run.deadlines.iter().map(|job| f64::from(u8::from(job.met))).collect::<Vec<_>>()),
    },
    Metric {
        key: "refused_jobs",
        name: "refused jobs",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Jobs that the policy sent away at admission; only of runs in which a job has a deadline",
        of: |run| {
            let refused = run.outcome.jobs.iter().filter(|job| job.refused.is_some()).count();
            (refused > 0 || !run.deadlines.is_empty()).then_some(refused as f64)
        },
    },
    Metric {
        key: "deadline_jct_mean_secs",
        name: "mean JCT of jobs with a deadline",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Mean job completion time of the completed jobs that have a deadline",
        of: |run| mean(&run.deadlines.iter().filter_map(|job| job.jct_secs).collect::<Vec<_>>()),
    },
    Metric {
        key: "deadline_jct_deviation_secs",
        name: "deviation of the JCT of jobs with a deadline",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Standard deviation of the completion times of the completed jobs that have a deadline",
        of: |run| deviation(&run.deadlines.iter().filter_map(|job| job.jct_secs).collect::<Vec<_>>()),
    },
    Metric {
        key: "slo_attainment",
        name: "SLO attainment",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Share of all requests to services that were answered within their service's latency objective",
        of: |run| services::attainment(&run.outcome.services),
    },
    Metric {
        key: "slo_attainment_worst",
        name: "worst SLO attainment",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "The same of the service where it is lowest",
        of: |run| services::worst_attainment(&run.outcome.services),
    },
    Metric {
        key: "ttft_attainment",
        name: "TTFT attainment",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Share of the requests to language models with a time to the first token within its objective",
        of: |run| services::ttft_attainment(&run.outcome.services),
    },
    Metric {
        key: "tpot_attainment",
        name: "TPOT attainment",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Share of the requests to language models with a mean time of a further token within its objective; \
                      requests that came while no replica was ready count as kept",
        of: |run| services::tpot_attainment(&run.outcome.services),
    },
    Metric {
        key: "violated_requests",
        name: "violated requests",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Requests that took longer than their service's latency objective",
        of: |run| services::violated(&run.outcome.services),
    },
    Metric {
        key: "latency_p99_over_slo",
        name: "p99 latency over SLO",
        unit: MetricUnit::Ratio,
        better: Better::Lower,
        description: "99th percentile over all requests of latency divided by the service's objective, from quarter-octave classes",
        of: |run| services::p99_over_slo(&run.outcome.services),
    },
    Metric {
        key: "replica_gpu_secs",
        name: "GPU time of replicas",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Accelerator time held by replicas of services, cold starts and drains included, GPU-seconds",
        of: |run| services::replica_gpu_secs(&run.outcome.services),
    },
    Metric {
        key: "inference_pool_utilization",
        name: "utilisation of the inference pool",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Accelerator time held on servers of the inference pool, by replicas or by training on loan, over the pool's capacity until the end of the run",
        of: services::pool_utilization,
    },
    Metric {
        key: "lent_gpu_secs",
        name: "GPU time lent",
        unit: MetricUnit::Secs,
        better: Better::Higher,
        description: "Accelerators of lent servers times the time they were away from the inference pool, GPU-seconds",
        of: |run| services::of_pool(run, |loans| loans.lent_gpu_millis as f64 / 1e3),
    },
    Metric {
        key: "reclaim_mean_secs",
        name: "reclaim latency",
        unit: MetricUnit::Secs,
        better: Better::Lower,
        description: "Mean time from calling a lent server back to its return",
        of: |run| {
            (run.outcome.loans.returned > 0)
                .then(|| run.outcome.loans.reclaim_millis as f64 / 1e3 / run.outcome.loans.returned as f64)
        },
    },
    Metric {
        key: "reclaim_evictions",
        name: "evictions at reclaim",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Training jobs that were still on a server when its deadline came",
        of: |run| services::of_pool(run, |loans| loans.evictions as f64),
    },
    Metric {
        key: "faults",
        name: "faults",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Faults of accelerators, nodes and networks; only of runs with faults or checkpoints, as the four \
                     that follow",
        of: |run| Some(f64::from(run.reliability?.faults)),
    },
    Metric {
        key: "failed_jobs",
        name: "failed jobs",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Jobs given up because they failed by themselves more often than they are tried again",
        of: |run| Some(run.reliability?.failed_jobs as f64),
    },
    Metric {
        key: "lost_gpu_hours",
        name: "lost GPU time",
        unit: MetricUnit::GpuHours,
        better: Better::Lower,
        description: "GPU time of work that was undone: the time since the last checkpoint before a fault, and all time of jobs that failed for good",
        of: |run| Some(run.reliability?.lost_gpu_hours),
    },
    Metric {
        key: "checkpoint_share",
        name: "checkpoints",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "GPU time of writing checkpoints over GPU time held",
        of: |run| run.reliability?.writing_share,
    },
    Metric {
        key: "ettr",
        name: "effective training time",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Effective training time ratio: GPU time that made lasting progress over the time from each job's first start to its end at its mean size, waiting for repairs included",
        of: |run| run.reliability?.ettr,
    },
    Metric {
        key: "asked_compute",
        name: "compute asked for",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Compute that jobs had asked for while they held accelerators, over capacity times makespan, or \
                     the paid time of rented nodes; a job on a whole accelerator counts with the part that it asked \
                     for. Only of runs in which a job asks for a part of an accelerator, as the four that follow",
        of: |run| run.share_of_capacity(run.cards?.asked_gpu_secs),
    },
    Metric {
        key: "asked_memory",
        name: "device memory asked for",
        unit: MetricUnit::Share,
        better: Better::Higher,
        description: "Device memory that jobs had asked for while they held accelerators, over that of the cluster \
                     times makespan; whole accelerators count as the mean one",
        of: |run| run.cards?.asked_memory,
    },
    Metric {
        key: "joint_cards_mean",
        name: "accelerators of several jobs",
        unit: MetricUnit::Count,
        better: Better::Higher,
        description: "Mean number of accelerators on which two or more jobs had parts",
        of: |run| {
            let millis = run.makespan_secs * 1e3;
            (millis > 0.0).then_some(run.cards?.shared.joint_card_millis as f64 / millis)
        },
    },
    Metric {
        key: "split_idle_compute",
        name: "idle compute of split accelerators",
        unit: MetricUnit::Share,
        better: Better::Lower,
        description: "Compute that no job held on accelerators of which a job had a part, over capacity times \
                     makespan, or the paid time of rented nodes: what a job that needs a whole accelerator cannot \
                     use",
        of: |run| {
            let shared = run.cards?.shared;
            run.share_of_capacity((100 * shared.card_millis - shared.compute_percent_millis) as f64 / 1e5)
        },
    },
    Metric {
        key: "over_committed",
        name: "over-committed accelerators",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Times a job came to an accelerator of which its jobs then held more than all compute or \
                     all memory",
        of: |run| Some(run.cards?.shared.over_committed as f64),
    },
    Metric {
        key: "cost",
        name: "cost",
        unit: MetricUnit::Dollars,
        better: Better::Lower,
        description: "Price of all rented nodes, from their orders to their ends; only of runs that rent nodes, as \
                     the three that follow",
        of: |run| Some(run.rental?.cost),
    },
    Metric {
        key: "cost_per_job",
        name: "cost per job",
        unit: MetricUnit::Dollars,
        better: Better::Lower,
        description: "Price of all rented nodes over the number of completed jobs",
        of: |run| run.rental?.cost_per_job,
    },
    Metric {
        key: "node_hours",
        name: "node hours",
        unit: MetricUnit::NodeHours,
        better: Better::Lower,
        description: "Time of all rented nodes, from their orders to their ends",
        of: |run| Some(run.rental?.node_hours),
    },
    Metric {
        key: "taken_back",
        name: "spot nodes taken back",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Spot nodes that the provider took back",
        of: |run| Some(f64::from(run.rental?.taken_back)),
    },
    Metric {
        key: "decisions",
        name: "decisions",
        unit: MetricUnit::Count,
        better: Better::Lower,
        description: "Times the policy was asked; not a quality, but what its cost is multiplied by",
        of: |run| Some(run.decisions as f64),
    },
];

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of all values, not an estimate from a sample; `None` where there are none.
fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    mean(&values.iter().map(|value| (value - centre).powi(2)).collect::<Vec<_>>()).map(f64::sqrt)
}
