//! Conversion of a table to dense tensors, one or more for each column.

use std::ops::Range;

use rayon::prelude::*;

use super::densify::{count_bytes, densify_into_named, densify_named};
use super::mask::{mask_axes, mask_axes_into, validity_mask, validity_mask_into};
use super::{DType, DenseOptions, DenseTensor};
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use crate::table::RaggedTable;

/// Minimum total size in bytes of the tensors of a table: from this size on, threads build several
/// tensors at a time. Waking the threads takes as long as writing some hundred kilobytes.
const MIN_PARALLEL_BYTES: usize = 4 << 20;

/// Size of one axis of the dense tensors.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt8Array;
/// # use serrate::table::RaggedTable;
/// use serrate::dense::{AxisSize, TableDenseOptions};
/// let table = RaggedTable::builder()
///     .lengths([3, 1])?
///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3, 4])))
///     .build()?;
/// let options = TableDenseOptions { sizes: vec![AxisSize::AtMost(2)], ..Default::default() };
/// let dense = table.to_dense_with(&options)?;
/// assert_eq!(dense[0].1.to_string(), "uint8[2, 2] [[1, 2], [4, 0]]");
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AxisSize {
    /// The length of the longest list on the axis.
    #[default]
    Longest,
    /// The length of the longest list, but at most this number; longer lists are truncated.
    AtMost(usize),
    /// Exactly this number; shorter lists are padded, longer lists are truncated.
    Exactly(usize),
}

/// Options of the conversion of a table to dense tensors.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{AxisSize, TableDenseOptions};
/// let options = TableDenseOptions {
///     rows: Some(0..64),
///     sizes: vec![AxisSize::AtMost(256), AxisSize::AtMost(64)],
///     tokens_as_i64: true,
///     ..Default::default()
/// };
/// assert!(options.masks);
/// ```
#[derive(Clone, Debug)]
pub struct TableDenseOptions {
    /// Options of all tensors: `limit` applies to their total size, and `dtype` to every column.
    pub dense: DenseOptions,
    /// Rows to convert; `None` for all.
    pub rows: Option<Range<usize>>,
    /// Columns to convert, in this order; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Size of each axis after the rows, in order; the axes after the last given size have
    /// [`AxisSize::Longest`].
    pub sizes: Vec<AxisSize>,
    /// Whether integer columns become int64, as embedding layers require; 2^63 or more is an error.
    pub tokens_as_i64: bool,
    /// Whether to add a mask for every axis that has columns, and one for every column with nulls.
    pub masks: bool,
}

impl Default for TableDenseOptions {
    fn default() -> Self {
        Self {
            dense: DenseOptions::default(),
            rows: None,
            columns: None,
            sizes: Vec::new(),
            tokens_as_i64: false,
            masks: true,
        }
    }
}

/// Name, type and shape of one dense tensor of a table.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::UInt8Array;
/// # use serrate::table::RaggedTable;
/// use serrate::dense::DType;
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
///     .build()?;
/// let specs = table.dense_specs(&Default::default())?;
/// assert_eq!((specs[0].name.as_str(), specs[0].dtype), ("x", DType::U8));
/// assert_eq!((specs[1].name.as_str(), specs[1].dtype), ("dim1/mask", DType::Bool));
/// assert_eq!(specs[0].shape, [2, 2]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseSpec {
    /// Name of a column or scalar; `dim{d}/mask` (mask of axis `d`); or `{column}/valid` (validity
    /// mask).
    pub name: String,
    /// Type of the elements of the tensor.
    pub dtype: DType,
    /// Size of every axis of the tensor, rows first.
    pub shape: Vec<usize>,
}

impl DenseSpec {
    /// Returns the number of bytes of the tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let specs = table.dense_specs(&Default::default())?;
    /// let mut buffers: Vec<Vec<u8>> = specs.iter().map(|s| vec![0; s.nbytes()]).collect();
    /// let mut out: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    /// table.to_dense_into(&Default::default(), &mut out)?;
    /// assert_eq!(buffers, [[1, 2, 3, 0], [1, 1, 1, 0]]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        // The total size of all tensors was checked against the limit, so each size fits a `usize`.
        usize::try_from(count_bytes(&self.shape, self.dtype)).unwrap_or(usize::MAX)
    }
}

