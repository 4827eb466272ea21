//! One column of a [`Dictionary`](super::Dictionary): its Arrow type and its stored values.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder, UInt32Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, UInt32Type};

use crate::array::nested_types::is_string_like;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// The distinct strings of a column, numbered in order of insertion; the dictionary stores these
/// numbers.
#[derive(Clone, Debug, Default)]
struct StringVocabulary {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// The strings as an Arrow array, built on the first read after an insertion.
    array: OnceLock<ArrayRef>,
}

impl StringVocabulary {
    fn insert_string(&mut self, text: &str) -> Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let number = u32::try_from(self.texts.len()).map_err(|_| {
            Error::invalid(
                "the dictionary column has more than 2^32 distinct strings, the maximum per column; divide the rows among several dictionaries",
            )
        })?;
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.array.take();
        self.numbers.insert(text, number);
        Ok(number)
    }

    fn cached_array(&self) -> &ArrayRef {
        self.array.get_or_init(|| Arc::new(self.build_array()))
    }

    fn build_array(&self) -> StringArray {
        let bytes = self.texts.iter().map(|t| t.len()).sum();
        let mut out = StringBuilder::with_capacity(self.texts.len(), bytes);
        self.texts.iter().for_each(|t| out.append_value(t));
        out.finish()
    }
}

#[derive(Clone, Debug)]
enum ColumnKind {
    Fixed(DType),
    Strings(StringVocabulary),
}

#[derive(Clone, Debug)]
pub(crate) struct DictionaryColumn {
    field: FieldRef,
    kind: ColumnKind,
}

/// A column of a saved dictionary: the field, and the values that the dictionary stores.
#[derive(Debug)]
pub(crate) struct ColumnParts {
    pub(crate) field: FieldRef,
    pub(crate) values: DenseTensor,
    /// The distinct strings of a string column, whose `values` are indices into these strings;
    /// `None` for other columns.
    pub(crate) texts: Option<StringArray>,
}

impl DictionaryColumn {
    pub(crate) fn new(field: FieldRef) -> Result<Self> {
        let kind = if is_string_like(field.data_type()) {
            ColumnKind::Strings(StringVocabulary::default())
        } else {
            ColumnKind::Fixed(DType::of_leaves(
                field.data_type(),
                &format!("column {:?}", field.name()),
            )?)
        };
        Ok(Self { field, kind })
    }

    pub(crate) fn field(&self) -> &FieldRef {
        &self.field
    }

    pub(crate) fn dtype(&self) -> DType {
        match &self.kind {
            ColumnKind::Fixed(dtype) => *dtype,
            ColumnKind::Strings(_) => DType::U32,
        }
    }

    pub(crate) fn nbytes(&self) -> usize {
        match &self.kind {
            ColumnKind::Fixed(_) => 0,
            // Bytes per string: its length, its reference counts (16), and its entries in `texts`
            // (16) and `numbers` (28).
            ColumnKind::Strings(v) => v.texts.iter().map(|t| t.len() + 16 + 16 + 28).sum(),
        }
    }

    /// Returns an error if the type of the array is not the type of the column. A string column
    /// accepts all string types.
    fn check_array(&self, array: &ArrayRef) -> Result<()> {
        let wanted = self.field.data_type();
        let strings =
            matches!(self.kind, ColumnKind::Strings(_)) && is_string_like(array.data_type());
        if strings || array.data_type() == wanted {
            return Ok(());
        }
        let what = format!("column {:?}", self.field.name());
        Err(Error::type_of(what, wanted.to_string(), array.data_type()))
    }

    /// Converts an array without nulls to stored values. Adds new strings to the vocabulary.
    pub(super) fn encode_values(&mut self, array: &ArrayRef) -> Result<DenseTensor> {
        self.check_array(array)?;
        match &mut self.kind {
            ColumnKind::Fixed(_) => DenseTensor::from_flat(array, self.field.name()),
            ColumnKind::Strings(vocabulary) => {
                let numbers = map_strings(array, |text| vocabulary.insert_string(text).map(Some))?;
                DenseTensor::from_vec([array.len()], numbers.values().to_vec())
            }
        }
    }

    /// Encodes like [`encode_values`](Self::encode_values), but adds no strings. Also returns a
    /// mask: false for nulls and unknown strings, which the dictionary cannot contain. The mask is
    /// `None` if there are no nulls and no unknown strings.
    pub(super) fn encode_known(
        &self,
        array: &ArrayRef,
    ) -> Result<(DenseTensor, Option<NullBuffer>)> {
        self.check_array(array)?;
        match &self.kind {
            ColumnKind::Fixed(_) => {
                let values = DenseTensor::from_flat(array, self.field.name())?;
                Ok((values, array.logical_nulls()))
            }
            ColumnKind::Strings(vocabulary) => {
                let number = |text: &str| Ok(vocabulary.numbers.get(text).copied());
                let numbers = map_strings(array, number)?;
                let values = DenseTensor::from_vec([array.len()], numbers.values().to_vec())?;
                Ok((values, numbers.nulls().cloned()))
            }
        }
    }

