//! Functions that return tensors of a fixed shape, masks, or padded lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use serrate_core::internal::cast_strictly;

use super::args::{BatchCall, CallPlan};
use super::choose::cast_scalar;
use super::def::{Def, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::NestedListType;
use super::mixed_times::refuse_numbers_as_times;
use crate::array::{RaggedArray, list_depth};
use crate::config::SerrateOptions;
use crate::dense::{DType, DenseOptions, DenseTensor, Fill, PaddingSide, tensor_field};
use crate::error::{Error, Result};
use crate::kernels::pad::{self, PadOptions};
use crate::kernels::text::is_text;
use crate::kernels::{RowArg, densify, mask};
use crate::memory::memory_limit;

const X: (&str, &str) = ("x", "a list of any depth of numbers, booleans, dates or times");
const SIZES: (&str, &str) =
    ("sizes", "one size per axis as literals: `[256, 64]`, or `'256, 64'`, or `256` for one axis");
const SIDE: (&str, &str) = (
    "side",
    "the side on which lists are padded or truncated: `'right'` (default) keeps the first elements, `'left'` the last",
);

pub(super) static DENSIFY: Def = Def {
    name: "densify",
    arity: (2, 4),
    doc: Doc {
        section: FunctionSection::Dense,
        description: "Converts each row to a tensor of one shape by padding or truncating lists to the sizes. The result is a flat `FixedSizeList` of non-null values, tagged as `arrow.fixed_shape_tensor`, which pyarrow and other readers recognize. `ragged_max_shape_agg` returns the sizes that hold every row whole. If the query computes sizes, use `ragged_pad`, which returns lists.",
        syntax: &["densify(x, sizes [, fill [, side]])"],
        args: &[
            X,
            SIZES,
            ("fill", "the fill value, one for all rows; 0 (`false`) by default or if NULL"),
            SIDE,
        ],
        missing: "NULL values and NULL lists become the fill value (`densify_mask` shows where elements are). Dates and times become their integers; strings and dictionaries are refused. A result larger than `serrate.max_dense_bytes` is refused before it is allocated.",
        duckdb: "`list_resize(x, 256, 0)` for one axis.",
        example: example!("densify"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let sizes = find_literal_sizes(plan)?;
        check_size_count(plan, &lists, &sizes)?;
        if is_text(lists.leaf()) {
            return Err(plan.refuse_call(format!(
                "argument 1 has strings ({}), which a tensor of numbers cannot hold; encode the strings first, as in densify(ragged_encode(x, 'DIR/metadata/codes.parquet'), ..), or use the column code_id of meds('DIR')",
                lists.leaf()
            )));
        }
        let dtype = DType::of_leaves(lists.leaf(), plan.name())?;
        if let Some(fill) =
            parse_fill(plan.find_known_literal(2)).map_err(|m| plan.refuse_call(m))?
        {
            fill.to_tensor(dtype).map_err(|_| {
                plan.refuse_call(format!(
                    "argument 3 (the fill value) is {fill}, which cannot be represented as {dtype}; give another value, or cast argument 1"
                ))
            })?;
        }
        plan_side(plan, 3)?;
        Ok(Arc::new(tensor_field("", dtype, &sizes)?))
    },
    call: |call| {
        let options = DenseOptions {
            fill: parse_fill(read_given_fill(call)?).map_err(Error::invalid)?,
            ..read_dense_options(call, 3)?
        };
        let x = call.read_ragged(0)?;
        let tensor =
            densify::densify(&x, Some(&read_given_sizes(call)?), &options).map_err(name_limit)?;
        to_rows(call, &tensor)
    },
    ..Def::DEFAULTS
};

pub(super) static MASK: Def = Def {
    name: "densify_mask",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Dense,
        description: "Returns which slots of `densify(x, sizes)` hold elements, as a tensor of booleans of that shape. With fewer sizes than axes, it is the mask of an outer axis: `densify_mask(code, [256])` has one slot per visit.",
        syntax: &["densify_mask(x, sizes [, side])"],
        args: &[("x", "a list of any depth and type"), SIZES, SIDE],
        missing: "An element that is NULL is an element: its slot is true, whereas `densify_valid` is false there.",
        duckdb: "`list_resize(list_transform(x, lambda v: true), 256, false)` for one axis.",
        example: example!("densify_mask"),
    },
    plan: plan_mask,
    call: |call| {
        let sizes = read_given_sizes(call)?;
        let axis = i64::try_from(sizes.len()).unwrap_or(i64::MAX);
        let tensor =
            mask::mask(&call.read_ragged(0)?, axis, Some(&sizes), &read_dense_options(call, 2)?);
        to_rows(call, &tensor.map_err(name_limit)?)
    },
    ..Def::DEFAULTS
};

pub(super) static VALID: Def = Def {
    name: "densify_valid",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Dense,
        description: "Returns which slots of `densify(x, sizes)` hold values that are not NULL, as a tensor of booleans of that shape.",
        syntax: &["densify_valid(x, sizes [, side])"],
        args: &[("x", "a list of any depth and type"), SIZES, SIDE],
        missing: "NULL values and padding are false; NaN is a value. `densify_mask` is true for every element, NULL or not.",
        duckdb: "`list_resize(list_transform(x, lambda v: v IS NOT NULL), 256, false)` for one axis.",
        example: example!("densify_valid"),
    },
    plan: |plan| {
        let (lists, sizes) = (plan.require_lists(0)?, find_literal_sizes(plan)?);
        check_size_count(plan, &lists, &sizes)?;
        plan_mask(plan)
    },
    call: |call| {
        let sizes = read_given_sizes(call)?;
        let tensor =
            mask::validity_mask(&call.read_ragged(0)?, Some(&sizes), &read_dense_options(call, 2)?);
        to_rows(call, &tensor.map_err(name_limit)?)
    },
    ..Def::DEFAULTS
};

