//! Adds suggestions to DataFusion's errors about lists that are used as scalars.

use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, DFSchema, SchemaError, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sqlparser::ast::{Select, Visitor};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::parser::Statement;

use crate::array::{leaf_type, list_depth};
use crate::functions::{StockFact, find_facts, find_list_function, has_fact};
use crate::sql::base::subquery_parts::find_query;
use crate::sql::statement::calls::visit_statement;
use crate::sql::statement::misplaced_windows::check_row_values;
use crate::sql::statement::modifiers::{check_aggregate, check_window};
use crate::sql::workarounds::coarser_times::is_named_cast;

pub(in crate::sql) fn suggest_list_functions(plan: LogicalPlan) -> Result<LogicalPlan> {
    check_lists(&plan)?;
    Ok(plan)
}

/// Returns an error for BETWEEN, LIKE and IN if they compare a list with scalars, which DataFusion
/// would plan with another meaning, and for lists of booleans where one boolean is needed. Also
/// checks aggregates and window functions.
pub(in crate::sql) fn check_lists(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        check_row_values(node)?;
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Join(join) = node
            && let Some(filter) = &join.filter
        {
            explain_list_as_boolean("JOIN .. ON", filter, &schema)?;
        }
        node.apply_expressions(|e| {
            e.apply(|e| {
                check_expr(e, &schema)?;
                check_outer_aggregate(e)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Returns an error for an aggregate in a subquery whose arguments use only columns of an outer query. In the SQL
/// standard it is an aggregate of the outer query; DataFusion computes it within the subquery.
fn check_outer_aggregate(expr: &Expr) -> Result<()> {
    let Expr::AggregateFunction(call) = expr else { return Ok(()) };
    let args = &call.params.args;
    let is_outer = args.iter().any(Expr::contains_outer)
        && args.iter().all(|arg| arg.column_refs().is_empty());
    let has_query =
        args.iter().any(|arg| arg.exists(|e| Ok(find_query(e).is_some())).unwrap_or(true));
    if is_outer && !has_query {
        return plan_err!(
            "the aggregate {} in a subquery uses only columns of an outer query, so in SQL it is an aggregate of the outer query, which is not supported; compute it in a subquery in FROM",
            call.func.name()
        );
    }
    Ok(())
}

fn check_expr(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::Between(between) => {
            let e = &between.expr;
            if differs_in_depth(e, [between.low.as_ref(), between.high.as_ref()], schema) {
                let [e, low, high] = [e, &between.low, &between.high].map(|e| write_operand(e));
                return plan_err!(
                    "BETWEEN compares a scalar, but {e} is a list; use ragged_between({e}, {low}, {high}) to test each of its values{AS_A_WHOLE}"
                );
            }
        }
        Expr::InList(list) => {
            let e = &list.expr;
            if differs_in_depth(e, &list.list, schema) {
                let e = write_operand(e);
                return plan_err!(
                    "IN tests a scalar, but {e} is a list; use ragged_isin({e}, [1, 2]) to test each of its values, or array_has_any({e}, [1, 2]) to test whether one of its values is 1 or 2"
                );
            }
        }
        Expr::Like(like) | Expr::SimilarTo(like) => {
            let e = &like.expr;
            if differs_in_depth(e, [like.pattern.as_ref()], schema) {
                let [e, pattern] = [e, &like.pattern].map(|e| write_operand(e));
                return plan_err!(
                    "LIKE tests one string, but {e} is a list of strings; use {}({e}, {pattern}) to test each of its strings{AS_A_WHOLE}",
                    match (expr, like.case_insensitive) {
                        (Expr::SimilarTo(_), _) => "ragged_matches",
                        (_, true) => "ragged_ilike",
                        (_, false) => "ragged_like",
                    }
                );
            }
        }
        Expr::Cast(cast) => cast_of_list("CAST", &cast.expr, cast.field.data_type(), schema)?,
        Expr::TryCast(cast) => {
            cast_of_list("TRY_CAST", &cast.expr, cast.field.data_type(), schema)?;
        }
        Expr::ScalarFunction(call) => {
            // Without this check, type coercion would report only the types, without a suggestion.
            if let ("array_has", [list, value]) = (call.name(), call.args.as_slice())
                && let (Ok(list), Ok(value)) = (list.get_type(schema), value.get_type(schema))
                && !value.is_null()
                && let Some(said) = explain_element("array_has", &format!("{list}, {value}"))
            {
                return plan_err!("{said}");
            }
            if let [list, value, ..] = call.args.as_slice()
                && let (Ok(list), Ok(value)) = (list.get_type(schema), value.get_type(schema))
                && let Some(said) =
                    explain_searched(call.name(), &list.to_string(), &value.to_string())
            {
                return plan_err!("{said}");
            }
            check_named_cast(expr, call, schema)?;
            // DataFusion would cast the list to a string, which is never intended.
            let of_text = ["character_length", "octet_length", "bit_length"];
            if of_text.contains(&call.name())
                && let [e] = call.args.as_slice()
                && e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
            {
                let e = write_operand(e);
                return plan_err!(
                    "{} takes a string, but {e} is a list; use array_length({e}) for the number of its elements, or ragged_count({e}) for the number of values at any depth",
                    call.name()
                );
            }
        }
        // DataFusion would report the type of the condition when it evaluates the lambda.
        Expr::HigherOrderFunction(call) if call.name() == "array_filter" => {
            for arg in &call.args {
                if let Expr::Lambda(lambda) = arg
                    && lambda.body.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
                {
                    return plan_err!(
                        "the condition of list_filter is one boolean per element, but for these elements, which are lists, it is a list; use ragged_filter(x, x > 1) to filter the values at any depth, or ragged_any(..) around the condition to filter the inner lists"
                    );
                }
            }
        }
        Expr::IsTrue(e) => explain_list_as_boolean("IS TRUE", e, schema)?,
        Expr::IsFalse(e) => explain_list_as_boolean("IS FALSE", e, schema)?,
        Expr::IsNotTrue(e) => explain_list_as_boolean("IS NOT TRUE", e, schema)?,
        Expr::IsNotFalse(e) => explain_list_as_boolean("IS NOT FALSE", e, schema)?,
        Expr::Case(case) if case.expr.is_none() => {
            for (when, _) in &case.when_then_expr {
                explain_list_as_boolean("CASE WHEN", when, schema)?;
            }
            check_quantified(&case.when_then_expr, schema)?;
        }
        Expr::WindowFunction(call) => check_window(call)?,
        Expr::AggregateFunction(call) => {
            check_aggregate(call)?;
            let name = call.func.name();
            if matches!(name, "min" | "max")
                && let [e] = call.params.args.as_slice()
                && e.get_type(schema).is_ok_and(|t| list_depth(&t) > 1)
            {
                let e = write_operand(e);
                return plan_err!(
                    "{name} compares lists of one level, but {e} is a list of lists; use {name}(ragged_{name}({e})) to compare all values, or ragged_{name}_agg({e}) to compare the values at each position"
                );
            }
            if matches!(name, "min" | "max")
                && let [e] = call.params.args.as_slice()
                && let Ok(t @ (DataType::Map(..) | DataType::Union(..))) = e.get_type(schema)
            {
                return plan_err!(
                    "{name} needs values that can be sorted, but {e} has the type {t}; use a column of another type"
                );
            }
            if let Some(filter) = &call.params.filter {
                explain_list_as_boolean("FILTER (WHERE ..)", filter, schema)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns an error for `x < ANY (list)`, and the like, if the elements of the list are strings and `x` is not one.
///
/// `write_out_quantified` compares `x` with the least or greatest element of the list, but strings have another order
/// than numbers and times.
fn check_quantified(whens: &[(Box<Expr>, Box<Expr>)], schema: &DFSchema) -> Result<()> {
    let [(first, _), _, _, (found, _), _] = whens else { return Ok(()) };
    let Expr::IsNull(list) = first.as_ref() else { return Ok(()) };
    let is_text = |t: &DataType| match t {
        DataType::Dictionary(_, values) => values.is_string(),
        t => t.is_string() || t.is_null(),
    };
    match list.get_type(schema) {
        Ok(t) if list_depth(&t) == 1 && leaf_type(&t).is_string() => {}
        _ => return Ok(()),
    }
    let is_extreme = |e: &Expr| match e {
        Expr::ScalarFunction(call) => {
            ["array_max", "array_min"].contains(&call.name())
                && call.args.first() == Some(list.as_ref())
        }
        _ => false,
    };
    found.apply(|e| {
        if let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = e
            && (is_extreme(left) || is_extreme(right))
        {
            let value = if is_extreme(left) { right } else { left };
            if let Ok(t) = value.get_type(schema)
                && !is_text(&t)
            {
                let to = if t.is_numeric() { "DOUBLE" } else { "TIMESTAMP" };
                let [value, list] = [value, list].map(|e| write_operand(e));
                return plan_err!(
                    "ANY and ALL compare {value} ({t}) with the strings of {list}, whose order is not that of numbers or times; cast the list, as in ANY ({list}::{to}[])"
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Returns an error for a call that casts to a decimal type with a negative scale. Arrow writes zero as `000`
/// in these types, and panics in comparisons.
fn check_named_cast(expr: &Expr, call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    if !is_named_cast(expr) && !find_facts(&call.func).casts_to_named_type {
        return Ok(());
    }
    match expr.get_type(schema).ok().and_then(|t| find_negative_scale(&t)) {
        Some((precision, scale)) => plan_err!(
            "{} to a decimal type with the negative scale {scale} is not supported; write DECIMAL({}, 0), and round(x, {scale}) to round",
            call.name(),
            precision.saturating_add(scale.unsigned_abs())
        ),
        None => Ok(()),
    }
}

/// Returns the precision and scale of a decimal type with a negative scale that is a type, or within it.
fn find_negative_scale(t: &DataType) -> Option<(u8, i8)> {
    match t {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*scale < 0).then_some((*precision, *scale)),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => find_negative_scale(item.data_type()),
        DataType::Dictionary(_, values) => find_negative_scale(values),
        DataType::Struct(fields) => {
            fields.iter().find_map(|field| find_negative_scale(field.data_type()))
        }
        _ => None,
    }
}

/// Returns an error for a cast of a list to a scalar type other than a string.
fn cast_of_list(what: &str, expr: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    let from = match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 => t,
        _ => return Ok(()),
    };
    if to.is_nested() || to.is_string() || to.is_null() || matches!(to, DataType::Dictionary(..)) {
        return Ok(());
    }
    let ours = if what == "CAST" { "ragged_cast" } else { "ragged_try_cast" };
    let expr = write_operand(expr);
    plan_err!(
        "{what} to {to} returns a scalar, but {expr} is a list ({from}); use {ours}({expr}, '{to}') to cast each of its values"
    )
}

/// Writes an operand as in a statement. DataFusion's own text names the types of literals: `Int64(1)`.
fn write_operand(expr: &Expr) -> String {
    match expr {
        Expr::Literal(value, _) => match value.try_as_str().flatten() {
            Some(text) => format!("'{}'", text.replace('\'', "''")),
            None if value.data_type().is_temporal() && !value.is_null() => format!("'{value}'"),
            None => value.to_string(),
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            format!("{} {op} {}", write_operand(left), write_operand(right))
        }
        Expr::ScalarFunction(call) => {
            let args: Vec<String> = call.args.iter().map(write_operand).collect();
            match call.name() {
                "make_array" => format!("[{}]", args.join(", ")),
                name => format!("{name}({})", args.join(", ")),
            }
        }
        // The planner adds casts to literals: `DATE '2020-01-01'` is a cast of a string.
        Expr::Cast(cast) => write_operand(&cast.expr),
        other => other.human_display().to_string(),
    }
}

const AS_A_WHOLE: &str = " (for one boolean per row: ragged_any(..) or ragged_all(..))";

/// Whether an expression is a list and one of the other expressions is a scalar.
fn differs_in_depth<'a>(
    expr: &Expr,
    others: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> bool {
    let is_value = |t: DataType| list_depth(&t) == 0 && !t.is_null();
    expr.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
        && others.into_iter().any(|e| e.get_type(schema).is_ok_and(is_value))
}

fn explain_list_as_boolean(place: &str, expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 && *leaf_type(&t) == DataType::Boolean => {
            let expr = match expr {
                Expr::Literal(..) => write_operand(expr),
                _ => expr.schema_name().to_string(),
            };
            plan_err!(
                "{place} needs one boolean per row, but {expr} is a list of booleans; use ragged_any({expr}) or ragged_all(..)"
            )
        }
        _ => Ok(()),
    }
}

/// Rewords an error of DataFusion's planner about a list, with a suggestion as in [`check_lists`]. Returns
/// other errors unchanged. `conditions` are the conditions in the original statement.
pub(in crate::sql) fn explain_error(e: DataFusionError, conditions: &[String]) -> DataFusionError {
    match e {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            DataFusionError::Diagnostic(diagnostic, Box::new(explain_error(*inner, conditions)))
        }
        DataFusionError::Plan(message) => {
            DataFusionError::Plan(reword_error(&message, conditions).unwrap_or(message))
        }
        DataFusionError::SchemaError(error, backtrace) => {
            let error = remove_calls(*error);
            match explain_twins(&error).or_else(|| remove_far_suggestion(&error)) {
                Some(message) => DataFusionError::Plan(message),
                None => DataFusionError::SchemaError(Box::new(error), backtrace),
            }
        }
        DataFusionError::Configuration(message)
            if message.starts_with("Format not explicitly set") =>
        {
            DataFusionError::Plan(
                "the name of the file has no extension, which names the format; write COPY .. TO 'FILE' (FORMAT csv), or another format".into(),
            )
        }
        DataFusionError::NotImplemented(message) => match explain_unplanned(&message) {
            Some(said) => DataFusionError::Plan(said),
            None => DataFusionError::NotImplemented(message),
        },
        DataFusionError::Collection(all) => DataFusionError::Collection(
            all.into_iter().map(|e| explain_error(e, conditions)).collect(),
        ),
        other => other,
    }
}

/// Rewords DataFusion's message about an expression that it does not plan, which contains a dump of the syntax tree.
fn explain_unplanned(message: &str) -> Option<String> {
    let node = message.strip_prefix("Unsupported ast node in sqltorel: ")?;
    let kind = node.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(node);
    Some(match kind {
        "Lambda" => "a lambda is not a value; pass it to a function that applies it, as in ragged_map(x, lambda v: v * 2)".to_owned(),
        kind => format!("an expression of the kind {kind} is not supported; docs/sql.md describes the expressions that are"),
    })
}

/// Returns the message of an error about an unknown column without the suggested column, if that column is not similar.
/// DataFusion suggests `code` for `nope`, because half of the letters agree. Returns `None` for other errors.
fn remove_far_suggestion(error: &SchemaError) -> Option<String> {
    let SchemaError::FieldNotFound { field, valid_fields } = error else { return None };
    let message = error.to_string();
    let (before, rest) = message.split_once(". Did you mean '")?;
    let (suggested, after) = rest.split_once("'?")?;
    let asked = field.name.to_lowercase();
    let allowed = (asked.chars().count() / 3).max(1);
    let is_near = valid_fields.iter().any(|valid| {
        let name = valid.name.to_lowercase();
        valid.quoted_flat_name() == suggested
            && (levenshtein(&asked, &name) <= allowed
                || name.starts_with(&asked)
                || asked.starts_with(&name))
    });
    (!is_near).then(|| format!("{before}.{after}"))
}

/// Removes the table name of a call or a file in FROM from column names: `"meds()".code` and `"x.parquet".code` become
/// `code`. Lists each column once, because for GROUP BY and ORDER BY the columns come from the table and from SELECT.
fn remove_calls(error: SchemaError) -> SchemaError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let plain = |column: Column| match &column.relation {
                Some(table)
                    if table.table().ends_with("()") || table.table().contains(['.', '/']) =>
                {
                    Column::new_unqualified(column.name)
                }
                _ => column,
            };
            let mut seen = HashSet::new();
            let plain = valid_fields.into_iter().map(plain);
            let valid_fields = plain.filter(|column| seen.insert(column.flat_name())).collect();
            SchemaError::FieldNotFound { field, valid_fields }
        }
        other => other,
    }
}

pub(in crate::sql) fn find_conditions(statement: &Statement) -> Vec<String> {
    struct ConditionTexts(Vec<String>);
    impl Visitor for ConditionTexts {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let all = [&select.selection, &select.having, &select.qualify];
            self.0.extend(all.into_iter().flatten().map(ToString::to_string));
            ControlFlow::Continue(())
        }
    }
    let mut found = ConditionTexts(Vec::new());
    visit_statement(statement, &mut found);
    found.0
}

fn reword_error(message: &str, conditions: &[String]) -> Option<String> {
    let is_list = |t: &str| {
        ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| t.starts_with(l))
            && t.contains("Boolean")
    };
    if let Some(rest) = message.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let (predicate, found) = rest.rsplit_once("' returning ")?;
        return is_list(found).then(|| {
            // The planner's message shows function calls instead of operators. If the statement has
            // only one condition, the error shows the condition as written.
            let written = match conditions {
                [one] => one.as_str(),
                _ => predicate,
            };
            format!(
                "WHERE, HAVING and QUALIFY need one boolean per row, but {written} is a list of booleans; use ragged_any({written}) or ragged_all(..)"
            )
        });
    }
    let explained = explain_call(message).or_else(|| explain_bits(message));
    if let Some(text) = explained.or_else(|| explain_repeated(message)) {
        return Some(text);
    }
    if let Some(extension) = message.strip_prefix("There is no registered file format with ext ") {
        return Some(format!(
            "the extension .{extension} does not name a format; write COPY .. TO 'FILE' (FORMAT csv), or another format"
        ));
    }
    let unsorted = "Column in ORDER BY must be in GROUP BY or an aggregate function: While expanding wildcard, column \"";
    if let Some(rest) = message.strip_prefix(unsorted) {
        let (column, _) = rest.split_once("\" must appear")?;
        return Some(format!(
            "ORDER BY sorts groups by the column {column}, which is not a key of GROUP BY, so that a group may have several values of it; add the column to GROUP BY (GROUP BY ALL groups by the columns of SELECT), or sort by an aggregate such as min({column})"
        ));
    }
    if message.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        return Some("WHERE has an aggregate; write HAVING for a condition on groups, and compute an aggregate of an outer query in a subquery in FROM".into());
    }
    let not = "Unary operator 'NOT' requires a boolean expression, got ";
    if let Some(found) = message.strip_prefix(not) {
        return is_list(found).then(|| {
            "NOT negates one boolean, but its operand is a list of booleans; use ragged_not(..) to negate each value, or NOT ragged_any(..) to test that none is true".into()
        });
    }
    message
        .starts_with("Unary operator '-' only supports")
        .then(|| format!("{message}; use ragged_neg(..) to negate each value of a list"))
}

/// Splits a list of types at the commas outside parentheses.
pub(in crate::sql) fn split_top_level(types: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0usize, Vec::new());
    for (at, c) in types.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(types[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(types[start..].trim());
    parts
}

fn explain_call(message: &str) -> Option<String> {
    let Some((_, call)) =
        message.split_once("No function matches the given name and argument types '")
    else {
        return explain_coercion(message);
    };
    let call = call.split_once("'. You might").map_or(call, |(call, _)| call);
    let (name, types) = call.split_once('(')?;
    let is_list = ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| types.contains(l));
    if let Some(text) = explain_element(name, types.strip_suffix(')').unwrap_or(types)) {
        return Some(text);
    }
    if !is_list || name.starts_with("ragged_") || name.starts_with("array_") {
        return None;
    }
    Some(match find_list_function(name) {
        Some(ours) => format!(
            "{name} takes scalars, but its argument is a list ({call}); use {ours}(..) for lists"
        ),
        None => format!(
            "{name} does not accept lists with these types of values ({call}); cast the values first, as in ragged_cast(x, 'DOUBLE')"
        ),
    })
}

/// Explains DataFusion's coercion error for a function on list elements. Returns `None` for other messages.
fn explain_coercion(message: &str) -> Option<String> {
    let (_, call) = message.split_once("to satisfy a call to '")?;
    let (name, rest) = call.split_once("' function: coercion from ")?;
    let (types, _) = rest.split_once(" to the signature")?;
    explain_element(name, types)
}

/// Explains why a list cannot be searched for a string: its elements are of a type to which no string is cast without
/// an explicit cast. Returns `None` for other types.
fn explain_searched(name: &str, list: &str, value: &str) -> Option<String> {
    const TYPES: [(&str, &str); 10] = [
        ("Date", "DATE"),
        ("Timestamp", "TIMESTAMP"),
        ("Time", "TIME"),
        ("Decimal", "DECIMAL(10, 2)"),
        ("Duration", "INTERVAL"),
        ("Interval", "INTERVAL"),
        ("Boolean", "BOOLEAN"),
        ("Float", "DOUBLE"),
        ("Int", "BIGINT"),
        ("UInt", "BIGINT"),
    ];
    let searches = has_fact(name, StockFact::FindsElement);
    let compares = searches || ["array_remove", "array_remove_all"].contains(&name);
    if !compares || !["Utf8", "LargeUtf8", "Utf8View"].contains(&value) {
        return None;
    }
    let (_, element) = list.strip_suffix(')')?.split_once("List(")?;
    let element = element.rsplit_once(" x ").map_or(element, |(_, element)| element);
    let element = element.trim_start_matches("non-null ");
    let (_, to) = TYPES.iter().find(|(start, _)| element.starts_with(start))?;
    // Functions that search cast the string to the number that it is.
    if searches && ["DOUBLE", "BIGINT"].contains(to) {
        return None;
    }
    let call = if name == "array_has" { "list_contains" } else { name };
    Some(format!(
        "{call} compares a value with the elements of {list}, but the value is a string ({value}); cast the string, as in {call}(x, s::{to})"
    ))
}

/// Explains why `array_has(x, 1)` fails: the elements of `x`, or the searched value, are lists.
fn explain_element(name: &str, types: &str) -> Option<String> {
    let types = split_top_level(types);
    if let [list, value, ..] = types.as_slice()
        && let Some(said) = explain_searched(name, list, value)
    {
        return Some(said);
    }
    let depth = |t: &&str| t.matches("List(").count();
    let (list, value) = match (name, types.as_slice()) {
        ("array_has" | "array_append" | "array_position" | "array_remove", [list, value]) => {
            (list, value)
        }
        ("array_prepend", [value, list]) => (list, value),
        _ => return None,
    };
    // The value is nested as deep as `list` or deeper, so it cannot be an element of `list`. If the
    // type of `list` contains Null, the list may be empty, and the type of its elements is unknown.
    if name == "array_has"
        && depth(list) > 0
        && depth(value) >= depth(list)
        && !list.contains("Null")
    {
        return Some(format!(
            "list_contains and = ANY search for one element of {list}, but the value is a list ({value}); use ragged_isin(x, ['a', 'b']) to test for each value of x whether the other list has it, or ragged_any(ragged_isin(x, ['a', 'b'])) to test whether it has at least one of them"
        ));
    }
    if depth(list) < 2 || depth(value) > 0 {
        return None;
    }
    Some(match name {
        "array_has" => format!(
            "list_contains and = ANY search for an element, but the elements of {list} are lists; use list_contains(x, [1]) to search for a list, or ragged_any(x == 1) to search for a value at any depth"
        ),
        "array_append" | "array_prepend" => format!(
            "|| appends an element to a list, but the elements of {list} are lists; use x || [2] to append a list"
        ),
        _ => {
            format!(
                "{name} takes an element, but the elements of {list} are lists; use a list as the element, as in {name}(x, [1])"
            )
        }
    })
}

/// Explains that two columns of a SELECT have one alias.
fn explain_repeated(message: &str) -> Option<String> {
    let (_, pair) = message.split_once(" require unique expression names but the expression \"")?;
    let (first, rest) = pair.split_once("\" at position ")?;
    let (before, rest) = rest.split_once(" and \"")?;
    let (_, rest) = rest.rsplit_once("\" at position ")?;
    let (after, _) = rest.split_once(' ')?;
    let [before, after] = [before, after].map(|number| number.parse::<usize>().ok());
    let [before, after] = [before?.checked_add(1)?, after?.checked_add(1)?];
    let name = first.rsplit_once(" AS ").map_or(first, |(_, alias)| alias);
    Some(format!(
        "the columns {before} and {after} of a SELECT have the same name {name}; give one of them another alias, as in SELECT .. AS {name}, .. AS other"
    ))
}

/// Explains that an alias is the name of a column next to it.
fn explain_twins(error: &SchemaError) -> Option<String> {
    let SchemaError::AmbiguousReference { field } = error else { return None };
    field.relation.as_ref()?;
    let (column, name) = (field.quoted_flat_name(), &field.name);
    Some(format!(
        "a SELECT has the column {column} and another column with the name {name}; give one of them another alias, as in SELECT .. AS other"
    ))
}

fn explain_bits(message: &str) -> Option<String> {
    let types = message.strip_prefix("Cannot infer common type for bitwise operation ")?;
    let is_list = ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| types.contains(l));
    // Short forms such as to_days expand to an operator, which makes sure that their argument is an integer.
    if is_list && types.contains(" | ") {
        return Some(format!(
            "the operator | and functions of whole numbers, such as to_days and make_timestamp, take scalar integers, but an operand is a list ({types}); use ragged_map(x, lambda v: to_days(v)) or ragged_map(x, lambda v: v | 1) to apply them to each value"
        ));
    }
    is_list.then(|| match types.contains("BIT_XOR") {
        true => "^ is the exclusive or of two integers, but an operand is a list; use ragged_pow(x, 2) for the power of each value, or ragged_xor(a, b) for the exclusive or of two masks".to_owned(),
        // Short forms such as `to_days(n)`, which stands for `(n | 0) * INTERVAL '1 day'`.
        false if types.ends_with(" | Int64") => format!("bitwise operators take scalar integers, but an operand is a list ({types}); so do to_days, make_timestamp and similar functions; use ragged_map(x, lambda v: v & 1) to apply them to each value"),
        false => format!("bitwise operators take scalar integers, but an operand is a list ({types}); use ragged_map(x, lambda v: v & 1) to apply them to each value"),
    })
}
