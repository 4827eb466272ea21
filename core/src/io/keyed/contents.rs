//! Immutable entries of a sparse tensor or dictionary file, and changes that return new entries.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::compute::{cast, filter, is_not_null, take};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};

use crate::array::exact_casts::cast_strictly;
use crate::array::nulls::find_validity;
use crate::dense::{DType, DenseTensor};
use crate::dok::{Coo, Dictionary, DokTensor, DuplicateEntries, Fallback, MapOptions};
use crate::error::{Error, Result};
use crate::io::dictionary;
use crate::io::dok::DokFile;
use crate::io::repeated_names::find_repeated;
use crate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions};
use crate::kernels::text::is_text;

/// Metadata key of a tensor file. The value is a JSON list: the names of the axes, then of the
/// value column.
const NAMES: &str = "names";

/// The immutable entries of a sparse tensor or dictionary file. A change of the file creates new
/// contents.
#[derive(Debug)]
pub enum KeyedContents {
    /// The entries of a sparse tensor.
    Tensor(TensorContents),
    /// The entries of a dictionary, a map from key columns to a value column.
    Keys(KeysContents),
}

/// The entries of a [`Dictionary`].
#[derive(Debug)]
pub struct KeysContents {
    dictionary: Dictionary,
    /// Key columns and the value column, in insertion order.
    columns: Vec<ArrayRef>,
}

impl KeysContents {
    /// Returns the dictionary with its hash table.
    pub fn as_dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    fn try_from_dictionary(mut dictionary: Dictionary) -> Result<Self> {
        // A lookup uses one thread per batch, because queries already run in parallel.
        dictionary.set_parallel(false);
        let mut columns = dictionary.keys()?;
        columns.push(dictionary.values()?);
        Ok(Self { dictionary, columns })
    }
}

/// The entries of a sparse tensor.
#[derive(Debug)]
pub struct TensorContents {
    names: Vec<String>,
    shape: Vec<usize>,
    /// Coordinates as int64, `[ndim, nnz]`.
    indices: DenseTensor,
    values: DenseTensor,
    /// The tensor with its hash table, which the first lookup builds; or the message of the error
    /// if this failed.
    tensor: OnceLock<std::result::Result<DokTensor, String>>,
}

impl TensorContents {
    /// Returns the shape of the tensor.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the tensor.
    ///
    /// The first call builds its hash table; if that fails, every call returns the error.
    pub fn tensor(&self) -> Result<&DokTensor> {
        let made = self.tensor.get_or_init(|| {
            let (shape, options) = (self.shape.clone(), MapOptions::default());
            let mut made = DokTensor::from_unique(shape, &self.indices, &self.values, options)
                .map_err(|e| e.to_string())?;
            made.set_parallel(false);
            Ok(made)
        });
        made.as_ref().map_err(|e| Error::invalid(e.clone()))
    }

    fn try_from_tensor(mut tensor: DokTensor, names: Vec<String>) -> Result<Self> {
        let Coo { shape, indices, values } = tensor.to_coo()?;
        let kept = OnceLock::new();
        tensor.set_parallel(false);
        drop(kept.set(Ok(tensor)));
        Ok(Self { names, shape, indices, values, tensor: kept })
    }
}

/// Returns whether the coordinates strictly ascend in row-major order, as in files that this crate
/// writes.
fn is_ascending(indices: &DenseTensor, count: usize) -> Result<bool> {
    let all = indices.as_slice::<i64>()?;
    let axes: Vec<&[i64]> = all.chunks_exact(count.max(1)).collect();
    let first_other =
        |i: usize| axes.iter().map(|at| at[i - 1].cmp(&at[i])).find(|order| order.is_ne());
    Ok((1..count).all(|i| first_other(i) == Some(Ordering::Less)))
}

fn default_names(ndim: usize) -> Vec<String> {
    let axes = (0..ndim).map(|axis| format!("axis{axis}"));
    axes.chain(["value".into()]).collect()
}

impl KeyedContents {
    /// Returns whether the metadata of a file marks it as a sparse tensor or a dictionary; false if
    /// the file is not a safetensors file.
    pub fn is_in(path: &Path) -> bool {
        SafetensorsFile::open(path, FileAccess::Read).is_ok_and(|file| {
            let format = file.header().metadata().get("format");
            format.is_some_and(|f| f == crate::io::dok::FORMAT || f == dictionary::FORMAT)
        })
    }

