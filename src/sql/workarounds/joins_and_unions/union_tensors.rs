//! Removes the tags of tensors from the columns of UNIONs whose inputs have tensors of several
//! shapes.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, Union};

use crate::functions::remove_extension;
use crate::sql::workarounds::types::times::cast_column;

/// `SELECT densify(x, [2, 3]) FROM t UNION ALL SELECT densify(x, [3, 2]) FROM t` returns tensors of
/// the shape `[3, 2]` without this rule, and lists tagged as tensors if the sizes differ.
///
/// Analyzer rule, before type coercion: if the inputs of a union differ in the extension type of a
/// column, such as the shape of a tensor, removes the extension type of this column from the inputs
/// and the union. Inputs in which the column is an untyped NULL do not count.
///
/// DataFusion merges the metadata of the inputs, key by key, and the last input prevails.
pub(in crate::sql) fn untag_mixed_tensors(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_affected = false;
    plan.apply_with_subqueries(|node| {
        is_affected |=
            matches!(node, LogicalPlan::Union(union) if !find_mixed_columns(union).is_empty());
        Ok(match is_affected {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !is_affected {
        return Ok(plan);
    }
    // Recompute the schemas, because a node above a changed union has its former metadata.
    let plan = plan.transform_up_with_subqueries(|node| {
        Ok(Transformed::yes(match node.recompute_schema()? {
            LogicalPlan::Union(union) => LogicalPlan::Union(untag_columns(union)?),
            other => other,
        }))
    })?;
    Ok(plan.data)
}

/// Returns the positions of the columns of a union in which some inputs have an extension type that
/// others lack, or that has other parameters there.
fn find_mixed_columns(union: &Union) -> Vec<usize> {
    (0..union.schema.fields().len()).filter(|at| has_mixed_tags(union, *at)).collect()
}

fn has_mixed_tags(union: &Union, at: usize) -> bool {
    let fields = union.inputs.iter().filter_map(|input| input.schema().fields().get(at));
    let fields: Vec<&FieldRef> = fields.filter(|field| !field.data_type().is_null()).collect();
    let Some((first, rest)) = fields.split_first() else { return false };
    fields.iter().any(|field| field.extension_type_name().is_some())
        && !rest.iter().all(|other| has_same_tag(first, other))
}

/// Whether two fields have the same extension type, which the common type of both can have, too: a
/// list of fixed size stays one only if the sizes are equal.
fn has_same_tag(a: &Field, b: &Field) -> bool {
    let size = |field: &Field| match field.data_type() {
        DataType::FixedSizeList(_, size) => Some(*size),
        _ => None,
    };
    a.extension_type_name() == b.extension_type_name()
        && a.extension_type_metadata() == b.extension_type_metadata()
        && (a.data_type() == b.data_type() || size(a).is_some() && size(a) == size(b))
}

fn untag_columns(mut union: Union) -> Result<Union> {
    let columns = find_mixed_columns(&union);
    if columns.is_empty() {
        return Ok(union);
    }
    for at in &columns {
        for input in &mut union.inputs {
            let Some(field) = input.schema().fields().get(*at).map(Arc::clone) else { continue };
            if !field.data_type().is_null() {
                // A cast to the type that the column has removes its extension type. Columns
                // without one are cast, too, because the optimizer may replace an expression such
                // as `coalesce(x, y)` by an argument that has one.
                *input = cast_column(input, *at, field.data_type())?;
            }
        }
    }
    let fields = union.schema.iter().enumerate().map(|(at, (table, field))| {
        let field = match columns.contains(&at) {
            true => Arc::new(remove_extension(field.as_ref().clone())),
            false => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    union.schema = Arc::new(schema);
    Ok(union)
}
