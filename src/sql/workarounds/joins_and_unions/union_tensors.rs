//! Removes the tags of tensors and tokens from the columns of UNIONs whose inputs have tensors of
//! several shapes, or tokens of several vocabularies.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, Projection, Union};

use crate::functions::{differ_in_vocabulary, remove_tag, untag_field};
use crate::io::meds::VOCABULARY_METADATA;

/// `SELECT densify(x, [2, 3]) FROM t UNION ALL SELECT densify(x, [3, 2]) FROM t` returns tensors of
/// the shape `[3, 2]` without this rule, and lists tagged as tensors if the sizes differ.
///
/// Analyzer rule, before type coercion: if the inputs of a union differ in the extension type of a
/// column, such as the shape of a tensor, removes the extension type of this column from the inputs
/// and the union. Inputs in which the column is an untyped NULL do not count. Tokens of several
/// vocabularies are marked as such.
///
/// DataFusion merges the metadata of the inputs, key by key, and the last input prevails.
pub(in crate::sql) fn untag_mixed_tensors(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut has_union, mut has_tags) = (false, false);
    plan.apply_with_subqueries(|node| {
        has_union |= matches!(node, LogicalPlan::Union(_));
        has_tags |= node.schema().fields().iter().any(|field| has_tag(field) || is_token(field));
        Ok(match has_union && has_tags {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !(has_union && has_tags) {
        return Ok(plan);
    }
    // Recompute the schemas, because a node above a changed union has its former metadata, and the
    // inputs of UNION BY NAME have the metadata of the union.
    let plan = plan.transform_up_with_subqueries(|node| {
        Ok(Transformed::yes(match node.recompute_schema()? {
            LogicalPlan::Union(union) => {
                let mixed = find_mixed_columns(&union);
                LogicalPlan::Union(mixed.into_iter().try_fold(union, untag_union)?)
            }
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
    let fields = union.inputs.iter().flat_map(|input| list_fields(input, at));
    let fields: Vec<FieldRef> = fields.filter(|field| !field.data_type().is_null()).collect();
    let Some((first, rest)) = fields.split_first() else { return false };
    let is_tensor = has_tag(first) && rest.iter().all(|other| has_same_tag(first, other));
    // The union may have the former extension type of a changed union below.
    let is_tagged = has_tag(union.schema.field(at)) || fields.iter().any(|field| has_tag(field));
    is_tagged && !is_tensor || has_mixed_tokens(&fields, union.schema.field(at))
}

/// Whether some of `fields`, those of the inputs, or `merged`, that of the union, have tokens of
/// another vocabulary than others.
fn has_mixed_tokens(fields: &[FieldRef], merged: &Field) -> bool {
    let mut tokens = fields.iter().filter(|field| is_token(field));
    tokens.next().is_some_and(|first| {
        let differs = |other: &FieldRef| differ_in_vocabulary(first, other);
        differ_in_vocabulary(first, merged) || tokens.any(differs)
    })
}

/// Returns the field of a column of `plan`; for a union, the fields of this column in its inputs.
/// Leaves out columns that are a constant NULL, which an earlier rule may have cast.
///
/// Before type coercion, a union has the types of its first input, which may be an untyped NULL.
/// The planner casts the inputs of a union in a subquery to their common type. A cast of the values
/// of a tensor has no extension type, so the field is that of the tensor.
fn list_fields(plan: &LogicalPlan, at: usize) -> Vec<FieldRef> {
    match plan {
        LogicalPlan::Union(union) => {
            union.inputs.iter().flat_map(|input| list_fields(input, at)).collect()
        }
        LogicalPlan::Distinct(Distinct::All(input)) => list_fields(input, at),
        LogicalPlan::Projection(projection)
            if projection.expr.get(at).is_some_and(is_null_constant) =>
        {
            Vec::new()
        }
        LogicalPlan::Projection(projection) => {
            let cast = projection.expr.get(at).and_then(|e| find_cast_tensor(e, projection));
            cast.or_else(|| projection.schema.fields().get(at).cloned()).into_iter().collect()
        }
        other => other.schema().fields().get(at).cloned().into_iter().collect(),
    }
}

/// Returns the field of the tensor that `e` casts to a list of the same size.
fn find_cast_tensor(e: &Expr, projection: &Projection) -> Option<FieldRef> {
    match e {
        Expr::Alias(alias) => find_cast_tensor(&alias.expr, projection),
        Expr::Cast(cast) => {
            let (_, field) = cast.expr.to_field(projection.input.schema()).ok()?;
            let size = find_size(&field);
            (has_tag(&field) && size.is_some() && size == find_size(&cast.field)).then_some(field)
        }
        _ => None,
    }
}

fn is_null_constant(e: &Expr) -> bool {
    match e {
        Expr::Alias(alias) => is_null_constant(&alias.expr),
        Expr::Cast(cast) => is_null_constant(&cast.expr),
        Expr::Literal(value, _) => value.is_null(),
        _ => false,
    }
}

fn is_token(field: &Field) -> bool {
    field.metadata().contains_key(VOCABULARY_METADATA)
}

fn has_tag(field: &Field) -> bool {
    field.extension_type_name().is_some()
}

/// Whether two fields have the same extension type, which the common type of both can have, too: a
/// list of fixed size stays one only if the sizes are equal.
fn has_same_tag(a: &Field, b: &Field) -> bool {
    let (size, other) = (find_size(a), find_size(b));
    a.extension_type_name() == b.extension_type_name()
        && a.extension_type_metadata() == b.extension_type_metadata()
        && (a.data_type() == b.data_type() || size.is_some() && size == other)
}

/// Returns the number of elements of a list of fixed size.
fn find_size(field: &Field) -> Option<i32> {
    match field.data_type() {
        DataType::FixedSizeList(_, size) => Some(*size),
        _ => None,
    }
}

/// Removes the tag of the column at index `at` from a union and its inputs.
fn untag_union(mut union: Union, at: usize) -> Result<Union> {
    for input in &mut union.inputs {
        *input = untag_column(input, at)?;
    }
    let fields = union.schema.iter().enumerate().map(|(i, (table, field))| {
        let field = match i == at {
            true => Arc::new(untag_field(field.as_ref().clone())),
            false => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    union.schema = Arc::new(schema);
    Ok(union)
}

/// Removes the tag of the column at index `at` from an input of a union, unless the
/// column is an untyped NULL. Columns without one are wrapped, too, because the optimizer may
/// replace an expression such as `coalesce(x, y)` by an argument that has one.
fn untag_column(input: &Arc<LogicalPlan>, at: usize) -> Result<Arc<LogicalPlan>> {
    if list_fields(input, at).iter().all(|field| field.data_type().is_null()) {
        return Ok(Arc::clone(input));
    }
    let exprs = input.schema().iter().enumerate().map(|(i, named)| {
        let e = Expr::Column(Column::from(named));
        match i == at {
            true => remove_tag(e).alias_qualified(named.0.cloned(), named.1.name()),
            false => e,
        }
    });
    let untagged = Projection::try_new(exprs.collect(), Arc::clone(input))?;
    Ok(Arc::new(LogicalPlan::Projection(untagged)))
}
