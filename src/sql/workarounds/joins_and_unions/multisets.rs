use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, Window, WindowFunctionDefinition,
};

use crate::sql::base::marks::is_match_join;
use crate::sql::workarounds::types::times::has_distinct_rows;

/// Names of the columns that number equal rows, for the left and the right input.
const COPY: [&str; 2] = ["__serrate_left_copy", "__serrate_right_copy"];

/// Analyzer rule: matches each row of the left input of EXCEPT ALL and INTERSECT ALL with at most
/// one row of the right input.
///
/// DataFusion 55 plans these operations as an anti join and a semi join, in which one row of the
/// right side matches all equal rows of the left: `{1, 1} EXCEPT ALL {1}` is empty. The rule
/// numbers equal rows on both sides and adds the number as a join key. This workaround is obsolete
/// once the test `stock_sets_still_count_nothing` fails.
pub(in crate::sql) fn number_equal_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if compares_rows(&join) => {
            number_copies(join).map(Transformed::yes)
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

/// Whether a join is EXCEPT ALL or INTERSECT ALL: a semi or anti join by whole rows, with NULL
/// equal to NULL.
///
/// Before the optimizer runs, only set operations and correlated queries are such joins. Returns
/// false for a set operation without ALL, whose left input is DISTINCT, for the join of a
/// correlated query (`is_match_join`), and for a join that [`number_equal_rows`] has already
/// changed, because it may visit the query of a view twice.
fn compares_rows(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !join.left.schema().has_column_with_unqualified_name(COPY[0])
        && !is_match_join(join)
        && !has_distinct_rows(&join.left)
}

/// Whether a window numbers the rows of an input of EXCEPT ALL or INTERSECT ALL.
pub(in crate::sql) fn numbers_copies(window: &Window) -> bool {
    let is_number = |e: &Expr| COPY.contains(&e.schema_name().to_string().as_str());
    window.window_expr.iter().all(is_number)
}

fn number_copies(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let (left, left_keys) = number_rows(&join.left, left_keys, COPY[0])?;
    let (right, right_keys) = number_rows(&join.right, right_keys, COPY[1])?;
    let numbered = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        left_keys.into_iter().zip(right_keys).collect(),
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(numbered)).project(columns)?.build()
}

/// Numbers equal rows from 1 in a new column `name`. Returns the plan, and `keys` followed by this
/// column.
fn number_rows(
    plan: &LogicalPlan,
    keys: Vec<Expr>,
    name: &str,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut input: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let columns = input.len();
    let mut keys: Vec<Expr> = (keys.into_iter().enumerate())
        .map(|(i, key)| match key {
            Expr::Column(_) => key,
            // A key such as a cast of a sorted column is computed in a projection, because
            // DataFusion fails to run a window with such a PARTITION BY key.
            key => {
                let computed = format!("{name}_{i}");
                input.push(key.alias(&computed));
                Expr::Column(Column::new_unqualified(computed))
            }
        })
        .collect();
    let mut plan = LogicalPlanBuilder::from(plan.clone());
    if input.len() > columns {
        plan = plan.project(input)?;
    }
    let number =
        WindowFunction::new(WindowFunctionDefinition::WindowUDF(row_number_udwf()), vec![]);
    let number = Expr::from(number).partition_by(keys.clone()).build()?;
    keys.push(Expr::Column(Column::new_unqualified(name)));
    Ok((plan.window([number.alias(name)])?.build()?, keys))
}
