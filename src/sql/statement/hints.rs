//! Operators that DataFusion's planner gives no hook for, used on lists: said in the words of SQL, with
//! what to write instead.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, SchemaError, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{Select, Visit, Visitor};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::parser::{CopyToSource, Statement};

use crate::array::{leaf_type, list_depth};
use crate::sql::statement::modifiers::{check_aggregate, check_window};

/// Analyzer rule, before types are coerced: [`check`].
#[derive(Debug)]
pub(in crate::sql) struct ListHints;

impl AnalyzerRule for ListHints {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        check(&plan)?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "serrate_list_hints"
    }
}

/// Refuses BETWEEN, and LIKE and IN as DataFusion plans them, that compare a list with single values, and
/// lists of truth values where one is needed.
pub(in crate::sql) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Unnest(unnest) = node
            && of_another(&unnest.input)?
        {
            return plan_err!(
                "unnest in FROM of a column of the table beside it: write it in SELECT, as in SELECT id, unnest(x) FROM t"
            );
        }
        if let LogicalPlan::Join(join) = node
            && let Some(filter) = &join.filter
        {
            one_truth("JOIN .. ON", filter, &schema)?;
        }
        node.apply_expressions(|e| {
            e.apply(|e| {
                check_expr(e, &schema)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Whether a plan needs columns of the row that it is made for.
fn of_another(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        found |= node.contains_outer_reference();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn check_expr(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::Between(between) => {
            let e = &between.expr;
            if differ(e, [between.low.as_ref(), between.high.as_ref()], schema) {
                return plan_err!(
                    "BETWEEN compares one value, and {e} is a list: ragged_between({e}, {}, {}) is the mask of its values{AS_A_WHOLE}",
                    between.low,
                    between.high
                );
            }
        }
        Expr::InList(list) => {
            let e = &list.expr;
            if differ(e, &list.list, schema) {
                return plan_err!(
                    "IN looks for one value, and {e} is a list: ragged_isin({e}, [1, 2]) is the mask of its values, array_has_any({e}, [1, 2]) says whether any of them is one of these"
                );
            }
        }
        Expr::Like(like) | Expr::SimilarTo(like) => {
            let e = &like.expr;
            if differ(e, [like.pattern.as_ref()], schema) {
                return plan_err!(
                    "LIKE looks at one text, and {e} is a list of them: {}({e}, {}) is the mask of its values{AS_A_WHOLE}",
                    match (expr, like.case_insensitive) {
                        (Expr::SimilarTo(_), _) => "ragged_matches",
                        (_, true) => "ragged_ilike",
                        (_, false) => "ragged_like",
                    },
                    like.pattern
                );
            }
        }
        Expr::Cast(cast) => cast_of_list("CAST", &cast.expr, cast.field.data_type(), schema)?,
        Expr::TryCast(cast) => {
            cast_of_list("TRY_CAST", &cast.expr, cast.field.data_type(), schema)?;
        }
        Expr::ScalarFunction(call) => {
            // Type coercion has nothing to say but the types.
            if let ("array_has", [list, value]) = (call.name(), call.args.as_slice())
                && let (Ok(list), Ok(value)) = (list.get_type(schema), value.get_type(schema))
                && !value.is_null()
                && let Some(said) = about_element("array_has", &format!("{list}, {value}"))
            {
                return plan_err!("{said}");
            }
            // Lists become texts for these, which nobody means.
            let of_text = ["character_length", "octet_length", "bit_length"];
            if of_text.contains(&call.name())
                && let [e] = call.args.as_slice()
                && e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
            {
                return plan_err!(
                    "{} is that of a text, and {e} is a list: array_length({e}) counts its elements, ragged_count({e}) the values at any depth",
                    call.name()
                );
            }
        }
        Expr::IsTrue(e) => one_truth("IS TRUE", e, schema)?,
        Expr::IsFalse(e) => one_truth("IS FALSE", e, schema)?,
        Expr::IsNotTrue(e) => one_truth("IS NOT TRUE", e, schema)?,
        Expr::IsNotFalse(e) => one_truth("IS NOT FALSE", e, schema)?,
        Expr::Case(case) if case.expr.is_none() => {
            for (when, _) in &case.when_then_expr {
                one_truth("CASE WHEN", when, schema)?;
            }
        }
        Expr::WindowFunction(call) => check_window(call)?,
        Expr::AggregateFunction(call) => {
            check_aggregate(call)?;
            let name = call.func.name();
            if matches!(name, "min" | "max")
                && let [e] = call.params.args.as_slice()
                && e.get_type(schema).is_ok_and(|t| list_depth(&t) > 1)
            {
                return plan_err!(
                    "{name} compares lists of one level, and {e} is a list of lists: {name}(ragged_{name}({e})) is that of all values, ragged_{name}_agg({e}) that of each place"
                );
            }
            if matches!(name, "min" | "max")
                && let [e] = call.params.args.as_slice()
                && let Ok(t @ (DataType::Map(..) | DataType::Union(..))) = e.get_type(schema)
            {
                return plan_err!("{name} compares values, and {e} is {t}, which has no order");
            }
            if let Some(filter) = &call.params.filter {
                one_truth("FILTER (WHERE ..)", filter, schema)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Refuses a list as a single value other than a text.
fn cast_of_list(what: &str, expr: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    let from = match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 => t,
        _ => return Ok(()),
    };
    if to.is_nested() || to.is_string() || to.is_null() || matches!(to, DataType::Dictionary(..)) {
        return Ok(());
    }
    let ours = if what == "CAST" { "ragged_cast" } else { "ragged_try_cast" };
    plan_err!(
        "{what} to {to} makes one value, and {expr} is a list ({from}): {ours}({expr}, '{to}') makes every value of it one"
    )
}

/// How a mask becomes a condition.
const AS_A_WHOLE: &str = " (one truth value of it: ragged_any(..) or ragged_all(..))";

/// Whether an expression is a list and something it is compared with is none.
fn differ<'a>(expr: &Expr, others: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let is_value = |t: DataType| list_depth(&t) == 0 && !t.is_null();
    expr.get_type(schema).is_ok_and(|t| list_depth(&t) > 0)
        && others.into_iter().any(|e| e.get_type(schema).is_ok_and(is_value))
}

/// Refuses a list of truth values where one is needed.
fn one_truth(place: &str, expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr.get_type(schema) {
        Ok(t) if list_depth(&t) > 0 && *leaf_type(&t) == DataType::Boolean => plan_err!(
            "{place} needs one truth value for each row, and {} is a list of booleans; use ragged_any({}) or ragged_all(..)",
            expr.schema_name(),
            expr.schema_name()
        ),
        _ => Ok(()),
    }
}

/// An error of DataFusion's planner about a list, in the words of [`check`]; others as they are.
///
/// `conditions` are those of the statement as it was written.
pub(in crate::sql) fn explained(e: DataFusionError, conditions: &[String]) -> DataFusionError {
    match e {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            DataFusionError::Diagnostic(diagnostic, Box::new(explained(*inner, conditions)))
        }
        DataFusionError::Plan(message) => {
            DataFusionError::Plan(reworded(&message, conditions).unwrap_or(message))
        }
        DataFusionError::SchemaError(error, backtrace) => {
            DataFusionError::SchemaError(Box::new(without_calls(*error)), backtrace)
        }
        other => other,
    }
}

/// Columns of calls in FROM without the name that the call has as a table, such as `"meds()".code`.
fn without_calls(error: SchemaError) -> SchemaError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let plain = |column: Column| match &column.relation {
                Some(table) if table.table().ends_with("()") => {
                    Column::new_unqualified(column.name)
                }
                _ => column,
            };
            let valid_fields = valid_fields.into_iter().map(plain).collect();
            SchemaError::FieldNotFound { field, valid_fields }
        }
        other => other,
    }
}

/// What stands in WHERE, HAVING and QUALIFY.
pub(in crate::sql) fn conditions(statement: &Statement) -> Vec<String> {
    struct Conditions(Vec<String>);
    impl Visitor for Conditions {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let all = [&select.selection, &select.having, &select.qualify];
            self.0.extend(all.into_iter().flatten().map(ToString::to_string));
            ControlFlow::Continue(())
        }
    }
    let mut found = Conditions(Vec::new());
    let mut statement = statement;
    loop {
        match statement {
            Statement::Statement(inner) => {
                let _ = inner.visit(&mut found);
            }
            Statement::CopyTo(copy) => {
                if let CopyToSource::Query(query) = &copy.source {
                    let _ = query.visit(&mut found);
                }
            }
            Statement::Explain(explain) => {
                statement = explain.statement.as_ref();
                continue;
            }
            Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
        }
        return found.0;
    }
}

fn reworded(message: &str, conditions: &[String]) -> Option<String> {
    let is_list = |t: &str| {
        ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| t.starts_with(l))
            && t.contains("Boolean")
    };
    if let Some(rest) = message.strip_prefix("Cannot create filter with non-boolean predicate '") {
        let (predicate, found) = rest.rsplit_once("' returning ")?;
        return is_list(found).then(|| {
            // The planner's words for it are those of the functions that operators stand for.
            let written = match conditions {
                [one] => one.as_str(),
                _ => predicate,
            };
            format!(
                "WHERE, HAVING and QUALIFY need one truth value for each row, and {written} is a list of booleans; use ragged_any({written}) or ragged_all(..)"
            )
        });
    }
    if let Some(text) = about_call(message).or_else(|| about_bits(message)) {
        return Some(text);
    }
    let not = "Unary operator 'NOT' requires a boolean expression, got ";
    if let Some(found) = message.strip_prefix(not) {
        return is_list(found).then(|| {
            "NOT negates one truth value, and this is a list of them: ragged_not(..) negates each, NOT ragged_any(..) says that none is true".into()
        });
    }
    message
        .starts_with("Unary operator '-' only supports")
        .then(|| format!("{message}; ragged_neg(..) negates every value of a list"))
}

