//! Rewrites expressions to forms that the planner supports: slices with one bound, comparisons as
//! arguments, DuckDB's names of aggregates, and calls that read a table.

use std::path::Path;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgOperator, FunctionArgumentClause, FunctionArguments, Ident, ObjectName, Subscript,
    TableFactor, UnaryOperator, Value, ValueWithSpan,
};

use crate::access;
use crate::functions::{BIN_COLUMNS, PAIR, find_table_argument, list_parameter_names};
use crate::sql::base::syntax::{
    for_each_expr_mut, has_expr, has_query, to_plain_name, unquote_text,
};
use crate::sql::base::tokens::quote_name;
use crate::sql::from::rewrite::{QueryParser, find_query_text};
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::expressions::windows::multiply_bounds_of;
use crate::sql::statement::folding::fold_name;

/// Rewrites an expression to a form that the planner supports. Most expressions stay unchanged.
///
/// # Errors
/// If a call reads a table that does not exist, or names an argument that its function does not
/// have.
pub(in crate::sql) fn rewrite_expr(expr: &mut Expr, parse: QueryParser) -> Result<()> {
    match expr {
        Expr::CompoundFieldAccess { .. } => {
            complete_slices(expr);
            name_fields(expr);
            Ok(())
        }
        Expr::Cast { expr: value, data_type, .. } => {
            // Rewrites `BLOB 'abc'` to `BYTEA 'abc'`. DataFusion rejects BLOB, and this is intended
            // for a string with a backslash or with characters other than ASCII: in DuckDB, a
            // backslash begins an escape such as `\xAA`, and other characters must be written as
            // escapes.
            if matches!(data_type, DataType::Blob(None)) && is_plain_text(value) {
                *data_type = DataType::Bytea;
            }
            Ok(())
        }
        Expr::Function(call) => {
            multiply_bounds_of(call);
            move_null_treatment(call);
            drop_order(call);
            enclose_constant_keys(call);
            as_called_here(call);
            order_arguments(call)?;
            append_table(call, parse)
        }
        _ => Ok(()),
    }
}

/// Rewrites a list literal such as `[t.x, 1]` to `make_array(t.x, 1)` if it has a subquery, or if
/// it is within a subquery and has columns. DataFusion plans the elements of a list literal without
/// the columns of outer queries and without the queries of WITH. This workaround is obsolete once
/// the test `stock_list_literals_still_have_no_outer_columns` fails.
///
/// A list of a string and an unqualified column, such as `['2020-01-01', day]`, stays a literal: if
/// `day` is a date or time, the planner of list literals casts the string to its type, but
/// `make_array` does not. A user who needs a column of an outer query in such a list can qualify
/// the column.
pub(in crate::sql) fn call_lists(expr: &mut Expr, is_in_subquery: bool) {
    let Expr::Array(array) = expr else { return };
    let elements = array.elem.as_slice();
    let names_tables = elements.iter().any(names_table);
    let has_queries = elements.iter().any(has_query);
    let has_string = elements.iter().any(|element| unquote_text(element).is_some());
    let needs_call = match is_in_subquery {
        true => {
            let has_columns = has_queries || elements.iter().any(names_column);
            names_tables || (has_columns && !has_string)
        }
        false => has_queries && (names_tables || !has_string),
    };
    if needs_call {
        let elements = std::mem::take(&mut array.elem);
        *expr = call_function("make_array", elements);
    }
}

/// Whether an expression has a qualified column.
fn names_table(element: &Expr) -> bool {
    has_expr(element, |e| matches!(e, Expr::CompoundIdentifier(_)))
}

/// Rewrites `[x, 1]` in the arguments of `FROM unnest(..)` to `make_array(x, 1)`. Here `x` is a
/// column of another table, which DataFusion does not find in a list literal.
pub(in crate::sql) fn name_outer_elements(table: &mut TableFactor) {
    let TableFactor::UNNEST { array_exprs, .. } = table else { return };
    for_each_expr_mut(array_exprs, |e| {
        if let Expr::Array(array) = e
            && array.elem.iter().any(names_column)
        {
            let elements = std::mem::take(&mut array.elem);
            *e = call_function("make_array", elements);
        }
    });
}

