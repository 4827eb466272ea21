//! Casts that return an error for a value that does not fit, instead of NULL.

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, PrimitiveArray, TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow::error::ArrowError;

use super::nearest_doubles::to_nearest_doubles;

/// Reason why a cast fails. The caller adds the column and the row to the message.
#[derive(Debug)]
pub(crate) enum InexactCast {
    /// The type of the array is not supported. The string lists the supported types.
    Type(&'static str),
    /// The value at this index does not fit the target type. The string is the reason.
    Value(usize, String),
    /// The error of Arrow's cast for a value that does not fit the target type.
    Cast(ArrowError),
}

pub(crate) fn find_int_range(of: &DataType) -> Option<(i128, i128)> {
    Some(match of {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

pub(crate) fn find_first_null(values: &dyn Array) -> Option<usize> {
    let nulls = values.nulls().filter(|n| n.null_count() > 0)?;
    nulls.iter().position(|valid| !valid)
}

/// Casts values with Arrow's cast, but decimals to the nearest doubles. A value that does not fit
/// is an error, not NULL.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::array::Int32Array;
/// use arrow::datatypes::DataType;
/// use serrate::internal::cast_strictly;
/// assert_eq!(cast_strictly(&Int32Array::from(vec![7]), &DataType::Int8)?.len(), 1);
/// assert!(cast_strictly(&Int32Array::from(vec![700]), &DataType::Int8).is_err());
/// # Ok::<(), arrow::error::ArrowError>(())
/// ```
///
/// # Errors
/// If a value does not fit `to`, or Arrow has no such cast.
pub fn cast_strictly(values: &dyn Array, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_nearest(values, to, false)
}

/// Casts values with Arrow's cast, but decimals to the nearest doubles. A value that does not fit
/// is NULL if `or_null` is true, otherwise an error.
pub(crate) fn cast_nearest(
    values: &dyn Array,
    to: &DataType,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: or_null, ..CastOptions::default() };
    if to.is_floating()
        && let Some(doubles) = to_nearest_doubles(values)
    {
        return cast_with_options(&doubles, to, &options);
    }
    cast_with_options(values, to, &options)
}

pub(crate) fn cast_exact(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, InexactCast> {
    cast_strictly(values, to).map_err(InexactCast::Cast)
}

pub(crate) fn cast_integers(values: &ArrayRef) -> Result<Int64Array, InexactCast> {
    if !values.data_type().is_integer() {
        return Err(InexactCast::Type("integers"));
    }
    Ok(cast_exact(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Casts dates and timestamps to microseconds. Returns an error for a time in nanoseconds that is
/// not a whole number of microseconds, because truncation could make two different times equal.
pub(crate) fn cast_microseconds(
    values: &ArrayRef,
) -> Result<TimestampMicrosecondArray, InexactCast> {
    use DataType::{Date32, Date64, Null, Timestamp};
    if !matches!(values.data_type(), Timestamp(_, _) | Date32 | Date64 | Null) {
        return Err(InexactCast::Type("timestamps"));
    }
    if let Timestamp(TimeUnit::Nanosecond, _) = values.data_type() {
        let fine: &PrimitiveArray<TimestampNanosecondType> = values.as_primitive();
        if let Some(i) = fine.iter().position(|t| t.is_some_and(|t| t % 1000 != 0)) {
            let nanoseconds = fine.value(i);
            let time = fine.value_as_datetime(i);
            let time = time.map_or_else(|| nanoseconds.to_string(), |time| time.to_string());
            return Err(InexactCast::Value(
                i,
                format!("the time {time} is finer than microseconds; round it to microseconds"),
            ));
        }
    }
    let times = cast_exact(values, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(times.as_primitive::<TimestampMicrosecondType>().clone())
}

/// Returns an error if a decimal has more digits than the precision of its type, because Arrow's
/// arithmetic checks only whether results fit in 128 or 256 bits. Accepts values of other types.
///
/// # Errors
/// The error of Arrow that names the value.
pub fn check_decimal_precision(values: &dyn Array) -> Result<(), ArrowError> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    match values.data_type() {
        Decimal32(p, _) => values.as_primitive::<Decimal32Type>().validate_decimal_precision(*p),
        Decimal64(p, _) => values.as_primitive::<Decimal64Type>().validate_decimal_precision(*p),
        Decimal128(p, _) => values.as_primitive::<Decimal128Type>().validate_decimal_precision(*p),
        Decimal256(p, _) => values.as_primitive::<Decimal256Type>().validate_decimal_precision(*p),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{NullArray, TimestampNanosecondArray, UInt64Array};

    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]));
        assert!(matches!(cast_integers(&large), Err(InexactCast::Cast(_))));
        assert_eq!(
            cast_integers(&large.slice(0, 2)).unwrap(),
            Int64Array::from(vec![Some(1), None])
        );
        assert_eq!(find_first_null(&large), Some(1));
        assert_eq!(find_first_null(&large.slice(0, 1)), None);
        assert!(matches!(cast_microseconds(&large), Err(InexactCast::Type(_))));
        let fine: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1000, 2001]));
        assert!(matches!(cast_microseconds(&fine), Err(InexactCast::Value(1, _))));
        assert_eq!(cast_microseconds(&fine.slice(0, 1)).unwrap().values(), &[1]);
        let none: ArrayRef = Arc::new(NullArray::new(2));
        assert_eq!(cast_microseconds(&none).unwrap().null_count(), 2);
    }
}
