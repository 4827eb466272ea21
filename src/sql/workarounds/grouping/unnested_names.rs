use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use serrate_core::internal::find_repeated_name;

const PREFIX: &str = "__serrate_unnested";

/// Physical optimizer rule, before DataFusion's: gives the columns of an `unnest` distinct names
/// while it runs.
///
/// An `unnest` of DataFusion 55 finds the columns that it passes on by name. It then takes the
/// properties of a column (its order, its constant value, the partitioning by it) for those of the
/// first column of the same name:
/// `SELECT a.k, max(b.k) FROM a JOIN (SELECT k, array_agg(i) AS x FROM b GROUP BY k) b ON a.i = b.k
/// CROSS JOIN unnest(b.x) GROUP BY a.k` returns several rows for one `a.k`. This workaround is
/// obsolete once the test `stock_unnest_still_finds_columns_by_name` fails.
pub(in crate::sql) fn separate_unnested_names(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(unnest) = node.downcast_ref::<UnnestExec>() else {
            return Ok(Transformed::no(node));
        };
        if find_repeated_name(unnest.schema().fields()).is_none() {
            return Ok(Transformed::no(node));
        }
        rename_columns(unnest).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

/// Puts an `unnest` between two projections: the lower one gives each column a name of its own, and
/// the upper one restores the names.
fn rename_columns(unnest: &UnnestExec) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = unnest.schema();
    let (lists, structs) = (unnest.list_column_indices(), unnest.struct_column_indices());
    let mut place = 0;
    let mut below = Vec::new();
    for (index, field) in unnest.input().schema().fields().iter().enumerate() {
        below.push(select_as(field.name(), index, &name_column(place)));
        // A list has an output column for each depth to which it is unnested, and a struct one for
        // each field.
        place += match lists.iter().filter(|list| list.index_in_input_schema == index).count() {
            0 if structs.contains(&index) => count_fields(field.data_type()),
            0 => 1,
            depths => depths,
        };
    }
    let input = Arc::new(ProjectionExec::try_new(below, Arc::clone(unnest.input()))?);
    let fields = schema.fields().iter().enumerate();
    let fields = fields.map(|(i, field)| field.as_ref().clone().with_name(name_column(i)));
    let renamed = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    let renamed = UnnestExec::new(
        input,
        lists.to_vec(),
        structs.to_vec(),
        Arc::new(renamed),
        unnest.options().clone(),
    )?;
    let above = schema.fields().iter().enumerate();
    let above = above.map(|(i, field)| select_as(&name_column(i), i, field.name()));
    Ok(Arc::new(ProjectionExec::try_new(above.collect::<Vec<_>>(), Arc::new(renamed))?))
}

/// Returns the name of the output column `place` while the `unnest` runs. An input column has the
/// name of the first output column that it becomes.
fn name_column(place: usize) -> String {
    format!("{PREFIX}_{place}")
}

fn select_as(name: &str, index: usize, alias: &str) -> ProjectionExpr {
    let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, index));
    ProjectionExpr { expr, alias: alias.to_owned() }
}

fn count_fields(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.len(),
        _ => 1,
    }
}
