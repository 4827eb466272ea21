//! Checks that numbers fit the float types to which they are cast.
//!
//! Arrow casts a number beyond the range of a float type to infinity: 1e300 to an infinite Float32.
//! This workaround is obsolete once the test `stock_casts_to_floats_are_still_infinite` fails.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{cast, nullif};
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use super::list_fields::make_elements_nullable;
use super::{call_on_arrays, declare, take_first};
use crate::array::{RaggedArray, leaf_type, list_depth};

/// The least number that Arrow casts to an infinite Float32: halfway between the greatest Float32
/// and 2^128.
const BEYOND_SINGLE: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;

/// The least number that a cast to Float16 by way of Float32 makes infinite. The cast to Float32
/// rounds it to 65520, which is halfway between the greatest Float16, 65504, and 2^16.
const BEYOND_HALF: f64 = 65_519.998_046_875;

/// Whether numbers of the type `from`, also in lists, may be beyond the range of the float type
/// `to`.
pub(super) fn may_exceed(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal256, Dictionary, Float16, Float32, Float64, Int8, Int16, UInt8};
    let number: &DataType = match leaf_type(from) {
        Dictionary(_, values) => values,
        leaf => leaf,
    };
    match leaf_type(to) {
        Float32 => matches!(number, Float64 | Decimal256(..)),
        Float16 => number.is_numeric() && !matches!(number, Float16 | Int8 | UInt8 | Int16),
        _ => false,
    }
}

/// Replaces numbers beyond the range of the float type `to` with NULL. Returns `None` if all
/// numbers are in the range. Infinite values and NaN count as in the range.
pub(super) fn drop_beyond_range(
    values: &ArrayRef,
    to: &DataType,
) -> Result<Option<ArrayRef>, ArrowError> {
    if !may_exceed(values.data_type(), to) {
        return Ok(None);
    }
    let limit = match to {
        DataType::Float16 => BEYOND_HALF,
        _ => BEYOND_SINGLE,
    };
    let doubles = cast(values, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let is_beyond = |x: f64| x.is_finite() && x.abs() >= limit;
    if !doubles.values().iter().any(|x| is_beyond(*x)) {
        return Ok(None);
    }
    let beyond: BooleanArray = doubles.iter().map(|x| x.map(is_beyond)).collect();
    match beyond.true_count() {
        0 => Ok(None),
        _ => nullif(values, &beyond).map(Some),
    }
}

/// Adds to `e`, the operand of a cast to the type `to`, a check that its numbers fit `to`. A number
/// that does not fit is an error or, if `or_null` is true, NULL. Returns `e` unchanged if all
/// numbers of its type fit, if it is a literal that fits, or if it already has the check.
pub(crate) fn check_float_range(
    e: Expr,
    to: &DataType,
    or_null: bool,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let from = e.get_type(schema)?;
    let depth = list_depth(&from);
    let is_checked = match &e {
        Expr::ScalarFunction(call) => call.func.inner().is::<FloatRange>(),
        Expr::Literal(value, _) if depth == 0 => {
            drop_beyond_range(&value.to_array()?, to)?.is_none()
        }
        _ => false,
    };
    // A list whose elements are not nullable cannot contain NULL.
    let is_fixed = or_null && make_elements_nullable(&from) != from;
    if is_checked || is_fixed || depth != list_depth(to) || !may_exceed(&from, to) {
        return Ok(Transformed::no(e));
    }
    let is_half = *leaf_type(to) == DataType::Float16;
    let check = match (is_half, or_null) {
        (false, false) => &CHECKS[0],
        (false, true) => &CHECKS[1],
        (true, false) => &CHECKS[2],
        (true, true) => &CHECKS[3],
    };
    Ok(Transformed::yes(check.call(vec![e])))
}

static CHECKS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [(false, false), (false, true), (true, false), (true, true)].map(|(is_half, or_null)| {
        Arc::new(ScalarUDF::new_from_impl(FloatRange { is_half, or_null }))
    })
});

