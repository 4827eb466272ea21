//! Divides a table in memory into batches. Copies only the offsets, so that the offsets of each
//! batch start at zero. The buffers of a batch have exactly the required length.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::error::Result;
use serrate_core::internal::{build_record_batch, lock_mutex};

use crate::array::{Layout, leaf_type};
use crate::table::RaggedTable;
use serrate_core::internal::{build_lists_as, trim_extent, trim_nulls, trim_offsets};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sql) struct BatchSize {
    pub(in crate::sql) rows: usize,
    /// Maximum number of elements in a batch, counted on the axis (level of lists) that the caller
    /// chooses. A single row with more elements is a batch by itself.
    pub(in crate::sql) leaves: usize,
}

pub(in crate::sql) fn find_deepest_axis(table: &RaggedTable, columns: &[usize]) -> usize {
    columns.iter().filter_map(|c| table.columns().get(*c)).map(|c| c.axis()).max().unwrap_or(0)
}

pub(in crate::sql) fn count_elements_before(
    table: &RaggedTable,
    row: usize,
    axis: usize,
) -> Result<usize> {
    let mut position = row;
    for axis in 1..=axis {
        let layout = table.layout(axis)?;
        let first = layout.ranges(0..0).start;
        position = layout.ranges(position..position).start - first;
    }
    Ok(position)
}

/// Returns the largest number of rows, from the row `rows.start` on, that together have at most
/// `limit` elements of `axis` (a level of lists; axis 0 is the rows). Returns 1 if the first row
/// alone has more.
pub(in crate::sql) fn count_fitting_rows(
    table: &RaggedTable,
    rows: Range<usize>,
    axis: usize,
    limit: usize,
) -> Result<usize> {
    let end = count_elements_before(table, rows.start, axis)?.saturating_add(limit);
    let (mut fits, mut over) = (rows.start + 1, rows.end + 1);
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        if count_elements_before(table, middle, axis)? <= end {
            fits = middle;
        } else {
            over = middle;
        }
    }
    Ok((fits - rows.start).min(rows.len()))
}

/// Returns the rows `rows` of the columns `columns` as batches. Each has about `size.leaves`
/// elements of `axis` (a level of lists) and at most `size.rows` rows.
pub(in crate::sql) fn cut_batches(
    table: Arc<RaggedTable>,
    columns: Vec<usize>,
    schema: SchemaRef,
    axis: usize,
    rows: Range<usize>,
    size: BatchSize,
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    let axes = find_deepest_axis(&table, &columns);
    cut_ranges(Arc::clone(&table), axis, rows, size).map(move |rows| {
        let cut = RowCut::new(&table, rows?, axes)?;
        cut.cut_batch(&columns, &schema, |column, data_type| {
            cut.cut_array(&table, column, data_type)
        })
    })
}

/// Divides `rows` into ranges, each with about `size.leaves` elements of `axis` (a level of lists)
/// and at most `size.rows` rows.
fn cut_ranges(
    table: Arc<RaggedTable>,
    axis: usize,
    rows: Range<usize>,
    size: BatchSize,
) -> impl Iterator<Item = Result<Range<usize>>> + Send {
    let mut rows = rows;
    std::iter::from_fn(move || {
        if rows.is_empty() {
            return None;
        }
        let most = rows.start..rows.end.min(rows.start.saturating_add(size.rows));
        let count = match axis {
            0 => Ok(most.len()),
            axis => count_fitting_rows(&table, most, axis, size.leaves),
        };
        let part = count.map(|count| rows.start..rows.start + count);
        rows.start = part.as_ref().map_or(rows.end, |part| part.end);
        Some(part)
    })
}

/// A type for innermost list elements that has no values and stores only which elements are NULL.
const LEAFLESS: DataType = DataType::FixedSizeBinary(0);

