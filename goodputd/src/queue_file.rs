//! Queue of a live cluster in a file: what `squeue --json` of Slurm says, or a snapshot as `live plan --record` writes
//! it.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use goodput_console::CommandError;
use goodput_env::cluster::Pool;
use goodput_env::job::{Elasticity, Work};
use goodput_env::time::SimTime;
use goodput_executor::daemon::predict::answer::is_real_clock;
use goodput_executor::engine::slurm::read::{self, RawJob, RawState};
use goodput_executor::engine::{ClusterSnapshot, JobPhase, JobSeen, NodeHealth, NodeSeen};
use serde::Deserialize;

use crate::listings;

/// Jobs of a cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueFile {
    /// Moment of the queue, milliseconds of the Unix epoch; of an engine that is simulated, of its clock.
    pub at_ms: i64,
    /// All nodes, where the file lists nodes; else those that jobs run on. By name: `n2` comes before `n10`.
    pub nodes: Vec<QueueNode>,
    /// Whether the file lists nodes.
    pub lists_nodes: bool,
    /// Jobs that run or may start.
    pub jobs: Vec<FileJob>,
    /// Waiting jobs that may not start yet: a person holds them, or they wait for another job, a time, a limit or a
    /// partition.
    pub left_out: usize,
}

/// Node of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueNode {
    /// Name of the node.
    pub name: String,
    /// Type of its accelerators; empty where the file does not tell.
    pub accelerator: String,
    /// Accelerators that jobs hold or may start on; where the file lists no nodes, those that jobs hold.
    pub gpus: u32,
    /// Whether no job starts there.
    pub closed: bool,
}

/// Job of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileJob {
    /// Key of the job: its number under Slurm.
    pub key: String,
    /// Name of the job.
    pub name: String,
    /// Name of the tenant: the account under Slurm.
    pub tenant: String,
    /// Accelerators that the job asks for.
    pub gpus: u32,
    /// Fewest and most accelerators, where the job is elastic.
    pub elastic: Option<(u32, u32)>,
    /// Priority by the user.
    pub priority: i32,
    /// Time limit, or the run time that the user stated.
    pub limit: Option<SimTime>,
    /// Time since the submission.
    pub age: SimTime,
    /// Run of the job, where it holds accelerators.
    pub run: Option<QueuedRun>,
}

/// Run of a job of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueuedRun {
    /// Time since the start.
    pub ran: SimTime,
    /// Accelerators held, by name of the node.
    pub on: Vec<(String, u32)>,
}

impl QueueFile {
    /// The moment as a date and a time of day, UTC; `None` where the clock is that of a simulated engine.
    pub fn moment(&self) -> Option<String> {
        is_real_clock(self.at_ms).then(|| listings::moment(self.at_ms))
    }
}

/// Reads a queue. Where `squeue` is too old to tell the moment of its list, that is when the file was written.
///
/// # Errors
/// Where the file cannot be read or is neither of the two, where its moment is not known, and where it does not say
/// what a running job holds.
pub fn read(path: &Path) -> Result<QueueFile, CommandError> {
    #[derive(Deserialize)]
    struct Head {
        at_ms: Option<i64>,
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {error}", path.display()))
            .with_help("expected the answer of `squeue --json`, or a snapshot as `live plan --record` writes it")
    };
    let text = fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    let head: Head = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let sorted = |mut queue: QueueFile| {
        queue.nodes.sort_by_key(|node| read::natural(&node.name));
        queue
    };
    if head.at_ms.is_some() {
        return Ok(sorted(of_snapshot(&serde_json::from_str(&text).map_err(|error| unreadable(&error))?)));
    }
    let (jobs, at_ms) = read::queue(&text).map_err(|error| unreadable(&error))?;
    let written = || -> Option<i64> {
        let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    };
    let at_ms = at_ms.or_else(written).ok_or_else(|| {
        CommandError::input(format!("{}: it does not say of which moment it is, nor does its folder", path.display()))
            .with_help("use squeue 23.11 or later, or copy the file to a file system that keeps times of files")
    })?;
    let queue = of_slurm(&jobs, at_ms);
    queue.map(sorted).map_err(|problem| CommandError::input(format!("{}: {problem}", path.display())))
}

