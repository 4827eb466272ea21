use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};

use super::cut::find_file_windows;
use super::lists_source::ListsSource;
use crate::config::SerrateOptions;
use crate::sql::sources::exact_file_casts::ExactCasts;

/// Physical optimizer rule that runs after all others: makes scans of Parquet files decode lists
/// with Serrate's decoder. Without this rule, `SELECT ragged_sum(x) FROM 't.parquet'` decodes the
/// lists `x` three to four times as slowly.
///
/// A scan stays unchanged if it has virtual columns or an expression adapter other than
/// DataFusion's and [`ExactCasts`], or if ORDER BY with a limit reorders its row groups. All scans
/// stay unchanged if `serrate.parquet_lists` is false.
pub(crate) fn decode_lists(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = SerrateOptions::of(config);
    if !options.parquet_lists {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let files = scan.and_then(|s| s.data_source().downcast_ref::<FileScanConfig>());
        let Some(files) = files else { return Ok(Transformed::no(node)) };
        let stock = files.file_source().downcast_ref::<ParquetSource>();
        let Some(stock) = stock.filter(|stock| is_supported(files, stock)) else {
            return Ok(Transformed::no(node));
        };
        let source =
            ListsSource::new(stock.clone(), options.leaf_batch_size, find_file_windows(files));
        let Some(source) = source else { return Ok(Transformed::no(node)) };
        let mut files = files.clone();
        files.file_source = Arc::new(source);
        let scan = DataSourceExec::from_data_source(files);
        Ok(Transformed::yes(scan as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

/// Whether the list decoder can read a scan ([`decode_lists`]). The decoder identifies rows by
/// their number in file order, so the scan must not reorder row groups.
fn is_supported(files: &FileScanConfig, stock: &ParquetSource) -> bool {
    let shown = ExplainText(stock).to_string();
    let reordered = ["sort_order_for_reorder=", "reverse_row_groups=true"];
    ExactCasts::is_known(files)
        && stock.table_schema().virtual_columns().is_empty()
        && !reordered.iter().any(|mark| shown.contains(mark))
}

/// Displays a source as EXPLAIN does. `ParquetSource` has no method that says whether it reorders
/// row groups, so [`is_supported`] searches this text.
struct ExplainText<'a>(&'a ParquetSource);

impl fmt::Display for ExplainText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_extra(DisplayFormatType::Default, f)
    }
}
