//! Rewrites rows, `row(1, 2)` and `(1, 2)`, to structs. As in DuckDB, their fields get the field
//! names of the struct type to which the row is cast, or of the column into which it is inserted:
//! DataFusion casts structs by the names of their fields.

use arrow::datatypes::DataType;
use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, Expr, Function, FunctionArguments, Insert, SelectItem,
    SetExpr, Value,
};
use datafusion::prelude::SessionContext;

use super::target_columns::find_target_columns;
use crate::sql::base::syntax::{has_expr, list_plain_arguments, to_plain_name};
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::folding::fold_name;

/// Names the fields of a row that is cast to a struct: in `row(1, 2)::STRUCT(a INT, b INT)`, the
/// fields of the row get the names `a` and `b`.
pub(in crate::sql) fn name_cast_rows(expr: &mut Expr) {
    if let Expr::Cast { expr: value, data_type, .. } = expr {
        ValueShape::from_sql(data_type).name_fields(value);
    }
}

/// Names the fields of rows such as `row(1, 2)` that INSERT writes to struct columns. The rows are
/// values of VALUES or columns of SELECT.
pub(in crate::sql) async fn name_inserted_rows(ctx: &SessionContext, insert: &mut Insert) {
    let has_row = insert.source.as_ref().is_some_and(|source| {
        has_expr(source, |e| match e {
            Expr::Tuple(_) => true,
            Expr::Function(call) => is_row(call),
            _ => false,
        })
    });
    if !has_row {
        return;
    }
    let columns = find_target_columns(ctx, insert).await;
    let shapes = columns.iter().map(|column| match column {
        Some(column) => ValueShape::from_arrow(column.data_type()),
        None => ValueShape::Scalar,
    });
    let shapes: Vec<ValueShape> = shapes.collect();
    let Some(source) = &mut insert.source else { return };
    match source.body.as_mut() {
        SetExpr::Values(values) => {
            for row in &mut values.rows {
                row.iter_mut().zip(&shapes).for_each(|(value, shape)| shape.name_fields(value));
            }
        }
        SetExpr::Select(select) => {
            for (item, shape) in select.projection.iter_mut().zip(&shapes) {
                match item {
                    SelectItem::UnnamedExpr(value)
                    | SelectItem::ExprWithAlias { expr: value, .. } => shape.name_fields(value),
                    // A star. How many columns it has is unknown, so it is unknown into which
                    // columns the items after it are inserted, and these items keep their field
                    // names.
                    _ => return,
                }
            }
        }
        _ => {}
    }
}

/// The shape of a type: a struct with the names and shapes of its fields, a list with the shape of
/// its elements, or a scalar.
enum ValueShape {
    Struct(Vec<(String, ValueShape)>),
    List(Box<ValueShape>),
    Scalar,
}

impl ValueShape {
    fn from_sql(t: &SqlType) -> Self {
        match t {
            SqlType::Struct(fields, _) => {
                let fields = fields.iter().map(|field| {
                    let name = field.field_name.as_ref()?;
                    Some((fold_name(name), Self::from_sql(&field.field_type)))
                });
                fields.collect::<Option<Vec<_>>>().map_or(Self::Scalar, Self::Struct)
            }
            SqlType::Array(
                ArrayElemTypeDef::AngleBracket(item)
                | ArrayElemTypeDef::SquareBracket(item, _)
                | ArrayElemTypeDef::Parenthesis(item),
            ) => Self::List(Box::new(Self::from_sql(item))),
            _ => Self::Scalar,
        }
    }

    fn from_arrow(t: &DataType) -> Self {
        match t {
            DataType::Struct(fields) => Self::Struct(
                fields
                    .iter()
                    .map(|field| (field.name().clone(), Self::from_arrow(field.data_type())))
                    .collect(),
            ),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Self::List(Box::new(Self::from_arrow(item.data_type())))
            }
            _ => Self::Scalar,
        }
    }

    fn name_fields(&self, value: &mut Expr) {
        match (self, value) {
            (Self::Scalar, _) => {}
            (_, Expr::Nested(inner)) => self.name_fields(inner),
            (Self::List(item), Expr::Array(list)) => {
                list.elem.iter_mut().for_each(|element| item.name_fields(element));
            }
            (Self::Struct(fields), Expr::Dictionary(entries)) => {
                for entry in entries {
                    let field = fields.iter().find(|(name, _)| *name == entry.key.value);
                    if let Some((_, shape)) = field {
                        shape.name_fields(&mut entry.value);
                    }
                }
            }
            (Self::Struct(fields), row) => {
                let Some(values) =
                    list_row_values(row).filter(|values| values.len() == fields.len())
                else {
                    return;
                };
                let args = fields.iter().zip(values).flat_map(|((name, shape), mut value)| {
                    shape.name_fields(&mut value);
                    [Expr::value(Value::SingleQuotedString(name.clone())), value]
                });
                *row = call_function("named_struct", args.collect());
            }
            _ => {}
        }
    }
}

fn list_row_values(row: &Expr) -> Option<Vec<Expr>> {
    match row {
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Function(call) if is_row(call) => {
            let FunctionArguments::List(list) = &call.args else { return None };
            list_plain_arguments(&list.args)
        }
        _ => None,
    }
}

/// Whether a call such as `row(1, 2)` makes a struct of its arguments.
pub(super) fn is_row(call: &Function) -> bool {
    to_plain_name(&call.name).is_some_and(|name| matches!(name.as_str(), "row" | "struct"))
}
