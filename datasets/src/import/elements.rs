//! Elements of a JSON array one at a time: of the text itself, or of `items` in an object, as Kubernetes lists have it.

use std::fmt;
use std::io::BufReader;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::TraceSource;
use crate::csv_rows::excerpt;
use crate::error::{DataError, RowProblem};

/// Shows each element to `each`, with its number from 1. An element of another shape is a problem of its row.
///
/// # Errors
/// Where the text cannot be read or is no JSON with such an array, and what `each` gives.
pub(super) fn each<T: DeserializeOwned>(
    source: &TraceSource<'_>,
    each: &mut dyn FnMut(u64, Result<T, RowProblem>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let (mut number, mut stopped) = (0, None);
    let mut take = |element: Value| {
        number += 1;
        each(number, T::deserialize(element).map_err(shape)).map_err(|error| stopped = Some(error)).is_ok()
    };
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, source.text()?));
    let read = Elements { take: &mut take }.deserialize(&mut reader).and_then(|()| reader.end());
    match (stopped, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(DataError::Json {
            path: source.path().to_owned(),
            at: format!("line {}, column {}", error.line(), error.column()),
            problem: error.to_string(),
        }),
    }
}

fn shape(error: serde_json::Error) -> RowProblem {
    RowProblem::Value {
        column: "element",
        value: excerpt(error.to_string().as_bytes()),
        expected: "the published keys",
    }
}

/// Reads an array, or an object with the array `items`.
struct Elements<'a> {
    /// Takes an element; `false` ends the reading.
    take: &'a mut dyn FnMut(Value) -> bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array, or an object with the array `items`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if !(self.take)(element) {
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = keys.next_key::<String>()? {
            if key == "items" {
                found = true;
                keys.next_value_seed(Elements { take: &mut *self.take })?;
            } else {
                keys.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(A::Error::missing_field("items")) }
    }
}
