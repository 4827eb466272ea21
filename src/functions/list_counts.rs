//! Variants of DataFusion's functions for lengths of lists and positions in lists that return
//! signed integers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::functions_nested::cardinality::cardinality_udf;
use datafusion::functions_nested::dimension::{array_dims_udf, array_ndims_udf};
use datafusion::functions_nested::length::array_length_udf;
use datafusion::functions_nested::position::{array_position_udf, array_positions_udf};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use super::nested_elements::number_searched_elements;
use super::{are_scalars, delegate, to_columnar};

/// Returns variants of DataFusion's functions for lengths of lists and positions in lists. The
/// variants return Int64. DataFusion's results are unsigned: their difference is a decimal, and
/// list functions refuse them. Remove once `stock_positions_are_still_unsigned` in
/// `tests/sql/numbers.rs` fails.
pub(crate) fn build_signed_counts() -> [ScalarUDF; 6] {
    let lengths = [array_length_udf(), array_dims_udf(), array_ndims_udf(), cardinality_udf()];
    let [length, dims, levels, elements] = lengths;
    [length, dims, levels, elements, array_position_udf(), array_positions_udf()]
        .map(|inner| ScalarUDF::new_from_impl(SignedCountFunction { inner }))
}

pub(super) fn call_array_length(list: Expr) -> Expr {
    ScalarUDF::new_from_impl(SignedCountFunction { inner: array_length_udf() }).call(vec![list])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SignedCountFunction {
    inner: Arc<ScalarUDF>,
}

fn find_signed_type(t: &DataType) -> DataType {
    match t {
        DataType::UInt64 => DataType::Int64,
        DataType::List(item) => {
            let item = item.as_ref().clone();
            let of = find_signed_type(item.data_type());
            DataType::List(Arc::new(item.with_data_type(of)))
        }
        other => other.clone(),
    }
}

impl ScalarUDFImpl for SignedCountFunction {
    delegate!(inner: name, aliases, signature, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(find_signed_type(&self.inner.return_type(types)?))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name() == "array_length" && args.args.len() == 2 {
            return Ok(ColumnarValue::Array(measure_dimensions(&args)?));
        }
        // If there are no rows, DataFusion's `array_positions` returns one row. This workaround is
        // obsolete once the test `stock_positions_in_no_lists_are_still_a_row` fails.
        if args.number_rows == 0 && !are_scalars(&args.args) {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_type())));
        }
        if matches!(self.name(), "array_position" | "array_positions")
            && let Some(numbered) = number_searched_elements(&args)?
        {
            let rows = numbered.number_rows;
            let found = self.invoke_with_args(numbered)?.into_array(rows)?;
            return to_columnar(found, are_scalars(&args.args));
        }
        // DataFusion's function requires its own, unsigned result type in `return_field`, so its
        // results are cast afterwards.
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let promised = self.inner.return_type(&types)?;
        args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(promised));
        Ok(match self.inner.invoke_with_args(args)? {
            ColumnarValue::Array(found) => {
                ColumnarValue::Array(cast(&found, &find_signed_type(found.data_type()))?)
            }
            ColumnarValue::Scalar(found) => {
                let found = found.to_array()?;
                let found = cast(&found, &find_signed_type(found.data_type()))?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            }
        })
    }
}

/// Returns the length of each list in a dimension. Dimension 1 is the list itself, dimension 2 its
/// first element, and so on. The length is NULL if the list has no such dimension.
///
/// DataFusion's function also reads the first element of empty and NULL lists, and panics. This
/// workaround is obsolete once the test
/// `stock_lengths_of_dimensions_still_panic` in `tests/sql/numbers.rs` fails.
fn measure_dimensions(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    let [lists, dimensions] = arrays.as_slice() else {
        return exec_err!(
            "internal error: array_length must have 2 arguments here, but has {}; please report it",
            arrays.len()
        );
    };
    let dimensions = cast(dimensions, &DataType::Int64)?;
    let dimensions = dimensions.as_primitive::<Int64Type>();
    let lengths = (0..lists.len()).map(|row| {
        let dimension = dimensions.is_valid(row).then(|| dimensions.value(row))?;
        let mut list = take_list(lists, row)?;
        for _ in 1..dimension {
            list = take_list(&list, 0)?;
        }
        (dimension > 0).then(|| i64::try_from(list.len()).ok())?
    });
    Ok(Arc::new(lengths.collect::<Int64Array>()))
}

/// Returns the list at index `at` of an array of lists; `None` for a NULL list or an index past the
/// end.
fn take_list(lists: &ArrayRef, at: usize) -> Option<ArrayRef> {
    if at >= lists.len() || lists.is_null(at) {
        return None;
    }
    match lists.data_type() {
        DataType::List(_) => Some(lists.as_list::<i32>().value(at)),
        DataType::LargeList(_) => Some(lists.as_list::<i64>().value(at)),
        DataType::FixedSizeList(..) => Some(lists.as_fixed_size_list().value(at)),
        _ => None,
    }
}
