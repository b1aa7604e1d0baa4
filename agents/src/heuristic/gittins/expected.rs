//! Shortest expected remaining processing time (SERPT), over accelerator time: the mean of what is
//! left of longer jobs decides.
//!
//! SERPT looks only at means: with heavy tails an old job looks long for ever, and the order is
//! close to least attained service.

use goodput_env::job::JobId;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::time::SimTime;
use goodput_env::view::{ClusterView, JobView};

use super::{ArtifactTable, LengthSample};
use crate::heuristic::srtf::{AcceleratorDemand, Admission, keep_line};

/// SERPT over a cluster. Ties are broken by (submission, id), and jobs older than all samples go
/// last.
#[derive(Clone, Debug, Default)]
pub struct Serpt {
    experience: LengthSample,
    admission: Admission,
    /// Jobs as of the last decision.
    known: Vec<JobExpectation>,
    decided: SimTime,
    keyed: Vec<(u64, AcceleratorDemand)>,
    asks: Vec<AcceleratorDemand>,
}

#[derive(Clone, Copy, Debug)]
struct JobExpectation {
    job: JobId,
    /// GPU-milliseconds received until the last decision.
    attained: i64,
    /// Accelerators held since then.
    held: u32,
}

impl Serpt {
    /// A policy that begins with `experience`, GPU-seconds.
    pub fn new(experience: LengthSample) -> Self {
        Self { experience, ..Self::default() }
    }
}

impl Policy for Serpt {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        for known in self.known.iter().filter(|known| view.job(known.job).is_none()) {
            let since = (view.now - self.decided).as_millis() * i64::from(known.held);
            self.experience.learn((known.attained + since) as f64 / 1000.0);
        }
        self.decided = view.now;
        let sample = self.experience.sample();
        self.keyed.clear();
        self.keyed.extend(view.jobs().map(|job| {
            let remaining = sample.mean_remaining(job.attained_gpu_millis() as f64 / 1000.0);
            let key = if remaining > 0.0 || sample.count() == 0.0 { remaining } else { f64::INFINITY };
            // Floats that are not negative sort as their bits do.
            (key.to_bits(), ask(&job))
        }));
        self.keyed.sort_unstable_by_key(|(key, ask)| (*key, ask.job));
        self.asks.clear();
        self.asks.extend(self.keyed.iter().map(|(_, ask)| *ask));
        let known = &mut self.known;
        known.clear();
        self.admission.admit(view, &self.asks, |job, held| {
            let attained = view.job(job).map_or(0, |job| job.attained_gpu_millis());
            known.push(JobExpectation { job, attained, held });
        })
    }
}

fn ask(job: &JobView<'_>) -> AcceleratorDemand {
    AcceleratorDemand { job: job.id(), min: job.request().gpus, max: job.request().gpus, held: job.gpus() }
}

/// `shortest-expected` of the Tiresias simulator, for reproduction only.
///
/// The simulator writes the expectation of every running job to the job that was submitted last. So
/// that job alone changes its place, and the others keep the place that they had on arrival. It
/// also takes the mean of whole lengths, not of what is left of them, and compares GPU-seconds with
/// seconds.
#[derive(Clone, Debug)]
pub struct SerptArtifact {
    table: ArtifactTable,
    admission: Admission,
    line: Vec<JobId>,
    keyed: Vec<(f64, AcceleratorDemand)>,
    asks: Vec<AcceleratorDemand>,
    /// Expected length of each job of the workload, seconds, by id.
    expected: Vec<f64>,
    last: Option<JobId>,
}

impl SerptArtifact {
    /// A policy with the simulator's table.
    pub fn new(table: ArtifactTable) -> Self {
        Self {
            table,
            admission: Admission::default(),
            line: Vec::new(),
            keyed: Vec::new(),
            asks: Vec::new(),
            expected: Vec::new(),
            last: None,
        }
    }
}

impl Policy for SerptArtifact {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        keep_line(&mut self.line, view);
        self.expected.resize(view.workload_len(), self.table.mean_length_above(0));
        self.last = view.jobs().next_back().map(|job| job.id()).max(self.last);
        let mut running = self.line.iter().filter_map(|&job| view.job(job)).filter(|job| job.gpus() > 0);
        if let (Some(job), Some(last)) = (running.next_back(), self.last) {
            self.expected[last.index()] = self.table.mean_length_above(job.executed().as_millis() / 1000);
        }
        self.keyed.clear();
        let jobs = self.line.iter().filter_map(|&job| view.job(job));
        self.keyed.extend(jobs.map(|job| (self.expected[job.id().index()], ask(&job))));
        self.keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.asks.clear();
        self.asks.extend(self.keyed.iter().map(|(_, ask)| *ask));
        self.line.clear();
        self.line.extend(self.asks.iter().map(|ask| ask.job));
        self.admission.admit(view, &self.asks, |_, _| {})
    }
}