fn plan_mask(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let (lists, sizes) = (plan.require_lists(0)?, find_literal_sizes(plan)?);
    if sizes.len() > lists.depth() {
        return Err(plan.refuse_call(format!(
            "argument 2 (the sizes) has {} size(s), but the lists of argument 1 have the depth {}; give at most one size per axis of lists",
            sizes.len(),
            lists.depth()
        )));
    }
    plan_side(plan, 2)?;
    Ok(Arc::new(tensor_field("", DType::Bool, &sizes)?))
}

/// Returns an error unless there is one size per axis of lists.
fn check_size_count(plan: &CallPlan<'_>, lists: &NestedListType, sizes: &[usize]) -> Result<()> {
    if sizes.len() == lists.depth() {
        return Ok(());
    }
    Err(plan.refuse_call(format!(
        "argument 2 (the sizes) has {} size(s), but the lists of argument 1 have the depth {}; give one size per axis of lists",
        sizes.len(),
        lists.depth()
    )))
}

/// Returns the tensor sizes, the second argument of the call. It must be a literal, because the
/// sizes determine the type of the result.
fn find_literal_sizes(plan: &CallPlan<'_>) -> Result<Vec<usize>> {
    let Some(value) = plan.find_known_literal(1) else {
        return Err(plan.refuse_call(
            "argument 2 (the sizes) must be literals such as [256, 64] or '256, 64', because they determine the type of the result; columns, parameters ($1) and computed values are not known when the query is planned. ragged_pad accepts computed sizes and returns lists"
        ));
    };
    read_sizes(value).map_err(|m| plan.refuse_call(m))
}

fn read_given_sizes(call: &BatchCall<'_>) -> Result<Vec<usize>> {
    match call.find_constant(1) {
        Some(value) => read_sizes(value).map_err(Error::invalid),
        None => Err(Error::invalid(format!(
            "{}: argument 2 (the sizes) must be the same for all rows; give literals such as [256, 64]",
            call.name()
        ))),
    }
}

