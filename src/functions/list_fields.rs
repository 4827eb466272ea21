//! List functions of DataFusion for lists whose element fields differ in name or are not nullable,
//! and for nested LargeLists.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::functions_nested::concat::array_concat_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use super::delegate;
use super::lists::NestedListType;

/// Functions of DataFusion that fail if the element fields of their arguments differ in name, or
/// whose results contain NULL although the elements of an argument are declared as never NULL.
const FUNCTIONS: [&str; 7] = [
    "array_add",
    "array_concat",
    "array_normalize",
    "array_repeat",
    "array_resize",
    "array_subtract",
    "map_entries",
];

/// Returns functions that name element fields `item`, as Arrow does, and return lists with nullable
/// elements. Parquet uses `element`, and DataFusion's functions use either, depending on the batch,
/// so that queries fail. Remove once `stock_element_fields_still_differ` and
/// `stock_lists_of_required_elements_still_fail` in `tests/sql/over_lists.rs` fail.
pub(crate) fn build_typed_lists() -> impl Iterator<Item = ScalarUDF> {
    datafusion::functions_nested::all_default_nested_functions()
        .into_iter()
        .filter(|f| FUNCTIONS.contains(&f.name()))
        .map(unify_lists)
}

/// Returns a function that calls `inner` with lists of nullable element fields named `item`.
pub(super) fn unify_lists(inner: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::new_from_impl(TypedLists { inner, is_operator: false })
}

pub(super) fn concat_lists(lists: Vec<Expr>) -> Expr {
    unify_lists(array_concat_udf()).call(lists)
}

/// Returns the call of `array_concat` that `first || second` stands for.
pub(super) fn plan_concatenation(first: Expr, second: Expr) -> Expr {
    let function = TypedLists { inner: array_concat_udf(), is_operator: true };
    ScalarUDF::new_from_impl(function).call(vec![first, second])
}

