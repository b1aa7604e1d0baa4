//! Lookups give back the rows they were made of, and refuse what no row surrounds.
#![allow(clippy::unwrap_used)] // clippy.toml allows it in test functions, not in their helpers

use goodput_env::model::{
    InterpolatedSample, MeasuredStepTimes, OutsideProfile, PlacementSample, ProfileError, ScalabilitySample, StepTime,
};

fn profile(application: &str) -> MeasuredStepTimes {
    MeasuredStepTimes::new(
        &crate::model_data::placements(application),
        &crate::model_data::scalability(application),
        &[],
    )
    .unwrap()
}

/// A shape with these numbers of nodes and replicas, as even as possible.
fn spread(nodes: u32, replicas: u32) -> Vec<u32> {
    (0..nodes).map(|node| replicas / nodes + u32::from(node < replicas % nodes)).collect()
}

#[test]
fn every_measured_placement_comes_back_in_every_rotation() {
    for application in crate::model_data::APPLICATIONS {
        let profile = profile(application);
        for row in crate::model_data::placements(application) {
            let expected = StepTime { step_secs: row.step_secs, sync_secs: row.sync_secs };
            let mut shape = row.shape.clone();
            for _ in 0..shape.len() {
                shape.rotate_left(1);
                assert_eq!(profile.step_time(&shape, row.local_bsz), Ok(expected), "{application} {shape:?}");
            }
            shape.insert(1, 0);
            assert_eq!(
                profile.step_time(&shape, row.local_bsz),
                Ok(expected),
                "{application}: empty nodes do not count"
            );
        }
    }
}

#[test]
fn every_scalability_row_comes_back() {
    for application in crate::model_data::APPLICATIONS {
        let profile = profile(application);
        for row in crate::model_data::scalability(application) {
            let found = profile.step_time(&spread(row.nodes, row.replicas), row.local_bsz).unwrap();
            assert_eq!((found.step_secs, found.sync_secs), (row.step_secs, row.sync_secs), "{application} {row:?}");
        }
    }
}

