//! Messages about files of every kind: they name the place, and no type of Rust.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_configs::error::ReadError;
use goodput_configs::experiment::Experiment;
use goodput_configs::federation::FederationConfig;
use goodput_configs::forecast::{ForecastConfig, ForecastServerConfig, ForecasterExperiment, WorthConfig};
use goodput_configs::kind::Kind;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::live::node_agent::NodeAgentConfig;
use goodput_configs::reader::{self, ConfigFile, Document};

const EXPERIMENT: &str = include_str!("../experiment/set-encoder.toml");
const FEDERATION: &str = include_str!("../scenario/cross-cluster.toml");
const STUDY: &str = include_str!("../forecast/servegen.toml");
const WORTH: &str = include_str!("../forecast/worth.toml");
const SERVER: &str = include_str!("../forecast/serve.toml");
const FORECASTER: &str = include_str!("../forecast/nhits.toml");
const DEPLOYMENT: &str = include_str!("../live/agents.toml");
const NODE: &str = include_str!("../live/node.toml");

fn error(kind: Kind, set: &str) -> ReadError {
    fn of<T: ConfigFile>(text: &str, set: &str) -> ReadError {
        let document = Document::new("x.toml", text, &[set.to_owned()]).unwrap();
        reader::of_document::<T>(&document).map(drop).expect_err(set)
    }
    match kind {
        Kind::Experiment => of::<Experiment>(EXPERIMENT, set),
        Kind::Federation => of::<FederationConfig>(FEDERATION, set),
        Kind::ForecastStudy => of::<ForecastConfig>(STUDY, set),
        Kind::WorthStudy => of::<WorthConfig>(WORTH, set),
        Kind::ForecastServer => of::<ForecastServerConfig>(SERVER, set),
        Kind::ForecasterTraining => of::<ForecasterExperiment>(FORECASTER, set),
        Kind::Deployment => of::<Deployment>(DEPLOYMENT, set),
        Kind::NodeAgent => of::<NodeAgentConfig>(NODE, set),
    }
}

/// Two tokens of one name.
const TWO_TOKENS: &str = r#"api.tokens=[
    { name = "a", verbs = ["read"], sha256 = "0000000000000000000000000000000000000000000000000000000000000000" },
    { name = "a", verbs = ["read"], sha256 = "1111111111111111111111111111111111111111111111111111111111111111" },
]"#;

/// Words that only a programmer of goodput knows.
const WORDS: [&str; 16] = [
    "usize", "u8", "u16", "u32", "u64", "i32", "i64", "f32", "f64", "struct ", "enum ", "variant", "field", "sequence",
    "tuple", "Config",
];

