//! Plans the custom operators with which `sql::statement` replaces predicates and clauses, such as
//! `LIKE` and `FILTER`.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

use crate::array::{leaf_type, list_depth};
use crate::functions::expression_planners::constant_folding::{
    find_exact_constant, fold_list, is_constant, narrow_constant,
};
use crate::functions::expression_planners::list_views::needs_list_cast;
use crate::functions::expression_planners::operator_names::PREDICATES;
use crate::functions::naming::show_expression;
use crate::functions::{find_facts, find_scalar};
use crate::kernels::elementwise::BinaryOp;

/// Plans `call FILTER mask`, in which `call` reduces a list, as in `ragged_sum(x)`: it then uses
/// only the values for which the mask is true. If `call` reduces two lists, it uses only the pairs
/// of values for which the mask is true.
pub(super) fn plan_filter(call: Expr, mask: Expr, schema: &DFSchema) -> Result<Expr> {
    // Removes the alias expression in which DataFusion wraps a call that uses an alias of a
    // function.
    let plain = match call {
        Expr::Alias(alias) => *alias.expr,
        plain => plain,
    };
    let (Expr::ScalarFunction(mut function), Some(filter)) = (plain, find_scalar("ragged_filter"))
    else {
        return plan_err!(
            "FILTER (WHERE ..) follows an expression that is not a call of a scalar function; write it after a call such as ragged_sum(x)"
        );
    };
    let name = function.name().to_owned();
    let found = mask.get_type(schema)?;
    if list_depth(&found) == 0 || *leaf_type(&found) != DataType::Boolean {
        let shown = show_expression(&mask);
        return plan_err!(
            "{name} reduces the list within each row, so its FILTER (WHERE ..) requires a list of booleans, such as x > 3 for a list x; this condition is one {found} per row. To remove the rows for which the condition is not true, use WHERE; to return NULL for them, use CASE WHEN {shown} THEN {name}(..) END"
        );
    }
    if function.args.is_empty() {
        return plan_err!("{name}() FILTER (WHERE ..) has no list to filter; pass a list");
    }
    let pairs = find_facts(&function.func).pairs;
    let is_below = |list: &Expr| {
        // If one of two paired lists has fewer levels than the mask, only the other list is
        // filtered. The mask removes elements only from innermost lists, so the outer lists of the
        // filtered list keep their lengths, and still match the list with fewer levels.
        list.get_type(schema).is_ok_and(|t| list_depth(&t) < list_depth(&found))
    };
    for list in function.args.iter_mut().take(if pairs { 2 } else { 1 }) {
        if !pairs || !is_below(list) {
            *list =
                filter.call(vec![std::mem::replace(list, lit(ScalarValue::Null)), mask.clone()]);
        }
    }
    Ok(Expr::ScalarFunction(function))
}

#[derive(Clone, Copy)]
enum PredicateOperator {
    Like,
    ILike,
    In,
}

#[derive(Clone, Copy)]
pub(super) struct WordPredicate {
    test: PredicateOperator,
    negated: bool,
}

impl WordPredicate {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        let (negated, word) = match word.strip_prefix("NOT ") {
            Some(word) => (true, word),
            None => (false, word),
        };
        let [like, ilike, isin] = PREDICATES;
        let test = match word {
            w if w == like => PredicateOperator::Like,
            w if w == ilike => PredicateOperator::ILike,
            w if w == isin => PredicateOperator::In,
            _ => return None,
        };
        Some(Self { test, negated })
    }

    /// Plans the predicate as a test of each value if the left side is a list. Otherwise, plans
    /// DataFusion's own expression for it.
    pub(super) fn plan(self, expr: RawBinaryExpr, schema: &DFSchema) -> Expr {
        let RawBinaryExpr { left, right, .. } = expr;
        let is_list = |e: &Expr| e.get_type(schema).is_ok_and(|t| list_depth(&t) > 0);
        let name = match self.test {
            PredicateOperator::In => {
                let items = match right {
                    Expr::ScalarFunction(call) => call.args,
                    other => vec![other],
                };
                if is_list(&left)
                    && !items.iter().any(is_list)
                    && let Some(mask) = plan_in(&left, &items, schema)
                {
                    return if self.negated { negate_mask(mask) } else { mask };
                }
                // If an operand is a list view, plans a comparison, which fails with an error that
                // says which cast to write.
                if let Ok(found) = left.get_type(schema)
                    && let Some(item) = items.iter().find(|item| {
                        let given = item.get_type(schema);
                        given.is_ok_and(|t| needs_list_cast(BinaryOp::Eq, &found, &t))
                    })
                    && let Some(equal) = find_scalar("ragged_eq")
                {
                    return equal.call(vec![left, item.clone()]);
                }
                return Expr::InList(InList::new(Box::new(left), items, self.negated));
            }
            PredicateOperator::Like => "ragged_like",
            PredicateOperator::ILike => "ragged_ilike",
        };
        if is_list(&left)
            && !is_list(&right)
            && let Some(test) = find_scalar(name)
        {
            let mask = test.call(vec![left, right]);
            return if self.negated { negate_mask(mask) } else { mask };
        }
        let whatever_case = matches!(self.test, PredicateOperator::ILike);
        let (left, right) = (Box::new(left), Box::new(right));
        Expr::Like(Like::new(self.negated, left, right, None, whatever_case))
    }
}

/// Plans `IN` on a list as one membership test if all `items` are constants, else as comparisons.
/// Returns `None` if there are no items.
fn plan_in(left: &Expr, items: &[Expr], schema: &DFSchema) -> Option<Expr> {
    if items.iter().all(is_constant) && !rounds_integers(left, items, schema) {
        let list = fold_list(items, schema).unwrap_or_else(|| make_array(items.to_vec()));
        return Some(find_scalar("ragged_isin")?.call(vec![left.clone(), list]));
    }
    let (equal, or) = (find_scalar("ragged_eq")?, find_scalar("ragged_or")?);
    let leaves = left.get_type(schema).ok()?;
    let each = items.iter().map(|item| {
        let item = narrow_constant(BinaryOp::Eq, item, &leaves, false, schema);
        equal.call(vec![left.clone(), item])
    });
    each.reduce(|a, b| or.call(vec![a, b]))
}

/// Whether a membership test in a list of `items` would round one of its integers to the narrow
/// float type of `left`, because other items are not integers. A comparison does not round
/// integers.
fn rounds_integers(left: &Expr, items: &[Expr], schema: &DFSchema) -> bool {
    let Ok(lists) = left.get_type(schema) else { return false };
    let leaf = leaf_type(&lists);
    let is_integer = |item: &Expr| item.get_type(schema).is_ok_and(|t| t.is_integer());
    matches!(leaf, DataType::Float16 | DataType::Float32)
        && !items.iter().all(is_integer)
        && items.iter().any(|item| is_integer(item) && find_exact_constant(item, leaf).is_none())
}

pub(super) fn negate_mask(mask: Expr) -> Expr {
    match find_scalar("ragged_not") {
        Some(not) => not.call(vec![mask]),
        None => mask,
    }
}
