//! A text in pieces of whole lines.

use std::io::Read;
use std::path::Path;

use crate::error::DataError;

/// Bytes that are read at once.
const PIECE: usize = 4 << 20;

/// Reader of a text of which one piece is in memory at a time.
pub(super) struct Pieces<'a, R> {
    /// Path of the text, which errors name.
    path: &'a Path,
    text: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were handed out.
    used: usize,
}

impl<'a, R: Read> Pieces<'a, R> {
    pub(super) fn new(path: &'a Path, text: R) -> Self {
        Self { path, text, buffer: Vec::new(), used: 0 }
    }

    /// The next piece; `None` at the end. Only a line longer than a piece makes it longer.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, DataError> {
        self.buffer.drain(..self.used);
        self.used = 0;
        loop {
            let known = self.buffer.len();
            let read = self.text.by_ref().take(PIECE as u64).read_to_end(&mut self.buffer);
            let read = read.map_err(DataError::read(self.path))?;
            let line_end = self.buffer[known..].iter().rposition(|&byte| byte == b'\n').map(|at| known + at + 1);
            if let Some(end) = line_end.or((read == 0).then_some(known)) {
                self.used = end;
                return Ok((end > 0).then(|| &self.buffer[..end]));
            }
        }
    }
}

impl<R: Read> Pieces<'_, R> {
    /// Shows each line without the blanks around it, with its number from 1.
    pub(super) fn lines(mut self, mut each: impl FnMut(u64, &[u8]) -> Result<(), DataError>) -> Result<(), DataError> {
        let mut number = 0;
        while let Some(piece) = self.next()? {
            for line in piece.strip_suffix(b"\n").unwrap_or(piece).split(|byte| *byte == b'\n') {
                number += 1;
                each(number, line.trim_ascii())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_lines_and_make_up_the_text() {
        let text = [vec![b'a'; PIECE + 1], b"\nb\nc".to_vec(), vec![b'd'; PIECE], b"\n\ne".to_vec()].concat();
        let mut pieces = Pieces::new(Path::new("t"), text.as_slice());
        let mut found: Vec<Vec<u8>> = Vec::new();
        while let Some(piece) = pieces.next().unwrap() {
            assert!(found.last().is_none_or(|before| before.ends_with(b"\n")));
            found.push(piece.to_vec());
        }
        assert_eq!(found.concat(), text);
        assert!(found.len() > 2);
    }

    #[test]
    fn lines_have_numbers_through_all_pieces() {
        let long = vec![b'a'; PIECE + 1];
        let text = [long.as_slice(), b"\n \n b\r\nc"].concat();
        let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
        let pieces = Pieces::new(Path::new("t"), text.as_slice());
        pieces
            .lines(|number, line| {
                found.push((number, line.to_vec()));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [(1, long), (2, b"".to_vec()), (3, b"b".to_vec()), (4, b"c".to_vec())]);
    }
}
