//! The foresight probe.
//!
//! It is the operator of `lookahead` on the true future. From time to time the run is cloned for every policy and
//! played to its very end with the true arrivals and the true work, and the policy under which jobs spend the least
//! time goes on until the next look. That is one step of policy improvement (Bertsekas and Castanon, Journal of
//! Heuristics 5, 1999) with perfect foresight. It is a reference and no policy: it reads what no scheduler can know,
//! and there is no name by which it could be run.

use std::sync::Arc;

use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::scenario::{Information, Scenario, SimOptions};
use goodput_env::sim::{Simulator, Status};
use goodput_env::time::SimTime;

use crate::run::PolicyEntry;

/// Time between two looks of the probe.
const EVERY: SimTime = SimTime::from_secs(1800);

/// A policy that the probe may play, with the knowledge that it is shown.
struct ProbePlayer<'a> {
    entry: &'a PolicyEntry,
    information: Information,
}

impl ProbePlayer<'_> {
    fn decide(&self, run: &Simulator, policy: &mut dyn Policy) -> Plan {
        let mut view = run.view();
        view.information = self.information;
        policy.decide(&view)
    }

    /// Integral of the number of jobs over the rest of `run` under this policy; `None` where it exceeds `most`, or the
    /// policy cannot go on.
    fn to_the_end(&self, mut run: Simulator, seed: u64, most: i64) -> Option<i64> {
        let mut policy = (self.entry.make)(seed);
        while run.run_until_decision().ok()? == Status::Decision {
            if run.job_millis() > most {
                return None;
            }
            run.apply(&self.decide(&run, &mut *policy)).ok()?;
            run.wake_at(policy.wake_at());
        }
        complete(&run).then(|| run.job_millis())
    }
}

/// Whether no job was refused: a job that is sent away costs no more time, and the policy would seem fast.
fn complete(run: &Simulator) -> bool {
    run.records().iter().all(|job| job.refused.is_none())
}

/// Whether the probe may play a policy: none with conventions of its own, because a clone of the run keeps those of
/// the run.
fn may_play(entry: &PolicyEntry, options: &SimOptions) -> bool {
    entry.batching.is_none_or(|own| own == options.batching) && entry.rounds.is_none_or(|own| own == options.rounds)
}

/// Mean completion time of the probe over the policies `entries` on `scenario`, seconds; `None` where the run fails, no
/// policy can be played, or the cluster has services.
pub(super) fn play(scenario: &Arc<Scenario>, entries: &[&PolicyEntry], seed: u64) -> Option<f64> {
    let usual = scenario.options.information;
    let players: Vec<ProbePlayer<'_>> = entries
        .iter()
        .filter(|entry| may_play(entry, &scenario.options))
        .map(|entry| ProbePlayer { entry, information: entry.information.unwrap_or(usual) })
        .collect();
    if players.is_empty() || !scenario.workload.services.is_empty() {
        return None;
    }
    // Estimates have the error of the first policy that is given any.
    let information = entries.iter().find_map(|entry| entry.information).unwrap_or(usual);
    let options = SimOptions { information, ..scenario.options.clone() };
    let scenario = Arc::new(Scenario { options, ..(**scenario).clone() });
    let mut run = Simulator::new(scenario);
    let (mut next_look, mut played) = (SimTime::ZERO, (0, (players[0].entry.make)(seed)));
    while run.run_until_decision().ok()? == Status::Decision {
        if run.now() >= next_look {
            let mut least = i64::MAX;
            let mut best = played.0;
            for (at, player) in players.iter().enumerate() {
                if let Some(cost) = player.to_the_end(run.clone(), seed, least).filter(|cost| *cost < least) {
                    (best, least) = (at, cost);
                }
            }
            // The best starts anew, as it was played to the end.
            played = (best, (players[best].entry.make)(seed));
            next_look = run.now() + EVERY;
        }
        let plan = players[played.0].decide(&run, &mut *played.1);
        run.apply(&plan).ok()?;
        run.wake_at(played.1.wake_at());
    }
    let jobs = run.records().len().max(1);
    complete(&run).then(|| run.job_millis() as f64 / 1e3 / jobs as f64)
}

#[cfg(test)]
mod tests {
    use goodput_agents::compose::by_name;
    use goodput_env::cluster::Cluster;
    use goodput_env::job::{JobRequest, JobSpec, Work, Workload};
    use goodput_env::scenario::Rounds;

    use super::*;

    fn job(submit: i64, secs: i64) -> JobSpec {
        let request = JobRequest { submit: SimTime::from_secs(submit), ..JobRequest::default() };
        JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(secs) } }
    }

    fn entry(name: &'static str) -> PolicyEntry {
        PolicyEntry::new(name, move |seed| by_name(name, seed).expect("a published policy"))
    }

    /// Long jobs and short ones on one accelerator: what is best depends on what comes.
    #[test]
    fn a_probe_is_as_good_as_the_best_of_its_policies() {
        let long = (0..4).map(|at| job(0, 3000 + 500 * at));
        let short = (0..20).map(|at| job(50 + 400 * at, 200));
        let workload = Workload::new(Vec::new(), long.chain(short).collect());
        let options = SimOptions { information: Information::Oracle, ..SimOptions::standard() };
        let scenario = Arc::new(Scenario::new(Arc::new(Cluster::homogeneous(1, 1)), Arc::new(workload), options, 3));
        let alone = |name| play(&scenario, &[&entry(name)], 3).expect("it can be played");
        let (fifo, srtf) = (alone("fifo"), alone("srtf"));
        let both = play(&scenario, &[&entry("fifo"), &entry("srtf")], 3).expect("it can be played");
        assert!(both <= fifo.min(srtf) + 1e-6, "{both} {fifo} {srtf}");
        // Without a policy that it may play there is no probe.
        let own_rounds = PolicyEntry { rounds: Some(Rounds { period: None, on_churn: true }), ..entry("fifo") };
        assert_eq!(play(&scenario, &[&own_rounds], 3), None);
    }
}
