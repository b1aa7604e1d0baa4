//! Drill 16: many short jobs on a private Slurm of 64 nodes with eight accelerators each, while the
//! daemon and slurmctld are killed again and again. No job is lost, none runs twice at once, and
//! what the daemon holds of files and journal does not grow; without kills nor does its memory.
//!
//! The daemon is a process of its own, jobs go in through its interface. `GOODPUT_JOBS` is the
//! number of jobs (5000), `GOODPUT_KILLS` how often the daemon is killed (once in 50 jobs),
//! `GOODPUT_CONTROLLERS` how often slurmctld (once in 200).
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "site/mod.rs"]
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::engine::EngineConfig;
use goodput_configs::reader;
use goodput_env::job::{JobRequest, JobSpec, Work};
use goodput_env::seed::{Stream, rng};
use goodput_env::tenant::Tenants;
use goodput_env::time::SimTime;
use goodput_executor::daemon::durability::journal::Journal;
use goodput_executor::daemon::interface::api::{self, hash};
use goodput_executor::daemon::interface::audit;
use goodput_executor::daemon::open;
use goodput_executor::engine::slurm::{FactsKey, SlurmEngine};
use goodput_testkit::slurm::PrivateCluster;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rand::RngExt;
use site::Site;

/// Most jobs that wait or run at a time.
const ACTIVE: usize = 300;
/// Handed in at once.
const AT_ONCE: usize = 24;
const TOKEN: &str = "soak";
/// Without the end of any job for so long, they are lost: longer than an order is waited for (300
/// s), after which its job is placed elsewhere.
const PATIENCE: Duration = Duration::from_secs(400);
/// Most that slurmctld forgets of what it has confirmed, seconds before its death.
const FORGETTING: f64 = 10.0;
/// From slurmctld's order to start a job to the job's first word, seconds, where slurmctld's log does not tell.
const LAUNCH: f64 = 2.0;

/// A lock says whether the job runs twice: the kernel takes it back when the process dies, however
/// it does. Its first node speaks for the job.
const JOB: &str = r#"[ "$NODE_RANK" -eq 0 ] || exec sleep 1
exec 9>>"$DIR/locks/$NAME"
say() { echo "$1 $NAME $SCHED_ATTEMPT $(date +%s.%N) $SCHED_JOB_ID" >> "$DIR/words"; }
flock -n 9 || say twice; say start; sleep 1 9>&-; say end"#;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Fate of a submission to a daemon that is about to be killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The daemon acknowledged the job.
    Promised,
    /// The daemon did not answer, or could not say.
    Unknown,
}

/// The daemon as a process.
struct Process {
    child: Child,
    directory: PathBuf,
    is_alive: usize,
}

impl Process {
    fn start(directory: &Path) -> Self {
        Self { child: Self::spawn(directory), directory: directory.into(), is_alive: 1 }
    }

    fn spawn(directory: &Path) -> Child {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe().unwrap());
        command.env("GOODPUT_SOAK", directory).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(directory.join("daemon.err")).unwrap()).spawn().unwrap()
    }

    /// SIGKILL, and another one.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.directory);
        self.is_alive += 1;
    }

    /// Resident memory, MiB, and open files.
    fn weight(&self) -> (f64, usize) {
        let place = PathBuf::from(format!("/proc/{}", self.child.id()));
        let pages = std::fs::read_to_string(place.join("statm")).unwrap();
        let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
        (pages * 4096.0 / f64::from(1 << 20), std::fs::read_dir(place.join("fd")).unwrap().count())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Daemon process of the soak: the parent kills it again and again.
fn drive(directory: &Path) {
    let settings = reader::read::<Deployment>(&directory.join("soak.toml"), &[]).unwrap().0;
    let EngineConfig::Slurm(slurm) = &settings.engine else { panic!("it drives Slurm") };
    let engine = SlurmEngine::new(slurm, FactsKey::in_directory(&settings.state.directory).unwrap());
    let daemon = open(engine, settings.clone(), Vec::new(), Arc::new(Tenants::default())).unwrap();
    let (_stop, stopped) = tokio::sync::oneshot::channel();
    site::runtime().block_on(api::run(daemon, stopped)).unwrap();
}

fn configure(site: &Site<PrivateCluster>) -> SocketAddr {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (conf, state) = (site.machines.settings().conf.unwrap(), site.place().join("state"));
    let text = format!(
        "mode = \"act\"\n[engine.slurm]\nconf = {:?}\n[policy]\nname = \"fifo\"\n[cycle]\npoll_secs = 0.1\n[reliance]\ntimeout_ms = 5000\nfallback = \"smallest-first\"\n\
         [state]\ndirectory = {:?}\nname = \"soak\"\n[api]\nlisten = \"{address}\"\n[[api.tokens]]\nname = \"soak\"\nverbs = [\"admin\"]\nsha256 = \"{}\"\n",
        conf.display().to_string(),
        state.display().to_string(),
        hash(TOKEN)
    );
    std::fs::write(site.place().join("soak.toml"), text).unwrap();
    std::fs::create_dir_all(site.place().join("locks")).unwrap();
    address
}

/// Hands a job in, once there is a daemon to hand it to.
fn hand_in(site: &Site<PrivateCluster>, address: SocketAddr, index: usize) -> Fate {
    let request = JobRequest { name: format!("job-{index}"), gpus: 1 + (index % 4) as u32, ..JobRequest::default() };
    let name = request.name.clone();
    let job = JobSpec { request, work: Work::Fixed { duration: SimTime::from_secs(1) } };
    let mut submission = site.submission(&job, 1.0);
    submission.command = ["/bin/sh", "-c", JOB].map(Into::into).into();
    submission.environment.insert("NAME".into(), name);
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the daemon does not come up; see daemon.err");
        std::thread::sleep(Duration::from_millis(50));
    }
    let call = ureq::post(format!("http://{address}/v1/jobs"));
    let answer = call
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .send(serde_json::to_string(&submission).unwrap());
    if answer.is_ok() { Fate::Promised } else { Fate::Unknown }
}

