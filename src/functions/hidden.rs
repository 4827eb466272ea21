//! Replaces functions of DataFusion that read the values stored below a NULL struct or list.
//!
//! Arrow allows values below a NULL: the fields of a NULL struct, the elements of a NULL list.
//! pyarrow writes them and `nullif` returns them. Remove once
//! `stock_fields_of_null_are_still_values` and `stock_lists_of_null_still_have_elements` in
//! `tests/sql/hidden_values.rs` fail.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, GenericListArray, ListArray,
    MapArray, OffsetSizeTrait, StructArray, UInt64Array, make_array, make_comparator,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, cast, filter, nullif, take};
use arrow::datatypes::{ArrowNativeType, DataType, Field, FieldRef};
use datafusion::common::exec_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::functions::core::get_field;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::{holds_float, to_canonical_floats};

use super::{call_on_arrays, declare, delegate, take_first, to_columnar};

/// Functions of DataFusion that read the elements of NULL lists, and the entries of NULL maps.
const OF_LISTS: [&str; 6] =
    ["array_append", "array_dims", "array_prepend", "array_repeat", "flatten", "map_extract"];

static FIELD: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(FieldFunction { stock: get_field() })));

static MASKED: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(MaskedFieldsFunction)));

/// Returns the function that replaces `get_field`. Its result is NULL if the struct is NULL.
fn build_field_of_struct() -> Arc<ScalarUDF> {
    Arc::clone(&FIELD)
}

/// Returns the replacement of `function`, or `None` if `function` reads no values in NULL structs
/// or lists.
pub(crate) fn remove_hidden_values(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    if function.inner().is::<GetFieldFunc>() {
        return Some(build_field_of_struct());
    }
    let is_of_lists = OF_LISTS.contains(&function.name()) && !function.inner().is::<OfVisible>();
    is_of_lists.then(|| {
        let inner = Arc::clone(function);
        Arc::new(ScalarUDF::new_from_impl(OfVisible { inner }))
    })
}

/// Returns DataFusion's `get_field` if `function` is its replacement, [`build_field_of_struct`],
/// otherwise `None`.
pub(crate) fn find_stock_field(function: &ScalarUDF) -> Option<Arc<ScalarUDF>> {
    function.inner().is::<FieldFunction>().then(get_field)
}

/// Wraps `e`, a struct, in a call of a function that makes all fields NULL in the rows in which the
/// struct is NULL.
pub(crate) fn mask_fields(e: Expr) -> Expr {
    MASKED.call(vec![e])
}

/// Returns the function that [`mask_fields`] calls, so that workers can decode plans that call it.
#[cfg(feature = "cluster")]
pub(crate) fn build_masked_fields() -> Arc<ScalarUDF> {
    Arc::clone(&MASKED)
}

/// Replaces values with NULL in the rows in which the struct or map that contains them is NULL.
/// `parents` has the NULLs of this struct or map, or is `None` if it has none.
fn hide_values(values: &ArrayRef, parents: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(parents) = parents.filter(|parents| parents.null_count() > 0) else {
        return Ok(Arc::clone(values));
    };
    Ok(nullif(values, &BooleanArray::new(!parents.inner(), None))?)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FieldFunction {
    stock: Arc<ScalarUDF>,
}

impl FieldFunction {
    fn call_stock(
        &self,
        of: ColumnarValue,
        name: &ColumnarValue,
        call: &ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let args = vec![of, name.clone()];
        self.stock.inner().invoke_with_args(ScalarFunctionArgs { args, ..call.clone() })
    }

    fn take_step(
        &self,
        of: &ArrayRef,
        name: &ColumnarValue,
        call: &ScalarFunctionArgs,
    ) -> Result<ArrayRef> {
        let stock = |of: &ArrayRef| {
            let found = self.call_stock(ColumnarValue::Array(Arc::clone(of)), name, call)?;
            found.into_array(of.len())
        };
        match of.data_type() {
            DataType::Dictionary(_, values) if matches!(**values, DataType::Struct(_)) => {
                let of = of.as_any_dictionary();
                let found = hide_values(&stock(of.values())?, of.values().nulls())?;
                Ok(of.with_values(found))
            }
            DataType::Map(entries, _) => {
                let (key, is_exact) = cast_key(entries, name)?;
                let maps = ColumnarValue::Array(canonicalize_keys(of)?);
                let found = self.call_stock(maps, &key, call)?.into_array(of.len())?;
                match is_exact {
                    true => hide_values(&found, of.nulls()),
                    false => Ok(new_null_array(found.data_type(), of.len())),
                }
            }
            _ => hide_values(&stock(of)?, of.nulls()),
        }
    }
}

/// Casts a key to the type of the keys of a map. Also returns whether the cast keeps the value; it
/// does not for the key 1.5 and a map with integer keys.
fn cast_key(entries: &FieldRef, key: &ColumnarValue) -> Result<(ColumnarValue, bool)> {
    let (DataType::Struct(fields), ColumnarValue::Scalar(given)) = (entries.data_type(), key)
    else {
        return Ok((key.clone(), true));
    };
    let Some(to) = fields.first().map(|field| field.data_type()) else {
        return Ok((key.clone(), true));
    };
    let given = ScalarValue::try_from_array(&to_canonical_floats(&given.to_array()?)?, 0)?;
    let cast = given.cast_to(to)?;
    let are_numbers = given.data_type().is_numeric() && to.is_numeric();
    let is_exact = !are_numbers || cast.cast_to(&given.data_type())? == given;
    Ok((ColumnarValue::Scalar(cast), is_exact))
}

/// Makes floats in the keys of maps canonical, because DataFusion's look-ups tell -0.0 and 0.0
/// apart.
fn canonicalize_keys(maps: &ArrayRef) -> Result<ArrayRef> {
    let Some(of) = maps.as_map_opt().filter(|of| holds_float(of.key_type())) else {
        return Ok(Arc::clone(maps));
    };
    let (fields, mut columns, nulls) = of.entries().clone().into_parts();
    if let Some(keys) = columns.first_mut() {
        *keys = to_canonical_floats(keys)?;
    }
    let entries = StructArray::try_new(fields, columns, nulls)?.into_data();
    Ok(make_array(of.to_data().into_builder().child_data(vec![entries]).build()?))
}

pub(super) fn change_values(
    values: &ColumnarValue,
    change: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match values {
        ColumnarValue::Array(values) => ColumnarValue::Array(change(values)?),
        ColumnarValue::Scalar(value) => {
            let changed = change(&value.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&changed, 0)?)
        }
    })
}

