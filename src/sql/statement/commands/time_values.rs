//! Rejects numbers that INSERT and UPDATE write to columns of times, and times that they write to
//! columns of numbers. DataFusion would read a number for a timestamp or a time of day in the unit
//! of the column, although `5::TIMESTAMP` is 5 seconds, and a number for a date as days since 1970,
//! although 20200101 may be meant as 1 January 2020. It would write dates as days since 1970, and
//! timestamps in the unit of their type.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, AssignmentTarget, DataType as SqlType, Expr as SqlExpr, Insert, SetExpr,
    Statement as SqlStatement, UnaryOperator, Value,
};
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, LogicalPlan, Projection, Values, WriteOp,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;

use super::target_columns::find_target_columns;
use crate::array::leaf_type;
use crate::sql::statement::folding::fold_name;

/// The casts that an INSERT or UPDATE itself applies to the values that it writes. In the plan,
/// they look like the casts that DataFusion adds to values of another type.
#[derive(Default)]
pub(in crate::sql::statement) struct WrittenCasts {
    /// The casts that UPDATE assigns, by column.
    assigned: HashMap<String, CastResult>,
    /// The casts in the VALUES of INSERT, by row and position.
    cells: HashMap<(usize, usize), CastResult>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CastResult {
    Time,
    Other,
}

impl WrittenCasts {
    pub(in crate::sql::statement) fn from_insert(insert: &Insert) -> Self {
        let mut written = Self::default();
        let Some(source) = &insert.source else { return written };
        let SetExpr::Values(values) = source.body.as_ref() else { return written };
        for (row, cells) in values.rows.iter().enumerate() {
            for (at, cell) in cells.iter().enumerate() {
                if let Some(result) = find_cast_result(cell) {
                    written.cells.insert((row, at), result);
                }
            }
        }
        written
    }