fn names_column(element: &Expr) -> bool {
    has_expr(element, |e| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}

/// Aggregates whose result does not depend on the order of the rows.
const UNORDERED: [&str; 34] = [
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "every",
    "max",
    "mean",
    "median",
    "min",
    "percentile_cont",
    "quantile_cont",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Removes ORDER BY within the arguments of an aggregate whose result does not depend on the order
/// of the rows. DataFusion treats the sort key as an argument: it returns the median of `y` for
/// `quantile_cont(x, 0.5 ORDER BY y)`, and `max(x ORDER BY y)` with GROUP BY fails or panics. This
/// workaround is obsolete once the test `stock_orders_of_aggregates_are_still_arguments` fails.
fn drop_order(call: &mut Function) {
    let Some(name) = to_plain_name(&call.name) else { return };
    if let FunctionArguments::List(list) = &mut call.args
        && UNORDERED.contains(&name.as_str())
    {
        list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
    }
}

/// Rewrites `array_agg(x ORDER BY 2)` to `array_agg(x ORDER BY (2))`. A number in the ORDER BY of a
/// call is a constant, as in DuckDB, but DataFusion takes a number without parentheses for the
/// position of a column of FROM. This workaround is obsolete once the test
/// `stock_numbers_in_orders_of_arguments_are_still_positions` fails.
fn enclose_constant_keys(call: &mut Function) {
    let FunctionArguments::List(list) = &mut call.args else { return };
    for clause in &mut list.clauses {
        let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
        for key in keys {
            if let Expr::Value(value) = &key.expr
                && matches!(value.value, Value::Number(..))
            {
                key.expr = Expr::Nested(Box::new(key.expr.clone()));
            }
        }
    }
}

pub(in crate::sql) fn complete_slices(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { access_chain, .. } = expr else { return };
    for access in access_chain {
        if let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) = access
        {
            add_bounds(lower_bound, upper_bound, stride.as_ref());
        }
    }
}

/// Adds missing bounds of a slice: the first element as the lower and the last element as the upper
/// bound, or the reverse if the step is negative.
fn add_bounds(lower: &mut Option<Expr>, upper: &mut Option<Expr>, stride: Option<&Expr>) {
    let number = |n: u8| Expr::value(Value::Number(n.to_string(), false));
    let first = || number(1);
    let last = || Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(1)) };
    let back = matches!(stride, Some(Expr::UnaryOp { op: UnaryOperator::Minus, .. }));
    lower.get_or_insert_with(|| if back { last() } else { first() });
    upper.get_or_insert_with(|| if back { first() } else { last() });
}

/// Rewrites a field of a computed struct, as in `x[1].a`, to a quoted name, as in `x[1].'a'`, which
/// the planner supports.
fn name_fields(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    let mut within = !matches!(**root, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    for access in access_chain {
        match access {
            AccessExpr::Dot(Expr::Identifier(name)) if within => {
                let name = Value::SingleQuotedString(fold_name(name));
                *access = AccessExpr::Dot(Expr::value(name));
            }
            AccessExpr::Dot(_) => {}
            AccessExpr::Subscript(_) => within = true,
        }
    }
}

fn is_plain_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. })
        if text.is_ascii() && !text.contains('\\'))
}

/// Functions that take IGNORE NULLS.
const NULL_TREATED: [&str; 9] =
    ["array_agg", "first", "first_value", "lag", "last", "last_value", "lead", "list", "nth_value"];

fn is_null_treated(name: &ObjectName) -> bool {
    to_plain_name(name).is_some_and(|name| NULL_TREATED.contains(&name.as_str()))
}

/// Rewrites `f(x IGNORE NULLS)` to `f(x) IGNORE NULLS`, and RESPECT NULLS in the same way.
///
/// The parser reads `first_value(abs(x) IGNORE NULLS)` as `first_value((abs(x) IGNORE NULLS))`.
fn move_null_treatment(call: &mut Function) {
    let is_treated = is_null_treated(&call.name);
    let FunctionArguments::List(list) = &mut call.args else { return };
    if call.null_treatment.is_some() {
        return;
    }
    let is_treatment = |clause: &FunctionArgumentClause| {
        matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_))
    };
    if let Some(at) = list.clauses.iter().position(is_treatment) {
        if let FunctionArgumentClause::IgnoreOrRespectNulls(treatment) = list.clauses.remove(at) {
            call.null_treatment = Some(treatment);
        }
    } else if is_treated
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(last))) = list.args.last_mut()
        && let Some(inner) = find_last_call(last)
        && inner.over.is_none()
        && !is_null_treated(&inner.name)
    {
        call.null_treatment = inner.null_treatment.take();
    }
}

