//! The functions `ceil`, `floor`, `round` and `trunc` for wide decimals and large floats.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, PrimitiveArray, PrimitiveBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int64Type};
use datafusion::error::Result;
use datafusion::functions::math;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::{count_call_rows, delegate, to_columnar};

/// Returns `ceil` and `floor`, whose results for decimals have one digit more than the argument.
///
/// DataFusion 55 fails for 999.99 as DECIMAL(5, 2), because it computes 1000 in the same type. This
/// workaround is obsolete once the test `stock_ceilings_of_decimals_still_fail` fails.
pub(super) fn build_wide_ceilings() -> [ScalarUDF; 2] {
    [math::ceil(), math::floor()].map(|stock| ScalarUDF::new_from_impl(WideRoundFunction { stock }))
}

/// Returns `round` and `trunc`, whose results for finite floats are finite, whatever the number of
/// places.
///
/// DataFusion 55 multiplies by a power of ten, and the power or the product may be infinite:
/// `round(1.5, 400)` is NaN, and `trunc(1e300, 10)` is infinite. This workaround is obsolete once
/// the test `stock_rounds_to_many_places_are_still_nan` fails.
pub(super) fn build_finite_rounds() -> [ScalarUDF; 2] {
    [math::round(), math::trunc()].map(|stock| ScalarUDF::new_from_impl(RoundFunction { stock }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WideRoundFunction {
    stock: Arc<ScalarUDF>,
}

fn add_digit(t: &DataType) -> DataType {
    match *t {
        DataType::Decimal32(precision @ ..9, scale) => DataType::Decimal32(precision + 1, scale),
        DataType::Decimal64(precision @ ..18, scale) => DataType::Decimal64(precision + 1, scale),
        DataType::Decimal128(precision @ ..38, scale) => DataType::Decimal128(precision + 1, scale),
        DataType::Decimal256(precision @ ..76, scale) => DataType::Decimal256(precision + 1, scale),
        _ => t.clone(),
    }
}

impl ScalarUDFImpl for WideRoundFunction {
    delegate!(stock: name, aliases, signature, documentation);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(add_digit(&self.stock.return_type(types)?))
    }

    fn is_strict(&self) -> bool {
        self.stock.is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for value in &mut args.args {
            let wider = add_digit(&value.data_type());
            if wider != value.data_type() {
                *value = value.cast_to(&wider, None)?;
            }
        }
        self.stock.inner().invoke_with_args(args)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match literal {
            Expr::Literal(value, _) if value.data_type().is_decimal() => Ok(PreimageResult::None),
            _ => self.stock.preimage(args, literal, info),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.stock.output_ordering(inputs)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        let types: Vec<DataType> = inputs.iter().map(|input| input.data_type()).collect();
        Interval::make_unbounded(&self.return_type(&types)?)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundFunction {
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for RoundFunction {
    delegate!(stock: name, aliases, signature, coerce_types, return_type, return_field_from_args, documentation);

    fn is_strict(&self) -> bool {
        self.stock.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, places] = args.args.as_slice() else {
            return self.stock.invoke_with_args(args);
        };
        let is_float = matches!(value.data_type(), DataType::Float32 | DataType::Float64);
        if !is_float {
            return self.stock.invoke_with_args(args);
        }
        let (is_one, rows) = count_call_rows(&args);
        let (value, places) = (value.to_array(rows)?, places.to_array(rows)?);
        let found = self.stock.invoke_with_args(args)?.into_array(rows)?;
        let found: ArrayRef = match value.data_type() {
            DataType::Float32 => {
                let finite: Float32Array = limit_values::<Float32Type>(&found, &value, &places)?;
                Arc::new(finite)
            }
            _ => {
                let finite: Float64Array = limit_values::<Float64Type>(&found, &value, &places)?;
                Arc::new(finite)
            }
        };
        to_columnar(found, is_one)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.stock.output_ordering(inputs)
    }
}

/// Replaces NaN and infinity in `found`, the results of rounding or truncating `value`, unless the
/// value itself is NaN or infinite. The replacement is the value if `places` is positive, else 0:
/// `round(1.5, 400)` is 1.5, and `round(1.5, -400)` is 0.
fn limit_values<T>(
    found: &ArrayRef,
    value: &ArrayRef,
    places: &ArrayRef,
) -> Result<PrimitiveArray<T>>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + Default,
{
    let (found, value) = (found.as_primitive::<T>(), value.as_primitive::<T>());
    let all_finite = found.values().iter().all(|found| (*found).into().is_finite());
    if all_finite {
        return Ok(found.clone());
    }
    let places = cast(places, &DataType::Int64)?;
    let places = places.as_primitive::<Int64Type>();
    let mut rows = PrimitiveBuilder::<T>::with_capacity(found.len());
    for row in 0..found.len() {
        let (rounded, original) = (found.value(row), value.value(row));
        rows.append_option(found.is_valid(row).then(|| match rounded.into().is_finite() {
            true => rounded,
            false if !original.into().is_finite() => original,
            false if places.value(row) > 0 => original,
            false => T::Native::default(),
        }));
    }
    Ok(rows.finish())
}
