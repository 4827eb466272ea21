//! [`RaggedTableProvider`]: a table in memory as a table of SQL.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{
    Array, ArrayData, ArrayRef, GenericByteArray, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, BinaryType, ByteArrayType, DataType, FieldRef, Fields, LargeBinaryType,
    LargeUtf8Type, Schema, SchemaRef, Utf8Type,
};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::stream;

use crate::array::leaf_type;
use crate::config::SerrateOptions;
use crate::table::RaggedTable;

/// A [`RaggedTable`] as a table of SQL.
///
/// Columns are sibling lists. Partitions are ranges of rows with about as many leaves each; batches hold
/// about `serrate.leaf_batch_size` leaves and copy no values, and each is charged for its own extent of
/// the shared buffers only. The number of rows is exact in the statistics.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use serrate::arrow::array::{AsArray, UInt16Array};
/// use serrate::arrow::datatypes::Int64Type;
/// use serrate::sql::{RaggedTableProvider, session};
/// use serrate::table::RaggedTable;
///
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let ctx = session();
/// ctx.register_table("patients", Arc::new(RaggedTableProvider::try_new(table)?))?;
/// let rows = ctx.sql("SELECT count(*) FROM patients WHERE code[1] > 7").await?.collect().await?;
/// assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RaggedTableProvider {
    table: Arc<RaggedTable>,
    schema: SchemaRef,
    cuts: Arc<Cuts>,
}

impl RaggedTableProvider {
    /// Over a table, which is shared, not copied.
    ///
    /// # Errors
    /// When the table has no Arrow schema: a uniform axis larger than 2^31 - 1.
    pub fn try_new(table: RaggedTable) -> crate::Result<Self> {
        let schema = table.arrow_schema()?;
        Ok(Self { table: Arc::new(table), schema, cuts: Arc::default() })
    }

    /// The table.
    pub fn table(&self) -> &RaggedTable {
        &self.table
    }
}

#[async_trait]
impl TableProvider for RaggedTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let source = TableSource {
            schema: Arc::new(self.schema.project(&columns)?),
            partitions: partitions(&self.table, state.config().target_partitions())?,
            table: Arc::clone(&self.table),
            cuts: Arc::clone(&self.cuts),
            columns,
            limit,
            of_lengths: false,
        };
        Ok(DataSourceExec::from_data_source(source))
    }

    fn statistics(&self) -> Option<Statistics> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        Some(statistics(&self.table, &all, self.table.num_rows()))
    }
}

/// The deepest axis with columns among some.
pub(super) fn depth(table: &RaggedTable, columns: &[usize]) -> usize {
    columns.iter().filter_map(|c| table.columns().get(*c)).map(|c| c.axis()).max().unwrap_or(0)
}

/// At most `count` ranges of rows with about as many elements of the innermost axis each.
fn partitions(table: &RaggedTable, count: usize) -> Result<Vec<Range<usize>>> {
    let rows = table.num_rows();
    let axis = table.axes().len();
    let total = table.axis_len(axis)?;
    let mut parts = Vec::with_capacity(count);
    let mut start = 0;
    for part in 0..count {
        let left = count - part;
        if start == rows {
            break;
        }
        let before = elements(table, start, axis)?;
        let end = match left {
            1 => rows,
            _ => start + rows_within(table, start..rows, axis, (total - before).div_ceil(left))?,
        };
        parts.push(start..end);
        start = end;
    }
    if parts.is_empty() {
        parts.push(0..0);
    }
    Ok(parts)
}

/// Elements of `axis` before row `row`.
fn elements(table: &RaggedTable, row: usize, axis: usize) -> Result<usize> {
    let mut position = row;
    for axis in 1..=axis {
        let layout = table.layout(axis)?;
        let first = layout.ranges(0..0).start;
        position = layout.ranges(position..position).start - first;
    }
    Ok(position)
}

/// The most rows from `rows.start` on that hold at most `limit` elements of `axis`; one at least.
pub(super) fn rows_within(
    table: &RaggedTable,
    rows: Range<usize>,
    axis: usize,
    limit: usize,
) -> Result<usize> {
    let end = elements(table, rows.start, axis)?.saturating_add(limit);
    let (mut fits, mut over) = (rows.start + 1, rows.end + 1);
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        if elements(table, middle, axis)? <= end {
            fits = middle;
        } else {
            over = middle;
        }
    }
    Ok((fits - rows.start).min(rows.len()))
}