    /// Reads a file, and checks all coordinates and keys in it.
    pub fn read(path: &Path) -> Result<Self> {
        // Do not map the file: entries outlive this call, and a mapped file must not change.
        let file = SafetensorsFile::open(path, FileAccess::Read)?;
        if file.header().metadata().get("format").is_some_and(|f| f == dictionary::FORMAT) {
            let read = dictionary::read_file(&file, MapOptions::default())?;
            return Ok(Self::Keys(KeysContents::try_from_dictionary(read)?));
        }
        let names = file.header().metadata().get(NAMES).cloned();
        let file = DokFile::new(file)?;
        let ndim = file.shape().len();
        let names = match names {
            None => default_names(ndim),
            Some(names) => serde_json::from_str::<Vec<String>>(&names)
                .ok()
                .filter(|n| n.len() == ndim + 1 && find_repeated(n).is_none())
                .ok_or_else(|| {
                    Error::file(
                        path,
                        format!("the metadata entry \"names\" is {names:?}, but must be a list of {} distinct names; create the file again", ndim + 1),
                    )
                })?,
        };
        let (indices, values) = file.coo()?;
        let shape = file.shape().to_vec();
        let different = is_ascending(&indices, values.num_elements())?;
        let tensor = TensorContents { names, shape, indices, values, tensor: OnceLock::new() };
        if !different {
            // Unsorted coordinates may repeat; building the hash table returns an error if they do.
            tensor.tensor().map_err(|e| Error::file(path, e.to_string()))?;
        }
        Ok(Self::Tensor(tensor))
    }

    /// Writes a file, which appears only when it is complete.
    pub fn write(&self, path: &Path, overwrite: bool) -> Result<()> {
        match self {
            Self::Keys(keys) => {
                let options = SaveOptions { overwrite, ..SaveOptions::default() };
                dictionary::write(path, &keys.dictionary, &options)
            }
            Self::Tensor(tensor) => {
                let names = serde_json::to_string(&tensor.names).map_err(|e| {
                    Error::invalid(format!(
                        "the column names cannot be encoded as JSON; rename the columns: {e}"
                    ))
                })?;
                let metadata = [(NAMES.into(), names)].into();
                let options = SaveOptions { overwrite, metadata };
                let shape = &tensor.shape;
                crate::io::dok::write_coo(path, shape, &tensor.indices, &tensor.values, &options)
            }
        }
    }

