//! Predicted start in the queue of a real cluster at one moment: the trace is its past.

use std::sync::Arc;

use goodput_agents::futures::RunTimeHistory;
use goodput_agents::start_time::StartQuestion;
use goodput_env::cluster::NodeId;
use goodput_env::job::{JobId, JobRequest, JobSpec, Work, Workload};
use goodput_env::model::SwitchCost;
use goodput_env::placement::Placement;
use goodput_env::scenario::SimOptions;
use goodput_env::state::{Observed, ObservedJob, Phase, Trigger};
use goodput_env::time::SimTime;

use super::answer::{AskedScene, StartAnswer, later_half};
use super::check::submitted;
use super::replay::{StartError, StartStudy};

/// Seed of the futures of a queue.
const SEED: u64 = 0x71;

/// Jobs of a real cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenQueue {
    /// Jobs that wait or run, in any order.
    pub jobs: Vec<SeenJob>,
    /// By node of the cluster: its name; shorter where nodes have none.
    pub nodes: Vec<String>,
    /// By node of the cluster: accelerators that jobs hold or may start on; shorter where all are in service.
    pub service: Vec<u32>,
}

/// Job of a real cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenJob {
    /// Request of the job; its time of submission is not read.
    pub request: JobRequest,
    /// Time since its submission.
    pub age: SimTime,
    /// Run of the job, where it holds accelerators.
    pub run: Option<RunningSeen>,
}

/// Run of a job that holds accelerators.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunningSeen {
    /// Time since its start.
    pub ran: SimTime,
    /// Accelerators held by node.
    pub on: Vec<(NodeId, u32)>,
}

/// Job that is asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedJob {
    /// Waiting job of the queue, by its place in the list.
    Waits(usize),
    /// Job that is submitted now.
    New(JobRequest),
}

impl StartStudy {
    /// Start of a job in `queue`, which is taken for the cluster at the moment `now` of the trace. Run times and
    /// arrivals are drawn from the jobs of the trace until then, and `past` predictions on the trace calibrate the
    /// interval. Where the trace ends by `now`, all its jobs have ended.
    ///
    /// # Errors
    /// [`StartError`] where the policy cannot be told enough, or a run fails, as it does where jobs hold more
    /// accelerators than a node has.
    pub fn answer_queue(
        &self,
        queue: &SeenQueue,
        asked: &AskedJob,
        now: SimTime,
        past: usize,
        progress: &dyn Fn(u64, u64),
    ) -> Result<StartAnswer, StartError> {
        let mut jobs: Vec<(SeenJob, bool)> = queue.jobs.iter().map(|job| (job.clone(), false)).collect();
        match asked {
            AskedJob::Waits(place) => jobs[*place].1 = true,
            AskedJob::New(request) => jobs.push((SeenJob { request: request.clone(), ..SeenJob::default() }, true)),
        }
        let unlimited: Vec<_> = jobs.iter().filter(|(job, _)| job.request.limit.is_none()).collect();
        if let [(job, is_asked), ..] = unlimited[..]
            && self.plans_by_run_times()
        {
            let (policy, job, count) = (self.policy.to_string(), job.request.name.clone(), unlimited.len());
            let of_queue = StartError::QueueLimit { policy: policy.clone(), job, count };
            return Err(if *is_asked { StartError::Limit { policy } } else { of_queue });
        }
        // The sort is stable, and a job that is submitted now comes last.
        jobs.sort_by_key(|(job, _)| std::cmp::Reverse(job.age));

        let count = submitted(&self.workload, now);
        let trace = Arc::new(Workload { jobs: self.workload.jobs[..count].to_vec(), ..(*self.workload).clone() });
        let before = Self { workload: trace.clone(), ..self.clone() };
        let waiting: Vec<_> = before.waiting(0)?.into_iter().filter(|(_, at)| *at < now).collect();
        let (mut replay, calibration) =
            before.calibrated(&trace, &later_half(&waiting, past), now, |_| true, progress)?;
        let history = match count == self.workload.jobs.len() {
            true => {
                let mut history = RunTimeHistory::default();
                trace.jobs.iter().for_each(|job| history.add(job));
                history
            }
            false => {
                replay.learn();
                replay.history
            }
        };

        let seen = self.observed(queue, &jobs, now);
        // Of the work of a job nothing is read but its kind.
        let spec = |(job, _): &(SeenJob, bool)| JobSpec {
            request: JobRequest { submit: now - job.age, ..job.request.clone() },
            work: Work::Fixed { duration: SimTime::from_secs(3600) },
        };
        let workload = Workload { jobs: jobs.iter().map(spec).collect(), ..(*trace).clone() };
        let job = JobId::at(jobs.iter().position(|(_, asked)| *asked).unwrap_or_default());
        // The run times of the past hold what starts took.
        let options = SimOptions { switch_cost: SwitchCost::Zero, ..self.options(&*self.made())? };
        let question = StartQuestion::new(&workload, &history, &seen, &options, job, SEED);
        let question = question.map(|question| question.with_arrivals_of(&trace).telling_limits());
        let futures = question.map(|question| self.futures_of(&question)).transpose()?;
        let scene = AskedScene { workload: &workload, seen: &seen, job, nodes: &queue.nodes };
        Ok(self.describe(&scene, futures, &calibration))
    }

    /// The queue as an observation of the cluster.
    fn observed(&self, queue: &SeenQueue, jobs: &[(SeenJob, bool)], now: SimTime) -> Observed {
        let mut cluster = (*self.cluster).clone();
        let mut held = vec![0; cluster.nodes.len()];
        let observed = jobs.iter().enumerate().map(|(at, (job, _))| {
            let id = JobId::at(at);
            let Some(run) = &job.run else { return ObservedJob::submitted(id, now - job.age) };
            let mut placement = Placement::none();
            for &(node, gpus) in &run.on {
                placement.push(node, gpus);
                held[node.index()] += gpus;
            }
            let started = now - run.ran;
            ObservedJob {
                phase: Phase::Running,
                attained_gpu_millis: i64::from(placement.gpus()) * run.ran.as_millis(),
                placement,
                started: Some(started),
                changed: started,
                executed: run.ran,
                done: run.ran.as_secs_f64(),
                ..ObservedJob::submitted(id, started)
            }
        });
        let jobs = observed.collect();
        cluster.nodes.iter_mut().zip(&queue.service).for_each(|(node, service)| node.gpus = *service);
        let idle = cluster.nodes.iter().zip(&held).map(|(node, held)| node.gpus.saturating_sub(*held)).collect();
        Observed {
            now,
            trigger: Trigger { arrival: true, ..Trigger::default() },
            down: Vec::new(),
            idle,
            loans: Vec::new(),
            jobs,
            services: Vec::new(),
            cluster,
        }
    }
}
