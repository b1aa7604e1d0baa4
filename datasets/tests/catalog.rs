//! The shipped catalog: made from the measurements, and close to them.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use crate::shared::profiles;
use goodput_datasets::catalog::Catalog;
use goodput_datasets::fit::{add_types, fidelity, fit_catalog};
use goodput_datasets::import::pollux_profiles;

#[test]
fn the_shipped_file_is_what_the_measurements_give() {
    let mut made = fit_catalog(&profiles()).unwrap();
    add_types(&mut made, &crate::shared::shared("data/sia")).unwrap();
    let made = made.to_toml();
    let shipped = include_str!("../catalog/applications.toml");
    if made != shipped {
        let path = std::env::temp_dir().join("applications.toml");
        std::fs::write(&path, &made).unwrap();
        panic!("catalog/applications.toml is out of date: `goodput data fit` now gives {}", path.display());
    }
}

#[test]
fn tuned_configurations_are_the_published_ones() {
    let json = crate::shared::json("reference/pollux/fitted_params.json");
    for application in Catalog::shipped().adaptive() {
        let published = json[&application.name]["tuned_configurations"].as_array().unwrap();
        let ours = Catalog::shipped().tuned(&application.name);
        assert_eq!(published.len(), ours.len(), "{}", application.name);
        for (published, ours) in published.iter().zip(ours) {
            assert_eq!(published["num_replicas"].as_u64(), Some(ours.replicas.into()));
            assert_eq!(published["batch_size"].as_u64(), Some(ours.batch_size.into()));
            let ideal = published["ideal_jct_s"].as_f64().unwrap();
            assert!((ours.ideal_secs / ideal - 1.0).abs() < 1e-4, "{}: {ours:?}", application.name);
        }
    }
}

#[test]
fn shipped_and_measured_applications_differ_only_in_what_is_fitted() {
    let measured = pollux_profiles::catalog(&profiles(), None).unwrap();
    for (truth, shipped) in measured.applications.iter().zip(Catalog::shipped().adaptive()) {
        assert_eq!(truth.name, shipped.name);
        assert_eq!(
            (truth.limits, truth.max_replicas, truth.fixed_batch),
            (shipped.limits, shipped.max_replicas, shipped.fixed_batch)
        );
        assert_eq!(truth.params.get("t4"), shipped.params.get("t4"), "what is believed does not depend on --profiles");
        assert_eq!(truth.epochs.len(), shipped.epochs.len());
        assert!((truth.total_work() / shipped.total_work() - 1.0).abs() < 1e-7);
        // Iterations of a whole run at each validated batch size.
        let work = |application: &goodput_env::application::Application, batch: f64| -> f64 {
            let init = f64::from(application.limits.init);
            let mut before = 0.0;
            let epochs = application.epochs.iter().enumerate();
            let each = epochs.map(|(epoch, &progress)| {
                let done = (progress - before) / application.gradients.at(batch, epoch as u32).gain(batch / init);
                before = progress;
                done
            });
            each.sum()
        };
        for &batch in truth.gradients.sqr.batch_sizes() {
            let ratio = work(shipped, batch) / work(truth, batch);
            assert!((ratio - 1.0).abs() < 2e-3, "{} at {batch}: {ratio}", truth.name);
            let oracle = shipped.iterations.as_ref().unwrap().0.at(batch, shipped.epochs.len() as u32 - 1);
            assert!((oracle / work(shipped, batch) - 1.0).abs() < 1e-12);
        }
        // Between validated batch sizes the catalog interpolates normalised statistics; that costs
        // little.
        for pair in truth.gradients.sqr.batch_sizes().windows(2) {
            let batch = (pair[0] * pair[1]).sqrt();
            let ratio = work(shipped, batch) / work(truth, batch);
            assert!((ratio - 1.0).abs() < 0.08, "{} at {batch}: {ratio}", truth.name);
        }
    }
}

#[test]
fn undisturbed_runs_take_as_long_as_measured() {
    let measured = pollux_profiles::catalog(&profiles(), None).unwrap();
    for (truth, shipped) in measured.applications.iter().zip(Catalog::shipped().adaptive()) {
        let fidelity = fidelity(truth, shipped);
        println!(
            "{}: mean {:.3} bias {:+.3} worst {:?}",
            truth.name,
            fidelity.mean_abs(),
            fidelity.bias(),
            fidelity.worst()
        );
        assert!(!fidelity.errors.is_empty());
        assert!(fidelity.mean_abs() < 0.085 && fidelity.bias().abs() < 0.03, "{fidelity:?}");
        for tuned in Catalog::shipped().tuned(&truth.name) {
            let error =
                fidelity.errors.iter().find(|error| (error.0, error.1) == (tuned.replicas, tuned.batch_size)).unwrap();
            assert!(error.2.abs() < 0.12, "{}: {error:?}", truth.name);
        }
    }
}

#[test]
fn a_broken_catalog_names_its_line_or_application() {
    let text = include_str!("../catalog/applications.toml");
    let parse = |from: &str, to: &str| {
        assert!(text.contains(from));
        Catalog::parse(Path::new("c.toml"), &text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let line = text.lines().position(|line| line.starts_with("max_replicas")).unwrap() + 1;
    assert!(
        parse("max_replicas = 64", "max_replica = 64")
            .starts_with(&format!("c.toml:{line}:1: unknown field `max_replica`"))
    );
    assert!(parse("max_replicas = 64", "max_replicas = -4").starts_with(&format!("c.toml:{line}:16: ")));
    assert!(parse("max_replicas = 64", "max_replicas = 0").contains("application `bert`: max_replicas"));
    assert!(parse("name = \"cifar10\"", "name = \"bert\"").contains("application `bert`: is there twice"));
    assert!(parse("phases = [1, 2]", "phases = [2, 1]").contains("application `bert`: phases"));
    assert!(parse("phases = [1, 2]", "phases = [1]").contains("application `bert`: progress must be 1"));
    assert!(parse("gamma = ", "gamma = -").contains("application `bert`: params.a100"));
    assert!(Catalog::parse(Path::new("c.toml"), "[[application]").unwrap_err().to_string().starts_with("c.toml:1:"));
}
