use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use object_store::ObjectStore;

use super::opener::ListsOpener;
use super::scan_split::find_measured_fields;
use crate::array::list_depth;
use crate::sql::sources::delegate_source;

/// A scan of Parquet files, in which Serrate's decoder reads the list columns that it supports.
#[derive(Clone)]
pub(in crate::sql) struct ListsSource {
    /// DataFusion's scan, which has the projection and the filter. It alone reads the files that
    /// the list decoder does not support.
    stock: ParquetSource,
    /// Indices, in the table's schema, of the list columns that the projection or the filter uses.
    lists: BTreeSet<usize>,
    /// Maximum number of leaves (innermost list elements) per batch. A row that has more is a batch
    /// of its own.
    leaves: usize,
    batch_size: usize,
    /// The ranges of rows that EXPLAIN shows: one for each file that the scan reads only in part.
    windows: Vec<Range<usize>>,
}

impl ListsSource {
    /// Creates a source, or returns `None` if neither the projection nor the filter of `stock` uses
    /// a list column.
    pub(in crate::sql) fn new(
        stock: ParquetSource,
        leaves: usize,
        windows: Vec<Range<usize>>,
    ) -> Option<Self> {
        let schema = Arc::clone(stock.table_schema().file_schema());
        let projection = stock.projection()?;
        let columns = projection.iter().flat_map(|e| collect_columns(&e.expr));
        let conditions = stock.filter().into_iter().flat_map(|e| collect_columns(&e));
        let is_list =
            |i: &usize| schema.fields().get(*i).is_some_and(|f| list_depth(f.data_type()) > 0);
        let lists: BTreeSet<usize> =
            columns.chain(conditions).map(|c| c.index()).filter(is_list).collect();
        (!lists.is_empty()).then_some(Self { stock, lists, leaves, batch_size: 8192, windows })
    }

    pub(in crate::sql) fn stock(&self) -> &ParquetSource {
        &self.stock
    }

    pub(super) fn lists(&self) -> &BTreeSet<usize> {
        &self.lists
    }

    pub(in crate::sql) fn leaves(&self) -> usize {
        self.leaves
    }

    #[cfg(feature = "cluster")]
    pub(in crate::sql) fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    pub(super) fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn with_stock(&self, stock: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        let ours = stock.downcast_ref::<ParquetSource>();
        let ours =
            ours.and_then(|stock| Self::new(stock.clone(), self.leaves, self.windows.clone()));
        match ours {
            Some(ours) => Arc::new(Self { batch_size: self.batch_size, ..ours }),
            None => stock,
        }
    }

    fn names(&self, of: impl IntoIterator<Item = usize>) -> String {
        let fields = self.stock.table_schema().file_schema().fields();
        let names = of.into_iter().filter_map(|i| fields.get(i)).map(|f| f.name().as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

impl FileSource for ListsSource {
    delegate_source!(stock: table_schema, filter, projection, metrics, file_type, supports_repartitioning, repartitioned, apply_expressions, reorder_files);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(ListsOpener::new(self.clone(), store, config.clone(), partition)))
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let stock = self.stock.with_batch_size(batch_size);
        let stock = stock.downcast_ref::<ParquetSource>().cloned();
        let stock = stock.unwrap_or_else(|| self.stock.clone());
        Arc::new(Self { stock, batch_size, ..self.clone() })
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = find_measured_fields(&self.stock, &self.lists);
        let whole = self.names(self.lists.difference(&lengths).copied());
        let lengths = self.names(lengths);
        for (what, names) in [("lists", whole), ("lengths", lengths)] {
            match t {
                _ if names.is_empty() => {}
                DisplayFormatType::TreeRender => writeln!(f, "{what}={names}")?,
                _ => write!(f, ", {what}=[{names}]")?,
            }
        }
        let windows = self.windows.iter().map(|rows| format!("{}..{}", rows.start, rows.end));
        let windows = windows.collect::<Vec<_>>().join(", ");
        match t {
            _ if windows.is_empty() => {}
            DisplayFormatType::TreeRender => writeln!(f, "rows={windows}")?,
            _ => write!(f, ", rows=[{windows}]")?,
        }
        self.stock.fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut answer = self.stock.try_pushdown_filters(filters, config)?;
        answer.updated_node = answer.updated_node.map(|stock| self.with_stock(stock));
        Ok(answer)
    }

    fn try_pushdown_sort(
        &self,
        _order: &[PhysicalSortExpr],
        _properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        // DataFusion's scan would reorder row groups, which the list decoder does not support.
        Ok(SortOrderPushdownResult::Unsupported)
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let stock = self.stock.try_pushdown_projection(projection)?;
        Ok(stock.map(|stock| match stock.table_schema().virtual_columns().is_empty() {
            true => self.with_stock(stock),
            false => stock,
        }))
    }
}
