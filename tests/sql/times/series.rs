//! Series of timestamps and of local times.

use super::*;

#[tokio::test]
async fn series_of_timestamps_cover_all_years() {
    let ctx = create_parallel_session();
    for (sql, expected) in [
        (
            "SELECT generate_series(TIMESTAMP '2999-01-01', TIMESTAMP '2999-01-02', INTERVAL '1 day')",
            "[2999-01-01T00:00:00, 2999-01-02T00:00:00]",
        ),
        (
            "SELECT range(TIMESTAMP '1600-01-01', TIMESTAMP '1600-01-02', INTERVAL '12 hours')",
            "[1600-01-01T00:00:00, 1600-01-01T12:00:00]",
        ),
        (
            "SELECT range(t, t - INTERVAL '1 day', INTERVAL '-12 hours') FROM (VALUES (TIMESTAMP '9999-01-01')) v(t)",
            "[9999-01-01T00:00:00, 9998-12-31T12:00:00]",
        ),
        (
            "SELECT generate_series(TIMESTAMP '2020-01-31', TIMESTAMP '2020-04-01', INTERVAL '1 month')",
            "[2020-01-31T00:00:00, 2020-02-29T00:00:00, 2020-03-29T00:00:00]",
        ),
        (
            "SELECT range(TIMESTAMP '2020-01-02', TIMESTAMP '2020-01-01', INTERVAL '1 day'), range(NULL::TIMESTAMP, TIMESTAMP '2020-01-01', INTERVAL '1 day')",
            "[] NULL",
        ),
        (
            "SELECT value FROM generate_series(TIMESTAMP '2999-01-01', TIMESTAMP '2999-01-02', INTERVAL '1 day')",
            "2999-01-01T00:00:00; 2999-01-02T00:00:00",
        ),
        (
            "SELECT value FROM range(DATE '1600-01-01', DATE '1600-01-03', INTERVAL '1 day')",
            "1600-01-01T00:00:00; 1600-01-02T00:00:00",
        ),
        (
            "SELECT count(*), min(value), max(value) FROM range(TIMESTAMP '2500-01-01', TIMESTAMP '2500-01-02', INTERVAL '1 second')",
            "86400 2500-01-01T00:00:00 2500-01-01T23:59:59",
        ),
        (
            "SELECT arrow_typeof(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '1 day'))",
            "List(Timestamp(µs))",
        ),
    ] {
        assert_eq!(query_rows(&ctx, sql).await, expected, "{sql}");
    }
    for (sql, words) in [
        (
            "SELECT range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '0 days')",
            "has no fixed direction",
        ),
        (
            "SELECT value FROM range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '1 month -30 days')",
            "has no fixed direction",
        ),
        (
            "SELECT range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '100 nanoseconds')",
            "TIMESTAMP(9)",
        ),
        (
            "SELECT range(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL '1 microsecond')",
            "2^31 - 1 timestamps",
        ),
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains(words), "{sql}: {e}");
    }
}

/// When this test fails, `sql::workarounds::types::times::series` can be removed.
#[tokio::test]
async fn stock_series_still_are_nanoseconds() {
    let far = "arrow_cast('2999-12-31', 'Timestamp(Microsecond, None)')";
    let sql = format!("SELECT generate_series({far}, {far}, INTERVAL '1 day')");
    let found = SessionContext::new().sql(&sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).null_count(), 1);
}

#[tokio::test]
async fn series_of_local_times_are_complete_or_refused() {
    let ctx = serrate::sql::session();
    let days = |first: &str, step: &str| {
        format!(
            "SELECT len(generate_series(TIMESTAMP '{first}' AT TIME ZONE 'Europe/Berlin', TIMESTAMP '2020-04-02 02:30:00' AT TIME ZONE 'Europe/Berlin', INTERVAL '{step}'))"
        )
    };
    let refused = error(&ctx, &days("2020-03-28 02:30:00", "1 day")).await;
    assert!(refused.contains("does not exist or occurs twice"), "{refused}");
    assert_eq!(query_rows(&ctx, &days("2020-03-28 12:00:00", "1 day")).await, "5");
    assert_eq!(query_rows(&ctx, &days("2020-03-28 02:30:00", "24 hours")).await, "5");
}
