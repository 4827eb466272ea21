//! Removes functional dependencies that do not hold above `unnest`.
//!
//! A query grouped by `k` has one row per `k`, which DataFusion records as a functional dependency
//! in the schema. Above such a query, DataFusion drops DISTINCT, ORDER BY and GROUP BY of further
//! columns as redundant, and turns a join by `k` into a semi join. `Unnest` of DataFusion 55
//! inherits the dependencies of its input, although it turns one row into many. The upstream fix,
//! <https://github.com/apache/datafusion/pull/24787>, is not released yet; once it is,
//! `stock_unnest_still_keeps_dependencies` in `tests/sql/unnest.rs` fails, and this file can be
//! removed.
//!
//! DataFusion derives dependencies again whenever it rewrites a plan, so removing them from a
//! schema does not help. But a projection drops the dependencies of columns that it computes. So
//! this file inserts a projection below `Unnest` that computes every column with a function that
//! returns its argument.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Projection, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Unnest, Volatility,
};

use crate::functions::{declare, same_field, take_first};
use crate::sql::base::plan_nodes::has_node;

/// A function that returns its argument and is opaque to the optimizer.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ComputedColumn;

pub(in crate::sql) static COMPUTED_COLUMN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(ComputedColumn)));

impl ScalarUDFImpl for ComputedColumn {
    declare!("__serrate_computed_column", Signature::any(1, Volatility::Immutable));
    same_field!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}

/// `SELECT DISTINCT k FROM (SELECT k, unnest(v) AS v FROM (SELECT k, array_agg(v) AS v FROM t GROUP
/// BY k))` returns each `k` once per element without this rule.
///
/// Analyzer rule: inserts a projection, which has no functional dependencies, below each `Unnest`
/// whose input may have some. No `Unnest` of the result inherits functional dependencies, before or
/// after optimization.
pub(in crate::sql) fn drop_unnest_dependencies(plan: LogicalPlan) -> Result<LogicalPlan> {
    add_unnest_barriers(plan).data()
}

pub(in crate::sql) fn add_unnest_barriers(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let is_affected = |node: &LogicalPlan| match node {
        LogicalPlan::Unnest(unnest) => needs_barrier(unnest),
        _ => Ok(false),
    };
    if !has_node(&plan, is_affected)? {
        return Ok(Transformed::no(plan));
    }
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Unnest(unnest) if needs_barrier(&unnest)? => {
            add_barrier(unnest).map(Transformed::yes)
        }
        node => Ok(Transformed::no(node)),
    })?;
    if !plan.transformed {
        return Ok(plan);
    }
    plan.data.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes))
}

fn needs_barrier(unnest: &Unnest) -> Result<bool> {
    may_have_dependencies(&unnest.input)
}

/// Whether a plan has functional dependencies, or may get some when the optimizer turns DISTINCT,
/// subqueries and other nodes into aggregates.
pub(super) fn may_have_dependencies(plan: &LogicalPlan) -> Result<bool> {
    if is_barrier(plan) {
        return Ok(false);
    }
    has_node(plan, |node| {
        Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_))
            || !node.schema().functional_dependencies().is_empty())
    })
}

/// Whether a plan is a projection that [`remove_dependencies`] created.
pub(super) fn is_barrier(plan: &LogicalPlan) -> bool {
    let computed = |e: &Expr| match e.clone().unalias() {
        Expr::ScalarFunction(call) => {
            (call.func.inner().as_ref() as &dyn Any).is::<ComputedColumn>()
        }
        _ => false,
    };
    matches!(plan, LogicalPlan::Projection(p) if !p.expr.is_empty() && p.expr.iter().all(computed))
}

fn add_barrier(unnest: Unnest) -> Result<LogicalPlan> {
    let computed = remove_dependencies(&unnest.input)?;
    let unnest = LogicalPlan::Unnest(unnest);
    unnest.with_new_exprs(unnest.expressions(), vec![computed])
}

/// Returns a projection that computes each column of a plan, and therefore has no functional
/// dependencies.
pub(super) fn remove_dependencies(plan: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        COMPUTED_COLUMN.call(vec![Expr::Column(column)]).alias_qualified(relation, name)
    });
    Projection::try_new(columns.collect(), Arc::clone(plan)).map(LogicalPlan::Projection)
}
