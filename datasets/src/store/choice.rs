//! Choice: a column of texts of which there are few, such as names of policies. Each text is held once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};

/// Texts by row; each row has the index of its text.
#[derive(Clone, Debug, Default)]
pub struct TextChoice {
    texts: Vec<Option<String>>,
    rows: Vec<Option<i32>>,
}

impl TextChoice {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Text of a row; `None` is missing.
    pub fn get(&self, row: usize) -> Option<&str> {
        let at = usize::try_from((*self.rows.get(row)?)?).ok()?;
        self.texts.get(at)?.as_deref()
    }

    /// The text of each row.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The rows with these numbers, in this order.
    pub(super) fn rows_of(&self, rows: &[usize]) -> Self {
        Self { texts: self.texts.clone(), rows: rows.iter().map(|&row| self.rows[row]).collect() }
    }

    pub(super) fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    pub(super) fn array(&self) -> ArrayRef {
        let texts: StringArray = self.texts.iter().map(Option::as_deref).collect();
        let rows: Int32Array = self.rows.iter().copied().collect();
        // Every index was given out together with its text.
        Arc::new(DictionaryArray::<Int32Type>::new(rows, Arc::new(texts)))
    }

    /// From a dictionary of texts; `None` for a dictionary of other values.
    pub(super) fn from_array(array: &dyn Array) -> Option<Self> {
        let array = cast(array, &Self::data_type()).ok()?;
        let array = array.as_dictionary_opt::<Int32Type>()?;
        let texts = array.values().as_string_opt::<i32>()?;
        Some(Self {
            texts: texts.iter().map(|text| text.map(str::to_owned)).collect(),
            rows: array.keys().iter().collect(),
        })
    }
}

/// Equal texts in equal rows; the order of the texts does not count.
impl PartialEq for TextChoice {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a> FromIterator<&'a str> for TextChoice {
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let (mut choice, mut known) = (Self::default(), BTreeMap::new());
        for text in texts {
            let at = *known.entry(text).or_insert_with(|| {
                choice.texts.push(Some(text.to_owned()));
                choice.texts.len() as i32 - 1
            });
            choice.rows.push(Some(at));
        }
        choice
    }
}
