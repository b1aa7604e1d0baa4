//! Measured times of language models, as NVIDIA's AIConfigurator keeps them (`silicon_sample.csv`): a row holds the
//! time to the first token and the time of a further token at a constant number of requests. The replicas of a row
//! prefill and decode, or are divided into those that do one and those that do the other.

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
    "prefill_num_workers",
    "prefill_tp_size",
    "prefill_attention_dp_size",
    "prefill_moe_tp_size",
    "prefill_moe_ep_size",
    "decode_num_workers",
    "decode_tp_size",
    "decode_attention_dp_size",
    "decode_moe_tp_size",
    "decode_moe_ep_size",
    "decode_batch_size",
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

/// A measurement of replicas that only prefill, beside replicas that only decode.
#[derive(Clone, Debug, PartialEq)]
pub struct DividedRow {
    /// Configuration of a replica that prefills.
    pub prefill: Configuration,
    /// Number of replicas that prefill.
    pub prefill_replicas: u32,
    /// Number of replicas that decode.
    pub decode_replicas: u32,
    /// A replica that decodes, with the load of each copy of its attention and the times of the whole.
    pub decode: SiliconRow,
}

/// Measurements of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiliconTable {
    /// Measurements of replicas that prefill and decode.
    pub rows: Vec<SiliconRow>,
    /// Measurements of replicas that divide prefill and decode.
    pub divided: Vec<DividedRow>,
}

/// Columns of the number of replicas of a pool, and of their parallel sizes in the order of [`SizeColumns`].
const PREFILL: (usize, SizeColumns) = (16, [17, 18, 19, 20]);
const DECODE: (usize, SizeColumns) = (21, [22, 23, 24, 25]);
const DECODE_BATCH: usize = 26;

/// Columns of the sizes of tensors, copies of the attention, parts of an expert, and experts.
type SizeColumns = [usize; 4];
/// Columns of replicas that prefill and decode.
const BOTH: SizeColumns = [6, 13, 14, 15];

/// Reads a file, which gzip or xz may have compressed. Rows of replicas that divide prefill and decode are refused
/// where the number of replicas of a pool is missing.
///
/// # Errors
/// Where the file cannot be read or a column is missing.
pub fn read(path: &Path) -> Result<(SiliconTable, ImportReport), DataError> {
    let text = TraceSource::at(path)?.plain()?;
    let mut rows = CsvRows::begin(path, &text, COLUMNS, REQUIRED, b',')?;
    let (mut measured, mut report) = (SiliconTable::default(), ImportReport::default());
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
                match row {
                    AnyRow::Both(row) => measured.rows.push(row),
                    AnyRow::Divided(row) => measured.divided.push(row),
                }
            }
            Err((line, problem)) => report.refuse(line, problem),
        }
    }
    report.kept = (measured.rows.len() + measured.divided.len()) as u64;
    Ok((measured, report))
}

enum AnyRow {
    Both(SiliconRow),
    Divided(DividedRow),
}

/// A row, and whether its sizes were repaired.
fn parse(row: &CsvRow<'_, '_>) -> Result<(AnyRow, bool), RowProblem> {
    if row.bytes(12) != b"disagg" {
        let (configuration, repaired) = configuration(row, BOTH)?;
        return Ok((AnyRow::Both(times(row, configuration, row.count(5)?)?), repaired));
    }
    let replicas = |column: usize| match row.bytes(column) {
        b"" => Err(row.problem(column, "a number of replicas, as prefill and decode are divided")),
        _ => row.count(column),
    };
    let (prefill_replicas, decode_replicas) = (replicas(PREFILL.0)?, replicas(DECODE.0)?);
    let ((prefill, one), (decode, other)) = (configuration(row, PREFILL.1)?, configuration(row, DECODE.1)?);
    let decode = times(row, decode, row.count(DECODE_BATCH)?)?;
    Ok((AnyRow::Divided(DividedRow { prefill, prefill_replicas, decode_replicas, decode }), one || other))
}

/// Times of a row at a number of requests on each copy of the attention.
fn times(row: &CsvRow<'_, '_>, configuration: Configuration, concurrency: u32) -> Result<SiliconRow, RowProblem> {
    let shape = LoadShape { input: row.count(3)?, output: row.count(4)?, concurrency };
    if shape.output < 2 {
        return Err(row.problem(4, "at least 2 tokens"));
    }
    let time = |index| row.at_least(index, 1e-3, "at least 0.001 milliseconds");
    let (ttft_ms, tpot_ms) = (time(7)?, time(8)?);
    let version = String::from_utf8_lossy(row.bytes(11)).into_owned();
    Ok(SiliconRow { configuration, version, shape, ttft_ms, tpot_ms })
}

/// Configuration with the sizes in these columns, and whether the sizes were repaired.
fn configuration(row: &CsvRow<'_, '_>, sizes: SizeColumns) -> Result<(Configuration, bool), RowProblem> {
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
    let [tensor, data, parts, expert] = sizes;
    let (mut tensor, mut data, expert) = (row.count(tensor)?, optional(data)?, optional(expert)?);
    let experts_alone = optional(parts)? == expert;
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
    Ok((configuration, squared))
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