fn statistics(table: &RaggedTable, columns: &[usize], rows: usize) -> Statistics {
    let share = |bytes: usize| match table.num_rows() {
        0 => 0,
        all => (bytes as u128 * rows as u128 / all as u128).try_into().unwrap_or(usize::MAX),
    };
    let mut total = 0usize;
    let column_statistics = columns
        .iter()
        .filter_map(|c| table.columns().get(*c))
        .map(|column| {
            let width = column.data_type().primitive_width().unwrap_or(8);
            let bytes = share(column.values().len().saturating_mul(width));
            total = total.saturating_add(bytes);
            let mut statistics = ColumnStatistics::new_unknown();
            statistics.byte_size = Precision::Inexact(bytes);
            statistics
        })
        .collect();
    Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Inexact(total),
        column_statistics,
    }
}

/// Ranges of rows of a table.
#[derive(Clone, Debug)]
pub(super) struct TableSource {
    table: Arc<RaggedTable>,
    cuts: Arc<Cuts>,
    columns: Vec<usize>,
    schema: SchemaRef,
    partitions: Vec<Range<usize>>,
    limit: Option<usize>,
    /// Whether nobody looks at more than the lengths of lists.
    of_lengths: bool,
}

impl TableSource {
    /// The same rows for somebody who looks at the lengths of lists only: batches are cut by rows, and
    /// few lists are worth no second thread. `hollow` lists have leaves without values, which cost nothing
    /// to move: the types of the columns are [`hollow`] ones.
    pub(super) fn of_lengths(&self, hollow: bool) -> Result<Self> {
        let mut source = Self { of_lengths: true, ..self.clone() };
        if hollow {
            let of = |field: &FieldRef| {
                let data_type = self::hollow(field.data_type());
                Arc::new(field.as_ref().clone().with_data_type(data_type))
            };
            let fields: Fields = self.schema.fields().iter().map(of).collect();
            let metadata = self.schema.metadata().clone();
            source.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        }
        let windows = self.table.windows(self.rows())?;
        let lists: usize = windows.iter().rev().skip(1).map(ExactSizeIterator::len).sum();
        if lists <= FEW_LISTS && self.limit.is_none() {
            source.partitions = vec![self.rows()];
        }
        Ok(source)
    }

    /// From the first row on to the last; those between are all there.
    fn rows(&self) -> Range<usize> {
        let start = self.partitions.first().map_or(0, |part| part.start);
        start..self.partitions.last().map_or(start, |part| part.end)
    }

    /// The same rows without the first `skip` of them, at most `fetch`. `None` where the limit of each
    /// partition would leave rows out in between.
    pub(super) fn window(&self, skip: usize, fetch: Option<usize>) -> Option<Self> {
        let fetch = match (self.limit, self.partitions.len()) {
            (None, _) => fetch,
            (Some(limit), 1) => Some(fetch.unwrap_or(usize::MAX).min(limit.saturating_sub(skip))),
            (Some(limit), _) => Some(fetch.filter(|n| skip.saturating_add(*n) <= limit)?),
        };
        let (mut skip, mut left) = (skip, fetch.unwrap_or(usize::MAX));
        let mut partitions: Vec<Range<usize>> = Vec::new();
        for part in &self.partitions {
            let skipped = part.len().min(skip);
            let taken = (part.len() - skipped).min(left);
            let start = part.start + skipped;
            (skip, left) = (skip - skipped, left - taken);
            if taken > 0 {
                partitions.push(start..start + taken);
            }
        }
        if partitions.is_empty() {
            partitions.push(0..0);
        }
        Some(Self { partitions, limit: None, ..self.clone() })
    }
}

/// Some rows of some columns of a table as batches of about `leaves` elements of an axis each and at most
/// `batch_size` rows; values are not copied.
pub(super) fn batches(
    table: Arc<RaggedTable>,
    columns: Vec<usize>,
    schema: SchemaRef,
    axis: usize,
    rows: Range<usize>,
    size: (usize, usize),
) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    // No other column is cut.
    let of_columns = table.of_columns(&columns);
    let columns: Vec<usize> = (0..columns.len()).collect();
    ranges(table, axis, rows, size)
        .map(move |rows| Cut::new(&of_columns, rows?)?.batch(&columns, &schema))
}

