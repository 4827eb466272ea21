//! Elements of lists that are lists or structs, for functions of DataFusion that search for an
//! element, remove it or replace it.
//!
//! DataFusion fails for structs and for lists of a fixed size. Among other lists it takes a NULL to
//! search for as the list that is hidden below it, often an empty one. Remove once the test
//! `stock_searches_for_null_still_find_empty_lists` in `tests/sql/over_lists.rs` fails.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, Int64Array, OffsetSizeTrait, PrimitiveArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::row::{Row, RowConverter, Rows, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use serrate_core::internal::to_canonical_floats;

use super::{are_scalars, count_call_rows, to_columnar};

/// A call with a number in place of each element, and of each value that is compared with elements.
/// Equal elements have equal numbers, and NULL stays NULL.
struct NumberedArguments {
    args: ScalarFunctionArgs,
    /// The elements of the lists in the first argument.
    elements: ArrayRef,
    /// The values of the following arguments that have numbers.
    values: Vec<ArrayRef>,
}

/// Returns the arguments of `array_position` or `array_positions` with numbers in place of lists or
/// structs. Returns `None` if the elements are neither.
pub(super) fn number_searched_elements(
    args: &ScalarFunctionArgs,
) -> Result<Option<ScalarFunctionArgs>> {
    Ok(number_elements(args, 1)?.map(|numbered| numbered.args))
}

/// Calls `array_remove`, `array_replace` or a variant of them if the elements are lists or structs.
/// Returns `None` for other functions and elements.
pub(super) fn change_nested_elements(
    function: &ScalarUDF,
    args: &ScalarFunctionArgs,
) -> Result<Option<ColumnarValue>> {
    let count = match function.name() {
        "array_remove" | "array_remove_all" | "array_remove_n" => 1,
        "array_replace" | "array_replace_all" | "array_replace_n" => 2,
        _ => return Ok(None),
    };
    let (DataType::List(field) | DataType::LargeList(field)) = args.return_type() else {
        return Ok(None);
    };
    let Some(mut numbered) = number_elements(args, count)? else { return Ok(None) };
    let Some(ColumnarValue::Array(lists)) = numbered.args.args.first().cloned() else {
        return Ok(None);
    };
    let promised = args.return_field.as_ref().clone().with_data_type(lists.data_type().clone());
    numbered.args.return_field = Arc::new(promised);
    let rows = numbered.args.number_rows;
    let found = function.invoke_with_args(numbered.args)?.into_array(rows)?;
    let mut sources = vec![cast(&numbered.elements, field.data_type())?];
    if let Some(replacements) = numbered.values.get(1) {
        sources.push(cast(replacements, field.data_type())?);
    }
    let changed = match found.data_type() {
        DataType::List(_) => restore_elements::<i32>(&lists, &found, &sources, field)?,
        _ => restore_elements::<i64>(&lists, &found, &sources, field)?,
    };
    Ok(Some(to_columnar(changed, are_scalars(&args.args))?))
}

/// Numbers the elements of the lists in the first argument, and the values of the next `count`
/// arguments. Returns `None` if the elements are neither lists nor structs, or cannot be compared.
fn number_elements(args: &ScalarFunctionArgs, count: usize) -> Result<Option<NumberedArguments>> {
    let Some(lists) = args.args.first() else { return Ok(None) };
    let (DataType::List(field) | DataType::LargeList(field)) = lists.data_type() else {
        return Ok(None);
    };
    let element = field.data_type().clone();
    let order = vec![SortField::new(element.clone())];
    if !element.is_nested()
        || matches!(element, DataType::Dictionary(..))
        || !RowConverter::supports_fields(&order)
    {
        return Ok(None);
    }
    let (_, rows) = count_call_rows(args);
    let lists = lists.to_array(rows)?;
    let is_large = matches!(lists.data_type(), DataType::LargeList(_));
    let elements = match is_large {
        true => take_elements::<i64>(&lists),
        false => take_elements::<i32>(&lists),
    };
    let mut values = Vec::with_capacity(count);
    for value in args.args.iter().skip(1).take(count) {
        let Ok(value) = cast(&value.to_array(rows)?, &element) else { return Ok(None) };
        values.push(value);
    }
    let all: Vec<ArrayRef> = std::iter::once(&elements).chain(&values).cloned().collect();
    let mut numbered = args.clone();
    numbered.number_rows = rows;
    let numbers = number_values(&all, &RowConverter::new(order)?)?;
    for (place, numbers) in numbers.into_iter().enumerate() {
        let numbers: ArrayRef = match (place, is_large) {
            (0, true) => Arc::new(replace_elements::<i64>(&lists, numbers)?),
            (0, false) => Arc::new(replace_elements::<i32>(&lists, numbers)?),
            _ => Arc::new(numbers),
        };
        if let Some(field) = numbered.arg_fields.get_mut(place) {
            *field = Arc::new(field.as_ref().clone().with_data_type(numbers.data_type().clone()));
        }
        if let Some(arg) = numbered.args.get_mut(place) {
            *arg = ColumnarValue::Array(numbers);
        }
    }
    Ok(Some(NumberedArguments { args: numbered, elements, values }))
}

