//! Supports LIKE, IN and scalar functions on lists, FILTER on list reductions, unary minus, and IS
//! DISTINCT FROM for times of day with different units.
//!
//! DataFusion's planner has no hook for these expressions, and gives predicates the fixed type
//! boolean. So statements are rewritten to custom operators, for which the planner has a hook. If
//! the left operand is not a list, the hook in `functions::expression_planners` returns the
//! expression that DataFusion would plan for the original syntax.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::functions::{
    DISTINCT, FILTER, NOT_DISTINCT, ON_LISTS, PREDICATES, SIGNED, is_ours, plans_predicates,
    takes_filter,
};

use crate::sql::statement::expressions::long_numbers::keep_digits;

/// Rewrites the predicates of a statement to custom operators if the session supports operators on
/// lists.
pub(in crate::sql) fn as_operators<S: VisitMut>(state: &SessionState, statement: &mut S) {
    if plans_predicates(state.expr_planners()) {
        keep_digits(statement);
        let _ = statement.visit(&mut PredicateRewriter { functions: state.scalar_functions() });
    }
}

struct PredicateRewriter<'a> {
    functions: &'a HashMap<String, Arc<ScalarUDF>>,
}

impl PredicateRewriter<'_> {
    /// Whether a call names a function that can be applied to each element of a list.
    fn is_of_values(&self, call: &Function) -> bool {
        let [name] = call.name.0.as_slice() else { return false };
        let Some(name) = name.as_ident() else { return false };
        let function = self.functions.get(&name.value.to_ascii_lowercase());
        let FunctionArguments::List(list) = &call.args else { return false };
        let Some(function) = function else { return false };
        match is_ours(function) {
            true => list.args.iter().any(is_typed_literal),
            false => !list.args.is_empty(),
        }
    }
}

impl VisitorMut for PredicateRewriter<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let [like, ilike, isin] = PREDICATES;
        let (word, negated) = match expr {
            Expr::Like { negated, any: false, escape_char: None, .. } => (like, *negated),
            Expr::ILike { negated, any: false, escape_char: None, .. } => (ilike, *negated),
            Expr::InList { negated, .. } => (isin, *negated),
            Expr::IsDistinctFrom(..) => (DISTINCT, false),
            Expr::IsNotDistinctFrom(..) => (NOT_DISTINCT, false),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand }
                if !matches!(**operand, Expr::Value(_) | Expr::Interval(_)) =>
            {
                let taken = std::mem::replace(&mut **operand, Expr::value(Value::Null));
                **operand = Expr::BinaryOp {
                    left: Box::new(taken),
                    op: BinaryOperator::Custom(SIGNED.to_owned()),
                    right: Box::new(Expr::value(Value::Null)),
                };
                return ControlFlow::Continue(());
            }
            Expr::Function(call) if is_filtered(call) => (FILTER, false),
            Expr::Function(call) if is_length(call) || self.is_of_values(call) => (ON_LISTS, false),
            Expr::Extract { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. } => (ON_LISTS, false),
            _ => return ControlFlow::Continue(()),
        };
        // An empty identifier takes the place of the expression while its parts move into the
        // operator.
        let taken = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
        let (left, right) = match taken {
            Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => (expr, pattern),
            Expr::InList { expr, list, .. } => (expr, Box::new(make_array(list))),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                (left, right)
            }
            Expr::Function(mut call) => {
                if let Some(mask) = call.filter.take() {
                    *expr = filter_operator(call, mask);
                    return ControlFlow::Continue(());
                }
                if is_length(&call) {
                    call.name = ObjectName::from(vec![Ident::new("length")]);
                }
                (Box::new(Expr::Function(call)), Box::new(Expr::value(Value::Null)))
            }
            call => (Box::new(call), Box::new(Expr::value(Value::Null))),
        };
        let word = if negated { format!("NOT {word}") } else { word.to_owned() };
        *expr = Expr::BinaryOp { left, op: BinaryOperator::Custom(word), right };
        ControlFlow::Continue(())
    }
}

/// Whether an argument is a literal such as `DATE '2020-01-01'` or `'1'::INT`, which DataFusion
/// plans as a cast.
fn is_typed_literal(arg: &FunctionArg) -> bool {
    let (FunctionArg::Unnamed(value)
    | FunctionArg::Named { arg: value, .. }
    | FunctionArg::ExprNamed { arg: value, .. }) = arg;
    match value {
        FunctionArgExpr::Expr(Expr::TypedString(_)) => true,
        FunctionArgExpr::Expr(Expr::Cast { expr, .. }) => matches!(**expr, Expr::Value(_)),
        // `sql::workarounds::types::times` has rewritten a literal such as `TIMESTAMP '2020-01-01'`
        // to this operator.
        FunctionArgExpr::Expr(Expr::BinaryOp { left, op: BinaryOperator::Custom(_), .. }) => {
            matches!(**left, Expr::Value(_))
        }
        _ => false,
    }
}

fn is_length(call: &Function) -> bool {
    let [name] = call.name.0.as_slice() else { return false };
    let name = name.as_ident().map(|name| name.value.as_str()).unwrap_or_default();
    ["len", "length"].iter().any(|length| length.eq_ignore_ascii_case(name))
}

/// Whether a call is a reduction of a list with FILTER, such as
/// `ragged_mean(x) FILTER (WHERE mask)`.
fn is_filtered(call: &Function) -> bool {
    let [name] = call.name.0.as_slice() else { return false };
    call.filter.is_some()
        && name.as_ident().is_some_and(|name| takes_filter(&name.value.to_lowercase()))
}

/// Returns the custom operator `call FILTER mask` for `call FILTER (WHERE mask)`. The planner,
/// which knows the types of columns, checks that the mask is a list of booleans and filters the
/// list that the call reduces.
fn filter_operator(call: Function, mask: Box<Expr>) -> Expr {
    let left = Box::new(Expr::Function(call));
    Expr::BinaryOp { left, op: BinaryOperator::Custom(FILTER.to_owned()), right: mask }
}

/// Returns `make_array(item, ..)`, which combines several expressions in one operand.
pub(in crate::sql) fn make_array(items: Vec<Expr>) -> Expr {
    call_function("make_array", items)
}

pub(in crate::sql) fn call_function(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
