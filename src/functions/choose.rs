//! Functions that choose between two values, replace NULL, and cast.

use std::str::FromStr;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, FieldRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serrate_core::internal::cast_exactly;
use serrate_core::internal::zones::may_change;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::float_range::drop_beyond_range;
use super::lists::NestedListType;
use super::mixed_times::refuse_numbers_as_times;
use super::operators::{BatchOperand, as_booleans};
use crate::array::RaggedArray;
use crate::error::{Error, Result};
use crate::kernels::elementwise::OperandType;
use crate::kernels::select;

pub(super) static WHERE: Def = Def {
    name: "ragged_where",
    arity: (3, 3),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the value of `a` where the mask is true, and the value of `b` elsewhere. (`CASE` chooses between whole rows.)",
        syntax: &["ragged_where(mask, a, b)"],
        args: &[
            ("mask", "a list of any depth of booleans, or one boolean per row"),
            (
                "a, b",
                "lists or scalars, combined with the mask as operands are: a list must have the same lengths on the levels that it shares. A scalar is cast to the type of the list next to it, into which it must fit; two lists are widened as in numpy",
            ),
        ],
        missing: "NULL in the mask counts as false, as in `CASE`. A list that is NULL in one of the three arguments is NULL.",
        duckdb: "`list_transform(list_zip(mask, a, b), lambda t: CASE WHEN t[1] THEN t[2] ELSE t[3] END)`.",
        example: example!("ragged_where"),
    },
    plan: |plan| {
        let mask = NestedListType::from_type(plan.data_type(0));
        for i in 0..3 {
            if plan.is_list_view(i) {
                plan.require_lists(i)?;
            }
        }
        if !matches!(mask.leaf(), DataType::Boolean | DataType::Null) {
            return Err(plan.refuse_call(format!(
                "argument 1 (mask) must be a list of booleans; its values are {}, so compare or cast them first",
                mask.leaf()
            )));
        }
        let (a, b) = (
            NestedListType::from_type(plan.data_type(1)),
            NestedListType::from_type(plan.data_type(2)),
        );
        let out = find_common_type(plan, &a, &b)?;
        find_deepest_field(plan, &[&mask, &a, &b], out)
    },
    call: |call| {
        let leaf = NestedListType::from_type(call.return_type()).leaf().clone();
        let mask = as_booleans(&call.read_ragged(0)?)?;
        let (a, b) = (cast_argument(call, 1, &leaf)?, cast_argument(call, 2, &leaf)?);
        call.to_lists(&select::where_(&mask, a.as_operand(), b.as_operand())?)
    },
    facts: FunctionFacts { instead_of: &["nullif"], ..FunctionFacts::OPERATES },
    ..Def::DEFAULTS
};

/// Returns the leaf type of the list if only one of `a` and `b` is a list, otherwise their common
/// type.
fn find_common_type(
    plan: &CallPlan<'_>,
    a: &NestedListType,
    b: &NestedListType,
) -> Result<DataType> {
    let (x, y) = (a.leaf(), b.leaf());
    if let Some((i, t)) = [(2, x), (3, y)].into_iter().find(|(_, t)| t.is_nested()) {
        return Err(plan.refuse_call(format!(
            "the values of argument {i} must be numbers, strings, booleans or times, but they have the type {t}; choose each field of structs apart, as in ragged_where(mask, ragged_unzip(x, 'a'), ragged_unzip(y, 'a'))"
        )));
    }
    match (a.depth() > 0, b.depth() > 0) {
        (true, false) if !x.is_null() => check_fits(plan, 2, y, x),
        (false, true) if !y.is_null() => check_fits(plan, 1, x, y),
        _ => select::common_type(OperandType::Leaves(x), OperandType::Leaves(y)).map_err(|_| {
            plan.refuse_call(format!(
                "the values of arguments 2 and 3 have the types {x} and {y}, which have no common type; cast one of the arguments"
            ))
        }),
    }
}

