use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::OptimizerConfig;

use crate::sql::base::expression_parts::{has_part, rewrite_node, rewrite_parts};

/// Analyzer rule, after type coercion: rewrites `x IN (a, CASE ..)` to `x = a OR x = CASE ..`.
///
/// DataFusion detects constant list elements by evaluating them over zero rows. Over zero rows,
/// `CASE WHEN p THEN 5 END` and `coalesce(x, 5)` are 5, so DataFusion builds a set that contains 5
/// for every row. Obsolete once the test `stock_lists_with_case_are_still_wrong` fails.
pub(in crate::sql) fn rewrite_computed_lists(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_parts(plan, is_in_list, |e, _| Ok(compare_one_by_one(e)))
}

/// Optimizer rule, after all others: rewrites IN like [`rewrite_computed_lists`], if an element of
/// the list was a plain column when that rule ran. An example is `c` in `SELECT .. FROM (SELECT y,
/// coalesce(x, 5) AS c FROM t) WHERE y IN (1, c)`: when the optimizer moves the condition into the
/// subquery, it replaces `c` with `coalesce(x, 5)`.
pub(in crate::sql) fn rewrite_moved_lists(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match has_part(&plan, is_in_list) {
        true => rewrite_node(plan, |e, _| Ok(compare_one_by_one(e))),
        false => Ok(Transformed::no(plan)),
    }
}

fn is_in_list(e: &Expr) -> bool {
    matches!(e, Expr::InList(_))
}

fn compare_one_by_one(e: Expr) -> Transformed<Expr> {
    // Expressions over columns count as computed: some, such as `coalesce`, become CASE later. So
    // do volatile expressions, such as a CASE over a constant that no rule may fold.
    let is_computed = |e: &Expr| {
        let is_constant = e.column_refs().is_empty() && !e.contains_outer() && !e.is_volatile();
        !matches!(e, Expr::Column(_)) && !is_constant
    };
    let InList { expr, list, negated } = match e {
        Expr::InList(in_list)
            if !in_list.expr.is_volatile() && in_list.list.iter().any(is_computed) =>
        {
            in_list
        }
        e => return Transformed::no(e),
    };
    let (equal, both) = match negated {
        true => (Operator::NotEq, Operator::And),
        false => (Operator::Eq, Operator::Or),
    };
    let compared = list.into_iter().map(|element| binary_expr((*expr).clone(), equal, element));
    match compared.reduce(|a, b| binary_expr(a, both, b)) {
        Some(made) => Transformed::yes(made),
        None => Transformed::no(Expr::InList(InList { expr, list: Vec::new(), negated })),
    }
}