impl RaggedTable {
    /// Converts every column to a padded tensor.
    ///
    /// The result holds names and tensors: the columns, in order; then the
    /// [scalars](RaggedTable::scalars), as tensors without axes; then a mask `dim{d}/mask` (bool,
    /// axes 0 to `d`) for every axis `d` from 1 on with columns; then a mask `{column}/valid` for
    /// every column or scalar with nulls: true at values, false at nulls and padding. All columns
    /// of an axis have the same shape; each size is the length of the longest list of its axis. An
    /// axis without elements has size 0 and keeps its columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{Float32Array, UInt16Array};
    /// use serrate::dense::DenseOptions;
    /// use serrate::table::RaggedTable;
    ///
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(UInt16Array::from(vec![71, 38])))
    ///     .column("T", 1, Arc::new(Float32Array::from(vec![Some(0.5), None, Some(2.0)])))
    ///     .build()?;
    /// let dense = table.to_dense(&DenseOptions::default())?;
    /// let text: Vec<String> = dense.iter().map(|(name, t)| format!("{name}: {t}")).collect();
    /// assert_eq!(text, [
    ///     "age: uint16[2] [71, 38]",
    ///     "T: float32[2, 2] [[0.5, 0.0], [2.0, 0.0]]",
    ///     "dim1/mask: bool[2, 2] [[true, true], [true, false]]",
    ///     "T/valid: bool[2, 2] [[true, false], [true, false]]",
    /// ]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column is not a number, date or time (omit or encode it first), the type of a column
    /// cannot represent the fill value, or all tensors together exceed
    /// [`limit`](DenseOptions::limit).
    pub fn to_dense(&self, options: &DenseOptions) -> Result<Vec<(String, DenseTensor)>> {
        self.to_dense_with(&TableDenseOptions { dense: options.clone(), ..Default::default() })
    }

    /// Converts the table like [`to_dense`](Self::to_dense), with selected rows, columns and sizes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::dense::{AxisSize, TableDenseOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let options = TableDenseOptions {
    ///     rows: Some(0..1),
    ///     sizes: vec![AxisSize::Exactly(4)],
    ///     masks: false,
    ///     ..Default::default()
    /// };
    /// let dense = table.to_dense_with(&options)?;
    /// assert_eq!(dense[0].1.as_slice::<u8>()?, [1, 2, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`to_dense`](Self::to_dense); also for unknown rows or columns, or more sizes than
    /// axes.
    pub fn to_dense_with(&self, options: &TableDenseOptions) -> Result<Vec<(String, DenseTensor)>> {
        let parts = TablePlan::new(self, options)?;
        let build = |part: &TensorPlan| -> Result<(String, DenseTensor)> {
            Ok((part.spec.name.clone(), parts.build_tensor(part)?))
        };
        let bytes: usize = parts.specs.iter().map(|p| p.spec.nbytes()).sum();
        if parts.dense.parallel && bytes >= MIN_PARALLEL_BYTES {
            let all: Vec<_> = parts.specs.par_iter().with_max_len(1).map(build).collect();
            // If several tensors fail, return the error of the first of them.
            return all.into_iter().collect();
        }
        parts.specs.iter().map(build).collect()
    }

    /// Returns name, type and shape of the tensors that [`to_dense_with`](Self::to_dense_with)
    /// would return.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// let specs = table.dense_specs(&Default::default())?;
    /// assert_eq!((specs[0].name.as_str(), specs[0].shape.as_slice()), ("x", &[2, 2][..]));
    /// assert_eq!(specs[1].name, "dim1/mask");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`to_dense_with`](Self::to_dense_with), except for errors that depend on values.
    pub fn dense_specs(&self, options: &TableDenseOptions) -> Result<Vec<DenseSpec>> {
        Ok(TablePlan::new(self, options)?.specs.into_iter().map(|p| p.spec).collect())
    }

    /// Converts the table like [`to_dense_with`](Self::to_dense_with), but writes to `out`.
    ///
    /// `out` has one slice per tensor of [`dense_specs`](Self::dense_specs), in that order, of
    /// exactly [`nbytes`](DenseSpec::nbytes) bytes, which are all overwritten and need not be
    /// aligned. Returns the specs. If every axis has [`AxisSize::Exactly`] and no column has nulls,
    /// the same memory fits every table with the same number of rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::dense::{AxisSize, TableDenseOptions};
    /// let codes = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    /// let table = RaggedTable::builder().lengths([1, 2])?.column("code", 1, codes).build()?;
    /// let options = TableDenseOptions { sizes: vec![AxisSize::Exactly(2)], ..Default::default() };
    /// let (mut code, mut mask) = ([9u8; 4], [9u8; 4]);
    /// table.to_dense_into(&options, &mut [&mut code, &mut mask])?;
    /// assert_eq!((code, mask), ([1, 0, 2, 3], [1, 0, 1, 1]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`to_dense_with`](Self::to_dense_with); also if the number of slices or the length
    /// of a slice is wrong. After an error, the slices of earlier tensors are already written.
    pub fn to_dense_into(
        &self,
        options: &TableDenseOptions,
        out: &mut [&mut [u8]],
    ) -> Result<Vec<DenseSpec>> {
        let parts = TablePlan::new(self, options)?;
        let names = || parts.specs.iter().map(|p| p.spec.name.as_str()).collect::<Vec<_>>();
        if out.len() != parts.specs.len() {
            return Err(Error::invalid(format!(
                "{slices} output slice(s) are given for {tensors} tensor(s) ({names}); give one slice per tensor",
                slices = out.len(),
                tensors = parts.specs.len(),
                names = names().join(", ")
            )));
        }
        for (part, out) in parts.specs.iter().zip(out) {
            parts.write_tensor(part, out)?;
        }
        Ok(parts.specs.into_iter().map(|p| p.spec).collect())
    }

    fn resolve_sizes(&self, sizes: &[AxisSize]) -> Result<Vec<usize>> {
        if sizes.len() > self.axes().len() {
            return Err(Error::invalid(format!(
                "{} size(s) are given, but the table has {} level(s) of lists; give at most one size per level",
                sizes.len(),
                self.axes().len()
            )));
        }
        let sizes = sizes.iter().copied().chain(std::iter::repeat(AxisSize::Longest));
        Ok(self
            .axes()
            .iter()
            .zip(sizes)
            .map(|(axis, size)| match size {
                AxisSize::Longest => axis.layout().max_length(),
                AxisSize::AtMost(n) => axis.layout().max_length().min(n),
                AxisSize::Exactly(n) => n,
            })
            .collect())
    }
}

