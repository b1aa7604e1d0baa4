//! Copies of an experiment with another load, another length, another size of the cluster or another switching cost.

use goodput_datasets::synth::SynthConfig;

use super::Experiment;
use crate::scenario::WorkloadConfig;

impl Experiment {
    /// Copy of the experiment with `load` times as many jobs, and arrivals for as long.
    #[must_use]
    pub fn at_load(&self, load: f64) -> Self {
        let mut scaled = self.clone();
        let times = |jobs: u32| (f64::from(jobs) * load).round().max(1.0) as u32;
        match &mut scaled.workload {
            WorkloadConfig::Synthetic(SynthConfig::Pollux(synth)) => synth.jobs = times(synth.jobs),
            WorkloadConfig::Synthetic(SynthConfig::Diurnal(synth)) => {
                synth.jobs = times(synth.jobs);
                synth.jobs_per_hour *= load;
            }
            WorkloadConfig::File(_) | WorkloadConfig::Bursts(_) => {}
        }
        scaled
    }

    /// Copy of the experiment with jobs that arrive for `share` of the time, as many in an hour as before.
    #[must_use]
    pub fn at_horizon(&self, share: f64) -> Self {
        let mut cut = self.clone();
        let part = |number: u32| (f64::from(number) * share).round().max(1.0) as u32;
        match &mut cut.workload {
            WorkloadConfig::Synthetic(SynthConfig::Pollux(synth)) => {
                let hours = part(synth.hours);
                let share = f64::from(hours) / f64::from(synth.hours.max(1));
                (synth.hours, synth.jobs) = (hours, (f64::from(synth.jobs) * share).round().max(1.0) as u32);
            }
            WorkloadConfig::Synthetic(SynthConfig::Diurnal(synth)) => synth.jobs = part(synth.jobs),
            WorkloadConfig::File(_) | WorkloadConfig::Bursts(_) => {}
        }
        cut
    }

    /// Copy of the experiment with `size` times as many nodes in each group, at least one, and with as many times the
    /// jobs as there are accelerators then.
    #[must_use]
    pub fn at_size(&self, size: f64) -> Self {
        let mut sized = self.clone();
        for group in &mut sized.cluster.groups {
            group.nodes = (f64::from(group.nodes) * size).round().max(1.0) as u32;
        }
        sized.at_load(f64::from(sized.accelerators()) / f64::from(self.accelerators()))
    }

    /// Copies of the experiment, one for each of `train.switch_costs`; where there are none, the experiment as it is.
    #[must_use]
    pub fn at_switch_costs(&self) -> Vec<Self> {
        let at = |cost: &String| {
            let mut copy = self.clone();
            copy.environment.switch_cost.clone_from(cost);
            copy
        };
        let copies: Vec<Self> = self.train.switch_costs.iter().map(at).collect();
        if copies.is_empty() { vec![self.clone()] } else { copies }
    }

    /// Least and largest number of accelerators of the clusters that training meets.
    pub fn trained_accelerators(&self) -> [u32; 2] {
        let own = [self.accelerators(); 2];
        if self.train.sizes.is_empty() {
            return own;
        }
        let met = self.train.sizes.iter().map(|&size| self.at_size(size).accelerators());
        met.fold([u32::MAX, 0], |[low, high], met| [low.min(met), high.max(met)])
    }

    fn accelerators(&self) -> u32 {
        self.cluster.groups.iter().map(|group| group.nodes.saturating_mul(group.gpus_per_node)).sum::<u32>().max(1)
    }
}
