//! Tables to dense: one tensor per column and one mask per axis.

use std::ops::Range;

use super::{DType, DenseOptions, DenseTensor};
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use crate::kernels::densify::{count_bytes, densify_into_named, densify_named};
use crate::kernels::mask::{mask_axes, mask_axes_into, validity_mask, validity_mask_into};
use crate::table::RaggedTable;

/// Size of one axis of dense tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Size {
    /// As long as the longest list.
    #[default]
    Longest,
    /// As long as the longest list, but at most this; longer lists are cut.
    AtMost(usize),
    /// Exactly this: shorter lists are padded, longer ones cut.
    Exactly(usize),
}

/// How a table becomes dense tensors.
///
/// ```
/// use serrate::dense::{Size, TableDenseOptions};
/// let options = TableDenseOptions {
///     rows: Some(0..64),
///     sizes: vec![Size::AtMost(256), Size::AtMost(64)],
///     tokens_as_i64: true,
///     ..Default::default()
/// };
/// assert!(options.masks);
/// ```
#[derive(Clone, Debug)]
pub struct TableDenseOptions {
    /// Side, fill, threads, pool; the limit counts all tensors and masks together, and a type set
    /// here is that of every column.
    pub dense: DenseOptions,
    /// Rows to take; all when `None`.
    pub rows: Option<Range<usize>>,
    /// Columns to take, in this order; all when `None`.
    pub columns: Option<Vec<String>>,
    /// Size of each axis after the rows; [`Size::Longest`] where there is none.
    pub sizes: Vec<Size>,
    /// Whether integer columns become int64, the type that embedding layers take. A value of 2^63
    /// or more is an error.
    pub tokens_as_i64: bool,
    /// Whether to make a mask of every axis that a column lives on, and one of every column that has
    /// nulls.
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

/// A tensor of a table's dense form, before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseSpec {
    /// Name: that of the column or scalar, `dim{d}/mask` or `{column}/valid`.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Size of every axis, the rows first.
    pub shape: Vec<usize>,
}

impl DenseSpec {
    /// Bytes the tensor takes.
    pub fn nbytes(&self) -> usize {
        // Counted against the limit, and so against what can be addressed, when it was made.
        usize::try_from(count_bytes(&self.shape, self.dtype)).unwrap_or(usize::MAX)
    }
}

impl RaggedTable {
    /// One padded tensor per column under its name, in order, then one per
    /// [scalar](RaggedTable::scalars) (of no axes), then one mask `dim{d}/mask` (bool, shape
    /// `[rows, .. d]`) for every axis `d` from 1 on that a column lives on, then one mask
    /// `{column}/valid` for every column or scalar that has nulls: true where there is a value, false
    /// at nulls and padding.
    ///
    /// All columns of an axis have one shape, as long as the longest list at every level. An axis
    /// without a single element has size 0, and its columns are there.
    ///
    /// ```
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
    /// A column that is no number, date or time (leave it out, or encode it first), named; a fill
    /// value that a column's type does not have; more bytes than the limit, all together.
    pub fn to_dense(&self, options: &DenseOptions) -> Result<Vec<(String, DenseTensor)>> {
        self.to_dense_with(&TableDenseOptions { dense: options.clone(), ..Default::default() })
    }

    /// As [`to_dense`](Self::to_dense), of some rows and columns, in sizes of the caller's.
    ///
    /// # Errors
    /// As [`to_dense`](Self::to_dense); rows or columns that do not exist; more sizes than axes.
    pub fn to_dense_with(&self, options: &TableDenseOptions) -> Result<Vec<(String, DenseTensor)>> {
        let parts = Parts::new(self, options)?;
        parts.specs.iter().map(|s| Ok((s.spec.name.clone(), parts.tensor(s)?))).collect()
    }

