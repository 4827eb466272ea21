//! Finds list columns whose values a plan does not need, only their lengths.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{Column as PhysicalColumn, Literal};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::array::{leaf_type, list_depth};
use crate::functions::{ReadParts, find_list_reads};

/// Returns the names of the list columns whose values no expression reads. If NaN counts as NULL
/// (`nan_is_null`), a count of the non-NULL floats in lists reads their values.
pub(in crate::sql) fn find_measured_columns<'a>(
    expressions: impl IntoIterator<Item = &'a ProjectionExpr>,
    schema: &Schema,
    nan_is_null: bool,
) -> Vec<String> {
    let mut looked_at: HashSet<String> = HashSet::new();
    for expression in expressions {
        // The closure always returns `Ok`, so the result can be ignored.
        let _ = expression.expr.apply(|e| {
            if let Some(column) = e.downcast_ref::<PhysicalColumn>() {
                looked_at.insert(column.name().to_owned());
            }
            let Some((what, column)) = find_measured_list(e) else {
                return Ok(TreeNodeRecursion::Continue);
            };
            let field = schema.field_with_name(column.name()).ok();
            let field = field.filter(|f| list_depth(f.data_type()) > 0);
            let Some(field) = field else { return Ok(TreeNodeRecursion::Continue) };
            let may_miss = nan_is_null && leaf_type(field.data_type()).is_floating();
            Ok(match what == ReadParts::LengthsAndNulls && may_miss {
                true => TreeNodeRecursion::Continue,
                false => TreeNodeRecursion::Jump,
            })
        });
    }
    let names = schema.fields().iter().filter(|f| list_depth(f.data_type()) > 0);
    names.map(|f| f.name().clone()).filter(|name| !looked_at.contains(name)).collect()
}

/// Returns the list column that the call `e` measures, such as `x` in `ragged_lengths(x)`, and what
/// the call reads: the lengths of the lists, or their lengths and the validity of their values.
/// Returns `None` if the call reads values, or if its argument is not a column.
pub(in crate::sql) fn find_measured_list(
    e: &Arc<dyn PhysicalExpr>,
) -> Option<(ReadParts, &PhysicalColumn)> {
    let what = find_reads(e);
    if !what.is_length() {
        return None;
    }
    let mut list = e.children()[0];
    while find_reads(list) == ReadParts::Structure {
        list = list.children()[0];
    }
    list.downcast_ref::<PhysicalColumn>().map(|column| (what, column))
}

/// Returns what a call reads of the lists in its first argument, for example only their lengths. If
/// another argument is not a literal, the call reads the values.
pub(in crate::sql) fn find_reads(e: &Arc<dyn PhysicalExpr>) -> ReadParts {
    let Some(call) = e.downcast_ref::<ScalarFunctionExpr>() else { return ReadParts::Values };
    let [_, rest @ ..] = call.args() else { return ReadParts::Values };
    match rest.iter().all(|e| e.downcast_ref::<Literal>().is_some()) {
        true => find_list_reads(call.fun()),
        false => ReadParts::Values,
    }
}
