//! Flattens nested UNIONs, and names the columns of those that remain nested.
//!
//! The parser nests `a UNION ALL b UNION ALL c`. At each level, `optimize_unions` of DataFusion 55
//! moves the inputs of the inner union into the outer union and inspects them all, so its time is
//! quadratic in the number of UNIONs.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, TableReference, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Projection, Union};

/// The time to plan `SELECT 1 UNION ALL SELECT 2 UNION ALL ..` is quadratic in the number of UNIONs
/// without this rule.
///
/// Analyzer rule, after type coercion: if an input of a union is a union of the same types,
/// replaces it with the inputs of this inner union. If DISTINCT is above the outer union, the inner
/// union may be below DISTINCT, too. If an input of a union is a projection of an inner union,
/// gives the inputs of the inner union the column names of the inner union.
pub(in crate::sql) fn flatten_unions(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_open = |u: &Union| is_nested(u, true) || u.inputs.iter().any(|i| projects_union(i));
    if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Union(u) if is_open(u))))? {
        return Ok(plan);
    }
    let plan = plan.transform_down_with_subqueries(|node| {
        Ok(match node {
            LogicalPlan::Union(union) if is_nested(&union, false) => {
                Transformed::yes(LogicalPlan::Union(flatten_union(union, false)))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => match Arc::unwrap_or_clone(input) {
                LogicalPlan::Union(union) if is_nested(&union, true) => {
                    let flat = Arc::new(LogicalPlan::Union(flatten_union(union, true)));
                    Transformed::yes(LogicalPlan::Distinct(Distinct::All(flat)))
                }
                other => Transformed::no(LogicalPlan::Distinct(Distinct::All(Arc::new(other)))),
            },
            other => Transformed::no(other),
        })
    })?;
    let plan = plan.data.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Union(mut union) if union.inputs.iter().any(|i| projects_union(i)) => {
            for input in &mut union.inputs {
                *input = name_projected(Arc::clone(input))?;
            }
            Ok(Transformed::yes(LogicalPlan::Union(union)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

fn is_nested(union: &Union, distinct: bool) -> bool {
    union.inputs.iter().any(|input| find_inner_union(input, &union.schema, distinct).is_some())
}

/// Returns `input` if it is a union with the types of `schema`. If `distinct` is true, also returns
/// such a union below DISTINCT. Returns `None` for any other plan.
fn find_inner_union<'a>(
    input: &'a LogicalPlan,
    schema: &DFSchema,
    distinct: bool,
) -> Option<&'a Union> {
    match input {
        LogicalPlan::Union(union) if has_types_of(&union.schema, schema) => Some(union),
        LogicalPlan::Distinct(Distinct::All(input)) if distinct => match input.as_ref() {
            LogicalPlan::Union(union) if has_types_of(&union.schema, schema) => Some(union),
            _ => None,
        },
        _ => None,
    }
}

fn has_types_of(one: &DFSchema, other: &DFSchema) -> bool {
    one.fields().len() == other.fields().len()
        && one.fields().iter().zip(other.fields()).all(|(a, b)| a.data_type() == b.data_type())
}

fn flatten_union(union: Union, distinct: bool) -> Union {
    let mut inputs = Vec::new();
    let mut open: Vec<Arc<LogicalPlan>> = union.inputs.into_iter().rev().collect();
    while let Some(input) = open.pop() {
        match find_inner_union(&input, &union.schema, distinct) {
            Some(within) => open.extend(within.inputs.iter().rev().map(Arc::clone)),
            None => inputs.push(input),
        }
    }
    Union { inputs, schema: union.schema }
}

/// Whether an input of a union is a projection of another union.
fn projects_union(input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Projection(projection) => {
            matches!(*projection.input, LogicalPlan::Union(_)) || projects_union(&projection.input)
        }
        _ => false,
    }
}

/// Gives the inputs of a projected union the column names of this union.
///
/// `optimize_unions` moves the projection into each input, where it finds the columns by name:
/// above `SELECT a, b FROM t UNION ALL SELECT DISTINCT b, a FROM t`, it takes the second column of
/// one input and the first of the other.
fn name_projected(input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    if !projects_union(&input) {
        return Ok(input);
    }
    let LogicalPlan::Projection(projection) = Arc::unwrap_or_clone(input) else {
        return internal_err!(
            "internal error: expected a projection as input of a union; please report it"
        );
    };
    let below = match Arc::unwrap_or_clone(projection.input) {
        LogicalPlan::Union(union) => {
            let schema = Arc::clone(&union.schema);
            let inputs = union.inputs.into_iter().map(|input| name_columns(input, &schema));
            Arc::new(LogicalPlan::Union(Union { inputs: inputs.collect::<Result<_>>()?, schema }))
        }
        other => name_projected(Arc::new(other))?,
    };
    let named = Projection::try_new_with_schema(projection.expr, below, projection.schema)?;
    Ok(Arc::new(LogicalPlan::Projection(named)))
}

pub(super) fn name_columns(input: Arc<LogicalPlan>, names: &DFSchema) -> Result<Arc<LogicalPlan>> {
    let has_name = |((table, field), named): ((Option<&TableReference>, &FieldRef), &FieldRef)| {
        table.is_none() && field.name() == named.name()
    };
    if input.schema().iter().zip(names.fields()).all(has_name) {
        return Ok(input);
    }
    let columns = input.schema().iter().zip(names.fields());
    let columns: Vec<Expr> = columns
        .map(|(column, named)| Expr::Column(Column::from(column)).alias(named.name()))
        .collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
}