#[test]
fn every_allocation_a_job_can_use_is_covered() {
    let maxima = [("bert", 384), ("cifar10", 4096), ("deepspeech2", 640), ("imagenet", 12_800), ("yolov3", 512)];
    for (application, most) in maxima {
        let profile = profile(application);
        let placements = crate::model_data::placements(application);
        let min_local = placements.iter().map(|row| row.local_bsz).min().unwrap();
        // Pollux forces yolov3 to 8 although its placements go to 16.
        let max_local =
            if application == "yolov3" { 8 } else { placements.iter().map(|row| row.local_bsz).max().unwrap() };
        for nodes in 1..=16 {
            for replicas in nodes..=4 * nodes {
                for local_bsz in min_local..=max_local.min(most / replicas) {
                    let time = profile.step_time(&spread(nodes, replicas), local_bsz);
                    let sane = |time: StepTime| {
                        time.sync_secs >= 0.0 && time.sync_secs <= time.step_secs && time.step_secs < 5.0
                    };
                    assert!(
                        time.as_ref().is_ok_and(|&time| sane(time)),
                        "{application} {nodes} {replicas} {local_bsz}: {time:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn time_is_linear_between_batch_sizes() {
    let profile = profile("bert");
    let at = |local_bsz| profile.step_time(&[1], local_bsz).unwrap().step_secs;
    assert!((at(10) - (at(8) + (at(11) - at(8)) * 2.0 / 3.0)).abs() < 1e-15);
    assert!(at(9) > at(8) && at(9) < at(10));
}

#[test]
fn more_than_sixteen_nodes_count_as_sixteen() {
    let profile = profile("bert");
    assert_eq!(profile.step_time(&spread(20, 24), 8), profile.step_time(&spread(16, 24), 8));
}

fn spread_row(nodes: u32, replicas: u32, local_bsz: u32, step_secs: f64) -> ScalabilitySample {
    ScalabilitySample { nodes, replicas, local_bsz, step_secs, sync_secs: step_secs / 4.0 }
}

#[test]
fn between_columns_time_follows_the_most_level_line() {
    let rows = [(4, 4, 1.0), (4, 16, 2.0), (8, 8, 3.0), (8, 32, 6.0)].map(|(n, r, secs)| spread_row(n, r, 10, secs));
    let profile = MeasuredStepTimes::new(&[], &rows, &[]).unwrap();
    let at = |nodes, replicas| profile.step_time(&spread(nodes, replicas), 10).unwrap().step_secs;
    // Inside a column: linear in replicas.
    assert!((at(4, 10) - 1.5).abs() < 1e-12);
    assert!((at(8, 20) - 4.5).abs() < 1e-12);
    // Level: 12 replicas on 4 nodes (1 + 8/12) and on 8 nodes (3 + 3 * 4/24).
    assert!((at(6, 12) - (1.0 + 8.0 / 12.0 + 3.5) / 2.0).abs() < 1e-12);
    // 24 replicas do not fit on 4 nodes: through its end (16), which leads to 32 on 8 nodes.
    assert!((at(6, 24) - (2.0 + 6.0) / 2.0).abs() < 1e-12);
    // 6 replicas do not spread over 8 nodes: through its end (8), which leads to 4 on 4 nodes.
    assert!((at(6, 6) - (1.0 + 3.0) / 2.0).abs() < 1e-12);
}

#[test]
fn interpolated_rows_take_precedence() {
    let rows = [spread_row(4, 4, 10, 1.0), spread_row(8, 8, 10, 3.0)];
    let given: [InterpolatedSample; 2] = [spread_row(6, 6, 10, 7.0), spread_row(6, 6, 20, 8.0)];
    let profile = MeasuredStepTimes::new(&[], &rows, &given).unwrap();
    let at = |local_bsz| profile.step_time(&spread(6, 6), local_bsz).unwrap().step_secs;
    assert_eq!((at(10), at(15), at(20)), (7.0, 7.5, 8.0));
    assert_eq!(profile.step_time(&spread(8, 8), 10).unwrap().step_secs, 3.0);
}

#[test]
fn lookups_outside_the_profile_say_what_is_inside() {
    let profile = profile("yolov3");
    assert_eq!(profile.step_time(&[5], 4), Err(OutsideProfile::Shape { shape: vec![5] }));
    assert_eq!(profile.step_time(&[], 4), Err(OutsideProfile::Shape { shape: vec![] }));
    let error = profile.step_time(&[0, 2, 1], 17).unwrap_err();
    assert_eq!(error, OutsideProfile::LocalBatch { shape: vec![0, 2, 1], local_bsz: 17, min: 4, max: 16 });
    assert_eq!(error.to_string(), "local batch size 17 on replicas per node [0, 2, 1] is outside the profiled 4..=16");
}

#[test]
fn impossible_rows_are_refused() {
    let row = |shape: &[u32], local_bsz, step_secs, sync_secs| PlacementSample {
        shape: shape.to_vec(),
        local_bsz,
        step_secs,
        sync_secs,
    };
    let error = |rows: &[PlacementSample]| MeasuredStepTimes::new(rows, &[], &[]).unwrap_err();
    for (step_secs, sync_secs) in
        [(f64::NAN, 0.0), (f64::INFINITY, 0.0), (0.0, 0.0), (-1.0, 0.0), (1.0, -0.1), (1.0, 1.1), (1.0, f64::NAN)]
    {
        assert!(
            matches!(error(&[row(&[1], 4, step_secs, sync_secs)]), ProfileError::Times { .. }),
            "{step_secs} {sync_secs}"
        );
    }
    for (shape, local_bsz) in [(&[][..], 4), (&[1, 0], 4), (&[1], 0), (&[256], 4), (&[1; 9], 4)] {
        assert!(matches!(error(&[row(shape, local_bsz, 1.0, 0.1)]), ProfileError::Configuration { .. }), "{shape:?}");
    }
    let duplicate = error(&[row(&[1, 2], 4, 1.0, 0.1), row(&[2, 1], 4, 1.0, 0.1)]);
    assert_eq!(duplicate, ProfileError::Duplicate { shape: vec![2, 1], local_bsz: 4 });
    let twice = [spread_row(4, 4, 10, 1.0), spread_row(4, 4, 10, 1.0)];
    assert!(matches!(MeasuredStepTimes::new(&[], &twice, &[]), Err(ProfileError::Duplicate { .. })));
    let thin = [spread_row(4, 3, 10, 1.0)];
    assert!(matches!(MeasuredStepTimes::new(&[], &thin, &[]), Err(ProfileError::Configuration { .. })));
}
