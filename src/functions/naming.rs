//! Names of computed columns: the expression as in the statement, such as `val > 5`.

use arrow::array::Array;
use arrow::datatypes::{DataType, IntervalUnit};
use arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use serrate_core::internal::is_span;
use serrate_core::internal::times::NANOSECONDS_PER_DAY;

use super::def::Def;

/// Number of bytes that most names do not exceed.
const NAME_BYTES: usize = 64;

/// Returns the column name of a call: `ragged_sum(val, 1)`, or `val > 5` for an operator.
pub(crate) fn name_call(def: &Def, args: &[Expr]) -> Result<String> {
    let mut name = String::with_capacity(NAME_BYTES);
    write_call(def, args, &mut name)?;
    Ok(name)
}

/// Appends the name of a call to `name`. Returns the precedence of the loosest operator outside
/// parentheses, by which the caller decides whether the name needs parentheses, or `None` if the
/// name has no such operator.
fn write_call(def: &Def, args: &[Expr], name: &mut String) -> Result<Option<u8>> {
    match (def.infix, args) {
        (Some(op), [left, right]) => {
            let own = find_precedence(op).unwrap_or(COMPARISON);
            let first = write_operand(left, own, false, name)?;
            name.push(' ');
            name.push_str(op);
            name.push(' ');
            let second = write_operand(right, own, true, name)?;
            Ok([find_precedence(op), first, second].into_iter().flatten().min())
        }
        _ => {
            // Omits the subquery that reads a look-up table: the planner adds this argument, so it
            // is not in the statement.
            let written = args.iter().filter(|e| !matches!(e, Expr::ScalarSubquery(_)));
            name.push_str(def.name);
            name.push('(');
            for (at, arg) in written.enumerate() {
                if at > 0 {
                    name.push_str(", ");
                }
                write_expression(arg, name)?;
            }
            name.push(')');
            Ok(None)
        }
    }
}

pub(super) fn name_operation(left: &Expr, op: &str, right: &Expr) -> Result<String> {
    let own = find_precedence(op).unwrap_or(COMPARISON);
    let mut name = String::new();
    write_operand(left, own, false, &mut name)?;
    name.push(' ');
    name.push_str(op);
    name.push(' ');
    write_operand(right, own, true, &mut name)?;
    Ok(name)
}

/// Returns the name of a chain of operators, each applied to the result of the operator before it.
pub(super) fn write_chain_name<'a>(
    first: &Expr,
    rest: impl Iterator<Item = (&'static Def, &'a Expr)>,
) -> Result<String> {
    let mut name = String::new();
    let mut first = Some(first);
    let mut loosest_so_far = None;
    for (def, operand) in rest {
        let op = def.infix.unwrap_or(def.name);
        let own = find_precedence(op).unwrap_or(COMPARISON);
        if let Some(first) = first.take() {
            loosest_so_far = write_operand(first, own, false, &mut name)?;
        } else if loosest_so_far.is_some_and(|binds| binds < own) {
            name.insert(0, '(');
            name.push(')');
            loosest_so_far = None;
        }
        name.push(' ');
        name.push_str(op);
        name.push(' ');
        let second = write_operand(operand, own, true, &mut name)?;
        loosest_so_far = [find_precedence(op), loosest_so_far, second].into_iter().flatten().min();
    }
    Ok(name)
}

/// Returns the text of an expression for error messages: columns without the names of their tables,
/// and literals as in SQL.
pub(super) fn show_expression(expr: &Expr) -> String {
    let shown = expr.clone().transform_up(|e| {
        let name = match e {
            Expr::Literal(value, _) => write_literal(&value),
            Expr::Column(column) => column.name,
            other => return Ok(Transformed::no(other)),
        };
        Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
    });
    shown.map_or_else(
        |_| expr.schema_name().to_string(),
        |shown| shown.data.schema_name().to_string(),
    )
}

/// Appends the name of an expression to `name`: that of [`Expr::schema_name`], except for a
/// literal. Names of columns and calls are appended without a string for each of them, because
/// planning asks for the names of all expressions dozens of times.
fn write_expression(expr: &Expr, name: &mut String) -> Result<()> {
    match expr {
        Expr::Literal(value, _) => name.push_str(&write_literal(value)),
        Expr::Column(Column { relation: None, name: column, .. }) => name.push_str(column),
        Expr::ScalarFunction(call) => match super::find_definition(&call.func) {
            Some(def) => {
                write_call(def, &call.args, name)?;
            }
            None => name.push_str(&expr.schema_name().to_string()),
        },
        other => name.push_str(&other.schema_name().to_string()),
    }
    Ok(())
}

