//! Rows, axes and columns of an `.nrt` file, derived from the names of its tensors.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use safetensors::Dtype;

use super::list_bounds::{FileAxis, is_integer, read_bound_at};
use super::tensor_names::{BOUNDS, LENGTHS, RESERVED, data_type, split_name};
use crate::array::ranges::check_row_range;
use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsFile, TensorEntry};

/// A column of an `.nrt` file.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// use arrow::datatypes::DataType;
/// use serrate::io::nrt::{self, NrtFile};
/// use serrate::io::safetensors::Dtype;
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("codes.nrt");
/// nrt::write(&path, &table, &Default::default())?;
/// let file = NrtFile::open(&path, &Default::default())?;
/// let code = file.column("code")?;
/// assert_eq!((code.name(), code.axis()), ("code", 1));
/// assert_eq!((code.data_type(), code.dtype()), (&DataType::UInt16, Dtype::U16));
/// assert_eq!((code.len(), code.is_empty(), code.nbytes()), (3, false, 6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NrtColumn {
    name: String,
    axis: usize,
    data_type: DataType,
    tensor: TensorEntry,
}

impl NrtColumn {
    pub(super) fn tensor(&self) -> &TensorEntry {
        &self.tensor
    }

    /// Returns the name of the column: the key of the tensor.
    ///
    /// If several axes have this key, or the key itself begins with the axis (`dim1/`), the name is
    /// the full tensor name, such as `dim1/lengths`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the axis; a column on axis 0 has one value per row.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// Returns the Arrow type of the values (Float32 for BF16).
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns the type of the values in the file.
    pub fn dtype(&self) -> Dtype {
        self.tensor.dtype()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.tensor.elements()
    }

    /// Returns whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the values in the file in bytes.
    pub fn nbytes(&self) -> u64 {
        self.tensor.nbytes()
    }
}

#[derive(Debug)]
pub(super) struct FileLayout {
    pub(super) rows: usize,
    pub(super) axes: Vec<FileAxis>,
    pub(super) columns: Vec<NrtColumn>,
}

impl FileLayout {
    pub(super) fn from_file(file: &SafetensorsFile) -> Result<Self> {
        let path = file.path();
        let mut bounds: BTreeMap<usize, &TensorEntry> = BTreeMap::new();
        let mut keys: Vec<(usize, String, &TensorEntry)> = Vec::new();
        for tensor in file.tensors() {
            let (axis, key) = split_name(path, tensor.name())?;
            let wrong =
                |message: &str| Error::file(path, format!("tensor {:?}: {message}", tensor.name()));
            if tensor.shape().len() != 1 {
                return Err(wrong(&format!(
                    "the shape is {:?}, but tensors of an .nrt file must have one dimension; create the file again",
                    tensor.shape()
                )));
            }
            if key == BOUNDS && axis > 0 {
                if !is_integer(tensor.dtype()) {
                    return Err(wrong(&format!(
                        "the bounds have the type {}, but bounds must be integers; create the file again",
                        tensor.dtype()
                    )));
                }
                bounds.insert(axis, tensor);
            } else if RESERVED.contains(&key.as_str()) {
                return Err(wrong(&format!(
                    "the key {key:?} of a tensor name is reserved, so a column cannot have it; rename the column"
                )));
            } else {
                keys.push((axis, key, tensor));
            }
        }
        keys.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let depth = keys.iter().map(|k| k.0).chain(bounds.keys().copied()).max().unwrap_or(0);
        let mut chain = Vec::with_capacity(depth);
        for axis in 1..=depth {
            chain.push(*bounds.get(&axis).ok_or_else(|| {
                let needs = keys.iter().map(|k| k.2).chain(bounds.values().copied());
                let needs = needs.filter(|t| split_name(path, t.name()).is_ok_and(|s| s.0 >= axis));
                let needs = needs.map(TensorEntry::name).next().unwrap_or_default();
                Error::file(
                    path,
                    format!(
                        "there is no tensor dim{axis}/bounds, which the tensor {needs:?} requires; create the file again"
                    ),
                )
            })?);
        }
        drop_legacy_lengths(file, &chain, &mut keys)?;
        let lengths = (0..=depth)
            .map(|axis| axis_len(file, axis, &chain, &keys))
            .collect::<Result<Vec<_>>>()?;
        let rows = lengths.first().copied().unwrap_or(0);
        let axes = chain
            .into_iter()
            .zip(lengths.into_iter().skip(1))
            .map(|(tensor, elements)| {
                let lists = tensor.elements();
                if lists == 0 && elements > 0 {
                    return Err(Error::file(
                        path,
                        format!(
                            "the tensor {}, which must have a bound for each list, is empty, but the axis of the lists has {elements} element(s), so the file is damaged; create it again",
                            tensor.name()
                        ),
                    ));
                }
                Ok(FileAxis { tensor: tensor.clone(), lists, elements })
            })
            .collect::<Result<_>>()?;
        Ok(Self { rows, axes, columns: name_columns(path, keys)? })
    }

    pub(super) fn ndim(&self) -> usize {
        self.axes.len().saturating_add(1)
    }

    pub(super) fn axis_len(&self, path: &Path, axis: usize) -> Result<usize> {
        match axis.checked_sub(1) {
            None => Ok(self.rows),
            Some(i) => self.axes.get(i).map(|a| a.elements).ok_or_else(|| Error::NoSuchAxis {
                what: path.display().to_string(),
                axis: i64::try_from(axis).unwrap_or(i64::MAX),
                ndim: self.ndim(),
            }),
        }
    }

