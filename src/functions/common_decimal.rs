//! The common type of integers, decimals and floats.

use arrow::datatypes::DataType;

/// Returns the decimal type that represents all values of the integer and decimal types `types`, or
/// Float64 if they include floats. Returns `None` for other types, and if 38 digits do not suffice.
/// NULL types are ignored.
pub(super) fn find_common_decimal(types: &[&DataType]) -> Option<DataType> {
    let (mut whole, mut fraction) = (0u8, 0u8);
    for t in types.iter().filter(|t| !t.is_null()) {
        let (before, after) = match t {
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
                let after = u8::try_from(*s).ok()?;
                (p.checked_sub(after)?, after)
            }
            t if t.is_integer() => (20, 0),
            t if t.is_floating() => return Some(DataType::Float64),
            _ => return None,
        };
        (whole, fraction) = (whole.max(before), fraction.max(after));
    }
    let digits = whole.checked_add(fraction).filter(|digits| *digits <= 38)?;
    Some(DataType::Decimal128(digits, i8::try_from(fraction).ok()?))
}