/// Checks that argument `i`, of type `value`, can be cast to `values`, the leaf type of the other
/// argument. Returns `values` or, if it is a dictionary, the type of the dictionary's values.
pub(super) fn check_fits(
    plan: &CallPlan<'_>,
    i: usize,
    value: &DataType,
    values: &DataType,
) -> Result<DataType> {
    let values = match values {
        DataType::Dictionary(_, values) => values.as_ref(),
        values => values,
    };
    if let DataType::Timestamp(_, Some(zone)) = value
        && matches!(values, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64)
        && may_change(zone)
    {
        return Err(plan.refuse_call(format!(
            "argument {} has the zone {zone}, but must fit the values of the other argument, which have the type {values} without a zone; cast it first, as in value::TIMESTAMP for its time in UTC, or give the values a zone, as in ragged_cast(x, 'Timestamp(Microsecond, Some(\"{zone}\"))')",
            i + 1
        )));
    }
    // A cast of a column of floats to integers would drop fractions, so it is refused. A literal is
    // checked by its value.
    let cut = value.is_floating() && values.is_integer() && plan.find_known_literal(i).is_none();
    let is_struct = matches!(values, DataType::Struct(_)) && !value.is_null();
    let loses_fields = is_struct && !fits_field(value, values);
    if cut || loses_fields || !can_cast_types(value, values) {
        return Err(plan.refuse_call(format!(
            "argument {} has the type {value}, but must fit the values of the other argument, which have the type {values}; cast it first",
            i + 1
        )));
    }
    refuse_numbers_as_times(plan, i, value, values)?;
    Ok(values.clone())
}

/// Whether a cast of structs or fields from one type to another keeps all values or fails. Arrow
/// would drop fractions, and cast fields of other names by their positions.
fn fits_field(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Struct(given), DataType::Struct(fields)) => {
            let fits = |field: &FieldRef| {
                let given = given.find(field.name());
                given.is_some_and(|(_, given)| fits_field(given.data_type(), field.data_type()))
            };
            given.len() == fields.len() && fields.iter().all(fits)
        }
        (DataType::Null, _) => true,
        (from, to) => {
            from == to
                || (from.is_integer() && to.is_numeric())
                || (from.is_floating() && to.is_floating())
                || (from.is_string() && to.is_string())
        }
    }
}

/// Returns a field with the levels of the deepest list in `sides` and leaves of the type `leaf`.
/// Returns an error if all `sides` are scalars.
fn find_deepest_field(
    plan: &CallPlan<'_>,
    sides: &[&NestedListType],
    leaf: DataType,
) -> Result<FieldRef> {
    let deep = sides.iter().rev().max_by_key(|l| l.depth());
    match deep {
        Some(deep) if deep.depth() > 0 => {
            let all = sides.iter().fold((*deep).clone(), |all, other| all.widen_by(other));
            Ok(make_nullable(all.make_plain_leaf(leaf)))
        }
        _ => Err(plan.refuse_call(
            "argument 1 is a scalar, as are all other arguments; one argument must be a list; for scalars use CASE WHEN",
        )),
    }
}

fn cast_argument(call: &BatchCall<'_>, i: usize, to: &DataType) -> Result<BatchOperand> {
    let what = || format!("{}: argument {}", call.name(), i + 1);
    Ok(match BatchOperand::from_argument(call, i)? {
        side if side.data_type() == to => side,
        BatchOperand::One(value) => BatchOperand::One(cast_exactly(&what(), &value, to)?),
        BatchOperand::Each(values) => {
            let leaves = cast_exactly(&what(), values.leaves(), to)?;
            BatchOperand::Each(values.with_leaves(leaves)?)
        }
    })
}

pub(super) fn cast_scalar(call: &BatchCall<'_>, i: usize, to: &DataType) -> Result<ArrayRef> {
    match cast_argument(call, i, to)? {
        BatchOperand::One(value) => Ok(value),
        BatchOperand::Each(values) => Ok(values.leaves().slice(0, values.leaves().len().min(1))),
    }
}