enum TensorSource {
    /// Values of a column or scalar; `what` names the column or scalar in error messages.
    Values { array: RaggedArray, dense: DenseOptions, what: String },
    /// Mask of this axis: true for elements, false for padding.
    Axis(usize),
    /// Validity mask of the leaves of this array: true for values, false for nulls and padding.
    Valid(RaggedArray),
}

struct TensorPlan {
    spec: DenseSpec,
    source: TensorSource,
}

/// All tensors of a table. Shapes and total size are checked before any tensor is computed.
struct TablePlan {
    table: RaggedTable,
    sizes: Vec<usize>,
    dense: DenseOptions,
    specs: Vec<TensorPlan>,
}

impl TablePlan {
    fn new(whole: &RaggedTable, options: &TableDenseOptions) -> Result<Self> {
        let mut table = match &options.columns {
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                whole.select(&names)?
            }
            None => whole.clone(),
        };
        if let Some(rows) = &options.rows {
            // `windows` returns an error for a range that starts after its end, such as `3..1`.
            // `slice` alone would accept this range, because its `len` is 0.
            table.windows(rows.clone())?;
            table = table.slice(rows.start, rows.len())?;
        }
        let sizes = table.resolve_sizes(&options.sizes)?;
        let mut shape = vec![table.num_rows()];
        shape.extend(&sizes);
        let mut specs = Vec::new();
        let mut validity = Vec::new();
        let mut add = |name: &str, what: String, array: RaggedArray, shape: &[usize]| {
            let dense = resolve_options(&array, options, &what)?;
            let dtype = match dense.dtype {
                Some(d) => d,
                None => DType::of_leaves(array.leaf_type(), &what)?,
            };
            if options.masks && array.leaves().null_count() > 0 {
                let (name, dtype) = (format!("{name}/valid"), DType::Bool);
                let spec = DenseSpec { name, dtype, shape: shape.to_vec() };
                validity.push(TensorPlan { spec, source: TensorSource::Valid(array.clone()) });
            }
            let spec = DenseSpec { name: name.to_owned(), dtype, shape: shape.to_vec() };
            specs.push(TensorPlan { spec, source: TensorSource::Values { array, dense, what } });
            Ok::<(), Error>(())
        };
        for column in table.columns() {
            let what = format!("column {:?}", column.name());
            let array = table.column_array(column)?;
            add(column.name(), what, array, &shape[..=column.axis()])?;
        }
        for scalar in table.scalars() {
            let array = RaggedArray::try_new(1, Vec::new(), scalar.value().clone())?;
            add(scalar.name(), format!("scalar {:?}", scalar.name()), array, &[])?;
        }
        for axis in (1..table.ndim()).filter(|d| options.masks && table.columns_at(*d).count() > 0)
        {
            let name = format!("dim{axis}/mask");
            let spec = DenseSpec { name, dtype: DType::Bool, shape: shape[..=axis].to_vec() };
            specs.push(TensorPlan { spec, source: TensorSource::Axis(axis) });
        }
        specs.append(&mut validity);
        for (i, part) in specs.iter().enumerate() {
            if specs[..i].iter().any(|p| p.spec.name == part.spec.name) {
                return Err(Error::invalid(format!(
                    "the column {:?} has the name of a mask that the result contains; rename the column, or set `masks` to false",
                    part.spec.name
                )));
            }
        }
        let parts = Self { table, sizes, dense: options.dense.clone(), specs };
        parts.check_bytes()?;
        Ok(parts)
    }

    fn check_bytes(&self) -> Result<()> {
        let bytes = |p: &TensorPlan| count_bytes(&p.spec.shape, p.spec.dtype);
        let total = self.specs.iter().fold(0u128, |n, p| n.saturating_add(bytes(p)));
        self.dense
            .check_bytes(
                total,
                || format!("the conversion of {} rows to dense tensors", self.table.num_rows()),
                || {
                    let longest: Vec<_> =
                        self.table.axes().iter().map(|a| a.layout().max_length()).collect();
                    let largest = self.specs.iter().rev().max_by_key(|p| bytes(p));
                    let largest = largest.map(|p| {
                        format!("{:?} is {} {:?}", p.spec.name, p.spec.dtype, p.spec.shape)
                    });
                    format!(
                        "the largest tensor {}; take fewer rows at a time, set sizes (the longest \
                         lists are {longest:?} on the axes after the rows), omit columns, or \
                         raise the limit",
                        largest.unwrap_or_default()
                    )
                },
            )
            .map(|_| ())
    }

    fn collect_layouts(&self, axis: usize) -> Vec<crate::array::Layout> {
        self.table.axes()[..axis].iter().map(|a| a.layout().clone()).collect()
    }

    fn build_tensor(&self, part: &TensorPlan) -> Result<DenseTensor> {
        let sizes = |array: &RaggedArray| &self.sizes[..array.axes().len()];
        match &part.source {
            TensorSource::Values { array, dense, what } => {
                densify_named(array, Some(sizes(array)), dense, what)
            }
            TensorSource::Valid(array) => validity_mask(array, Some(sizes(array)), &self.dense),
            TensorSource::Axis(axis) => {
                let (rows, sizes) = (self.table.num_rows(), Some(&self.sizes[..*axis]));
                mask_axes(rows, self.collect_layouts(*axis), sizes, &self.dense)
            }
        }?
        // A scalar was converted as an array of one row; the reshape drops the row axis.
        .reshape(part.spec.shape.clone())
    }

    fn write_tensor(&self, part: &TensorPlan, out: &mut [u8]) -> Result<()> {
        let sizes = |array: &RaggedArray| &self.sizes[..array.axes().len()];
        match &part.source {
            TensorSource::Values { array, dense, what } => {
                densify_into_named(array, Some(sizes(array)), dense, what, out).map(|_| ())
            }
            TensorSource::Valid(array) => {
                validity_mask_into(array, Some(sizes(array)), &self.dense, out).map(|_| ())
            }
            TensorSource::Axis(axis) => {
                let (rows, sizes) = (self.table.num_rows(), &self.sizes[..*axis]);
                mask_axes_into(
                    rows,
                    self.collect_layouts(*axis),
                    sizes,
                    &self.dense,
                    &part.spec.name,
                    out,
                )
            }
        }
    }
}

fn resolve_options(
    array: &RaggedArray,
    options: &TableDenseOptions,
    what: &str,
) -> Result<DenseOptions> {
    let mut dense = options.dense.clone();
    let leaves = DType::of_leaves(array.leaf_type(), what)?;
    if dense.dtype.is_none() && options.tokens_as_i64 && leaves.is_integer() {
        dense.dtype = Some(DType::I64);
    }
    Ok(dense)
}
