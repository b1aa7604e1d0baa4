//! Last line of a file of the log, found from its end: a log of months is not read whole at a start.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;

use super::AuditLine;

/// Bytes that are read at first.
const WINDOW: u64 = 64 * 1024;

/// End of a file.
pub(super) struct LogTail {
    /// Last line that is whole and good.
    pub last: Option<AuditLine>,
    /// Position of the end of that line.
    pub end: u64,
    /// Bytes behind that line that are no good lines, where there are any but a line that was cut off.
    pub damaged: Option<Vec<u8>>,
}

/// Reads the end of a file.
pub(super) fn read(file: &File) -> io::Result<LogTail> {
    let length = file.metadata()?.len();
    let mut window = WINDOW;
    loop {
        let start = length.saturating_sub(window);
        let mut bytes = vec![0; (length - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        if let Some(tail) = find(&bytes, start) {
            return Ok(tail);
        }
        if start == 0 {
            // Not one good line: whatever is whole is damaged, and a line that was cut off never counted.
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            bytes.truncate(whole);
            return Ok(LogTail { last: None, end: 0, damaged: Some(bytes).filter(|bytes| !bytes.is_empty()) });
        }
        window = window.saturating_mul(4);
    }
}

/// Last good line in `bytes`, which begin at the position `start` of the file.
fn find(bytes: &[u8], start: u64) -> Option<LogTail> {
    let ends: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'\n').map(|at| at + 1).collect();
    let whole = *ends.last()?;
    for (index, &end) in ends.iter().enumerate().rev() {
        // Where the line before is not in the window, neither is the beginning of this one.
        let begin = match index.checked_sub(1) {
            Some(before) => ends[before],
            None if start == 0 => 0,
            None => return None,
        };
        if let Some(line) = good(&bytes[begin..end - 1]) {
            let damaged = Some(bytes[end..whole].to_vec()).filter(|bytes| !bytes.is_empty());
            return Some(LogTail { last: Some(line), end: start + end as u64, damaged });
        }
    }
    None
}

fn good(text: &[u8]) -> Option<AuditLine> {
    let line: AuditLine = serde_json::from_slice(text).ok()?;
    (line.hash == line.digest()).then_some(line)
}

/// Number of the first line of a file; 0 where it cannot be told.
pub(super) fn first(file: &File) -> io::Result<u64> {
    let mut bytes = vec![0; WINDOW.min(file.metadata()?.len()) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let mut text = Vec::new();
    BufReader::new(bytes.as_slice()).read_until(b'\n', &mut text)?;
    // The number stands first in a line, which may be longer than what was read.
    let number = String::from_utf8_lossy(&text);
    let number = number.strip_prefix("{\"seq\":").and_then(|rest| rest.split(',').next());
    Ok(number.and_then(|number| number.parse().ok()).unwrap_or(0))
}
