//! Flattens nested UNIONs.
//!
//! The parser nests `a UNION ALL b UNION ALL c`. At each level, `optimize_unions` of DataFusion 55
//! moves the inputs of the inner union into the outer one and inspects all, so its time is
//! quadratic.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, LogicalPlan, Union};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule, after type coercion: if an input of a union is a union of the same types, the
/// inputs of the inner union replace it. Below DISTINCT, also replaces inputs that are DISTINCT of
/// a union.
#[derive(Debug)]
pub(in crate::sql) struct FlatUnions;

impl AnalyzerRule for FlatUnions {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !plan.exists(|node| Ok(matches!(node, LogicalPlan::Union(u) if is_nested(u, true))))? {
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
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "serrate_flat_unions"
    }
}

fn is_nested(union: &Union, distinct: bool) -> bool {
    union.inputs.iter().any(|input| inner_union(input, &union.schema, distinct).is_some())
}

/// Returns `input` if it is a union with the types of `schema`. If `distinct` is true, also returns
/// such a union below DISTINCT.
fn inner_union<'a>(input: &'a LogicalPlan, schema: &DFSchema, distinct: bool) -> Option<&'a Union> {
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
        match inner_union(&input, &union.schema, distinct) {
            Some(within) => open.extend(within.inputs.iter().rev().map(Arc::clone)),
            None => inputs.push(input),
        }
    }
    Union { inputs, schema: union.schema }
}