/// Appends the name of the left or `right` operand of an operator of precedence `outer` to `name`,
/// in parentheses where they are needed: `(a + b) * c`, `a - (b - c)`. Decides this only by the
/// name of the operand, so the result is the same if a rule replaces the operand with a column of
/// this name. Returns the precedence of the loosest operator outside parentheses in the appended
/// text, or `None` if there is none.
fn write_operand(expr: &Expr, outer: u8, right: bool, name: &mut String) -> Result<Option<u8>> {
    let start = name.len();
    let own = match expr {
        // Coercion turns a literal 5 next to floats into 5.0; the name still shows 5.
        Expr::Literal(value, _) => {
            let text = write_literal(value);
            name.push_str(text.strip_suffix(".0").unwrap_or(&text));
            return Ok(None);
        }
        Expr::ScalarFunction(inner) => match super::find_definition(&inner.func) {
            Some(def) => write_call(def, &inner.args, name)?,
            None => write_other(expr, name)?,
        },
        other => write_other(other, name)?,
    };
    Ok(match own {
        Some(own) if own < outer || (right && own == outer) => {
            name.insert(start, '(');
            name.push(')');
            None
        }
        own => own,
    })
}

fn write_other(expr: &Expr, name: &mut String) -> Result<Option<u8>> {
    let start = name.len();
    write_expression(expr, name)?;
    Ok(find_loosest_operator(name.get(start..).unwrap_or_default()))
}

