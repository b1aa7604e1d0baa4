//! Services through configuration, simulation and metrics.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use std::path::Path;

use goodput_configs::scenario::{ClusterConfig, EnvironmentConfig, ServiceConfig, Setup, WorkloadConfig};
use goodput_datasets::synth::LoadSynth;
use goodput_env::cluster::{NodeId, TypeId};
use goodput_env::model::serving::{Demand, Fleet};
use goodput_env::plan::Plan;
use goodput_env::policy::Policy;
use goodput_env::sim::Simulator;
use goodput_env::view::ClusterView;
use goodput_eval::metrics::{Level, LevelRow, RunFacts, levels, measure, slo_classes};
use goodput_eval::reproduce::REPRODUCTIONS;
use serde::Deserialize;

#[derive(Deserialize)]
struct Config {
    cluster: ClusterConfig,
    workload: WorkloadConfig,
    services: Vec<ServiceConfig>,
    environment: EnvironmentConfig,
}

const CONFIG: &str = r#"
[[cluster.groups]]
accelerator = "t4"
nodes = 4
gpus_per_node = 4
pool = "training"

[[cluster.groups]]
accelerator = "t4"
nodes = 4
gpus_per_node = 4
pool = "inference"

[workload.synthetic.diurnal]
jobs = 20

[[services]]
name = "vision"
model = "resnet-50"
slo = { class = "interactive", latency_ms = 20 }
max_replicas = 8
[services.load.synthetic]
mean_per_sec = 4000.0
days = 0.5

[[services]]
name = "batch"
profiles = { t4 = [[1, 100.0], [16, 400.0]] }
cold_start_secs = 30.0
slo = { class = "relaxed", latency_ms = 2000, target = 0.95 }
max_replicas = 8
[services.load.synthetic]
mean_per_sec = 60.0
days = 0.5
burst_factor = 4.0

[environment]
"#;

fn setup(text: &str) -> Result<Setup, String> {
    let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
    let setup = Setup::new(&config.cluster, &config.workload, &config.environment);
    setup.and_then(|setup| setup.with_services(&config.services)).map_err(|error| error.to_string())
}

/// Fewest replicas that keep each objective at the rate of the moment, packed on the first nodes;
/// training first come, first served.
struct Scripted;

impl Policy for Scripted {
    fn decide(&mut self, view: &ClusterView<'_>) -> Plan {
        let mut plan = Plan::keep();
        let mut free: Vec<u32> = view.cluster().node_ids().map(|node| view.free_for_service(node)).collect();
        for service in view.services() {
            let wanted = service.replicas_for(TypeId(0), service.rate()).unwrap();
            let mut more = wanted.saturating_sub(service.state.lasting().count() as u32);
            let mut fewer = (service.state.lasting().count() as u32).saturating_sub(wanted);
            for (node, free) in free.iter_mut().enumerate() {
                let here = service.state.replicas_on(NodeId::at(node));
                let (start, stop) = (more.min(*free), fewer.min(here));
                (more, fewer, *free) = (more - start, fewer - stop, *free - start);
                if start + stop > 0 {
                    plan.scale(service.id(), NodeId::at(node), here + start - stop);
                }
            }
        }
        let mut free = view.free().to_vec();
        for job in view.jobs().filter(|job| job.gpus() == 0) {
            if let Some(node) = free.iter().position(|&free| free >= job.min_gpus()) {
                free[node] -= job.min_gpus();
                plan.set(job.id(), goodput_env::placement::Placement::on(NodeId::at(node), job.min_gpus()));
            }
        }
        plan
    }
}

#[test]
fn three_levels_add_up_and_services_are_measured() {
    let scenario = setup(CONFIG).unwrap().scenario(1);
    assert_eq!(scenario.workload.services.len(), 2);
    let outcome = Simulator::new(scenario.clone()).run(&mut Scripted).unwrap();
    let rows = levels(&scenario, &outcome);
    let cluster = &rows[0];
    let sum = |node: bool, of: &dyn Fn(&LevelRow) -> i64| -> i64 {
        let is = |level: &Level| matches!(level, Level::Node(_)) == node && *level != Level::Cluster;
        rows.iter().filter(|row| is(&row.level)).map(of).sum()
    };
    let columns: [fn(&LevelRow) -> i64; 4] = [
        |row| row.training_gpu_millis,
        |row| row.serving_gpu_millis,
        |row| row.requests as i64,
        |row| row.violated as i64,
    ];
    for of in columns {
        assert!(of(cluster) > 0);
        assert_eq!((sum(true, &of), sum(false, &of)), (of(cluster), of(cluster)));
    }
    // From the other side: jobs and services.
    assert_eq!(cluster.training_gpu_millis, outcome.jobs.iter().map(|job| job.attained_gpu_millis).sum::<i64>());
    assert_eq!(cluster.serving_gpu_millis, outcome.services.iter().map(|service| service.gpu_millis).sum::<i64>());

    let measures = measure(&RunFacts::new(&scenario, &outcome));
    for key in ["slo_attainment", "latency_p99_over_slo", "replica_gpu_secs", "inference_pool_utilization"] {
        println!("{key} {:?}", measures.get(key));
        assert!(measures.get(key).is_some());
    }
    assert!(measures.get("slo_attainment").unwrap() > 0.97);
    let classes = slo_classes(&scenario, &outcome);
    assert_eq!(classes.iter().map(|class| class.class.as_str()).collect::<Vec<_>>(), ["interactive", "relaxed"]);
    assert!(classes.iter().all(|class| class.latencies.iter().sum::<u64>() == class.requests));
    // Without services there is nothing to say about them.
    let jobs_only = CONFIG.split("[[services]]").next().unwrap().to_owned() + "[environment]\n";
    let config: toml::Table = toml::from_str(&jobs_only).unwrap();
    let part = |key: &str| config[key].clone();
    let alone = Setup::new(
        &part("cluster").try_into().unwrap(),
        &part("workload").try_into().unwrap(),
        &part("environment").try_into().unwrap(),
    );
    let scenario = alone.unwrap().scenario(1);
    let outcome = Simulator::new(scenario.clone()).run(&mut Scripted).unwrap();
    assert_eq!(measure(&RunFacts::new(&scenario, &outcome)).get("slo_attainment"), None);
}