    pub(super) fn decode_values(
        &self,
        values: &DenseTensor,
        valid: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let of = self.field.data_type();
        match &self.kind {
            ColumnKind::Fixed(_) => {
                let flat = values.to_flat()?;
                let data = flat.to_data().into_builder().data_type(of.clone()).nulls(valid);
                Ok(make_array(data.build()?))
            }
            ColumnKind::Strings(vocabulary) => {
                let numbers = values.as_slice::<u32>()?.to_vec();
                let numbers = UInt32Array::new(numbers.into(), valid);
                let texts = take(vocabulary.cached_array(), &numbers, None)?;
                Ok(cast(&texts, of)?)
            }
        }
    }

    pub(super) fn to_parts(&self, values: DenseTensor) -> ColumnParts {
        let texts = match &self.kind {
            ColumnKind::Fixed(_) => None,
            ColumnKind::Strings(vocabulary) => Some(vocabulary.build_array()),
        };
        ColumnParts { field: Arc::clone(&self.field), values, texts }
    }

    pub(super) fn from_parts(parts: ColumnParts) -> Result<(Self, DenseTensor)> {
        let mut column = Self::new(parts.field)?;
        let name = column.field.name().clone();
        let wrong = |message: String| Error::invalid(format!("column {name:?}: {message}"));
        if parts.values.dtype() != column.dtype() {
            return Err(wrong(format!(
                "the stored values have the type {}, which is not valid for a column of type {}; save the dictionary again",
                parts.values.dtype(),
                column.field.data_type()
            )));
        }
        match (&mut column.kind, &parts.texts) {
            (ColumnKind::Fixed(_), None) => {}
            (ColumnKind::Strings(vocabulary), Some(texts)) => {
                for (i, text) in texts.iter().enumerate() {
                    let text =
                        text.ok_or_else(|| wrong(format!("string {i} of the vocabulary is NULL; a vocabulary must not contain NULL")))?;
                    let number = vocabulary.insert_string(text)?;
                    if usize::try_from(number).ok() != Some(i) {
                        return Err(wrong(format!(
                            "string {i} of the vocabulary repeats an earlier string; save the dictionary with distinct strings"
                        )));
                    }
                }
                let numbers = parts.values.as_slice::<u32>()?;
                let outside = |n: &u32| usize::try_from(*n).map_or(true, |n| n >= texts.len());
                if let Some(row) = numbers.iter().position(outside) {
                    return Err(wrong(format!(
                        "row {row} refers to string {}, but the vocabulary has only {} string(s), numbered from 0; save the dictionary again",
                        numbers[row],
                        texts.len()
                    )));
                }
            }
            _ => {
                let has = if parts.texts.is_some() { "a" } else { "no" };
                return Err(wrong(format!(
                    "the column has the type {} and {has} vocabulary; save the dictionary again, with a vocabulary for each string column and for no other column",
                    column.field.data_type()
                )));
            }
        }
        Ok((column, parts.values))
    }
}

/// Returns the result of `number` for the string of each row; null if the string is null or
/// `number` returns `None`. For an Arrow dictionary array, calls `number` only once for each
/// dictionary value that a row uses.
fn map_strings(
    array: &ArrayRef,
    mut number: impl FnMut(&str) -> Result<Option<u32>>,
) -> Result<UInt32Array> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // Mark the dictionary values that rows use, because only they may enter the vocabulary.
        let mut used = vec![false; dictionary.values().len()];
        let rows = dictionary.normalized_keys();
        for (i, row) in rows.iter().enumerate() {
            if dictionary.keys().is_valid(i) {
                used[*row] = true;
            }
        }
        let texts = cast(dictionary.values(), &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let mut numbers = Vec::with_capacity(used.len());
        for (i, used) in used.iter().enumerate() {
            numbers.push(if *used && texts.is_valid(i) { number(texts.value(i))? } else { None });
        }
        let numbers = UInt32Array::from(numbers);
        let keys = cast(dictionary.keys(), &DataType::UInt64)?;
        return Ok(take(&numbers, &keys, None)?.as_primitive::<UInt32Type>().clone());
    }
    let mut out = Vec::with_capacity(array.len());
    macro_rules! all {
        ($texts:expr) => {
            for text in $texts {
                out.push(match text {
                    Some(text) => number(text)?,
                    None => None,
                });
            }
        };
    }
    match array.data_type() {
        DataType::Utf8 => all!(array.as_string::<i32>()),
        DataType::LargeUtf8 => all!(array.as_string::<i64>()),
        _ => all!(array.as_string_view()),
    }
    Ok(UInt32Array::from(out))
}
