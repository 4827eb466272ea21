//! Ragged tables in memory as SQL tables.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::stream;

use super::range_partitions::{read_ranges, write_limit};
use crate::config::SerrateOptions;
use crate::sql::exec::cut_batches::{
    BatchSize, CutCache, CutPlan, count_elements_before, count_fitting_rows, cut_batches,
    find_deepest_axis, to_leafless_type,
};
use crate::sql::sources::{describe_table, select_columns};
use crate::table::RaggedTable;

/// A [`RaggedTable`] as a SQL table.
///
/// Columns below axis 0 (the rows) are lists; all columns of an axis (level of lists) have the same
/// list lengths. Partitions are ranges of rows with about equal numbers of leaves (innermost list
/// elements). Batches hold about `serrate.leaf_batch_size` leaves, copy no values, and count only
/// their own part of the shared buffers as memory. The number of rows in the statistics is exact.
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
/// let provider = RaggedTableProvider::try_new(table)?;
/// assert_eq!(provider.table().num_rows(), 2);
/// ctx.register_table("patients", Arc::new(provider))?;
/// let rows = ctx.sql("SELECT count(*) FROM patients WHERE code[1] > 7").await?.collect().await?;
/// assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RaggedTableProvider {
    table: Arc<RaggedTable>,
    schema: SchemaRef,
    cuts: Arc<CutCache>,
}

impl RaggedTableProvider {
    /// Creates a provider over a table, which is shared and not copied.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serrate::arrow::array::Int32Array;
    /// use serrate::RaggedTable;
    /// use serrate::datafusion::datasource::TableProvider;
    /// use serrate::sql::RaggedTableProvider;
    /// let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// assert_eq!(RaggedTableProvider::try_new(table)?.schema().field(0).name(), "age");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the table has no Arrow schema, because a uniform axis, whose lists all have the same
    /// length, has lists of more than 2^31 - 1 elements.
    pub fn try_new(table: RaggedTable) -> crate::Result<Self> {
        let schema = table.arrow_schema()?;
        Ok(Self { table: Arc::new(table), schema, cuts: Arc::default() })
    }

    /// Returns the table.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serrate::arrow::array::Int32Array;
    /// use serrate::RaggedTable;
    /// use serrate::sql::RaggedTableProvider;
    /// let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// assert_eq!(RaggedTableProvider::try_new(table.clone())?.table(), &table);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn table(&self) -> &RaggedTable {
        &self.table
    }
}

#[async_trait]
impl TableProvider for RaggedTableProvider {
    describe_table!(Base);

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = select_columns(projection, &self.schema);
        let source = TableSource {
            schema: Arc::new(self.schema.project(&columns)?),
            partitions: cut_partitions(&self.table, state.config().target_partitions())?,
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
        Some(compute_statistics(&self.table, &all, self.table.num_rows()))
    }
}

/// Divides rows into at most `count` ranges with about equal numbers of innermost list elements.
fn cut_partitions(table: &RaggedTable, count: usize) -> Result<Vec<Range<usize>>> {
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
        let before = count_elements_before(table, start, axis)?;
        let end = match left {
            1 => rows,
            _ => {
                start
                    + count_fitting_rows(table, start..rows, axis, (total - before).div_ceil(left))?
            }
        };
        parts.push(start..end);
        start = end;
    }
    if parts.is_empty() {
        parts.push(0..0);
    }
    Ok(parts)
}