    /// Returns the schema of [`columns`](Self::columns): axes (int64) or keys, then the value.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::Keys(keys) => keys.dictionary.schema(),
            Self::Tensor(tensor) => make_tensor_schema(&tensor.names, tensor.values.dtype()),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Keys(keys) => keys.dictionary.len(),
            Self::Tensor(tensor) => tensor.values.num_elements(),
        }
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in memory in bytes.
    pub fn nbytes(&self) -> usize {
        match self {
            Self::Keys(keys) => {
                let columns = keys.columns.iter().map(|c| c.get_array_memory_size());
                columns.fold(keys.dictionary.nbytes(), usize::saturating_add)
            }
            Self::Tensor(t) => {
                let table = t.tensor.get().and_then(|made| made.as_ref().ok());
                let table = table.map_or(0, DokTensor::nbytes);
                t.indices.nbytes().saturating_add(t.values.nbytes()).saturating_add(table)
            }
        }
    }

    /// Returns all entries as columns; numeric columns are not copied.
    pub fn columns(&self) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Keys(keys) => Ok(keys.columns.clone()),
            Self::Tensor(t) => {
                let axes = (0..t.shape.len()).map(|axis| t.indices.row(axis)?.to_flat());
                axes.chain([t.values.to_flat()]).collect()
            }
        }
    }

    /// Looks up the values of keys or, in a sparse tensor, of coordinates.
    ///
    /// `asked` has one array per key column or axis, and must have no key twice. Returns these
    /// arrays and the array of the values, without the rows of keys that are not found.
    pub fn lookup(&self, asked: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Keys(keys) => {
                let values = keys.dictionary.get(asked)?;
                let found = is_not_null(&values)?;
                asked.iter().chain([&values]).map(|c| Ok(filter(c, &found)?)).collect()
            }
            Self::Tensor(t) => {
                let slices: Vec<&[i64]> =
                    asked.iter().map(|a| a.as_primitive::<Int64Type>().values().as_ref()).collect();
                let fetched = t.tensor()?.lookup_columns(&slices, &Fallback::Zero)?;
                let found = BooleanArray::from(fetched.found);
                let values = fetched.values.to_flat()?;
                asked.iter().chain([&values]).map(|c| Ok(filter(c, &found)?)).collect()
            }
        }
    }

    /// Creates contents from `columns`, with the names, shape and type of `self`. The first
    /// `before` rows are entries of `self`, the others are new; `duplicates` is as in
    /// [`keys`](Self::keys).
    pub fn rebuild_entries(
        &self,
        columns: &[ArrayRef],
        before: usize,
        duplicates: Option<DuplicateEntries>,
    ) -> Result<Self> {
        let schema = self.schema();
        let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        match self {
            Self::Keys(_) => Self::keys(&names, columns, before, duplicates),
            Self::Tensor(t) => {
                let (shape, dtype) = (Some(t.shape.clone()), t.values.dtype());
                Self::tensor(&names, columns, shape, dtype, before, duplicates)
            }
        }
    }

    /// Creates a dictionary from `columns`: keys, then the value.
    ///
    /// If a key is repeated, `duplicates` keeps its last value or the sum of its values; if
    /// `duplicates` is `None`, a repeated key is an error. The first `before` rows are old entries
    /// and the others new ones; error messages number only the new rows, from 0.
    pub fn keys(
        names: &[String],
        columns: &[ArrayRef],
        before: usize,
        duplicates: Option<DuplicateEntries>,
    ) -> Result<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut stored = Vec::with_capacity(columns.len());
        for (name, column) in names.iter().zip(columns) {
            refuse_nulls(column, name, before)?;
            let stored_type = key_type(column.data_type());
            stored.push(cast(column, &stored_type)?);
            fields.push(Arc::new(Field::new(name, stored_type, false)));
        }
        if let Some(DuplicateEntries::Sum) = duplicates {
            stored = sum_duplicates(&fields, stored)?;
        }
        let mut made = new_empty_dictionary(&fields)?;
        let Some((value, keys)) = stored.split_last() else {
            return Err(Error::invalid(
                "the dictionary has no columns; give at least one key column and a value column",
            ));
        };
        made.reserve(value.len())?;
        let new = made.set(keys, value)?;
        if duplicates.is_none()
            && let Some(row) = new.iter().position(|new| !new)
        {
            let shown = names.iter().zip(keys).map(|(name, key)| {
                let text = arrow::util::display::array_value_to_string(key, row);
                format!("{name} {}", text.unwrap_or_default())
            });
            return Err(make_duplicate_error(
                row - before.min(row),
                &shown.collect::<Vec<_>>().join(", "),
            ));
        }
        Ok(Self::Keys(KeysContents::try_from_dictionary(made)?))
    }

    /// Creates a tensor from columns of coordinates, one per axis, and of values.
    ///
    /// If `shape` is `None`, the tensor is as large as its coordinates require. Zeros are dropped.
    /// `before` and `duplicates` are as in [`keys`](Self::keys), with coordinates in place of keys.
    pub fn tensor(
        names: &[String],
        columns: &[ArrayRef],
        shape: Option<Vec<usize>>,
        dtype: DType,
        before: usize,
        duplicates: Option<DuplicateEntries>,
    ) -> Result<Self> {
        let (Some((value, axes)), Some((value_name, axis_names))) =
            (columns.split_last(), names.split_last())
        else {
            return Err(Error::invalid(
                "there are no columns; give a sparse tensor one column per axis and a value column",
            ));
        };
        if axes.is_empty() {
            return Err(Error::invalid(
                "there is only one column; give a sparse tensor one column per axis and then a value column",
            ));
        }
        let rows = value.len();
        let mut all = Vec::with_capacity(rows * axes.len());
        let mut sizes = Vec::with_capacity(axes.len());
        for (at, (axis, name)) in axes.iter().zip(axis_names).enumerate() {
            let given = shape.as_ref().and_then(|s| s.get(at)).copied();
            sizes.push(append_coordinates(axis, name, given, before, &mut all)?);
        }
        refuse_nulls(value, value_name, before)?;
        let value = DenseTensor::from_flat(value, value_name)?.cast(dtype)?;
        let indices = DenseTensor::from_vec([axes.len(), rows], all)?;
        let kept = duplicates.unwrap_or_default();
        let mut tensor = DokTensor::from_coo(sizes, &indices, &value, kept)?;
        if duplicates.is_none() && tensor.nnz()? < rows {
            return Err(find_duplicate(&indices, axis_names, before));
        }
        tensor.prune()?;
        Ok(Self::Tensor(TensorContents::try_from_tensor(tensor, names.to_vec())?))
    }
}