/// Rows in parts of about `leaves` elements of an axis each and at most `batch_size` rows.
fn ranges(
    table: Arc<RaggedTable>,
    axis: usize,
    rows: Range<usize>,
    (leaves, batch_size): (usize, usize),
) -> impl Iterator<Item = Result<Range<usize>>> + Send {
    let mut rows = rows;
    std::iter::from_fn(move || {
        if rows.is_empty() {
            return None;
        }
        let most = rows.start..rows.end.min(rows.start.saturating_add(batch_size));
        let count = match axis {
            0 => Ok(most.len()),
            axis => rows_within(&table, most, axis, leaves),
        };
        let part = count.map(|count| rows.start..rows.start + count);
        rows.start = part.as_ref().map_or(rows.end, |part| part.end);
        Some(part)
    })
}

/// Leaves without values, which are null or not.
const HOLLOW: DataType = DataType::FixedSizeBinary(0);

/// The same lists of [`HOLLOW`] leaves, where it is in the array itself which leaves are null.
fn hollow(data_type: &DataType) -> DataType {
    let open = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(hollow(field.data_type())))
    };
    match data_type {
        DataType::List(field) => DataType::List(open(field)),
        DataType::LargeList(field) => DataType::LargeList(open(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(open(field), *size),
        DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => HOLLOW,
        leaf if leaf.is_primitive() => HOLLOW,
        leaf => leaf.clone(),
    }
}

/// Rows of a table with offsets that begin at zero, which all columns share, and the columns that were
/// asked for as Arrow arrays, with their values and without.
#[derive(Debug)]
struct Cut {
    rows: Range<usize>,
    part: RaggedTable,
    arrays: Vec<[OnceLock<ArrayRef>; 2]>,
}

impl Cut {
    fn new(table: &RaggedTable, rows: Range<usize>) -> Result<Self> {
        let part = table.slice(rows.clone())?.rebased();
        let arrays = part.columns().iter().map(|_| Default::default()).collect();
        Ok(Self { rows, part, arrays })
    }

    fn array(&self, column: usize, data_type: &DataType) -> Result<ArrayRef> {
        let whole = &self.part.columns()[column];
        let hollow = *leaf_type(data_type) == HOLLOW && *whole.data_type() != HOLLOW;
        let kept = &self.arrays[column][usize::from(hollow)];
        if let Some(array) = kept.get() {
            return Ok(Arc::clone(array));
        }
        let mut array = self.part.column_array(whole)?;
        if hollow {
            let (len, nulls) = (whole.values().len(), whole.values().nulls().cloned());
            let data = ArrayData::builder(HOLLOW).len(len).nulls(nulls);
            array = array.with_leaves(make_array(data.add_buffer(Buffer::default()).build()?))?;
        }
        let array = own_extent(&array.to_arrow_as(data_type)?);
        Ok(Arc::clone(kept.get_or_init(|| array)))
    }

    fn batch(&self, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let arrays = columns
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| self.array(*column, field.data_type()))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// So many lists are gone through in a fraction of a millisecond.
const FEW_LISTS: usize = 1 << 19;

/// Offsets of cuts that are kept may take so many bytes in all.
const KEPT_BYTES: usize = 64 << 20;

/// A way to cut a table: rows, the axis whose elements are counted, elements and rows at most.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    rows: Range<usize>,
    axis: usize,
    size: (usize, usize),
}

/// Rows of a table that are cut in one way.
#[derive(Debug)]
struct Kept {
    way: Way,
    bytes: usize,
    cuts: Arc<Vec<Cut>>,
}

/// The cuts of a table that were scanned last, for the next scan: a query of a millisecond would spend
/// it on offsets that begin at zero.
#[derive(Debug, Default)]
struct Cuts(Mutex<Vec<Kept>>);

impl Cuts {
    fn find(&self, way: &Way) -> Option<Arc<Vec<Cut>>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.way == *way).map(|kept| Arc::clone(&kept.cuts))
    }

    /// The parts of a table cut in one way; `None` when their offsets are too many to be kept.
    fn get(&self, table: &Arc<RaggedTable>, way: &Way) -> Result<Option<Arc<Vec<Cut>>>> {
        if let Some(cuts) = self.find(way) {
            return Ok(Some(cuts));
        }
        // What stands on the last axis are leaves, of which nothing is copied.
        let windows = table.windows(way.rows.clone())?;
        let lists: usize = windows.iter().rev().skip(1).map(ExactSizeIterator::len).sum();
        let bytes = lists.saturating_mul(size_of::<i64>());
        if bytes > KEPT_BYTES {
            return Ok(None);
        }
        let cuts = ranges(Arc::clone(table), way.axis, way.rows.clone(), way.size)
            .map(|rows| Cut::new(table, rows?))
            .collect::<Result<Vec<_>>>()?;
        let cuts = Arc::new(cuts);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.way != *way);
        while kept.iter().map(|kept| kept.bytes).sum::<usize>() > KEPT_BYTES - bytes {
            kept.remove(0);
        }
        kept.push(Kept { way: way.clone(), bytes, cuts: Arc::clone(&cuts) });
        Ok(Some(cuts))
    }
}