fn compute_statistics(table: &RaggedTable, columns: &[usize], rows: usize) -> Statistics {
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

/// Maximum number of lists for which a query that needs only list lengths runs on one thread. One
/// thread scans the lengths of this many lists in less than a millisecond.
const FEW_LISTS: usize = 1 << 19;

/// A scan of a table in memory. Each partition is a range of rows.
#[derive(Clone, Debug)]
pub(in crate::sql) struct TableSource {
    table: Arc<RaggedTable>,
    cuts: Arc<CutCache>,
    columns: Vec<usize>,
    schema: SchemaRef,
    partitions: Vec<Range<usize>>,
    limit: Option<usize>,
    of_lengths: bool,
}

impl TableSource {
    /// Returns the source for a query that needs only list lengths. It limits batches by rows
    /// alone, not by leaves (innermost list elements), and has one partition for at most
    /// [`FEW_LISTS`] lists. If `without_leaves` is true, columns have the types of
    /// [`to_leafless_type`].
    pub(in crate::sql) fn reduce_to_lengths(&self, without_leaves: bool) -> Result<Self> {
        let mut source = Self { of_lengths: true, ..self.clone() };
        if without_leaves {
            let of = |field: &FieldRef| {
                let data_type = to_leafless_type(field.data_type());
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

    /// Returns the range of rows that all partitions cover together. There are no gaps between
    /// partitions.
    fn rows(&self) -> Range<usize> {
        let start = self.partitions.first().map_or(0, |part| part.start);
        start..self.partitions.last().map_or(start, |part| part.end)
    }

    /// Returns this source without its first `skip` rows and with at most `fetch` of the rows after
    /// these. If there are several partitions and `limit` is set, each partition stops after
    /// `limit` rows, and only the first `limit` rows of the source are without gaps. Returns `None`
    /// if the rows to return may not all be among these.
    pub(in crate::sql) fn take_window(&self, skip: usize, fetch: Option<usize>) -> Option<Self> {
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

impl DataSource for TableSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut rows = self.partitions.get(partition).cloned().unwrap_or(0..0);
        if let Some(limit) = self.limit {
            rows.end = rows.end.min(rows.start.saturating_add(limit));
        }
        let (columns, schema) = (self.columns.clone(), Arc::clone(&self.schema));
        let size = BatchSize {
            rows: context.session_config().batch_size(),
            leaves: SerrateOptions::of(context.session_config().options()).leaf_batch_size,
        };
        let axis = if self.of_lengths { 0 } else { find_deepest_axis(&self.table, &columns) };
        let plan = CutPlan { rows: rows.clone(), axis, size };
        // The row ranges of the batches are cached, unless the scan has a limit or reads only some
        // rows of the table.
        let few = self.limit.is_some() || self.rows().len() < self.table.num_rows();
        let kept = if few { None } else { self.cuts.get(&self.table, &plan)? };
        Ok(match kept {
            Some(cuts) => {
                let (table, of) = (Arc::clone(&self.table), Arc::clone(&schema));
                let batches =
                    (0..cuts.len()).map(move |i| cuts[i].make_batch(&table, &columns, &of));
                Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
            }
            None => {
                let table = Arc::clone(&self.table);
                let batches = cut_batches(table, columns, Arc::clone(&schema), axis, rows, size);
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
        write_limit(f, self.limit)
    }

    read_ranges!(schema);

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let rows = |r: &Range<usize>| r.len().min(limit);
        let rows = match partition {
            Some(p) => self.partitions.get(p).map_or(0, rows),
            None => self.partitions.iter().map(rows).sum(),
        };
        Ok(Arc::new(compute_statistics(&self.table, &self.columns, rows)))
    }

    read_ranges!(without_expressions);
}

/// Registers a table under a name, and replaces a table that has this name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use serrate::arrow::array::{AsArray, UInt16Array};
/// use serrate::arrow::datatypes::Int64Type;
/// use serrate::RaggedTable;
/// use serrate::sql::{register_table, session, sql};
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
///     .build()?;
/// let ctx = session();
/// register_table(&ctx, "patients", table)?;
/// let rows = sql(&ctx, "SELECT count(*) FROM patients WHERE code[1] > 7").await?.collect().await?;
/// assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Like [`RaggedTableProvider::try_new`], or when the name is not valid in the catalog.
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
    use crate::sql::exec::cut_batches::tests::make_table;

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
                let table = make_table(&lengths).slice(skip, lengths.len() - skip).unwrap();
                let parts = cut_partitions(&table, count).unwrap();
                assert!(parts.len() <= count);
                let mut next = 0;
                for part in &parts {
                    assert_eq!(part.start, next);
                    next = part.end;
                }
                assert_eq!(next, table.num_rows(), "{lengths:?}");
            }
        }
        let even = cut_partitions(&make_table(&[1; 100]), 4).unwrap();
        assert_eq!(even, [0..25, 25..50, 50..75, 75..100]);
    }

    #[test]
    fn a_window_is_what_a_limit_leaves() {
        let table = make_table(&[1; 100]);
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
                let Some(window) = given.take_window(skip, fetch) else {
                    assert!(limit.is_some() && parts.len() > 1, "{skip} {fetch:?}");
                    continue;
                };
                let expected = rows.iter().copied().skip(skip).take(fetch.unwrap_or(usize::MAX));
                let found = window.partitions.iter().cloned().flatten();
                assert!(found.eq(expected), "{parts:?} {limit:?} {skip} {fetch:?}");
            }
        }
    }
}
