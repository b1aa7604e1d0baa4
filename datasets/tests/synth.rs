//! Generators: the same seed is the same workload, and rates are what the settings say.
#![allow(clippy::unwrap_used)] // a test fails by panicking, helpers too

use std::path::Path;

use crate::shared::shared;
use goodput_datasets::catalog::Catalog;
use goodput_datasets::store::{jobs, provenance::sha256};
use goodput_datasets::synth::{DiurnalSynth, Generator, Lengths, PolluxSynth, Sizes, SynthConfig, SynthError};
use goodput_env::job::{Work, Workload};

fn pollux(settings: PolluxSynth) -> Generator {
    SynthConfig::Pollux(settings).build(Catalog::shipped()).unwrap()
}

fn diurnal(settings: DiurnalSynth) -> Generator {
    SynthConfig::Diurnal(settings).build(Catalog::shipped()).unwrap()
}

/// Shares of cifar10 or ncf, deepspeech2 or bert, yolov3, imagenet.
fn classes(workload: &Workload) -> [f64; 4] {
    let mut counts = [0.0; 4];
    for id in 0..workload.jobs.len() {
        let class = match workload.application_name(goodput_env::job::JobId(id as u32)) {
            "cifar10" | "ncf" => 0,
            "deepspeech2" | "bert" => 1,
            "yolov3" => 2,
            _ => 3,
        };
        counts[class] += 1.0;
    }
    counts.map(|count| count / workload.jobs.len() as f64)
}

#[test]
fn the_same_seed_is_the_same_bytes_and_another_is_not() {
    for generator in [pollux(PolluxSynth::default()), diurnal(DiurnalSynth::default())] {
        let bytes = |seed| jobs::table(&generator.rows(seed)).to_parquet(Path::new("w")).unwrap();
        assert_eq!(sha256(&bytes(3)), sha256(&bytes(3)));
        assert_ne!(bytes(3), bytes(4));
        let workload = generator.generate(3);
        assert_eq!(workload.jobs.len(), 160);
        assert!(workload.jobs.is_sorted_by_key(|job| job.request.submit));
        assert!(workload.jobs.iter().all(|job| job.request.accepts(job.request.gpus)));
    }
}

#[test]
fn pollux_figures_and_trace_give_the_same_distribution() {
    let settings = |trace| PolluxSynth { jobs: 20_000, trace, ..PolluxSynth::default() };
    let figures = pollux(settings(None)).generate(1);
    let trace = pollux(settings(Some(shared("data/philly/philly.csv")))).generate(1);
    for workload in [&figures, &trace] {
        // Of the 31,293 eligible jobs of the trace.
        for (share, expected) in classes(workload).iter().zip([0.7829, 0.1525, 0.0460, 0.0187]) {
            assert!((share - expected).abs() < 0.01, "{share} is not {expected}");
        }
        let mut hours = [0.0_f64; 8];
        for job in &workload.jobs {
            hours[(job.request.submit.as_millis() / 3_600_000) as usize] += 1.0 / 20_000.0;
        }
        for (share, count) in hours.iter().zip([3550.0, 3368.0, 2240.0, 3728.0, 5169.0, 6585.0, 3499.0, 3154.0]) {
            assert!((share - count / 31_293.0).abs() < 0.01, "{hours:?}");
        }
    }
}

#[test]
fn tuned_jobs_ask_for_tuned_configurations_and_realistic_ones_scale_the_batch() {
    let workload = pollux(PolluxSynth::default()).generate(9);
    for (id, job) in workload.jobs.iter().enumerate() {
        let tuned = Catalog::shipped().tuned(workload.application_name(goodput_env::job::JobId(id as u32)));
        assert!(
            tuned
                .iter()
                .any(|tuned| (tuned.replicas, Some(tuned.batch_size)) == (job.request.gpus, job.request.batch_size))
        );
    }
    for trace in [None, Some(shared("data/philly/philly.csv"))] {
        let workload =
            pollux(PolluxSynth { sizes: Sizes::Realistic, jobs: 2000, trace, ..PolluxSynth::default() }).generate(9);
        for (id, job) in workload.jobs.iter().enumerate() {
            let limits = workload.application(goodput_env::job::JobId(id as u32)).unwrap().limits;
            assert_eq!(job.request.batch_size, Some((limits.init * job.request.gpus).min(limits.max)));
        }
        let single = workload.jobs.iter().filter(|job| job.request.gpus == 1).count();
        assert!((1750..1990).contains(&single), "{single}");
    }
}

