//! The scan of `.nrt` files.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::{StreamExt, stream};
use object_store::ObjectStore;

use super::conditions::{RowFilter, narrow_rows};
use super::input::{HeaderCache, NrtInput};
use super::position_fields::{FILE, ROW, file_name};
use super::scan::{NrtScan, ReadMetrics, is_file_wanted};
use super::scan_columns::ScanColumns;
use crate::config::{NrtNan, SerrateOptions};
use crate::sql::base::measured_lists::find_measured_columns;

/// A scan of `.nrt` files, with its columns, its conditions, and the settings of the session at
/// planning.
#[derive(Clone)]
pub(in crate::sql) struct NrtSource {
    schema: TableSchema,
    projection: SplitProjection,
    filter: RowFilter,
    options: SerrateOptions,
    headers: Option<HeaderCache>,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl NrtSource {
    pub(in crate::sql) fn new(schema: TableSchema, options: SerrateOptions) -> Self {
        let projection = SplitProjection::unprojected(&schema);
        Self {
            schema,
            projection,
            filter: RowFilter::default(),
            options,
            headers: None,
            batch_size: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    pub(super) fn with_options(&self, options: SerrateOptions, headers: HeaderCache) -> Self {
        Self { options, headers: Some(headers), ..self.clone() }
    }
}

impl FileSource for NrtSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let schema = self.schema.file_schema().project(&self.projection.file_indices)?;
        let nan_is_null = self.options.nrt_nan == NrtNan::Null;
        let filter =
            if config.limit.is_some() { self.filter.remove_dynamic() } else { self.filter.clone() };
        let opener = NrtOpener {
            store,
            url: config.object_store_url.clone(),
            lengths: find_measured_columns(self.projection.source.iter(), &schema, nan_is_null),
            schema: Arc::new(schema),
            table: self.schema.clone(),
            filter,
            limit: config.limit,
            options: self.options.clone(),
            headers: self.headers.clone(),
            batch_size: self.batch_size,
            read: ReadMetrics::new(&self.metrics, partition),
            skipped: MetricBuilder::new(&self.metrics).counter("files_skipped", partition),
        };
        ProjectionOpener::try_new(
            self.projection.clone(),
            Arc::new(opener),
            self.schema.file_schema(),
        )
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size, ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.filter.predicate()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let taken: Vec<bool> =
            filters.iter().map(|f| RowFilter::accepts_condition(f, &self.schema)).collect();
        let answers = taken.iter().map(|t| if *t { PushedDown::Yes } else { PushedDown::No });
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers.collect());
        if !taken.contains(&true) {
            return Ok(answer);
        }
        let more = filters.into_iter().zip(taken).filter_map(|(f, taken)| taken.then_some(f));
        let source = Self { filter: self.filter.with_conditions(more), ..self.clone() };
        Ok(answer.with_updated_node(Arc::new(source)))
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "nrt"
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.filter.is_empty() {
            return Ok(());
        }
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "rows={}", self.filter),
            _ => write!(f, ", rows=[{}]", self.filter),
        }
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        match datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)? {
            TreeNodeRecursion::Stop => Ok(TreeNodeRecursion::Stop),
            _ => self.filter.visit_conditions(f),
        }
    }
}

/// Opens one file, or the rows of it that correspond to a byte range.
struct NrtOpener {
    store: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
    /// The columns to return, in the types of the table.
    schema: SchemaRef,
    /// Names of the columns of `schema` that are needed only for the lengths of their lists.
    lengths: Vec<String>,
    /// All columns of the table. Conditions may depend on columns that are not returned.
    table: TableSchema,
    filter: RowFilter,
    limit: Option<usize>,
    options: SerrateOptions,
    headers: Option<HeaderCache>,
    batch_size: usize,
    read: ReadMetrics,
    /// Metric: number of files that the scan did not open.
    skipped: Count,
}

