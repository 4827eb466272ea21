//! Code shared by sources whose partitions are ranges of rows or shards: [`read_ranges`] implements
//! methods of [`DataSource`](datafusion::datasource::source::DataSource), and [`limit_rows`]
//! helps to build streams.

use std::fmt;
use std::ops::Range;

use arrow::array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::error::Result;
use futures::stream::{Stream, StreamExt};

/// Divides the shard numbers `0..shards` into ranges of about equal size, at most as many as the
/// session's `target_partitions`.
pub(super) fn divide_shards(shards: usize, state: &dyn Session) -> Vec<Range<usize>> {
    let size = shards.div_ceil(state.config().target_partitions().max(1)).max(1);
    (0..shards).step_by(size).map(|start| start..(start + size).min(shards)).collect()
}

/// Defines the methods of a `DataSource` that has the fields `partitions`, `limit` (rows per
/// partition) and `$schema`, its schema. The source accepts no projection.
///
/// A source that is `plain` has no statistics and evaluates no expressions.
macro_rules! read_ranges {
    ($schema:ident, plain) => {
        $crate::sql::sources::range_partitions::read_ranges!($schema);

        fn partition_statistics(
            &self,
            _partition: Option<usize>,
        ) -> datafusion::error::Result<std::sync::Arc<datafusion::common::Statistics>> {
            Ok(std::sync::Arc::new(datafusion::common::Statistics::new_unknown(&self.$schema)))
        }

        $crate::sql::sources::range_partitions::read_ranges!(without_expressions);
    };
    (without_expressions) => {
        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> datafusion::error::Result<
                datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
    ($schema:ident) => {
        fn output_partitioning(&self) -> datafusion::physical_expr::Partitioning {
            datafusion::physical_expr::Partitioning::UnknownPartitioning(self.partitions.len())
        }

        fn eq_properties(&self) -> datafusion::physical_expr::EquivalenceProperties {
            datafusion::physical_expr::EquivalenceProperties::new(std::sync::Arc::clone(
                &self.$schema,
            ))
        }

        fn with_fetch(
            &self,
            limit: Option<usize>,
        ) -> Option<std::sync::Arc<dyn datafusion::datasource::source::DataSource>> {
            Some(std::sync::Arc::new(Self { limit, ..self.clone() }))
        }

        fn fetch(&self) -> Option<usize> {
            self.limit
        }

        fn try_swapping_with_projection(
            &self,
            _projection: &datafusion::physical_expr::projection::ProjectionExprs,
        ) -> datafusion::error::Result<
            Option<std::sync::Arc<dyn datafusion::datasource::source::DataSource>>,
        > {
            Ok(None)
        }
    };
}
pub(in crate::sql) use read_ranges;

pub(in crate::sql) fn limit_rows(
    batches: impl Stream<Item = Result<RecordBatch>>,
    limit: Option<usize>,
) -> impl Stream<Item = Result<RecordBatch>> {
    let limit = limit.unwrap_or(usize::MAX);
    batches.scan(0usize, move |seen, batch| {
        let left = limit.saturating_sub(*seen);
        let batch = batch.map(|b| b.slice(0, b.num_rows().min(left)));
        *seen = seen.saturating_add(batch.as_ref().map_or(0, RecordBatch::num_rows));
        std::future::ready((left > 0).then_some(batch))
    })
}

pub(in crate::sql) fn write_limit(f: &mut fmt::Formatter<'_>, limit: Option<usize>) -> fmt::Result {
    match limit {
        Some(limit) => write!(f, ", limit={limit}"),
        None => Ok(()),
    }
}
