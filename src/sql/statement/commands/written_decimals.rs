//! Casts the number literals that INSERT and UPDATE write to columns of decimals, so that all their
//! digits count. DataFusion plans the literal 1.005 as a double, which is less than 1.005, and
//! casts the column of an inserted SELECT: `INSERT INTO t SELECT 1.005` would write 1.00.

use arrow::datatypes::DataType;
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, CastKind, DataType as SqlType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Insert, OrderBy, OrderByKind, Query,
    Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, UnaryOperator, Update,
    Value, Visit,
};
use datafusion::prelude::SessionContext;

use super::row_structs::is_row;
use super::target_columns::{find_table_columns, find_target_columns};
use crate::sql::base::syntax::{has_expr, to_plain_name};
use crate::sql::statement::columns::set_names::is_expanded;
use crate::sql::statement::expressions::long_numbers::keep_digits;
use crate::sql::statement::folding::{fold_name, is_same_name};

/// Prefix of the aliases of columns that have got a cast.
const COLUMN: &str = "__serrate_decimal_";

/// Casts the literals that INSERT writes to decimals: those in VALUES, and those that are columns
/// of a SELECT or of UNION ALL, also in branches of CASE, in `coalesce` and in scalar subqueries.
/// Any other literal of a query is a double.
pub(in crate::sql::statement) async fn cast_inserted_numbers(
    ctx: &SessionContext,
    insert: &mut Insert,
) {
    let source = insert.source.as_ref();
    let has_fraction =
        source.is_some_and(|source| has_expr(source, |e| is_fraction(e, f64::INFINITY)));
    if !has_fraction {
        return;
    }
    let columns = find_target_columns(ctx, insert).await;
    let types = columns.iter().map(|column| match column {
        Some(column) => column.data_type().clone(),
        None => DataType::Null,
    });
    let types: Vec<DataType> = types.collect();
    if let Some(source) = &mut insert.source {
        cast_columns(source, &types);
    }
}

/// Casts the literals that UPDATE assigns to columns of decimals.
pub(in crate::sql::statement) async fn cast_assigned_numbers(
    ctx: &SessionContext,
    update: &mut Update,
) {
    let TableFactor::Table { name, .. } = &update.table.relation else { return };
    let Some(schema) = find_table_columns(ctx, name).await else { return };
    for assignment in &mut update.assignments {
        if let AssignmentTarget::ColumnName(name) = &assignment.target
            && let Some(column) = name.0.last().and_then(|name| name.as_ident())
            && let Some((_, field)) = schema.fields().find(&fold_name(column))
        {
            cast_value(&mut assignment.value, field.data_type());
        }
    }
}

fn cast_columns(query: &mut Query, types: &[DataType]) {
    let order = query.order_by.as_ref();
    match query.body.as_mut() {
        SetExpr::Select(select) => cast_select(select, order, types),
        // ORDER BY sorts the rows of UNION ALL by the numbers as they are written.
        SetExpr::SetOperation { .. } | SetExpr::Query(_) if order.is_some() => {}
        body => cast_body(body, types),
    }
}

fn cast_body(body: &mut SetExpr, types: &[DataType]) {
    match body {
        SetExpr::Values(values) => {
            for row in &mut values.rows {
                row.iter_mut().zip(types).for_each(|(value, to)| cast_value(value, to));
            }
        }
        SetExpr::Select(select) => cast_select(select, None, types),
        SetExpr::Query(query) => cast_columns(query, types),
        // The other set operations compare the numbers as they are written.
        SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All,
            left,
            right,
        } => {
            cast_body(left, types);
            cast_body(right, types);
        }
        _ => {}
    }
}

/// Casts the literals that are columns of a SELECT, whose rows `order` sorts.
fn cast_select(select: &mut Select, order: Option<&OrderBy>, types: &[DataType]) {
    let compares_rows = order.is_some() || select.distinct.is_some() || has_group_keys(select);
    for (at, to) in types.iter().enumerate().take(select.projection.len()) {
        let is_used = match &select.projection[at] {
            SelectItem::ExprWithAlias { alias, .. } => {
                names_column(&*select, alias) || order.is_some_and(|by| computes_key(by, alias))
            }
            _ => false,
        };
        let item = &mut select.projection[at];
        match item {
            // The number of columns of `unnest` of a struct or of a star is unknown, so it is
            // unknown into which columns the items after it are inserted.
            SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)
                if is_expanded(expr) =>
            {
                return;
            }
            SelectItem::ExprWithAlias { .. } if is_used => {}
            // A literal has one value in all rows, with or without a cast. The values that are
            // chosen row by row are sorted, grouped and compared as they are written.
            SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)
                if compares_rows && chooses_value(expr) => {}
            SelectItem::ExprWithAlias { expr, .. } => cast_value(expr, to),
            SelectItem::UnnamedExpr(value) => {
                let mut cast = value.clone();
                cast_value(&mut cast, to);
                if cast != *value {
                    // The planner refuses two columns of one name, and a cast has the name of its
                    // operand.
                    let alias = Ident::with_quote('"', format!("{COLUMN}{at}"));
                    *item = SelectItem::ExprWithAlias { expr: cast, alias };
                }
            }
            _ => return,
        }
    }
}