    /// Names, types and shapes of what [`to_dense_with`](Self::to_dense_with) gives, without making it.
    ///
    /// # Errors
    /// As [`to_dense_with`](Self::to_dense_with), where values do not matter.
    pub fn dense_specs(&self, options: &TableDenseOptions) -> Result<Vec<DenseSpec>> {
        Ok(Parts::new(self, options)?.specs.into_iter().map(|p| p.spec).collect())
    }

    /// As [`to_dense_with`](Self::to_dense_with), into memory of the caller's: one piece per tensor of
    /// [`dense_specs`](Self::dense_specs), in that order, each exactly as long as its
    /// [`nbytes`](DenseSpec::nbytes). Every byte is written, whatever was there; pieces need not be
    /// aligned. Returns what was written.
    ///
    /// With [`Size::Exactly`] for every axis, and no column with nulls, the specs depend on nothing
    /// but the number of rows, so that memory fits one batch after the other.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt8Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::dense::{Size, TableDenseOptions};
    /// let codes = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    /// let table = RaggedTable::builder().lengths([1, 2])?.column("code", 1, codes).build()?;
    /// let options = TableDenseOptions { sizes: vec![Size::Exactly(2)], ..Default::default() };
    /// let (mut code, mut mask) = ([9u8; 4], [9u8; 4]);
    /// table.to_dense_into(&options, &mut [&mut code, &mut mask])?;
    /// assert_eq!((code, mask), ([1, 0, 2, 3], [1, 0, 1, 1]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`to_dense_with`](Self::to_dense_with); another number of pieces than tensors; a piece of
    /// another length than its tensor. What was written before an error stays written.
    pub fn to_dense_into(
        &self,
        options: &TableDenseOptions,
        out: &mut [&mut [u8]],
    ) -> Result<Vec<DenseSpec>> {
        let parts = Parts::new(self, options)?;
        let names = || parts.specs.iter().map(|p| p.spec.name.as_str()).collect::<Vec<_>>();
        if out.len() != parts.specs.len() {
            return Err(Error::invalid(format!(
                "{} pieces of memory for the {} tensors {}",
                out.len(),
                parts.specs.len(),
                names().join(", ")
            )));
        }
        for (part, out) in parts.specs.iter().zip(out) {
            parts.write(part, out)?;
        }
        Ok(parts.specs.into_iter().map(|p| p.spec).collect())
    }

    fn dense_sizes(&self, sizes: &[Size]) -> Result<Vec<usize>> {
        if sizes.len() > self.axes().len() {
            return Err(Error::invalid(format!(
                "{} sizes for {} axes after the rows",
                sizes.len(),
                self.axes().len()
            )));
        }
        let sizes = sizes.iter().copied().chain(std::iter::repeat(Size::Longest));
        Ok(self
            .axes()
            .iter()
            .zip(sizes)
            .map(|(axis, size)| match size {
                Size::Longest => axis.layout().max_length(),
                Size::AtMost(n) => axis.layout().max_length().min(n),
                Size::Exactly(n) => n,
            })
            .collect())
    }
}

/// What one tensor is made of.
enum Source {
    /// Values of a column (no axes for a scalar), and what errors call it.
    Values { array: RaggedArray, dense: DenseOptions, what: String },
    /// Places that hold elements of an axis.
    Axis(usize),
    /// Places that hold a value that is not null.
    Valid(RaggedArray),
}

struct Part {
    spec: DenseSpec,
    source: Source,
}

/// All tensors of a table, planned and counted.
struct Parts {
    table: RaggedTable,
    sizes: Vec<usize>,
    dense: DenseOptions,
    specs: Vec<Part>,
}