    /// Returns the casts of an UPDATE, and none for any other statement.
    pub(in crate::sql::statement) fn from_update(statement: &Statement) -> Self {
        let mut written = Self::default();
        let Statement::Statement(inner) = statement else { return written };
        let SqlStatement::Update(update) = inner.as_ref() else { return written };
        for assignment in &update.assignments {
            if let AssignmentTarget::ColumnName(name) = &assignment.target
                && let Some(column) = name.0.last().and_then(|name| name.as_ident())
                && let Some(result) = find_cast_result(&assignment.value)
            {
                written.assigned.insert(fold_name(column), result);
            }
        }
        written
    }
}

/// Returns what a cast returns; `None` for any other expression.
fn find_cast_result(e: &SqlExpr) -> Option<CastResult> {
    match e {
        SqlExpr::Nested(inner) => find_cast_result(inner),
        SqlExpr::Cast { data_type, .. } if names_time(data_type) => Some(CastResult::Time),
        SqlExpr::Cast { .. } => Some(CastResult::Other),
        _ => None,
    }
}

/// Whether a type is a date or time, or a list of them.
fn names_time(data_type: &SqlType) -> bool {
    match data_type {
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => names_time(item),
        SqlType::Timestamp(..)
        | SqlType::Datetime(_)
        | SqlType::Date
        | SqlType::Time(..)
        | SqlType::Interval { .. }
        | SqlType::Custom(..) => true,
        _ => false,
    }
}

/// Returns an error if the plan of an INSERT or UPDATE, also below EXPLAIN, casts numbers to times
/// or times to numbers. Casts in `written` are allowed.
pub(in crate::sql::statement) fn check_written_times(
    plan: &LogicalPlan,
    written: &WrittenCasts,
) -> Result<()> {
    let change = match plan {
        LogicalPlan::Explain(explain) => return check_written_times(&explain.plan, written),
        LogicalPlan::Analyze(analyze) => return check_written_times(&analyze.input, written),
        LogicalPlan::Dml(change) => change,
        _ => return Ok(()),
    };
    let LogicalPlan::Projection(values) = change.input.as_ref() else { return Ok(()) };
    let inserts = matches!(change.op, WriteOp::Insert(_));
    for value in &values.expr {
        let Expr::Alias(named) = value else { continue };
        let Expr::Cast(cast) = named.expr.as_ref() else { continue };
        let to = cast.field.data_type();
        match cast.expr.as_ref() {
            Expr::Column(column) if inserts => {
                for found in list_column_types(&values.input, column)? {
                    check_type(&named.name, &found, to, None)?;
                }
            }
            // Any other expression of an INSERT is the default of the column.
            value if change.op == WriteOp::Update => {
                let found = value.get_type(values.input.schema())?;
                check_type(&named.name, &found, to, written.assigned.get(&named.name))?;
            }
            _ => {}
        }
    }
    match values.input.as_ref() {
        LogicalPlan::Values(rows) if inserts => check_rows(values, rows, written),
        _ => Ok(()),
    }
}

/// Returns the types that a column has in the inputs of UNIONs, whose own type is that of their
/// first input until type coercion, or its only type in any other plan.
fn list_column_types(plan: &LogicalPlan, column: &Column) -> Result<Vec<DataType>> {
    let at = plan.schema().index_of_column(column)?;
    let mut types = Vec::new();
    let mut waiting = vec![plan];
    while let Some(plan) = waiting.pop() {
        match plan {
            // These nodes have the columns of their inputs, by position.
            LogicalPlan::Union(_)
            | LogicalPlan::Distinct(Distinct::All(_))
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::SubqueryAlias(_) => waiting.extend(plan.inputs()),
            _ => types.extend(plan.schema().fields().get(at).map(|f| f.data_type().clone())),
        }
    }
    Ok(types)
}

/// Returns an error if the VALUES `rows` of an INSERT, which the projection `columns` names, have a
/// number for a column of times, or a time for a column of numbers.
fn check_rows(columns: &Projection, rows: &Values, written: &WrittenCasts) -> Result<()> {
    let none = DFSchema::empty();
    let find_name = |at: usize| {
        let of_row = rows.schema.fields().get(at)?.name();
        columns.expr.iter().find_map(|e| match e {
            Expr::Alias(named) => match named.expr.as_ref() {
                Expr::Column(column) if column.name == *of_row => Some(named.name.as_str()),
                _ => None,
            },
            _ => None,
        })
    };
    for (row, cells) in rows.values.iter().enumerate() {
        for (at, cell) in cells.iter().enumerate() {
            let Expr::Cast(cast) = cell else { continue };
            // The planner reports an expression without a type.
            let Ok(found) = cast.expr.get_type(&none) else { continue };
            let name = find_name(at).unwrap_or_default();
            check_type(name, &found, cast.field.data_type(), written.cells.get(&(row, at)))?;
        }
    }
    Ok(())
}

/// Returns an error if a value of the type `found` is a number for a column of times, or a time for
/// a column of numbers, unless the statement itself casts it to a time or to a number. The types
/// may be lists of such values.
fn check_type(
    column: &str,
    found: &DataType,
    to: &DataType,
    written: Option<&CastResult>,
) -> Result<()> {
    let (found, to) = (leaf_type(found), leaf_type(to));
    if is_time(to) && found.is_numeric() && written != Some(&CastResult::Time) {
        return Err(refuse_number(column, to, &format!("of the type {found}")));
    }
    match to.is_numeric() && found.is_temporal() && written != Some(&CastResult::Other) {
        true => Err(refuse_time(column, found)),
        false => Ok(()),
    }
}

/// Returns an error if the VALUES of an INSERT have a number literal for a column of times. This
/// error shows the number, and [`check_written_times`] only its type.
pub(in crate::sql::statement) async fn refuse_number_rows(
    ctx: &SessionContext,
    insert: &Insert,
) -> Result<()> {
    let Some(source) = &insert.source else { return Ok(()) };
    let SetExpr::Values(values) = source.body.as_ref() else { return Ok(()) };
    let columns = find_target_columns(ctx, insert).await;
    for row in &values.rows {
        for (cell, column) in row.iter().zip(&columns) {
            if let Some(column) = column
                && is_time(column.data_type())
                && is_number(cell)
            {
                return Err(refuse_number(column.name(), column.data_type(), &cell.to_string()));
            }
        }
    }
    Ok(())
}

fn is_time(t: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(t, Timestamp(..) | Date32 | Date64 | Time32(_) | Time64(_))
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
    match to {
        DataType::Timestamp(..) => plan_datafusion_err!(
            "the column '{column}' has timestamps, but gets a number ({found}), whose unit is not known; write to_timestamp(x) or x::TIMESTAMP for seconds, or to_timestamp_micros(x) for microseconds"
        ),
        DataType::Time32(_) | DataType::Time64(_) => plan_datafusion_err!(
            "the column '{column}' has times of day, but gets a number ({found}), whose unit is not known; write a time such as TIME '10:30:00', or TIME '00:00:00' + n * INTERVAL '1 second' for n seconds"
        ),
        _ => plan_datafusion_err!(
            "the column '{column}' has dates, but gets a number ({found}), and dates are not numbers; write a date such as DATE '2020-01-31', or DATE '1970-01-01' + n for a number n of days since 1970"
        ),
    }
}

fn refuse_time(column: &str, found: &DataType) -> DataFusionError {
    let (kind, instead) = match found {
        DataType::Date32 | DataType::Date64 => {
            ("a date", "d - DATE '1970-01-01' for the days since 1970, or year(d) for the year")
        }
        DataType::Timestamp(..) => ("a timestamp", "epoch(t) for the seconds since 1970"),
        DataType::Time32(_) | DataType::Time64(_) => {
            ("a time of day", "epoch(t) for the seconds since midnight")
        }
        _ => ("a duration", "epoch(x) for its seconds"),
    };
    plan_datafusion_err!(
        "the column '{column}' has numbers, but gets {kind} (of the type {found}), which is not a number; write {instead}"
    )
}