fn of_snapshot(snapshot: &ClusterSnapshot) -> QueueFile {
    let held_on = |name: &str, counts: &dyn Fn(&JobSeen) -> bool| -> u32 {
        let jobs = snapshot.jobs.iter().filter(|job| job.phase.holds() && counts(job));
        let on = jobs.flat_map(|job| &job.attempt).flat_map(|attempt| &attempt.placement);
        on.filter(|on| on.node == name).map(|on| on.gpus).sum()
    };
    // What replicas hold is not for jobs. What the jobs of others hold is not in service for the daemon, and is free
    // once they end.
    let for_jobs = |node: &NodeSeen| {
        let all = node.gpus + held_on(&node.name, &|job| job.hands_off);
        (held_on(&node.name, &|_| true) + node.free).min(all)
    };
    let is_for_services = |node: &NodeSeen| {
        let is_lent = node.lent && node.loan.is_none_or(|loan| loan.recall.is_none());
        node.pool == Pool::Inference && !is_lent
    };
    let nodes = snapshot.nodes.iter().map(|node| QueueNode {
        name: node.name.clone(),
        accelerator: node.accelerator.clone(),
        gpus: for_jobs(node),
        closed: node.health != NodeHealth::Up || is_for_services(node),
    });
    let there = snapshot.jobs.iter().filter(|job| !job.phase.is_over());
    // Jobs that were not given to the daemon wait for room as well, unless a person holds them.
    let (left_out, may_start): (Vec<&JobSeen>, Vec<&JobSeen>) =
        there.partition(|job| job.phase == JobPhase::Held && job.hands_off);
    let jobs = may_start.into_iter().map(|seen| {
        let since = |ms: i64| SimTime::from_millis((snapshot.at_ms - ms).max(0));
        let request = &seen.spec.request;
        let estimate = match seen.spec.work {
            Work::Fixed { duration } => Some(duration),
            Work::Application { .. } | Work::Steps { .. } => None,
        };
        let run = seen.attempt.as_ref().filter(|_| seen.phase.holds()).map(|attempt| QueuedRun {
            ran: since(attempt.since_ms),
            on: attempt.placement.iter().map(|on| (on.node.clone(), on.gpus)).collect(),
        });
        FileJob {
            key: seen.key.clone(),
            name: request.name.clone(),
            tenant: seen.tenant.clone(),
            gpus: request.gpus,
            elastic: match request.elasticity {
                Elasticity::Elastic { min, max } => Some((min, max)),
                Elasticity::Rigid => None,
            },
            priority: request.priority,
            limit: request.limit.or(estimate).filter(|limit| *limit > SimTime::ZERO),
            age: since(request.submit.as_millis()),
            run,
        }
    });
    QueueFile {
        at_ms: snapshot.at_ms,
        nodes: nodes.collect(),
        lists_nodes: true,
        jobs: jobs.collect(),
        left_out: left_out.len(),
    }
}