impl DataSource for TableSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let leaves = SerrateOptions::of(context.session_config().options()).leaf_batch_size;
        let batch_size = context.session_config().batch_size();
        let mut rows = self.partitions.get(partition).cloned().unwrap_or(0..0);
        if let Some(limit) = self.limit {
            rows.end = rows.end.min(rows.start.saturating_add(limit));
        }
        let (columns, schema) = (self.columns.clone(), Arc::clone(&self.schema));
        let size = (leaves, batch_size);
        let axis = if self.of_lengths { 0 } else { depth(&self.table, &columns) };
        let way = Way { rows: rows.clone(), axis, size };
        // A few rows are cut as they are wanted.
        let few = self.limit.is_some() || self.rows().len() < self.table.num_rows();
        let kept = if few { None } else { self.cuts.get(&self.table, &way)? };
        Ok(match kept {
            Some(cuts) => {
                let of = Arc::clone(&schema);
                let batches = (0..cuts.len()).map(move |i| cuts[i].batch(&columns, &of));
                Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
            }
            None => {
                let table = Arc::clone(&self.table);
                let batches = batches(table, columns, Arc::clone(&schema), axis, rows, size);
                Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
            }
        })
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        let rows = self.rows();
        match rows.len() == self.table.num_rows() {
            true => write!(f, "RaggedTable: rows={}", rows.len())?,
            false => write!(f, "RaggedTable: rows={}..{}", rows.start, rows.end)?,
        }
        write!(f, ", projection=[{}]", names.join(", "))?;
        if self.of_lengths {
            write!(f, ", lengths only")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(self.partitions.len())
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(Arc::clone(&self.schema))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let rows = |r: &Range<usize>| r.len().min(limit);
        let rows = match partition {
            Some(p) => self.partitions.get(p).map_or(0, rows),
            None => self.partitions.iter().map(rows).sum(),
        };
        Ok(Arc::new(statistics(&self.table, &self.columns, rows)))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        Some(Arc::new(Self { limit, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The same array with buffers that own no more than it uses, so that whoever adds up the memory of
/// batches does not count the whole table with each. Values are not copied; the offsets of texts are,
/// as they count from the first byte. The values of a dictionary, and the data of text views, stay
/// whole: any value may be used anywhere.
pub(super) fn own_extent(array: &ArrayRef) -> ArrayRef {
    make_array(own_data(&array.to_data()))
}

fn own_data(data: &ArrayData) -> ArrayData {
    match data.data_type() {
        DataType::Utf8 => return own_texts::<Utf8Type>(data),
        DataType::Binary => return own_texts::<BinaryType>(data),
        DataType::LargeUtf8 => return own_texts::<LargeUtf8Type>(data),
        DataType::LargeBinary => return own_texts::<LargeBinaryType>(data),
        _ => {}
    }
    let buffers = data.buffers().iter().map(own_buffer).collect();
    let children = data.child_data().iter().map(own_data).collect();
    let nulls = data.nulls().map(own_nulls);
    let data = data.clone().into_builder().buffers(buffers).child_data(children).nulls(nulls);
    // SAFETY: `data` was valid, and its buffers hold what they held.
    unsafe { data.build_unchecked() }
}

/// Texts whose bytes start at the first of them.
fn own_texts<T: ByteArrayType>(data: &ArrayData) -> ArrayData {
    let (offsets, values, nulls) = GenericByteArray::<T>::from(data.clone()).into_parts();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let values = values.slice_with_length(first.as_usize(), last.as_usize() - first.as_usize());
    let offsets: ScalarBuffer<T::Offset> = match first.as_usize() {
        0 => own_buffer(offsets.inner().inner()).into(),
        _ => offsets.iter().map(|o| *o - first).collect(),
    };
    let nulls = nulls.as_ref().map(own_nulls);
    // SAFETY: offsets that were in order and within the values still are, less the first of them, and
    // the bytes between two of them are the same text.
    let texts = unsafe {
        let offsets = OffsetBuffer::new_unchecked(offsets);
        GenericByteArray::<T>::new_unchecked(offsets, own_buffer(&values), nulls)
    };
    texts.into_data()
}

fn own_nulls(nulls: &NullBuffer) -> NullBuffer {
    let bits = nulls.inner();
    NullBuffer::new(BooleanBuffer::new(own_buffer(bits.inner()), bits.offset(), bits.len()))
}

/// The part of an allocation that a buffer sees, as an allocation of its own.
fn own_buffer(buffer: &Buffer) -> Buffer {
    if buffer.capacity() == buffer.len() {
        return buffer.clone();
    }
    Buffer::from(Bytes::from_owner(Shared(buffer.clone())))
}

/// A buffer as an owner of bytes.
struct Shared(Buffer);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Registers a table under a name, replacing what had it.
///
/// # Errors
/// As [`RaggedTableProvider::try_new`], or when the name is not valid in the catalog.
pub fn register_table(
    ctx: &datafusion::prelude::SessionContext,
    name: &str,
    table: RaggedTable,
) -> Result<()> {
    ctx.deregister_table(name)?;
    ctx.register_table(name, Arc::new(RaggedTableProvider::try_new(table)?))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        AsArray, BinaryArray, BooleanArray, Int64Array, LargeStringArray, ListArray, StringArray,
    };
    use arrow::datatypes::Field;

    fn table(lengths: &[usize]) -> RaggedTable {
        let n = i64::try_from(lengths.iter().sum::<usize>()).unwrap();
        RaggedTable::builder()
            .lengths(lengths.iter().copied())
            .unwrap()
            .column("v", 1, Arc::new(Int64Array::from_iter_values(0..n)))
            .build()
            .unwrap()
    }

    #[test]
    fn partitions_cover_all_rows_once_and_balance_leaves() {
        for (lengths, count) in [
            (vec![1; 100], 4),
            (vec![0; 10], 4),
            (vec![1000, 0, 0, 1, 1, 1], 4),
            (vec![0, 0, 1000], 2),
            (vec![], 3),
            (vec![5], 8),
        ] {
            for skip in [0, 1.min(lengths.len())] {
                let table = table(&lengths).slice(skip..lengths.len()).unwrap();
                let parts = partitions(&table, count).unwrap();
                assert!(parts.len() <= count);
                let mut next = 0;
                for part in &parts {
                    assert_eq!(part.start, next);
                    next = part.end;
                }
                assert_eq!(next, table.num_rows(), "{lengths:?}");
            }
        }
        let even = partitions(&table(&[1; 100]), 4).unwrap();
        assert_eq!(even, [0..25, 25..50, 50..75, 75..100]);
    }

    #[test]
    fn cuts_are_kept_as_far_as_their_offsets_are_few() {
        let at = |cuts: &Arc<Vec<Cut>>| Arc::as_ptr(cuts);
        let cuts = Cuts::default();
        let few = Arc::new(table(&[KEPT_BYTES / 8, 1, 2, 3]));
        let way = |end, size| Way { rows: 0..end, axis: 1, size: (size, 8) };
        let first = cuts.get(&few, &way(4, 10)).unwrap().unwrap();
        assert_eq!(first.len(), 2);
        assert_eq!(at(&cuts.get(&few, &way(4, 10)).unwrap().unwrap()), at(&first));
        assert_ne!(at(&cuts.get(&few, &way(4, 1)).unwrap().unwrap()), at(&first));
        assert_ne!(at(&cuts.get(&few, &way(2, 10)).unwrap().unwrap()), at(&first));
        let many = Arc::new(table(&vec![0; KEPT_BYTES / size_of::<i64>() + 1]));
        assert!(cuts.get(&many, &way(many.num_rows(), 10)).unwrap().is_none());
        // The oldest go when there is no room.
        let half = Arc::new(table(&vec![0; KEPT_BYTES / size_of::<i64>() - 4]));
        let way = |axis| Way { rows: 0..half.num_rows(), axis, size: (1 << 30, 1 << 30) };
        let second = cuts.get(&half, &way(1)).unwrap().unwrap();
        assert_eq!(at(&cuts.get(&half, &way(1)).unwrap().unwrap()), at(&second));
        let kept: usize = cuts.0.lock().unwrap().iter().map(|kept| kept.bytes).sum();
        assert!(kept <= KEPT_BYTES, "{kept}");
        assert_eq!(cuts.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_window_is_what_a_limit_leaves() {
        let table = table(&[1; 100]);
        let provider = RaggedTableProvider::try_new(table).unwrap();
        let source = |parts: &[Range<usize>], limit| TableSource {
            table: Arc::clone(&provider.table),
            cuts: Arc::clone(&provider.cuts),
            columns: vec![0],
            schema: Arc::clone(&provider.schema),
            partitions: parts.to_vec(),
            limit,
            of_lengths: false,
        };
        let (halves, all) = ([0..40, 40..100], 0..100);
        let all = std::slice::from_ref(&all);
        for (parts, limit) in [
            (&halves[..], None),
            (&halves, Some(30)),
            (&halves, Some(50)),
            (all, None),
            (all, Some(50)),
        ] {
            let given = source(parts, limit);
            let rows: Vec<usize> =
                parts.iter().flat_map(|p| p.clone().take(limit.unwrap_or(usize::MAX))).collect();
            for (skip, fetch) in [
                (0, Some(5)),
                (10, Some(20)),
                (35, Some(15)),
                (38, Some(62)),
                (7, None),
                (200, None),
            ] {
                let Some(window) = given.window(skip, fetch) else {
                    assert!(limit.is_some() && parts.len() > 1, "{skip} {fetch:?}");
                    continue;
                };
                let expected = rows.iter().copied().skip(skip).take(fetch.unwrap_or(usize::MAX));
                let found = window.partitions.iter().cloned().flatten();
                assert!(found.eq(expected), "{parts:?} {limit:?} {skip} {fetch:?}");
            }
        }
    }

    #[test]
    fn hollow_lists_are_as_long_and_null_where_the_others_are() {
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
            let cut = Cut::new(&table, rows.clone()).unwrap();
            for (column, field) in schema.fields().iter().enumerate() {
                let of = hollow(field.data_type());
                assert_eq!(*leaf_type(&of), HOLLOW);
                let (whole, hollow) =
                    (cut.array(column, field.data_type()), cut.array(column, &of));
                let (whole, hollow) = (whole.unwrap(), hollow.unwrap());
                hollow.to_data().validate_full().unwrap();
                let (whole, hollow) = (whole.as_list::<i32>(), hollow.as_list::<i32>());
                assert_eq!(whole.offsets(), hollow.offsets());
                assert_eq!(whole.values().len(), hollow.values().len());
                let nulls = |list: &ListArray| {
                    let values = list.values();
                    (0..values.len()).map(|i| values.is_null(i)).collect::<Vec<_>>()
                };
                assert_eq!(nulls(whole), nulls(hollow));
            }
        }
    }

    #[test]
    fn a_slice_is_charged_its_own_extent() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let part = own_extent(&values.slice(10, 5));
        assert_eq!(*part, *values.slice(10, 5));
        assert!(part.get_array_memory_size() < 300, "{}", part.get_array_memory_size());
        let at = |a: &ArrayRef| a.to_data().buffers()[0].as_ptr();
        assert_eq!(at(&part), at(&values).wrapping_add(80));
    }
    #[test]
    fn texts_are_charged_their_own_bytes() {
        let texts: Vec<Option<String>> =
            (0..1000).map(|i| (i % 7 != 3).then(|| "ü".repeat(i % 50))).collect();
        let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let large: ArrayRef = Arc::new(LargeStringArray::from(texts.clone()));
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter(texts));
        let offsets = OffsetBuffer::from_lengths(vec![10; 100]);
        let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, plain.clone(), None));
        for (whole, rows) in [(plain, 10), (large, 10), (bytes, 10), (lists, 1)] {
            for start in [0, 40, 90] {
                let slice = whole.slice(start, rows);
                // What a list points to is cut by whoever makes the list.
                let slice = match slice.as_list_opt::<i32>() {
                    None => slice,
                    Some(list) => list.values().slice(list.value_offsets()[0].as_usize(), 10),
                };
                let part = own_extent(&slice);
                assert_eq!(*part, *slice);
                part.to_data().validate_full().unwrap();
                let held: usize = part.to_data().buffers().iter().map(Buffer::capacity).sum();
                assert!(held <= 10 * 100 + 11 * 8, "{held} bytes in {}", part.data_type());
            }
        }
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        assert_eq!(own_extent(&none).len(), 0);
    }
}