/// Returns the type in which a dictionary stores a column of type `given`: Utf8 for all string
/// types, otherwise `given`.
pub fn key_type(given: &DataType) -> DataType {
    if is_text(given) { DataType::Utf8 } else { given.clone() }
}

/// Creates a dictionary without entries. The last field is the value column, the others are key
/// columns.
fn new_empty_dictionary(fields: &[FieldRef]) -> Result<Dictionary> {
    match fields.split_last() {
        Some((value, keys)) if !keys.is_empty() => {
            Dictionary::new(keys.to_vec(), Arc::clone(value), MapOptions::default())
        }
        _ => Err(Error::invalid(format!(
            "the dictionary has {} column(s); give at least one key column and a value column",
            fields.len()
        ))),
    }
}

/// Sums the values of rows with equal keys. The last of these rows receives the sum; the others are
/// dropped.
fn sum_duplicates(fields: &[FieldRef], columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    let Some((value, keys)) = columns.split_last() else { return Ok(columns) };
    let numbers = DType::from_arrow(value.data_type()).filter(|d| *d != DType::Bool);
    if numbers.is_none() {
        let name = fields.last().map_or("", |f| f.name().as_str());
        return Err(Error::type_of(
            format!("column {name:?}, whose values are to be summed"),
            "numbers (cast the column first)",
            value.data_type(),
        ));
    }
    let rows: ArrayRef = Arc::new((0i64..).take(value.len()).map(Some).collect::<Int64Array>());
    let mut fields = fields.to_vec();
    let name = fields.pop().map_or_else(String::new, |f| f.name().clone());
    fields.push(Arc::new(Field::new(name, DataType::Int64, false)));
    let mut places = new_empty_dictionary(&fields)?;
    places.set(keys, &rows)?;
    let last = places.get(keys)?;
    let last = last.as_primitive::<Int64Type>().values().to_vec();
    let last = DenseTensor::from_vec([1, value.len()], last)?;
    let values = DenseTensor::from_flat(value, "values")?;
    let sums =
        DokTensor::from_coo([value.len()], &last, &values, DuplicateEntries::Sum)?.to_coo()?;
    let kept = UInt64Array::from_iter_values(
        sums.indices.as_slice::<i64>()?.iter().filter_map(|row| u64::try_from(*row).ok()),
    );
    let keys = keys.iter().map(|key| Ok(take(key, &kept, None)?));
    keys.chain([sums.values.to_flat()]).collect()
}

fn make_duplicate_error(row: usize, key: &str) -> Error {
    Error::invalid(format!(
        "row {row} (counted from 0): an entry with {key} is already present; group the rows, or write OPTIONS (duplicates 'last') or OPTIONS (duplicates 'sum')"
    ))
}

fn make_tensor_schema(names: &[String], dtype: DType) -> SchemaRef {
    let last = names.len().saturating_sub(1);
    let field = |(at, name): (usize, &String)| {
        let field_type = if at == last { dtype.to_arrow() } else { DataType::Int64 };
        Field::new(name, field_type, false)
    };
    Arc::new(Schema::new(names.iter().enumerate().map(field).collect::<Vec<_>>()))
}

fn refuse_nulls(column: &ArrayRef, name: &str, before: usize) -> Result<()> {
    let nulls = find_validity(column);
    match nulls.and_then(|n| n.iter().position(|valid| !valid)) {
        None => Ok(()),
        Some(row) => Err(Error::invalid(format!(
            "row {} (counted from 0): {name:?} is NULL, but keys and values cannot be NULL; filter the row out",
            row - before.min(row)
        ))),
    }
}

