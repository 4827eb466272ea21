use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Window};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::sql::base::plan_nodes::has_node;

/// Makes the rule `common_sub_expression_eliminate` leave window functions in their nodes.
///
/// The rule computes common subexpressions of window functions in a projection below the window
/// node. If two window functions are equal once simplified, or differ only in the order of operands
/// (`sum(a + b)`, `sum(b + a)`), the rule moves the whole function into the projection. The query
/// then fails, because a projection cannot compute window functions. The rule also treats
/// `sum(x) OVER (PARTITION BY k ROWS 1 PRECEDING)` as equal to
/// `sum(x) OVER (ORDER BY k ROWS 1 PRECEDING)`. This workaround is obsolete once the test
/// `stock_equal_windows_still_fail` fails.
pub(in crate::sql) fn keep_whole_windows(
    stock: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // A plan without windows is passed to the rule at once, because the code below clones the plan.
    if !has_window(&plan, |_| true)? {
        return stock.rewrite(plan, config);
    }
    let merged = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(window) => merge_windows(window),
        other => Ok(Transformed::no(other)),
    })?;
    let unchanged = Transformed::new_transformed(merged.data.clone(), merged.transformed);
    let done = merged.transform_data(|plan| stock.rewrite(plan, config))?;
    let is_moved = |e: &Expr| !matches!(find_function(e), Expr::WindowFunction(_));
    match has_window(&done.data, |window| window.window_expr.iter().any(is_moved))? {
        true => Ok(unchanged),
        false => Ok(done),
    }
}

fn has_window(plan: &LogicalPlan, is_found: impl Fn(&Window) -> bool) -> Result<bool> {
    has_node(plan, |node| Ok(matches!(node, LogicalPlan::Window(window) if is_found(window))))
}

fn find_function(e: &Expr) -> &Expr {
    match e {
        Expr::Alias(alias) => find_function(&alias.expr),
        other => other,
    }
}

/// If a node computes a window function twice, or a window node directly below has computed it,
/// replaces the function with the column of its values.
fn merge_windows(window: Window) -> Result<Transformed<LogicalPlan>> {
    let (kept, output) = find_distinct(&window);
    if kept.len() == window.window_expr.len() {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let Window { input, schema, .. } = window;
    let input = match kept.is_empty() {
        true => input,
        false => Arc::new(LogicalPlan::Window(Window::try_new(kept, input)?)),
    };
    let named = Projection::try_new_with_schema(output, input, schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(named)))
}

/// Returns the functions that the node still must compute, and an expression for each column of the
/// node. The expression for a repeated function is the column that already has its values.
fn find_distinct(window: &Window) -> (Vec<Expr>, Vec<Expr>) {
    let mut known: Vec<(&Expr, Column)> = Vec::new();
    let mut below = &window.input;
    while let LogicalPlan::Window(lower) = below.as_ref() {
        known.extend(lower.window_expr.iter().map(find_function).zip(list_result_columns(lower)));
        below = &lower.input;
    }
    let columns = window.input.schema().iter();
    let mut output: Vec<Expr> = columns.map(|column| Expr::Column(Column::from(column))).collect();
    let mut kept = Vec::new();
    for (e, column) in window.window_expr.iter().zip(list_result_columns(window)) {
        let function = find_function(e);
        let equal = known.iter().find(|(other, _)| *other == function && !function.is_volatile());
        if let Some((_, equal)) = equal {
            let equal = Expr::Column(equal.clone());
            output.push(equal.alias_qualified(column.relation, column.name));
        } else {
            kept.push(e.clone());
            output.push(Expr::Column(column.clone()));
            known.push((function, column));
        }
    }
    (kept, output)
}

/// Returns the columns that the node adds to those of its input.
fn list_result_columns(window: &Window) -> impl Iterator<Item = Column> {
    window.schema.iter().skip(window.input.schema().fields().len()).map(Column::from)
}
