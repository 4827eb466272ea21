//! Tables to dense: one tensor per column and one mask per axis.

use std::ops::Range;

use super::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};
use crate::kernels::densify::{count_bytes, densify_named};
use crate::kernels::mask::mask_axes;
use crate::table::{Column, RaggedTable};

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
    /// Whether to make a mask of every axis that a column lives on.
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

impl RaggedTable {
    /// One padded tensor per column under its name, in order, then one mask `dim{d}/mask` (bool,
    /// shape `[rows, .. d]`) for every axis `d` from 1 on that a column lives on.
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
    ///     .column("T", 1, Arc::new(Float32Array::from(vec![0.5, 1.0, 2.0])))
    ///     .build()?;
    /// let dense = table.to_dense(&DenseOptions::default())?;
    /// let text: Vec<String> = dense.iter().map(|(name, t)| format!("{name}: {t}")).collect();
    /// assert_eq!(text, [
    ///     "age: uint16[2] [71, 38]",
    ///     "T: float32[2, 2] [[0.5, 1.0], [2.0, 0.0]]",
    ///     "dim1/mask: bool[2, 2] [[true, true], [true, false]]",
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
        let selected;
        let mut table = self;
        if let Some(names) = &options.columns {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            selected = table.select(&names)?;
            table = &selected;
        }
        let sliced;
        if let Some(rows) = &options.rows {
            sliced = table.slice(rows.clone())?;
            table = &sliced;
        }
        let sizes = table.dense_sizes(&options.sizes)?;
        let masked: Vec<usize> = (1..table.ndim())
            .filter(|d| options.masks && table.columns().iter().any(|c| c.axis() == *d))
            .collect();
        if let Some(c) = table.columns().iter().find(|c| is_mask(c.name(), &masked)) {
            return Err(Error::invalid(format!(
                "column {:?} has the name of a mask; rename it, or leave the masks out",
                c.name()
            )));
        }
        table.check_dense_bytes(&sizes, &masked, options)?;

        let mut out = Vec::with_capacity(table.columns().len() + masked.len());
        for column in table.columns() {
            let dense = column_options(column, options)?;
            let array = table.column_array(column)?;
            let sizes = Some(&sizes[..column.axis()]);
            out.push((
                column.name().to_owned(),
                densify_named(&array, sizes, &dense, &what(column))?,
            ));
        }
        for axis in masked {
            let layouts = table.axes()[..axis].iter().map(|a| a.layout().clone()).collect();
            let mask = mask_axes(table.num_rows(), layouts, Some(&sizes[..axis]), &options.dense)?;
            out.push((format!("dim{axis}/mask"), mask));
        }
        Ok(out)
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

    /// Counts all tensors together.
    fn check_dense_bytes(
        &self,
        sizes: &[usize],
        masked: &[usize],
        options: &TableDenseOptions,
    ) -> Result<()> {
        let mut total = 0u128;
        let mut largest = (0u128, String::new());
        let mut shape = vec![self.num_rows()];
        shape.extend(sizes);
        for column in self.columns() {
            let leaves = DType::of_leaves(column.data_type(), &what(column))?;
            let dtype = column_options(column, options)?.dtype.unwrap_or(leaves);
            let shape = &shape[..=column.axis()];
            let bytes = count_bytes(shape, dtype);
            total = total.saturating_add(bytes);
            if bytes > largest.0 {
                largest = (bytes, format!("{:?} is {dtype} {shape:?}", column.name()));
            }
        }
        for axis in masked {
            total = total.saturating_add(count_bytes(&shape[..=*axis], DType::Bool));
        }
        options
            .dense
            .check_bytes(
                total,
                || format!("a dense form of {} rows", self.num_rows()),
                || {
                    let longest: Vec<_> =
                        self.axes().iter().map(|a| a.layout().max_length()).collect();
                    format!(
                        "the largest tensor {}; take fewer rows at a time, set sizes (the longest \
                         lists are {longest:?} on the axes after the rows), leave out columns, or \
                         raise the limit",
                        largest.1
                    )
                },
            )
            .map(|_| ())
    }
}

fn what(column: &Column) -> String {
    format!("column {:?}", column.name())
}

fn is_mask(name: &str, masked: &[usize]) -> bool {
    masked.iter().any(|d| name == format!("dim{d}/mask"))
}

/// The options with the type that this column is to have.
fn column_options(column: &Column, options: &TableDenseOptions) -> Result<DenseOptions> {
    let mut dense = options.dense.clone();
    let leaves = DType::of_leaves(column.data_type(), &what(column))?;
    if dense.dtype.is_none() && options.tokens_as_i64 && leaves.is_integer() {
        dense.dtype = Some(DType::I64);
    }
    Ok(dense)
}
