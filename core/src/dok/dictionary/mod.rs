mod dictionary_column;
mod packed_keys;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, new_empty_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::FieldRef;

use super::{MapOptions, RowMap, RowType};
use crate::dense::DType;
use crate::error::{Error, Result};

pub(crate) use dictionary_column::{ColumnParts, DictionaryColumn};
use packed_keys::PackedRows;

/// A dictionary from rows of key columns, such as a subject and a code, to one value column.
///
/// Columns hold numbers, booleans, dates, times, timestamps, durations, or strings (each stored
/// once, in a vocabulary per column). Keys compare as in [`RowMap`]: exactly, except that -0.0
/// equals 0.0 and all NaN are equal. A key with NULL is never found; neither keys nor values can be
/// set to NULL.
///
/// ```
/// # use serrate_core as serrate;
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
/// assert!(dictionary.is_empty());
/// dictionary.set(&[subject, code], &value)?;
/// assert_eq!((dictionary.len(), dictionary.value_field().name().as_str()), (3, "value"));
/// assert!(dictionary.nbytes() > 0);
/// let subject: ArrayRef = Arc::new(Int64Array::from(vec![Some(8), Some(8), None]));
/// let code: ArrayRef = Arc::new(StringArray::from(vec!["LAB//1", "LAB//2", "LAB//1"]));
/// let found = dictionary.get(&[subject, code])?;
/// let found: Vec<_> = found.as_primitive::<Float32Type>().iter().collect();
/// assert_eq!(found, [Some(2.5), None, None]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct Dictionary {
    keys: Vec<DictionaryColumn>,
    value: DictionaryColumn,
    /// Size in bytes of a packed key, which has the values of all key columns in one row, and
    /// padding.
    width: usize,
    map: RowMap,
}

impl Dictionary {
    /// Creates an empty dictionary; the nullability of fields is ignored.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// let d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// assert_eq!((d.len(), d.value_field().name().as_str()), (0, "age"));
    /// assert!(Dictionary::new(vec![], field("age"), MapOptions::default()).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no key column, two key columns have the same name, or a type is not supported.
    pub fn new(keys: Vec<FieldRef>, value: FieldRef, options: MapOptions) -> Result<Self> {
        let keys = keys.into_iter().map(DictionaryColumn::new).collect::<Result<Vec<_>>>()?;
        Self::from_columns(keys, DictionaryColumn::new(value)?, options)
    }

