//! Names of computed columns: as the expression was written.

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Operator};

use super::def::{Def, RaggedUdf};

/// Column name of a call: `ragged_sum(val, 1)`, or `val > 5` for an operator.
pub(crate) fn call(def: &Def, args: &[Expr]) -> Result<String> {
    match (def.infix, args) {
        (Some(op), [left, right]) => {
            let own = precedence(op);
            Ok(format!("{} {op} {}", operand(left, own, false)?, operand(right, own, true)?))
        }
        _ => {
            let args: Result<Vec<String>> = args.iter().map(expression).collect();
            Ok(format!("{}({})", def.name, args?.join(", ")))
        }
    }
}

fn expression(expr: &Expr) -> Result<String> {
    Ok(match expr {
        Expr::Literal(value, _) => literal(value),
        other => other.schema_name().to_string(),
    })
}

/// An operand, in parentheses where the operator around it binds tighter.
fn operand(expr: &Expr, outer: u8, right: bool) -> Result<String> {
    let own = match expr {
        Expr::ScalarFunction(f) => RaggedUdf::def_of(&f.func).and_then(|d| d.infix).map(precedence),
        Expr::BinaryExpr(b) => Some(match b.op {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Plus | Operator::Minus => 4,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 5,
            _ => 3,
        }),
        _ => None,
    };
    let text = expression(expr)?;
    Ok(match own {
        Some(own) if own < outer || (right && own == outer) => format!("({text})"),
        _ => text,
    })
}

fn precedence(op: &str) -> u8 {
    match op {
        "OR" => 1,
        "AND" => 2,
        "+" | "-" => 4,
        "*" | "/" | "%" => 5,
        _ => 3,
    }
}

/// A literal as SQL writes it; long lists are cut.
fn literal(value: &ScalarValue) -> String {
    const SHOWN: usize = 8;
    let list = |values: &dyn Array| {
        let mut parts: Vec<String> = (0..values.len().min(SHOWN))
            .map(|i| ScalarValue::try_from_array(values, i).map_or("?".into(), |v| literal(&v)))
            .collect();
        if values.len() > SHOWN {
            parts.push("..".into());
        }
        format!("[{}]", parts.join(", "))
    };
    match value {
        v if v.is_null() => "NULL".into(),
        ScalarValue::Utf8(Some(s))
        | ScalarValue::LargeUtf8(Some(s))
        | ScalarValue::Utf8View(Some(s)) => format!("'{}'", s.replace('\'', "''")),
        ScalarValue::List(a) => list(&a.value(0)),
        ScalarValue::LargeList(a) => list(&a.value(0)),
        ScalarValue::FixedSizeList(a) => list(&a.value(0)),
        v if matches!(v.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64) => {
            let text = v.to_string();
            let plain = text.chars().all(|c| c.is_ascii_digit() || c == '-');
            if plain { format!("{text}.0") } else { text }
        }
        v => v.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::lit;

    #[test]
    fn literals_look_as_written() {
        let Expr::Literal(s, _) = lit("it's") else { panic!("a literal") };
        assert_eq!(literal(&s), "'it''s'");
        assert_eq!(literal(&ScalarValue::Float64(Some(5.0))), "5.0");
        assert_eq!(literal(&ScalarValue::Float64(Some(0.25))), "0.25");
        assert_eq!(literal(&ScalarValue::Int32(None)), "NULL");
        let inner: Vec<_> = (0..10).map(|i| ScalarValue::Int64(Some(i))).collect();
        let list = ScalarValue::List(ScalarValue::new_list_nullable(&inner, &DataType::Int64));
        assert_eq!(literal(&list), "[0, 1, 2, 3, 4, 5, 6, 7, ..]");
    }
}
