//! [`TableStack`]: dense tensors of a batch whose rows are whole tables.

use std::ops::Range;

use arrow::array::Array;
use rayon::prelude::*;

use super::element_casts::{ElementCast, find_converter};
use super::slot_writes::{write_finite, write_is_number};
use crate::array::{Layout, Offsets};
use crate::dense::dense_plan::DenseSink;
use crate::dense::densify::{create_tensor, plan_axes};
use crate::dense::mask::mask_axes;
use crate::dense::{DType, DenseOptions, DenseTensor};
use crate::error::{Error, Result};
use crate::table::{Column, RaggedTable, join_layouts};

/// If the deepest tensor has at least this many elements, padding included, threads build several
/// tensors at once.
const MIN_PARALLEL_ELEMENTS: usize = 1 << 20;

/// A tensor of a [`TableStack`].
#[derive(Clone, Copy, Debug)]
pub enum StackTensor<'a> {
    /// The values of a column, padded with zeros.
    Values(&'a str),
    /// The integers of a column, as int64. The type of the column has at most 32 bits or is int64.
    Tokens(&'a str),
    /// The values of a float32 column: NaN becomes 0, and infinities the largest finite numbers.
    Finite(&'a str),
    /// For each value of a float32 column, whether the value is not NaN; true for padding.
    IsNumber(&'a str),
    /// The mask of this axis of the stack: true where the axis has an element, false on padding.
    Mask(usize),
}

/// The table `RaggedTable::vstack(tables)` without copies of the values: tensors are written
/// directly from the values of `tables`.
#[derive(Debug)]
pub struct TableStack<'a> {
    tables: &'a [RaggedTable],
    /// The layouts of the axes after the rows. The lists of axis 1 are the tables.
    layouts: Vec<Layout>,
}

fn is_plain(column: &Column) -> bool {
    let numbers = DType::from_arrow(column.data_type()).is_some_and(|d| d != DType::Bool);
    numbers && column.values().null_count() == 0 && column.list_nulls().iter().all(Option::is_none)
}

impl<'a> TableStack<'a> {
    /// Returns the stack of the tables; `None` if they do not have the same columns of numbers in
    /// the same order, or have nulls, scalars or no axes.
    ///
    /// # Errors
    /// If the tables have more than 2^63 - 1 elements on one axis in total.
    pub fn new(tables: &'a [RaggedTable]) -> Result<Option<Self>> {
        let Some(first) = tables.first() else { return Ok(None) };
        let is_alike = |table: &RaggedTable| {
            table.ndim() > 0
                && table.ndim() == first.ndim()
                && table.scalars().is_empty()
                && table.columns().len() == first.columns().len()
                && table.columns().iter().zip(first.columns()).all(|(a, b)| {
                    a.name() == b.name()
                        && a.axis() == b.axis()
                        && a.data_type() == b.data_type()
                        && is_plain(a)
                })
        };
        if !tables.iter().all(is_alike) {
            return Ok(None);
        }
        let rows = Offsets::from_lengths(tables.iter().map(RaggedTable::num_rows))?;
        let mut layouts = vec![Layout::from(rows)];
        for axis in 1..first.ndim() {
            let each = tables.iter().map(|t| t.layout(axis)).collect::<Result<Vec<_>>>()?;
            layouts.push(join_layouts(&each)?);
        }
        Ok(Some(Self { tables, layouts }))
    }

    /// Returns the tensors `wanted`, in the order of `wanted`. The limit and the type in `options`
    /// apply to each tensor. The fill value in `options` is ignored.
    ///
    /// # Errors
    /// If a column does not exist or lacks the type that its tensor needs, or a tensor exceeds the
    /// limit.
    pub fn to_tensors(
        &self,
        wanted: &[StackTensor<'_>],
        options: &DenseOptions,
    ) -> Result<Vec<DenseTensor>> {
        let sizes = self.layouts.iter().map(Layout::max_length);
        let cells = sizes.fold(self.tables.len(), usize::saturating_mul);
        if options.parallel && cells >= MIN_PARALLEL_ELEMENTS {
            let all: Vec<_> = wanted
                .par_iter()
                .with_max_len(1)
                .map(|tensor| self.build_tensor(*tensor, options))
                .collect();
            // If several tensors fail, return the error of the first of them.
            return all.into_iter().collect();
        }
        wanted.iter().map(|tensor| self.build_tensor(*tensor, options)).collect()
    }

    fn build_tensor(&self, tensor: StackTensor<'_>, options: &DenseOptions) -> Result<DenseTensor> {
        let rows = self.tables.len();
        let name = match tensor {
            StackTensor::Mask(axis) => {
                let layouts = self.layouts.iter().take(axis).cloned().collect();
                return mask_axes(rows, layouts, None, options);
            }
            StackTensor::Values(name)
            | StackTensor::Tokens(name)
            | StackTensor::Finite(name)
            | StackTensor::IsNumber(name) => name,
        };
        let what = format!("column {name:?}");
        let columns = self.tables.iter().map(|t| t.column(name)).collect::<Result<Vec<_>>>()?;
        let parts = columns
            .iter()
            .map(|c| DenseTensor::from_flat(c.values().as_ref(), &what))
            .collect::<Result<Vec<_>>>()?;
        // Both vectors have an entry 0, because a stack has at least one table.
        let (first, stored) = (columns[0], parts[0].dtype());
        let (dtype, copy) = match tensor {
            StackTensor::Tokens(_) if stored != DType::I64 => {
                let convert = Some(stored)
                    .filter(|d| d.is_integer() && d.size() <= 4)
                    .and_then(|d| find_converter(d, DType::I64))
                    .ok_or_else(|| {
                        Error::type_of(
                            what.clone(),
                            "integers of at most 32 bits, or int64 (cast the column first)",
                            first.data_type(),
                        )
                    })?;
                (DType::I64, LeafCopy::Converted(convert))
            }
            StackTensor::Finite(_) if stored == DType::F32 => (DType::F32, LeafCopy::Finite),
            StackTensor::IsNumber(_) if stored == DType::F32 => (DType::Bool, LeafCopy::IsNumber),
            StackTensor::Finite(_) | StackTensor::IsNumber(_) => {
                return Err(Error::type_of(
                    what,
                    "float32 (cast the column first)",
                    first.data_type(),
                ));
            }
            _ => (stored, LeafCopy::Stored),
        };
        let fill = [u8::from(matches!(copy, LeafCopy::IsNumber)); 8];
        let mut starts = Vec::with_capacity(parts.len() + 1);
        let mut end = 0;
        starts.push(end);
        for part in &parts {
            end += part.num_elements();
            starts.push(end);
        }
        let layouts = self.layouts.iter().take(first.axis() + 1).cloned().collect();
        let plan = plan_axes(rows, layouts, None, dtype, options, &what)?;
        create_tensor(plan, dtype, &fill[..dtype.size()], options, |plan, padding, out| {
            let size = stored.size();
            let sink = PartsSink { starts: &starts, parts: &parts, size, copy };
            plan.walk_lists(&sink, padding, out, options.parallel);
        })
    }
}

/// How values of a table are written to a tensor.
#[derive(Clone, Copy)]
enum LeafCopy {
    Stored,
    /// Values are converted by this function. It cannot fail, because every value fits int64.
    Converted(ElementCast),
    Finite,
    IsNumber,
}

/// Writes the values of several tables to a tensor. All values of a list belong to one table, so
/// one copy writes each list.
struct PartsSink<'a> {
    /// For each table, the number of values of the tables before it; then the number of all values.
    starts: &'a [usize],
    parts: &'a [DenseTensor],
    /// Size of a stored value in bytes.
    size: usize,
    copy: LeafCopy,
}

impl PartsSink<'_> {
    /// Returns the index of the table that has the value with this index.
    fn find_part(&self, value: usize) -> usize {
        // An empty table starts at the same value as the next table. If several tables start at the
        // same value, all but the last are empty, so the last has the value.
        let starts = &self.starts[..self.parts.len()];
        starts.partition_point(|start| *start <= value).saturating_sub(1)
    }

    #[inline]
    fn copy_values(&self, part: usize, leaves: Range<usize>, out: &mut [u8]) {
        let first = leaves.start - self.starts[part];
        let range = first * self.size..(first + leaves.len()) * self.size;
        let values = &self.parts[part].as_bytes()[range];
        match self.copy {
            LeafCopy::Stored => out.copy_from_slice(values),
            LeafCopy::Converted(convert) => {
                convert(values, out);
            }
            LeafCopy::Finite => write_finite(values, out),
            LeafCopy::IsNumber => write_is_number(values, out),
        }
    }
}

impl DenseSink for PartsSink<'_> {
    fn values(&self, leaves: Range<usize>, out: &mut [u8]) {
        if !leaves.is_empty() {
            self.copy_values(self.find_part(leaves.start), leaves, out);
        }
    }

    fn write_lists<'o>(&self, lists: impl Iterator<Item = (Range<usize>, &'o mut [u8])>) {
        // Most lists belong to the same table as the list before them.
        let mut part = 0;
        for (leaves, out) in lists {
            if !(self.starts[part]..self.starts[part + 1]).contains(&leaves.start) {
                part = self.find_part(leaves.start);
            }
            self.copy_values(part, leaves, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float32Array, StringArray, UInt16Array};

    use super::*;
    use crate::dense::{BufferPool, PaddingSide};

    fn table(rows: &[&[u16]]) -> RaggedTable {
        let codes: Vec<u16> = rows.concat();
        let values = codes.iter().map(|c| if c % 3 == 0 { f32::NAN } else { f32::from(*c) });
        let values: ArrayRef = Arc::new(Float32Array::from_iter_values(values));
        let times = (0u16..).take(rows.len());
        RaggedTable::builder()
            .lengths(rows.iter().map(|r| r.len()))
            .unwrap()
            .column("time", 0, Arc::new(UInt16Array::from_iter_values(times)))
            .column("code", 1, Arc::new(UInt16Array::from(codes)))
            .column("value", 1, values)
            .build()
            .unwrap()
    }

    #[test]
    fn tensors_are_those_of_the_stacked_table() {
        let tables = [
            table(&[]),
            table(&[&[1, 2, 3], &[]]),
            table(&[&[]]),
            table(&[&[4], &[5, 6], &[7, 8]]).slice(1, 2).unwrap(),
            table(&[]),
        ];
        let stack = TableStack::new(&tables).unwrap().unwrap();
        let copied = RaggedTable::vstack(&tables).unwrap();
        let pool = BufferPool::for_writers(1 << 20);
        for (side, pool) in [(PaddingSide::Left, None), (PaddingSide::Right, Some(pool))] {
            let options = DenseOptions { side, pool, ..Default::default() };
            let wanted = [
                StackTensor::Values("time"),
                StackTensor::Values("code"),
                StackTensor::Mask(1),
                StackTensor::Mask(2),
            ];
            let found = stack.to_tensors(&wanted, &options).unwrap();
            let expected = copied.to_dense(&options).unwrap();
            let expected = |name: &str| &expected.iter().find(|(n, _)| n == name).unwrap().1;
            for (tensor, name) in found.iter().zip(["time", "code", "dim1/mask", "dim2/mask"]) {
                assert_eq!(tensor, expected(name));
            }
            let wanted = [
                StackTensor::Tokens("code"),
                StackTensor::Finite("value"),
                StackTensor::IsNumber("value"),
            ];
            let found = stack.to_tensors(&wanted, &options).unwrap();
            assert_eq!(found[0], expected("code").cast(DType::I64).unwrap());
            let values = expected("value").as_slice::<f32>().unwrap();
            let finite: Vec<f32> =
                values.iter().map(|v| if v.is_nan() { 0.0 } else { *v }).collect();
            assert_eq!(found[1].as_slice::<f32>().unwrap(), finite);
            let flags: Vec<u8> = values.iter().map(|v| u8::from(!v.is_nan())).collect();
            assert_eq!(found[2].as_bytes(), flags);
        }
    }

    #[test]
    fn stacks_of_any_shape_share_memory_that_others_have_written() {
        let pool = BufferPool::for_writers(256 << 20);
        let mut last = Vec::new();
        for (longest, side) in [(300u16, PaddingSide::Right), (700, PaddingSide::Left)].repeat(2) {
            let rows = |i: u16| {
                let length = |event: u16| match (i, event) {
                    (5, 3) => longest,
                    _ => (i + event) % 40,
                };
                let events: Vec<Vec<u16>> = (0..32).map(|e| (1..=length(e)).collect()).collect();
                table(&events.iter().map(Vec::as_slice).collect::<Vec<_>>())
            };
            let tables: Vec<RaggedTable> = (0..64).map(rows).collect();
            let stack = TableStack::new(&tables).unwrap().unwrap();
            let dirty: Vec<_> = (0..6).map(|_| pool.take_memory(6 << 20)).collect();
            for memory in dirty {
                memory.unwrap().take_contents().0.fill(0xAB);
            }
            let wanted = [
                StackTensor::Mask(2),
                StackTensor::Values("code"),
                StackTensor::Values("value"),
                StackTensor::Tokens("code"),
                StackTensor::Finite("value"),
                StackTensor::IsNumber("value"),
            ];
            let fresh = DenseOptions { side, ..Default::default() };
            let pooled = DenseOptions { pool: Some(pool.clone()), ..fresh.clone() };
            let found = stack.to_tensors(&wanted, &pooled).unwrap();
            assert_eq!(found[0].shape(), [64, 32, usize::from(longest)]);
            assert!(found == stack.to_tensors(&wanted, &fresh).unwrap(), "{side:?} {longest}");
            // A training loop drops a batch after it has made the next.
            drop(std::mem::replace(&mut last, found));
        }
    }

    #[test]
    fn other_tables_have_no_stack() {
        let plain = table(&[&[1]]);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let texts = plain.with_columns(vec![Column::new("code", 1, text)]).unwrap();
        let nulls: ArrayRef = Arc::new(UInt16Array::from(vec![None::<u16>]));
        let nulls = plain.with_columns(vec![Column::new("code", 1, nulls)]).unwrap();
        let fewer = plain.select(&["code"]).unwrap();
        let row = plain.squeeze(0).unwrap();
        for tables in [vec![], vec![texts], vec![nulls], vec![plain.clone(), fewer], vec![row]] {
            assert!(TableStack::new(&tables).unwrap().is_none());
        }
        let tables = [plain];
        let stack = TableStack::new(&tables).unwrap().unwrap();
        for wrong in [StackTensor::Finite("code"), StackTensor::Tokens("value")] {
            let e = stack.to_tensors(&[wrong], &DenseOptions::default()).unwrap_err().to_string();
            assert!(e.contains("column"), "{e}");
        }
    }
}