fn read_sizes(value: &ScalarValue) -> std::result::Result<Vec<usize>, String> {
    let wrong = || {
        format!(
            "argument 2 (the sizes) must be one integer of 0 or more per axis, such as [256, 64]; it is {value}"
        )
    };
    let list = match value {
        ScalarValue::List(l) => l.value(0),
        ScalarValue::LargeList(l) => l.value(0),
        ScalarValue::FixedSizeList(l) => l.value(0),
        _ => match value.try_as_str() {
            Some(Some(text)) => {
                let text = text.trim().trim_start_matches('[').trim_end_matches(']');
                let sizes = text.split(',').map(|s| s.trim().parse().map_err(|_| wrong()));
                return sizes.collect();
            }
            Some(None) => return Err(wrong()),
            None => value.to_array_of_size(1).map_err(|_| wrong())?,
        },
    };
    if !list.data_type().is_integer() || list.is_empty() || list.null_count() > 0 {
        return Err(wrong());
    }
    let list = arrow::compute::cast(&list, &DataType::Int64).map_err(|_| wrong())?;
    let sizes = list.as_primitive::<Int64Type>().iter();
    sizes.map(|n| n.and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)).collect()
}

fn parse_fill(value: Option<&ScalarValue>) -> std::result::Result<Option<Fill>, String> {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Ok(None) };
    Ok(Some(match value {
        ScalarValue::Boolean(Some(b)) => Fill::Bool(*b),
        ScalarValue::UInt64(Some(n)) => Fill::UInt(*n),
        v if v.data_type().is_integer() => match v.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(n))) => Fill::Int(n),
            _ => {
                return Err(format!(
                    "argument 3 (the fill value) is {v}, which is out of range; give a value that fits a 64-bit integer"
                ));
            }
        },
        v => match v.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(x))) if v.data_type().is_numeric() => Fill::Float(x),
            _ => {
                return Err(format!(
                    "argument 3 (the fill value) must be a number or a boolean, such as 0; it is {v}"
                ));
            }
        },
    }))
}

/// Returns the fill value, the third argument of the call, or `None` if it is not given. It may be
/// computed, but a value that differs between rows is an error.
fn read_given_fill<'a>(call: &BatchCall<'a>) -> Result<Option<&'a ScalarValue>> {
    match call.find_constant(2) {
        None if call.len() > 2 => Err(Error::invalid(format!(
            "{}: argument 3 (the fill value) must be the same for all rows, such as 0; it is a column",
            call.name()
        ))),
        fill => Ok(fill),
    }
}

fn plan_side(plan: &CallPlan<'_>, i: usize) -> Result<()> {
    parse_side(plan.find_literal_text(i, "the side", "'left'")?).map(|_| ())
}

fn parse_side(text: Option<&str>) -> Result<PaddingSide> {
    text.map_or(Ok(PaddingSide::default()), str::parse)
}

/// Returns the options for building a tensor; argument `i` names the side on which lists are
/// padded. One thread builds the tensor, because partitions already run in parallel.
fn read_dense_options(call: &BatchCall<'_>, i: usize) -> Result<DenseOptions> {
    Ok(DenseOptions {
        side: parse_side(call.read_text(i))?,
        limit: Some(find_limit(call)),
        parallel: false,
        ..DenseOptions::default()
    })
}

/// Returns the maximum size of a tensor in bytes: the lower of `serrate.max_dense_bytes` and the
/// memory limit.
fn find_limit(call: &BatchCall<'_>) -> u64 {
    SerrateOptions::of(call.config()).max_dense_bytes.min(memory_limit() as u64)
}

fn name_limit(e: Error) -> Error {
    match e {
        Error::TooLarge { what, bytes, limit, hint } => {
            let setting = match limit == memory_limit() as u128 {
                true => "memory_limit",
                false => "max_dense_bytes",
            };
            let raise = format!("raise the limit (SET serrate.{setting} = '8GiB')");
            Error::TooLarge { what, bytes, limit, hint: hint.replace("raise the limit", &raise) }
        }
        other => other,
    }
}

fn to_rows(call: &BatchCall<'_>, tensor: &DenseTensor) -> Result<ArrayRef> {
    let array = tensor.to_arrow()?;
    debug_assert_eq!(array.data_type(), call.return_type());
    Ok(array)
}

