//! Values taken as the keys, times and targets they are meant to be: exactly, or not at all.

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, PrimitiveArray, TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow::error::ArrowError;

/// Why values are not what they should be; who asks knows the place.
#[derive(Debug)]
pub(crate) enum Inexact {
    /// They are of another type than this.
    Type(&'static str),
    /// The one at this place is wrong.
    Value(usize, &'static str),
    /// Some of them do not fit.
    Cast(ArrowError),
}

/// The place of the first NULL.
pub(crate) fn first_null(values: &dyn Array) -> Option<usize> {
    let nulls = values.nulls().filter(|n| n.null_count() > 0)?;
    nulls.iter().position(|valid| !valid)
}

/// Values in another type; one that does not fit is an error, and not NULL.
pub(crate) fn cast_exact(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, Inexact> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, to, &options).map_err(Inexact::Cast)
}

/// Integers in 64 bits.
pub(crate) fn integers(values: &ArrayRef) -> Result<Int64Array, Inexact> {
    if !values.data_type().is_integer() {
        return Err(Inexact::Type("integers"));
    }
    Ok(cast_exact(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Times as microseconds without a time zone. Finer ones must be whole microseconds: a cut one would
/// move an event, or a label, past the other.
pub(crate) fn microseconds(values: &ArrayRef) -> Result<TimestampMicrosecondArray, Inexact> {
    use DataType::{Date32, Date64, Null, Timestamp};
    if !matches!(values.data_type(), Timestamp(_, _) | Date32 | Date64 | Null) {
        return Err(Inexact::Type("timestamps"));
    }
    if let Timestamp(TimeUnit::Nanosecond, _) = values.data_type() {
        let fine: &PrimitiveArray<TimestampNanosecondType> = values.as_primitive();
        if let Some(i) = fine.iter().position(|t| t.is_some_and(|t| t % 1000 != 0)) {
            return Err(Inexact::Value(i, "a time finer than microseconds; round it"));
        }
    }
    let times = cast_exact(values, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(times.as_primitive::<TimestampMicrosecondType>().clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{NullArray, TimestampNanosecondArray, UInt64Array};

    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]));
        assert!(matches!(integers(&large), Err(Inexact::Cast(_))));
        assert_eq!(integers(&large.slice(0, 2)).unwrap(), Int64Array::from(vec![Some(1), None]));
        assert_eq!(first_null(&large), Some(1));
        assert_eq!(first_null(&large.slice(0, 1)), None);
        assert!(matches!(microseconds(&large), Err(Inexact::Type(_))));
        let fine: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1000, 2001]));
        assert!(matches!(microseconds(&fine), Err(Inexact::Value(1, _))));
        assert_eq!(microseconds(&fine.slice(0, 1)).unwrap().values(), &[1]);
        let none: ArrayRef = Arc::new(NullArray::new(2));
        assert_eq!(microseconds(&none).unwrap().null_count(), 2);
    }
}