/// Footprint of a daemon at a moment.
struct Weight {
    life: usize,
    /// Jobs that had ended.
    ended: usize,
    /// Resident memory, MiB.
    resident: f64,
    files: usize,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Start of an attempt, in seconds since 1970.
#[derive(Debug)]
struct Begin {
    /// First word of the job.
    at: f64,
    /// Number of the job under Slurm.
    number: String,
}

/// Log that jobs wrote, in seconds since 1970: ends of each job, starts of each attempt of each
/// job, and the jobs that ran twice at once.
#[derive(Default)]
struct Words {
    ends: BTreeMap<String, Vec<f64>>,
    starts: BTreeMap<(String, String), Vec<Begin>>,
    twice: BTreeSet<String>,
}

impl Words {
    /// Seconds from the first start and end of each job that ended twice to the death of slurmctld
    /// that can have made it forget them: none where there is no such death.
    fn forgotten_ends(&self, deaths: &[f64]) -> Vec<Option<f64>> {
        let starts = |name: &str| {
            let begins = self.starts.iter().filter(|((of, _), _)| of == name).flat_map(|(_, begins)| begins);
            begins.fold(f64::MAX, |first, begin| first.min(begin.at - LAUNCH))
        };
        self.ends
            .iter()
            .filter(|(_, at)| at.len() > 1)
            .map(|(name, at)| forgotten(starts(name), at[0], deaths))
            .collect()
    }

    /// Seconds from each attempt that began twice to the death of slurmctld that can have made it
    /// forget the start. An attempt without a recorded end is taken to last as long as a job does.
    fn forgotten_starts(&self, deaths: &[f64], launches: &Launches) -> Vec<Option<f64>> {
        let again = self.starts.iter().filter(|(_, begins)| begins.len() > 1);
        let judged = again.map(|((name, attempt), begins)| {
            let begin = &begins[0];
            let launched = launches.of(begin);
            let death = forgotten(launched, begin.at + 1.0, deaths);
            println!(
                "attempt {attempt} of {name}: launched {:.1} s before its first word, {begins:?}, forgotten {death:?}",
                begin.at - launched
            );
            death
        });
        judged.collect()
    }
}

/// Seconds from `end` to the first of `deaths` since the launch, if slurmctld can have forgotten
/// the end by it.
fn forgotten(start: f64, end: f64, deaths: &[f64]) -> Option<f64> {
    let death = deaths.iter().find(|death| **death >= start)?;
    (death - end <= FORGETTING).then_some(death - end)
}

fn words(site: &Site<PrivateCluster>) -> Words {
    let mut words = Words::default();
    for line in std::fs::read_to_string(site.place().join("words")).unwrap_or_default().lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let (name, at): (String, f64) = (parts[1].to_owned(), parts[3].parse().unwrap());
        match parts[0] {
            "end" => words.ends.entry(name).or_default().push(at),
            "start" => {
                let begin = Begin { at, number: parts[4].into() };
                words.starts.entry((name, parts[2].into())).or_default().push(begin);
            }
            _ => drop(words.twice.insert(name)),
        }
    }
    words
}

/// Moments at which slurmctld started each job, by the job's number, in seconds since 1970. The first word of a job
/// comes seconds later on a busy machine, and later still where its nodes wait for a dead slurmctld.
struct Launches(BTreeMap<String, Vec<f64>>);

