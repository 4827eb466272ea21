use arrow::datatypes::TimeUnit;

/// Returns the number of nanoseconds in a unit.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::TimeUnit;
/// use serrate::internal::times::count_nanoseconds;
/// assert_eq!(count_nanoseconds(TimeUnit::Millisecond), 1_000_000);
/// ```
pub fn count_nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
