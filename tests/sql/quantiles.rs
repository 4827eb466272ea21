//! `quantile_cont` interpolates as `NumPy` does, however its rows are cut.

use super::*;

#[tokio::test]
async fn quantiles_are_interpolated_exactly() {
    let seven = "(VALUES (0), (10), (20), (30), (40), (50), (60)) t(x)";
    expect_rows(
        &["CREATE TABLE g AS SELECT value % 2 AS k, value AS x FROM generate_series(0, 20)"],
        &[
            (&format!("SELECT quantile_cont(x, 0.3) FROM {seven}"), "18.0"),
            (&format!("SELECT quantile_cont(DISTINCT x, 0.3) FROM {seven}"), "18.0"),
            ("SELECT quantile_cont(x, 0.29) FROM range(101) t(x)", "28.999999999999996"),
            (
                "SELECT quantile_cont(x, 0.123456789) FROM (VALUES (0.0), (1000000000.0)) t(x)",
                "123456789.0",
            ),
            (
                "SELECT quantile_cont(x, 0), quantile_cont(x, 1), quantile_cont(x, 0.5) FROM (VALUES (3.0), (NULL), ('NaN'::DOUBLE), (1.0)) t(x)",
                "1.0 NaN 3.0",
            ),
            (
                "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC) FROM range(11) t(x)",
                "7.0",
            ),
            (
                "SELECT percentile_cont(0.4) WITHIN GROUP (ORDER BY x DESC), percentile_cont(0.2) WITHIN GROUP (ORDER BY x), percentile_cont(0.5) WITHIN GROUP (ORDER BY -x), array_agg(k ORDER BY x DESC)[1] FROM g",
                "12.0 4.0 -10.0 0",
            ),
            ("SELECT quantile_cont(x, 0.5) FROM range(0) t(x)", "NULL"),
            (
                "SELECT k, quantile_cont(x, 0.3), quantile_cont(x, 0.3) FILTER (WHERE x > 99), quantile_cont(DISTINCT x, 0.1) FROM g GROUP BY k ORDER BY k",
                "0 6.0 NULL 2.0; 1 6.3999999999999995 NULL 2.8",
            ),
            ("SELECT quantile_cont(x::REAL, 0.3) FROM g", "6.0"),
            (
                "SELECT quantile_cont(x, 0.3) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM (VALUES (0), (10), (20), (NULL), (40)) t(x) ORDER BY x",
                "0.0; 3.0; 6.0; 16.0; 26.0",
            ),
            (
                "SELECT quantile_cont(DISTINCT x, 0.3) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES (1, 0), (2, 0), (3, 10)) t(i, x) ORDER BY i",
                "0.0; 0.0; 3.0",
            ),
            ("SELECT quantile_cont(NULL, 0.5)", "NULL"),
        ],
    )
    .await;
}

#[tokio::test]
async fn discrete_quantiles_count_from_either_end() {
    expect_rows(
        &[
            "CREATE TABLE h AS SELECT value AS x FROM generate_series(1, 100)",
            "CREATE TABLE v AS SELECT * FROM (VALUES (1, 10.0), (1, 20.0), (2, 30.0), (2, 40.0), (2, NULL)) v(k, x)",
            "PREPARE quantile AS SELECT quantile_disc(x, $1) FROM h",
        ],
        &[
            ("EXECUTE quantile(0.55)", "55"),
            ("EXECUTE quantile(1)", "100"),
            // The product of the floats 100 and 0.55 is greater than 55.
            (
                "SELECT quantile_disc(x, 0.55), quantile_disc(x, 0.07), quantile_disc(x, 0.14), quantile_disc(x, .28), quantile_disc(x, 0.29), quantile_disc(x, 1.0) FROM h",
                "55 7 14 28 29 100",
            ),
            (
                "SELECT quantile_disc(x, [0.55, 0.07]), percentile_disc(0.55) WITHIN GROUP (ORDER BY x) FROM h",
                "[55, 7] 55",
            ),
            (
                "SELECT percentile_disc(0.55) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0) WITHIN GROUP (ORDER BY x DESC), percentile_disc(1) WITHIN GROUP (ORDER BY x DESC) FROM h",
                "46 100 1",
            ),
            (
                "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY x), percentile_disc([0.4, 0.2]) WITHIN GROUP (ORDER BY x DESC NULLS LAST) FROM v",
                "30.0 20.0 [30.0, 40.0]",
            ),
            (
                "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) FILTER (WHERE x > 10) FROM v GROUP BY k HAVING percentile_disc(0.1) WITHIN GROUP (ORDER BY x DESC) > 10 ORDER BY k",
                "1 20.0; 2 40.0",
            ),
            (
                "SELECT DISTINCT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) OVER (PARTITION BY k) FROM v ORDER BY k",
                "1 20.0; 2 40.0",
            ),
            (
                "SELECT DISTINCT k, percentile_cont(0.4) WITHIN GROUP (ORDER BY x) OVER (PARTITION BY k) FROM v ORDER BY k",
                "1 14.0; 2 34.0",
            ),
            ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) FROM v WHERE x > 99", "NULL"),
            (
                "SELECT percentile_cont([0.4, 0.2]) WITHIN GROUP (ORDER BY x DESC), percentile_cont([0.4]) WITHIN GROUP (ORDER BY x) FROM v",
                "[28.0, 34.0] [22.0]",
            ),
            (
                "SELECT quantile_disc(x, 0.5 ORDER BY x DESC), quantile_cont(x, 0.4 ORDER BY x DESC), quantile_disc(x, 0.5 ORDER BY x) FROM v",
                "30.0 28.0 20.0",
            ),
            ("SELECT quantile_disc(x, q) FROM h, (VALUES (NULL::DOUBLE)) n(q) GROUP BY q", "NULL"),
        ],
    )
    .await;
    let ctx = serrate::sql::session();
    for (call, expected) in [
        ("quantile_disc(x, NULL)", "must be a number from 0 to 1, but is NULL"),
        ("quantile_disc(x, [0.5, -0.5])", "must be a number from 0 to 1, but is -0.5"),
        (
            "percentile_disc(1.5) WITHIN GROUP (ORDER BY x)",
            "must be a number from 0 to 1, but is 1.5",
        ),
        ("percentile_disc(x, 0.5)", "write quantile_disc(x, 0.9)"),
        ("mode() WITHIN GROUP (ORDER BY x DESC)", "write mode(x)"),
        (
            "string_agg(x::VARCHAR, ',') WITHIN GROUP (ORDER BY x DESC)",
            "as in string_agg(.. ORDER BY x DESC)",
        ),
        ("quantile_cont(x, 0.5 ORDER BY x DESC) OVER ()", "GROUP BY in a subquery"),
        (
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) OVER ()",
            "write quantile_cont(x, 0.9) OVER (..)",
        ),
    ] {
        let found = rows_or_error(&ctx, &format!("SELECT {call} FROM (VALUES (1)) t(x)")).await;
        assert!(found.contains(expected), "{call}: {found}");
    }
}

/// When this test fails, `functions::aggregate::quantile` can be removed if percentiles of many
/// groups are right, too.
#[tokio::test]
async fn stock_percentiles_still_have_six_digits() {
    let sql = "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x) > 17.9999999
        FROM (VALUES (0.0), (10.0), (20.0), (30.0), (40.0), (50.0), (60.0)) t(x)";
    let found = stock_text(&SessionContext::new(), sql).await;
    assert!(found.contains("false"), "{found}");
}
