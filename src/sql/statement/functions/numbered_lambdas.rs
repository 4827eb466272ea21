//! Supports lambdas of an element and its position, `list_transform(x, lambda v, i: v * i)`, with
//! positions from 1, as in DuckDB.
//!
//! DataFusion's functions pass only the element. The list is therefore zipped with its positions,
//! and the parameters become the fields of each pair. This workaround is obsolete once the test
//! `stock_lambdas_still_have_no_positions` fails.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    LambdaFunction, LambdaFunctionParameter, OneOrManyWithParens, Subscript, Value,
};

use crate::sql::base::syntax::{for_each_expr_mut, has_expr, to_plain_name};
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::folding::{fold_name, is_same_name};
use crate::sql::statement::names::order_aliases::may_differ;

/// Functions whose lambda takes a position in DuckDB. The `bool` is whether a function returns
/// elements of the list, as `list_filter` does, instead of results of the lambda.
const NUMBERED: [(&str, bool); 6] = [
    ("list_transform", false),
    ("array_transform", false),
    ("list_apply", false),
    ("array_apply", false),
    ("list_filter", true),
    ("array_filter", true),
];

/// The fields of the structs that `arrays_zip` returns.
const FIELDS: [&str; 2] = ["1", "2"];

/// Whether an expression calls a function with a lambda of an element and its position.
pub(in crate::sql) fn has_position(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(call) if read_call(call).is_some())
}

/// Rewrites a call with a lambda of an element and its position; other expressions stay unchanged.
///
/// # Errors
/// If the list may have another value when it is evaluated again, or if the lambda contains a query
/// or an inner lambda that has a parameter of the same name.
pub(in crate::sql) fn write_out_positions(expr: &mut Expr) -> Result<()> {
    let Expr::Function(call) = &*expr else { return Ok(()) };
    let Some((returns_elements, list, lambda, [element, position])) = read_call(call) else {
        return Ok(());
    };
    // The rewritten call evaluates the list twice, and both results must be equal.
    if may_differ(list) {
        return plan_err!(
            "{}: the list {list} has a subquery or a call such as random(), which is not supported for a lambda with positions; compute the list in a subquery in FROM, and use its column",
            call.name
        );
    }
    if is_hidden(&lambda.body, &[element, position]) {
        return plan_err!(
            "{}: the lambda with the position {position} contains a query, or an inner lambda with a parameter that is also named {element} or {position}; give the inner parameter another name, or compute the query in FROM",
            call.name
        );
    }
    let pair = Ident::with_quote('"', format!("{}, {}", fold_name(element), fold_name(position)));
    let mut body = lambda.body.as_ref().clone();
    replace_names(&mut body, &pair, &[element, position]);
    let last = call_function("array_length", vec![list.clone()]);
    let first = Expr::value(Value::Number("1".to_owned(), false));
    let positions = call_function("generate_series", vec![first, last]);
    let pairs = call_function("arrays_zip", vec![list.clone(), positions]);
    let of_pair = |body: Expr| {
        let parameter = LambdaFunctionParameter { name: pair.clone(), data_type: None };
        Expr::Lambda(LambdaFunction {
            params: OneOrManyWithParens::One(parameter),
            body: Box::new(body),
            syntax: lambda.syntax,
        })
    };
    *expr = match returns_elements {
        true => {
            let kept = call_function("array_filter", vec![pairs, of_pair(body)]);
            let elements = of_pair(read_field(&pair, FIELDS[0], &[]));
            call_function("array_transform", vec![kept, elements])
        }
        false => call_function("array_transform", vec![pairs, of_pair(body)]),
    };
    Ok(())
}

/// A call with a lambda of an element and its position: whether the call returns elements, then the
/// list, the lambda, and the two parameters.
type NumberedCall<'a> = (bool, &'a Expr, &'a LambdaFunction, [&'a Ident; 2]);

fn read_call(call: &Function) -> Option<NumberedCall<'_>> {
    let name = to_plain_name(&call.name)?;
    let (_, returns_elements) = NUMBERED.iter().find(|(known, _)| *known == name)?;
    let FunctionArguments::List(arguments) = &call.args else { return None };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(list)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Lambda(lambda))),
    ] = arguments.args.as_slice()
    else {
        return None;
    };
    let OneOrManyWithParens::Many(parameters) = &lambda.params else { return None };
    let [element, position] = parameters.as_slice() else { return None };
    Some((*returns_elements, list, lambda, [&element.name, &position.name]))
}

/// Whether a name in the body of a lambda may mean something other than its parameter, because the
/// body has a subquery, or an inner lambda with a parameter of the same name.
fn is_hidden(body: &Expr, parameters: &[&Ident; 2]) -> bool {
    has_expr(body, |part| match part {
        Expr::Lambda(inner) => inner
            .params
            .iter()
            .any(|own| parameters.iter().any(|parameter| is_same_name(&own.name, parameter))),
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
        _ => false,
    })
}

/// Replaces the parameters in the body of a lambda with the fields of `pair`, the struct of an
/// element and its position.
fn replace_names(body: &mut Expr, pair: &Ident, parameters: &[&Ident; 2]) {
    let field_of = |name: &Ident| {
        let at = parameters.iter().position(|parameter| is_same_name(name, parameter))?;
        FIELDS.get(at).copied()
    };
    for_each_expr_mut(body, |part| {
        let replaced = match &*part {
            Expr::Identifier(name) => field_of(name).map(|field| read_field(pair, field, &[])),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [first, inner @ ..] => field_of(first).map(|field| read_field(pair, field, inner)),
                [] => None,
            },
            _ => None,
        };
        if let Some(replaced) = replaced {
            *part = replaced;
        }
    });
}

/// Returns `pair['field']`, or `pair['field']['inner']` for the names of inner fields.
fn read_field(pair: &Ident, field: &str, inner: &[Ident]) -> Expr {
    let access = |name: String| {
        let index = Expr::value(Value::SingleQuotedString(name));
        AccessExpr::Subscript(Subscript::Index { index })
    };
    let names = std::iter::once(field.to_owned()).chain(inner.iter().map(fold_name));
    Expr::CompoundFieldAccess {
        root: Box::new(Expr::Identifier(pair.clone())),
        access_chain: names.map(access).collect(),
    }
}
