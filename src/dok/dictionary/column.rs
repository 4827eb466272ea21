//! One column of a dictionary: as it is in Arrow, and as it is stored.

use std::collections::HashMap as StdMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder, UInt32Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, UInt32Type};

use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Texts by number.
#[derive(Clone, Debug, Default)]
struct Vocabulary {
    numbers: StdMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// Made when first values are read, and again after texts have come.
    array: OnceLock<ArrayRef>,
}

impl Vocabulary {
    fn number(&mut self, text: &str) -> Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let number = u32::try_from(self.texts.len())
            .map_err(|_| Error::invalid("more than 2^32 different texts in one column"))?;
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.array.take();
        self.numbers.insert(text, number);
        Ok(number)
    }

    fn shared(&self) -> &ArrayRef {
        self.array.get_or_init(|| Arc::new(self.array()))
    }

    fn array(&self) -> StringArray {
        let bytes = self.texts.iter().map(|t| t.len()).sum();
        let mut out = StringBuilder::with_capacity(self.texts.len(), bytes);
        self.texts.iter().for_each(|t| out.append_value(t));
        out.finish()
    }
}

#[derive(Clone, Debug)]
enum Kind {
    /// Stored as its numbers.
    Fixed(DType),
    /// Stored as numbers of texts.
    Text(Vocabulary),
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    field: FieldRef,
    kind: Kind,
}

/// A column as it is saved.
#[derive(Debug)]
pub(crate) struct ColumnParts {
    pub(crate) field: FieldRef,
    pub(crate) values: DenseTensor,
    /// The texts that values are numbers of.
    pub(crate) texts: Option<StringArray>,
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, of) => is_text(of),
        _ => false,
    }
}

impl Column {
    pub(crate) fn new(field: FieldRef) -> Result<Self> {
        let kind = if is_text(field.data_type()) {
            Kind::Text(Vocabulary::default())
        } else {
            Kind::Fixed(DType::of_leaves(field.data_type(), &format!("column {:?}", field.name()))?)
        };
        Ok(Self { field, kind })
    }

    pub(crate) fn field(&self) -> &FieldRef {
        &self.field
    }

    pub(crate) fn dtype(&self) -> DType {
        match &self.kind {
            Kind::Fixed(dtype) => *dtype,
            Kind::Text(_) => DType::U32,
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match &self.kind {
            Kind::Fixed(_) => 0,
            // Text and its counts, a pointer in the list, a pointer and number in the table.
            Kind::Text(v) => v.texts.iter().map(|t| t.len() + 16 + 16 + 28).sum(),
        }
    }

    /// Refuses columns of other types; any encoding of text will do.
    fn check(&self, array: &ArrayRef) -> Result<()> {
        let wanted = self.field.data_type();
        let text = matches!(self.kind, Kind::Text(_)) && is_text(array.data_type());
        if text || array.data_type() == wanted {
            return Ok(());
        }
        let what = format!("column {:?}", self.field.name());
        Err(Error::type_of(what, wanted.to_string(), array.data_type()))
    }

    /// The stored values of a column without nulls; new texts get numbers.
    pub(super) fn encode(&mut self, array: &ArrayRef) -> Result<DenseTensor> {
        self.check(array)?;
        match &mut self.kind {
            Kind::Fixed(_) => DenseTensor::from_flat(array, self.field.name()),
            Kind::Text(vocabulary) => {
                let numbers = each_text(array, |text| vocabulary.number(text).map(Some))?;
                DenseTensor::from_vec([array.len()], numbers.values().to_vec())
            }
        }
    }

    /// The stored values of a column, and which of them may be there: not those that are null, nor
    /// texts without a number.
    pub(super) fn look_up(&self, array: &ArrayRef) -> Result<(DenseTensor, Option<NullBuffer>)> {
        self.check(array)?;
        match &self.kind {
            Kind::Fixed(_) => {
                let values = DenseTensor::from_flat(array, self.field.name())?;
                Ok((values, array.logical_nulls()))
            }
            Kind::Text(vocabulary) => {
                let number = |text: &str| Ok(vocabulary.numbers.get(text).copied());
                let numbers = each_text(array, number)?;
                let values = DenseTensor::from_vec([array.len()], numbers.values().to_vec())?;
                Ok((values, numbers.nulls().cloned()))
            }
        }
    }

    /// Stored values as the column was; what `valid` leaves out is null.
    pub(super) fn decode(
        &self,
        values: &DenseTensor,
        valid: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let of = self.field.data_type();
        match &self.kind {
            Kind::Fixed(_) => {
                let flat = values.to_flat()?;
                let data = flat.to_data().into_builder().data_type(of.clone()).nulls(valid);
                Ok(make_array(data.build()?))
            }
            Kind::Text(vocabulary) => {
                let numbers = values.as_slice::<u32>()?.to_vec();
                let numbers = UInt32Array::new(numbers.into(), valid);
                let texts = take(vocabulary.shared(), &numbers, None)?;
                Ok(cast(&texts, of)?)
            }
        }
    }

    pub(super) fn parts(&self, values: DenseTensor) -> ColumnParts {
        let texts = match &self.kind {
            Kind::Fixed(_) => None,
            Kind::Text(vocabulary) => Some(vocabulary.array()),
        };
        ColumnParts { field: Arc::clone(&self.field), values, texts }
    }

    pub(super) fn from_parts(parts: ColumnParts) -> Result<(Self, DenseTensor)> {
        let mut column = Self::new(parts.field)?;
        let name = column.field.name().clone();
        let wrong = |message: String| Error::invalid(format!("column {name:?}: {message}"));
        if parts.values.dtype() != column.dtype() {
            return Err(wrong(format!(
                "values of type {} for {}",
                parts.values.dtype(),
                column.field.data_type()
            )));
        }
        match (&mut column.kind, &parts.texts) {
            (Kind::Fixed(_), None) => {}
            (Kind::Text(vocabulary), Some(texts)) => {
                for (i, text) in texts.iter().enumerate() {
                    let number = vocabulary.number(text.unwrap_or_default())?;
                    if usize::try_from(number).ok() != Some(i) {
                        return Err(wrong(format!("text {i} is there twice")));
                    }
                }
                let numbers = parts.values.as_slice::<u32>()?;
                let outside = |n: &u32| usize::try_from(*n).map_or(true, |n| n >= texts.len());
                if let Some(row) = numbers.iter().position(outside) {
                    return Err(wrong(format!(
                        "row {row} is text {} of {}",
                        numbers[row],
                        texts.len()
                    )));
                }
            }
            _ => return Err(wrong("texts and their numbers belong together".into())),
        }
        Ok((column, parts.values))
    }
}

/// A number per text, of dictionaries once per text; null where there is no text or no number.
fn each_text(
    array: &ArrayRef,
    mut number: impl FnMut(&str) -> Result<Option<u32>>,
) -> Result<UInt32Array> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // Values that no row has must not get a number.
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