impl Parts {
    fn new(whole: &RaggedTable, options: &TableDenseOptions) -> Result<Self> {
        let mut table = match &options.columns {
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                whole.select(&names)?
            }
            None => whole.clone(),
        };
        if let Some(rows) = &options.rows {
            table = table.slice(rows.clone())?;
        }
        let sizes = table.dense_sizes(&options.sizes)?;
        let mut shape = vec![table.num_rows()];
        shape.extend(&sizes);
        let mut specs = Vec::new();
        let mut validity = Vec::new();
        let mut add = |name: &str, what: String, array: RaggedArray, shape: &[usize]| {
            let dense = value_options(&array, options, &what)?;
            let dtype = match dense.dtype {
                Some(d) => d,
                None => DType::of_leaves(array.leaf_type(), &what)?,
            };
            if options.masks && array.leaves().null_count() > 0 {
                let (name, dtype) = (format!("{name}/valid"), DType::Bool);
                let spec = DenseSpec { name, dtype, shape: shape.to_vec() };
                validity.push(Part { spec, source: Source::Valid(array.clone()) });
            }
            let spec = DenseSpec { name: name.to_owned(), dtype, shape: shape.to_vec() };
            specs.push(Part { spec, source: Source::Values { array, dense, what } });
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
            specs.push(Part { spec, source: Source::Axis(axis) });
        }
        specs.append(&mut validity);
        for (i, part) in specs.iter().enumerate() {
            if specs[..i].iter().any(|p| p.spec.name == part.spec.name) {
                return Err(Error::invalid(format!(
                    "column {:?} has the name of a mask; rename it, or leave the masks out",
                    part.spec.name
                )));
            }
        }
        let parts = Self { table, sizes, dense: options.dense.clone(), specs };
        parts.check_bytes()?;
        Ok(parts)
    }

    /// Counts all tensors together.
    fn check_bytes(&self) -> Result<()> {
        let bytes = |p: &Part| count_bytes(&p.spec.shape, p.spec.dtype);
        let total = self.specs.iter().fold(0u128, |n, p| n.saturating_add(bytes(p)));
        self.dense
            .check_bytes(
                total,
                || format!("a dense form of {} rows", self.table.num_rows()),
                || {
                    let longest: Vec<_> =
                        self.table.axes().iter().map(|a| a.layout().max_length()).collect();
                    let largest = self.specs.iter().rev().max_by_key(|p| bytes(p));
                    let largest = largest.map(|p| {
                        format!("{:?} is {} {:?}", p.spec.name, p.spec.dtype, p.spec.shape)
                    });
                    format!(
                        "the largest tensor {}; take fewer rows at a time, set sizes (the longest \
                         lists are {longest:?} on the axes after the rows), leave out columns, or \
                         raise the limit",
                        largest.unwrap_or_default()
                    )
                },
            )
            .map(|_| ())
    }

    fn layouts(&self, axis: usize) -> Vec<crate::array::Layout> {
        self.table.axes()[..axis].iter().map(|a| a.layout().clone()).collect()
    }

    fn tensor(&self, part: &Part) -> Result<DenseTensor> {
        let sizes = |array: &RaggedArray| &self.sizes[..array.axes().len()];
        match &part.source {
            Source::Values { array, dense, what } => {
                densify_named(array, Some(sizes(array)), dense, what)
            }
            Source::Valid(array) => validity_mask(array, Some(sizes(array)), &self.dense),
            Source::Axis(axis) => {
                let (rows, sizes) = (self.table.num_rows(), Some(&self.sizes[..*axis]));
                mask_axes(rows, self.layouts(*axis), sizes, &self.dense)
            }
        }?
        // A scalar is an array of one row up to here.
        .reshape(part.spec.shape.clone())
    }

    fn write(&self, part: &Part, out: &mut [u8]) -> Result<()> {
        let sizes = |array: &RaggedArray| &self.sizes[..array.axes().len()];
        match &part.source {
            Source::Values { array, dense, what } => {
                densify_into_named(array, Some(sizes(array)), dense, what, out).map(|_| ())
            }
            Source::Valid(array) => {
                validity_mask_into(array, Some(sizes(array)), &self.dense, out).map(|_| ())
            }
            Source::Axis(axis) => {
                let (rows, sizes) = (self.table.num_rows(), &self.sizes[..*axis]);
                mask_axes_into(rows, self.layouts(*axis), sizes, &self.dense, &part.spec.name, out)
            }
        }
    }
}

/// The options with the type that this column is to have.
fn value_options(
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
