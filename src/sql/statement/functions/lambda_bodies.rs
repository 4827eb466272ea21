//! Rewrites the bodies of lambdas to forms that DataFusion can plan.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, LambdaFunction, OneOrManyWithParens, Query, Subscript,
    Value, VisitMut, VisitorMut,
};

use crate::sql::base::syntax::{as_result, for_each_expr_mut};
use crate::sql::statement::columns::set_names::add_identifiers;
use crate::sql::statement::expressions::predicates::make_array;

/// Rewrites the lambda bodies of a statement to a form that DataFusion can plan, or returns an
/// error:
///
/// * `[v, w]` becomes `make_array(v, w)`, because DataFusion does not find the parameters in
///   `[..]`.
/// * `s.p` becomes `s['p']` for a parameter `s`.
/// * A parameter with the name of a column in a subquery of the body gets another name.
/// * Aggregates, window functions and `IN (SELECT ..)` are errors: a lambda is evaluated per list
///   element.
pub(in crate::sql) fn rewrite_bodies<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> Result<()> {
    let mut bodies = LambdaBodies { state, within: 0, around: Vec::new() };
    as_result(statement.visit(&mut bodies))
}

struct LambdaBodies<'a> {
    state: &'a SessionState,
    /// Number of lambdas around the current position within the innermost query.
    within: usize,
    /// The values of `within` in the enclosing queries, the innermost last.
    around: Vec<usize>,
}

impl VisitorMut for LambdaBodies<'_> {
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

/// Replaces `s.p` in the body of `lambda s: ..` with `s['p']`. DataFusion would read `s` as the
/// name of a table.
fn read_fields(lambda: &mut LambdaFunction) {
    let LambdaFunction { params, body, .. } = lambda;
    let parameters: Vec<Ident> = params.iter().map(|parameter| parameter.name.clone()).collect();
    let is_parameter =
        |name: &Ident| parameters.iter().any(|p| p.value.eq_ignore_ascii_case(&name.value));
    for_each_expr_mut(body, |e| {
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
    });
}

/// Renames the parameters whose name a subquery in the body uses, as in
/// `lambda v: v + (SELECT min(v) FROM t)`. In the subquery, `v` is a column, because parameters are
/// not visible there. But DataFusion would take this column for the parameter.
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
    /// Whether a lambda in the body also has a parameter named `name`.
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

impl LambdaBodies<'_> {
    /// Returns an error if `call` is an aggregate or a window function, which a lambda body cannot
    /// contain.
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