impl Launches {
    /// Moments that the log of slurmctld tells, in UTC as the private cluster has it.
    fn read(site: &Site<PrivateCluster>) -> Self {
        let log = std::fs::read_to_string(site.place().join("slurm/log/slurmctld.log")).unwrap_or_default();
        let mut all = BTreeMap::<String, Vec<f64>>::new();
        for line in log.lines().filter(|line| line.contains("Allocate JobId=") || line.contains("Started JobId=")) {
            let number = line.split_once("JobId=").map_or("", |(_, rest)| rest);
            let number = number.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            let at = line.get(1..24).and_then(|at| at.parse::<DateTime>().ok()).unwrap();
            let at = at.to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond() as f64 / 1e3;
            all.entry(number.to_owned()).or_default().push(at);
        }
        Self(all)
    }

    /// Moment at which slurmctld ordered a start.
    fn of(&self, begin: &Begin) -> f64 {
        let known = self.0.get(&begin.number);
        let last = known.and_then(|all| all.iter().copied().rfind(|at| *at <= begin.at));
        last.unwrap_or(begin.at - LAUNCH)
    }
}

/// Copies what tells how a job was lost to where it outlives the cluster.
fn evidence(site: &Site<PrivateCluster>) -> PathBuf {
    let kept = std::env::temp_dir().join(format!("goodput-soak-{}", std::process::id()));
    std::fs::create_dir_all(&kept).unwrap();
    for file in
        ["words", "state/audit.jsonl", "state/journal.sqlite", "state/journal.sqlite-wal", "slurm/log/slurmctld.log"]
    {
        let name = Path::new(file).file_name().unwrap();
        let _ = std::fs::copy(site.place().join(file), kept.join(name));
    }
    kept
}

/// Moments of a soak, in the number of jobs promised, at which something is killed.
fn moments(random: &mut impl rand::Rng, count: usize, jobs: usize) -> Vec<usize> {
    let mut moments: Vec<usize> = (0..count).map(|_| random.random_range(0..jobs)).collect();
    moments.sort_unstable_by(|a, b| b.cmp(a));
    moments
}

