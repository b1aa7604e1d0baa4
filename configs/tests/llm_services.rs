//! Language models among the services of a scenario: what a file may say, and what is refused before a run.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; figures for the reader")]

use goodput_configs::error::ReadError;
use goodput_configs::experiment::Experiment;
use goodput_configs::reader::{self, Document};
use goodput_env::service::ServingProfile;
use goodput_env::time::SimTime;

const SCENARIO: &str = include_str!("../scenario/llm-services.toml");

fn read(sets: &[&str]) -> Result<Experiment, ReadError> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    reader::of_document(&Document::new("x.toml", SCENARIO, &sets).unwrap())
}

#[test]
fn a_replica_of_the_catalog_is_a_service() {
    let setup = read(&[]).unwrap().setup().unwrap();
    let scenario = setup.scenario(1);
    let [chat, code] = &scenario.workload.services[..] else { panic!("two services") };
    assert_eq!((chat.gpus_per_replica, code.gpus_per_replica), (4, 2));
    assert_eq!((chat.reference.as_str(), chat.slo.latency), ("h100", SimTime::from_secs(1)));
    // 10 s to schedule, 30 s to pull, 32.8 GB at 1 GB/s, 47.2 s to warm up.
    assert_eq!(code.cold_start, SimTime::from_secs(120));
    let ServingProfile::Tokens(tokens) = chat.profile("h100").unwrap() else { panic!("no tokens") };
    println!("{} requests a second, first token after {} s", tokens.per_sec, tokens.idle_ttft_secs);
    assert!(tokens.per_sec > 1.0 && tokens.idle_ttft_secs < 1.0);
    assert_eq!(setup.token_servers().iter().flatten().count(), 2);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_key() {
    for (set, expected) in [
        (
            "services.0.model=\"Llama-3.1-70B-fp8/vllm/h100_sxm/tp44\"",
            "did you mean \"Llama-3.1-70B-fp8/vllm/h100_sxm/tp4\"?",
        ),
        ("services.0.model=\"DeepSeek-R1-fp8/sglang/h200_sxm/tp8\"", "without a node that a replica fits on"),
        ("cluster.groups.1.gpus_per_node=2", "a group for inference or for all with 4 of h100 a node"),
        ("services.0.slo.ttft_ms=5", "services.slo.ttft_ms: ttft is 0.005 s, and an idle replica takes"),
        ("services.0.slo.tpot_ms=1.0", "services.slo.tpot_ms: tpot is 0.001 s, and an idle replica takes"),
        ("services.0.slo={ latency_ms = 100 }", "services.slo.latency_ms is 100, expected ttft_ms and tpot_ms"),
        ("services.0.slo={ ttft_ms = 1000 }", "services.slo.tpot_ms is absent"),
        ("services.0.gpus_per_replica=8", "services.gpus_per_replica is 8, expected 4"),
        ("services.0.work_cv2=1.0", "`lengths` are the work of a request"),
        ("services.0.llm.lengths=\"azure\"", "unknown choice `azure`"),
        ("services.0.llm.sequences=9000", "the token budget of a step is 8192, expected at least"),
        ("services.1.cold_start_secs=10.0", "its parts, or cold_start_secs, not both"),
        ("services.1.llm.cold_start.load_gb_per_sec=0.0", "services.llm.cold_start is inf seconds in all"),
        (
            "services.0.llm.lengths={ lognormal = { input_median = 900000.0, input_sigma = 0.0, input_most = 1000000, \
             output_median = 10.0, output_sigma = 0.0, output_most = 10 } }",
            "a request of 900000 and 10 tokens does not fit",
        ),
    ] {
        let found = read(&[set]).expect_err(set).message;
        println!("{found}");
        assert!(found.contains(expected), "{set}: {found}");
    }
}

#[test]
fn a_service_of_whole_answers_knows_no_tokens() {
    for (sets, expected) in [
        (["services.0.model=\"resnet-50\"", "services.0.slo={ latency_ms = 100 }"], "or no table `llm`"),
        (["services.0.model=\"resnet-51\"", "services.0.slo={ latency_ms = 100 }"], "did you mean \"resnet-50\"?"),
    ] {
        let error = read(&sets).unwrap_err();
        let found = format!("{} {}", error.message, error.help.unwrap_or_default());
        assert!(found.contains(expected), "{found}");
    }
}
