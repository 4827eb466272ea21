//! [`NrtFile`]: rows and columns of a file, in place.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use safetensors::Dtype;

use super::bounds::{FileAxis, bound_at, is_integer};
use super::names::{BOUNDS, LENGTHS, RESERVED, data_type, split};
use super::{ReadOptions, values};
use crate::array::Offsets;
use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsFile, TensorEntry};
use crate::table::{Column, RaggedTable};

/// A column of a file.
#[derive(Clone, Debug)]
pub struct NrtColumn {
    name: String,
    axis: usize,
    data_type: DataType,
    tensor: TensorEntry,
}

impl NrtColumn {
    /// Name: the key of its tensor. Where several axes have a tensor of one key, or the key itself
    /// starts with the axis, it is the tensor's whole name, `dim1/lengths`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The axis it lives on; 0 is one value per row.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// Arrow type of the values (Float32 for BF16).
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Type of the values in the file.
    pub fn dtype(&self) -> Dtype {
        self.tensor.dtype()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.tensor.elements()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes the values take in the file.
    pub fn nbytes(&self) -> u64 {
        self.tensor.nbytes()
    }
}

/// An `.nrt` file.
///
/// Opening it reads and checks the header alone. [`read`](Self::read) looks at the bounds that lead to
/// the rows and at the values of the columns asked for, checks those, and gives the values in place
/// (with a memory map) in buffers of their own extent. Clones share the file.
///
/// Values are raw: NaN stays NaN. Columns are in the order of their axis, then name.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::UInt16Array;
/// use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
/// use serrate::table::RaggedTable;
///
/// let table = RaggedTable::builder()
///     .lengths([2, 0, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("t.nrt");
/// nrt::write(&path, &table, &WriteOptions::default())?;
///
/// let file = NrtFile::open(&path, &ReadOptions::default())?;
/// assert_eq!(file.num_rows(), 3);
/// assert_eq!(file.table()?, table);
/// assert_eq!(file.read(2..3, Some(&["code"]))?.row(0)?.values("code")?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NrtFile {
    inner: Arc<Inner>,
    large_lists: bool,
}

#[derive(Debug)]
struct Inner {
    file: SafetensorsFile,
    rows: usize,
    axes: Vec<FileAxis>,
    columns: Vec<NrtColumn>,
}

