//! Rejects lambda bodies that DataFusion cannot evaluate, and gives lambda parameters their types
//! and unique indices.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{Case, Expr as PlanExpr, ExprSchemable, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::LambdaVariable;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::sql::base::expression_parts::{has_part, rewrite_node};
use crate::sql::base::plan_nodes::has_node;

/// Analyzer rule: gives lambda parameters the types that list elements have after type coercion.
///
/// DataFusion determines the type of a lambda parameter while it plans SQL. At this time, the type
/// of CASE is the type of its first branch, so `v` is an integer in `list_transform(CASE WHEN b
/// THEN [1] ELSE [2.5] END, lambda v: v + 1)`. Type coercion casts the branches to one type, but
/// `v` stays an integer, and physical planning fails. This rule casts the branches itself, and then
/// determines the types of parameters again. This workaround is obsolete once the test
/// `stock_parameters_over_case_still_fail` fails.
pub(in crate::sql) fn retype_lambdas(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_lambda_call = |e: &PlanExpr| matches!(e, PlanExpr::HigherOrderFunction(_));
    if !has_node(&plan, |node| Ok(has_part(node, is_lambda_call)))? {
        return Ok(plan);
    }
    // The types of parameters change only above a CASE whose branches are cast.
    let is_cast = Cell::new(false);
    let plan = plan.transform_up_with_subqueries(|plan| {
        let is_affected =
            |e: &PlanExpr| matches!(e, PlanExpr::Case(_) | PlanExpr::HigherOrderFunction(_));
        let done = match has_part(&plan, is_affected) {
            true => rewrite_node(plan, |e, columns| update_types(e, columns, &is_cast))?,
            false => Transformed::no(plan),
        };
        match is_cast.get() {
            true => done.map_data(LogicalPlan::recompute_schema),
            false => Ok(done),
        }
    })?;
    Ok(plan.data)
}

/// Casts the branches of a CASE to one type, and sets `is_cast` if a type changes. If `is_cast` is
/// set, determines the types of the lambda parameters of a call again.
fn update_types(
    e: PlanExpr,
    columns: &DFSchema,
    is_cast: &Cell<bool>,
) -> Result<Transformed<PlanExpr>> {
    match e {
        PlanExpr::Case(case) => {
            let done = cast_branches(case, columns)?;
            is_cast.set(is_cast.get() || done.transformed);
            Ok(done)
        }
        // A call in the body of a lambda fails here if it uses the parameter of the lambda. Such a
        // call is updated later, together with the call that has the lambda as an argument.
        call @ PlanExpr::HigherOrderFunction(_) if is_cast.get() => {
            Ok(match call.clone().resolve_lambda_variables(columns) {
                Ok(done) => Transformed::new_transformed(done.data, done.transformed),
                Err(_) => Transformed::no(call),
            })
        }
        e => Ok(Transformed::no(e)),
    }
}

fn cast_branches(case: Case, columns: &DFSchema) -> Result<Transformed<PlanExpr>> {
    let branches = case.when_then_expr.iter().map(|(_, then)| then.get_type(columns));
    let last = case.else_expr.as_ref().map(|e| e.get_type(columns)).transpose();
    let (Ok(branches), Ok(last)) = (branches.collect::<Result<Vec<_>>>(), last) else {
        return Ok(Transformed::no(PlanExpr::Case(case)));
    };
    let Some(to) = get_coerce_type_for_case_expression(&branches, last.as_ref()) else {
        return Ok(Transformed::no(PlanExpr::Case(case)));
    };
    if branches.iter().chain(&last).all(|t| *t == to) {
        return Ok(Transformed::no(PlanExpr::Case(case)));
    }
    let Case { expr, when_then_expr, else_expr } = case;
    let cast =
        |e: Box<PlanExpr>| -> Result<Box<PlanExpr>> { Ok(Box::new((*e).cast_to(&to, columns)?)) };
    let when_then_expr = when_then_expr
        .into_iter()
        .map(|(when, then)| Ok((when, cast(then)?)))
        .collect::<Result<Vec<_>>>()?;
    let else_expr = else_expr.map(cast).transpose()?;
    Ok(Transformed::yes(PlanExpr::Case(Case { expr, when_then_expr, else_expr })))
}

/// First index that [`separate_lambda_parameters`] gives to lambda parameters, above the index of
/// any column.
const PARAMETERS: usize = 1_000_000;

/// Physical optimizer rule, before all others: gives lambda parameters indices that no column has.
///
/// DataFusion numbers parameters after the input columns. If an expression moves to an input with
/// more columns (a merged projection, say), its columns get new indices but its parameters do not.
/// A parameter then refers to a column, which is an error, or silently reads a column with the name
/// of the parameter.
pub(crate) fn separate_lambda_parameters(
    plan: Arc<dyn ExecutionPlan>,
    _config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let mut changed = false;
            let columns = projection
                .expr()
                .iter()
                .map(|column| {
                    let moved = renumber_parameters(&column.expr)?;
                    changed |= moved.transformed;
                    Ok(ProjectionExpr { expr: moved.data, alias: column.alias.clone() })
                })
                .collect::<Result<Vec<_>>>()?;
            if changed {
                let projection = ProjectionExec::try_new(columns, Arc::clone(projection.input()))?;
                return Ok(Transformed::yes(Arc::new(projection) as Arc<dyn ExecutionPlan>));
            }
        } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
            let moved = renumber_parameters(filter.predicate())?;
            if moved.transformed {
                let filter = FilterExecBuilder::from(filter).with_predicate(moved.data);
                return Ok(Transformed::yes(Arc::new(filter.build()?) as Arc<dyn ExecutionPlan>));
            }
        } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            if let Some(filter) = renumber_filter(join.filter())? {
                let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter));
                return Ok(Transformed::yes(Arc::new(join.build()?) as Arc<dyn ExecutionPlan>));
            }
        } else if let Some(join) = node.downcast_ref::<HashJoinExec>()
            && let Some(filter) = renumber_filter(join.filter())?
        {
            let join = HashJoinExecBuilder::from(join).with_filter(Some(filter));
            return Ok(Transformed::yes(Arc::new(join.build()?) as Arc<dyn ExecutionPlan>));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(plan.data)
}

fn renumber_filter(filter: Option<&JoinFilter>) -> Result<Option<JoinFilter>> {
    let Some(filter) = filter else { return Ok(None) };
    let moved = renumber_parameters(filter.expression())?;
    Ok(moved.transformed.then(|| {
        JoinFilter::new(moved.data, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }))
}

/// Adds [`PARAMETERS`] to the index of each lambda parameter. The order of these indices encodes
/// how lambdas are nested, and stays the same.
fn renumber_parameters(expr: &Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    Arc::clone(expr).transform_up(|e| {
        let moved = match e.downcast_ref::<LambdaVariable>() {
            Some(v) if v.index() < PARAMETERS => {
                let index = v.index().saturating_add(PARAMETERS);
                Arc::new(LambdaVariable::new(index, Arc::clone(v.field())))
            }
            _ => return Ok(Transformed::no(e)),
        };
        Ok(Transformed::yes(moved as Arc<dyn PhysicalExpr>))
    })
}