/// Replaces the type of the innermost elements of a list type, if it is primitive, boolean or
/// string, with [`LEAFLESS`], a type without values.
pub(in crate::sql) fn to_leafless_type(data_type: &DataType) -> DataType {
    let open = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(to_leafless_type(field.data_type())))
    };
    match data_type {
        DataType::List(field) => DataType::List(open(field)),
        DataType::LargeList(field) => DataType::LargeList(open(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(open(field), *size),
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => LEAFLESS,
        leaf if leaf.is_primitive() => LEAFLESS,
        leaf => leaf.clone(),
    }
}

/// A range of rows of a table, with offsets that start at zero and that all columns share.
#[derive(Debug)]
struct RowCut {
    windows: Vec<Range<usize>>,
    /// The offsets or the fixed list size of each axis (level of lists).
    layouts: Vec<Layout>,
}

impl RowCut {
    /// Creates the cut of `rows`, with a copy of their offsets on the first `axes` axes (levels of
    /// lists).
    fn new(table: &RaggedTable, rows: Range<usize>, axes: usize) -> Result<Self> {
        let windows = table.windows(rows)?;
        let layouts = (table.axes().iter().zip(&windows).take(axes))
            .map(|(axis, lists)| match axis.layout().slice(lists.start, lists.len()) {
                Layout::Ragged(offsets) => Layout::Ragged(trim_offsets(&offsets.rebased())),
                uniform @ Layout::Uniform { .. } => uniform,
            })
            .collect();
        Ok(Self { windows, layouts })
    }

    /// Returns the rows of this cut of a column as an array of `data_type`: the column's type, or
    /// the type that [`to_leafless_type`] returns for it.
    fn cut_array(
        &self,
        table: &RaggedTable,
        column: usize,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let column = &table.columns()[column];
        let window = &self.windows[column.axis()];
        let values = match column.values() {
            // If the window is the complete array, the array itself is shared, because a slice
            // would count its nulls again.
            all if window.len() == all.len() => Arc::clone(all),
            some => some.slice(window.start, window.len()),
        };
        let leaves = if *leaf_type(data_type) == LEAFLESS && *values.data_type() != LEAFLESS {
            let nulls = values.nulls().map(trim_nulls);
            let data = ArrayData::builder(LEAFLESS).len(values.len()).nulls(nulls);
            make_array(data.add_buffer(Buffer::default()).build()?)
        } else {
            trim_extent(&values)
        };
        let nulls = |(nulls, lists): (&Option<NullBuffer>, &Range<usize>)| {
            let part = nulls.as_ref()?.slice(lists.start, lists.len());
            (part.null_count() > 0).then(|| trim_nulls(&part))
        };
        let levels = column.list_nulls().iter().zip(&self.windows).map(nulls);
        Ok(build_lists_as(self.layouts.iter().zip(levels), leaves, data_type)?)
    }

    fn cut_batch(
        &self,
        columns: &[usize],
        schema: &SchemaRef,
        array: impl Fn(usize, &DataType) -> Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(columns.len());
        for (column, field) in columns.iter().zip(schema.fields()) {
            arrays.push(array(*column, field.data_type())?);
        }
        Ok(build_record_batch(Arc::clone(schema), arrays, self.windows[0].len())?)
    }
}

/// A [`RowCut`] that caches two arrays per column: index 0 has the array with its values, and index
/// 1 the array whose innermost elements have no values ([`LEAFLESS`]). Each array is created on
/// first use.
#[derive(Debug)]
pub(in crate::sql) struct WithArrays {
    cut: RowCut,
    arrays: Vec<[OnceLock<ArrayRef>; 2]>,
}

impl WithArrays {
    fn new(table: &RaggedTable, rows: Range<usize>) -> Result<Self> {
        let cut = RowCut::new(table, rows, table.axes().len())?;
        let arrays = table.columns().iter().map(|_| Default::default()).collect();
        Ok(Self { cut, arrays })
    }

    fn find_array(
        &self,
        table: &RaggedTable,
        column: usize,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let kept = &self.arrays[column][usize::from(*leaf_type(data_type) == LEAFLESS)];
        if let Some(array) = kept.get() {
            return Ok(Arc::clone(array));
        }
        let array = self.cut.cut_array(table, column, data_type)?;
        Ok(Arc::clone(kept.get_or_init(|| array)))
    }

    pub(in crate::sql) fn make_batch(
        &self,
        table: &RaggedTable,
        columns: &[usize],
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        self.cut.cut_batch(columns, schema, |column, of| self.find_array(table, column, of))
    }
}

/// Maximum number of bytes that the offsets of all batches in a [`CutCache`] take together.
const KEPT_BYTES: usize = 64 << 20;

/// How to divide a table: the rows, the axis (level of lists) whose elements the batch size limits,
/// and the batch size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sql) struct CutPlan {
    pub(in crate::sql) rows: Range<usize>,
    pub(in crate::sql) axis: usize,
    pub(in crate::sql) size: BatchSize,
}

#[derive(Debug)]
struct CachedCuts {
    plan: CutPlan,
    bytes: usize,
    cuts: Arc<Vec<WithArrays>>,
}

/// Caches the batches of a table's most recent scans. Without the cache, short queries would spend
/// most of their time copying offsets.
#[derive(Debug, Default)]
pub(in crate::sql) struct CutCache(Mutex<Vec<CachedCuts>>);

impl CutCache {
    fn find_cuts(&self, plan: &CutPlan) -> Option<Arc<Vec<WithArrays>>> {
        let kept = lock_mutex(&self.0);
        kept.iter().find(|kept| kept.plan == *plan).map(|kept| Arc::clone(&kept.cuts))
    }