#[test]
fn settings_that_make_no_service_are_named() {
    let refused = |from: &str, to: &str| setup(&CONFIG.replacen(from, to, 1)).unwrap_err();
    for (from, to, expected) in [
        ("model = \"resnet-50\"", "model = \"resnet-51\"", "services, vision: services.model is \"resnet-51\""),
        ("latency_ms = 20 ", "latency_ms = 0 ", "services, vision: services.slo.latency_ms is 0"),
        ("[[1, 100.0], [16, 400.0]]", "[[1, 100.0], [2, 400.0]]", "point 1 of a serving profile"),
        ("name = \"batch\"", "name = \"vision\"", "\"vision\" twice"),
        (
            "burst_factor = 4.0",
            "burst_factor = 0.5",
            "services, batch: services.load.synthetic is burst_factor = 0.5, expected 1 to 20",
        ),
        ("t4 = [[1, 1", "a100 = [[1, 1", "without a node that a replica fits on"),
        ("pool = \"inference\"", "pool = \"inferences\"", "unknown variant `inferences`"),
        ("max_replicas = 8", "max_replica = 8", "unknown field `max_replica`"),
    ] {
        let found = refused(from, to);
        println!("{found}");
        assert!(found.contains(expected), "{found}");
    }
}

/// Inference servers for the peak stand idle for most of the week.
#[test]
fn a_pool_for_the_peak_is_used_to_less_than_two_fifths() {
    let profile = goodput_datasets::serving::profile(&[(1, 39.3)]).unwrap();
    for seed in 0..4 {
        let rates = LoadSynth::default().values(seed, 0);
        let keeps = |rate: f64, count: u32| {
            let demand = Demand { rate, arrival_cv2: 1.0, work_cv2: 0.0, slo_secs: 0.2 };
            Fleet::of(&profile, count).late_share(&demand) <= 0.01
        };
        let peak = rates.iter().copied().fold(0.0, f64::max);
        let servers = (1..).find(|&count| keeps(peak, count)).unwrap();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let utilization = mean / (f64::from(servers) * profile.throughput());
        println!("seed {seed}: peak {peak:.0}/s, {servers} replicas, mean utilisation {utilization:.3}");
        assert!(utilization < 0.4);
    }
}

#[test]
fn kill_restart_collapses_where_pipeswitch_does_not() {
    let table = REPRODUCTIONS.iter().find(|table| table.name == "pipeswitch").unwrap();
    let figures = table.run(Path::new("")).unwrap();
    for figure in &figures {
        println!(
            "{:28} {:>6} {:8.2}",
            figure.case,
            figure.theirs.map_or(String::new(), |t| t.to_string()),
            figure.ours
        );
        match figure.theirs {
            Some(0.0) => assert_eq!(figure.ours, 0.0, "{}", figure.case),
            Some(theirs) => assert!((figure.ours / theirs - 1.0).abs() < 0.06, "{}", figure.case),
            None => {}
        }
    }
    assert_eq!(figures.iter().filter(|figure| figure.ours == 0.0).count(), 3);
}

/// All load series that are public and at hand become rates.
#[test]
fn public_load_series_are_read() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/load"));
    assert!(dir.exists(), "{} is absent: this test needs the public data in it", dir.display());
    for (file, column, rows, step) in [
        ("twitter2021_count_1min.csv", None, 31_651, 60),
        ("servegen_rate_10min.csv", Some("m-large"), 2016, 600),
        ("nab_nyc_taxi.csv", None, 10_320, 1800),
        ("deepboot_small_infer_5min.csv", Some("requests"), 185, 300),
        ("azure_llm2023_conv_10s.csv", Some("requests"), 350, 10),
        ("alibaba_dlrm2025_active_10min.csv", None, 4463, 600),
    ] {
        let text = std::fs::read(dir.join(file)).unwrap();
        let (load, report) = goodput_datasets::import::load::parse(&dir.join(file), &text, column).unwrap();
        println!("{file}: {} values, {report}", load.values.len());
        assert_eq!(load.step.as_millis(), 1000 * step);
        assert!((load.values.len() as f64 / f64::from(rows) - 1.0).abs() < 0.02, "{file}: {}", load.values.len());
    }
}
