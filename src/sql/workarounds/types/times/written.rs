use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, ColumnDef, DataType, Expr, Ident, Statement,
    TableFactor, TypedString, Value, VisitMut, VisitorMut,
};

use super::wide::has_wide_series;
use crate::functions::{AS_TIMESTAMP, AT_TIME_ZONE, TRY_AS_TIMESTAMP, plans_predicates};

/// Replaces casts to TIMESTAMP with custom operators that cast to microseconds, and declares
/// columns of that type in microseconds. Does nothing in a session whose planners do not know these
/// operators, because the queries of the session would fail.
pub(in crate::sql) fn cast_in_microseconds<S: VisitMut>(state: &SessionState, statement: &mut S) {
    if plans_predicates(state.expr_planners()) {
        let _ =
            statement.visit(&mut TimestampRewriter { wide: has_wide_series(state), in_series: 0 });
    }
}

/// Does the same as [`cast_in_microseconds`] for columns that a statement declares.
pub(in crate::sql) fn set_column_microseconds(state: &SessionState, columns: &mut [ColumnDef]) {
    if plans_predicates(state.expr_planners()) {
        for column in columns {
            set_microseconds(&mut column.data_type);
        }
    }
}

struct TimestampRewriter {
    /// Whether the table functions `generate_series` and `range` of the session accept
    /// microseconds.
    wide: bool,
    /// How many calls of `generate_series` and `range` in FROM contain the current position of the
    /// visitor.
    in_series: usize,
}

fn is_series(factor: &TableFactor) -> bool {
    let name = match factor {
        TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => name,
        _ => return false,
    };
    let [name] = name.0.as_slice() else { return false };
    let name = name.as_ident().map(|name| name.value.as_str()).unwrap_or_default();
    ["generate_series", "range"].iter().any(|series| series.eq_ignore_ascii_case(name))
}

impl VisitorMut for TimestampRewriter {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.in_series = self.in_series.saturating_add(usize::from(is_series(factor)));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.in_series = self.in_series.saturating_sub(usize::from(is_series(factor)));
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        if let Statement::CreateTable(table) = statement {
            table.columns.iter_mut().for_each(|column| set_microseconds(&mut column.data_type));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.in_series > 0 && !self.wide {
            return ControlFlow::Continue(());
        }
        let word = match expr {
            Expr::Cast { data_type: DataType::Timestamp(None, _), kind, format: None, .. } => {
                match kind {
                    CastKind::Cast | CastKind::DoubleColon => AS_TIMESTAMP,
                    CastKind::TryCast | CastKind::SafeCast => TRY_AS_TIMESTAMP,
                }
            }
            // DataFusion computes arguments in FROM before the analyzer rules that make casts to
            // `TIMESTAMP(0)` and `TIMESTAMP(3)` round down. So such a cast becomes an operator that
            // rounds down itself.
            Expr::Cast {
                data_type: DataType::Timestamp(Some(0 | 3), _),
                kind,
                format: None,
                ..
            } if self.in_series > 0 => match kind {
                CastKind::Cast | CastKind::DoubleColon => AS_TIMESTAMP,
                CastKind::TryCast | CastKind::SafeCast => TRY_AS_TIMESTAMP,
            },
            Expr::TypedString(TypedString { data_type: DataType::Timestamp(None, _), .. }) => {
                AS_TIMESTAMP
            }
            Expr::AtTimeZone { time_zone, .. } if matches!(**time_zone, Expr::Value(_)) => {
                AT_TIME_ZONE
            }
            Expr::Cast { data_type, .. } => {
                set_microseconds(data_type);
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        // An empty identifier takes the place of the expression while its parts move into the
        // operator.
        let taken = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
        let (left, right) = match taken {
            Expr::Cast { expr, data_type, .. } => (expr, make_null(data_type)),
            Expr::TypedString(TypedString { data_type, value, .. }) => {
                (Box::new(Expr::Value(value)), make_null(data_type))
            }
            Expr::AtTimeZone { timestamp, time_zone } => (timestamp, time_zone),
            other => {
                *expr = other;
                return ControlFlow::Continue(());
            }
        };
        *expr = Expr::BinaryOp { left, op: BinaryOperator::Custom(word.to_owned()), right };
        ControlFlow::Continue(())
    }
}

fn make_null(mut data_type: DataType) -> Box<Expr> {
    set_microseconds(&mut data_type);
    Box::new(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::Null)),
        data_type,
        array: false,
        format: None,
    })
}

/// Sets the precision of timestamps in a type to microseconds if they have none: `TIMESTAMP[]`
/// becomes `TIMESTAMP(6)[]`.
fn set_microseconds(data_type: &mut DataType) {
    match data_type {
        DataType::Timestamp(digits @ None, _) => *digits = Some(6),
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => set_microseconds(item),
        DataType::Struct(fields, _) => {
            fields.iter_mut().for_each(|field| set_microseconds(&mut field.field_type));
        }
        _ => {}
    }
}