    /// Returns a table's batches, divided as in `plan`, or `None` if their offsets do not fit the
    /// cache.
    pub(in crate::sql) fn get(
        &self,
        table: &Arc<RaggedTable>,
        plan: &CutPlan,
    ) -> Result<Option<Arc<Vec<WithArrays>>>> {
        if let Some(cuts) = self.find_cuts(plan) {
            return Ok(Some(cuts));
        }
        // Each element of an axis (level of lists) needs an offset, except on the last axis, whose
        // elements are not lists.
        let windows = table.windows(plan.rows.clone())?;
        let lists: usize = windows.iter().rev().skip(1).map(ExactSizeIterator::len).sum();
        let bytes = lists.saturating_mul(size_of::<i64>());
        if bytes > KEPT_BYTES {
            return Ok(None);
        }
        let cuts = cut_ranges(Arc::clone(table), plan.axis, plan.rows.clone(), plan.size)
            .map(|rows| WithArrays::new(table, rows?))
            .collect::<Result<Vec<_>>>()?;
        let cuts = Arc::new(cuts);
        let mut kept = lock_mutex(&self.0);
        kept.retain(|kept| kept.plan != *plan);
        while kept.iter().map(|kept| kept.bytes).sum::<usize>() > KEPT_BYTES - bytes {
            kept.remove(0);
        }
        kept.push(CachedCuts { plan: plan.clone(), bytes, cuts: Arc::clone(&cuts) });
        Ok(Some(cuts))
    }
}

#[cfg(test)]
pub(in crate::sql) mod tests {
    use arrow::array::{AsArray, BooleanArray, Int64Array, ListArray, StringArray};

    use super::*;

    pub(in crate::sql) fn make_table(lengths: &[usize]) -> RaggedTable {
        let n = i64::try_from(lengths.iter().sum::<usize>()).unwrap();
        RaggedTable::builder()
            .lengths(lengths.iter().copied())
            .unwrap()
            .column("v", 1, Arc::new(Int64Array::from_iter_values(0..n)))
            .build()
            .unwrap()
    }

    #[test]
    fn cuts_are_kept_as_far_as_their_offsets_are_few() {
        let at = |cuts: &Arc<Vec<WithArrays>>| Arc::as_ptr(cuts);
        let cuts = CutCache::default();
        let few = Arc::new(make_table(&[KEPT_BYTES / 8, 1, 2, 3]));
        let size = |leaves| BatchSize { rows: 8, leaves };
        let plan = |end, leaves| CutPlan { rows: 0..end, axis: 1, size: size(leaves) };
        let first = cuts.get(&few, &plan(4, 10)).unwrap().unwrap();
        assert_eq!(first.len(), 2);
        assert_eq!(at(&cuts.get(&few, &plan(4, 10)).unwrap().unwrap()), at(&first));
        assert_ne!(at(&cuts.get(&few, &plan(4, 1)).unwrap().unwrap()), at(&first));
        assert_ne!(at(&cuts.get(&few, &plan(2, 10)).unwrap().unwrap()), at(&first));
        let many = Arc::new(make_table(&vec![0; KEPT_BYTES / size_of::<i64>() + 1]));
        assert!(cuts.get(&many, &plan(many.num_rows(), 10)).unwrap().is_none());
        // If the cache is full, the batches of the oldest scan are removed from it.
        let half = Arc::new(make_table(&vec![0; KEPT_BYTES / size_of::<i64>() - 4]));
        let size = BatchSize { rows: 1 << 30, leaves: 1 << 30 };
        let plan = |axis| CutPlan { rows: 0..half.num_rows(), axis, size };
        let second = cuts.get(&half, &plan(1)).unwrap().unwrap();
        assert_eq!(at(&cuts.get(&half, &plan(1)).unwrap().unwrap()), at(&second));
        let kept: usize = cuts.0.lock().unwrap().iter().map(|kept| kept.bytes).sum();
        assert!(kept <= KEPT_BYTES, "{kept}");
        assert_eq!(cuts.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn leafless_lists_are_as_long_and_null_where_the_others_are() {
        let values: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3), None, Some(5)]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true, true, false]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "", "c", "d", "e"]));
        let table = RaggedTable::builder()
            .lengths([2, 0, 3])
            .unwrap()
            .column("v", 1, values)
            .column("f", 1, flags)
            .column("n", 1, names)
            .build()
            .unwrap();
        let schema = table.arrow_schema().unwrap();
        for rows in [0..3, 1..3, 2..3, 1..1] {
            let cut = WithArrays::new(&table, rows.clone()).unwrap();
            for (column, field) in schema.fields().iter().enumerate() {
                let of = to_leafless_type(field.data_type());
                assert_eq!(*leaf_type(&of), LEAFLESS);
                let (whole, leafless) = (
                    cut.find_array(&table, column, field.data_type()),
                    cut.find_array(&table, column, &of),
                );
                let (whole, leafless) = (whole.unwrap(), leafless.unwrap());
                leafless.to_data().validate_full().unwrap();
                let (whole, leafless) = (whole.as_list::<i32>(), leafless.as_list::<i32>());
                assert_eq!(whole.offsets(), leafless.offsets());
                assert_eq!(whole.values().len(), leafless.values().len());
                let nulls = |list: &ListArray| {
                    let values = list.values();
                    (0..values.len()).map(|i| values.is_null(i)).collect::<Vec<_>>()
                };
                assert_eq!(nulls(whole), nulls(leafless));
            }
        }
    }
}
