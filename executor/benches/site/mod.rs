//! A private Slurm with jobs that say when they begin and end.
#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "shared by benchmarks that each use a part of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_configs::reader;
use goodput_env::job::{JobSpec, Work};
use goodput_env::tenant::Tenants;
use goodput_executor::daemon::{self, Daemon};
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_executor::engine::{Engine, Submission};
use goodput_testkit::slurm::PrivateCluster;

/// Does accelerator-milliseconds of work in one nap, so that many of them do not keep the machine
/// busy; checkpoints when told to stop.
const JOB: &str = r#"#!/bin/sh
gpus=${SCHED_GPUS:-$WORLD_SIZE}; state=$DIR/$SCHED_JOB_ID.ckpt; log=$DIR/$SCHED_JOB_ID.log
if [ ${NODE_RANK:-0} != 0 ]; then
  trap 'exit 143' TERM
  until grep -q ^end $log 2>/dev/null; do sleep 0.05; done
  exit 0
fi
base=$(cat $state 2>/dev/null || echo 0)
begun=$(date +%s%3N)
echo "start $begun $SCHED_ATTEMPT $gpus" >> $log
# A signal to the group ends the nap, and may end `date`: it is asked again.
clock() { now=; while [ -z "$now" ]; do now=$(date +%s%3N); done; did=$(( base + (now - begun) * gpus )); }
trap 'clock; echo $did > $state.new; mv $state.new $state; echo "stop $now" >> $log; exit 143' TERM
while clock; left=$(( (WORK - did) / gpus )); [ $left -gt 0 ]; do
  sleep $((left / 1000)).$(printf %03d $((left % 1000))) &
  wait $!
done
echo "end $(date +%s%3N)" >> $log
"#;

/// Folder of the logs of jobs, and the cluster that runs them.
pub struct Site<M> {
    pub machines: M,
    directory: tempfile::TempDir,
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn now_ms() -> i64 {
    goodput_executor::machine::wall_ms()
}

impl Site<PrivateCluster> {
    pub fn slurm(nodes: u32, gpus: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cluster = PrivateCluster::start(&directory.path().join("slurm"), nodes, gpus, "a100", 5).unwrap();
        Self::with(cluster, directory)
    }

    pub fn engine(&self) -> SlurmEngine {
        let key = FactsKey::in_directory(&self.directory.path().join("state")).unwrap();
        SlurmEngine::new(&self.machines.settings(), key)
    }
}

impl<M> Site<M> {
    pub fn with(machines: M, directory: tempfile::TempDir) -> Self {
        std::fs::write(directory.path().join("job.sh"), JOB).unwrap();
        Self { machines, directory }
    }

    pub fn daemon<E: Engine>(&self, engine: E, text: &str) -> Daemon<E> {
        let state = self.directory.path().join("state");
        let text = format!(
            "mode = \"act\"\n{text}\n[engine.slurm]\n[reliance]\ntimeout_ms = 5000\nfallback = \"smallest-first\"\n[state]\ndirectory = {:?}\n[api]\nlisten = \"\"\n",
            state.display().to_string()
        );
        let settings = reader::parse("bench.toml", &text).unwrap();
        daemon::open(engine, settings, Vec::new(), Arc::new(Tenants::default())).unwrap()
    }

    /// Folder into which jobs write their logs.
    pub fn place(&self) -> &Path {
        self.directory.path()
    }

    /// A job of the trace, `speedup` times as fast.
    pub fn submission(&self, job: &JobSpec, speedup: f64) -> Submission {
        let Work::Fixed { duration } = job.work else { panic!("only durations") };
        let place = self.directory.path().display().to_string();
        let work = duration.as_millis() as f64 / speedup * f64::from(job.request.gpus);
        Submission {
            environment: [
                ("DIR", place.clone()),
                ("WORK", format!("{work:.0}")),
                ("PATH", std::env::var("PATH").unwrap()),
            ]
            .map(|(name, value)| (name.to_string(), value))
            .into(),
            directory: Some(PathBuf::from(&place)),
            checkpoint_dir: Some(self.directory.path().join("checkpoints")),
            grace_s: 5,
            ..Submission::new(job.clone(), vec!["/bin/sh".into(), format!("{place}/job.sh")])
        }
    }

    /// Log of a job: `start`, `stop` or `end`, and the time.
    pub fn log(&self, key: &str) -> Vec<(String, i64)> {
        let text = std::fs::read_to_string(self.directory.path().join(format!("{key}.log"))).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ');
            Some((words.next()?.to_string(), words.next()?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }

    /// Time of the first line of the job's program.
    pub fn first_line(&self, key: &str) -> Option<i64> {
        Some(self.log(key).first()?.1)
    }

    /// End of a job, and number of its starts.
    pub fn witness(&self, key: &str) -> (i64, u32) {
        let log = self.log(key);
        let starts = log.iter().filter(|(what, _)| what == "start").count() as u32;
        (log.iter().find(|(what, _)| what == "end").unwrap().1, starts)
    }

    /// Jobs that have ended.
    pub fn ended(&self) -> usize {
        let files = std::fs::read_dir(self.directory.path()).unwrap().filter_map(Result::ok).map(|entry| entry.path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.filter(|path| {
            std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| line.starts_with("end")))
        })
        .count()
    }
}