/// Returns the number of each value: the same for values that are equal, also in different arrays.
fn number_values(arrays: &[ArrayRef], converter: &RowConverter) -> Result<Vec<Int64Array>> {
    let mut all: Vec<Rows> = Vec::with_capacity(arrays.len());
    for values in arrays {
        all.push(converter.convert_columns(&[to_canonical_floats(values)?])?);
    }
    let mut known: HashMap<Row<'_>, i64> = HashMap::new();
    let mut numbers = Vec::with_capacity(arrays.len());
    for (values, rows) in arrays.iter().zip(&all) {
        let each = (0..values.len()).map(|at| {
            let next = i64::try_from(known.len()).unwrap_or(i64::MAX);
            values.is_valid(at).then(|| *known.entry(rows.row(at)).or_insert(next))
        });
        numbers.push(each.collect::<Int64Array>());
    }
    Ok(numbers)
}

/// Returns the elements from the first list to the last one.
fn take_elements<O: OffsetSizeTrait>(lists: &ArrayRef) -> ArrayRef {
    let lists = lists.as_list::<O>();
    let offsets = lists.offsets();
    let start = offsets.first().map_or(0, |start| start.as_usize());
    let end = offsets.last().map_or(start, |end| end.as_usize());
    lists.values().slice(start, end.saturating_sub(start))
}

/// Returns lists of the same lengths with the given elements, which are those from the first list
/// to the last one.
fn replace_elements<O: OffsetSizeTrait>(
    lists: &ArrayRef,
    elements: Int64Array,
) -> Result<GenericListArray<O>> {
    let lists = lists.as_list::<O>();
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths(lists.offsets().lengths());
    Ok(GenericListArray::try_new(field, offsets, Arc::new(elements), lists.nulls().cloned())?)
}

/// Returns the lists `found`, which hold numbers, with elements in place of the numbers. They are
/// what a function returned for `lists`. `sources` has the elements of `lists` and, if the function
/// replaces elements, the replacement of each row.
fn restore_elements<O: OffsetSizeTrait>(
    lists: &ArrayRef,
    found: &ArrayRef,
    sources: &[ArrayRef],
    field: &FieldRef,
) -> Result<ArrayRef> {
    let (lists, found) = (lists.as_list::<O>(), found.as_list::<O>());
    let numbers: &PrimitiveArray<Int64Type> = lists.values().as_primitive();
    let found_numbers: &PrimitiveArray<Int64Type> = found.values().as_primitive();
    let number = |of: &PrimitiveArray<Int64Type>, at: usize| of.is_valid(at).then(|| of.value(at));
    let is_same = |from: usize, to: usize| number(numbers, from) == number(found_numbers, to);
    let mut takes: Vec<(usize, usize)> = Vec::with_capacity(found.values().len());
    let mut lengths = Vec::with_capacity(found.len());
    for row in 0..found.len() {
        let before = takes.len();
        let (from, to) = (find_range(lists, row), find_range(found, row));
        if found.is_null(row) {
            lengths.push(0);
            continue;
        }
        if sources.len() > 1 {
            let pairs = to.zip(from);
            takes.extend(pairs.map(|(to, from)| match is_same(from, to) {
                true => (0, from),
                false => (1, row),
            }));
        } else {
            // The function removes the first of several equal elements, so the last ones are left.
            let mut left = from.rev();
            let kept = to.rev().filter_map(|to| left.find(|from| is_same(*from, to)));
            takes.extend(kept.map(|from| (0, from)));
            if let Some(added) = takes.get_mut(before..) {
                added.reverse();
            }
        }
        lengths.push(takes.len().saturating_sub(before));
    }
    let sources: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
    let values = interleave(&sources, &takes)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = found.nulls().cloned();
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(field), offsets, values, nulls)?))
}

fn find_range<O: OffsetSizeTrait>(lists: &GenericListArray<O>, row: usize) -> Range<usize> {
    let offsets = lists.value_offsets();
    let at = |row: usize| offsets.get(row).map_or(0, |offset| offset.as_usize());
    at(row)..at(row.saturating_add(1))
}
