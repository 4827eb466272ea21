//! Rejects numbers that INSERT and UPDATE write to timestamps and dates. DataFusion would read a
//! number for a timestamp in the unit of the column, although `5::TIMESTAMP` is 5 seconds, and a
//! number for a date as days since 1970, although 20200101 may be meant as 1 January 2020.

use std::collections::HashSet;

use arrow::datatypes::{DataType, Field};
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, DataType as SqlType, Expr as SqlExpr, Insert, SetExpr,
    Statement as SqlStatement, TableObject, UnaryOperator, Value,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, WriteOp};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;

use crate::sql::statement::columns::position_columns::to_table_reference;
use crate::sql::statement::folding::fold_name;

/// Returns the names of the columns to which an UPDATE assigns a cast to a timestamp or date. In
/// the plan, such a cast looks like one that DataFusion adds to a value of another type.
pub(in crate::sql::statement) fn list_written_casts(statement: &Statement) -> HashSet<String> {
    let Statement::Statement(inner) = statement else { return HashSet::new() };
    let SqlStatement::Update(update) = inner.as_ref() else { return HashSet::new() };
    let casts = update.assignments.iter().filter_map(|assignment| {
        let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
        let column = name.0.last()?.as_ident()?;
        let mut value = &assignment.value;
        while let SqlExpr::Nested(inner) = value {
            value = inner;
        }
        let SqlExpr::Cast { data_type, .. } = value else { return None };
        // A cast to another type, such as `n::BIGINT`, does not give the number a unit.
        let is_time = matches!(
            data_type,
            SqlType::Timestamp(..) | SqlType::Datetime(_) | SqlType::Date | SqlType::Custom(..)
        );
        is_time.then(|| fold_name(column))
    });
    casts.collect()
}

/// Returns an error if the plan of an INSERT or UPDATE, also below EXPLAIN, casts numbers to
/// timestamps or dates. Casts that an UPDATE itself assigns to the columns in `written` are
/// allowed.
pub(in crate::sql::statement) fn refuse_counts(
    plan: &LogicalPlan,
    written: &HashSet<String>,
) -> Result<()> {
    let change = match plan {
        LogicalPlan::Explain(explain) => return refuse_counts(&explain.plan, written),
        LogicalPlan::Analyze(analyze) => return refuse_counts(&analyze.input, written),
        LogicalPlan::Dml(change) => change,
        _ => return Ok(()),
    };
    let LogicalPlan::Projection(values) = change.input.as_ref() else { return Ok(()) };
    for value in &values.expr {
        let Expr::Alias(named) = value else { continue };
        let Expr::Cast(cast) = named.expr.as_ref() else { continue };
        let is_planned = match change.op {
            // Any other expression is the default of the column.
            WriteOp::Insert(_) => matches!(cast.expr.as_ref(), Expr::Column(_)),
            WriteOp::Update => !written.contains(&named.name),
            _ => false,
        };
        let to = cast.field.data_type();
        if is_planned && is_time(to) {
            let found = cast.expr.get_type(values.input.schema())?;
            if found.is_numeric() {
                return Err(refuse_number(&named.name, to, &format!("of the type {found}")));
            }
        }
    }
    Ok(())
}

/// Returns an error if the VALUES of an INSERT have a number for a column of timestamps or dates.
/// The plan does not show this, because its VALUES already have the types of the table.
pub(in crate::sql::statement) async fn refuse_number_rows(
    ctx: &SessionContext,
    insert: &Insert,
) -> Result<()> {
    let Some(source) = &insert.source else { return Ok(()) };
    let SetExpr::Values(values) = source.body.as_ref() else { return Ok(()) };
    let TableObject::TableName(name) = &insert.table else { return Ok(()) };
    let Some(reference) = to_table_reference(name) else { return Ok(()) };
    let Ok(provider) = ctx.table_provider(reference).await else { return Ok(()) };
    let schema = provider.schema();
    let names: Vec<String> = match insert.columns.is_empty() {
        true => schema.fields().iter().map(|field| field.name().clone()).collect(),
        false => {
            let columns = insert.columns.iter();
            let names = columns.map(|column| column.0.last().and_then(|name| name.as_ident()));
            names.map(|name| name.map_or_else(String::new, fold_name)).collect()
        }
    };
    let find_time = |name: &String| {
        let field = schema.field_with_name(name).ok()?;
        is_time(field.data_type()).then_some(field)
    };
    let times: Vec<Option<&Field>> = names.iter().map(find_time).collect();
    for row in &values.rows {
        for (cell, column) in row.iter().zip(&times) {
            if let Some(column) = column
                && is_number(cell)
            {
                return Err(refuse_number(column.name(), column.data_type(), &cell.to_string()));
            }
        }
    }
    Ok(())
}

fn is_time(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

/// Whether an expression is the literal of a number, such as `-1.5`.
fn is_number(cell: &SqlExpr) -> bool {
    match cell {
        SqlExpr::Value(value) => matches!(value.value, Value::Number(..)),
        SqlExpr::Nested(inner) => is_number(inner),
        SqlExpr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            is_number(expr)
        }
        _ => false,
    }
}

fn refuse_number(column: &str, to: &DataType, found: &str) -> DataFusionError {
    if !matches!(to, DataType::Timestamp(..)) {
        return plan_datafusion_err!(
            "the column '{column}' has dates, but gets a number ({found}), and dates are not numbers; write a date such as DATE '2020-01-31', or DATE '1970-01-01' + n for a number n of days since 1970"
        );
    }
    plan_datafusion_err!(
        "the column '{column}' has timestamps, but gets a number ({found}), whose unit is not known; write to_timestamp(x) or x::TIMESTAMP for seconds, or to_timestamp_micros(x) for microseconds"
    )
}
