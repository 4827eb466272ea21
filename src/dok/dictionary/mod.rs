//! Dictionaries from key columns to a value: see [`Dictionary`].

mod column;
mod rows;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, new_empty_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::FieldRef;

use super::{HashMap, MapOptions, RowType};
use crate::dense::DType;
use crate::error::{Error, Result};

pub(crate) use column::{Column, ColumnParts};
use rows::Packed;

/// A dictionary whose keys are rows of Arrow columns, such as a subject and a code, and whose values
/// are one column.
///
/// Columns are numbers, booleans, dates, times, timestamps, durations, or text (which is kept once,
/// in a vocabulary of its column). Keys compare as those of [`HashMap`] do: exactly, with -0.0 = 0.0
/// and all NaN one. A key with NULL in it is never found, and cannot be set; neither can the value
/// NULL.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Int64Array, StringArray};
/// use arrow::datatypes::{DataType, Field, Float32Type};
/// use serrate::dok::{Dictionary, MapOptions};
/// let subject: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 8]));
/// let code: ArrayRef = Arc::new(StringArray::from(vec!["LAB//1", "LAB//2", "LAB//1"]));
/// let value: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
/// let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), false));
/// let mut dictionary = Dictionary::new(
///     vec![field("subject_id", &subject), field("code", &code)],
///     field("value", &value),
///     MapOptions::default(),
/// )?;
/// dictionary.set(&[subject, code], &value)?;
/// let subject: ArrayRef = Arc::new(Int64Array::from(vec![Some(8), Some(8), None]));
/// let code: ArrayRef = Arc::new(StringArray::from(vec!["LAB//1", "LAB//2", "LAB//1"]));
/// let found = dictionary.get(&[subject, code])?;
/// assert_eq!(found.as_primitive::<Float32Type>().iter().collect::<Vec<_>>(), [Some(2.5), None, None]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct Dictionary {
    keys: Vec<Column>,
    value: Column,
    /// Bytes of a key, some of which may be padding.
    width: usize,
    map: HashMap,
}

impl Dictionary {
    /// Without entries. Whether fields are nullable does not matter.
    ///
    /// # Errors
    /// When there is no key, two keys have one name, or a type is none of those above.
    pub fn new(keys: Vec<FieldRef>, value: FieldRef, options: MapOptions) -> Result<Self> {
        let keys = keys.into_iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        Self::with_columns(keys, Column::new(value)?, options)
    }

