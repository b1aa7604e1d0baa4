//! Jobs that ask for parts of accelerators, in tables and from the openb trace.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use goodput_datasets::catalog::Catalog;
use goodput_datasets::import::WorkloadFormat;
use goodput_datasets::jobs::into_workload;
use goodput_datasets::store::jobs;
use goodput_datasets::synth::{DiurnalSynth, Lengths, SynthConfig};
use goodput_datasets::workload::parse_jobs;
use goodput_datasets::{read_jobs, synth};
use goodput_env::job::Elasticity;
use goodput_env::placement::ShareRequest;
use goodput_env::time::SimTime;

fn share(compute_percent: u32, memory_mib: u32) -> Option<ShareRequest> {
    Some(ShareRequest { compute_percent, memory_mib })
}

#[test]
fn a_table_has_parts_and_parquet_keeps_them() {
    let text = "job_id,submit_secs,duration_secs,gpus,compute_percent,memory_mib\na,0,60,1,30,4096\nb,1,60,2,150,0\nc,2,60,4,,\n";
    let imported = parse_jobs(Path::new("w.csv"), text.into()).unwrap();
    let shares = |rows: &[goodput_datasets::jobs::JobRow]| rows.iter().map(|row| row.share).collect::<Vec<_>>();
    let expected = [share(30, 4096), share(150, 0), None];
    assert_eq!(shares(&imported.jobs), expected);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.parquet");
    jobs::table(&imported.jobs).write_parquet(&path).unwrap();
    assert_eq!(shares(&read_jobs(&path).unwrap().jobs), expected);
    let (workload, _) = into_workload(imported.jobs, Catalog::shipped()).unwrap();
    assert_eq!(workload.jobs[1].request.share, share(150, 0));
}

#[test]
fn a_part_that_no_accelerators_hold_is_refused() {
    let table = |row: &str| {
        let text = format!("job_id,submit_secs,duration_secs,gpus,compute_percent,memory_mib\n{row}\n");
        let jobs = parse_jobs(Path::new("w.csv"), text.into()).unwrap().jobs;
        into_workload(jobs, Catalog::shipped()).map(drop).unwrap_err().1.to_string()
    };
    assert!(table("a,0,60,2,201,0").contains("at most 100 for each of the job's gpus"), "{}", table("a,0,60,2,201,0"));
    let half = "job_id,submit_secs,duration_secs,gpus,compute_percent\na,0,60,1,30\n";
    let error = parse_jobs(Path::new("w.csv"), half.into()).unwrap_err().to_string();
    assert!(error.contains("memory_mib"), "{error}");
}

#[test]
fn pods_of_openb_become_jobs_on_parts() {
    let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
        p0,12000,16384,1,1000,,LS,Running,0,600,0\n\
        p1,6000,12288,1,465,,LS,Running,10,700,20\n\
        p2,6000,12288,0,0,,LS,Running,10,700,20\n\
        p3,6000,12288,1,500,,LS,Pending,10,700,\n\
        p4,6000,12288,8,1000,,LS,Running,30,90,40\n";
    let imported = parse_jobs(Path::new("w.csv"), text.into()).unwrap();
    assert_eq!((imported.format, imported.report.kept, imported.report.refused.count), (WorkloadFormat::Openb, 3, 2));
    let found: Vec<_> = imported.jobs.iter().map(|job| (job.gpus, job.share, job.submit, job.duration)).collect();
    let secs = SimTime::from_secs;
    let expected = [
        (1, None, secs(0), Some(secs(600))),
        (1, share(47, 0), secs(10), Some(secs(680))),
        (8, None, secs(30), Some(secs(50))),
    ];
    assert_eq!(found, expected);
}

#[test]
fn generated_jobs_ask_for_parts_as_often_as_the_weights_say() {
    let parts = vec![synth::CardPart { compute_percent: 30, memory_mib: 4096, weight: 3.0 }];
    let lengths = Lengths { widths: vec![(2, 1.0)], parts, ..Lengths::default() };
    let config = SynthConfig::Diurnal(DiurnalSynth { jobs: 4_000, lengths: Some(lengths), ..DiurnalSynth::default() });
    let jobs = config.generate(Catalog::shipped(), 1).unwrap().jobs;
    let parts: Vec<_> = jobs.iter().filter(|job| job.request.share.is_some()).collect();
    assert!((2_900..3_100).contains(&parts.len()), "{}", parts.len());
    let rigid = |job: &&goodput_env::job::JobSpec| job.request.elasticity == Elasticity::Rigid && job.request.gpus == 1;
    assert!(parts.iter().all(|job| rigid(job) && job.request.share == share(30, 4096)));
}
