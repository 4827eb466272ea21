//! Converts parameter values to SQL literals.
//!
//! The values replace the parameters before a statement is planned, as in EXECUTE: functions see
//! constants, and a value is not cast to the type of the column that it is compared with.

use std::fmt::Write;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::util::display::array_value_to_string;
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Expr as SqlExpr, Value};
use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;

/// Maximum number of list elements in one parameter value.
const MAX_ELEMENTS: usize = 1 << 16;
/// Maximum depth of nested lists and structs in one parameter value.
const MAX_DEPTH: usize = 16;

/// Returns the values in a batch as SQL literals: for each row, one literal per column. A value
/// that is too long, too deep or of an unsupported type is an error.
pub(super) fn to_arguments(batch: &RecordBatch) -> Result<Vec<Vec<SqlExpr>>> {
    let rows = 0..batch.num_rows();
    rows.map(|row| batch.columns().iter().map(|column| to_literal(column, row)).collect()).collect()
}

/// Returns about how many bytes the literals of [`to_arguments`] take for a batch.
pub(super) fn estimate_bytes(batch: &RecordBatch) -> usize {
    let values = batch.columns().iter().map(|column| count_values(&column.to_data()));
    let literals = values.sum::<usize>().saturating_mul(size_of::<SqlExpr>());
    literals.saturating_add(batch.get_array_memory_size())
}

/// Returns the number of values in an array, including those in lists and structs.
fn count_values(data: &ArrayData) -> usize {
    let children = data.child_data().iter().map(count_values);
    children.fold(data.len(), usize::saturating_add)
}

fn to_literal(column: &ArrayRef, row: usize) -> Result<SqlExpr> {
    let mut writer = ParameterLiteral { text: String::new(), elements: 0 };
    // A string becomes a literal without parsing. Any other value is written as SQL and parsed.
    if let (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, false) =
        (column.data_type(), column.is_null(row))
    {
        let text = array_value_to_string(column, row)?;
        return Ok(SqlExpr::Value(Value::SingleQuotedString(text).into()));
    }
    writer.write_value(column, row, 0)?;
    let mut parser = Parser::new(&DuckDbDialect {}).try_with_sql(&writer.text)?;
    Ok(parser.parse_expr()?)
}

struct ParameterLiteral {
    text: String,
    elements: usize,
}

impl ParameterLiteral {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn add_quoted(&mut self, text: &str) {
        self.add("'");
        self.add(&text.replace('\'', "''"));
        self.add("'");
    }

    /// Writes `arrow_cast(VALUE, 'TYPE')`. The function `value` writes `VALUE`.
    fn add_cast(
        &mut self,
        data_type: &DataType,
        value: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.add("arrow_cast(");
        value(self)?;
        self.add(", ");
        self.add_quoted(&data_type.to_string());
        self.add(")");
        Ok(())
    }

    fn write_value(&mut self, column: &ArrayRef, row: usize, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return plan_err!(
                "a parameter value nests lists or structs more than {MAX_DEPTH} levels deep; pass a value with fewer levels"
            );
        }
        let data_type = column.data_type();
        if let DataType::Dictionary(_, values) = data_type {
            let value = cast(&column.slice(row, 1), values)?;
            return self.write_value(&value, 0, depth + 1);
        }
        if data_type.is_null() {
            self.add("NULL");
            return Ok(());
        }
        if column.is_null(row) {
            return self.add_cast(data_type, |this| {
                this.add("NULL");
                Ok(())
            });
        }
        self.write_valid_value(column, row, depth)
    }

    /// Writes a value that is not NULL, of a type other than a dictionary.
    fn write_valid_value(&mut self, column: &ArrayRef, row: usize, depth: usize) -> Result<()> {
        let data_type = column.data_type();
        let shown = |column: &ArrayRef| array_value_to_string(column, row);
        match data_type {
            DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64 => self.add(&shown(column)?),
            DataType::Int64 => {
                self.add(&format_int64(column.as_primitive::<Int64Type>().value(row)))
            }
            DataType::Float64 => {
                self.add(&format_float64(column.as_primitive::<Float64Type>().value(row)))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let text = shown(column)?;
                self.add_quoted(&text);
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                self.write_bytes(column, row)?
            }
            DataType::Float16
            | DataType::Float32
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => {
                let text = shown(column)?;
                self.add_cast(data_type, |this| {
                    this.add_quoted(&text);
                    Ok(())
                })?;
            }
            DataType::Date32 | DataType::Time32(_) => {
                let number = shown(&cast(column, &DataType::Int32)?)?;
                self.add_cast(data_type, |this| {
                    this.add_cast(&DataType::Int32, |this| {
                        this.add(&number);
                        Ok(())
                    })
                })?;
            }
            DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => {
                let number = cast(&column.slice(row, 1), &DataType::Int64)?;
                self.add_cast(data_type, |this| this.write_value(&number, 0, depth + 1))?;
            }
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_) => self.write_list(column, row, depth)?,
            DataType::Struct(_) => self.write_struct(column, row, depth)?,
            other => {
                return plan_err!(
                    "a parameter value cannot have the type {other}; pass a string, and cast it in the statement"
                );
            }
        }
        Ok(())
    }

    fn write_bytes(&mut self, column: &ArrayRef, row: usize) -> Result<()> {
        let value = cast(&column.slice(row, 1), &DataType::Binary)?;
        self.add("X'");
        for byte in value.as_binary::<i32>().value(0) {
            write!(self.text, "{byte:02x}").map_err(|e| plan_datafusion_err!("{e}"))?;
        }
        self.add("'");
        Ok(())
    }

    fn write_list(&mut self, column: &ArrayRef, row: usize, depth: usize) -> Result<()> {
        let values = list_values(column, row)?;
        self.elements = self.elements.saturating_add(values.len());
        if self.elements > MAX_ELEMENTS {
            return plan_err!(
                "a parameter value has more than {MAX_ELEMENTS} list elements; load them into a table, and join that table"
            );
        }
        self.add_cast(column.data_type(), |this| {
            this.add("make_array(");
            for i in 0..values.len() {
                this.add(if i > 0 { ", " } else { "" });
                this.write_value(&values, i, depth + 1)?;
            }
            this.add(")");
            Ok(())
        })
    }

    fn write_struct(&mut self, column: &ArrayRef, row: usize, depth: usize) -> Result<()> {
        let column = column.as_struct();
        self.add("named_struct(");
        for (i, (name, values)) in column.column_names().iter().zip(column.columns()).enumerate() {
            self.add(if i > 0 { ", " } else { "" });
            self.add_quoted(name);
            self.add(", ");
            self.write_value(values, row, depth + 1)?;
        }
        self.add(")");
        Ok(())
    }
}