/// Returns the call with which the text of an expression ends: `f(y)` for `x + f(y)`. Returns
/// `None` if the text ends otherwise.
fn find_last_call(e: &mut Expr) -> Option<&mut Function> {
    match e {
        Expr::Function(call) => Some(call),
        Expr::BinaryOp { right, .. } => find_last_call(right),
        Expr::UnaryOp { expr, .. } => find_last_call(expr),
        _ => None,
    }
}

/// Makes `a = 5` in `f(a = 5)` a comparison, as in DuckDB. The parser has read it as the argument 5
/// with the name `a`.
pub(in crate::sql) fn read_comparisons(expr: &mut Expr) {
    let Expr::Function(call) = expr else { return };
    let FunctionArguments::List(list) = &mut call.args else { return };
    for arg in &mut list.args {
        let taken = std::mem::replace(arg, FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        *arg = match taken {
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(e),
                operator: FunctionArgOperator::Equals,
            } => FunctionArg::Unnamed(FunctionArgExpr::Expr(make_equality(read_name(name), e))),
            FunctionArg::ExprNamed {
                name,
                arg: FunctionArgExpr::Expr(e),
                operator: FunctionArgOperator::Equals,
            } => FunctionArg::Unnamed(FunctionArgExpr::Expr(make_equality(name, e))),
            other => other,
        };
    }
}

/// Moves named arguments of Serrate's functions to their positions, and inserts NULL for each
/// omitted argument before them. DataFusion supports no named arguments for functions with a
/// variable number of arguments.
fn order_arguments(call: &mut Function) -> Result<()> {
    let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
    if list.args.iter().all(|arg| matches!(arg, FunctionArg::Unnamed(_))) {
        return Ok(());
    }
    let Some(function) = to_plain_name(&call.name) else { return Ok(()) };
    let Some((names, required)) = list_parameter_names(&function) else { return Ok(()) };
    let mut placed: Vec<Option<FunctionArgExpr>> = vec![None; names.len()];
    let mut named = false;
    for (i, arg) in list.args.iter().enumerate() {
        let (at, value) = match arg {
            FunctionArg::Unnamed(_) if named => {
                return plan_err!(
                    "{function}: the unnamed argument {arg} follows a named one; write unnamed arguments first"
                );
            }
            FunctionArg::Unnamed(value) => (Some(i), value),
            FunctionArg::Named { name, arg: value, .. } => {
                named = true;
                (names.iter().position(|n| name.value.eq_ignore_ascii_case(n)), value)
            }
            FunctionArg::ExprNamed { arg: value, .. } => (None, value),
        };
        match at.and_then(|at| placed.get_mut(at)) {
            Some(free @ None) => *free = Some(value.clone()),
            Some(Some(_)) => {
                return plan_err!(
                    "{function}: the argument {arg} is given twice; remove one of the two"
                );
            }
            None => {
                return plan_err!(
                    "{function} does not accept the argument {arg}; its arguments are {}",
                    names.join(", ")
                );
            }
        }
    }
    if let Some(missing) = placed.iter().take(required).position(Option::is_none) {
        return plan_err!(
            "{function}: the required argument {} is missing; add it",
            names[missing]
        );
    }
    let given = placed.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let null = || FunctionArgExpr::Expr(Expr::value(Value::Null));
    let placed = placed.into_iter().take(given);
    list.args = placed.map(|arg| FunctionArg::Unnamed(arg.unwrap_or_else(null))).collect();
    Ok(())
}

/// DuckDB's names of functions, and DataFusion's names for them.
const RENAMED: [(&str, &str); 12] = [
    ("approx_count_distinct", "approx_distinct"),
    ("approx_quantile", "approx_percentile_cont"),
    ("favg", "avg"),
    ("fsum", "sum"),
    ("grouping_id", "grouping"),
    ("strlen", "octet_length"),
    ("list", "array_agg"),
    ("list_apply", "array_transform"),
    ("array_apply", "array_transform"),
    ("first", "first_value"),
    ("last", "last_value"),
    ("list_value", "make_array"),
];

fn as_called_here(call: &mut Function) {
    let Some(name) = to_plain_name(&call.name) else { return };
    if let Some((_, here)) = RENAMED.iter().find(|(theirs, _)| *theirs == name) {
        call.name = ObjectName::from(vec![Ident::new(*here)]);
    }
}

/// Returns the left side of the comparison in `f(a = 5)` or `f('a' = 5)`: the column `a` or the
/// string `'a'`. The parser takes both for the name of an argument.
fn read_name(name: Ident) -> Expr {
    match name.quote_style {
        Some('\'') => Expr::value(Value::SingleQuotedString(name.value)),
        _ => Expr::Identifier(name),
    }
}

