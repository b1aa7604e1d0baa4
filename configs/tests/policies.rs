//! Policies that files name with parameters: text and table, their place in messages, and the schema.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use goodput_agents::compose::policies;
use goodput_configs::experiment::{AgentConfig, Experiment};
use goodput_configs::federation::FederationConfig;
use goodput_configs::kind::Kind;
use goodput_configs::live::deployment::Deployment;
use goodput_configs::reader::{parse, resolved};
use goodput_configs::schema;
use serde_json::Value;

const DEPLOYMENT: &str = include_str!("../live/agents.toml");
const FEDERATION: &str = include_str!("../scenario/cross-cluster.toml");

fn experiment(evaluate: &str) -> String {
    format!(
        "name = \"x\"\n[[cluster.groups]]\naccelerator = \"t4\"\nnodes = 2\ngpus_per_node = 4\n\
         [workload.synthetic.pollux]\n{evaluate}"
    )
}

#[test]
fn a_policy_is_a_text_or_a_table() {
    let listed =
        "[evaluate]\npolicies = [\"fifo\", { name = \"tiresias+none\", starvation_knob = 2.0, limits = [600] }]";
    let read: Experiment = parse("x.toml", &experiment(listed)).unwrap();
    assert_eq!(read.evaluate.policies, ["fifo", "tiresias(limits=[600], starvation_knob=2)+none"]);
    let long = "[[evaluate.policies]]\nname = \"tiresias\"\nstarvation_knob = 2.0\n\
                [[evaluate.policies]]\nname = \"kueue\"\nwithin_cohort = \"never\"\n";
    let read: Experiment = parse("x.toml", &experiment(long)).unwrap();
    assert_eq!(read.evaluate.policies, ["tiresias(starvation_knob=2)", "kueue(within_cohort=never)"]);
    // A file with every default filled in says the same.
    let again: Experiment = parse("again.toml", &resolved(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn teachers_members_and_deployments_take_parameters_too() {
    let teacher = "[agent.evolution]\nteacher = { name = \"pollux-fast\", power = -2.0 }\n";
    let read: Experiment = parse("x.toml", &experiment(teacher)).unwrap();
    assert_eq!(read.agent.as_ref().and_then(AgentConfig::teacher), Some("pollux-fast(power=-2)"));

    let sets = ["clusters.0.policy={ name = \"gandiva+reactive\", quantum_secs = 900 }".to_owned()];
    let document = goodput_configs::reader::Document::new("f.toml", FEDERATION, &sets).unwrap();
    let federation: FederationConfig = goodput_configs::reader::of_document(&document).unwrap();
    assert_eq!(federation.clusters[0].policy, "gandiva(quantum_secs=900)+reactive");

    let sets = [
        "policy={ name = { name = \"tiresias\", starvation_knob = 2.0 } }".to_owned(),
        "reliance.fallback=gandiva(quantum_secs=600)".to_owned(),
        "shadow={ name = \"kai(min_runtime_secs=600)\" }".to_owned(),
    ];
    let document = goodput_configs::reader::Document::new("d.toml", DEPLOYMENT, &sets).unwrap();
    let deployment: Deployment = goodput_configs::reader::of_document(&document).unwrap();
    assert_eq!(deployment.policy.name.as_deref(), Some("tiresias(starvation_knob=2)"));
    assert_eq!(deployment.reliance.fallback, "gandiva(quantum_secs=600)");
}

#[test]
fn a_wrong_parameter_is_named_with_its_line_and_a_remedy() {
    let text = experiment(
        "[[evaluate.policies]]\nname = \"gandiva\"\nquantum_secs = 600\n\
         [[evaluate.policies]]\nname = \"gandiva\"\nquantum_secs = -1\n",
    );
    let error = parse::<Experiment>("x.toml", &text).unwrap_err();
    let line = text.lines().position(|line| line == "quantum_secs = -1").unwrap() + 1;
    assert!(error.message.starts_with(&format!("x.toml:{line}:")), "{error}");
    assert!(error.message.contains("quantum_secs is -1, expected a number from 1"), "{error}");
    assert!(error.help.is_some_and(|help| help.contains("goodput list policies --parameters")));
}

#[test]
fn the_schema_has_every_parameter() {
    let schema = serde_json::to_value(schema::of(Kind::Experiment)).unwrap();
    let choices = schema["$defs"]["PolicyText"]["anyOf"].as_array().unwrap();
    assert_eq!(choices[0]["type"], "string");
    for entry in policies() {
        let table = choices.iter().find(|choice| {
            let pattern = choice["properties"]["name"]["pattern"].as_str().unwrap_or_default();
            pattern.trim_start_matches("^(").split(')').next().unwrap().split('|').any(|name| name == entry.name)
        });
        let keys = table.unwrap_or_else(|| panic!("{} has no table", entry.name))["properties"].as_object().unwrap();
        for parameter in entry.constructor.parameters() {
            let property = &keys[&parameter.name];
            assert_eq!(property["default"], parameter.default, "{}: {}", entry.name, parameter.name);
            assert!(property["description"].is_string() && property["x-source"].is_string());
        }
        assert_eq!(keys.len(), 1 + entry.constructor.parameters().len(), "{}", entry.name);
    }
    for kind in [Kind::Federation, Kind::Deployment] {
        let schema = serde_json::to_value(schema::of(kind)).unwrap();
        assert!(matches!(schema["$defs"]["PolicyText"], Value::Object(_)), "{kind:?}");
    }
}

const QUOTA: &str = "[[tenants]]\nname = \"vision\"\nquota = { t4 = { nominal = 4 } }\n";

#[test]
fn a_policy_of_parts_is_refused_beside_quotas() {
    let with = |policies: &str, tenants: &str| experiment(&format!("[evaluate]\npolicies = {policies}\n{tenants}"));
    let error = parse::<Experiment>("x.toml", &with("[\"fifo\", \"fgd\"]", QUOTA)).unwrap_err();
    assert!(error.message.contains("evaluate.policies.1 is \"fgd\", which places jobs on parts"), "{error}");
    assert!(error.message.contains("tenant \"vision\" has a quota"), "{error}");
    assert!(error.help.is_some_and(|help| help.contains("share_limit")));
    parse::<Experiment>("x.toml", &with("[\"kueue\"]", QUOTA)).unwrap();
    let limit = "[[tenants]]\nname = \"vision\"\nshare_limit = { compute_percent = 100 }\n";
    parse::<Experiment>("x.toml", &with("[\"fgd\"]", limit)).unwrap();
}

#[test]
fn a_deployment_has_policies_that_know_its_quotas_and_limits() {
    let limit = "[[tenants]]\nname = \"vision\"\nshare_limit = { compute_percent = 100 }\n";
    for (tenants, policy, fallback, said) in [
        (QUOTA, "fgd", "fifo", Some("policy.name is \"fgd\", which places jobs on parts")),
        (QUOTA, "fifo", "best-fit", Some("reliance.fallback is \"best-fit\", which places jobs on parts")),
        (QUOTA, "fifo", "fifo", None),
        (limit, "fifo", "fgd", Some("policy.name is \"fifo\", which knows no limits of shares")),
        (limit, "fgd", "pollux-fast", Some("reliance.fallback is \"pollux-fast\", which knows no limits of shares")),
        (limit, "fgd", "hami-spread", None),
    ] {
        let sets = [format!("policy={{ name = \"{policy}\" }}"), format!("reliance.fallback={fallback}")];
        let document = goodput_configs::reader::Document::new("d.toml", format!("{DEPLOYMENT}\n{tenants}"), &sets);
        let read = goodput_configs::reader::of_document::<Deployment>(&document.unwrap());
        match (read, said) {
            (Ok(_), None) => {}
            (Err(error), Some(said)) => assert!(error.message.contains(said) && error.help.is_some(), "{error}"),
            (found, _) => panic!("{policy}, {fallback}: {:?}", found.err()),
        }
    }
}

#[test]
fn an_allocation_is_for_policies_that_go_by_it_and_tenants_that_can_share() {
    let read = |allocation: &str, policy: &str, tenants: &str| {
        let text = format!("[evaluate]\npolicies = [\"{policy}\"]\n[environment]\nallocation = \"{allocation}\"\n");
        parse::<Experiment>("x.toml", &format!("{}{tenants}", experiment(&text)))
    };
    let weights = "[[tenants]]\nname = \"vision\"\n[[tenants]]\nname = \"speech\"\n";
    let cohort = QUOTA.replace("name", "cohort = \"all\"\nname") + "[[cohorts]]\nname = \"all\"\n";
    let of_cohort = "[[tenants]]\nname = \"vision\"\ncohort = \"all\"\n\
                     [[cohorts]]\nname = \"all\"\nquota.t4.nominal = 8\n";
    let change = "quota_changes = [{ at_secs = 60, accelerator = \"t4\", quota = { nominal = 8 } }]";
    let later = QUOTA.replace("quota = { t4 = { nominal = 4 } }", change);
    let unequal = &weights.replace("\"speech\"", "\"speech\"\nweight = 0");
    let reserve = &format!("{weights}[resilience.reserve]\ngpus = 4\npriority = 1\n");
    let taken = Some("takes accelerators back from running jobs");
    for (allocation, policy, tenants, said) in [
        ("dynamic", "kueue+reactive", weights, taken),
        ("static", "kai+ats-i", weights, taken),
        ("dynamic", "kueue+none", weights, None),
        ("dynamic-preemptive", "kueue+reactive", weights, None),
        ("dynamic", "kueue", reserve, Some("[resilience.reserve] stops jobs on its nodes")),
        ("dynamic-preemptive", "kueue", reserve, None),
        ("static", "fifo", weights, Some("is \"fifo\", which does not go by an allocation of the run")),
        ("dynamic", "kueue-static", weights, Some("is \"kueue-static\", which does not go by an allocation")),
        ("static", "kueue", "", Some("environment.allocation is \"static\", and the file has no tenants")),
        ("dynamic", "kueue", QUOTA, Some("tenant \"vision\" has no cohort to lend to")),
        (
            "static",
            "kai",
            &format!("{QUOTA}{weights}").replace("\"vision\"\n[[", "\"text\"\n[["),
            Some("owns no accel"),
        ),
        ("static", "kubernetes", QUOTA, None),
        ("static", "kueue", of_cohort, Some("tenant \"vision\" owns no accelerators")),
        ("dynamic", "kueue", of_cohort, None),
        ("static", "kueue", &later, None),
        ("dynamic", "kueue", &later, Some("tenant \"vision\" has no cohort to lend to")),
        ("static", "kueue", unequal, Some("\"speech\" owns no accelerators: its weight is 0")),
        ("dynamic", "kueue", unequal, None),
        ("dynamic-preemptive", "kai", &cohort, None),
        ("static-preemptive", "kueue", weights, None),
    ] {
        match (read(allocation, policy, tenants), said) {
            (Ok(_), None) => {}
            (Err(error), Some(said)) => assert!(error.message.contains(said) && error.help.is_some(), "{error}"),
            (found, _) => panic!("{allocation}, {policy}: {:?}", found.err()),
        }
    }
}

/// A job of a file that its tenant may never hold is found before the run, with the limit and a remedy.
#[test]
fn a_job_wider_than_its_tenant_may_hold_is_refused() {
    let read = |gpus: u32, environment: &str, limits: &str| {
        let text = format!(
            "name = \"x\"\n[[cluster.groups]]\naccelerator = \"t4\"\nnodes = 2\ngpus_per_node = 4\n\
             [[workload.bursts]]\ntenant = \"vision\"\njobs = 1\ngpus = {gpus}\nrun_secs = 60\n\
             [evaluate]\npolicies = [\"kueue\"]\n[environment]\n{environment}\n\
             [[tenants]]\nname = \"vision\"\n{limits}\n[[tenants]]\nname = \"speech\"\n{limits}\n"
        );
        parse::<Experiment>("x.toml", &text).map(drop).map_err(|error| (error.message, error.help.unwrap_or_default()))
    };
    let halves = "allocation = \"static\"";
    assert_eq!(read(4, halves, ""), Ok(()));
    let (message, help) = read(8, halves, "").unwrap_err();
    assert!(message.contains("workload.bursts: job \"vision-0-0\" would wait for ever"), "{message}");
    assert!(message.contains("tenant \"vision\" owns 4 accelerators") && help.contains("larger weight"), "{help}");
    assert_eq!(read(8, "allocation = \"dynamic\"", ""), Ok(()));
    // A run that ends at its horizon may leave jobs behind.
    assert_eq!(read(8, &format!("{halves}\nhorizon_secs = 600"), ""), Ok(()));
    let (message, help) = read(5, "", "quota.t4.nominal = 4").unwrap_err();
    assert!(message.contains("the quotas let tenant \"vision\" hold 4 accelerators"), "{message}");
    assert!(help.contains("raise the quota"), "{help}");
}

#[test]
fn a_policy_by_a_figure_is_refused_where_no_type_has_it() {
    let on = |accelerator: &str, policy: &str| {
        let text = experiment(&format!("[evaluate]\npolicies = [\"{policy}\"]\n")).replace("t4", accelerator);
        parse::<Experiment>("x.toml", &text)
    };
    for (policy, figure) in [("gavel-per-watt", "watts"), ("gavel-per-dollar", "dollars_per_hour")] {
        let error = on("gpu", policy).unwrap_err();
        let said = format!("weighs accelerator types by {figure}, and {figure} is known of none of gpu");
        assert!(error.message.contains(&said), "{error}");
        assert!(error.help.is_some_and(|help| help.contains("goodput list accelerators")));
        on("t4", policy).unwrap();
    }
}
