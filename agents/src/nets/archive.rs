//! Named f32 tensors, named bytes and one JSON header in a safetensors file: the form of bundles and of a learner's
//! checkpoint.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, Metadata, SafeTensorError, SafeTensors, TensorView, serialize};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes that are not the archive they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// Another kind of file.
    #[error("not a safetensors file: {reason}")]
    NotAnArchive {
        /// Size that does not fit.
        reason: String,
    },
    /// A safetensors file of something else.
    #[error("a safetensors file without `{key}` in its metadata")]
    NoHeader {
        /// The key looked for.
        key: String,
    },
    /// File that was cut short.
    #[error("truncated: {found} bytes of at least {expected}")]
    Truncated {
        /// Number of bytes in the file.
        found: usize,
        /// Number of bytes that the header announces.
        expected: usize,
    },
    /// A header that is not what was written.
    #[error("its header cannot be read: {reason}")]
    BadHeader {
        /// Message of the parser.
        reason: String,
    },
    /// A tensor that should be there.
    #[error("tensor `{name}` is missing")]
    MissingTensor {
        /// Name of the tensor or header.
        name: String,
    },
    /// A tensor of another shape or type.
    #[error("tensor `{name}` is {found}, expected F32 {expected:?}")]
    WrongShape {
        /// Name of the tensor or header.
        name: String,
        /// The shape it should have.
        expected: Vec<usize>,
        /// Type and shape it has.
        found: String,
    },
    /// Numbers where bytes should be.
    #[error("tensor `{name}` is {found}, expected bytes")]
    NoBytes {
        /// Name of the tensor.
        name: String,
        /// Type and shape it has.
        found: String,
    },
    /// A NaN or an infinity.
    #[error("tensor `{name}` is not finite at {index}")]
    NotFinite {
        /// Name of the tensor or header.
        name: String,
        /// Position in the tensor.
        index: usize,
    },
}

/// A tensor to be written: name, shape, numbers.
pub type Entry<'a> = (String, Vec<usize>, &'a [f32]);

/// Bytes to be written under a name.
pub type Blob<'a> = (&'a str, &'a [u8]);

/// The bytes of an archive; the same input gives the same bytes.
pub fn write(key: &str, header: &impl Serialize, tensors: &[Entry<'_>]) -> Vec<u8> {
    write_with(key, header, tensors, &[])
}

/// As [`write`], with named bytes beside the tensors.
pub fn write_with(key: &str, header: &impl Serialize, tensors: &[Entry<'_>], blobs: &[Blob<'_>]) -> Vec<u8> {
    let bytes = |data: &[f32]| data.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let numbers = tensors.iter().map(|(name, shape, data)| (name.as_str(), (Dtype::F32, shape.clone(), bytes(data))));
    let blobs = blobs.iter().map(|(name, data)| (*name, (Dtype::U8, vec![data.len()], data.to_vec())));
    let stored: BTreeMap<&str, (Dtype, Vec<usize>, Vec<u8>)> = numbers.chain(blobs).collect();
    let views = stored.iter().map(|(name, (kind, shape, data))| {
        (*name, TensorView::new(*kind, shape.clone(), data).expect("the shape of an entry holds its numbers"))
    });
    let header = serde_json::to_string(header).expect("headers are plain structs with string keys");
    // One key only: the map has no order to leak into the bytes.
    serialize(views, Some([(key.to_owned(), header)].into())).expect("views were checked when made")
}

/// A parsed archive.
pub struct Archive<'a> {
    tensors: SafeTensors<'a>,
    metadata: BTreeMap<String, String>,
}

impl<'a> Archive<'a> {
    /// Parses an archive.
    ///
    /// # Errors
    /// When it is something else or cut short.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let not = |reason: String| ArchiveError::NotAnArchive { reason };
        let Some(length) = bytes.first_chunk::<8>() else {
            return Err(ArchiveError::Truncated { found: bytes.len(), expected: 8 });
        };
        let length = u64::from_le_bytes(*length);
        // The library refuses larger headers too; the length comes from the file and may be
        // anything.
        if length > 100_000_000 || bytes.get(8).is_some_and(|&first| first != b'{') {
            return Err(not("it does not begin with the length of a JSON header".into()));
        }
        let start = 8 + length as usize;
        if bytes.len() < start {
            return Err(ArchiveError::Truncated { found: bytes.len(), expected: start });
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| match error {
            SafeTensorError::MetadataIncompleteBuffer => {
                let expected = serde_json::from_slice::<Metadata>(&bytes[8..start])
                    .map_or(start, |header| start + header.data_len());
                match expected > bytes.len() {
                    true => ArchiveError::Truncated { found: bytes.len(), expected },
                    false => not("bytes after the last tensor".into()),
                }
            }
            other => not(other.to_string()),
        })?;
        let metadata = SafeTensors::read_metadata(bytes).ok().and_then(|(_, metadata)| metadata.metadata().clone());
        Ok(Self { tensors, metadata: metadata.into_iter().flatten().collect() })
    }

    /// The header under `key`.
    ///
    /// # Errors
    /// When there is none, or it is not a `T`.
    pub fn header<T: DeserializeOwned>(&self, key: &str) -> Result<T, ArchiveError> {
        let text = self.metadata.get(key).ok_or_else(|| ArchiveError::NoHeader { key: key.to_owned() })?;
        serde_json::from_str(text).map_err(|error| ArchiveError::BadHeader { reason: error.to_string() })
    }

    /// The bytes under `name`.
    ///
    /// # Errors
    /// When they are missing, or are numbers.
    pub fn bytes(&self, name: &str) -> Result<&[u8], ArchiveError> {
        let view = self.tensors.tensor(name).map_err(|_| ArchiveError::MissingTensor { name: name.to_owned() })?;
        match view.dtype() {
            Dtype::U8 => Ok(view.data()),
            kind => Err(ArchiveError::NoBytes { name: name.to_owned(), found: format!("{kind:?} {:?}", view.shape()) }),
        }
    }

    /// The finite numbers of a tensor of this shape.
    ///
    /// # Errors
    /// When it is missing, has another shape or type, or a number is not finite.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ArchiveError> {
        let view = self.tensors.tensor(name).map_err(|_| ArchiveError::MissingTensor { name: name.to_owned() })?;
        if view.dtype() != Dtype::F32 || view.shape() != shape {
            let found = format!("{:?} {:?}", view.dtype(), view.shape());
            return Err(ArchiveError::WrongShape { name: name.to_owned(), expected: shape.to_vec(), found });
        }
        let (numbers, _) = view.data().as_chunks::<4>();
        let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(ArchiveError::NotFinite { name: name.to_owned(), index }),
            None => Ok(values),
        }
    }
}
