//! Removes from Parquet footers those statistics by which conditions, joins and TopK would skip row
//! groups with matching rows, and the logical type of intervals.
//!
//! * Statistics of floats: in Serrate's SQL, NaN equals NaN and is greater than any number, and 0.0
//!   equals -0.0. Statistics omit NaN, though, and Bloom filters distinguish the zeros. Files do
//!   not record the number of NaN.
//! * Statistics without a number of nulls, which is optional in the format: DataFusion 55 takes a
//!   missing number for 0, so that `WHERE a IS NULL` has no rows:
//!   <https://github.com/apache/datafusion/issues/25239>. This part is obsolete once the test
//!   `stock_missing_counts_of_nulls_are_still_zero` fails.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use datafusion::catalog::Session;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{LogicalType, Type};
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::statistics::{Statistics as ChunkStatistics, ValueStatistics};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use serrate_core::internal::lock_mutex;
use serrate_core::internal::parquet::check_fetched_dictionaries;

use super::logical_types::read_intervals_as_bytes;
use crate::sql::sources::pinned_file::pin_version;

/// Makes the readers of a Parquet scan return footers without the statistics by which DataFusion
/// would skip matching rows, and with intervals as bytes. Also makes all reads of a local file see
/// the same version of the file.
pub(super) fn correct_footers(
    plan: Arc<dyn ExecutionPlan>,
    state: &dyn Session,
) -> Arc<dyn ExecutionPlan> {
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else { return plan };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return plan };
    let Some(source) = config.file_source().downcast_ref::<ParquetSource>() else { return plan };
    let Some(inner) = source.parquet_file_reader_factory() else { return plan };
    let runtime = state.runtime_env();
    let url = config.object_store_url.clone();
    let pinned = runtime.object_store(&url).ok().map(|store| PinnedFiles {
        store,
        url,
        cache: runtime.cache_manager.get_file_metadata_cache(),
    });
    let inner = Arc::clone(inner);
    let factory = CorrectedReaderFactory { inner, pinned, known: Arc::default() };
    let source = source.clone().with_parquet_file_reader_factory(Arc::new(factory));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
    DataSourceExec::from_data_source(config)
}

/// Does the same as [`correct_footers`] for the scan of a plan that another process has sent,
/// except that reads may see different versions of a local file.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn correct_received_footers(source: &ParquetSource) -> ParquetSource {
    let Some(inner) = source.parquet_file_reader_factory() else { return source.clone() };
    let inner = Arc::clone(inner);
    let factory = CorrectedReaderFactory { inner, pinned: None, known: Arc::default() };
    source.clone().with_parquet_file_reader_factory(Arc::new(factory))
}

/// The original footer and the corrected footer of each file, by path.
type CachedFooters = Arc<Mutex<HashMap<String, (Weak<ParquetMetaData>, Arc<ParquetMetaData>)>>>;

/// Creates readers as DataFusion's factory does, but gives each reader a store that reads only one
/// version of its file.
struct PinnedFiles {
    store: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
    cache: Arc<FileMetadataCache>,
}

struct CorrectedReaderFactory {
    inner: Arc<dyn ParquetFileReaderFactory>,
    /// Creates the readers in place of DataFusion's factory `inner`, so that each reads one version
    /// of its file. `None` if the session has no store for the files: `inner` then creates them.
    pinned: Option<PinnedFiles>,
    /// Corrected footers, shared by the readers of a scan, which opens a file once per byte range.
    known: CachedFooters,
}

impl fmt::Debug for CorrectedReaderFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorrectedFooters").field("inner", &self.inner).finish()
    }
}

impl ParquetFileReaderFactory for CorrectedReaderFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let path = file.object_meta.location.to_string();
        let inner =
            match &self.pinned {
                Some(files) => {
                    let store = pin_version(&files.store, &files.url, &file.object_meta);
                    CachedParquetFileReaderFactory::new(store, Arc::clone(&files.cache))
                        .create_reader(partition_index, file, metadata_size_hint, metrics)?
                }
                None => {
                    self.inner.create_reader(partition_index, file, metadata_size_hint, metrics)?
                }
            };
        Ok(Box::new(CorrectedReader { inner, path, known: Arc::clone(&self.known) }))
    }
}

struct CorrectedReader {
    inner: Box<dyn AsyncFileReader + Send>,
    path: String,
    known: CachedFooters,
}

