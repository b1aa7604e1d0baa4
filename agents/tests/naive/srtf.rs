//! Shortest remaining time first by one sort of all jobs at every decision, for comparison.

use goodput_agents::heuristic::srtf::Shortest;
use goodput_agents::placement::{Free, Packer};
use goodput_env::placement::Placement;
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::view::{ClusterView, JobView};

pub struct NaiveSrtf(pub Shortest);

impl NaiveSrtf {
    fn key(&self, job: &JobView<'_>) -> f64 {
        let gpus = job.request().gpus;
        let secs = job.remaining_secs(gpus);
        match self.0 {
            Shortest::Service => secs.map_or(f64::INFINITY, |secs| secs * f64::from(gpus)),
            _ => secs.unwrap_or(f64::INFINITY),
        }
    }
}

impl Policy for NaiveSrtf {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut jobs: Vec<JobView<'_>> = view.jobs().collect();
        jobs.sort_by_key(|job| (self.key(job).to_bits(), job.id()));
        let mut left = view.total_free() + jobs.iter().map(JobView::gpus).sum::<u32>();
        let (mut plan, mut free, mut starting) = (Plan::keep(), Free::default(), Vec::new());
        free.reset(view);
        for job in &jobs {
            let asked = job.request().gpus;
            let gpus = if asked <= left { asked } else { 0 };
            left -= gpus;
            if gpus == job.gpus() {
                continue;
            }
            free.release(&job.state.placement);
            match gpus {
                0 => plan.set(job.id(), Placement::none()),
                _ => starting.push(job),
            }
        }
        for job in starting {
            let asked = job.request().gpus;
            let placed = Packer::FewestNodes.place_most(view.cluster(), &mut free, &job.state.placement, asked, asked);
            plan.set(job.id(), placed.unwrap_or_default());
        }
        plan
    }
}