impl ScalarUDFImpl for FieldFunction {
    delegate!(stock: name, aliases, schema_name, signature, coerce_types, return_type, return_field_from_args, documentation);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of, path @ ..] = args.args.as_slice() else {
            return self.stock.inner().invoke_with_args(args);
        };
        let (rows, is_one) = (args.number_rows, matches!(of, ColumnarValue::Scalar(_)));
        let mut found = of.to_array(if is_one { 1 } else { rows })?;
        for name in path {
            if found.data_type().is_null() {
                return Ok(ColumnarValue::Scalar(ScalarValue::Null));
            }
            found = self.take_step(&found, name, &args)?;
        }
        to_columnar(found, is_one)
    }

    /// Simplifies like DataFusion's `get_field`, which joins `x['a']['b']` to one call.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let mut stock = args.clone();
        if let Some(of) = stock.first_mut() {
            *of = use_stock_fields(std::mem::take(of));
        }
        Ok(match self.stock.simplify(stock, info)? {
            ExprSimplifyResult::Original(_) => ExprSimplifyResult::Original(args),
            ExprSimplifyResult::Simplified(e) => ExprSimplifyResult::Simplified(use_own_fields(e)?),
        })
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.stock.placement(args)
    }
}

fn use_stock_fields(mut e: Expr) -> Expr {
    let mut at = &mut e;
    while let Expr::ScalarFunction(call) = at {
        let Some(stock) = find_stock_field(&call.func) else { break };
        call.func = stock;
        let Some(of) = call.args.first_mut() else { break };
        at = of;
    }
    e
}

fn use_own_fields(e: Expr) -> Result<Expr> {
    let done = e.transform_up(|e| match e {
        Expr::ScalarFunction(ScalarFunction { func, args })
            if func.inner().is::<GetFieldFunc>() =>
        {
            Ok(Transformed::yes(build_field_of_struct().call(args)))
        }
        e => Ok(Transformed::no(e)),
    })?;
    Ok(done.data)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MaskedFieldsFunction;

impl ScalarUDFImpl for MaskedFieldsFunction {
    declare!("masked_fields", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).map(make_fields_nullable)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = take_first(self.name(), args.arg_fields)?;
        Ok(match of.is_nullable() {
            true => {
                let masked = make_fields_nullable(of.data_type());
                Arc::new(of.as_ref().clone().with_data_type(masked))
            }
            false => Arc::clone(of),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[of]| {
            let Some(parents) = of.as_struct_opt() else { return Ok(of) };
            let (_, columns, nulls) = parents.clone().into_parts();
            let DataType::Struct(fields) = args.return_field.data_type() else {
                return exec_err!(
                    "internal error: masked_fields must return a struct, not {}; please report it",
                    args.return_field.data_type()
                );
            };
            let columns = columns.iter().map(|column| hide_values(column, nulls.as_ref()));
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            let fields = fields.clone();
            Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, of.len())?))
        })
    }
}

fn make_fields_nullable(of: &DataType) -> DataType {
    match of {
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| field.as_ref().clone().with_nullable(true));
            DataType::Struct(fields.collect())
        }
        other => other.clone(),
    }
}