/// Appends the coordinates of one axis to `out`. Returns the size of the axis: `size`, or if it is
/// `None` the largest coordinate plus 1. Returns an error for NULLs, other types than integers, and
/// coordinates below 0 or not below `size`. The first `before` rows are old entries, which the row
/// number in the error does not count.
fn append_coordinates(
    column: &ArrayRef,
    name: &str,
    size: Option<usize>,
    before: usize,
    out: &mut Vec<i64>,
) -> Result<usize> {
    if !column.data_type().is_integer() {
        return Err(Error::type_of(
            format!("the coordinates of axis {name:?}"),
            "integers (to use other types, list the key columns in the option 'keys', which creates a dictionary)",
            column.data_type(),
        ));
    }
    refuse_nulls(column, name, before)?;
    let wide = cast_strictly(column, &DataType::Int64).map_err(|e| {
        Error::invalid(format!("a coordinate of axis {name:?} does not fit int64; correct it: {e}"))
    })?;
    let wide = wide.as_primitive::<Int64Type>().values();
    let largest = wide.iter().copied().max();
    let outside = |at: &i64| usize::try_from(*at).map_or(true, |at| size.is_some_and(|s| at >= s));
    if let Some(row) = wide.iter().position(outside) {
        let coordinate = wide.get(row).copied().unwrap_or_default();
        let advice = match size {
            Some(size) if coordinate >= 0 => {
                format!("the axis has the size {size}, so give a coordinate below it")
            }
            _ => "give a coordinate of 0 or more".into(),
        };
        let row = row - before.min(row);
        return Err(Error::invalid(format!(
            "row {row} (counted from 0): {name:?} is {coordinate}; {advice}"
        )));
    }
    out.extend_from_slice(wide);
    match (size, largest) {
        (Some(size), _) => Ok(size),
        (None, None) => Ok(0),
        (None, Some(largest)) => {
            usize::try_from(largest).ok().and_then(|n| n.checked_add(1)).ok_or_else(|| {
                Error::invalid(format!(
                    "the coordinate {largest} of axis {name:?} exceeds the maximum size of an axis; use smaller coordinates"
                ))
            })
        }
    }
}

/// Returns an error that names the first row whose coordinates an earlier row also has. The row
/// number in the error counts from row `before`, because the rows before it are old entries.
fn find_duplicate(indices: &DenseTensor, names: &[String], before: usize) -> Error {
    let axes = names.len();
    let all = indices.as_slice::<i64>().unwrap_or_default();
    let rows = all.len() / axes.max(1);
    let mut seen = std::collections::HashSet::with_capacity(rows);
    for row in 0..rows {
        let at: Vec<i64> = (0..axes).filter_map(|a| all.get(a * rows + row).copied()).collect();
        if let Some(at) = seen.replace(at) {
            let shown = names.iter().zip(at).map(|(name, at)| format!("{name} {at}"));
            return make_duplicate_error(
                row - before.min(row),
                &shown.collect::<Vec<_>>().join(", "),
            );
        }
    }
    Error::invalid("two entries have the same coordinates; group the rows by the coordinates first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_file_are_different_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let read = |rows: [i64; 3], columns: [i64; 3]| {
            let indices = DenseTensor::from_vec([2, 3], [rows, columns].concat()).unwrap();
            let values = DenseTensor::from_vec([3], vec![1.0, 2.0, 3.0]).unwrap();
            let options = SaveOptions { overwrite: true, ..SaveOptions::default() };
            crate::io::dok::write_coo(&path, &[4, 5], &indices, &values, &options).unwrap();
            KeyedContents::read(&path)
        };
        for (rows, columns) in [([0, 1, 1], [4, 0, 2]), ([1, 0, 3], [2, 2, 0])] {
            assert_eq!(read(rows, columns).unwrap().len(), 3);
        }
        for (rows, columns) in [([0, 1, 1], [4, 2, 2]), ([1, 0, 1], [2, 2, 2])] {
            let said = read(rows, columns).unwrap_err().to_string();
            assert!(
                said.contains("m.safetensors: entry 2 repeats the coordinates [1, 2]"),
                "{said}"
            );
        }
    }
}
