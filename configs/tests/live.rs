//! Files of live clusters: those that ship are read, and wrong ones say why and where.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::error::ReadError;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::node_agent::{Fencing, NodeAgentConfig};
use goodput_configs::reader::{self, Document};

const SLURM: &str = include_str!("../live/slurm.toml");
const AGENTS: &str = include_str!("../live/agents.toml");
const KUBERNETES: &str = include_str!("../live/kubernetes.toml");
const NODE: &str = include_str!("../live/node.toml");

fn deployment(text: &str, set: &str) -> Result<Deployment, ReadError> {
    reader::of_document(&Document::new("x.toml", text, &[set.to_owned()])?)
}

#[test]
fn shipped_files_are_read() {
    reader::parse::<Deployment>("slurm.toml", SLURM).unwrap();
    reader::parse::<Deployment>("kubernetes.toml", KUBERNETES).unwrap();
    let agents = reader::parse::<Deployment>("agents.toml", AGENTS).unwrap();
    let node = reader::parse::<NodeAgentConfig>("node.toml", NODE).unwrap();
    let goodput_configs::live::engine::EngineConfig::Agents(agents) = agents.engine else { panic!("agents") };
    assert!(agents.nodes.iter().any(|of| of.name == node.node && of.address == node.listen), "they fit each other");
    assert_eq!(agents.tls.ca, node.tls.ca);
}

/// The example names every key, so a user finds each of them.
#[test]
fn the_node_example_has_every_key() {
    let node = reader::parse::<NodeAgentConfig>("node.toml", NODE).unwrap();
    let resolved: toml::Table = reader::resolved(&node).unwrap().parse().unwrap();
    let written: toml::Table = NODE.parse().unwrap();
    assert_eq!(resolved, written, "with every default filled in it is the file itself");
}

#[test]
fn wrong_deployments_say_why() {
    for (from, to, said) in [
        ("poll_secs = 1.0", "pol_secs = 1.0", "unknown key `pol_secs`"),
        ("poll_secs = 1.0", "poll_secs = 0", "expected a positive number"),
        (
            "directory = \"/var/lib/goodput\"",
            "directory = \"/x\"\nlease_secs = 0",
            "state.lease_secs is 0, expected 1 to",
        ),
        ("mode = \"observe\"", "mode = \"acting\"", "unknown choice `acting`"),
        ("name = \"tiresias\" ", "name = \"a\"\nbundle = \"b\" ", "name one"),
        ("name = \"tiresias\" ", "bundle = \"zoo:elastik\" ", "did you mean \"elastic\"?"),
        ("fallback = \"pollux-fast\"", "fallback = \"polux-fast\"", "did you mean \"pollux-fast\"?"),
        ("[engine.slurm]", "[engine.pbs]", "unknown choice `pbs`"),
        ("baseline = \"fifo-backfill\"", "baseline = \"fifo-backfil\"", "did you mean \"fifo-backfill\"?"),
        ("automatic = true", "jobs = 2", "rollback.jobs is 2, expected 5 to 1000"),
        ("automatic = true", "late_percent = 10", "expected more than 10"),
        ("listen = \"127.0.0.1:7070\"", "listen = \"localhost\"", "api.listen is \"localhost\", expected HOST:PORT"),
    ] {
        assert!(SLURM.contains(from), "{from}");
        let error = reader::parse::<Deployment>("x.toml", &SLURM.replacen(from, to, 1)).unwrap_err();
        assert!(error.message.contains(said) && error.message.starts_with("x.toml:"), "{error}");
        assert!(error.source_text.is_some(), "{error} points at no place");
    }
}

