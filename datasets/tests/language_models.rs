//! Applications that train language models: what ships follows from the published measurements.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests; a table for the reader")]

use std::fmt::Write as _;

use goodput_datasets::Catalog;
use goodput_datasets::jobs::{JobRow, into_workload};
use goodput_datasets::language_models::LanguageModels;
use goodput_env::model::{MeasuredStepTimes, ThroughputParams};

/// The seven parameters in the order of their table.
fn values(p: &ThroughputParams) -> [f64; 7] {
    [p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, p.gamma]
}

#[test]
fn shipped_parameters_are_fitted_to_the_measurements() {
    let models = LanguageModels::shipped().unwrap();
    let (mut made, mut differs) = (String::new(), false);
    for model in models.models() {
        for (kind, plans) in models.plans(&model.name) {
            let fitted = values(&LanguageModels::fitted(model, &plans).unwrap());
            let shipped = model.params.get(kind).map(values);
            let near = |shipped: [f64; 7]| shipped.iter().zip(fitted).all(|(a, b)| (a / b - 1.0).abs() < 1e-3);
            differs |= !shipped.is_some_and(near);
            let text = fitted.map(|value| format!("{value:.4e}")).join(" ");
            writeln!(made, "{} {kind} {text}", model.name).unwrap();
        }
    }
    assert!(!differs, "catalog/language-models.toml is out of date; the fit now gives\n{made}");
}

#[test]
fn a_measured_placement_has_the_time_of_its_fastest_plan() {
    let models = LanguageModels::shipped().unwrap();
    for row in &models.rows {
        let pace = Catalog::shipped().get(&row.application).unwrap().pace(&row.accelerator).unwrap();
        let secs = pace.step_time(&row.sample.shape, 1).unwrap().step_secs;
        let plans = models.plans(&row.application).remove(row.accelerator.as_str()).unwrap();
        let here = plans.iter().filter(|plan| plan.shape == row.sample.shape).map(|plan| plan.step_secs);
        // Wide placements are known by their number of nodes only, and those of AutoModel have one plan each.
        assert_eq!(secs, here.fold(f64::INFINITY, f64::min), "{} {:?}", row.application, row.sample.shape);
    }
}

#[test]
fn derived_types_are_faster_by_the_published_factor() {
    let models = LanguageModels::shipped().unwrap();
    let derived = &models.derived()[0];
    let llama = Catalog::shipped().get("llama2-7b").unwrap();
    let secs = |kind: &str| llama.pace(kind).unwrap().step_time(&[8, 8], 1).unwrap().step_secs;
    assert!((secs(&derived.from) / secs(&derived.accelerator) - derived.faster).abs() < 1e-12);
    assert_eq!(secs("a800"), 1.13078);
}

#[test]
fn a_job_below_the_smallest_plan_is_refused() {
    let row = |application: &str, gpus| JobRow {
        job_id: "a".into(),
        application: Some(application.into()),
        gpus,
        ..JobRow::default()
    };
    let read = |row: JobRow| into_workload(vec![row], Catalog::shipped()).map(|(workload, _)| workload);
    let error = read(row("llama2-70b-lora", 4)).unwrap_err().1.to_string();
    assert_eq!(error, "llama2-70b-lora cannot run on 4 accelerators: its published plans have 8 to 64");
    assert!(read(row("llama-30b", 65)).is_err() && read(JobRow { gpu_min: Some(8), ..row("llama-30b", 32) }).is_err());
    let request = read(row("llama-30b", 32)).unwrap().jobs[0].request.clone();
    assert_eq!((request.min_gpus(), request.max_gpus()), (24, 64));
    let rigid = read(row("qwen3-moe-30b", 8)).unwrap().jobs[0].request.clone();
    assert_eq!((rigid.min_gpus(), rigid.max_gpus()), (8, 8));
    let pace = Catalog::shipped().get("llama2-70b-lora").unwrap().pace("h100").unwrap();
    assert!(pace.step_time(&[4], 1).is_err() && pace.step_time(&[4, 3], 1).is_err());
}

#[test]
fn other_workloads_do_not_list_language_models() {
    let row = |application: &str| JobRow {
        job_id: application.into(),
        application: Some(application.into()),
        gpus: 8,
        ..JobRow::default()
    };
    let (bert, _) = into_workload(vec![row("bert")], Catalog::shipped()).unwrap();
    let (both, _) = into_workload(vec![row("bert"), row("gpt2-1.5b")], Catalog::shipped()).unwrap();
    assert_eq!(bert.applications.len(), Catalog::shipped().adaptive().len());
    assert_eq!(both.applications.len(), Catalog::shipped().applications.len());
}

/// Errors of estimates relative to the measured times: mean of the magnitudes, mean, and the largest, percent.
fn errors(pairs: &[(f64, f64)]) -> [f64; 3] {
    let errors: Vec<f64> = pairs.iter().map(|(estimate, measured)| 100.0 * (estimate / measured - 1.0)).collect();
    let mean = |of: &dyn Fn(f64) -> f64| errors.iter().map(|error| of(*error)).sum::<f64>() / errors.len() as f64;
    let largest = errors.iter().fold(0.0_f64, |most, error| if error.abs() > most.abs() { *error } else { most });
    [mean(&f64::abs), mean(&|error| error), largest]
}

/// Prints the table of `docs/src/results/language-models.md`: how far the times of a placement that was not measured,
/// and the fitted parameters, are from the fastest published plans.
#[test]
fn estimates_are_near_the_fastest_plans() {
    let models = LanguageModels::shipped().unwrap();
    for model in models.models() {
        for (kind, plans) in models.plans(&model.name) {
            let mut fastest = std::collections::BTreeMap::<Vec<u32>, f64>::new();
            for plan in &plans {
                let best = fastest.entry(plan.shape.clone()).or_insert(f64::INFINITY);
                *best = best.min(plan.step_secs);
            }
            let params = model.params[kind];
            let fitted: Vec<(f64, f64)> = fastest
                .iter()
                .map(|(shape, secs)| {
                    let (nodes, gpus) = (shape.len() as u32, shape.iter().sum::<u32>());
                    (params.optim_time(nodes, gpus, model.batch.div_ceil(gpus)), *secs)
                })
                .collect();
            let left_out: Vec<(f64, f64)> = fastest
                .iter()
                .filter_map(|(shape, secs)| {
                    let others: Vec<_> = plans.iter().filter(|plan| plan.shape != *shape).cloned().collect();
                    let times = MeasuredStepTimes::of_plans(&others, model.batch).ok()?;
                    Some((times.step_time(shape, 1).ok()?.step_secs, *secs))
                })
                .collect();
            let text = |pairs: &[(f64, f64)]| match pairs {
                [] => "- | - | -".to_owned(),
                pairs => errors(pairs).map(|error| format!("{error:.1}")).join(" | "),
            };
            let (rows, placements) = (plans.len(), fastest.len());
            println!(
                "| {} | {kind} | {rows} | {placements} | {} | {} | {} |",
                model.name,
                left_out.len(),
                text(&left_out),
                text(&fitted)
            );
            assert!(errors(&fitted)[0] < 60.0, "{} {kind}: {:?}", model.name, errors(&fitted));
        }
    }
}