#[test]
fn diurnal_rates_are_the_configured_ones() {
    // A hundred weeks at 10 an hour: 168,000 jobs.
    let settings = DiurnalSynth {
        jobs: 168_000,
        jobs_per_hour: 10.0,
        start_hour: Some(0.0),
        tenants: 4,
        ..DiurnalSynth::default()
    };
    let generator = diurnal(settings.clone());
    let workload = generator.generate(2);
    let hour = |index: usize| workload.jobs[index].request.submit.as_secs_f64() / 3600.0;
    let rate = 168_000.0 / hour(167_999);
    assert!((rate / 10.0 - 1.0).abs() < 0.03, "{rate}");

    let (mut weekend, mut peak, mut trough) = (0.0, 0.0, 0.0);
    for index in 0..workload.jobs.len() {
        let of_week = hour(index).rem_euclid(168.0);
        weekend += f64::from(u8::from(of_week >= 120.0));
        let of_day = of_week.rem_euclid(24.0);
        peak += f64::from(u8::from((13.0..15.0).contains(&of_day)));
        trough += f64::from(u8::from(!(3.0..1000.0).contains(&of_day) || (1.0..3.0).contains(&of_day)));
    }
    let weekend_ratio: f64 = (weekend / 2.0) / ((168_000.0 - weekend) / 5.0);
    assert!((weekend_ratio - 0.6).abs() < 0.05, "{weekend_ratio}");
    // Two hours around the peak at about 1.6 times the mean, three around the trough at about 0.4.
    assert!((peak / 14_000.0 - 1.6_f64).abs() < 0.08, "{}", peak / 14_000.0);
    assert!((trough / 21_000.0 - 0.43_f64).abs() < 0.08, "{}", trough / 21_000.0);

    // Bursts: counts in ten minutes vary more than a Poisson process of the same rate.
    let dispersion = |burst_factor: f64| {
        let settings = DiurnalSynth { burst_factor, daily_swing: 0.0, weekend: 1.0, ..settings.clone() };
        let workload = diurnal(settings).generate(2);
        let last = workload.jobs.last().unwrap().request.submit.as_millis() / 600_000;
        let mut counts = vec![0.0; last as usize + 1];
        for job in &workload.jobs {
            counts[(job.request.submit.as_millis() / 600_000) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / counts.len() as f64 / mean
    };
    let (smooth, bursty) = (dispersion(1.0), dispersion(5.0));
    assert!((smooth - 1.0).abs() < 0.05 && bursty > 1.5, "{smooth} {bursty}");

    let mut tenants = [0.0_f64; 4];
    for job in &workload.jobs {
        tenants[job.request.tenant as usize] += 1.0 / 168_000.0;
    }
    for (share, expected) in tenants.iter().zip([0.48, 0.24, 0.16, 0.12]) {
        assert!((share - expected).abs() < 0.01, "{tenants:?}");
    }
    for (share, expected) in classes(&workload).iter().zip([0.746, 0.186, 0.048, 0.02]) {
        assert!((share - expected).abs() < 0.01);
    }
}

#[test]
fn starts_are_drawn_by_the_seed_and_bursts_may_be_off() {
    for settings in [
        DiurnalSynth { burst_share: 0.0, ..DiurnalSynth::default() },
        DiurnalSynth { weekend: 0.0, daily_swing: 1.0, jobs_per_hour: 0.001, ..DiurnalSynth::default() },
        DiurnalSynth { burst_share: 0.99, burst_factor: 1000.0, burst_minutes: 0.01, ..DiurnalSynth::default() },
    ] {
        let generator = diurnal(settings);
        for seed in 0..20 {
            assert_eq!(generator.generate(seed).jobs.len(), 160);
        }
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let refused = |config: SynthConfig| config.build(Catalog::shipped()).unwrap_err();
    let diurnal = |settings| refused(SynthConfig::Diurnal(settings)).to_string();
    assert_eq!(diurnal(DiurnalSynth { jobs: 0, ..DiurnalSynth::default() }), "jobs is 0, expected 1 to 10000000");
    assert_eq!(
        diurnal(DiurnalSynth { jobs_per_hour: f64::NAN, ..DiurnalSynth::default() }),
        "jobs_per_hour is NaN, expected 0.001 to 1000000"
    );
    assert_eq!(
        diurnal(DiurnalSynth { daily_swing: 1.5, ..DiurnalSynth::default() }),
        "daily_swing is 1.5, expected 0 to 1"
    );
    let mix = [("resnet".to_owned(), 1.0)].into();
    assert!(
        diurnal(DiurnalSynth { mix, ..DiurnalSynth::default() })
            .starts_with("application `resnet` is not in the catalog")
    );
    let mix = std::collections::BTreeMap::new();
    assert!(diurnal(DiurnalSynth { mix, ..DiurnalSynth::default() }).starts_with("mix is 0, expected"));
    let trace = Some(shared("data/philly/philly.csv"));
    let many = refused(SynthConfig::Pollux(PolluxSynth { jobs: 100_000, trace, ..PolluxSynth::default() }));
    assert!(matches!(many, SynthError::TooFew { found: 31_293, .. }), "{many}");
    let absent = PolluxSynth { trace: Some("/absent.csv".into()), ..PolluxSynth::default() };
    assert!(matches!(refused(SynthConfig::Pollux(absent)), SynthError::Trace(_)));

    let parse = |text: &str| toml::from_str::<std::collections::BTreeMap<String, SynthConfig>>(text);
    let parsed = parse("[synth.diurnal]\njobs = 10\n[synth.diurnal.mix]\nbert = 1\n").unwrap();
    let SynthConfig::Diurnal(settings) = &parsed["synth"] else { panic!("not diurnal") };
    assert_eq!((settings.jobs, settings.mix.len()), (10, 1));
    assert!(parse("[synth.diurnal]\njob = 10\n").unwrap_err().to_string().contains("unknown field `job`"));
}

#[test]
fn jobs_of_known_length_are_what_the_settings_say_and_survive_their_table() {
    let lengths = Lengths { elastic_share: 0.25, elastic_range: 3, ..Lengths::default() };
    let expected: f64 = lengths.widths.iter().map(|(gpus, share)| f64::from(*gpus) * share).sum();
    let generator =
        diurnal(DiurnalSynth { jobs: 20_000, lengths: Some(lengths), tenants: 3, ..DiurnalSynth::default() });
    let workload = generator.generate(5);
    let mut secs: Vec<f64> = Vec::new();
    let (mut gpus, mut elastic) = (0.0, 0.0);
    for job in &workload.jobs {
        let Work::Fixed { duration } = job.work else { panic!("{job:?} has no duration") };
        secs.push(duration.as_secs_f64());
        gpus += f64::from(job.request.gpus) / 20_000.0;
        let range = (job.request.min_gpus(), job.request.max_gpus());
        assert!(range == (job.request.gpus, job.request.gpus) || range == (job.request.gpus, 3 * job.request.gpus));
        elastic += f64::from(u8::from(range.0 < range.1)) / 20_000.0;
    }
    secs.sort_by(f64::total_cmp);
    assert!((secs[10_000] / 1800.0 - 1.0).abs() < 0.05, "median {}", secs[10_000]);
    // The standard normal distribution has 84.13 % below one standard deviation.
    assert!((secs[16_827] / (1800.0 * 1.95_f64.exp()) - 1.0).abs() < 0.1, "{}", secs[16_827]);
    assert!((gpus / expected - 1.0).abs() < 0.03, "{gpus} accelerators a job, expected {expected}");
    assert!((elastic - 0.25).abs() < 0.01, "{elastic} are elastic");
    let (again, _) = goodput_datasets::jobs::into_workload(generator.rows(5), Catalog::shipped()).unwrap();
    assert_eq!(again.jobs, workload.jobs);
    let wrong = Lengths { widths: Vec::new(), ..Lengths::default() };
    let refused = SynthConfig::Diurnal(DiurnalSynth { lengths: Some(wrong), ..DiurnalSynth::default() });
    assert!(matches!(refused.build(Catalog::shipped()), Err(SynthError::Setting { setting: "lengths.widths", .. })));
}

#[test]
fn work_is_spread_around_the_whole_and_nothing_else_changes() {
    let generator = |work_spread| pollux(PolluxSynth { jobs: 20_000, work_spread, ..PolluxSynth::default() });
    let (plain, spread) = (generator(0.0).generate(5), generator(1.0).generate(5));
    let mut factors: Vec<f64> = Vec::new();
    for (plain, spread) in plain.jobs.iter().zip(&spread.jobs) {
        assert_eq!(plain.request, spread.request);
        let (Work::Application { index, work_milli }, Work::Application { index: same, work_milli: whole }) =
            (spread.work, plain.work)
        else {
            panic!("not an application: {:?}", spread.work)
        };
        assert_eq!((index, whole), (same, goodput_env::job::WHOLE));
        factors.push(f64::from(work_milli) / 1000.0);
    }
    factors.sort_by(f64::total_cmp);
    let mean = factors.iter().sum::<f64>() / 20_000.0;
    assert!((mean - 1.0).abs() < 0.04, "mean {mean}: the load stays");
    assert!((factors[10_000] / (-0.5_f64).exp() - 1.0).abs() < 0.04, "median {}", factors[10_000]);
    assert!((factors[16_827] / 0.5_f64.exp() - 1.0).abs() < 0.05, "one deviation up: {}", factors[16_827]);
    let table = jobs::table(&generator(1.0).rows(5)).to_parquet(Path::new("w")).unwrap();
    let rows = jobs::from_bytes(Path::new("w"), table).unwrap().jobs;
    let (again, _) = goodput_datasets::jobs::into_workload(rows, Catalog::shipped()).unwrap();
    assert_eq!(again.jobs, spread.jobs, "as many thousandths after Parquet");
}