/// Whether `function` is the `array_concat` that the operator `||` stands for, and not one that a
/// statement names.
pub(crate) fn is_list_concatenation(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<TypedLists>().is_some_and(|lists| lists.is_operator)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TypedLists {
    inner: Arc<ScalarUDF>,
    /// Whether calls of this function were written with the operator `||`. Column names then show
    /// the operator.
    is_operator: bool,
}

impl ScalarUDFImpl for TypedLists {
    delegate!(inner: name, aliases, signature, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let types: Vec<DataType> = types.iter().map(rename_item_fields).collect();
        match self.find_widest_lists(&types) {
            Some(widest) => Ok(widest),
            None => self.inner.return_type(&types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let fields: Vec<FieldRef> = args.arg_fields.iter().map(rename_item_field).collect();
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let found =
            self.inner.return_field_from_args(ReturnFieldArgs { arg_fields: &fields, ..args })?;
        Ok(match self.find_widest_lists(&types) {
            Some(widest) => Arc::new(found.as_ref().clone().with_data_type(widest)),
            None => found,
        })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let types: Vec<DataType> = types.iter().map(rename_item_fields).collect();
        let coerced = self.coerce_lists(&types)?;
        Ok(match self.find_widest_lists(&coerced) {
            Some(widest) => vec![widest; coerced.len()],
            None => coerced,
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name() == "array_resize" {
            check_sizes(&args)?;
        }
        let to = args.return_field.data_type().clone();
        args.arg_fields = args.arg_fields.iter().map(rename_item_field).collect();
        for value in &mut args.args {
            let wanted = rename_item_fields(&value.data_type());
            if value.data_type() != wanted {
                *value = value.cast_to(&wanted, None)?;
            }
        }
        let found = self.inner.invoke_with_args(args)?;
        match found.data_type() == to {
            true => Ok(found),
            false => found.cast_to(&to, None),
        }
    }
}

impl TypedLists {
    /// Returns the types to which DataFusion casts lists of the given types.
    fn coerce_lists(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // Leaves out untyped NULL arguments: DataFusion finds no common type of NULL and a list.
        let lists: Vec<DataType> = types.iter().filter(|t| !t.is_null()).cloned().collect();
        if self.name() != "array_concat" || lists.is_empty() || lists.len() == types.len() {
            return self.inner.coerce_types(types);
        }
        let coerced = self.inner.coerce_types(&lists)?;
        let mut typed = coerced.iter();
        let all = types.iter().map(|t| match t.is_null() {
            true => coerced.first().cloned(),
            false => typed.next().cloned(),
        });
        all.collect::<Option<_>>().map_or_else(|| self.inner.coerce_types(types), Ok)
    }

    /// Returns the common type of nested lists that `array_concat` concatenates: a LargeList on
    /// each level on which one of them has a LargeList. Returns `None` for other functions, and for
    /// lists of different depths or types of values.
    ///
    /// DataFusion promises a List on all levels but the outermost, and then returns a LargeList.
    /// This workaround is obsolete once the test `stock_nested_large_lists_still_fail` fails.
    fn find_widest_lists(&self, types: &[DataType]) -> Option<DataType> {
        if self.name() != "array_concat" {
            return None;
        }
        let mut lists = types.iter().map(NestedListType::from_type);
        let first = lists.next()?;
        let widest = lists.try_fold(first, |widest, other| {
            let is_alike = widest.depth() == other.depth() && widest.leaf() == other.leaf();
            is_alike.then(|| widest.widen_by(&other))
        })?;
        (widest.depth() > 1).then(|| widest.open())
    }
}

/// Returns an error for a negative size in a call of `array_resize`, which DataFusion would report
/// as an internal error.
fn check_sizes(args: &ScalarFunctionArgs) -> Result<()> {
    let [lists, sizes, ..] = args.args.as_slice() else { return Ok(()) };
    if sizes.data_type() != DataType::Int64 {
        return Ok(());
    }
    let (lists, sizes) = (lists.to_array(args.number_rows)?, sizes.to_array(args.number_rows)?);
    let mut rows = sizes.as_primitive::<Int64Type>().iter().enumerate();
    let negative = rows.find(|(row, size)| size.is_some_and(|n| n < 0) && lists.is_valid(*row));
    match negative {
        Some((_, Some(size))) => exec_err!(
            "the second argument of array_resize, the size, must be at least 0, but found {size}"
        ),
        _ => Ok(()),
    }
}

fn rename_item_field(field: &FieldRef) -> FieldRef {
    let wanted = rename_item_fields(field.data_type());
    match *field.data_type() == wanted {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(wanted)),
    }
}

/// Returns a data type in which the element field of each list is nullable and named `item`, and
/// the entries of each map are `key` and `value` with nullable values.
fn rename_item_fields(data_type: &DataType) -> DataType {
    let item = |element: &FieldRef| {
        let data_type = rename_item_fields(element.data_type());
        let element = element.as_ref().clone().with_data_type(data_type).with_nullable(true);
        Arc::new(element.with_name(Field::LIST_FIELD_DEFAULT_NAME))
    };
    match data_type {
        DataType::List(element) => DataType::List(item(element)),
        DataType::LargeList(element) => DataType::LargeList(item(element)),
        DataType::FixedSizeList(element, n) => DataType::FixedSizeList(item(element), *n),
        DataType::Map(entries, sorted) => DataType::Map(rename_entries(entries), *sorted),
        other => other.clone(),
    }
}

fn rename_entries(entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let rename = |(field, name): (&FieldRef, &str)| {
        let field = field.as_ref().clone().with_name(name).with_nullable(name == "value");
        let data_type = rename_item_fields(field.data_type());
        field.with_data_type(data_type)
    };
    let fields = fields.iter().zip(["key", "value"]).map(rename).collect();
    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields)))
}

/// Returns a data type in which the elements of lists and the values of maps are nullable.
pub(crate) fn make_elements_nullable(data_type: &DataType) -> DataType {
    let nullable = |element: &FieldRef| {
        let data_type = make_elements_nullable(element.data_type());
        Arc::new(element.as_ref().clone().with_data_type(data_type).with_nullable(true))
    };
    match data_type {
        DataType::List(element) => DataType::List(nullable(element)),
        DataType::LargeList(element) => DataType::LargeList(nullable(element)),
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else { return data_type.clone() };
            let [key, value] = &fields[..] else { return data_type.clone() };
            let fields = [Arc::clone(key), nullable(value)].into_iter().collect();
            let entries = entries.as_ref().clone().with_data_type(DataType::Struct(fields));
            DataType::Map(Arc::new(entries), *sorted)
        }
        other => other.clone(),
    }
}