impl NrtFile {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read, its header is not that of a safetensors file, or its tensors are not
    /// those of an `.nrt` file: a name without axis, bounds missing or not of an integer type,
    /// lengths that do not fit each other, a type that Arrow does not have.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        Self::new(SafetensorsFile::open(path, options.mmap)?, options.large_lists)
    }

    /// As [`open`](Self::open), for a file that is open already; `path` names it in errors.
    pub fn from_file(path: impl AsRef<Path>, file: File, options: &ReadOptions) -> Result<Self> {
        Self::new(SafetensorsFile::from_file(path, file, options.mmap)?, options.large_lists)
    }

    /// From the bytes of a whole file; `name` names it in errors.
    pub fn from_bytes(name: impl AsRef<Path>, bytes: Bytes) -> Result<Self> {
        Self::new(SafetensorsFile::from_bytes(name, bytes)?, false)
    }

    fn new(file: SafetensorsFile, large_lists: bool) -> Result<Self> {
        let Layout { rows, axes, columns } = Layout::of(&file)?;
        Ok(Self { inner: Arc::new(Inner { file, rows, axes, columns }), large_lists })
    }

    /// The same file, giving 64-bit offsets (`LargeList`) or not; see [`ReadOptions::large_lists`].
    pub fn with_large_lists(&self, large_lists: bool) -> Self {
        Self { inner: Arc::clone(&self.inner), large_lists }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.inner.rows
    }

    /// Number of axes, the rows included.
    pub fn ndim(&self) -> usize {
        self.inner.axes.len().saturating_add(1)
    }

    /// Number of elements of an axis, as the header says; 0 is the rows.
    pub fn axis_len(&self, axis: usize) -> Result<usize> {
        match axis.checked_sub(1) {
            None => Ok(self.inner.rows),
            Some(i) => {
                self.inner.axes.get(i).map(|a| a.elements).ok_or_else(|| Error::NoSuchAxis {
                    what: self.path().display().to_string(),
                    axis: i64::try_from(axis).unwrap_or(i64::MAX),
                    ndim: self.ndim(),
                })
            }
        }
    }

    /// Bytes that the bounds of axis `axis` (1..) take in the file.
    pub fn bounds_nbytes(&self, axis: usize) -> Result<u64> {
        self.axis_len(axis)?;
        let axis = axis.checked_sub(1).and_then(|i| self.inner.axes.get(i));
        Ok(axis.map_or(0, |a| a.tensor.nbytes()))
    }

    /// The columns: those of axis 0 first, by name within an axis.
    pub fn columns(&self) -> &[NrtColumn] {
        &self.inner.columns
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Result<&NrtColumn> {
        self.columns().iter().find(|c| c.name == name).ok_or_else(|| Error::NoSuchColumn {
            name: name.into(),
            available: self.columns().iter().map(NrtColumn::name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The columns as Arrow lists, one level per axis above 0: what [`read`](Self::read) gives as a
    /// record batch.
    pub fn schema(&self) -> SchemaRef {
        let list = |item: DataType| {
            let item = Arc::new(Field::new_list_field(item, true));
            if self.large_lists { DataType::LargeList(item) } else { DataType::List(item) }
        };
        let fields: Vec<Field> = self
            .columns()
            .iter()
            .map(|c| {
                let leaf = c.data_type.clone();
                Field::new(&c.name, (0..c.axis).fold(leaf, |t, _| list(t)), true)
            })
            .collect();
        Arc::new(Schema::new(fields))
    }

    /// Name of the file.
    pub fn path(&self) -> &Path {
        self.inner.file.path()
    }

    /// The file as safetensors.
    pub fn tensors(&self) -> &SafetensorsFile {
        &self.inner.file
    }

    /// The whole file as a table.
    pub fn table(&self) -> Result<RaggedTable> {
        self.read(0..self.num_rows(), None)
    }

    /// Some rows and columns as a table, columns in the order given; `None` is all columns and axes.
    ///
    /// Given columns, the table has the axes down to the deepest of them, and neither bounds nor
    /// values below are looked at. No column at all gives a table of rows without axes.
    ///
    /// # Errors
    /// When the rows are not within the file, a column does not exist, a bound that leads to the rows
    /// is negative, decreases or ends past its values, a BOOL byte is neither 0 nor 1, or more than
    /// 2^31 - 1 values are read at once without [`ReadOptions::large_lists`].
    pub fn read(&self, rows: Range<usize>, columns: Option<&[&str]>) -> Result<RaggedTable> {
        let (columns, depth) = match columns {
            None => (self.columns().iter().collect(), self.inner.axes.len()),
            Some(names) => {
                let columns =
                    names.iter().map(|n| self.column(n)).collect::<Result<Vec<&NrtColumn>>>()?;
                let depth = columns.iter().map(|c| c.axis).max().unwrap_or(0);
                (columns, depth)
            }
        };
        self.read_columns(rows, &columns, depth)
    }

    fn read_columns(
        &self,
        rows: Range<usize>,
        columns: &[&NrtColumn],
        depth: usize,
    ) -> Result<RaggedTable> {
        self.check_rows(&rows)?;
        let file = &self.inner.file;
        let mut windows = vec![rows.clone()];
        let mut axes = Vec::with_capacity(depth);
        let mut window = rows.clone();
        for axis in self.inner.axes.iter().take(depth) {
            let (offsets, elements) = axis.offsets(file, window, self.large_lists)?;
            axes.push((None, Offsets::into(offsets)));
            windows.push(elements.clone());
            window = elements;
        }
        let columns = columns
            .iter()
            .map(|c| {
                let window = windows.get(c.axis).cloned().unwrap_or_default();
                Ok(Column::new(&c.name, c.axis, values::read(file, &c.tensor, window)?))
            })
            .collect::<Result<_>>()?;
        RaggedTable::try_new(rows.len(), None, axes, columns)
    }

    /// Elements of axis `axis` that lie before row `row` (which may be the number of rows). Reads one
    /// bound per axis: the cost of a range of rows is known without reading it.
    ///
    /// # Errors
    /// When there is no such axis or row, or a bound on the way is past its axis.
    pub fn elements_before(&self, row: usize, axis: usize) -> Result<usize> {
        self.axis_len(axis)?;
        self.check_rows(&(row..row))?;
        let mut position = row;
        for axis in self.inner.axes.iter().take(axis) {
            position = axis.start_of(&self.inner.file, position)?;
        }
        Ok(position)
    }

    /// The most rows from `rows.start` on, within `rows`, that hold at most `elements` elements of
    /// `axis`; one row at least. Reads a few bounds (binary search).
    pub fn rows_within(&self, rows: Range<usize>, axis: usize, elements: usize) -> Result<usize> {
        self.check_rows(&rows)?;
        let start = self.elements_before(rows.start, axis)?;
        let limit = start.saturating_add(elements);
        // `good` rows fit (or it is the one), `bad` do not (or are past the end).
        let (mut good, mut bad) = (rows.len().min(1), rows.len().saturating_add(1));
        // Rows tend to be alike: grow from the start instead of halving the file.
        let mut step = 1usize;
        while good < rows.len() && bad > rows.len() {
            let next = good.saturating_add(step).min(rows.len());
            if self.elements_before(rows.start.saturating_add(next), axis)? <= limit {
                good = next;
                step = step.saturating_mul(2);
            } else {
                bad = next;
            }
        }
        while bad.saturating_sub(good) > 1 && good < rows.len() {
            let middle = good.midpoint(bad);
            if self.elements_before(rows.start.saturating_add(middle), axis)? <= limit {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(good)
    }

    /// Checks everything that reading checks piece by piece: all bounds and all BOOL values.
    pub fn validate(&self) -> Result<()> {
        let mut window = 0..self.inner.rows;
        for axis in &self.inner.axes {
            // 64 bits, so that size alone is no error.
            window = axis.offsets(&self.inner.file, window, true)?.1;
        }
        for column in self.columns().iter().filter(|c| c.dtype() == Dtype::BOOL) {
            values::read(&self.inner.file, &column.tensor, 0..column.len())?;
        }
        Ok(())
    }

    fn check_rows(&self, rows: &Range<usize>) -> Result<()> {
        if rows.start > rows.end || rows.end > self.inner.rows {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(rows.start.max(rows.end)).unwrap_or(i64::MAX),
                size: self.inner.rows,
            });
        }
        Ok(())
    }
}

/// What a header says about rows, axes and columns.
struct Layout {
    rows: usize,
    axes: Vec<FileAxis>,
    columns: Vec<NrtColumn>,
}

impl Layout {
    fn of(file: &SafetensorsFile) -> Result<Self> {
        let path = file.path();
        let mut bounds: BTreeMap<usize, &TensorEntry> = BTreeMap::new();
        let mut keys: Vec<(usize, String, &TensorEntry)> = Vec::new();
        for tensor in file.tensors() {
            let (axis, key) = split(path, tensor.name())?;
            let wrong =
                |message: &str| Error::file(path, format!("tensor {:?} {message}", tensor.name()));
            if tensor.shape().len() != 1 {
                return Err(wrong(&format!(
                    "has shape {:?}; tensors of an .nrt file have one dimension",
                    tensor.shape()
                )));
            }
            if key == BOUNDS && axis > 0 {
                if !is_integer(tensor.dtype()) {
                    return Err(wrong(&format!(
                        "has type {}; bounds are integers",
                        tensor.dtype()
                    )));
                }
                bounds.insert(axis, tensor);
            } else if RESERVED.contains(&key.as_str()) {
                return Err(wrong("has a reserved name; it can be no column"));
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
                let needs = needs.filter(|t| split(path, t.name()).is_ok_and(|s| s.0 >= axis));
                let needs = needs.map(TensorEntry::name).next().unwrap_or_default();
                Error::file(path, format!("there is no dim{axis}/bounds, which {needs:?} needs"))
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
                        format!("{} is empty, but its axis has {elements} values", tensor.name()),
                    ));
                }
                Ok(FileAxis { tensor: tensor.clone(), lists, elements })
            })
            .collect::<Result<_>>()?;
        Ok(Self { rows, axes, columns: name_columns(path, keys)? })
    }
}

/// Number of elements of an axis: that of the bounds below and of each column on it, which must be
/// one; where there are neither, the last of its own bounds.
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
            Some((bounds, last)) => bound_at(file, bounds, last),
            None => Ok(0),
        };
    };
    match lengths.find(|t| t.elements() != first.elements()) {
        None => Ok(first.elements()),
        Some(other) => Err(Error::file(
            file.path(),
            format!(
                "{} has {} elements and {} has {}; both must be as long as axis {axis}",
                first.name(),
                first.elements(),
                other.name(),
                other.elements()
            ),
        )),
    }
}

/// Versions before 0.0.7 of the Python library stored `dim{d}/lengths` beside each `dim{d}/bounds`: one
/// length per list. They say nothing that the bounds do not and are dropped. What is as long as the
/// axis is a column of that name, unless all axes (two at least) have such a tensor.
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
                        "tensor {:?} has type {}, which Arrow does not have",
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