    /// Creates a dictionary without keys from its columns. The vocabulary (list of distinct
    /// strings) of a string column may already hold strings.
    fn from_columns(
        keys: Vec<DictionaryColumn>,
        value: DictionaryColumn,
        options: MapOptions,
    ) -> Result<Self> {
        if keys.is_empty() {
            return Err(Error::invalid("the dictionary has no key columns; give at least one"));
        }
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].iter().any(|k| k.field().name() == key.field().name()) {
                return Err(Error::invalid(format!(
                    "two key columns have the name {:?}; rename one of them",
                    key.field().name()
                )));
            }
        }
        let width = packed_keys::compute_padded_width(keys.iter().map(|k| k.dtype().size()).sum());
        let map = RowMap::with_types(
            RowType::new(DType::U8, [width])?,
            RowType::scalar(value.dtype()),
            options,
        )?;
        Ok(Self { keys, value, width, map })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the name and type of every key column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// let keys = vec![field("subject"), field("code")];
    /// let d = Dictionary::new(keys, field("age"), MapOptions::default())?;
    /// let names: Vec<_> = d.key_fields().map(|field| field.name().as_str()).collect();
    /// assert_eq!(names, ["subject", "code"]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn key_fields(&self) -> impl ExactSizeIterator<Item = &FieldRef> {
        self.keys.iter().map(DictionaryColumn::field)
    }

    /// Returns the name and type of the value column.
    pub fn value_field(&self) -> &FieldRef {
        self.value.field()
    }

    /// Returns the memory of the dictionary in bytes, including the vocabularies of string columns.
    pub fn nbytes(&self) -> usize {
        let texts =
            self.keys.iter().chain([&self.value]).map(DictionaryColumn::nbytes).sum::<usize>();
        self.map.nbytes() + texts
    }

    /// Sets whether operations on large batches of keys may use several threads.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set_parallel(false);
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// assert_eq!(d.len(), 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn set_parallel(&mut self, parallel: bool) {
        self.map.set_parallel(parallel);
    }

    /// Reserves capacity for `more` keys.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.reserve(1000)?;
    /// assert!(d.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.map.reserve(more)
    }

    /// Sets the values of keys, and returns which rows added a key; see [`RowMap::set`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// assert_eq!(d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?, [true, true]);
    /// assert_eq!(d.set(&[column(vec![8, 9])], &column(vec![39, 55]))?, [false, true]);
    /// assert_eq!(d.len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a type differs from the dictionary's, columns differ in length, or a column has a NULL.
    pub fn set(&mut self, keys: &[ArrayRef], values: &ArrayRef) -> Result<Vec<bool>> {
        let rows = self.check_keys(keys)?;
        if values.len() != rows {
            return Err(Error::invalid(format!(
                "{rows} key(s) but {} value(s) are given; give one value per key",
                values.len()
            )));
        }
        for (column, array) in self.keys.iter().zip(keys).chain([(&self.value, values)]) {
            let nulls = array.logical_null_count();
            if nulls > 0 {
                return Err(Error::invalid(format!(
                    "column {:?} has {nulls} NULL(s), which a dictionary cannot hold; filter these rows out first",
                    column.field().name()
                )));
            }
        }
        let mut packed = PackedRows::new(rows, self.width)?;
        for (column, array) in self.keys.iter_mut().zip(keys) {
            packed.push(&column.encode_values(array)?)?;
        }
        let values = self.value.encode_values(values)?;
        self.map.set(&packed.finish()?, &values)
    }

    /// Returns the values of keys; NULL for missing keys and for keys with NULL.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// let ages = d.get(&[column(vec![8, 5, 7])])?;
    /// assert_eq!(ages.as_ref(), &Int64Array::from(vec![Some(38), None, Some(71)]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column has another type than in the dictionary, or the columns differ in length.
    pub fn get(&self, keys: &[ArrayRef]) -> Result<ArrayRef> {
        let (packed, known) = self.pack_keys(keys)?;
        let fetched = self.map.get(&packed, &super::Fallback::Zero)?;
        let found = BooleanBuffer::from_iter(fetched.found);
        let found = match known {
            Some(known) => &found & known.inner(),
            None => found,
        };
        self.value.decode_values(&fetched.values, Some(NullBuffer::new(found)))
    }

    /// Returns whether each key is present; a key with NULL never is.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// let found = d.contains(&[column(vec![8, 5])])?;
    /// assert_eq!((found.value(0), found.value(1)), (true, false));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    pub fn contains(&self, keys: &[ArrayRef]) -> Result<BooleanArray> {
        let (packed, known) = self.pack_keys(keys)?;
        let found = BooleanBuffer::from_iter(self.map.contains(&packed)?);
        let found = match known {
            Some(known) => &found & known.inner(),
            None => found,
        };
        Ok(BooleanArray::new(found, None))
    }

    /// Removes keys, and returns which of them were present; see [`RowMap::remove`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// assert_eq!(d.remove(&[column(vec![8, 5])])?, [true, false]);
    /// assert_eq!(d.len(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`get`](Self::get).
    pub fn remove(&mut self, keys: &[ArrayRef]) -> Result<Vec<bool>> {
        let (packed, known) = self.pack_keys(keys)?;
        let Some(known) = known else { return self.map.remove(&packed) };
        // Rows with NULL or unknown strings are packed as zeros, which may equal a key: skip them.
        let rows: Vec<u64> = known.valid_indices().map(|i| i as u64).collect();
        let packed = packed_keys::take_rows(&packed, &rows)?;
        let mut out = vec![false; known.len()];
        for (i, found) in known.valid_indices().zip(self.map.remove(&packed)?) {
            out[i] = found;
        }
        Ok(out)
    }

    /// Returns the key columns, with rows in the order of [`values`](Self::values).
    ///
    /// The columns are empty if there are no keys.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// assert_eq!(d.keys()?[0].as_ref(), &Int64Array::from(vec![7, 8]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn keys(&self) -> Result<Vec<ArrayRef>> {
        let packed = self.map.keys()?;
        let mut first = 0;
        let columns = self.keys.iter().map(|column| {
            let values = packed_keys::unpack_column(&packed, first, column.dtype())?;
            first += column.dtype().size();
            column.decode_values(&values, None)
        });
        columns.collect()
    }

    /// Returns the values, in the order of [`keys`](Self::keys).
    ///
    /// Numbers are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array};
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// # let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set(&[column(vec![7, 8])], &column(vec![71, 38]))?;
    /// assert_eq!(d.values()?.as_ref(), &Int64Array::from(vec![71, 38]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn values(&self) -> Result<ArrayRef> {
        if self.is_empty() {
            return Ok(new_empty_array(self.value.field().data_type()));
        }
        self.value.decode_values(&self.map.values()?, None)
    }

    pub(crate) fn parts(&self) -> Result<Vec<ColumnParts>> {
        let packed = self.map.keys()?;
        let mut first = 0;
        let mut parts = Vec::with_capacity(self.keys.len() + 1);
        for column in &self.keys {
            let values = packed_keys::unpack_column(&packed, first, column.dtype())?;
            first += column.dtype().size();
            parts.push(column.to_parts(values));
        }
        parts.push(self.value.to_parts(self.map.values()?));
        Ok(parts)
    }

    /// Creates a dictionary from the columns of a saved dictionary; returns an error if a key
    /// repeats.
    pub(crate) fn from_parts(parts: Vec<ColumnParts>, options: MapOptions) -> Result<Self> {
        let mut columns = Vec::with_capacity(parts.len());
        let mut stored = Vec::with_capacity(parts.len());
        for part in parts {
            let (column, values) = DictionaryColumn::from_parts(part)?;
            columns.push(column);
            stored.push(values);
        }
        let (Some(value), Some(values)) = (columns.pop(), stored.pop()) else {
            return Err(Error::invalid(
                "the dictionary has no columns; give at least a key column and a value column",
            ));
        };
        let mut made = Self::from_columns(columns, value, options)?;
        let mut packed = PackedRows::new(values.num_elements(), made.width)?;
        for values in &stored {
            packed.push(values)?;
        }
        made.map.reserve(values.num_elements())?;
        let new = made.map.set(&packed.finish()?, &values)?;
        match new.iter().position(|new| !new) {
            None => Ok(made),
            Some(row) => Err(Error::invalid(format!(
                "row {row} repeats the key of an earlier row; save the dictionary with distinct keys"
            ))),
        }
    }

    /// Packs the key columns of each row to one key of the map. Also returns a mask: false for rows
    /// that no key can equal, because they have a NULL or a string that the dictionary lacks.
    fn pack_keys(
        &self,
        keys: &[ArrayRef],
    ) -> Result<(crate::dense::DenseTensor, Option<NullBuffer>)> {
        let rows = self.check_keys(keys)?;
        let mut packed = PackedRows::new(rows, self.width)?;
        let mut known = None;
        for (column, array) in self.keys.iter().zip(keys) {
            let (values, nulls) = column.encode_known(array)?;
            packed.push(&values)?;
            known = NullBuffer::union(known.as_ref(), nulls.as_ref());
        }
        Ok((packed.finish()?, known.filter(|n| n.null_count() > 0)))
    }

    fn check_keys(&self, keys: &[ArrayRef]) -> Result<usize> {
        let rows = keys.first().map_or(0, |k| k.len());
        if keys.len() != self.keys.len() || keys.iter().any(|k| k.len() != rows) {
            let names: Vec<&str> = self.key_fields().map(|f| f.name().as_str()).collect();
            return Err(Error::invalid(format!(
                "{} key column(s) with the row counts {:?} are given; give the key columns {}, all with the same number of rows",
                keys.len(),
                keys.iter().map(|k| k.len()).collect::<Vec<_>>(),
                names.join(", ")
            )));
        }
        Ok(rows)
    }

    /// Returns an independent copy.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{ArrayRef, AsArray, Int64Array};
    /// use arrow::datatypes::{DataType, Field, Int64Type};
    /// use serrate::dok::{Dictionary, MapOptions};
    /// let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    /// let mut d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// d.set_parallel(false);
    /// d.reserve(3)?;
    /// d.set(&[column(vec![7, 8, 9])], &column(vec![71, 38, 55]))?;
    /// let copy = d.try_clone()?;
    /// assert_eq!(d.remove(&[column(vec![8, 3])])?, [true, false]);
    /// assert_eq!((d.len(), d.is_empty(), copy.len()), (2, false, 3));
    /// let found = d.contains(&[column(vec![7, 8])])?;
    /// assert_eq!((found.value(0), found.value(1)), (true, false));
    /// assert_eq!((d.keys()?[0].len(), d.values()?.as_primitive::<Int64Type>().value(0)), (2, 71));
    /// assert_eq!(d.key_fields().next().unwrap().name(), "subject");
    /// assert_eq!((d.value_field().name().as_str(), d.schema().fields().len()), ("age", 2));
    /// assert!(d.nbytes() > 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self> {
        let map = self.map.try_clone()?;
        Ok(Self { keys: self.keys.clone(), value: self.value.clone(), width: self.width, map })
    }

    /// Returns the fields of the keys and of the value.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::datatypes::{DataType, Field};
    /// # use serrate::dok::{Dictionary, MapOptions};
    /// # let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    /// let d = Dictionary::new(vec![field("subject")], field("age"), MapOptions::default())?;
    /// assert_eq!(d.schema().fields().len(), 2);
    /// assert_eq!(d.schema().field(1).name(), "age");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn schema(&self) -> arrow::datatypes::SchemaRef {
        let fields = self.key_fields().chain([self.value_field()]);
        Arc::new(arrow::datatypes::Schema::new(fields.cloned().collect::<Vec<_>>()))
    }
}
