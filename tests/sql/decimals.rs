//! Decimals combined with floats, and rounded decimals.

use super::*;

const ROWS: &str = "(VALUES (1, 1.26::DECIMAL(12, 2), 'NaN'::DOUBLE), (2, 1.30, 'inf'::DOUBLE),
    (3, 1.34, 1e30), (4, -0.5, -1e300), (5, NULL, 1.0), (6, 2.00, 2.0)) v(id, n, f)";

async fn ids(ctx: &SessionContext, condition: &str) -> Vec<i64> {
    let sql = format!("SELECT id FROM {ROWS} WHERE {condition} ORDER BY id");
    let frame = serrate::sql::sql(ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let batches = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn floats_compare_with_decimals_as_doubles() {
    let ctx = four();
    for (condition, right) in [
        ("f > n", vec![1, 2, 3]),
        ("n > f", vec![4]),
        ("f = n", vec![6]),
        ("f IS DISTINCT FROM n", vec![1, 2, 3, 4, 5]),
        ("n BETWEEN -1e300 AND f", vec![1, 2, 3, 6]),
        ("f IN (n, 1)", vec![5, 6]),
        ("CASE f WHEN n THEN true END", vec![6]),
        ("greatest(f, n) = f", vec![1, 2, 3, 5, 6]),
        ("nullif(f, n) IS NULL", vec![6]),
        ("f > 1.5::DECIMAL(12, 2)", vec![1, 2, 3, 6]),
        ("id IN (SELECT w.id FROM (SELECT id, f FROM t) w JOIN t ON w.f = t.n)", vec![6]),
    ] {
        if condition.contains('t') && condition.contains("JOIN") {
            let sql = format!("CREATE OR REPLACE TABLE t AS SELECT * FROM {ROWS}");
            serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
        }
        assert_eq!(ids(&ctx, condition).await, right, "{condition}");
    }
}

#[tokio::test]
async fn rounded_decimals_keep_their_type() {
    let ctx = four();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    let sql = format!("COPY (SELECT * FROM {ROWS}) TO '{}'", file.display());
    serrate::sql::sql(&ctx, &sql).await.unwrap().collect().await.unwrap();
    for from in [ROWS.to_owned(), format!("'{}'", file.display())] {
        for places in ["1", "1::INT", "0 + 1", "(id - id + 1)", "-1", "0", "5"] {
            let round = format!("round(n, {places})");
            for sql in [
                format!("SELECT id FROM {from} WHERE {round} = {round} ORDER BY id"),
                format!(
                    "SELECT id FROM {from} WHERE {round} IS NOT DISTINCT FROM round(n + 0, {places}) AND n IS NOT NULL ORDER BY id"
                ),
                format!(
                    "SELECT id FROM {from} WHERE CASE WHEN id > 0 THEN {round} ELSE n END <= least({round}, n, 99) + 99 ORDER BY id"
                ),
                format!(
                    "SELECT min(id) AS id FROM (SELECT DISTINCT {round} AS r, id FROM {from} WHERE {round} IS NOT NULL) GROUP BY r, id ORDER BY id"
                ),
                format!(
                    "SELECT id FROM (SELECT {round} AS r, id FROM {from} UNION ALL SELECT n, id FROM {from} WHERE n > 99) WHERE r > -99 ORDER BY id"
                ),
                format!(
                    "SELECT a.id FROM {} a JOIN {} b ON round(a.n, {}) = round(b.n, {}) AND a.id = b.id ORDER BY a.id",
                    from.replace(" v(id, n, f)", ""),
                    from.replace(" v(id, n, f)", ""),
                    places.replace("id", "a.id"),
                    places.replace("id", "b.id")
                ),
            ] {
                if sql.contains(" JOIN (VALUES") {
                    continue;
                }
                let frame =
                    serrate::sql::sql(&ctx, &sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
                let batches = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
                let found: Vec<i64> = batches
                    .iter()
                    .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert_eq!(found, [1, 2, 3, 4, 6], "{sql}");
            }
        }
    }
    let typed = "SELECT arrow_typeof(round(1.26::DECIMAL(12, 2), 1)) AS t, round(1.26::DECIMAL(12, 2), 1) AS r";
    let batches = serrate::sql::sql(&ctx, typed).await.unwrap().collect().await.unwrap();
    assert_eq!(batches[0].column(1).data_type().to_string(), "Decimal128(12, 1)");
}

/// When this test fails, the comparisons of `StableDecimals` can be removed.
#[tokio::test]
async fn stock_floats_become_decimals() {
    let ctx = SessionContext::new();
    let found = batches(&ctx, "SELECT 1e30::DOUBLE > arrow_cast(1.2, 'Decimal128(12, 2)')").await;
    assert!(found.is_err());
}

/// When this test fails, the `round` of `StableDecimals` can be removed.
#[tokio::test]
async fn stock_round_changes_type() {
    let ctx = SessionContext::new();
    let plan = ctx
        .sql("SELECT round(arrow_cast(x, 'Decimal128(12, 2)'), 1) AS r FROM (VALUES (1.26)) v(x)");
    let plan = plan.await.unwrap().into_unoptimized_plan();
    let analyzed = ctx.state().analyzer().execute_and_check(
        plan.clone(),
        &ctx.state().config_options().clone(),
        |_, _| {},
    );
    assert_ne!(plan.schema().field(0).data_type(), analyzed.unwrap().schema().field(0).data_type(),);
}

#[tokio::test]
async fn floats_are_looked_for_among_decimals_of_queries() {
    let ctx = four();
    for (sql, expected) in [
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE), (1.5), (1e300)) t(x) WHERE x IN (SELECT 1.5::DECIMAL(3, 1))",
            1,
        ),
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE), (1.5), (1e300)) t(x) WHERE x NOT IN (SELECT 1.5::DECIMAL(3, 1))",
            2,
        ),
        (
            "SELECT count(*) FROM (VALUES (1.5::DECIMAL(3, 1))) t(x) WHERE x IN (SELECT 'inf'::DOUBLE UNION ALL SELECT 1.5)",
            1,
        ),
        (
            "SELECT count(*) FROM (VALUES ('nan'::DOUBLE)) t(x) WHERE (x IN (SELECT 1.5::DECIMAL(3, 1))) IS FALSE",
            1,
        ),
    ] {
        let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
        let found = frame.collect().await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), expected, "{sql}");
    }
}
