//! Tests `(a, b) IN (SELECT ..)` of several columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue, not_impl_err, plan_datafusion_err};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, exists, lit, when,
};

use crate::sql::base::expression_parts::{has_part, map_named};
use crate::sql::base::plan_nodes::has_node;
use crate::sql::workarounds::subqueries::shared_rows::share_rows;

/// Prefix of the field names of a struct to which `sql::statement::expressions::tuples` rewrites
/// the row `(a, b)` of `(a, b) IN (SELECT ..)`. The position of the value follows, as in
/// `__serrate_row_0`.
pub(in crate::sql) const ROW_FIELD: &str = "__serrate_row_";

/// Analyzer rule, before DataFusion's type coercion: rewrites `(a, b) IN (SELECT ..)` to EXISTS.
///
/// DataFusion 55 cannot plan a row in front of IN, so `sql::statement::expressions::tuples`
/// rewrites the row to a struct whose field names begin with [`ROW_FIELD`]. IN is true if the
/// fields equal the columns of a row of the subquery. IN is NULL if they equal no row, but could
/// equal a row if NULLs were replaced by values. An EXISTS tests each of these two cases, and both
/// EXISTS read the same rows.
pub(in crate::sql) fn rewrite_rows_in(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_node(&plan, |node| Ok(has_row(node)))? {
        return Ok(plan);
    }
    Ok(plan.transform_up_with_subqueries(rewrite_node)?.data)
}