#[test]
fn a_kubernetes_cluster_that_cannot_be_driven_is_refused_with_its_key() {
    for (set, said) in [
        ("namespace=Team_A", "engine.kubernetes.namespace is \"Team_A\""),
        ("report_url=goodput:7070", "expected http://HOST:PORT"),
        ("namespaces=[\"team-a\"]", "one of engine.kubernetes.namespaces"),
        ("resource=", "engine.kubernetes.resource is empty"),
        ("patience_ms=0", "engine.kubernetes.patience_ms is 0"),
    ] {
        let error = deployment(KUBERNETES, &format!("engine.kubernetes.{set}")).unwrap_err();
        assert!(error.message.contains(said), "{set}: {error}");
    }
    let service =
        "[[services]]\nname = \"web\"\nmodel = \"resnet-50\"\ncommand = [\"serve\"]\nslo = { latency_ms = 100 }\n";
    let error = deployment(&format!("{KUBERNETES}\n{service}"), "mode=observe").unwrap_err();
    assert!(error.message.contains("no [[services]] under Kubernetes"), "{error}");
}

/// A daemon adds these times to the present, which a negative or endless time would end.
#[test]
fn times_that_are_no_durations_are_refused() {
    let seconds = [
        "cycle.poll_secs",
        "cycle.round_secs",
        "cycle.order_timeout_secs",
        "reliance.fallback_secs",
        "guard.min_run_secs",
        "guard.preempt_every_secs",
        "guard.max_snapshot_age_secs",
        "guard.mass_failure_hold_secs",
        "policy.restart_secs",
        "shadow.horizon_secs",
        "shadow.every_secs",
        "shadow.restart_secs",
        "report.horizon_secs",
        "report.every_secs",
        "report.restart_secs",
        "rollback.slack_secs",
        "rollback.watch_secs",
    ];
    let text = format!("{SLURM}\n[shadow]\nname = \"srtf\"\n");
    for key in seconds {
        for value in ["-1.0", "nan", "-nan", "inf", "-inf", "1e308", "31536001.0"] {
            let error = deployment(&text, &format!("{key}={value}")).unwrap_err();
            let said = error.message.contains(&format!("{key} is ")) && error.message.contains("(a year)");
            assert!(said, "{key} = {value}: {error}");
        }
        deployment(&text, &format!("{key}=31536000.0")).unwrap();
    }
    for key in ["cycle.grace_secs", "state.lease_secs"] {
        let error = deployment(&text, &format!("{key}=31536001")).unwrap_err();
        assert!(error.message.contains(&format!("{key} is 31536001")), "{error}");
    }
    let long = i64::MAX;
    for key in ["suspect_ms", "lease_ms", "patience_ms"] {
        let error = deployment(AGENTS, &format!("engine.agents.{key}={long}")).unwrap_err();
        assert!(error.message.contains("0 to 31536000000 milliseconds (a year)"), "{error}");
    }
    assert!(deployment(AGENTS, &format!("reliance.timeout_ms={long}")).unwrap_err().message.contains("(a year)"));
    let node = NODE.replace("fencing = \"keep\"", "");
    for key in ["pace.period_ms", "pace.deadline_ms", "pace.back_after_ms", "fencing.kill.after_ms"] {
        let document = Document::new("x.toml", &node, &[format!("{key}={long}")]).unwrap();
        let error = reader::of_document::<NodeAgentConfig>(&document).unwrap_err();
        assert!(error.message.contains(&format!("{key} is {long}")), "{error}");
    }
}

#[test]
fn an_exporter_has_an_address_with_a_port() {
    let node = |more: &str| {
        let text = format!("{NODE}\n[dcgm]\n{more}\n");
        reader::of_document::<NodeAgentConfig>(&Document::new("x.toml", text, &[]).unwrap())
    };
    let good = node("url = \"http://localhost:9400/metrics\"").unwrap().dcgm.unwrap();
    assert_eq!((good.period_ms, good.hottest_c), (10_000, None));
    for (bad, said) in [
        ("url = \"https://localhost:9400/metrics\"", "expected http://HOST:PORT"),
        ("url = \"http://localhost/metrics\"", "expected http://HOST:PORT"),
        ("url = \"http://h:1\"\nperiod_ms = 5", "at least 100"),
        ("url = \"http://h:1\"\nhottest_c = nan", "30 to 150"),
    ] {
        assert!(node(bad).unwrap_err().message.contains(said), "{bad}");
    }
}

