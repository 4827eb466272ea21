use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

const COMPARING: [&str; 3] = ["greatest", "least", "nullif"];

/// Analyzer rule, before DataFusion's type coercion.
///
/// * Compares a float with a decimal as doubles. DataFusion 55 converts the float to a decimal, which fails
///   for NaN, infinity and 1e30, and rounds other values. Obsolete once the test
///   `stock_floats_become_decimals` fails.
/// * Fixes the type of `round(x, 1)`. For a DECIMAL(12, 2), DataFusion returns a DECIMAL(12, 1) if the 1 is a
///   literal, and a DECIMAL(13, 2) otherwise. Type coercion casts the 1 to an INT and the optimizer folds the
///   cast, so the type of the column changes twice between rules. The rule makes a literal an INT at once,
///   and casts the result of any other expression to its planned type. Obsolete once the test
///   `stock_round_changes_type` fails.
#[derive(Debug, Default)]
pub(in crate::sql) struct StableDecimals;

impl AnalyzerRule for StableDecimals {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            if !may_change(&plan)? {
                return Ok(Transformed::no(plan));
            }
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                let (name, source) = (scan.table_name.clone(), scan.source.schema());
                schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
            }
            let names = NamePreserver::new(&plan);
            let changed = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(|expr| rewrite_expr(expr, &schema))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })?;
            // Nodes copy the types of their inputs, so the schemas above a changed node must be computed
            // again.
            changed.map_data(LogicalPlan::recompute_schema)
        })?;
        match plan.transformed {
            true => Ok(plan
                .data
                .transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))?
                .data),
            false => Ok(plan.data),
        }
    }

    fn name(&self) -> &str {
        "serrate_stable_decimals"
    }
}

fn may_change(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found
            || expr.exists(|expr| {
                Ok(match expr {
                    Expr::BinaryExpr(binary) => is_comparison(binary.op),
                    Expr::Between(_)
                    | Expr::InList(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_) => true,
                    Expr::Case(case) => case.expr.is_some(),
                    Expr::ScalarFunction(call) => {
                        call.func.name() == "round" || COMPARING.contains(&call.func.name())
                    }
                    _ => false,
                })
            })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn rewrite_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            as_doubles(vec![&mut *binary.left, &mut *binary.right], schema)
        }
        Expr::Between(between) => {
            as_doubles(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            as_doubles(std::iter::once(&mut **expr).chain(list).collect(), schema)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            query_as_doubles(expr, subquery, schema)?
        }
        Expr::Case(case) => match &mut case.expr {
            Some(operand) => {
                let whens = case.when_then_expr.iter_mut().map(|(when, _)| &mut **when);
                as_doubles(std::iter::once(&mut **operand).chain(whens).collect(), schema)
            }
            None => false,
        },
        Expr::ScalarFunction(call) if COMPARING.contains(&call.func.name()) => {
            as_doubles(call.args.iter_mut().collect(), schema)
        }
        Expr::ScalarFunction(call) if call.func.name() == "round" => {
            return keep_type(expr, schema);
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// Casts compared expressions to doubles if some are decimals and some floats. Returns `true` if it casts
/// them.
fn as_doubles(parts: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    // A lambda parameter has no type in this schema. If one is compared, nothing is cast.
    let types: Vec<DataType> = parts.iter().filter_map(|part| part.get_type(schema).ok()).collect();
    let numbers = types.iter().all(|t| t.is_numeric() || t.is_null());
    if types.len() != parts.len()
        || !numbers
        || !types.iter().any(DataType::is_decimal)
        || !types.iter().any(DataType::is_floating)
    {
        return false;
    }
    for (part, data_type) in parts.into_iter().zip(types) {
        if data_type != DataType::Float64 {
            *part = Expr::Cast(Cast::new(Box::new(std::mem::take(part)), DataType::Float64));
        }
    }
    true
}

/// Casts a value and the column of the subquery that it is compared with, like [`as_doubles`].
fn query_as_doubles(value: &mut Expr, query: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let rows = query.subquery.schema();
    let (Ok(of_value), [field]) = (value.get_type(schema), &rows.fields()[..]) else {
        return Ok(false);
    };
    let of_query = field.data_type();
    let differ = of_value.is_decimal() && of_query.is_floating()
        || of_value.is_floating() && of_query.is_decimal();
    if !differ {
        return Ok(false);
    }
    let double = |e: Expr| Expr::Cast(Cast::new(Box::new(e), DataType::Float64));
    if of_value != DataType::Float64 {
        *value = double(std::mem::take(value));
    }
    let columns = rows.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        double(column).alias_qualified(table.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(query.subquery.as_ref().clone()).project(columns)?;
    *query = query.with_plan(Arc::new(plan.build()?));
    Ok(true)
}

/// Gives `round(x, n)` a type that does not change when the optimizer rewrites `n`.
fn keep_type(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { args, .. }) = &mut expr else {
        return Ok(Transformed::no(expr));
    };
    let [value, places] = args.as_mut_slice() else { return Ok(Transformed::no(expr)) };
    if !value.get_type(schema).is_ok_and(|t| t.is_decimal()) {
        return Ok(Transformed::no(expr));
    }
    if let Expr::Literal(literal, _) = places {
        let changed = literal.data_type().is_integer() && literal.data_type() != DataType::Int32;
        if changed && let Ok(int) = literal.cast_to(&DataType::Int32) {
            *places = Expr::Literal(int, None);
        }
        return Ok(Transformed::new_transformed(expr, changed));
    }
    let data_type = expr.get_type(schema)?;
    Ok(Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), data_type))))
}
