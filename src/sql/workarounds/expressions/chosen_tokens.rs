//! Keeps the vocabulary of tokens that CASE, `coalesce` and other functions choose or join.

use std::cell::Cell;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::functions::{SEVERAL_VOCABULARIES, are_tagged_tokens, tag_tokens};
use crate::io::meds::VOCABULARY_METADATA;
use crate::sql::base::expression_parts::{has_part, rewrite_node};
use crate::sql::base::plan_nodes::has_node;

/// `ragged_decode(CASE WHEN b THEN x ELSE y END, 'codes.parquet')` decodes tokens `y` of another
/// vocabulary as other codes without this rule, and `coalesce(x, y)` names no vocabulary.
///
/// Analyzer rule: marks CASE, and the functions of [`list_chosen_values`], as tokens of the
/// vocabulary of their values, or of several vocabularies. Values without a vocabulary, such as
/// plain integers, do not count.
///
/// DataFusion 55 keeps the metadata of columns, but not that of these expressions. This workaround
/// is obsolete once the test `stock_case_still_has_no_metadata` fails.
pub(in crate::sql) fn tag_chosen_tokens(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(has_part(node, is_choice)))? {
        return Ok(plan);
    }
    // Nodes above have the former metadata of their columns.
    let is_tagged = Cell::new(false);
    let plan = plan.transform_up_with_subqueries(|plan| {
        let done = match has_part(&plan, is_choice) {
            true => rewrite_node(plan, |e, columns| tag_choice(e, columns, &is_tagged))?,
            false => Transformed::no(plan),
        };
        match is_tagged.get() {
            true => done.map_data(LogicalPlan::recompute_schema),
            false => Ok(done),
        }
    })?;
    Ok(plan.data)
}

fn is_choice(e: &Expr) -> bool {
    !list_chosen_values(e).is_empty()
}

/// Returns the parts of an expression whose values it returns or joins.
fn list_chosen_values(e: &Expr) -> Vec<&Expr> {
    match e {
        Expr::Case(case) => {
            let values = case.when_then_expr.iter().map(|(_, then)| then);
            values.chain(&case.else_expr).map(|value| value.as_ref()).collect()
        }
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("array_concat" | "coalesce" | "greatest" | "least" | "nvl", args) => {
                args.iter().collect()
            }
            ("nullif", [value, _]) => vec![value],
            ("nvl2", [_, values @ ..]) => values.iter().collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn tag_choice(e: Expr, columns: &DFSchema, is_tagged: &Cell<bool>) -> Result<Transformed<Expr>> {
    match e {
        // A former run of the rule has tagged the call, whose parts are tagged again.
        Expr::ScalarFunction(mut call) if is_tagged_twice(&call) => {
            Ok(Transformed::yes(call.args.swap_remove(0)))
        }
        e if is_choice(&e) => Ok(match find_vocabulary(&e, columns) {
            Some(vocabulary) => {
                is_tagged.set(true);
                Transformed::yes(tag_tokens(e, &vocabulary))
            }
            None => Transformed::no(e),
        }),
        e => Ok(Transformed::no(e)),
    }
}

fn is_tagged_twice(call: &ScalarFunction) -> bool {
    let is_tagged = |e: &Expr| matches!(e, Expr::ScalarFunction(inner) if are_tagged_tokens(inner));
    are_tagged_tokens(call) && call.args.first().is_some_and(is_tagged)
}

/// Returns the vocabulary of the tokens that `e` returns, [`SEVERAL_VOCABULARIES`] for those of
/// several, or `None` if none is known.
fn find_vocabulary(e: &Expr, columns: &DFSchema) -> Option<String> {
    let values = list_chosen_values(e);
    if values.is_empty() {
        let (_, field) = e.to_field(columns).ok()?;
        return field.metadata().get(VOCABULARY_METADATA).cloned();
    }
    let mut found = values.into_iter().filter_map(|value| find_vocabulary(value, columns));
    let first = found.next()?;
    match found.all(|other| other == first) {
        true => Some(first),
        false => Some(SEVERAL_VOCABULARIES.to_owned()),
    }
}