/// Functions of single values, or of rows, and ours that do the same for the values of lists, where it is
/// not called alike.
const OURS: [(&str, &str); 31] = [
    ("avg", "ragged_mean"),
    ("mean", "ragged_mean"),
    ("bool_and", "ragged_all"),
    ("bool_or", "ragged_any"),
    ("ceiling", "ragged_ceil"),
    ("coalesce", "ragged_fill_null"),
    ("cumsum", "ragged_cumsum"),
    ("first_value", "ragged_first"),
    ("greatest", "ragged_maximum"),
    ("isnan", "ragged_is_nan"),
    ("lag", "ragged_shift"),
    ("last_value", "ragged_last"),
    ("lead", "ragged_shift"),
    ("least", "ragged_minimum"),
    ("log", "ragged_log10"),
    ("percentile_cont", "ragged_quantile"),
    ("pow", "ragged_pow"),
    ("power", "ragged_pow"),
    ("quantile_cont", "ragged_quantile"),
    ("signum", "ragged_sign"),
    ("stddev", "ragged_std"),
    ("stddev_pop", "ragged_std"),
    ("stddev_samp", "ragged_std"),
    ("trunc", "ragged_cast"),
    ("var", "ragged_var"),
    ("var_pop", "ragged_var"),
    ("var_samp", "ragged_var"),
    ("var_sample", "ragged_var"),
    ("var_population", "ragged_var"),
    ("nullif", "ragged_where"),
    ("approx_percentile_cont", "ragged_quantile"),
];

