//! Measured times of language models, as NVIDIA's AIConfigurator keeps them (`silicon_sample.csv`): a row holds the
//! time to the first token and the time of a further token at a constant number of requests.

use std::path::Path;

use super::{ImportReport, source::TraceSource};
use crate::csv_rows::{CsvRow, CsvRows};
use crate::error::{DataError, RowProblem};
use crate::llm::{Configuration, LlmFacts, LoadShape, Precision};

/// Columns of the file; those before `precision` must be there.
const COLUMNS: &[&str] = &[
    "backend",
    "model_path",
    "system",
    "isl",
    "osl",
    "batch_size",
    "tp_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
    "precision",
    "gemm_quant_mode",
    "backend_version",
    "mode",
    "attention_dp_size",
    "moe_tp_size",
    "moe_ep_size",
];
const REQUIRED: usize = 9;

/// A measurement of both times under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct SiliconRow {
    /// Configuration that was measured.
    pub configuration: Configuration,
    /// Version of the backend; empty where it is not known.
    pub version: String,
    /// Load of the measurement.
    pub shape: LoadShape,
    /// Time to the first token, milliseconds.
    pub ttft_ms: f64,
    /// Time of a further token, milliseconds.
    pub tpot_ms: f64,
}

/// Reads a file, which gzip or xz may have compressed. Rows of replicas that divide prefill and decode are refused.
///
/// # Errors
/// Where the file cannot be read or a column is missing.
pub fn read(path: &Path) -> Result<(Vec<SiliconRow>, ImportReport), DataError> {
    let text = TraceSource::at(path)?.plain()?;
    let mut rows = CsvRows::begin(path, &text, COLUMNS, REQUIRED, b',')?;
    let (mut measured, mut report) = (Vec::new(), ImportReport::default());
    while let Some(row) = rows.next(COLUMNS) {
        let parsed = row.and_then(|row| match parse(&row) {
            Ok(parsed) => Ok((row.line, parsed)),
            Err(problem) => Err((row.line, problem)),
        });
        match parsed {
            Ok((line, (row, repaired))) => {
                if repaired {
                    let what = "sizes that count every device twice are divided".to_owned();
                    report.repair("parallel sizes", line, what);
                }
                measured.push(row);
            }
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    report.kept = measured.len() as u64;
    Ok((measured, report))
}

/// A row, and whether its sizes were repaired.
fn parse(row: &CsvRow<'_, '_>) -> Result<(SiliconRow, bool), RowProblem> {
    if row.bytes(12) == b"disagg" {
        return Err(row.problem(12, "`agg`: replicas that divide prefill and decode are not modelled"));
    }
    let facts = LlmFacts::shipped();
    let path = row.text(1)?;
    let model =
        facts.model(path).ok_or_else(|| row.problem(1, "a model of the catalog (goodput list llm-replicas)"))?;
    let system = row.text(2)?;
    if facts.system(system).is_none() {
        return Err(row.problem(2, "a system of the catalog (goodput list llm-replicas)"));
    }
    // An empty size and a size of 0 say that nothing is divided.
    let optional = |index: usize| if matches!(row.bytes(index), b"" | b"0") { Ok(1) } else { row.count(index) };
    let (mut tensor, mut data, expert) = (row.count(6)?, optional(13)?, optional(15)?);
    let experts_alone = optional(14)? == expert;
    // Some rows give the product of the sizes of attention and experts where both divide the same devices.
    let product = |one: u32, other: u32| u64::from(one) * u64::from(other);
    let squared = expert > 1 && experts_alone && product(tensor, data) == product(expert, expert);
    if squared {
        (tensor, data) = if data == 1 { (expert, 1) } else { (1, expert) };
    }
    let configuration = Configuration {
        system: system.to_owned(),
        backend: row.text(0)?.to_owned(),
        model: model.name.clone(),
        precision: precision(row, path),
        tensor,
        data,
        expert,
    };
    let shape = LoadShape { input: row.count(3)?, output: row.count(4)?, concurrency: row.count(5)? };
    if shape.output < 2 {
        return Err(row.problem(4, "at least 2 tokens"));
    }
    let time = |index| row.at_least(index, 1e-3, "at least 0.001 milliseconds");
    let (ttft_ms, tpot_ms) = (time(7)?, time(8)?);
    let version = String::from_utf8_lossy(row.bytes(11)).into_owned();
    Ok((SiliconRow { configuration, version, shape, ttft_ms, tpot_ms }, squared))
}

/// Precision of the weights: as the row says, else as the name of the model says, else 16-bit.
fn precision(row: &CsvRow<'_, '_>, path: &str) -> Precision {
    let said = [row.bytes(9), row.bytes(10)].map(|bytes| String::from_utf8_lossy(bytes).to_lowercase());
    let texts = [&said[0], &said[1], &path.to_lowercase()];
    let of = |text: &str| match text {
        text if text.contains("fp4") => Some(Precision::Fp4),
        text if text.contains("int4") => Some(Precision::Int4),
        text if text.contains("fp8") => Some(Precision::Fp8),
        text if text.contains("bf16") => Some(Precision::Bf16),
        _ => None,
    };
    texts.into_iter().find_map(|text| of(text)).unwrap_or(Precision::Bf16)
}