/// Returns the functions that [`check_float_range`] inserts. Workers of a distributed query need
/// them to decode plans.
#[cfg(feature = "cluster")]
pub(crate) fn list_range_checks() -> [Arc<ScalarUDF>; 4] {
    CHECKS.clone()
}

/// Returns its argument, a number or a list of numbers, after a check that the numbers fit a float
/// type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatRange {
    /// Whether the float type is Float16 instead of Float32.
    is_half: bool,
    /// Whether a number that does not fit becomes NULL instead of an error.
    or_null: bool,
}

impl FloatRange {
    fn check_numbers(&self, numbers: &ArrayRef) -> Result<ArrayRef> {
        if list_depth(numbers.data_type()) == 0 {
            return Ok(self.check_leaves(numbers)?.unwrap_or_else(|| Arc::clone(numbers)));
        }
        let lists = RaggedArray::try_from_arrow(numbers)?;
        Ok(match self.check_leaves(lists.leaves())? {
            Some(held) => lists.with_leaves(held)?.to_arrow_as(numbers.data_type())?,
            None => Arc::clone(numbers),
        })
    }

    /// Returns the numbers with NULL in place of those that do not fit, or `None` if all fit.
    fn check_leaves(&self, numbers: &ArrayRef) -> Result<Option<ArrayRef>> {
        let to = if self.is_half { DataType::Float16 } else { DataType::Float32 };
        let held = drop_beyond_range(numbers, &to)?;
        if let Some(held) = held.as_ref().filter(|_| !self.or_null) {
            let mut rows = 0..numbers.len();
            let row = rows.find(|row| numbers.is_valid(*row) && held.is_null(*row));
            let number = array_value_to_string(numbers, row.unwrap_or(0))?;
            return exec_err!(
                "the number {number} is beyond the range of the type {to}; cast it to DOUBLE, or write TRY_CAST for NULL in its place"
            );
        }
        Ok(held)
    }
}

impl ScalarUDFImpl for FloatRange {
    declare!(Signature::any(1, Volatility::Immutable));

    fn name(&self) -> &str {
        match (self.is_half, self.or_null) {
            (false, false) => "fits_float32",
            (false, true) => "null_beyond_float32",
            (true, false) => "fits_float16",
            (true, true) => "null_beyond_float16",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|of| of.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = take_first(self.name(), args.arg_fields)?;
        let is_nullable = self.or_null || field.is_nullable();
        let field = field.as_ref().clone().with_nullable(is_nullable);
        Ok(Arc::new(field.with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[numbers]| self.check_numbers(&numbers))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    #[test]
    fn numbers_beyond_the_range_are_those_that_arrow_makes_infinite() {
        let below = f64::from_bits(BEYOND_SINGLE.to_bits() - 1);
        for (to, beyond, below) in
            [(DataType::Float32, BEYOND_SINGLE, below), (DataType::Float16, 65_520.0, 65_519.5)]
        {
            let numbers = [beyond, -beyond, below, -below, f64::INFINITY, f64::NAN];
            let numbers: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
            let floats = cast(&cast(&numbers, &to).unwrap(), &DataType::Float64).unwrap();
            let floats = floats.as_primitive::<Float64Type>();
            let is_infinite: Vec<bool> = floats.values().iter().map(|x| x.is_infinite()).collect();
            assert_eq!(is_infinite, [true, true, false, false, true, false], "{to}");
            let held = drop_beyond_range(&numbers, &to).unwrap().unwrap();
            let is_dropped: Vec<bool> = (0..6).map(|row| held.is_null(row)).collect();
            assert_eq!(is_dropped, [true, true, false, false, false, false], "{to}");
            assert!(drop_beyond_range(&numbers.slice(2, 4), &to).unwrap().is_none());
        }
    }
}