impl NrtOpener {
    fn read_constants(&self, file: &PartitionedFile) -> Result<HashMap<String, ScalarValue>> {
        let columns = self.table.table_partition_cols().iter().zip(&file.partition_values);
        let mut constants: HashMap<String, ScalarValue> =
            columns.map(|(field, value)| (field.name().clone(), value.clone())).collect();
        // A numeric column `_file` is a column stored in the files, and not the column of file
        // names.
        if let Ok(field) = self.table.file_schema().field_with_name(FILE)
            && field.data_type().is_string()
        {
            let name = file_name(&self.url, &file.object_meta.location);
            let name = ScalarValue::Utf8(Some(name)).cast_to(field.data_type())?;
            constants.insert(FILE.to_owned(), name);
        }
        Ok(constants)
    }
}

impl FileOpener for NrtOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let constants = self.read_constants(&file)?;
        let now = self.filter.group_conditions(|name| constants.contains_key(name), false)?;
        if !is_file_wanted(&now, &constants)? {
            self.skipped.add(1);
            return Ok(Box::pin(async { Ok(stream::empty().boxed()) }));
        }
        let store = Arc::clone(&self.store);
        let (schema, table) = (Arc::clone(&self.schema), Arc::clone(self.table.file_schema()));
        let (filter, limit, read) = (self.filter.clone(), self.limit, self.read.clone());
        let (options, batch_size) = (self.options.clone(), self.batch_size);
        let name = file_name(&self.url, &file.object_meta.location);
        let (headers, lengths) = (self.headers.clone(), self.lengths.clone());
        Ok(Box::pin(async move {
            let meta = &file.object_meta;
            let input =
                NrtInput::open(&store, meta, Some(name), options.mmap, headers.as_ref()).await?;
            let all = input.num_rows();
            let mut rows = match &file.range {
                None => 0..all,
                Some(range) => find_rows_of_range(range.start, range.end, meta.size, all),
            };
            let limit = limit.unwrap_or(usize::MAX);
            if filter.is_empty() {
                rows.end = rows.end.min(rows.start.saturating_add(limit));
            } else if input.find_column(ROW).is_none() {
                let now = filter.group_conditions(|name| constants.contains_key(name), true)?;
                rows = narrow_rows(&now.rows, rows);
            }
            let nan_is_null = options.nrt_nan == NrtNan::Null;
            let output = ScanColumns::try_new(&input, schema, &constants, &lengths, nan_is_null)?;
            let scan = NrtScan {
                input,
                output,
                table,
                constants,
                filter,
                nan_is_null,
                batch_size,
                leaves: options.leaf_batch_size,
                left: AtomicUsize::new(limit),
                read,
                counted: (AtomicU64::new(0), AtomicU64::new(0)),
            };
            Ok(Arc::new(scan).stream_rows(rows))
        }))
    }
}

/// Returns the rows that correspond to the byte range `start..end` of a file of `size` bytes. Row
/// `r` of `rows` belongs to the range that contains byte `floor(r * size / rows)`.
fn find_rows_of_range(start: i64, end: i64, size: u64, rows: usize) -> Range<usize> {
    let first = |byte: i64| {
        // The first r with r * size / rows >= byte is ceil(byte * rows / size).
        let byte = u128::from(u64::try_from(byte).unwrap_or(0));
        let scaled = byte.saturating_mul(rows as u128);
        match u128::from(size) {
            0 => 0,
            size => usize::try_from(scaled.div_ceil(size)).unwrap_or(rows).min(rows),
        }
    };
    first(start)..first(end).max(first(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_bytes_give_every_row_once() {
        for rows in [0usize, 1, 2, 3, 10, 1000, 4097] {
            for size in [1u64, 7, 100, 1000, 1 << 20] {
                for cuts in [1i64, 2, 3, 4, 7, 64] {
                    let size_i = i64::try_from(size).unwrap();
                    let mut next = 0;
                    for c in 0..cuts {
                        let (a, b) = (size_i * c / cuts, size_i * (c + 1) / cuts);
                        let part = find_rows_of_range(a, b, size, rows);
                        assert_eq!(part.start, next, "rows {rows} size {size} cut {c} of {cuts}");
                        next = part.end;
                        for r in part {
                            let byte = r as u128 * u128::from(size) / rows as u128;
                            assert!((a..b).contains(&i64::try_from(byte).unwrap()));
                        }
                    }
                    assert_eq!(next, rows);
                }
            }
        }
    }
}