/// The least Int64 becomes a string that is cast. As a number, it would fail: the parser reads the
/// digits without the sign, and 2^63 does not fit an Int64.
fn format_int64(value: i64) -> String {
    match value {
        i64::MIN => format!("arrow_cast('{value}', 'Int64')"),
        _ => value.to_string(),
    }
}

fn format_float64(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value:e}"),
        false => format!("arrow_cast('{value}', 'Float64')"),
    }
}

fn list_values(column: &ArrayRef, row: usize) -> Result<ArrayRef> {
    let (DataType::List(item)
    | DataType::LargeList(item)
    | DataType::FixedSizeList(item, _)
    | DataType::ListView(item)
    | DataType::LargeListView(item)) = column.data_type()
    else {
        return plan_err!(
            "internal error: {} is not a list type; please report it",
            column.data_type()
        );
    };
    let plain = DataType::LargeList(std::sync::Arc::clone(item));
    let lists = cast(&column.slice(row, 1), &plain)?;
    Ok(lists.as_list::<i64>().value(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
        Int8Array, Int64Array, LargeListArray, ListArray, NullArray, StringArray, StructArray,
        Time32SecondArray, TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::datatypes::{Field, Int32Type};

    use super::*;

    /// Runs `SELECT ?` with the value of each row as the parameter, and returns the results.
    async fn select_parameter(column: &ArrayRef) -> Vec<ArrayRef> {
        let ctx = crate::sql::session();
        let batch = RecordBatch::try_from_iter([("p", Arc::clone(column))]).unwrap();
        let mut found = Vec::new();
        for arguments in to_arguments(&batch).unwrap() {
            let mut statement = crate::sql::parse(&ctx, "SELECT ? AS p").unwrap().pop().unwrap();
            crate::sql::number_parameters(&mut statement);
            assert_eq!(crate::sql::count_parameters_of(&statement), Some(1));
            crate::sql::bind_parameters(&mut statement, &arguments);
            let frame = crate::sql::execute(&ctx, statement).await.unwrap();
            let rows = frame.collect().await.unwrap();
            found.push(Arc::clone(rows[0].column(0)));
        }
        found
    }

    #[tokio::test]
    async fn values_keep_their_types() {
        let times = TimestampMicrosecondArray::from(vec![Some(-1), Some(i64::MAX), None]);
        let lists = [Some(vec![Some(1), None]), Some(vec![]), None];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(-7), Some(i64::MAX), None])),
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            Arc::new(Float64Array::from(vec![1.5, -1e300, 5e-324, f64::NAN, f64::NEG_INFINITY])),
            Arc::new(Float32Array::from(vec![0.1])),
            Arc::new(StringArray::from(vec![Some("it's; -- ? $1 \\ \n é"), Some(""), None])),
            Arc::new(BinaryArray::from_vec(vec![b"\x00\xff'"])),
            Arc::new(Date32Array::from(vec![-5, 20_000])),
            Arc::new(Time32SecondArray::from(vec![3661])),
            Arc::new(times.clone()),
            Arc::new(times.with_timezone("Europe/Berlin")),
            Arc::new(Decimal128Array::from(vec![-12_345]).with_precision_and_scale(20, 3).unwrap()),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists.clone())),
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        ];
        for column in columns {
            for (row, found) in select_parameter(&column).await.iter().enumerate() {
                let expected = column.slice(row, 1);
                let found = cast(found, expected.data_type()).unwrap();
                assert_eq!(&found, &expected, "{}", column.data_type());
            }
        }
    }

    #[tokio::test]
    async fn structs_and_nulls_are_values() {
        let name = Arc::new(Field::new("a b", DataType::Int8, true));
        let values: ArrayRef = Arc::new(Int8Array::from(vec![3]));
        let column: ArrayRef = Arc::new(StructArray::from(vec![(name, values)]));
        let found = select_parameter(&column).await;
        assert_eq!(array_value_to_string(&found[0], 0).unwrap(), "{a b: 3}");
        let nulls: ArrayRef = Arc::new(NullArray::new(1));
        assert_eq!(select_parameter(&nulls).await[0].logical_null_count(), 1);
    }

    #[test]
    fn elements_of_lists_count_as_values() {
        let lists = [Some(vec![Some(1); 1000]), None];
        let column: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        let batch = RecordBatch::try_from_iter([("p", column)]).unwrap();
        assert!(estimate_bytes(&batch) > 1002 * size_of::<SqlExpr>());
    }

    #[test]
    fn long_lists_are_refused() {
        let long = [Some(vec![Some(1); MAX_ELEMENTS + 1])];
        let column: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(long));
        let error = to_literal(&column, 0).unwrap_err().to_string();
        assert!(error.contains("join that table"), "{error}");
    }
}
