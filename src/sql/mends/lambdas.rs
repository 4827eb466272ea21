//! Rejects lambda bodies that DataFusion cannot evaluate, and gives lambda parameters unique indices.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::plan_datafusion_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, LambdaFunction, Query, Subscript, Value, VisitMut,
    VisitorMut, visit_expressions_mut,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::LambdaVariable;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::sql::statement::predicates::make_array;

/// Rewrites the lambda bodies of a statement to a form that DataFusion can plan, or returns an error:
///
/// * `[v, w]` becomes `make_array(v, w)`, because `[..]` would be planned without the parameters.
/// * `s.p` becomes `s['p']` for a parameter `s`.
/// * Aggregates, window functions and `IN (SELECT ..)` are errors: a lambda is evaluated per list element.
pub(in crate::sql) fn prepare<S: VisitMut>(state: &SessionState, statement: &mut S) -> Result<()> {
    let mut bodies = Bodies { state, within: 0, around: Vec::new() };
    match statement.visit(&mut bodies) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

struct Bodies<'a> {
    state: &'a SessionState,
    /// Number of lambdas that enclose the current position in the query.
    within: usize,
    /// The number of lambdas around the position in each enclosing query; the innermost is last.
    around: Vec<usize>,
}

impl VisitorMut for Bodies<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.around.push(std::mem::take(&mut self.within));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.within = self.around.pop().unwrap_or_default();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match expr {
            Expr::Lambda(lambda) => {
                self.within = self.within.saturating_add(1);
                read_fields(lambda);
            }
            Expr::Function(call) if self.within > 0 => return self.check_call(call),
            Expr::InSubquery { .. } | Expr::Exists { .. } if self.within > 0 => {
                return ControlFlow::Break(plan_datafusion_err!(
                    "{expr} within a lambda is not supported, because a subquery cannot run for each list element; use ragged_isin(x, (SELECT array_agg(key) FROM ..)) outside the lambda for the mask of the elements that the subquery returns"
                ));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        match expr {
            Expr::Lambda(_) => self.within = self.within.saturating_sub(1),
            Expr::Array(array) if self.within > 0 && !array.elem.iter().all(is_written_out) => {
                *expr = make_array(std::mem::take(&mut array.elem));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Replaces `s.p` in the body of `lambda s: ..` with `s['p']`. DataFusion would read `s` as the name of a table.
fn read_fields(lambda: &mut LambdaFunction) {
    let LambdaFunction { params, body, .. } = lambda;
    let parameters: Vec<Ident> = params.iter().map(|parameter| parameter.name.clone()).collect();
    let is_parameter =
        |name: &Ident| parameters.iter().any(|p| p.value.eq_ignore_ascii_case(&name.value));
    let _ = visit_expressions_mut(body, |e| {
        if let Expr::CompoundIdentifier(parts) = e
            && let [first, fields @ ..] = parts.as_slice()
            && is_parameter(first)
        {
            let access = |field: &Ident| {
                let name = match field.quote_style {
                    Some(_) => field.value.clone(),
                    None => field.value.to_lowercase(),
                };
                let index = Expr::value(Value::SingleQuotedString(name));
                AccessExpr::Subscript(Subscript::Index { index })
            };
            *e = Expr::CompoundFieldAccess {
                root: Box::new(Expr::Identifier(first.clone())),
                access_chain: fields.iter().map(access).collect(),
            };
        }
        ControlFlow::<()>::Continue(())
    });
}

impl Bodies<'_> {
    /// Returns an error if `call` is an aggregate or a window function, which a lambda body cannot contain.
    fn check_call(&self, call: &Function) -> ControlFlow<DataFusionError> {
        let name = match call.name.0.as_slice() {
            [name] => name.as_ident().map(|name| name.value.to_lowercase()),
            _ => None,
        };
        let name = name.unwrap_or_default();
        if call.over.is_some() {
            return ControlFlow::Break(plan_datafusion_err!(
                "{name}(..) OVER (..) within a lambda is not supported, because a window function works across rows and a lambda on one list element; compute it in a subquery in FROM and use its column in the lambda"
            ));
        }
        let of_one = self.state.scalar_functions().contains_key(&name)
            || self.state.higher_order_functions().contains_key(&name);
        if !of_one && self.state.aggregate_functions().contains_key(&name) {
            let ours = crate::functions::find_list_function(&name);
            let ours = ours
                .map_or_else(String::new, |f| format!(" (for the elements of a list, use {f}(x))"));
            return ControlFlow::Break(plan_datafusion_err!(
                "{name}(..) within a lambda is not supported, because an aggregate works across rows and a lambda on one list element{ours}; compute it in a subquery in FROM and use its column in the lambda"
            ));
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression is a literal, a negated literal, or a list of literals.
fn is_written_out(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        Expr::UnaryOp { expr, .. } => is_written_out(expr),
        Expr::Array(array) => array.elem.iter().all(is_written_out),
        _ => false,
    }
}

/// First index that [`LambdaParameters`] gives to lambda parameters, above the index of any column.
const PARAMETERS: usize = 1_000_000;

/// Physical optimizer rule, before all others: gives lambda parameters indices that no column has.
///
/// DataFusion numbers parameters after the input columns. If an expression moves to an input with
/// more columns (a merged projection, say), its columns get new indices but its parameters do not.
/// A parameter then refers to a column, which is an error, or silently reads one of the same name.
#[derive(Debug, Default)]
pub(crate) struct LambdaParameters;

impl PhysicalOptimizerRule for LambdaParameters {
    fn optimize(
        &self,
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
                    let projection =
                        ProjectionExec::try_new(columns, Arc::clone(projection.input()))?;
                    return Ok(Transformed::yes(Arc::new(projection) as Arc<dyn ExecutionPlan>));
                }
            } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
                let moved = renumber_parameters(filter.predicate())?;
                if moved.transformed {
                    let filter = FilterExecBuilder::from(filter).with_predicate(moved.data);
                    return Ok(Transformed::yes(
                        Arc::new(filter.build()?) as Arc<dyn ExecutionPlan>
                    ));
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

    fn name(&self) -> &str {
        "serrate_lambda_parameters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn renumber_filter(filter: Option<&JoinFilter>) -> Result<Option<JoinFilter>> {
    let Some(filter) = filter else { return Ok(None) };
    let moved = renumber_parameters(filter.expression())?;
    Ok(moved.transformed.then(|| {
        JoinFilter::new(moved.data, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }))
}

/// Adds [`PARAMETERS`] to the indices of lambda parameters, and so keeps their order, which encodes nesting.
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
