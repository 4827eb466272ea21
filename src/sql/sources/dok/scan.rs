//! Reads all entries of a DOK file (a sparse tensor or a dictionary), or looks up the entries of
//! some keys.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source::DataSource;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use crate::sql::sources::range_partitions::{read_ranges, write_limit};
use crate::sql::sources::select_columns;
use serrate_core::internal::keyed::KeyedVersion;
use serrate_core::internal::{build_record_batch, trim_extent};

/// A scan of one version of a DOK file. It returns the entries that pass all filters.
#[derive(Clone, Debug)]
pub(in crate::sql) struct DokSource {
    version: Arc<KeyedVersion>,
    schema: SchemaRef,
    projection: Vec<usize>,
    projected: SchemaRef,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Keys to look up, or `None` to check all entries. No other key can pass the filters.
    keys: Option<Vec<ArrayRef>>,
    partitions: Vec<Range<usize>>,
    limit: Option<usize>,
}

/// Minimum number of entries for which a scan has several partitions.
const MIN_PARTITIONED_ENTRIES: usize = 1 << 16;

impl DokSource {
    pub(super) fn try_new(
        version: Arc<KeyedVersion>,
        schema: SchemaRef,
        projection: Option<&Vec<usize>>,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        keys: Option<Vec<ArrayRef>>,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<Self> {
        let projection = select_columns(projection, &schema);
        let projected = Arc::new(schema.project(&projection)?);
        let rows = match &keys {
            Some(_) => 0,
            None => version.contents.len(),
        };
        let count = if rows < MIN_PARTITIONED_ENTRIES { 1 } else { partitions.max(1) };
        let step = rows.div_ceil(count).max(1);
        let partitions = (0..count).map(|p| (p * step).min(rows)..((p + 1) * step).min(rows));
        let partitions = partitions.collect();
        Ok(Self { version, schema, projection, projected, filters, keys, partitions, limit })
    }

    fn project_rows(&self, columns: &[ArrayRef], rows: Range<usize>) -> Result<RecordBatch> {
        let columns = columns.iter().map(|c| trim_extent(&c.slice(rows.start, rows.len())));
        let mut batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?;
        for filter in &self.filters {
            let mask = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
            let mask = mask.as_boolean_opt().ok_or_else(|| {
                DataFusionError::Internal(format!(
                    "internal error: the condition {filter} is not boolean; please report it"
                ))
            })?;
            let mask =
                if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
            batch = filter_record_batch(&batch, &mask)?;
        }
        let columns = self.projection.iter().map(|c| Arc::clone(batch.column(*c))).collect();
        Ok(build_record_batch(Arc::clone(&self.projected), columns, batch.num_rows())?)
    }
}

impl DataSource for DokSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (columns, mut rows) = match &self.keys {
            None => {
                let rows = self.partitions.get(partition).cloned().unwrap_or(0..0);
                (self.version.contents.columns()?, rows)
            }
            Some(keys) => {
                let columns = self.version.contents.lookup(keys)?;
                let rows = columns.first().map_or(0, |c| c.len());
                (columns, 0..rows)
            }
        };
        let step = context.session_config().batch_size().max(1);
        let source = self.clone();
        let mut left = self.limit.unwrap_or(usize::MAX);
        let batches = std::iter::from_fn(move || {
            while !rows.is_empty() && left > 0 {
                let part = rows.start..rows.end.min(rows.start.saturating_add(step));
                rows.start = part.end;
                match source.project_rows(&columns, part) {
                    Ok(batch) if batch.num_rows() == 0 => {}
                    Ok(batch) => {
                        let batch = batch.slice(0, batch.num_rows().min(left));
                        left -= batch.num_rows();
                        return Some(Ok(batch));
                    }
                    Err(e) => {
                        rows.start = rows.end;
                        return Some(Err(e));
                    }
                }
            }
            None
        });
        let schema = Arc::clone(&self.projected);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches))))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.version.path.file_name().unwrap_or_default().to_string_lossy();
        let names: Vec<&str> = self.projected.fields().iter().map(|f| f.name().as_str()).collect();
        write!(f, "Dok: file={file}, entries={}, ", self.version.contents.len())?;
        match self.keys.as_ref().map(|k| k.first().map_or(0, |k| k.len())) {
            Some(keys) => write!(f, "hash look-up of {keys} key(s)")?,
            None => write!(f, "scan")?,
        }
        write!(f, ", projection=[{}]", names.join(", "))?;
        if !self.filters.is_empty() {
            let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", filter=[{}]", filters.join(", "))?;
        }
        write_limit(f, self.limit)
    }

    read_ranges!(projected);

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.projected);
        let limit = self.limit.unwrap_or(usize::MAX);
        let all = || self.partitions.iter().map(|p| p.len().min(limit)).sum();
        let rows = match (partition, &self.keys) {
            (_, Some(keys)) => keys.first().map_or(0, |k| k.len()),
            (Some(p), None) => self.partitions.get(p).map_or(0, |p| p.len().min(limit)),
            (None, None) => all(),
        };
        statistics.num_rows = match self.filters.is_empty() && self.keys.is_none() {
            true => Precision::Exact(rows),
            false => Precision::Inexact(rows),
        };
        Ok(Arc::new(statistics))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for filter in &self.filters {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }
}
