//! Bytes of a trace: a file, or a text that is in memory. Both may be compressed by gzip or xz.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;

use crate::error::DataError;

/// Bytes at the start of a text by which its format is recognised.
const HEAD: u64 = 256 << 10;

/// A trace that can be read more than once.
#[derive(Clone, Debug)]
pub(crate) enum TraceSource<'a> {
    /// Path of a file on disk.
    File(&'a Path),
    /// Bytes in memory, and the path that errors name.
    Bytes(&'a Path, Bytes),
}

impl<'a> TraceSource<'a> {
    /// The source at a path. What can be read once only, such as a pipe, is read into memory.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(crate) fn at(path: &'a Path) -> Result<Self, DataError> {
        let read = || match fs::metadata(path)?.is_file() {
            true => Ok(Self::File(path)),
            false => fs::read(path).map(|bytes| Self::Bytes(path, bytes.into())),
        };
        read().map_err(DataError::read(path))
    }

    /// Path that errors name.
    pub(crate) fn path(&self) -> &'a Path {
        match self {
            Self::File(path) | Self::Bytes(path, _) => path,
        }
    }

    /// The text from its start, without compression.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(crate) fn text(&self) -> Result<Box<dyn Read>, DataError> {
        let plain: Box<dyn Read> = match self {
            Self::File(path) => Box::new(File::open(path).map_err(DataError::read(path))?),
            Self::Bytes(_, bytes) => Box::new(io::Cursor::new(bytes.clone())),
        };
        decompressed(plain).map_err(DataError::read(self.path()))
    }

    /// The whole text, without compression.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(crate) fn plain(&self) -> Result<Vec<u8>, DataError> {
        let mut plain = Vec::new();
        self.text()?.read_to_end(&mut plain).map_err(DataError::read(self.path()))?;
        Ok(plain)
    }

    /// First bytes of the text.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub(crate) fn head(&self) -> Result<Vec<u8>, DataError> {
        let mut head = Vec::new();
        self.text()?.take(HEAD).read_to_end(&mut head).map_err(DataError::read(self.path()))?;
        Ok(head)
    }
}

/// The content of a text that gzip or xz may have compressed.
fn decompressed(mut text: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    text.by_ref().take(6).read_to_end(&mut start)?;
    let [gzip, xz] = [start.starts_with(&[0x1f, 0x8b]), start == [0xfd, b'7', b'z', b'X', b'Z', 0]];
    let whole = io::Cursor::new(start).chain(text);
    Ok(match (gzip, xz) {
        (true, _) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        (_, true) => Box::new(lzma_rust2::XzReader::new(whole, true)),
        _ => Box::new(whole),
    })
}