    pub(super) fn find_column(&self, name: &str) -> Result<&NrtColumn> {
        self.columns.iter().find(|c| c.name == name).ok_or_else(|| Error::NoSuchColumn {
            name: name.into(),
            available: self.columns.iter().map(NrtColumn::name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the columns with the names `columns`, and the deepest axis of these columns. `None`
    /// selects all columns and all axes.
    pub(super) fn select_columns(
        &self,
        columns: Option<&[&str]>,
    ) -> Result<(Vec<&NrtColumn>, usize)> {
        let Some(names) = columns else {
            return Ok((self.columns.iter().collect(), self.axes.len()));
        };
        let columns =
            names.iter().map(|n| self.find_column(n)).collect::<Result<Vec<&NrtColumn>>>()?;
        let depth = columns.iter().map(|c| c.axis).max().unwrap_or(0);
        Ok((columns, depth))
    }

    pub(super) fn schema(&self, large_lists: bool) -> SchemaRef {
        let list = |item: DataType| {
            let item = Arc::new(Field::new_list_field(item, true));
            if large_lists { DataType::LargeList(item) } else { DataType::List(item) }
        };
        let fields: Vec<Field> = self
            .columns
            .iter()
            .map(|c| {
                let leaf = c.data_type.clone();
                Field::new(&c.name, (0..c.axis).fold(leaf, |t, _| list(t)), true)
            })
            .collect();
        Arc::new(Schema::new(fields))
    }

    pub(super) fn check_rows(&self, rows: &Range<usize>) -> Result<()> {
        check_row_range(rows, self.rows)
    }
}

/// Returns the number of elements of an axis: the length of its columns and of the bounds of the
/// next axis, or an error if these lengths differ. Without such tensors, it is the last bound of
/// the axis, or 0. `chain` has the bounds of the axes from 1 on; `keys` has axis, name and tensor
/// of every column.
fn axis_len(
    file: &SafetensorsFile,
    axis: usize,
    chain: &[&TensorEntry],
    keys: &[(usize, String, &TensorEntry)],
) -> Result<usize> {
    let own = keys.iter().filter(|k| k.0 == axis).map(|k| k.2);
    let mut lengths = chain.get(axis).copied().into_iter().chain(own);
    let Some(first) = lengths.next() else {
        let bounds = axis.checked_sub(1).and_then(|i| chain.get(i));
        return match bounds.and_then(|b| Some((b, b.elements().checked_sub(1)?))) {
            Some((bounds, last)) => read_bound_at(file, bounds, last),
            None => Ok(0),
        };
    };
    match lengths.find(|t| t.elements() != first.elements()) {
        None => Ok(first.elements()),
        Some(other) => Err(Error::file(
            file.path(),
            format!(
                "tensor {first} has {elements} element(s) and tensor {other} has {other_elements}; both must have as many elements as axis {axis}, so create the file again",
                first = first.name(),
                elements = first.elements(),
                other = other.name(),
                other_elements = other.elements()
            ),
        )),
    }
}

/// Drops the tensors `dim{d}/lengths`, one integer per list, of the Python library before 0.0.7. If
/// axis `d` has as many elements as lists, the tensor may be a column, and is dropped only if the
/// file has two or more axes of lists, all with `lengths`.
fn drop_legacy_lengths(
    file: &SafetensorsFile,
    chain: &[&TensorEntry],
    keys: &mut Vec<(usize, String, &TensorEntry)>,
) -> Result<()> {
    let legacy = |axis: usize, key: &str, tensor: &TensorEntry| {
        key == LENGTHS
            && is_integer(tensor.dtype())
            && axis.checked_sub(1).and_then(|i| chain.get(i)).map(|b| b.elements())
                == Some(tensor.elements())
    };
    let found: Vec<usize> = keys.iter().filter(|k| legacy(k.0, &k.1, k.2)).map(|k| k.0).collect();
    if found.is_empty() {
        return Ok(());
    }
    let all = chain.len() > 1 && found.len() == chain.len();
    let others: Vec<_> = keys.iter().filter(|k| !legacy(k.0, &k.1, k.2)).cloned().collect();
    let mut dropped = Vec::new();
    for axis in found {
        let lists = axis.checked_sub(1).and_then(|i| chain.get(i)).map_or(0, |b| b.elements());
        if all || axis_len(file, axis, chain, &others)? != lists {
            dropped.push(axis);
        }
    }
    keys.retain(|k| !(legacy(k.0, &k.1, k.2) && dropped.contains(&k.0)));
    Ok(())
}

fn name_columns(path: &Path, keys: Vec<(usize, String, &TensorEntry)>) -> Result<Vec<NrtColumn>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (_, key, _) in &keys {
        let n = seen.entry(key.clone()).or_default();
        *n = n.saturating_add(1);
    }
    keys.into_iter()
        .map(|(axis, key, tensor)| {
            let data_type = data_type(tensor.dtype()).ok_or_else(|| {
                Error::file(
                    path,
                    format!(
                        "tensor {:?} has the type {}, which Arrow does not support; write it as BOOL, U8 to U64, I8 to I64, F16, BF16, F32 or F64",
                        tensor.name(),
                        tensor.dtype()
                    ),
                )
            })?;
            let full =
                seen.get(&key).is_some_and(|n| *n > 1) || key.starts_with(&format!("dim{axis}/"));
            let name = if full { tensor.name().to_owned() } else { key };
            Ok(NrtColumn { name, axis, data_type, tensor: tensor.clone() })
        })
        .collect()
}