/// Returns `left = right` for a `right` that was parsed without `left =`. Operators in `right` that
/// bind no tighter than `=` apply to the whole comparison: `a AND b` gives `(left = a) AND b`.
fn make_equality(left: Expr, mut right: Expr) -> Expr {
    let mut first = &mut right;
    loop {
        // Calls `find_weak_operand` twice: the borrow checker rejects a borrow that only one branch
        // returns.
        if find_weak_operand(first).is_none() {
            break;
        }
        match find_weak_operand(first) {
            Some(operand) => first = operand,
            None => return right,
        }
    }
    let compared = std::mem::replace(first, Expr::value(Value::Null));
    *first =
        Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Eq, right: Box::new(compared) };
    right
}

/// Returns the left operand of an operator that binds no tighter than `=` in the parser, else
/// `None`.
fn find_weak_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, op, .. } => (!binds_stronger(op)).then_some(left.as_mut()),
        Expr::IsNull(e)
        | Expr::IsNotNull(e)
        | Expr::IsTrue(e)
        | Expr::IsNotTrue(e)
        | Expr::IsFalse(e)
        | Expr::IsNotFalse(e)
        | Expr::IsUnknown(e)
        | Expr::IsNotUnknown(e)
        | Expr::IsDistinctFrom(e, _)
        | Expr::IsNotDistinctFrom(e, _)
        | Expr::IsNormalized { expr: e, .. }
        | Expr::AnyOp { left: e, .. }
        | Expr::AllOp { left: e, .. } => Some(e.as_mut()),
        _ => None,
    }
}

fn binds_stronger(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::StringConcat
            | BinaryOperator::DuckIntegerDivide
            | BinaryOperator::MyIntegerDivide
            | BinaryOperator::Xor
            | BinaryOperator::BitwiseOr
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseXor
            | BinaryOperator::PGBitwiseXor
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight
            | BinaryOperator::PGExp
            | BinaryOperator::PGOverlap
            | BinaryOperator::PGStartsWith
    )
}

/// Appends a subquery for the key and value columns to `ragged_lookup(x, 't', 'key', 'column')`,
/// because functions cannot access the session's tables. Parquet files need no subquery: the
/// function reads and caches them.
fn append_table(call: &mut Function, parse: QueryParser) -> Result<()> {
    let Some(name) = to_plain_name(&call.name) else { return Ok(()) };
    let Some((function, table)) = find_table_argument(&name) else { return Ok(()) };
    let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
    let (before, args) = (table.index, &mut list.args);
    let texts: Vec<&str> = args
        .iter()
        .skip(before)
        .map_while(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => unquote_text(e),
            _ => None,
        })
        .collect();
    // If an argument is not a string, the call stays unchanged, and the function itself reports the
    // error.
    let all_texts = texts.len() == args.len().saturating_sub(before);
    let [from, columns @ ..] = texts.as_slice() else { return Ok(()) };
    let own = Path::new(from);
    // The function itself reads the `codes.parquet` of a folder, so the call needs no subquery. For
    // a folder in an object store, it reads a copy. A URL without an extension and without `*` is
    // taken for a folder.
    let is_folder = match access::is_store_url(from) {
        true => own.extension().is_none() && !from.contains('*'),
        false => access::is_dir(own),
    };
    if !all_texts || columns.len() > 2 || is_folder {
        return Ok(());
    }
    if access::is_file(own) && own.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet")) {
        return Ok(());
    }
    if !table.has_default_columns && columns.len() < 2 {
        return Ok(());
    }
    let [key, value] = [0, 1].map(|i| columns.get(i).copied().unwrap_or(BIN_COLUMNS[i]).to_owned());
    let [k, v] = PAIR;
    let pairs = format!(
        "SELECT array_agg(named_struct('{k}', {}, '{v}', {})) FROM ({}) AS looked_into",
        quote_name(&key),
        quote_name(&value),
        find_query_text(from)
    );
    let query = match parse(&pairs) {
        Ok(query) => query,
        Err(e) => {
            return plan_err!(
                "{function}: {from:?} is not a table, a file or a valid query ({}); give the name of a table, the path of a file or a query",
                e.strip_backtrace()
            );
        }
    };
    let missing = [key, value].into_iter().skip(columns.len());
    let missing: Vec<Expr> =
        missing.map(|name| Expr::value(Value::SingleQuotedString(name))).collect();
    let more = missing.into_iter().chain([Expr::Subquery(Box::new(query))]);
    args.extend(more.map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))));
    Ok(())
}
