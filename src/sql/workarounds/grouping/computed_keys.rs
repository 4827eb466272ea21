//! Sort keys and PARTITION BY keys that a projection below the sort or window computes.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Window;
use datafusion::logical_expr::{
    Aggregate, Expr, LogicalPlan, Operator, Projection, Sort as SortPlan,
};
use datafusion::optimizer::OptimizerConfig;

/// Prefix of the names of the columns in which this rule computes sort keys.
const KEY: &str = "__serrate_key_";

/// Functions whose domain does not include all numbers, and which are monotonic in their domain.
const PARTIAL_FUNCTIONS: [&str; 8] =
    ["acos", "acosh", "asin", "atanh", "ln", "log10", "log2", "sqrt"];

/// Logical optimizer rule: computes sort keys and PARTITION BY keys that contain comparisons, AND,
/// OR or a function of [`PARTIAL_FUNCTIONS`] in a projection below the sort, window or aggregate.
///
/// DataFusion 55 derives the order of such a key from the ranges of its operands. The range of most
/// functions has the type Null, and DataFusion then derives no order: rows that are sorted by
/// `length(s) > 1` count as unsorted, and the plan of `ORDER BY length(s) > 1` over several
/// partitions is refused. The order of a plain column is known. This workaround is obsolete once
/// the test `stock_comparisons_of_functions_are_still_no_keys` fails.
///
/// DataFusion 55 likewise derives no order of a key with a function of [`PARTIAL_FUNCTIONS`], such
/// as `sqrt(x)`: it reports an error if `x` may be outside the domain of the function. This
/// workaround is obsolete once the test `stock_partial_functions_are_still_no_keys` fails.
///
/// The rule also computes the keys of a window if one of several PARTITION BY keys is computed, as
/// in `PARTITION BY abs(v), k`. If `v` equals another column `u` of the input, DataFusion 55 sorts
/// by `abs(u), k`, and execution fails, because DataFusion does not find `k` after `abs(v)` in this
/// sort order. This workaround is obsolete once the test
/// `stock_windows_over_functions_of_equal_columns_still_fail` fails.
///
/// The rule also computes the keys of a window that name no column, as in
/// `row_number() OVER (ORDER BY random())` and `OVER (ORDER BY (SELECT NULL))`. If the statement
/// needs no other column, the rows to sort have none, and DataFusion cannot sort such rows. This
/// workaround is obsolete once the test `stock_windows_cannot_sort_rows_without_columns` fails.
pub(in crate::sql) fn project_computed_keys(
    plan: LogicalPlan,
    _config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) if sort.expr.iter().any(|by| is_underivable(&by.expr)) => {
            let SortPlan { mut expr, input, fetch } = sort;
            let mut keys = DistinctKeys::number_after(&input);
            let computed = expr.iter_mut().map(|by| &mut by.expr).filter(|key| is_underivable(key));
            computed.for_each(|key| keys.replace_key(key));
            let schema = Arc::clone(input.schema());
            let input = Arc::new(keys.compute_over(input)?);
            let sorted = LogicalPlan::Sort(SortPlan { expr, input, fetch });
            Ok(Transformed::yes(select_columns(sorted, &schema, schema.fields().len())?))
        }
        LogicalPlan::Window(window)
            if window
                .window_expr
                .iter()
                .any(|call| has_underivable_key(call) || has_computed_partition(call)) =>
        {
            let Window { input, window_expr, schema } = window;
            let in_input = input.schema().fields().len();
            let (calls, input) = compute_keys(window_expr, input)?;
            let window = LogicalPlan::Window(Window::try_new(calls, input)?);
            Ok(Transformed::yes(select_columns(window, &schema, in_input)?))
        }
        LogicalPlan::Aggregate(aggregate)
            if aggregate.aggr_expr.iter().any(has_underivable_key) =>
        {
            let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
            let (calls, input) = compute_keys(aggr_expr, input)?;
            let aggregate = Aggregate::try_new(input, group_expr, calls)?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// Replaces keys in ORDER BY and PARTITION BY of `calls` with columns. Returns the changed calls,
/// and a projection of `input` that computes these columns.
///
/// If any call has a computed key among several PARTITION BY keys ([`has_computed_partition`]),
/// this replaces the computed keys of every call. Otherwise, it replaces only the keys whose order
/// DataFusion cannot derive ([`is_underivable`]), and those without columns ([`names_no_column`]).
fn compute_keys(
    calls: Vec<Expr>,
    input: Arc<LogicalPlan>,
) -> Result<(Vec<Expr>, Arc<LogicalPlan>)> {
    let names = NamePreserver::new_for_projection();
    let mut keys = DistinctKeys::number_after(&input);
    let needs_columns = calls.iter().any(has_computed_partition);
    let calls = calls.into_iter().map(|mut call| {
        let name = names.save(&call);
        let computed = sort_keys(&mut call).into_iter().filter(|key| {
            is_underivable(key) || names_no_column(key) || (needs_columns && !is_plain(key))
        });
        computed.for_each(|key| keys.replace_key(key));
        name.restore(call)
    });
    let calls = calls.collect();
    Ok((calls, Arc::new(keys.compute_over(input)?)))
}

fn sort_keys(call: &mut Expr) -> Vec<&mut Expr> {
    match call {
        Expr::Alias(alias) => sort_keys(&mut alias.expr),
        Expr::WindowFunction(call) => {
            let order = call.params.order_by.iter_mut().map(|by| &mut by.expr);
            order.chain(&mut call.params.partition_by).collect()
        }
        Expr::AggregateFunction(call) => {
            call.params.order_by.iter_mut().map(|by| &mut by.expr).collect()
        }
        _ => Vec::new(),
    }
}

fn has_underivable_key(call: &Expr) -> bool {
    match call {
        Expr::Alias(alias) => has_underivable_key(&alias.expr),
        Expr::WindowFunction(call) => {
            let order = call.params.order_by.iter().map(|by| &by.expr);
            let mut keys = order.chain(&call.params.partition_by);
            keys.any(|key| is_underivable(key) || names_no_column(key))
        }
        Expr::AggregateFunction(call) => {
            call.params.order_by.iter().any(|by| is_underivable(&by.expr))
        }
        _ => false,
    }
}

/// Whether a window has several PARTITION BY keys, and at least one of them is computed, which
/// means that it is neither a column nor a literal.
fn has_computed_partition(call: &Expr) -> bool {
    match call {
        Expr::Alias(alias) => has_computed_partition(&alias.expr),
        Expr::WindowFunction(call) => {
            let keys = &call.params.partition_by;
            keys.len() > 1 && !keys.iter().all(is_plain)
        }
        _ => false,
    }
}

/// Whether a key contains AND, OR or a comparison of computed values, as in `length(s) > 1`, or a
/// function of [`PARTIAL_FUNCTIONS`], so that DataFusion cannot derive the order of the key.
fn is_underivable(key: &Expr) -> bool {
    use Operator::{And, Gt, GtEq, Lt, LtEq, Or};
    key.exists(|e| {
        Ok(match e {
            Expr::BinaryExpr(pair) => {
                matches!(pair.op, Gt | GtEq | Lt | LtEq | And | Or)
                    && !(is_plain(&pair.left) && is_plain(&pair.right))
            }
            Expr::ScalarFunction(call) => PARTIAL_FUNCTIONS.contains(&call.name()),
            _ => false,
        })
    })
    .unwrap_or(false)
}

/// Whether a key that is not a literal has the same value for each row of a window, or a random
/// one. Returns false for a parameter of PREPARE, whose type may be unknown.
fn names_no_column(key: &Expr) -> bool {
    let is_named = |e: &Expr| {
        matches!(e, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Placeholder(_))
    };
    !is_plain(key) && !key.exists(|e| Ok(is_named(e))).unwrap_or(true)
}

fn is_plain(e: &Expr) -> bool {
    matches!(e, Expr::Column(_) | Expr::Literal(..))
}

/// The distinct keys of a node. The calls of a window node must share one column per key.
struct DistinctKeys {
    keys: Vec<Expr>,
    /// The number in the column name of the first key.
    first: usize,
}

impl DistinctKeys {
    /// Returns a value without keys. The numbers in the names of its keys will continue after those
    /// of the keys that an earlier pass of the optimizer has added to `input`.
    fn number_after(input: &LogicalPlan) -> Self {
        let numbers = input.schema().fields().iter().filter_map(|field| {
            field.name().strip_prefix(KEY).and_then(|number| number.parse::<usize>().ok())
        });
        let first = numbers.max().map_or(0, |number| number.saturating_add(1));
        Self { keys: Vec::new(), first }
    }

    fn replace_key(&mut self, key: &mut Expr) {
        // Two calls of random() are two keys with different values.
        let is_known = |known: &Expr| known == key && !known.is_volatile();
        let at = self.keys.iter().position(is_known).unwrap_or(self.keys.len());
        let key = std::mem::replace(key, Expr::Column(self.name_key(at)));
        if at == self.keys.len() {
            self.keys.push(key);
        }
    }

    fn compute_over(mut self, input: Arc<LogicalPlan>) -> Result<LogicalPlan> {
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let keys = std::mem::take(&mut self.keys).into_iter().enumerate();
        let keys = keys.map(|(at, key)| key.alias(self.name_key(at).name));
        let columns = columns.chain(keys).collect();
        Ok(LogicalPlan::Projection(Projection::try_new(columns, input)?))
    }

    fn name_key(&self, at: usize) -> Column {
        Column::new_unqualified(format!("{KEY}{}", self.first.saturating_add(at)))
    }
}

/// Whether a column is a key that this rule computed in an earlier pass of the optimizer. If it is
/// a float, -0.0 and NaN are already canonical, because `serrate_float_keys` runs before this rule.
pub(super) fn is_key_column(column: &Column) -> bool {
    column.relation.is_none() && column.name.starts_with(KEY)
}

/// Removes the key columns from a plan, so that the columns of `schema` remain. The key columns
/// start at the index `first`.
fn select_columns(plan: LogicalPlan, schema: &Arc<DFSchema>, first: usize) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let further = columns.len().saturating_sub(schema.fields().len());
    let kept = columns.into_iter().enumerate();
    let kept = kept.filter(|(i, _)| *i < first || *i >= first.saturating_add(further));
    let kept = kept.map(|(_, column)| Expr::Column(column)).collect();
    let projection = Projection::try_new_with_schema(kept, Arc::new(plan), Arc::clone(schema))?;
    Ok(LogicalPlan::Projection(projection))
}
