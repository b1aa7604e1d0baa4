//! Gavel's traces and throughputs: the real files, and files with one thing wrong.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use crate::shared::shared;
use goodput_datasets::DataError;
use goodput_datasets::import::{gavel, gavel_throughputs};
use goodput_env::job::{JobClass, JobId, Work};
use goodput_env::time::SimTime;

fn classes() -> Vec<JobClass> {
    let path = shared("data/gavel/simulation_throughputs.json");
    gavel_throughputs::parse(&path, &std::fs::read(&path).unwrap()).unwrap()
}

#[test]
fn the_published_throughputs() {
    let classes = classes();
    assert_eq!(classes.len(), 83);
    assert_eq!(classes.iter().filter(|class| class.gpus == 1).count(), 26);
    let find = |name: &str, gpus| classes.iter().find(|class| class.name == name && class.gpus == gpus).unwrap();
    let resnet = find("ResNet-50 (batch size 64)", 1);
    let speed = |kind: &str| (resnet.steps_per_sec[kind] * 1000.0).round() / 1000.0;
    assert_eq!([speed("v100"), speed("p100"), speed("k80")], [4.395, 2.619, 0.619]);
    // Two accelerators of a K80 do not hold this one: missing, not zero.
    let wide = find("ResNet-50 (batch size 128)", 2);
    assert!(wide.steps_per_sec.contains_key("v100") && !wide.steps_per_sec.contains_key("k80"));
    assert!(classes.iter().all(|class| class.steps_per_sec.values().all(|&speed| speed > 0.0)));
    // Beside another job each is slower than alone.
    let beside = &find("ResNet-18 (batch size 16)", 1).steps_per_sec_beside["k80"];
    assert_eq!(beside["ResNet-18 (batch size 32)"], 2.539_979_567_443_098);
}

#[test]
fn the_published_trace() {
    let path = shared("data/gavel/medium_test.trace");
    let trace = gavel::parse(&path, &std::fs::read(&path).unwrap(), &classes()).unwrap();
    assert_eq!((trace.report.kept, trace.report.refused.count, trace.report.repaired.count), (20, 0, 0));
    let jobs = &trace.workload.jobs;
    assert_eq!(jobs.len(), 20);
    assert!(jobs.iter().all(|job| job.request.gpus == 1 && job.request.submit == SimTime::ZERO));
    let Work::Steps { class, steps } = jobs[0].work else { panic!("{:?}", jobs[0].work) };
    assert_eq!(steps, 20_776.0);
    assert_eq!(trace.workload.classes[class as usize].name, "Transformer (batch size 128)");
    assert_eq!(trace.workload.classes.len(), 14, "only what occurs");
}

fn row(steps: &str, gpus: &str, weight: &str, slo: &str, arrival: &str) -> String {
    format!("CycleGAN\tcmd\tdir\t--n\t1\t{steps}\t{gpus}\t{weight}\t{slo}\t{arrival}\n")
}

#[test]
fn every_row_is_kept_or_refused_with_its_line() {
    let text = [
        row("10", "1", "1", "-1.0", "5.5"),
        row("0", "1", "1", "-1", "0"),
        row("10", "0", "1", "-1", "0"),
        row("10", "3", "1", "-1", "0"),
        row("10", "1", "5", "1.2", "2"),
        row("10", "1", "1", "-1", "soon"),
        "CycleGAN\t1\n".into(),
        "\n".into(),
    ]
    .concat();
    let trace = gavel::parse(Path::new("t.trace"), text.as_bytes(), &classes()).unwrap();
    let report = trace.report.to_string();
    assert_eq!((trace.report.kept, trace.report.refused.count), (2, 5), "{report}");
    for line in
        ["line 2: total_steps", "line 3: scale_factor", "line 4: jobs of type `CycleGAN` on 3", "line 6: arrival_time"]
    {
        assert!(report.contains(line), "{line} is not in\n{report}");
    }
    assert!(report.contains("line 7: the row has 2 fields, the header 10"), "{report}");
    let (first, speeds) = (&trace.workload.jobs[0].request, &trace.workload.classes[0].steps_per_sec);
    let alone = 10.0 / speeds.values().copied().fold(0.0, f64::max);
    assert_eq!(first.submit, SimTime::from_secs(2), "sorted by arrival");
    assert_eq!((first.weight_milli, first.deadline), (5000, Some(SimTime::from_secs_f64(2.0 + 1.2 * alone))));
    assert_eq!((trace.workload.jobs[1].request.weight_milli, trace.workload.jobs[1].request.deadline), (1000, None));
    assert!(matches!(gavel::parse(Path::new("t"), b"\n", &classes()), Err(DataError::Empty { .. })));
}

#[test]
fn throughputs_of_another_shape_say_where() {
    let parse = |text: &str| gavel_throughputs::parse(Path::new("t.json"), text.as_bytes()).unwrap_err();
    let cases = [
        ("{", "t.json: line 1"),
        ("{\"v100\": {\"CycleGAN\": {}}}", "t.json: v100, CycleGAN: expected a key"),
        (
            "{\"v100\": {\"('CycleGAN', 1)\": {\"null\": -1}}}",
            "t.json: v100, ('CycleGAN', 1), null: expected steps per second",
        ),
        ("{\"v100\": {\"('A', 1)\": {\"('B', 1)\": [1]}}}", "t.json: v100, ('A', 1), ('B', 1): expected two speeds"),
    ];
    for (text, message) in cases {
        let error = parse(text);
        assert!(error.to_string().contains(message), "{error}");
        assert!(!error.remedy().is_empty());
    }
    assert!(matches!(parse("{}"), DataError::Empty { .. }));
}

#[test]
fn jobs_of_shockwaves_trace_change_their_batch_size() {
    let dir = shared("data/shockwave");
    let speeds = dir.join("tacc_throughputs.json.gz");
    let workload = gavel::read(&dir.join("120_0.2_5_100_40_25.trace"), &speeds).unwrap();
    assert_eq!(workload.jobs.len(), 120);
    assert_eq!(workload.jobs[119].request.submit.as_secs_f64(), 5011.0);
    // The second job: ResNet-18 at a batch size of 32 under Accordion, 143,450 steps of 1,563 an epoch, 91.8 epochs.
    // It leaves its critical regime after ten, for a batch size of 256 with 196 steps an epoch.
    let class = workload.class(JobId(1)).unwrap();
    assert_eq!(class.name, "ResNet-18 (batch size 32, accordion)");
    assert_eq!((class.steps_per_epoch, class.later.len()), (Some(1563.0), 1));
    assert_eq!((class.later[0].begins, class.later[0].step_work), (15630.0, 1563.0 / 196.0));
    let modes = |end: &str| workload.classes.iter().filter(|class| class.name.ends_with(end)).count();
    assert!(modes(", accordion)") > 10 && modes(", gns)") > 10);
}

#[test]
fn a_mode_that_is_not_known_is_an_error() {
    let row = "LM (batch size 10)\tpython3\tlm\t--steps\t1\t100\t1\tpollux\t1\t-1\t10\t0\n";
    let trace = gavel::parse(Path::new("t.trace"), row.as_bytes(), &classes()).unwrap();
    let problem = trace.report.refused.examples[0].1.to_string();
    assert!(problem.contains("pollux") && problem.contains("static, accordion or gns"), "{problem}");
}