#[test]
fn overrides_reach_into_live_files() {
    let more = deployment(AGENTS, "engine.agents.nodes.2={ name = \"n2\", address = \"127.0.0.1:1\" }").unwrap();
    let goodput_configs::live::engine::EngineConfig::Agents(agents) = more.engine else { panic!("agents") };
    assert_eq!(agents.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["n0", "n1", "n2"]);
    let sets = ["fencing.kill.after_ms=25000".to_owned()];
    let node: NodeAgentConfig =
        reader::of_document(&Document::new("x.toml", NODE.replace("fencing = \"keep\"", ""), &sets).unwrap()).unwrap();
    assert_eq!(node.fencing, Fencing::Kill { after_ms: 25_000 });
}

#[test]
fn tenants_are_those_of_experiments() {
    let tables = "
        [[tenants]]
        name = \"vision\"
        weight = 2.0
        cohort = \"lab\"
        quota = { a100 = { nominal = 16, borrowing_limit = 8 } }
        [[tenants]]
        name = \"speech\"
        cohort = \"lab\"
        [[cohorts]]
        name = \"lab\"
    ";
    let text = format!("{SLURM}\n{tables}");
    let tenants = deployment(&text, "mode=observe").unwrap().tenants().unwrap();
    assert_eq!((tenants.len(), tenants.weight_milli(0), tenants.cohorts().len()), (2, 2000, 1));
    for (set, said, place) in [
        ("tenants.1.weight=-1", "tenants.weight is -1", "-1"),
        ("tenants.1.priority=5", "tenants.priority is 5, expected none in a deployment", "5"),
        ("tenants.1.cohort=lib", "in cohort `lib`, which is not declared", ""),
        ("tenants.1.quota.a100.nominal=-1", "expected a whole number of at least 0", "-1"),
    ] {
        let error = deployment(&text, set).unwrap_err();
        assert!(error.message.starts_with("x.toml:") && error.message.contains(said), "{set}: {error}");
        let source = error.source_text.unwrap();
        let found = &source.text[source.span.clone()];
        assert!(place.is_empty() || found == place, "{set} points at {found:?}");
    }
}

#[test]
fn wrong_node_agents_say_why() {
    for (from, to, said) in [
        ("listen = \"127.0.0.1:7443\"", "listen = \"n0:7443\"", "expected an IP address and a port"),
        ("jobs = \"127.0.0.1:7071\"", "jobs = \"10.0.0.1:7071\"", "expected an address of the loopback device"),
        ("devices = \"nvml\"", "devices = \"fake:8xabacus\"", "with 1 to 64 of a100"),
        ("node = \"n0\"", "node = \"../n0\"", "use 1 to 63 letters"),
        ("fencing = \"keep\"", "fencing = \"kip\"", "unknown choice `kip`"),
    ] {
        assert!(NODE.contains(from), "{from}");
        let error = reader::parse::<NodeAgentConfig>("x.toml", &NODE.replacen(from, to, 1)).unwrap_err();
        assert!(error.message.contains(said) && error.message.starts_with("x.toml:"), "{error}");
    }
}

#[test]
fn lines_of_the_examples_fit_a_screen() {
    for (file, text) in [("slurm", SLURM), ("agents", AGENTS), ("kubernetes", KUBERNETES), ("node", NODE)] {
        let long = text.lines().position(|line| line.chars().count() > 120);
        assert_eq!(long, None, "{file}.toml has a line of more than 120 characters");
    }
}

/// A file without keys is of no kind: the message says so, and what makes a file of each kind.
#[test]
fn an_empty_file_is_called_empty() {
    for text in ["", "# later\n"] {
        let error = reader::parse::<Deployment>("x.toml", text).unwrap_err();
        assert_eq!(error.message, "x.toml: the file has no keys");
        assert!(error.help.unwrap().contains("[engine] a deployment"));
    }
    let error = reader::parse::<Deployment>("x.toml", "mode = \"observe").unwrap_err();
    assert!(
        error.help.unwrap().contains("goodput init live/slurm"),
        "a file that is no TOML is not called an experiment"
    );
}
