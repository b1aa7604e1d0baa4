//! Accelerator types, applications, replicas of language models, and models of switching costs.

use goodput_console::{Cell, CommandError, Listing};
use goodput_datasets::Catalog;
use goodput_datasets::accelerators::Accelerators;
use goodput_datasets::language_models::LanguageModels;
use goodput_datasets::llm::ReplicaCatalog;
use goodput_env::model::switching::{NAMED, Switch};

use crate::command::sim::data_fault;

/// Listing of `goodput list accelerators`.
pub fn accelerators() -> Listing {
    const COLUMNS: &[&str] = &[
        "accelerator",
        "kind",
        "memory_mib",
        "watts",
        "watts_kind",
        "dollars_per_hour",
        "benchmarks",
        "models",
        "unchecked",
        "sources",
    ];
    let brief = ["accelerator", "memory_mib", "watts", "dollars_per_hour", "benchmarks", "models"];
    let mut rows = Listing::new(COLUMNS).brief(&brief);
    for row in Accelerators::shipped().rows() {
        rows.push(vec![
            row.accelerator.name.as_str().into(),
            format!("{:?}", row.accelerator.kind).to_lowercase().into(),
            Cell::option(row.accelerator.memory.as_ref(), |memory| Cell::Whole(i64::from(memory.mib))),
            Cell::option(row.accelerator.greatest_power(), |power| Cell::Number(power.watts, 1)),
            row.accelerator.greatest_power().map_or("", |power| power.kind.name()).into(),
            Cell::option(row.accelerator.price.as_ref(), |price| Cell::Number(price.dollars_per_hour, 3)),
            row.benchmarks.join(" ").into(),
            Cell::Whole(row.models as i64),
            Cell::Whole(row.unchecked as i64),
            row.sources.join("; ").into(),
        ]);
    }
    rows
}

/// Listing of `goodput list llm-replicas`: configurations of language models and the costs of a step, milliseconds.
pub fn llm_replicas() -> Listing {
    const BRIEF: &[&str] = &["replica", "devices", "rows", "kv_tokens", "fixed_ms", "prompt_ms"];
    const MORE: &[&str] = &["context_ms", "experts_ms", "expert_share", "sequence_ms", "pair_ms", "source"];
    let catalog = ReplicaCatalog::shipped();
    let mut rows = Listing::new(&[BRIEF, MORE].concat()).brief(BRIEF);
    let source = catalog.sources.values().map(String::as_str).collect::<Vec<_>>().join("; ");
    for replica in &catalog.replicas {
        let step = &replica.step;
        rows.push(vec![
            replica.name.as_str().into(),
            Cell::Whole(i64::from(replica.configuration.devices())),
            Cell::Whole(i64::from(replica.rows)),
            Cell::Whole(replica.kv_tokens as i64),
            Cell::Number(step.fixed_ms, 3),
            Cell::Number(step.prompt_ms, 6),
            Cell::Number(step.context_ms, 9),
            Cell::Number(step.experts_ms, 3),
            Cell::Number(step.expert_share, 4),
            Cell::Number(step.sequence_ms, 6),
            Cell::Number(step.pair_ms, 12),
            source.as_str().into(),
        ]);
    }
    rows
}

/// Listing of `goodput list applications`. A fixed batch size holds under every policy; another one is the batch size
/// that a policy may change.
pub fn applications() -> Result<Listing, CommandError> {
    const COLUMNS: &[&str] =
        &["application", "batch", "batch_size", "sample", "gpus", "tuned_gpus", "types", "sources"];
    let brief = ["application", "batch", "batch_size", "gpus", "tuned_gpus", "types"];
    let models = LanguageModels::shipped().map_err(data_fault)?;
    let mut rows = Listing::new(COLUMNS).brief(&brief);
    for application in &Catalog::shipped().applications {
        let model = models.models().iter().find(|model| model.name == application.name);
        let tuned = Catalog::shipped().tuned(&application.name).iter().map(|tuned| tuned.replicas.to_string());
        let sources = match model {
            Some(model) => models.sources(&model.name).join("; "),
            None => "fitted to the Pollux and Sia artifacts; TPUs, H100, H200 and L40S derived by MLPerf".to_owned(),
        };
        rows.push(vec![
            application.name.as_str().into(),
            if application.fixed_batch.is_some() { "fixed" } else { "adapted" }.into(),
            Cell::Whole(application.fixed_batch.unwrap_or(application.limits.init).into()),
            model.map_or("sample", |model| model.sample.as_str()).into(),
            format!("{} to {}", application.min_replicas(), application.max_replicas).into(),
            tuned.collect::<Vec<_>>().join(" ").into(),
            application.params.keys().map(String::as_str).collect::<Vec<_>>().join(" ").into(),
            sources.into(),
        ]);
    }
    Ok(rows)
}

/// Listing of `goodput list switch-costs`: seconds that BERT and ResNet-50 stand still, by event. The
/// jobs go from 4 accelerators to 2 or 8, or to 4 other ones.
pub fn switch_costs() -> Listing {
    let mut rows =
        Listing::new(&["model", "application", "cold", "grow", "shrink", "move", "resume", "about", "source"])
            .brief(&["model", "application", "cold", "grow", "shrink", "move", "resume"]);
    for named in NAMED {
        for application in ["bert", "imagenet"] {
            let secs = |from, to, started| {
                let switch = Switch { application, from, to, moved: true, started };
                Cell::Number(named.cost.components(&switch).total() as f64 / 1e3, 3)
            };
            rows.push(vec![
                named.name.into(),
                application.into(),
                secs(0, 4, false),
                secs(4, 8, true),
                secs(4, 2, true),
                secs(4, 4, true),
                secs(0, 4, true),
                named.about.into(),
                named.source.into(),
            ]);
        }
    }
    rows
}