/// Returns the precedence of the loosest operator outside parentheses and quotes in a name, or
/// `None` for a name without such an operator.
pub(crate) fn find_loosest_operator(text: &str) -> Option<u8> {
    let (mut depth, mut quoted) = (0usize, false);
    let words = text.split(' ').filter(|word| {
        let outside = depth == 0 && !quoted;
        for c in word.chars() {
            match c {
                '\'' => quoted = !quoted,
                '(' | '[' if !quoted => depth += 1,
                ')' | ']' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        outside
    });
    words.filter_map(find_precedence).min()
}

pub(crate) const COMPARISON: u8 = 4;

/// Returns the precedence of an operator, or `None` for any other word. Greater numbers bind
/// tighter.
pub(crate) fn find_precedence(word: &str) -> Option<u8> {
    Some(match word {
        "OR" => 1,
        "AND" => 2,
        "NOT" => 3,
        "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "IS" | "IN" | "LIKE" | "ILIKE" | "~"
        | "BETWEEN" => COMPARISON,
        "|" | "&" | "^" | "BIT_XOR" | "<<" | ">>" | "||" => 5,
        "+" | "-" => 6,
        "*" | "/" | "%" => 7,
        _ => return None,
    })
}

/// Writes a literal as SQL. Long lists are truncated.
pub(crate) fn write_literal(value: &ScalarValue) -> String {
    const SHOWN: usize = 8;
    let list = |values: &dyn Array| {
        let mut parts: Vec<String> = (0..values.len().min(SHOWN))
            .map(|i| {
                ScalarValue::try_from_array(values, i).map_or("?".into(), |v| write_literal(&v))
            })
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
        // Times are not written with `Display`, which prints the stored integers.
        v if v.data_type().is_temporal() && !is_span(&v.data_type()) => {
            let shown = v.to_array().and_then(|a| Ok(array_value_to_string(&a, 0)?));
            // The word DATE distinguishes the name of a date from that of a midnight timestamp.
            let word = if matches!(v.data_type(), DataType::Date32 | DataType::Date64) {
                "DATE "
            } else {
                ""
            };
            shown.map_or_else(
                |_| v.to_string(),
                |text| format!("{word}'{}'", format_plain_time(&text)),
            )
        }
        // Intervals and durations are not written with `Display`, which prints their internal
        // fields.
        v if is_span(&v.data_type()) => match write_span(v) {
            Some(text) => format!("INTERVAL '{text}'"),
            None => v.to_string(),
        },
        v => v.to_string(),
    }
}

/// Writes an interval or a duration as in SQL: `1 month`, `2 days 6 hours`. Returns `None` if
/// `value` is NULL or cannot be cast to an interval.
fn write_span(value: &ScalarValue) -> Option<String> {
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let nanoseconds = match value {
        ScalarValue::DurationSecond(Some(n)) => Some(i128::from(*n) * 1_000_000_000),
        ScalarValue::DurationMillisecond(Some(n)) => Some(i128::from(*n) * 1_000_000),
        ScalarValue::DurationMicrosecond(Some(n)) => Some(i128::from(*n) * 1_000),
        ScalarValue::DurationNanosecond(Some(n)) => Some(i128::from(*n)),
        _ => None,
    };
    let (months, days, nanoseconds) = match nanoseconds {
        Some(length) => (0, length / NANOSECONDS_PER_DAY, length % NANOSECONDS_PER_DAY),
        None => match value.cast_to(&interval) {
            Ok(ScalarValue::IntervalMonthDayNano(Some(span))) => {
                (i128::from(span.months), i128::from(span.days), i128::from(span.nanoseconds))
            }
            _ => return None,
        },
    };
    let (years, months) = if months % 12 == 0 { (months / 12, 0) } else { (0, months) };
    let (hours, rest) = (nanoseconds / 3_600_000_000_000, nanoseconds % 3_600_000_000_000);
    let (minutes, rest) = (rest / 60_000_000_000, rest % 60_000_000_000);
    let units =
        [(years, "year"), (months, "month"), (days, "day"), (hours, "hour"), (minutes, "minute")];
    let parts = units.into_iter().filter(|(count, _)| *count != 0);
    let mut parts: Vec<String> = parts.map(|(count, unit)| write_count(count, "", unit)).collect();
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let fraction = format!(".{:09}", rest.abs() % 1_000_000_000);
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        let seconds = write_count(rest.abs() / 1_000_000_000, fraction, "second");
        parts.push(format!("{sign}{seconds}"));
    }
    Some(if parts.is_empty() { "0 days".to_owned() } else { parts.join(" ") })
}

fn write_count(count: i128, fraction: &str, unit: &str) -> String {
    let plural = if count.abs() == 1 && fraction.is_empty() { "" } else { "s" };
    format!("{count}{fraction} {unit}{plural}")
}

/// Writes a timestamp as in SQL: with a blank in place of `T`, and only the date if the time is
/// midnight.
fn format_plain_time(text: &str) -> String {
    match text.strip_suffix("T00:00:00") {
        Some(date) => date.to_owned(),
        None => text.replacen('T', " ", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::lit;

    #[test]
    fn parentheses_follow_from_the_name() {
        assert_eq!(find_loosest_operator("a.x + 2"), Some(6));
        assert_eq!(find_loosest_operator("f(a + 2) * 3"), Some(7));
        assert_eq!(find_loosest_operator("(a OR b) AND c = 'x OR y'"), Some(2));
        assert_eq!(find_loosest_operator("ragged_sum(x, -1)"), None);
        let sum = Expr::Column("x + 2".into());
        let operand = |expr: &Expr, outer, right| {
            let mut name = String::new();
            write_operand(expr, outer, right, &mut name).unwrap();
            name
        };
        assert_eq!(operand(&sum, 7, false), "(x + 2)");
        assert_eq!(operand(&sum, 6, false), "x + 2");
        assert_eq!(operand(&sum, 6, true), "(x + 2)");
        assert_eq!(operand(&lit(5.0f32), 7, true), "5");
    }

    #[test]
    fn literals_look_as_written() {
        let Expr::Literal(s, _) = lit("it's") else { panic!("a literal") };
        assert_eq!(write_literal(&s), "'it''s'");
        assert_eq!(write_literal(&ScalarValue::Float64(Some(5.0))), "5.0");
        assert_eq!(write_literal(&ScalarValue::Float64(Some(0.25))), "0.25");
        assert_eq!(write_literal(&ScalarValue::Int32(None)), "NULL");
        let midnight = ScalarValue::TimestampMicrosecond(Some(1_577_836_800_000_000), None);
        assert_eq!(write_literal(&midnight), "'2020-01-01'");
        let later = ScalarValue::TimestampSecond(Some(1_577_836_805), None);
        assert_eq!(write_literal(&later), "'2020-01-01 00:00:05'");
        assert_eq!(write_literal(&ScalarValue::Date32(Some(1))), "DATE '1970-01-02'");
        let inner: Vec<_> = (0..10).map(|i| ScalarValue::Int64(Some(i))).collect();
        let list = ScalarValue::List(ScalarValue::new_list_nullable(&inner, &DataType::Int64));
        assert_eq!(write_literal(&list), "[0, 1, 2, 3, 4, 5, 6, 7, ..]");
    }
}