/// Our function that does for the values of a list what another does for single values or rows.
pub(in crate::sql) fn ours(name: &str) -> Option<String> {
    let alike = format!("ragged_{name}");
    let known = |name: &str| crate::functions::all_scalar().iter().any(|f| f.name() == name);
    match OURS.iter().find(|(other, _)| *other == name) {
        Some((_, ours)) => Some((*ours).to_owned()),
        None => known(&alike).then_some(alike),
    }
}

/// The types between commas that stand in no parentheses.
fn top_level(types: &str) -> Vec<&str> {
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

/// A call of a function of single values, with a list.
fn about_call(message: &str) -> Option<String> {
    let Some((_, call)) =
        message.split_once("No function matches the given name and argument types '")
    else {
        return about_coercion(message);
    };
    let call = call.split_once("'. You might").map_or(call, |(call, _)| call);
    let (name, types) = call.split_once('(')?;
    let is_list = ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| types.contains(l));
    if let Some(text) = about_element(name, types.strip_suffix(')').unwrap_or(types)) {
        return Some(text);
    }
    if !is_list || name.starts_with("ragged_") || name.starts_with("array_") {
        return None;
    }
    Some(match ours(name) {
        Some(ours) => format!(
            "{name} takes single values, and here it is given a list ({call}): {ours}(..) is the function for lists"
        ),
        None => format!(
            "{name} takes neither these lists nor their values ({call}); cast the values first, as ragged_cast(x, 'DOUBLE') does"
        ),
    })
}

/// Arguments that do not go together, in the other words that DataFusion has for it.
fn about_coercion(message: &str) -> Option<String> {
    let (_, call) = message.split_once("to satisfy a call to '")?;
    let (name, rest) = call.split_once("' function: coercion from ")?;
    let (types, _) = rest.split_once(" to the signature")?;
    about_element(name, types)
}

/// A list of lists with one of its values, where a list has to stand.
fn about_element(name: &str, types: &str) -> Option<String> {
    let types = top_level(types);
    let depth = |t: &&str| t.matches("List(").count();
    let (list, value) = match (name, types.as_slice()) {
        ("array_has" | "array_append" | "array_position" | "array_remove", [list, value]) => {
            (list, value)
        }
        ("array_prepend", [value, list]) => (list, value),
        _ => return None,
    };
    if depth(list) < 2 || depth(value) > 0 {
        return None;
    }
    Some(match name {
        "array_has" => format!(
            "list_contains and = ANY look for an element, and the elements of {list} are lists: list_contains(x, [1]) looks for a list, ragged_any(x == 1) for a value at any depth"
        ),
        "array_append" | "array_prepend" => format!(
            "|| puts an element into a list, and the elements of {list} are lists: x || [2] puts a list into it"
        ),
        _ => {
            format!("{name} takes an element, and the elements of {list} are lists: {name}(x, [1])")
        }
    })
}

/// An operator on bits, with a list.
fn about_bits(message: &str) -> Option<String> {
    let types = message.strip_prefix("Cannot infer common type for bitwise operation ")?;
    let is_list = ["List(", "LargeList(", "FixedSizeList("].iter().any(|l| types.contains(l));
    is_list.then(|| match types.contains("BIT_XOR") {
        true => "^ is the exclusive or of two integers, and this is of a list: ragged_pow(x, 2) is the power of every value, ragged_xor(a, b) the exclusive or of two masks".to_owned(),
        false => format!("operators on bits take single integers, and this is of a list ({types}): ragged_map(x, lambda v: v & 1) does it for every value"),
    })
}