#[test]
fn messages_name_the_place_and_no_type_of_rust() {
    for (kind, set, said) in [
        (Kind::Experiment, "sed=1", "unknown key `sed`"),
        (Kind::Experiment, "seed=x", "expected a whole number, found the text \"x\""),
        (Kind::Experiment, "seed=-1", "expected a whole number of at least 0, found -1"),
        (Kind::Experiment, "cluster=4", "expected a table, found 4"),
        (Kind::Experiment, "workload={ cloud = 1 }", "unknown choice `cloud`"),
        (Kind::Experiment, "evaluate.policies=fifo", "expected a list, found the text \"fifo\""),
        (
            Kind::Experiment,
            "agent.ppo.input_baseline={ runs = 1 }",
            "expected 2 or more, and a divisor of agent.ppo.envs",
        ),
        (
            Kind::Experiment,
            "agent.ppo.input_baseline={ runs = 5 }",
            "expected 2 or more, and a divisor of agent.ppo.envs",
        ),
        (Kind::Experiment, "environment.names_per_application=0", "expected 1 to 1000"),
        (Kind::Experiment, "evaluate.policies=[\"fifoo\"]", "there is no policy \"fifoo\" (did you mean \"fifo\"?)"),
        (
            Kind::Experiment,
            "evaluate.policies=[\"gandiva(quantm_secs=1)\"]",
            "policy gandiva: no parameter is called \"quantm_secs\" (did you mean \"quantum_secs\"?)",
        ),
        (
            Kind::Experiment,
            "evaluate.policies=[{ name = \"gandiva\", quantum_secs = 0 }]",
            "policy gandiva: quantum_secs is 0, expected a number from 1 to 10000000",
        ),
        (Kind::Experiment, "evaluate.policies=[{ quantum_secs = 60 }]", "the key `name` is missing"),
        (Kind::Experiment, "evaluate.policies=[1]", "expected a text or a table, found 1"),
        (Kind::Federation, "clusters.0.policy=srtf(x=1)", "policy srtf has no parameters"),
        (Kind::Deployment, "policy.name=themis(lease_secs=soon)", "expected a number from 1 to 10000000"),
        (
            Kind::Deployment,
            "policy.name=lookahead(tiresias)",
            "reliance.timeout_ms is 200, expected at least 1000 for a policy that looks ahead",
        ),
        (Kind::Deployment, "reliance.fallback=gandiva(60)", "a parameter is PARAMETER=VALUE"),
        (Kind::Experiment, "environment.sharing={ contention = 1.0 }", "environment.sharing.contention is 1, expected"),
        (Kind::Experiment, "environment.sharing={ slots = 0 }", "environment.sharing.slots is 0, expected 1 to 1024"),
        (Kind::Experiment, "environment.sharing={ isolation = \"mig\" }", "unknown choice `mig`"),
        (
            Kind::Experiment,
            "workload={ bursts = [{ tenant = \"a\", jobs = 1, gpus = 1, run_secs = 1.0, compute_percent = 101, memory_mib = 1 }] }",
            "workload.bursts.compute_percent is 101, expected at most 100 for each of gpus",
        ),
        (
            Kind::Experiment,
            "workload={ bursts = [{ tenant = \"a\", jobs = 1, gpus = 1, run_secs = 1.0, compute_percent = 50, memory_mib = 99999 }] }",
            "asks for 99999 MiB of an accelerator",
        ),
        (Kind::Experiment, "environment.tie_break=dice", "unknown choice `dice`"),
        (Kind::Experiment, "environment.allocation=static", "expected none in a file with an [agent]"),
        (Kind::Experiment, "environment.mixing=1.5", "environment.mixing is 1.5, expected above 0 and at most 1"),
        (Kind::Experiment, "environment.allocation=half", "unknown choice `half`"),
        (Kind::Federation, "environment.allocation=static", "environment.allocation is static, expected"),
        (Kind::Federation, "seeds=many", "expected a whole number, found the text \"many\""),
        (Kind::Federation, "clusters.0.polcy=fifo", "unknown key `polcy`"),
        (Kind::Federation, "clusters.0.policy=fifoo", "did you mean \"fifo\"?"),
        (Kind::ForecastStudy, "series.path=1", "expected a path as text, found 1"),
        (Kind::ForecastStudy, "model.models=[\"arma\"]", "unknown choice `arma`"),
        (Kind::WorthStudy, "targets=[2.0]", "targets is 2, expected 0.5 to 1"),
        (Kind::WorthStudy, "accelerators=0", "accelerators is 0, expected 1 to 10000"),
        (Kind::ForecastServer, "promethus.url=x", "unknown key `promethus`"),
        (Kind::ForecastServer, "prometheus.url=localhost:9090", "expected a URL such as http://127.0.0.1:9090"),
        (Kind::ForecastServer, "prometheus.url=https://a", "prometheus.ca is absent"),
        (Kind::ForecastServer, "listen=9107", "expected a text, found 9107"),
        (Kind::ForecastServer, "services.0.query=", "services.query is empty"),
        (Kind::ForecastServer, "services.0.step_secs=0", "services.step_secs is 0, expected 0.1 to 86400 seconds"),
        (Kind::ForecastServer, "services.0.season_secs=1000", "expected a whole number of steps"),
        (
            Kind::ForecastServer,
            "services.0.load_per_replica=0",
            "services.load_per_replica is 0, expected a load above 0",
        ),
        (Kind::ForecastServer, "services.0.name=a/b", "name \"a/b\" is refused"),
        (Kind::ForecastServer, "dynamo.service=chta", "did you mean \"chat\"?"),
        (Kind::ForecastStudy, "backtest.stride=1", "unknown key `stride`"),
        (Kind::ForecasterTraining, "forecaster={ mlp = {} }", "unknown choice `mlp`"),
        (Kind::ForecasterTraining, "train.steps=1.5", "expected a whole number, found 1.5"),
        (Kind::ForecasterTraining, "window.levels=0.5", "expected a list, found 0.5"),
        (Kind::Deployment, "polcy.name=fifo", "unknown key `polcy`"),
        (Kind::Deployment, "policy.name=fifoo", "there is no policy \"fifoo\" (did you mean \"fifo\"?)"),
        (Kind::Deployment, "shadow.name=sretf", "did you mean \"srtf\"?"),
        (Kind::Deployment, "guard.max_actions=all", "expected a whole number, found the text \"all\""),
        (Kind::Deployment, "cycle.poll_secs=true", "expected a number, found true"),
        (Kind::Deployment, "engine.agents.nodes=[]", "engine.agents.nodes is empty"),
        (Kind::Deployment, "engine.agents.nodes.0.address=n0", "expected an IP address and a port"),
        (Kind::Deployment, "api.tokens=[{ name = \"a\", role = \"read\", sha256 = \"1\" }]", "64 hexadecimal digits"),
        (Kind::Deployment, TWO_TOKENS, "a name that no other token has"),
        (
            Kind::Deployment,
            "api.tokens=[{ name = \"a\", verbs = [\"write\"], sha256 = \"1\" }]",
            "unknown choice `write`",
        ),
        (Kind::NodeAgent, "pase.period_ms=1", "unknown key `pase`"),
        (Kind::NodeAgent, "pace.period_ms=1s", "expected a whole number, found the text \"1s\""),
        (Kind::NodeAgent, "fencing={ kill = { after = 1 } }", "unknown key `after`, expected `after_ms`"),
        (Kind::NodeAgent, "devices=gpu", "expected `nvml`"),
        (Kind::NodeAgent, "tls={ ca = \"x\" }", "the key `cert` is missing"),
    ] {
        let error = error(kind, set);
        assert!(error.message.starts_with("x.toml:"), "{set}: {error} names no line");
        assert!(error.message.contains(said), "{set}: {error}");
        let words = WORDS.iter().find(|word| error.message.contains(**word));
        assert_eq!(words, None, "{set}: {error}");
        assert!(error.source_text.is_some(), "{set}: {error} points at no place");
    }
}

#[test]
fn a_server_of_forecasts_beyond_this_host_names_the_authority_of_its_callers() {
    let read = |more: &str| {
        let text = SERVER.replace("127.0.0.1:9108", "0.0.0.0:9108").replace("[dynamo]\nservice", "#");
        let text = text.replacen("[prometheus]", &format!("{more}\n[prometheus]"), 1);
        reader::parse::<ForecastServerConfig>("x.toml", &text).map(drop).map_err(|error| error.to_string())
    };
    const FILES: &str = "[tls]\ncertificate = \"a.pem\"\nkey = \"a.key\"\n";
    for refused in ["", FILES] {
        let said = read(refused).unwrap_err();
        assert!(said.contains("grpc") && said.contains("tls.clients"), "{said}");
    }
    for taken in ["insecure = true".to_owned(), format!("{FILES}clients = \"ca.pem\"\n")] {
        assert_eq!(read(&taken), Ok(()), "{taken}");
    }
    let said = error(Kind::ForecastServer, "tls={ certificate = \"a.pem\", key = \"a.key\" }").to_string();
    assert!(said.contains("dynamo") && said.contains("encrypted"), "{said}");
}