fn has_group_keys(select: &Select) -> bool {
    match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    }
}

/// Whether an expression chooses one of several values for each row, or is a subquery.
fn chooses_value(e: &Expr) -> bool {
    match e {
        Expr::Nested(inner) => chooses_value(inner),
        Expr::Case { .. } | Expr::Subquery(_) => true,
        Expr::Function(call) => is_coalesce(call),
        _ => false,
    }
}

/// Whether a function returns its first argument that is not NULL.
fn is_coalesce(call: &Function) -> bool {
    let name = to_plain_name(&call.name);
    name.is_some_and(|name| matches!(name.as_str(), "coalesce" | "ifnull" | "nvl"))
}

/// Whether an expression of a SELECT or of a sort key has the name `alias`, which may stand for the
/// column of this name: a cast of the column would change the value of the expression.
fn names_column<V: Visit>(part: &V, alias: &Ident) -> bool {
    has_expr(part, |e| matches!(e, Expr::Identifier(name) if is_same_name(name, alias)))
}

/// Whether a sort key is computed from the column `alias`. A key that is this column alone has one
/// value in all rows, with or without a cast.
fn computes_key(order: &OrderBy, alias: &Ident) -> bool {
    let OrderByKind::Expressions(keys) = &order.kind else { return false };
    let mut computed = keys.iter().filter(|key| !matches!(key.expr, Expr::Identifier(_)));
    computed.any(|key| names_column(&key.expr, alias))
}

/// Casts a literal to the type `to` of its column if `to` is a decimal, and likewise the elements
/// of a list and the fields of a struct. Casts the literals among which an expression chooses one
/// value, too.
fn cast_value(value: &mut Expr, to: &DataType) {
    match (to, value) {
        (to, Expr::Nested(inner)) => cast_value(inner, to),
        (to, Expr::Case { conditions, else_result, .. }) if to.is_decimal() => {
            conditions.iter_mut().for_each(|when| cast_value(&mut when.result, to));
            if let Some(other) = else_result {
                cast_value(other, to);
            }
        }
        (to, Expr::Function(call)) if to.is_decimal() && is_coalesce(call) => {
            let FunctionArguments::List(list) = &mut call.args else { return };
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg {
                    cast_value(value, to);
                }
            }
        }
        (to, Expr::Subquery(query)) if to.is_decimal() => {
            cast_columns(query, std::slice::from_ref(to));
        }
        (
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
            Expr::Array(list),
        ) => list.elem.iter_mut().for_each(|element| cast_value(element, item.data_type())),
        (DataType::Struct(fields), Expr::Dictionary(entries)) => {
            for entry in entries {
                if let Some((_, field)) = fields.find(&entry.key.value) {
                    cast_value(&mut entry.value, field.data_type());
                }
            }
        }
        (DataType::Struct(fields), Expr::Tuple(values)) if values.len() == fields.len() => {
            for (value, field) in values.iter_mut().zip(fields) {
                cast_value(value, field.data_type());
            }
        }
        (DataType::Struct(fields), Expr::Function(call)) if is_row(call) => {
            let FunctionArguments::List(list) = &mut call.args else { return };
            if list.args.len() != fields.len() {
                return;
            }
            for (arg, field) in list.args.iter_mut().zip(fields) {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg {
                    cast_value(value, field.data_type());
                }
            }
        }
        (to, value) => {
            if let Some((data_type, largest)) = to_sql_decimal(to)
                && is_fraction(value, largest)
            {
                let literal = std::mem::replace(value, Expr::value(Value::Null));
                *value = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(literal),
                    data_type,
                    array: false,
                    format: None,
                };
                keep_digits(value);
            }
        }
    }
}

/// Returns a decimal type as a type of SQL, and its largest value; `None` for any other type.
fn to_sql_decimal(t: &DataType) -> Option<(SqlType, f64)> {
    let (DataType::Decimal32(precision, scale)
    | DataType::Decimal64(precision, scale)
    | DataType::Decimal128(precision, scale)
    | DataType::Decimal256(precision, scale)) = t
    else {
        return None;
    };
    let digits = ExactNumberInfo::PrecisionAndScale(u64::from(*precision), i64::from(*scale));
    let (whole, scale) = (i32::from(*precision) - i32::from(*scale), i32::from(*scale));
    let largest = 10f64.powi(whole) - 10f64.powi(-scale);
    (scale >= 0).then_some((SqlType::Decimal(digits), largest))
}

/// Whether an expression is the literal of a number that DataFusion plans as a double, such as
/// `-1.5`, and not beyond `largest`. A cast of a literal beyond it is an error when the statement
/// is planned, also if no row is written.
fn is_fraction(e: &Expr, largest: f64) -> bool {
    match e {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => {
                digits.parse::<u64>().is_err()
                    && digits.parse::<f64>().is_ok_and(|number| number <= largest)
            }
            _ => false,
        },
        Expr::Nested(inner) => is_fraction(inner, largest),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            matches!(expr.as_ref(), Expr::Value(_)) && is_fraction(expr, largest)
        }
        _ => false,
    }
}
