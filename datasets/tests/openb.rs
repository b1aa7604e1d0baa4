//! The openb importer against the real files, and against files with one thing wrong.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::shared::shared;
use goodput_datasets::DataError;
use goodput_datasets::import::ImportReport;
use goodput_datasets::import::openb::{NodeRow, OpenbRows, PodRow, nodes, pods};

fn real<T>(name: &str, parse: fn(&Path, &[u8]) -> OpenbRows<T>) -> (Vec<T>, ImportReport) {
    let path = shared(&format!("data/openb/{name}.csv"));
    parse(&path, &std::fs::read(&path).unwrap()).unwrap()
}

#[test]
fn every_node_is_kept() {
    let (rows, report) = real("openb_node_list_all_node", nodes);
    assert_eq!((report.kept, report.repaired.count, report.refused.count), (1523, 0, 0));
    let mut gpus: BTreeMap<String, u32> = BTreeMap::new();
    for NodeRow { model, gpus: count, .. } in &rows {
        *gpus.entry(model.clone().unwrap_or_default()).or_default() += count;
    }
    let expected = [
        ("", 0),
        ("A10", 2),
        ("G2", 4392),
        ("G3", 312),
        ("P100", 265),
        ("T4", 842),
        ("V100M16", 195),
        ("V100M32", 204),
    ];
    assert_eq!(gpus, expected.map(|(model, count)| (model.to_owned(), count)).into());
    let with_gpus = rows.iter().filter(|row| row.gpus > 0);
    assert_eq!(with_gpus.clone().count(), 1213);
    assert_eq!(with_gpus.map(|row| row.cpu_milli).sum::<u32>(), 107_018_000);
}

#[test]
fn every_pod_is_kept() {
    for (list, count) in [("default", 8152), ("gpushare40", 8152), ("multigpu20", 8324)] {
        let (rows, report) = real(&format!("openb_pod_list_{list}"), pods);
        assert_eq!((report.kept, report.repaired.count, report.refused.count), (count, 0, 0), "{list}");
        assert_eq!(rows.len() as u64, count);
        assert!(rows.iter().all(|row| row.models.is_empty()), "no list here asks for a type");
    }
    let (rows, _) = real("openb_pod_list_default", pods);
    let count = |filter: &dyn Fn(&PodRow) -> bool| rows.iter().filter(|row| filter(row)).count();
    assert_eq!(count(&|row| row.gpus == 0), 1088);
    assert_eq!((count(&|row| row.gpus == 1), count(&|row| row.gpus == 1 && row.gpu_milli < 1000)), (6989, 3078));
    assert_eq!([2, 4, 8].map(|gpus| count(&|row| row.gpus == gpus)), [16, 15, 44]);
    assert_eq!((rows[1].line, rows[1].name.as_str(), rows[1].gpu_milli), (3, "openb-pod-0001", 460));
}

#[test]
fn types_are_alternatives() {
    let text =
        b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\np,1,2,1,500,V100M16|V100M32,LS\nq,1,2,1,500,,LS\n";
    let (rows, _) = pods(Path::new("t"), text).unwrap();
    assert_eq!(
        (rows[0].models.as_slice(), rows[1].models.len()),
        (["V100M16".to_owned(), "V100M32".to_owned()].as_slice(), 0)
    );
}

#[test]
fn each_row_is_kept_repaired_or_refused_with_its_line() {
    let text = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,500\nb,1,1,2,500\nc,1,1,1,0\nd,1,1,1,1001\ne,-1,1,1,1\n,1,1,1,1\ng,1,1,1\nh,1,1,2,1000\n";
    let (rows, report) = pods(Path::new("t"), text).unwrap();
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "h"]);
    assert_eq!((rows[0].gpu_milli, report.repaired.count, report.refused.count), (0, 1, 6));
    assert_eq!(report.repaired.examples, [(2, "num_gpu is 0 with gpu_milli 500: taken as 0".to_owned())]);
    let lines: Vec<u64> = report.refused.examples.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7, 8]);
    let first = report.refused.examples[0].1.to_string();
    assert_eq!(first, "gpu_milli is `500`, expected 1000: only a single accelerator can be shared");
    let text = b"sn,cpu_milli,memory_mib,gpu,model\nm,1,1,2,\nn,1,1,0,T4\n";
    let (rows, report) = nodes(Path::new("t"), text).unwrap();
    assert_eq!((rows.len(), rows[0].model.clone(), report.repaired.count, report.refused.count), (1, None, 1, 1));
    assert!(matches!(nodes(Path::new("t"), b"sn,cpu_milli,memory_mib,gpu,model\n"), Err(DataError::Empty { .. })));
    let error = nodes(Path::new("t"), b"sn,cpu_milli\n").unwrap_err().to_string();
    assert!(error.contains("column `memory_mib` is missing"), "{error}");
}