/// The queue of Slurm, or the reason why it cannot be known.
fn of_slurm(jobs: &[RawJob], at_ms: i64) -> Result<QueueFile, String> {
    let mut queue = QueueFile { at_ms, ..QueueFile::default() };
    // A job that runs without accelerators takes none from others.
    let counts = |job: &&RawJob| if job.holds() { !job.held.is_empty() } else { !job.state.is_over() && job.asked > 0 };
    // A job that is leaving its nodes holds nothing in a moment.
    let stays = |job: &&RawJob| matches!(job.state, RawState::Running | RawState::Suspended);
    if let Some(job) = jobs.iter().filter(stays).find(|job| job.asked > 0 && job.held.is_empty()) {
        return Err(format!(
            "job {} runs and asks for {} accelerators, but squeue does not say which accelerators it holds: expected \
             gres_detail (see gres.conf)",
            job.id, job.asked
        ));
    }
    for job in jobs.iter().filter(counts) {
        if job.waits_for_else() {
            queue.left_out += 1;
            continue;
        }
        let waits = !job.holds();
        let since = |ms: i64| SimTime::from_millis((at_ms - ms).max(0));
        let run = (!waits).then(|| QueuedRun {
            ran: since(job.start_ms),
            on: job.held.iter().map(|on| (on.node.clone(), on.gpus)).collect(),
        });
        for ((name, gpus), accelerator) in run.iter().flat_map(|run| &run.on).zip(&job.held_types) {
            match queue.nodes.iter_mut().find(|node| node.name == *name) {
                Some(node) => node.gpus += gpus,
                None => queue.nodes.push(QueueNode {
                    name: name.clone(),
                    accelerator: accelerator.clone(),
                    gpus: *gpus,
                    closed: false,
                }),
            }
        }
        queue.jobs.push(FileJob {
            key: job.id.to_string(),
            name: job.name.clone(),
            tenant: job.account.clone(),
            gpus: run.as_ref().map_or(job.asked, |run| run.on.iter().map(|(_, gpus)| gpus).sum()),
            limit: job.limit_ms.map(SimTime::from_millis),
            age: since(job.submit_ms),
            run,
            ..FileJob::default()
        });
    }
    Ok(queue)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use goodput_env::job::{JobRequest, JobSpec};
    use goodput_executor::engine::{Attempt, LoanSeen, OnNode, RecallSeen};

    use super::*;

    const NOW: i64 = 1_795_536_700;

    fn of_text(text: &str) -> Result<QueueFile, CommandError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queue.json");
        fs::write(&path, text).unwrap();
        read(&path)
    }

    /// Numbers as 24.11 tells them, and as 22.05 does.
    #[test]
    fn the_queue_of_slurm_is_read_without_jobs_that_may_not_start() {
        let new = |number: i64| format!(r#"{{"set":true,"infinite":false,"number":{number}}}"#);
        let old = |number: i64| number.to_string();
        for (number, update) in
            [(&new as &dyn Fn(i64) -> String, format!(r#""last_update":{},"#, new(NOW))), (&old, String::new())]
        {
            let job = |id: u32, state: &str, more: &str| {
                let (priority, submit, limit) = (number(5), number(NOW - 100), number(10));
                format!(
                    r#"{{"job_id":{id},"job_state":"{state}","name":"job{id}","account":"vision","priority":{priority},
                    "submit_time":{submit},"time_limit":{limit},"node_count":1,"start_time":{},{more}}}"#,
                    number(NOW - 40)
                )
            };
            let jobs = [
                job(1, "RUNNING", r#""nodes":"n2","gres_detail":["gpu:a100:4(IDX:0-3)"],"tres_per_job":"gres:gpu:4""#),
                job(2, "PENDING", r#""tres_req_str":"cpu=1,gres/gpu=2,gres/gpu:a100=2","state_reason":"Resources""#),
                job(3, "PENDING", r#""tres_per_job":"gres:gpu:1","state_reason":"Dependency""#),
                job(4, "RUNNING", r#""nodes":"n1","tres_req_str":"cpu=1""#),
                job(5, "COMPLETED", r#""tres_per_job":"gres:gpu:1""#),
                job(6, "PENDING", r#""tres_per_job":"gres:gpu:1","state_reason":"QOSMaxGRESPerUser""#),
                job(7, "COMPLETING", r#""nodes":"n1","tres_per_job":"gres:gpu:1""#),
            ];
            let found = of_text(&format!(r#"{{"errors":[],{update}"jobs":[{}]}}"#, jobs.join(","))).unwrap();
            let keys: Vec<&str> = found.jobs.iter().map(|job| job.key.as_str()).collect();
            assert_eq!((keys, found.left_out), (vec!["1", "2"], 2));
            let [runs, waits] = &found.jobs[..] else { panic!("{found:?}") };
            assert_eq!((runs.gpus, waits.gpus, waits.limit), (4, 2, Some(SimTime::from_secs(600))));
            assert_eq!((waits.tenant.as_str(), waits.name.as_str(), &waits.run), ("vision", "job2", &None));
            assert_eq!(runs.run.as_ref().unwrap().on, [("n2".to_owned(), 4)]);
            if update.is_empty() {
                // The file was written a moment ago.
                assert!(found.at_ms > 1_700_000_000_000, "{}", found.at_ms);
            } else {
                assert_eq!(found.moment().as_deref(), Some("2026-11-24 16:11"));
                assert_eq!((found.at_ms, waits.age), (1000 * NOW, SimTime::from_secs(100)));
                assert_eq!(runs.run.as_ref().unwrap().ran, SimTime::from_secs(40));
            }
            let (name, accelerator) = ("n2".to_owned(), "a100".to_owned());
            assert_eq!(found.nodes, [QueueNode { name, accelerator, gpus: 4, closed: false }]);
            assert!(!found.lists_nodes);
        }
    }

    /// As `squeue` tells jobs where it hides what they hold.
    #[test]
    fn a_running_job_without_its_accelerators_is_refused() {
        let told = |state: &str| {
            let job = format!(r#"{{"job_id":12,"job_state":"{state}","nodes":"n1","tres_per_job":"gres:gpu:4"}}"#);
            of_text(&format!(r#"{{"errors":[],"jobs":[{job}]}}"#))
        };
        for state in ["RUNNING", "SUSPENDED"] {
            let problem = told(state).unwrap_err();
            let words = "job 12 runs and asks for 4 accelerators, but squeue does not say which accelerators it holds";
            assert!(problem.message().contains(words), "{}", problem.message());
        }
        assert!(told("COMPLETING").unwrap().jobs.is_empty());
    }

    #[test]
    fn a_recorded_snapshot_is_read() {
        let job = |name: &str, limit: Option<i64>| {
            let (submit, limit) = (SimTime::from_millis(1000), limit.map(SimTime::from_secs));
            let request = JobRequest { name: name.into(), gpus: 4, submit, limit, ..JobRequest::default() };
            JobSeen::held(name, JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(60) } })
        };
        let on = |node: &str| {
            let placement = vec![OnNode { node: node.into(), gpus: 4, ..OnNode::default() }];
            Some(Attempt { placement, since_ms: 5000, ..Attempt::default() })
        };
        let node = |name: &str, free: u32| NodeSeen { name: name.into(), gpus: 8, free, ..NodeSeen::default() };
        let services = |name: &str| NodeSeen { pool: Pool::Inference, ..node(name, 8) };
        let recall = Some(RecallSeen::default());
        let snapshot = ClusterSnapshot {
            at_ms: 9000,
            nodes: vec![
                node("n10", 8),
                node("n1", 4),
                NodeSeen { health: NodeHealth::Drained, ..node("n2", 8) },
                // A replica holds three, which the snapshot tells by what is free.
                node("n3", 5),
                // A job that was not given to the daemon holds four of eight, and two of the others are free.
                NodeSeen { gpus: 4, ..node("n4", 2) },
                services("n5"),
                NodeSeen { lent: true, ..services("n6") },
                NodeSeen { lent: true, loan: Some(LoanSeen { recall, ..LoanSeen::default() }), ..services("n7") },
            ],
            jobs: vec![
                JobSeen { phase: JobPhase::Running, attempt: on("n1"), ..job("runs", Some(100)) },
                job("waits", None),
                JobSeen { phase: JobPhase::Released, hands_off: true, ..job("sbatch", None) },
                JobSeen { phase: JobPhase::Running, hands_off: true, attempt: on("n4"), ..job("other", None) },
                JobSeen { hands_off: true, ..job("held", None) },
                JobSeen { phase: JobPhase::Done, ..job("over", None) },
            ],
            ..ClusterSnapshot::default()
        };
        let found = of_text(&serde_json::to_string(&snapshot).unwrap()).unwrap();
        assert_eq!((found.at_ms, found.left_out, found.lists_nodes, found.moment()), (9000, 1, true, None));
        assert_eq!(
            found.nodes.iter().map(|node| (node.name.as_str(), node.gpus, node.closed)).collect::<Vec<_>>(),
            [
                ("n1", 8, false),
                ("n2", 8, true),
                ("n3", 5, false),
                ("n4", 6, false),
                ("n5", 8, true),
                ("n6", 8, false),
                ("n7", 8, true),
                ("n10", 8, false),
            ]
        );
        let [runs, waits, sbatch, other] = &found.jobs[..] else { panic!("{found:?}") };
        assert_eq!((sbatch.key.as_str(), &sbatch.run, other.run.is_some()), ("sbatch", &None, true));
        assert_eq!(runs.run, Some(QueuedRun { ran: SimTime::from_secs(4), on: vec![("n1".into(), 4)] }));
        assert_eq!((runs.limit, waits.limit), (Some(SimTime::from_secs(100)), Some(SimTime::from_secs(60))));
        assert_eq!((waits.age, &waits.run), (SimTime::from_secs(8), &None));
    }

    #[test]
    fn what_is_no_queue_is_refused() {
        for text in ["", "jobs", r#"{"nodes":[]}"#, r#"{"at_ms":7,"jobs":7}"#] {
            let problem = of_text(text).unwrap_err();
            assert!(problem.message().contains("queue.json"), "{text}: {}", problem.message());
        }
    }
}