fn has_row(node: &LogicalPlan) -> bool {
    has_part(node, |e| find_row_test(e).is_some())
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_row(&node) {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    if let LogicalPlan::Filter(filter) = node {
        // A filter drops a row for FALSE and for NULL, so a conjunct may be FALSE instead of NULL.
        let conjuncts = split_conjunction_owned(filter.predicate).into_iter().map(|e| {
            match find_row_test(&e) {
                Some((values, test)) if !test.negated => {
                    RowSubquery::new(&values, test, &schema)?.build_found_test()
                }
                _ => replace_row_tests(e, &schema),
            }
        });
        let conjuncts = conjuncts.collect::<Result<Vec<_>>>()?;
        let predicate = conjunction(conjuncts).unwrap_or_else(|| lit(true));
        let filter = Filter::try_new(predicate, filter.input)?;
        return Ok(Transformed::yes(LogicalPlan::Filter(filter)));
    }
    map_named(node, |e| replace_row_tests(e, &schema).map(Transformed::yes))
}

/// Rewrites each `row IN (SELECT ..)` in an expression to an expression that is TRUE, FALSE or
/// NULL.
fn replace_row_tests(e: Expr, schema: &DFSchema) -> Result<Expr> {
    let done = e.transform_up(|e| {
        let Some((values, test)) = find_row_test(&e) else { return Ok(Transformed::no(e)) };
        let rows = RowSubquery::new(&values, test, schema)?;
        let value = when(rows.build_found_test()?, lit(!test.negated))
            .when(rows.build_open_test()?, lit(ScalarValue::Boolean(None)))
            .otherwise(lit(test.negated))?;
        Ok(Transformed::yes(value))
    })?;
    Ok(done.data)
}

/// If an expression is `row IN (SELECT ..)`, returns the values of the row and the IN expression.
/// Otherwise, returns `None`.
fn find_row_test(e: &Expr) -> Option<(Vec<Expr>, &InSubquery)> {
    let Expr::InSubquery(test) = e else { return None };
    Some((list_row_fields(&test.expr)?, test))
}

/// If `e` is a struct that `sql::statement::expressions::tuples` made of a row, returns the values
/// of the row. Otherwise, returns `None`.
fn list_row_fields(e: &Expr) -> Option<Vec<Expr>> {
    let Expr::ScalarFunction(call) = e else { return None };
    let Some(Expr::Literal(first, _)) = call.args.first() else { return None };
    let is_row = call.name() == "named_struct"
        && first.try_as_str().flatten().is_some_and(|name| name.starts_with(ROW_FIELD));
    is_row.then(|| call.args.iter().skip(1).step_by(2).cloned().collect())
}

/// The subquery of IN, and the condition that its columns equal the values in front of IN.
struct RowSubquery {
    query: Arc<LogicalPlan>,
    equal: Expr,
}

impl RowSubquery {
    fn new(values: &[Expr], test: &InSubquery, schema: &DFSchema) -> Result<Self> {
        let name = |at: usize| format!("__serrate_tuple_{at}");
        let query = Arc::new(split_columns(&test.subquery.subquery, values.len(), name)?);
        // The rewritten condition contains the query twice, and both copies must have the same
        // rows.
        let query = share_rows(&query)?.unwrap_or(query);
        let equal = values.iter().enumerate().map(|(at, value)| {
            // Inside the subquery, columns of the query around IN become outer columns. An outer
            // column in the value must have a name that none of these columns has.
            if value.exists(|e| match e {
                Expr::OuterReferenceColumn(_, column) => Ok(schema.has_column(column)),
                _ => Ok(false),
            })? {
                return not_impl_err!(
                    "{value} in front of IN (SELECT ..) reads a table of an outer query, but a table of the query that contains IN has the same name, which is not supported; give one of the two tables an alias, as in FROM t AS u"
                );
            }
            let outer = value.clone().transform_up(|e| match e {
                Expr::Column(column) => {
                    let (_, field) = schema.qualified_field_from_column(&column)?;
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
                }
                e => Ok(Transformed::no(e)),
            })?;
            Ok(Expr::Column(Column::new_unqualified(name(at))).eq(outer.data))
        });
        let equal = conjunction(equal.collect::<Result<Vec<_>>>()?);
        let equal = equal.ok_or_else(|| {
            plan_datafusion_err!(
                "the row in front of IN has no values; write at least one value in its parentheses"
            )
        })?;
        Ok(Self { query, equal })
    }

    fn filter_rows_where(&self, condition: Expr) -> Result<Expr> {
        let rows = LogicalPlanBuilder::from(self.query.as_ref().clone()).filter(condition)?;
        Ok(exists(Arc::new(rows.build()?)))
    }

    /// Returns a condition that is true if IN is true, and otherwise false, never NULL.
    fn build_found_test(&self) -> Result<Expr> {
        self.filter_rows_where(self.equal.clone())
    }

    /// Returns a condition that is true if IN is true or NULL, and otherwise false.
    fn build_open_test(&self) -> Result<Expr> {
        self.filter_rows_where(Expr::IsNotFalse(Box::new(self.equal.clone())))
    }
}

/// Splits the only column of a query, a struct of `count` fields, into one column per field. Field
/// `i` gets the name `name(i)`.
fn split_columns(
    query: &LogicalPlan,
    count: usize,
    name: impl Fn(usize) -> String,
) -> Result<LogicalPlan> {
    if let LogicalPlan::Projection(projection) = query
        && let [only] = projection.expr.as_slice()
        && let Some(fields) = list_row_fields(&only.clone().unalias())
        && fields.len() == count
    {
        let columns = fields.into_iter().enumerate().map(|(at, e)| e.alias(name(at)));
        let input = Arc::clone(&projection.input);
        return Projection::try_new(columns.collect(), input).map(LogicalPlan::Projection);
    }
    let row = match query.schema().columns().as_slice() {
        [only] => Expr::Column(only.clone()),
        columns => {
            return Err(plan_datafusion_err!(
                "the subquery of IN returns {} columns, but the row in front of IN has {count} values; return one column per value, or one struct",
                columns.len()
            ));
        }
    };
    let columns =
        (0..count).map(|at| get_field(row.clone(), format!("{ROW_FIELD}{at}")).alias(name(at)));
    LogicalPlanBuilder::from(query.clone()).project(columns)?.build()
}