fn main() {
    if let Some(directory) = std::env::var_os("GOODPUT_SOAK") {
        return drive(Path::new(&directory));
    }
    let jobs = number("GOODPUT_JOBS", 5000);
    let mut random = rng(4, Stream::Faults);
    let mut kills = moments(&mut random, number("GOODPUT_KILLS", jobs / 50), jobs);
    let mut controllers = moments(&mut random, number("GOODPUT_CONTROLLERS", jobs / 200), jobs);
    let mut site = Site::slurm(64, 8);
    let address = configure(&site);
    let mut process = Process::start(site.place());
    let (mut promised, mut asked) = (BTreeSet::new(), 0);
    let journal = |site: &Site<PrivateCluster>| {
        let size = |file| std::fs::metadata(site.place().join("state").join(file)).map_or(0, |data| data.len() >> 10);
        size("journal.sqlite") + size("journal.sqlite-wal")
    };
    println!(
        "| jobs ended | minutes | resident (MiB) | open files | journal (KiB) | daemons | controllers |\n|---|---|---|---|---|---|---|"
    );
    let (began, mut heard, mut told, mut deaths) = (Instant::now(), (Instant::now(), 0), 0, Vec::new());
    let mut weights: Vec<Weight> = Vec::new();
    loop {
        let ends = words(&site).ends;
        let ended = promised.iter().filter(|name| ends.contains_key(*name)).count();
        let (resident, files) = process.weight();
        weights.push(Weight { life: process.is_alive, ended, resident, files });
        if ended >= told || ended == jobs {
            told = ended + jobs / 10;
            let (minutes, journal) = (began.elapsed().as_secs_f64() / 60.0, journal(&site));
            println!(
                "| {ended} | {minutes:.1} | {resident:.1} | {files} | {journal} | {} | {} |",
                process.is_alive,
                deaths.len() + 1
            );
        }
        if ended >= jobs {
            break;
        }
        if ended > heard.1 {
            heard = (Instant::now(), ended);
        }
        let lost = || promised.iter().filter(|name| !ends.contains_key(*name)).take(20).collect::<Vec<_>>();
        assert!(heard.0.elapsed() < PATIENCE, "lost: {:?}; see {}", lost(), evidence(&site).display());
        let more = AT_ONCE.min((ended + ACTIVE).saturating_sub(promised.len())).min(jobs - promised.len());
        let dies = kills.pop_if(|at| *at <= promised.len()).map(|_| random.random_range(0..800));
        let fates = std::thread::scope(|scope| {
            let (site, process) = (&site, &mut process);
            let calls: Vec<_> = (asked..asked + more)
                .map(|index| (index, scope.spawn(move || hand_in(site, address, index))))
                .collect();
            if let Some(after) = dies {
                std::thread::sleep(Duration::from_millis(after));
                process.kill();
            }
            calls.into_iter().map(|(index, call)| (index, call.join().unwrap())).collect::<Vec<_>>()
        });
        asked += more;
        let kept = fates.into_iter().filter(|(_, fate)| *fate == Fate::Promised);
        promised.extend(kept.map(|(index, _)| format!("job-{index}")));
        if controllers.pop_if(|at| *at <= promised.len()).is_some() {
            std::thread::sleep(Duration::from_millis(random.random_range(0..1500)));
            site.machines.kill_controller();
            deaths.push(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64());
            std::thread::sleep(Duration::from_millis(random.random_range(0..1000)));
            site.machines.start_controller().unwrap();
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let is_alive = process.is_alive;
    drop(process);
    let log = std::fs::read_to_string(site.place().join("state/audit.jsonl")).unwrap();
    let alerts = |kind: &str| log.matches(&format!(r#""kind":"{kind}""#)).count();
    println!(
        "{} daemons and {} controllers killed; {asked} jobs asked for, {} promised, {} handed in again, {} taken back that had ended, {} nodes taken back",
        is_alive - 1,
        deaths.len(),
        promised.len(),
        alerts("forgotten"),
        alerts("ended"),
        alerts("drained")
    );
    judge(&site, &weights, &deaths);
}

/// Requirements of the drill.
fn judge(site: &Site<PrivateCluster>, weights: &[Weight], deaths: &[f64]) {
    let words = words(site);
    assert!(words.twice.is_empty(), "ran twice at once: {:?}; see {}", words.twice, evidence(site).display());
    // A job is started again under an equal number when slurmctld forgot its start or end and the
    // first one is gone. Nothing else may start a job again.
    let (again, repeated) = (words.forgotten_ends(deaths), words.forgotten_starts(deaths, &Launches::read(site)));
    let latest = again.iter().chain(&repeated).flatten().fold(0.0, |most: f64, after| most.max(*after));
    let unexplained = again.iter().chain(&repeated).filter(|after| after.is_none()).count();
    println!(
        "{} ended twice, {} attempts started twice, one after the other: {unexplained} without a death of slurmctld meanwhile or soon after (at most {latest:.1} s)",
        again.len(),
        repeated.len()
    );
    // The first third is how memory comes to what the jobs that Slurm shows take: a minute of them,
    // so many more after a death of slurmctld that lives of seconds differ by tens of percent.
    // Whether memory is flat a daemon says that lives through it all; what lives hand on is the
    // journal.
    let third = weights.last().unwrap().ended / 3;
    let settled = weights.iter().filter(|weight| weight.ended >= third);
    let parts: (Vec<&Weight>, Vec<&Weight>) = settled.partition(|weight| weight.ended < 2 * third);
    let peaks = |part: &[&Weight]| -> Vec<f64> {
        let mut peaks = BTreeMap::<usize, f64>::new();
        part.iter().for_each(|weight| {
            let peak = peaks.entry(weight.life).or_default();
            *peak = peak.max(weight.resident);
        });
        peaks.into_values().collect()
    };
    let typical = [&parts.0, &parts.1].map(|part| median(peaks(part)));
    let largest = [&parts.0, &parts.1].map(|part| peaks(part).into_iter().fold(0.0, f64::max));
    let opened = [&parts.0, &parts.1].map(|part| median(part.iter().map(|weight| weight.files as f64).collect()));
    let grown = typical[1] / typical[0] - 1.0;
    let directory = site.place().join("state");
    let counts = Journal::open(&directory.join("journal.sqlite")).unwrap().counts().unwrap();
    let lines = audit::verify(&directory.join("audit.jsonl")).unwrap().lines;
    println!(
        "a life's peak of memory in the second and the last third: median {:.1}, {:.1} MiB ({:+.1} %), largest {:.1}, {:.1} MiB; open files (median) {opened:?}, {} orders in the journal, {lines} lines of audit",
        typical[0],
        typical[1],
        100.0 * grown,
        largest[0],
        largest[1],
        counts.iter().sum::<u64>()
    );
    assert!(again.is_empty(), "{} jobs ended twice though the first end left a mark", again.len());
    assert!(unexplained == 0, "{unexplained} jobs ran again though slurmctld had not forgotten them");
    let is_alive = weights.last().unwrap().life;
    assert!(is_alive > 1 || grown < 0.1, "memory grows by {:.1} %", 100.0 * grown);
    // A command of Slurm that is under way has three pipes.
    assert!(opened[1] <= opened[0] + 3.0, "files stay open: {opened:?}");
    assert!(counts.iter().sum::<u64>() <= 21_000, "the journal is not compacted: {counts:?}");
}
