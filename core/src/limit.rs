//! The maximum size of a result in bytes, which is checked before memory is allocated.

use crate::error::{Error, Result};

pub(crate) const DEFAULT_LIMIT: u64 = 4 << 30;

/// Returns `bytes` as a `usize`, or an error if `bytes` exceeds `limit`. In the error message,
/// `what` names the result, and `hint` says how to reduce its size.
pub(crate) fn check_bytes(
    limit: Option<u64>,
    bytes: u128,
    what: impl FnOnce() -> String,
    hint: impl FnOnce() -> String,
) -> Result<usize> {
    let most = limit.map_or(u128::from(u64::MAX), u128::from);
    let limit = most.min(isize::MAX.unsigned_abs() as u128);
    match usize::try_from(bytes) {
        Ok(n) if bytes <= limit => Ok(n),
        _ => Err(Error::TooLarge { what: what(), bytes, limit, hint: hint() }),
    }
}

/// Returns an error if a result of `elements` elements of `bits` bits exceeds [`DEFAULT_LIMIT`].
/// Call this before the result is allocated, because a number of elements that comes from data may
/// be huge.
pub(crate) fn check_size(what: &str, elements: usize, bits: usize) -> Result<()> {
    let bytes = (elements as u128).saturating_mul(bits as u128) / 8;
    check_bytes(
        Some(DEFAULT_LIMIT),
        bytes,
        || format!("{what}: the result of {elements} elements"),
        || "give smaller counts or sizes, or fewer rows at a time".into(),
    )
    .map(|_| ())
}
