//! The doubles that are nearest to decimals.
//!
//! Arrow divides the digits of a decimal, as a double, by a power of ten. Both are rounded if there
//! are many digits, and the quotient is rounded once more: DECIMAL(38, 38) 0.1 becomes
//! 0.09999999999999999 as a double.

use arrow::array::{Array, AsArray, Float64Array};
use arrow::datatypes::{
    DataType, Decimal64Type, Decimal128Type, Decimal256Type, Float64Type, i256,
};

/// Maximum number of decimal digits for which a double represents every integer exactly.
const EXACT_DIGITS: u8 = 15;

/// The largest power of ten that is a double.
const EXACT_POWER: i8 = 22;

/// Doubles represent all integers up to this one.
const LARGEST_EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// Whether a type is a decimal some of whose values Arrow rounds twice when it casts them to
/// doubles.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::DataType;
/// use serrate::internal::rounds_twice;
/// assert!(rounds_twice(&DataType::Decimal128(20, 4)));
/// assert!(!rounds_twice(&DataType::Decimal128(10, 2)) && !rounds_twice(&DataType::Int64));
/// ```
pub fn rounds_twice(t: &DataType) -> bool {
    match t {
        DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            *precision > EXACT_DIGITS || !(0..=EXACT_POWER).contains(scale)
        }
        _ => false,
    }
}

/// Returns the nearest double of each decimal. Returns `None` if [`rounds_twice`] is false for the
/// type of the array.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::array::Decimal128Array;
/// use serrate::internal::to_nearest_doubles;
/// let tenth = Decimal128Array::from(vec![10i128.pow(37)]).with_precision_and_scale(38, 38)?;
/// let doubles = to_nearest_doubles(&tenth).map(|doubles| doubles.value(0));
/// assert_eq!(doubles, Some(0.1));
/// # Ok::<(), arrow::error::ArrowError>(())
/// ```
pub fn to_nearest_doubles(decimals: &dyn Array) -> Option<Float64Array> {
    if !rounds_twice(decimals.data_type()) {
        return None;
    }
    match decimals.data_type() {
        DataType::Decimal64(_, scale) => {
            let decimals = decimals.as_primitive::<Decimal64Type>();
            Some(decimals.unary::<_, Float64Type>(|x| find_nearest(x.into(), *scale)))
        }
        DataType::Decimal128(_, scale) => {
            let decimals = decimals.as_primitive::<Decimal128Type>();
            Some(decimals.unary::<_, Float64Type>(|x| find_nearest(x, *scale)))
        }
        DataType::Decimal256(_, scale) => {
            let decimals = decimals.as_primitive::<Decimal256Type>();
            Some(decimals.unary::<_, Float64Type>(|x: i256| match x.to_i128() {
                Some(x) => find_nearest(x, *scale),
                None => parse_double(&x.to_string(), *scale),
            }))
        }
        _ => None,
    }
}

/// Returns the double that is nearest to `digits / 10^scale`.
fn find_nearest(digits: i128, scale: i8) -> f64 {
    match digits.unsigned_abs() <= LARGEST_EXACT && (0..=EXACT_POWER).contains(&scale) {
        // Only the quotient is rounded.
        true => digits as f64 / 10f64.powi(scale.into()),
        false => parse_double(&digits.to_string(), scale),
    }
}

/// Returns the double that is nearest to `digits / 10^scale`. Rust's parser rounds any number of
/// digits once.
fn parse_double(digits: &str, scale: i8) -> f64 {
    format!("{digits}e{}", -i16::from(scale)).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal64Array, Decimal128Array, Decimal256Array};
    use arrow::error::ArrowError;

    use super::*;

    #[test]
    fn decimals_are_rounded_once() -> Result<(), ArrowError> {
        let values = vec![Some(90_071_992_547_409_930_000_000_000), None, Some(-5), Some(0)];
        let decimals = Decimal128Array::from(values).with_precision_and_scale(38, 10)?;
        let doubles = to_nearest_doubles(&decimals).unwrap();
        let doubles: Vec<Option<f64>> = doubles.iter().collect();
        assert_eq!(
            doubles,
            [Some(9_007_199_254_740_992.0), None, Some(-0.000_000_000_5), Some(0.0)]
        );
        let sliced = to_nearest_doubles(&decimals.slice(1, 2)).unwrap();
        assert!(sliced.is_null(0) && sliced.value(1) == -5e-10);

        let wide = i256::from_i128(10i128.pow(38)).wrapping_mul(i256::from_i128(3));
        let wide = Decimal256Array::from(vec![wide]).with_precision_and_scale(76, 39)?;
        assert_eq!(to_nearest_doubles(&wide).unwrap().value(0), 0.3);

        let long = Decimal64Array::from(vec![250_367_245_457_070_922]);
        let long = long.with_precision_and_scale(18, 4)?;
        assert_eq!(to_nearest_doubles(&long).unwrap().value(0), 25_036_724_545_707.094);
        assert!(to_nearest_doubles(&long.with_precision_and_scale(15, 4)?).is_none());
        Ok(())
    }
}
