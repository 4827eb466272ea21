//! Rejects lambda bodies that DataFusion cannot evaluate, and gives lambda parameters their types and unique indices.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, LambdaFunction, OneOrManyWithParens, Query, Subscript,
    Value, VisitMut, VisitorMut, visit_expressions_mut,
};
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
use crate::sql::statement::predicates::make_array;
use crate::sql::statement::set_names::add_identifiers;

/// Rewrites the lambda bodies of a statement to a form that DataFusion can plan, or returns an error:
///
/// * `[v, w]` becomes `make_array(v, w)`, because `[..]` would be planned without the parameters.
/// * `s.p` becomes `s['p']` for a parameter `s`.
/// * A parameter with the name of a column in a subquery of the body gets another name.
/// * Aggregates, window functions and `IN (SELECT ..)` are errors: a lambda is evaluated per list element.
pub(in crate::sql) fn rewrite_bodies<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
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
                rename_parameters(lambda);
            }
            Expr::Function(call) if self.within > 0 => return self.check_call(call),
            Expr::InSubquery { .. } | Expr::Exists { .. } if self.within > 0 => {
                return ControlFlow::Break(plan_datafusion_err!(
                    "{expr} within a lambda is not supported, because a subquery cannot run for each list element; use ragged_isin(x, (SELECT array_agg(key) FROM ..)) outside the lambda to test which elements the subquery returns"
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

/// Renames the parameters whose name a subquery in the body uses, as in `lambda v: v + (SELECT min(v) FROM t)`. No
/// parameter is visible in a subquery, but DataFusion would take the column for the parameter.
fn rename_parameters(lambda: &mut LambdaFunction) {
    let names: Vec<Ident> = lambda.params.iter().map(|parameter| parameter.name.clone()).collect();
    for name in names {
        let mut uses =
            ParameterUses { name: &name, other: None, depth: 0, in_query: false, is_hidden: false };
        let _ = lambda.body.as_mut().visit(&mut uses);
        if !uses.in_query || uses.is_hidden {
            continue;
        }
        let mut used = HashSet::new();
        add_identifiers(lambda.body.as_ref(), &mut used);
        let mut other = name.clone();
        while used.contains(&other.value.to_lowercase()) {
            other.value.push('_');
        }
        let mut uses = ParameterUses { other: Some(&other), ..uses };
        let _ = lambda.body.as_mut().visit(&mut uses);
        let parameters = match &mut lambda.params {
            OneOrManyWithParens::One(parameter) => std::slice::from_mut(parameter),
            OneOrManyWithParens::Many(parameters) => parameters.as_mut_slice(),
        };
        for parameter in parameters.iter_mut().filter(|parameter| parameter.name == name) {
            parameter.name = other.clone();
        }
    }
}

/// Finds the uses of a parameter in the body of a lambda, and renames those outside subqueries.
struct ParameterUses<'a> {
    name: &'a Ident,
    other: Option<&'a Ident>,
    /// The number of subqueries around the current position.
    depth: usize,
    in_query: bool,
    /// Whether a lambda in the body has a parameter of the same name.
    is_hidden: bool,
}

impl VisitorMut for ParameterUses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_same = |name: &Ident| name.value.eq_ignore_ascii_case(&self.name.value);
        match expr {
            Expr::Identifier(name) if is_same(name) => match self.other {
                _ if self.depth > 0 => self.in_query = true,
                Some(other) => *name = other.clone(),
                None => {}
            },
            Expr::Lambda(inner) => {
                self.is_hidden |= inner.params.iter().any(|parameter| is_same(&parameter.name));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
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

/// Analyzer rule: gives lambda parameters the types that list elements have after type coercion.
///
/// DataFusion takes the type of a parameter while it plans SQL. The type of CASE is then the type of its first branch, so
/// that `v` is an integer in `list_transform(CASE WHEN b THEN [1] ELSE [2.5] END, lambda v: v + 1)`. Type coercion casts
/// the branches to one type, but `v` stays an integer, and physical planning fails. This rule casts the branches, and
/// then takes the types again. Obsolete once the test `stock_parameters_over_case_still_fail` fails.
pub(in crate::sql) fn retype_lambdas(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_lambda = false;
    plan.apply_with_subqueries(|node| {
        has_lambda = has_part(node, |e| matches!(e, PlanExpr::HigherOrderFunction(_)));
        Ok(if has_lambda { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_lambda {
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

/// Casts the branches of CASE to one type and notes this in `is_cast`, or gives the parameters of a call their types.
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
        // A call that uses the parameter of a lambda around it fails here, and is updated together
        // with the call that has this lambda as an argument.
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

/// First index that [`separate_lambda_parameters`] gives to lambda parameters, above the index of any column.
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
