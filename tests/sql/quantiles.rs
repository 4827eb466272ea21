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

/// When this fails, `functions::aggregate::quantile` can go if percentiles of many groups are right, too.
#[tokio::test]
async fn stock_percentiles_still_have_six_digits() {
    let sql = "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x) > 17.9999999
        FROM (VALUES (0.0), (10.0), (20.0), (30.0), (40.0), (50.0), (60.0)) t(x)";
    let found = stock_text(&SessionContext::new(), sql).await;
    assert!(found.contains("false"), "{found}");
}
