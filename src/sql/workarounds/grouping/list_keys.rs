use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::OptimizerConfig;

use crate::functions::{make_list_key, restore_list};
use serrate_core::internal::has_byte_form;

/// Logical optimizer rule: groups by the bytes of lists instead of lists.
///
/// `GROUP BY x` of lists takes several times the memory limit without this rule; see
/// `functions::list_keys`. Lists of other elements than numbers, times, strings and booleans stay,
/// and so do keys of grouping sets, and lists with metadata, which bytes do not carry.
pub(in crate::sql) fn group_by_bytes(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let aggregate = match plan {
        LogicalPlan::Aggregate(aggregate) if !list_byte_keys(&aggregate).is_empty() => aggregate,
        plan => return Ok(Transformed::no(plan)),
    };
    let keys = list_byte_keys(&aggregate);
    let Aggregate { input, mut group_expr, aggr_expr, schema, .. } = aggregate;
    for key in &keys {
        let (relation, name) = group_expr[*key].qualified_name();
        let list = std::mem::take(&mut group_expr[*key]).unalias();
        group_expr[*key] = make_list_key(list).alias_qualified(relation, name);
    }
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?);
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, column) in grouped.schema().columns().into_iter().enumerate() {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let column = Expr::Column(column);
        columns.push(match keys.contains(&at) {
            true => {
                restore_list(column, schema.field(at).data_type())?.alias_qualified(relation, name)
            }
            false => column,
        });
    }
    let lists = Projection::try_new_with_schema(columns, Arc::new(grouped), schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(lists)))
}

/// Returns the indices of the keys of a GROUP BY that are lists whose bytes can be the key.
fn list_byte_keys(aggregate: &Aggregate) -> Vec<usize> {
    let groups = &aggregate.group_expr;
    if groups.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
        return Vec::new();
    }
    let is_byte_key = |at: &usize| {
        let field = aggregate.schema.field(*at);
        has_byte_form(field.data_type()) && field.metadata().is_empty()
    };
    (0..groups.len()).filter(is_byte_key).collect()
}