/// A function of DataFusion that gets its arguments without the elements of NULL lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfVisible {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for OfVisible {
    delegate!(inner: name, aliases, schema_name, signature, coerce_types, return_type, return_field_from_args, documentation);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [maps, key] = args.args.as_mut_slice()
            && matches!(maps.data_type(), DataType::Map(..))
            && holds_float(&key.data_type())
        {
            *maps = change_values(maps, canonicalize_keys)?;
            *key = change_values(key, |keys| Ok(to_canonical_floats(keys)?))?;
        }
        if let [maps, key] = args.args.as_slice()
            && matches!(maps.data_type(), DataType::Map(..))
        {
            let maps = maps.to_array(args.number_rows)?;
            let keys = key.to_array(args.number_rows)?;
            return Ok(ColumnarValue::Array(extract_values(maps.as_map(), &keys)?));
        }
        for value in &mut args.args {
            if !matches!(value.data_type(), DataType::List(_) | DataType::LargeList(_)) {
                continue;
            }
            match value {
                ColumnarValue::Array(lists) => {
                    if let Some(visible) = find_visible(lists)? {
                        *lists = visible;
                    }
                }
                ColumnarValue::Scalar(list) => {
                    if let Some(visible) = find_visible(&list.to_array()?)? {
                        *list = ScalarValue::try_from_array(&visible, 0)?;
                    }
                }
            }
        }
        self.inner.inner().invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(args)
    }
}

/// Returns one list per map, with the value that the map has for the key in the same row. The list
/// is empty if the map lacks the key. DataFusion then returns the list `[NULL]`, as if the map had
/// the key with the value NULL (<https://github.com/apache/datafusion/issues/24981>).
fn extract_values(maps: &MapArray, keys: &ArrayRef) -> Result<ArrayRef> {
    let compare = make_comparator(maps.keys(), keys, SortOptions::default())?;
    let mut found = Vec::new();
    let mut lengths = Vec::with_capacity(maps.len());
    for row in 0..maps.len() {
        let entries = match maps.is_valid(row) {
            true => maps.value_offsets()[row].as_usize()..maps.value_offsets()[row + 1].as_usize(),
            false => 0..0,
        };
        let entry = entries.into_iter().find(|entry| compare(*entry, row).is_eq());
        lengths.push(usize::from(entry.is_some()));
        found.extend(entry.map(|entry| entry as u64));
    }
    let values = take(maps.values(), &UInt64Array::from(found), None)?;
    let item = Arc::new(Field::new_list_field(maps.value_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, values, maps.nulls().cloned())?))
}

/// Removes the elements of NULL lists at any depth. Returns `None` if no NULL list has elements.
fn find_visible(lists: &ArrayRef) -> Result<Option<ArrayRef>> {
    match lists.data_type() {
        DataType::List(_) => find_visible_lists(lists.as_list::<i32>()),
        DataType::LargeList(_) => find_visible_lists(lists.as_list::<i64>()),
        // Casts only the outer list, because DataFusion's cast of fixed-size lists inside of lists
        // keeps the elements of NULL lists.
        DataType::FixedSizeList(item, _) if lists.null_count() > 0 => {
            let lists = cast(lists, &DataType::List(Arc::clone(item)))?;
            Ok(Some(find_visible(&lists)?.unwrap_or(lists)))
        }
        _ => Ok(None),
    }
}

fn find_visible_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<Option<ArrayRef>> {
    let below = find_visible(lists.values())?;
    let has_hidden = lists.nulls().is_some_and(|nulls| {
        let hidden = |row: usize| nulls.is_null(row) && lists.value_length(row).as_usize() > 0;
        nulls.null_count() > 0 && (0..lists.len()).any(hidden)
    });
    if !has_hidden && below.is_none() {
        return Ok(None);
    }
    let values = below.unwrap_or_else(|| Arc::clone(lists.values()));
    let (offsets, values) = match has_hidden {
        true => drop_hidden(lists, &values)?,
        false => (lists.offsets().clone(), values),
    };
    let (DataType::List(item) | DataType::LargeList(item)) = lists.data_type() else {
        return exec_err!("internal error: {} is not a list; please report it", lists.data_type());
    };
    let item = item.as_ref().clone().with_data_type(values.data_type().clone());
    let lists = GenericListArray::try_new(Arc::new(item), offsets, values, lists.nulls().cloned())?;
    Ok(Some(Arc::new(lists)))
}

fn drop_hidden<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    values: &ArrayRef,
) -> Result<(OffsetBuffer<O>, ArrayRef)> {
    let length = |row: usize| lists.value_length(row).as_usize();
    let lengths = (0..lists.len()).map(|row| if lists.is_null(row) { 0 } else { length(row) });
    let first = lists.offsets().first().map_or(0, |first| first.as_usize());
    let mut kept = BooleanBufferBuilder::new(values.len());
    kept.append_n(first, false);
    for row in 0..lists.len() {
        kept.append_n(length(row), lists.is_valid(row));
    }
    kept.append_n(values.len().saturating_sub(kept.len()), false);
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok((offsets, filter(values, &BooleanArray::new(kept.finish(), None))?))
}
