//! Memory of the daemon over 5,000 jobs on a private Slurm of 64 nodes with eight accelerators each: real processes of about a second.
//! `GOODPUT_JOBS` is the number of jobs.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "site/mod.rs"]
mod site;

use std::time::Instant;

use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::time::SimTime;
use site::Site;

/// Most jobs that wait or run at a time.
const ACTIVE: u64 = 300;
/// Handed in between two cycles at most.
const AT_ONCE: u64 = 25;

fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0 / f64::from(1 << 20)
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn main() {
    let jobs: u64 = std::env::var("GOODPUT_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(5000);
    let site = Site::slurm(64, 8);
    let mut daemon = site.daemon(site.engine(), "[policy]\nname = \"fifo\"\n[cycle]\npoll_secs = 0.1\n");
    let ended = || std::fs::metadata(site.place().join("ended")).map_or(0, |data| data.len());
    let runtime = site::runtime();
    let (mut submitted, mut told) = (0, 0);
    println!("| jobs ended | minutes | resident (MiB) | open files | journal (KiB) |\n|---|---|---|---|---|");
    let began = Instant::now();
    while ended() < jobs {
        runtime.block_on(async {
            let more = (ended() + ACTIVE).min(jobs).min(submitted + AT_ONCE);
            while submitted < more {
                let gpus = 1 + (submitted % 4) as u32;
                let request = JobRequest { name: format!("job-{submitted}"), gpus, ..JobRequest::default() };
                let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(1) } };
                let mut submission = site.submission(&job, 1.0);
                submission.command = ["/bin/sh", "-c", "sleep 1; echo >> $DIR/ended"].map(Into::into).into();
                daemon.submit("soak", &submission).await.unwrap();
                submitted += 1;
            }
            daemon.cycle().await.unwrap();
        });
        if ended() >= told || ended() == jobs {
            told = ended() + jobs / 10;
            let journal = std::fs::metadata(daemon.journal().path()).map_or(0, |data| data.len() >> 10);
            let minutes = began.elapsed().as_secs_f64() / 60.0;
            println!("| {} | {minutes:.1} | {:.1} | {} | {journal} |", ended(), resident_mib(), open_files());
        }
    }
}