impl CorrectedReader {
    /// Checks the dictionaries in fetched byte ranges. Each range is given by its offset in the file
    /// and its bytes.
    fn check_dictionaries<'a>(
        &self,
        fetched: impl IntoIterator<Item = (u64, &'a Bytes)>,
    ) -> ParquetResult<()> {
        let footer = lock_mutex(&self.known).get(&self.path).map(|(_, footer)| Arc::clone(footer));
        let Some(footer) = footer else { return Ok(()) };
        fetched
            .into_iter()
            .try_for_each(|(start, bytes)| check_fetched_dictionaries(bytes, start, &footer))
    }
}

impl AsyncFileReader for CorrectedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let start = range.start;
            let bytes = self.inner.get_bytes(range).await?;
            self.check_dictionaries([(start, &bytes)])?;
            Ok(bytes)
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            let bytes = self.inner.get_byte_ranges(ranges).await?;
            self.check_dictionaries(starts.into_iter().zip(&bytes))?;
            Ok(bytes)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let footer = self.inner.get_metadata(options).await?;
            let mut known = lock_mutex(&self.known);
            if let Some((from, changed)) = known.get(&self.path)
                && std::ptr::eq(from.as_ptr(), Arc::as_ptr(&footer))
            {
                return Ok(Arc::clone(changed));
            }
            let changed = correct_footer(&footer);
            known.insert(self.path.clone(), (Arc::downgrade(&footer), Arc::clone(&changed)));
            Ok(changed)
        }
        .boxed()
    }
}

fn correct_footer(footer: &Arc<ParquetMetaData>) -> Arc<ParquetMetaData> {
    let footer = &read_intervals_as_bytes(footer);
    let floats: Vec<bool> = footer
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|c| {
            matches!(c.physical_type(), Type::FLOAT | Type::DOUBLE)
                || matches!(c.logical_type_ref(), Some(LogicalType::Float16))
        })
        .collect();
    let uncounted = |chunk: &ColumnChunkMetaData| {
        chunk.statistics().is_some_and(|known| known.null_count_opt().is_none())
    };
    let is_affected = floats.contains(&true)
        || footer.row_groups().iter().any(|group| group.columns().iter().any(uncounted));
    if !is_affected {
        return Arc::clone(footer);
    }
    let mut builder = footer.as_ref().clone().into_builder();
    let groups = builder.take_row_groups();
    // For each row group and each of its columns: whether the statistics of the column are removed
    // from the page index, too.
    let mut removed: Vec<Vec<bool>> = Vec::with_capacity(groups.len());
    let groups = groups.into_iter().map(|group| {
        let columns = || group.columns().iter().zip(&floats);
        removed.push(columns().map(|(chunk, float)| *float || uncounted(chunk)).collect());
        let chunks = columns().map(|(chunk, float)| match (*float, uncounted(chunk)) {
            (true, _) => remove_chunk_bounds(chunk),
            (false, true) => chunk.clone().into_builder().clear_statistics().build(),
            (false, false) => Ok(chunk.clone()),
        });
        let chunks = chunks.collect::<ParquetResult<_>>()?;
        group.into_builder().set_column_metadata(chunks).build()
    });
    // If the metadata of a row group cannot be rebuilt, the original footer is returned.
    let Ok(groups) = groups.collect::<ParquetResult<Vec<_>>>() else { return Arc::clone(footer) };
    let index = builder.take_column_index().map(|groups| {
        let groups = groups.into_iter().zip(&removed);
        let without = |(columns, removed): (Vec<ColumnIndexMetaData>, &Vec<bool>)| {
            let columns = columns.into_iter().zip(removed);
            columns
                .map(|(c, is_removed)| if *is_removed { ColumnIndexMetaData::NONE } else { c })
                .collect()
        };
        groups.map(without).collect()
    });
    Arc::new(builder.set_row_groups(groups).set_column_index(index).build())
}

/// Returns the metadata of a column chunk of floats with the number of nulls as its only statistic.
fn remove_chunk_bounds(chunk: &ColumnChunkMetaData) -> ParquetResult<ColumnChunkMetaData> {
    let builder = chunk
        .clone()
        .into_builder()
        .set_bloom_filter_offset(None)
        .set_bloom_filter_length(None)
        .set_column_index_offset(None)
        .set_column_index_length(None);
    let nulls = chunk.statistics().and_then(ChunkStatistics::null_count_opt);
    let kept = match chunk.column_type() {
        Type::FLOAT => {
            Some(ChunkStatistics::Float(ValueStatistics::new(None, None, None, nulls, false)))
        }
        Type::DOUBLE => {
            Some(ChunkStatistics::Double(ValueStatistics::new(None, None, None, nulls, false)))
        }
        _ => None,
    };
    match kept.filter(|_| nulls.is_some()) {
        Some(kept) => builder.set_statistics(kept).build(),
        None => builder.clear_statistics().build(),
    }
}
