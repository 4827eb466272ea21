//! Local times in time zones with clock changes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType,
};
use arrow::util::display::array_value_to_string;
use serrate_core::internal::zones::{add_intervals, local_to_instants};

fn zoned_type(unit: TimeUnit, zone: &str) -> DataType {
    DataType::Timestamp(unit, Some(zone.into()))
}

fn make_texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Returns the instant of a local time as a string in UTC. Strings and timestamps must give the
/// same instant.
fn find_instant(local: &str, zone: &str, unit: TimeUnit) -> String {
    let times = cast(&make_texts(&[local]), &DataType::Timestamp(unit, None)).unwrap();
    let found = local_to_instants(&times, &zoned_type(unit, zone), false).unwrap();
    let of_text = local_to_instants(&make_texts(&[local]), &zoned_type(unit, zone), false).unwrap();
    assert_eq!(&found, &of_text, "{local} {zone}");
    array_value_to_string(&cast(&found, &zoned_type(unit, "UTC")).unwrap(), 0).unwrap()
}

#[test]
fn local_times_that_are_skipped_or_repeated_are_instants() {
    for (zone, local, utc) in [
        ("Europe/Berlin", "2024-03-31T01:59:59", "2024-03-31T00:59:59Z"),
        ("Europe/Berlin", "2024-03-31T02:00:00", "2024-03-31T01:00:00Z"),
        ("Europe/Berlin", "2024-03-31T02:59:59", "2024-03-31T01:59:59Z"),
        ("Europe/Berlin", "2024-03-31T03:00:00", "2024-03-31T01:00:00Z"),
        ("Europe/Berlin", "2024-10-27T01:59:59", "2024-10-26T23:59:59Z"),
        ("Europe/Berlin", "2024-10-27T02:00:00", "2024-10-27T01:00:00Z"),
        ("Europe/Berlin", "1850-01-01T00:00:00", "1849-12-31T23:06:32Z"),
        // In this zone, clocks change by half an hour.
        ("Australia/Lord_Howe", "2024-10-06T02:15:00", "2024-10-05T15:45:00Z"),
        ("Australia/Lord_Howe", "2024-04-07T01:45:00", "2024-04-06T15:15:00Z"),
        // In this zone, the day 2011-12-30 was skipped.
        ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T22:00:00Z"),
    ] {
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond] {
            assert_eq!(find_instant(local, zone, unit), utc, "{local} {zone} {unit:?}");
        }
    }
}

#[test]
fn times_out_of_range_are_errors_or_null() {
    let far = cast(
        &arrow::array::Int64Array::from(vec![Some(i64::MAX), None, Some(0)]),
        &DataType::Timestamp(TimeUnit::Second, None),
    );
    let (far, berlin) = (far.unwrap(), zoned_type(TimeUnit::Second, "Europe/Berlin"));
    let e = local_to_instants(&far, &berlin, false).unwrap_err().to_string();
    assert!(e.contains("outside the range"), "{e}");
    let found = local_to_instants(&far, &berlin, true).unwrap();
    let found = cast(&found, &DataType::Int64).unwrap();
    let found: Vec<Option<i64>> = found.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(found, [None, None, Some(-3600)]);
    assert!(local_to_instants(&make_texts(&["soon"]), &berlin, false).is_err());
    assert!(local_to_instants(&make_texts(&["soon"]), &berlin, true).unwrap().is_null(0));
    assert!(local_to_instants(&far, &DataType::Int64, false).is_err());
}

#[test]
fn intervals_move_months_and_days_by_the_calendar() {
    let berlin = zoned_type(TimeUnit::Microsecond, "Europe/Berlin");
    let start = local_to_instants(
        &make_texts(&["2024-01-31T02:30:00", "2024-03-30T02:30:00"]),
        &berlin,
        false,
    )
    .unwrap();
    let by = |months, days, nanoseconds| -> ArrayRef {
        let by = IntervalMonthDayNano::new(months, days, nanoseconds);
        Arc::new(IntervalMonthDayNanoArray::from(vec![by]))
    };
    let shown = |moved: &ArrayRef| -> Vec<String> {
        (0..moved.len()).map(|i| array_value_to_string(moved, i).unwrap()).collect()
    };
    let hour = 3_600_000_000_000;
    let sums = add_intervals(&start, &by(0, 1, 0), false).unwrap();
    assert_eq!(shown(&sums), ["2024-02-01T02:30:00+01:00", "2024-03-31T03:30:00+02:00"]);
    let sums = add_intervals(&start, &by(2, 0, -hour), false).unwrap();
    assert_eq!(shown(&sums), ["2024-03-31T01:30:00+01:00", "2024-05-30T01:30:00+02:00"]);
    let sums = add_intervals(&start, &by(1, -1, 0), true).unwrap();
    assert_eq!(shown(&sums), ["2024-01-01T02:30:00+01:00", "2024-03-01T02:30:00+01:00"]);
    let one = start.slice(0, 1);
    let many: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
        Some(IntervalMonthDayNano::new(0, 0, hour)),
        None,
    ]));
    let sums = add_intervals(&one, &many, false).unwrap();
    let sums = sums.as_primitive::<TimestampMicrosecondType>();
    assert_eq!(
        sums.value(0),
        one.as_primitive::<TimestampMicrosecondType>().value(0) + 3_600_000_000
    );
    assert!(arrow::array::Array::is_null(sums, 1));
    let e = add_intervals(&one, &by(i32::MAX, 0, 0), false).unwrap_err().to_string();
    assert!(e.contains("outside the range"), "{e}");
}