pub(super) static PAD: Def = Def {
    name: "ragged_pad",
    arity: (2, 4),
    doc: Doc {
        section: FunctionSection::Dense,
        description: "Pads or truncates each list to a size; the result is a list. Sizes may be computed: a column, with sizes that differ between rows, or a query such as `(SELECT ragged_max_shape_agg(x) FROM t)`.",
        syntax: &["ragged_pad(x, sizes [, fill [, side]])"],
        args: &[
            ("x", "a list of any depth and type"),
            (
                "sizes",
                "a list with one size per axis, NULL for an axis to leave as it is; a single integer for lists of one level",
            ),
            ("fill", "the fill value, one for all rows; NULL by default"),
            SIDE,
        ],
        missing: "NULL rows and NULL lists stay NULL, and empty lists are filled. A row whose sizes are NULL is unchanged. A negative size is an error.",
        duckdb: "`list_resize(x, n, fill)`.",
        example: example!("ragged_pad"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let sizes = plan.data_type(1);
        match NestedListType::from_type(sizes) {
            l if l.depth() == 1 && (l.leaf().is_integer() || l.leaf().is_null()) => {}
            l if l.depth() == 0 && (sizes.is_integer() || sizes.is_null()) => {
                if lists.depth() > 1 {
                    return Err(plan.refuse_call(format!(
                        "argument 2 (the sizes) must be a list of {} size(s), one per axis, with NULL for an axis to leave as it is, such as [256, NULL]; it is a single number",
                        lists.depth()
                    )));
                }
            }
            _ => {
                return Err(plan.refuse_call(format!(
                    "argument 2 (the sizes) must be a list of integers, one per axis; it is {sizes}"
                )));
            }
        }
        if let Some(value) = plan.find_known_literal(2).filter(|v| !v.is_null()) {
            value.cast_to(lists.leaf()).map_err(|_| {
                plan.refuse_call(format!(
                    "argument 3 (the fill value) must be a value of the type {}; it is {value}",
                    lists.leaf()
                ))
            })?;
        }
        if plan.len() > 2 {
            refuse_numbers_as_times(plan, 2, plan.data_type(2), lists.leaf())?;
        }
        plan_side(plan, 3)?;
        let metadata = plan.field(0).metadata().clone();
        Ok(Arc::new(make_nullable(lists.open()).as_ref().clone().with_metadata(metadata)))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let fill = read_given_fill(call)?.filter(|v| !v.is_null());
        let options = PadOptions {
            side: parse_side(call.read_text(3))?,
            fill: fill.map(|_| cast_scalar(call, 2, x.leaf_type())).transpose()?,
            truncate: true,
            limit: Some(find_limit(call)),
        };
        call.to_lists(
            &pad::pad(&x, &read_row_sizes(call, x.axes().len())?, &options).map_err(name_limit)?,
        )
    },
    ..Def::DEFAULTS
};

/// Returns, for each of the `axes` list axes, the size to which `ragged_pad` pads its lists, from
/// the second argument: one size for all rows, or one per row.
fn read_row_sizes(call: &BatchCall<'_>, axes: usize) -> Result<Vec<RowArg>> {
    let constant = call.find_constant(1).is_some();
    let sizes = match call.find_constant(1) {
        Some(value) => value.to_array_of_size(1)?,
        None => call.read_array(1)?,
    };
    if list_depth(sizes.data_type()) == 0 {
        return match sizes.data_type().is_null() {
            true => Ok(vec![RowArg::NONE; axes]),
            false => Ok(vec![call.read_row_arg(1)?]),
        };
    }
    let sizes = RaggedArray::try_from_arrow(&sizes)?;
    let level = sizes.axis(1)?;
    let valid = |row: usize| level.nulls().is_none_or(|n| n.is_valid(row));
    let wrong = |row: usize| valid(row) && level.layout().length(row) != axes;
    if let Some(row) = (0..sizes.len()).find(|r| wrong(*r)) {
        return Err(Error::invalid(format!(
            "{}: argument 2 has {} size(s) in row {row}, but the lists of argument 1 have the depth {axes}; give one size per axis, NULL for an axis to leave as it is",
            call.name(),
            level.layout().length(row)
        )));
    }
    let numbers = cast_strictly(sizes.leaves(), &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let of = |row: usize, axis: usize| {
        let at = level.layout().range(row).start + axis;
        (valid(row) && numbers.is_valid(at)).then(|| numbers.value(at))
    };
    Ok((0..axes)
        .map(|axis| match constant {
            true => RowArg::All(of(0, axis)),
            false => RowArg::Each((0..sizes.len()).map(|row| of(row, axis)).collect()),
        })
        .collect())
}