pub(super) static FILL_NULL: Def = Def {
    name: "ragged_fill_null",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the values with `value` in place of NULL. (`coalesce(x, ..)` replaces whole lists.) If no value is NULL, nothing is copied.",
        syntax: &["ragged_fill_null(x, value)"],
        args: &[
            ("x", "a list of any depth"),
            (
                "value",
                "a scalar that fits the type of the values, the same for all rows or a column; or a list, as for an operator",
            ),
        ],
        missing: "NULL lists stay NULL, because they have no values; where `value` is a NULL list, the result is NULL. NaN is not NULL.",
        duckdb: "`list_transform(x, lambda v: coalesce(v, value))`.",
        example: example!("ragged_fill_null"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let value = NestedListType::from_type(plan.data_type(1));
        if value.depth() > lists.depth() {
            return Err(plan.refuse_call(format!(
                "argument 2 (value) has {} levels of lists, but argument 1 has only {}; give a value with at most as many levels as argument 1",
                value.depth(),
                lists.depth()
            )));
        }
        let out = match lists.leaf() {
            DataType::Null => value.leaf().clone(),
            leaf => check_fits(plan, 1, value.leaf(), leaf)?,
        };
        Ok(make_nullable(lists.replace_leaf(out)))
    },
    call: |call| {
        let leaf = NestedListType::from_type(call.return_type()).leaf().clone();
        let x = select::cast(&call.read_ragged(0)?, &leaf)?;
        call.to_lists(&select::fill_null(&x, cast_argument(call, 1, &leaf)?.as_operand())?)
    },
    facts: FunctionFacts { instead_of: &["coalesce"], ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

macro_rules! casts {
    ($id:ident, $or_null:literal, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x, 'type')`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (2, 2),
            doc: Doc {
                section: FunctionSection::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(x, 'type')")],
                args: &[
                    ("x", "a list of any depth"),
                    ("type", "the type of the values, a literal: an SQL name (`'DOUBLE'`, `'REAL'`, `'BIGINT'`, `'DECIMAL(10, 2)'`, `'VARCHAR'`, `'DATE'`) or an Arrow name (`'Float32'`, `'UInt16'`)"),
                ],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| {
                let lists = plan.require_lists(0)?;
                let text = plan.find_literal_text(1, "the type", "'Float32'")?.unwrap_or_default();
                let to = parse_type(text).ok_or_else(|| {
                    plan.refuse_call(format!(
                        "argument 2 ({text:?}) is not a scalar type; write a type such as 'DOUBLE' or 'Float32'"
                    ))
                })?;
                if is_time_without_unit(lists.leaf(), text) {
                    return Err(plan.refuse_call(
                        "argument 1 has numbers, and it is not known whether they are seconds or another unit; write to_timestamp(x) for seconds, to_timestamp_micros(x) for microseconds, or a type with a unit such as 'Timestamp(Millisecond, None)'",
                    ));
                }
                if !can_cast_types(lists.leaf(), &to) {
                    return Err(plan.refuse_call(format!(
                        "argument 1 has values of type {}, which cannot be cast to {to}; choose another type",
                        lists.leaf()
                    )));
                }
                Ok(make_nullable(lists.make_plain_leaf(to)))
            },
            call: |call| {
                let to = NestedListType::from_type(call.return_type()).leaf().clone();
                let x = call.read_ragged(0)?;
                let x = match drop_beyond_range(x.leaves(), &to)? {
                    None => x,
                    Some(held) if $or_null => x.with_leaves(held)?,
                    Some(held) => return Err(refuse_lost_value(&x, &held, &to)),
                };
                let cast_values = if $or_null { select::cast_or_null } else { select::cast };
                let values = cast_values(&x, &to).map_err(|e| report_value(&x, &to, e))?;
                call.to_lists(&values)
            },
            facts: FunctionFacts {
                casts_to_named_type: true,
                instead_of: if $or_null { &[] } else { &["trunc"] },
                ..FunctionFacts::NONE
            },
            ..Def::DEFAULTS
        };
    };
}

casts!(
    CAST,
    false,
    "ragged_cast",
    "Casts the values of lists of any depth to another type. The lists keep their kind. Floats lose their fraction if the type is an integer.",
    "NULL values stay NULL. A value that the type cannot represent is an error that names it and its position (row, and positions from 0); `ragged_try_cast` returns NULL for it.",
    "`x::DOUBLE[][]`, for the depth that `x` has."
);
casts!(
    TRY_CAST,
    true,
    "ragged_try_cast",
    "Casts the values as `ragged_cast` does, but returns NULL for values that the type cannot represent.",
    "NULL values stay NULL.",
    "`TRY_CAST(x AS DOUBLE[][])`, for the depth that `x` has."
);

/// Replaces `error`, with which a cast of `x` to `to` failed, by an error that shows the first
/// value that `to` cannot represent, with its position and row. Returns `error` if there is no such
/// value.
fn report_value(x: &RaggedArray, to: &DataType, error: Error) -> Error {
    let Ok(tried) = cast(x.leaves(), to) else { return error };
    match find_lost_value(x, &tried) {
        Some(leaf) => refuse_value(x, leaf, to),
        None => error,
    }
}

/// Returns the error for the first value of `x` that is NULL in `tried`, the values that `to` can
/// represent.
fn refuse_lost_value(x: &RaggedArray, tried: &ArrayRef, to: &DataType) -> Error {
    refuse_value(x, find_lost_value(x, tried).unwrap_or(0), to)
}

/// Returns the position of the first leaf of `x` that is NULL in `tried` and not in `x`.
fn find_lost_value(x: &RaggedArray, tried: &ArrayRef) -> Option<usize> {
    (0..tried.len()).find(|i| tried.is_null(*i) && x.leaves().is_valid(*i))
}

fn refuse_value(x: &RaggedArray, leaf: usize, to: &DataType) -> Error {
    let value = match ArrayFormatter::try_new(x.leaves(), &FormatOptions::default()) {
        Ok(values) if x.leaf_type().is_string() => format!("{:?}", values.value(leaf).to_string()),
        Ok(values) => values.value(leaf).to_string(),
        Err(e) => return e.into(),
    };
    let mut place = String::new();
    let mut at = leaf;
    for axis in x.axes().iter().rev() {
        let list = axis.layout().list_of(at);
        place = format!("[{}]{place}", at.saturating_sub(axis.layout().range(list).start));
        at = list;
    }
    Error::invalid(format!(
        "{value} at {place} of row {at} is not a valid {to}; ragged_try_cast returns NULL for such values"
    ))
}

/// Whether numbers are cast to TIMESTAMP, which is refused because the unit of the numbers is not
/// known: `5::TIMESTAMP` reads seconds, but Arrow's cast reads microseconds.
fn is_time_without_unit(values: &DataType, to: &str) -> bool {
    values.is_numeric() && to.trim().eq_ignore_ascii_case("TIMESTAMP")
}

fn parse_type(text: &str) -> Option<DataType> {
    use arrow::datatypes::TimeUnit::Microsecond;
    let word = text.trim();
    Some(match word.to_ascii_uppercase().as_str() {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" | "INT1" => DataType::Int8,
        "SMALLINT" | "INT2" => DataType::Int16,
        "INTEGER" | "INT" | "INT4" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "UTINYINT" | "UINT8" => DataType::UInt8,
        "USMALLINT" | "UINT16" => DataType::UInt16,
        "UINTEGER" | "UINT32" => DataType::UInt32,
        "UBIGINT" | "UINT64" => DataType::UInt64,
        "REAL" | "FLOAT" | "FLOAT4" => DataType::Float32,
        "DOUBLE" | "FLOAT8" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" => DataType::Utf8,
        "DATE" => DataType::Date32,
        "TIMESTAMP" => DataType::Timestamp(Microsecond, None),
        upper if upper.starts_with("DECIMAL") || upper.starts_with("NUMERIC") => {
            return parse_decimal(word);
        }
        _ => {
            let mut first = word.chars();
            let capital: String =
                first.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(first).collect();
            let found = DataType::from_str(word).or_else(|_| DataType::from_str(&capital)).ok()?;
            return (!found.is_nested()).then_some(found);
        }
    })
}

/// Parses `DECIMAL(p, s)`, `DECIMAL(p)`, or Arrow's name of such a type. Returns `None` for other
/// text.
fn parse_decimal(text: &str) -> Option<DataType> {
    if let Ok(of_arrow) = DataType::from_str(text) {
        return Some(of_arrow);
    }
    let (_, digits) = text.split_once('(')?;
    let digits = digits.strip_suffix(')')?;
    let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
    let (precision, scale) =
        (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
    if scale < 0 || i16::from(scale) > i16::from(precision) {
        return None;
    }
    match precision {
        1..=DECIMAL128_MAX_PRECISION => Some(DataType::Decimal128(precision, scale)),
        _ if precision > 0 && precision <= DECIMAL256_MAX_PRECISION => {
            Some(DataType::Decimal256(precision, scale))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_name() {
        assert_eq!(parse_type("double"), Some(DataType::Float64));
        assert_eq!(parse_type(" uint16"), Some(DataType::UInt16));
        assert_eq!(parse_type("Float32"), Some(DataType::Float32));
        assert_eq!(parse_type("decimal(10, 2)"), Some(DataType::Decimal128(10, 2)));
        assert_eq!(parse_type("NUMERIC(50)"), Some(DataType::Decimal256(50, 0)));
        assert_eq!(parse_type("Decimal128(10, 2)"), Some(DataType::Decimal128(10, 2)));
        for wrong in ["DECIMAL", "DECIMAL(0, 0)", "DECIMAL(2, 3)", "DECIMAL(77)", "List(Int8)"] {
            assert_eq!(parse_type(wrong), None, "{wrong}");
        }
        assert_eq!(parse_type("what"), None);
    }
}