    /// From columns that may have vocabularies already.
    pub(crate) fn with_columns(
        keys: Vec<Column>,
        value: Column,
        options: MapOptions,
    ) -> Result<Self> {
        if keys.is_empty() {
            return Err(Error::invalid("a dictionary without keys; it has one column at least"));
        }
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].iter().any(|k| k.field().name() == key.field().name()) {
                return Err(Error::invalid(format!("two keys are named {:?}", key.field().name())));
            }
        }
        let width = rows::width(keys.iter().map(|k| k.dtype().size()).sum());
        let map = HashMap::with_types(
            RowType::new(DType::U8, [width])?,
            RowType::scalar(value.dtype()),
            options,
        )?;
        Ok(Self { keys, value, width, map })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Name and type of every key column.
    pub fn key_fields(&self) -> impl ExactSizeIterator<Item = &FieldRef> {
        self.keys.iter().map(Column::field)
    }

    /// Name and type of the value.
    pub fn value_field(&self) -> &FieldRef {
        self.value.field()
    }

    /// Bytes of memory, vocabularies included.
    pub fn memory(&self) -> usize {
        let texts = self.keys.iter().chain([&self.value]).map(Column::memory).sum::<usize>();
        self.map.memory() + texts
    }

    /// Whether large batches may be divided among threads from now on.
    pub fn set_parallel(&mut self, parallel: bool) {
        self.map.set_parallel(parallel);
    }

    /// Makes room for `more` keys.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.map.reserve(more)
    }

    /// Sets the values of keys, and says which rows added theirs; see [`HashMap::set`].
    ///
    /// # Errors
    /// When columns are not those of the dictionary, not equally long, or something is NULL.
    pub fn set(&mut self, keys: &[ArrayRef], values: &ArrayRef) -> Result<Vec<bool>> {
        let rows = self.check(keys)?;
        if values.len() != rows {
            return Err(Error::invalid(format!("{rows} keys and {} values", values.len())));
        }
        for (column, array) in self.keys.iter().zip(keys).chain([(&self.value, values)]) {
            let nulls = array.logical_null_count();
            if nulls > 0 {
                return Err(Error::invalid(format!(
                    "column {:?} has {nulls} NULL(s); a dictionary has none, filter them out first",
                    column.field().name()
                )));
            }
        }
        let mut packed = Packed::new(rows, self.width)?;
        for (column, array) in self.keys.iter_mut().zip(keys) {
            packed.push(&column.encode(array)?)?;
        }
        let values = self.value.encode(values)?;
        self.map.set(&packed.finish()?, &values)
    }

    /// The values of keys, NULL where there is none.
    ///
    /// # Errors
    /// When columns are not those of the dictionary or not equally long.
    pub fn get(&self, keys: &[ArrayRef]) -> Result<ArrayRef> {
        let (packed, known) = self.pack(keys)?;
        let fetched = self.map.get(&packed, &super::Fallback::Zero)?;
        let found = BooleanBuffer::from_iter(fetched.found);
        let found = match known {
            Some(known) => &found & known.inner(),
            None => found,
        };
        self.value.decode(&fetched.values, Some(NullBuffer::new(found)))
    }

    /// Which keys are there; a key with NULL in it is not.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, keys: &[ArrayRef]) -> Result<BooleanArray> {
        let (packed, known) = self.pack(keys)?;
        let found = BooleanBuffer::from_iter(self.map.contains(&packed)?);
        let found = match known {
            Some(known) => &found & known.inner(),
            None => found,
        };
        Ok(BooleanArray::new(found, None))
    }

    /// Removes keys, and says which rows were there; see [`HashMap::remove`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn remove(&mut self, keys: &[ArrayRef]) -> Result<Vec<bool>> {
        let (packed, known) = self.pack(keys)?;
        let Some(known) = known else { return self.map.remove(&packed) };
        // What is not known stands as zeros, which may be a key.
        let rows: Vec<u64> = known.valid_indices().map(|i| i as u64).collect();
        let packed = rows::take(&packed, &rows)?;
        let mut out = vec![false; known.len()];
        for (i, there) in known.valid_indices().zip(self.map.remove(&packed)?) {
            out[i] = there;
        }
        Ok(out)
    }

    /// The keys, column by column, in the order of [`values`](Self::values).
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn keys(&self) -> Result<Vec<ArrayRef>> {
        let packed = self.map.keys()?;
        let mut first = 0;
        let columns = self.keys.iter().map(|column| {
            let values = rows::unpack(&packed, first, column.dtype())?;
            first += column.dtype().size();
            column.decode(&values, None)
        });
        columns.collect()
    }

    /// The values; numbers without a copy.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn values(&self) -> Result<ArrayRef> {
        if self.is_empty() {
            return Ok(new_empty_array(self.value.field().data_type()));
        }
        self.value.decode(&self.map.values()?, None)
    }

    /// The columns as they are stored: keys, then the value.
    pub(crate) fn parts(&self) -> Result<Vec<ColumnParts>> {
        let packed = self.map.keys()?;
        let mut first = 0;
        let mut parts = Vec::with_capacity(self.keys.len() + 1);
        for column in &self.keys {
            let values = rows::unpack(&packed, first, column.dtype())?;
            first += column.dtype().size();
            parts.push(column.parts(values));
        }
        parts.push(self.value.parts(self.map.values()?));
        Ok(parts)
    }

    /// Entries as they are stored, each key once.
    pub(crate) fn from_parts(parts: Vec<ColumnParts>, options: MapOptions) -> Result<Self> {
        let mut columns = Vec::with_capacity(parts.len());
        let mut stored = Vec::with_capacity(parts.len());
        for part in parts {
            let (column, values) = Column::from_parts(part)?;
            columns.push(column);
            stored.push(values);
        }
        let (Some(value), Some(values)) = (columns.pop(), stored.pop()) else {
            return Err(Error::invalid("a dictionary without columns"));
        };
        let mut made = Self::with_columns(columns, value, options)?;
        let mut packed = Packed::new(values.num_elements(), made.width)?;
        for values in &stored {
            packed.push(values)?;
        }
        made.map.reserve(values.num_elements())?;
        let new = made.map.set(&packed.finish()?, &values)?;
        match new.iter().position(|new| !new) {
            None => Ok(made),
            Some(row) => Err(Error::invalid(format!("row {row} has the key of a row before it"))),
        }
    }

    /// Keys to look for, and which of them may be there at all (all when `None`).
    fn pack(&self, keys: &[ArrayRef]) -> Result<(crate::dense::DenseTensor, Option<NullBuffer>)> {
        let rows = self.check(keys)?;
        let mut packed = Packed::new(rows, self.width)?;
        let mut known = None;
        for (column, array) in self.keys.iter().zip(keys) {
            let (values, nulls) = column.look_up(array)?;
            packed.push(&values)?;
            known = NullBuffer::union(known.as_ref(), nulls.as_ref());
        }
        Ok((packed.finish()?, known.filter(|n| n.null_count() > 0)))
    }

    fn check(&self, keys: &[ArrayRef]) -> Result<usize> {
        let rows = keys.first().map_or(0, |k| k.len());
        if keys.len() != self.keys.len() || keys.iter().any(|k| k.len() != rows) {
            let names: Vec<&str> = self.key_fields().map(|f| f.name().as_str()).collect();
            return Err(Error::invalid(format!(
                "{} key columns of {:?} rows; the keys of this dictionary are {}, equally long",
                keys.len(),
                keys.iter().map(|k| k.len()).collect::<Vec<_>>(),
                names.join(", ")
            )));
        }
        Ok(rows)
    }

    /// A copy with memory of its own for what is written from now on.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn try_clone(&self) -> Result<Self> {
        let map = self.map.try_clone()?;
        Ok(Self { keys: self.keys.clone(), value: self.value.clone(), width: self.width, map })
    }

    /// The fields of keys and value, as of a batch with all columns.
    pub fn schema(&self) -> arrow::datatypes::SchemaRef {
        let fields = self.key_fields().chain([self.value_field()]);
        Arc::new(arrow::datatypes::Schema::new(fields.cloned().collect::<Vec<_>>()))
    }
}
