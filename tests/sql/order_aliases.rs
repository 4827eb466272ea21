//! ORDER BY where aliases have the names of columns: sort keys are aliases, aggregates read columns.

use super::*;

#[tokio::test]
async fn aggregates_in_order_by_read_columns_that_aliases_hide() {
    let setup = ["CREATE TABLE u AS SELECT * FROM (VALUES (1, 10), (1, 30), (2, 5)) v(id, k)"];
    let cases = [
        ("SELECT id, avg(k) AS k FROM u GROUP BY id ORDER BY avg(k)", "2 5.0; 1 20.0"),
        ("SELECT id, avg(k) AS k FROM u GROUP BY id ORDER BY avg(k) DESC LIMIT 1", "1 20.0"),
        (
            "SELECT id, sum(k) AS k, max(k) FROM u GROUP BY id ORDER BY max(k) DESC, 1",
            "1 40 30; 2 5 5",
        ),
        (
            "SELECT id, row_number() OVER (ORDER BY k) AS k FROM u ORDER BY row_number() OVER (ORDER BY k)",
            "2 1; 1 2; 1 3",
        ),
        ("SELECT id, avg(k) AS k FROM u GROUP BY id ORDER BY -avg(k)", "1 20.0; 2 5.0"),
        ("SELECT id, count(*) AS k FROM u GROUP BY id ORDER BY max(k)", "2 1; 1 2"),
        ("SELECT -k AS k, id FROM u ORDER BY u.k", "-5 2; -10 1; -30 1"),
        ("SELECT -k AS k FROM u ORDER BY u.k DESC LIMIT 1", "-30"),
        ("SELECT -k AS k FROM u ORDER BY k", "-30; -10; -5"),
        (
            "SELECT id, sum(k) OVER (ORDER BY k) AS k FROM u ORDER BY -sum(k) OVER (ORDER BY k)",
            "1 45; 1 15; 2 5",
        ),
        (
            "SELECT * FROM (SELECT -k AS k, id FROM u ORDER BY u.k LIMIT 2) ORDER BY 1",
            "-10 1; -5 2",
        ),
        ("SELECT k::VARCHAR FROM u ORDER BY k", "5; 10; 30"),
        ("SELECT DISTINCT k % 3 FROM u ORDER BY k % 3", "0; 1; 2"),
        ("SELECT DISTINCT id, (K % 3) FROM u ORDER BY u.id, k % 3 DESC", "1 1; 1 0; 2 2"),
        ("SELECT DISTINCT k > 9 AS big FROM u ORDER BY K > 9 DESC LIMIT 1", "true"),
        ("SELECT DISTINCT concat('A', id) FROM u ORDER BY concat('A', id) DESC", "A2; A1"),
        ("SELECT k::DOUBLE FROM u ORDER BY k DESC LIMIT 1", "30.0"),
        ("SELECT k::VARCHAR, id FROM u GROUP BY k, id ORDER BY k", "5 2; 10 1; 30 1"),
        ("SELECT id, sum(k)::VARCHAR FROM u GROUP BY id ORDER BY sum(k)", "2 5; 1 40"),
        ("SELECT id, sum(k)::VARCHAR FROM u GROUP BY id ORDER BY sum(k) LIMIT 1", "2 5"),
        ("SELECT id, max(k)::VARCHAR FROM u GROUP BY id ORDER BY -max(k)", "1 30; 2 5"),
        ("SELECT id, sum(k)::VARCHAR FROM u GROUP BY id ORDER BY sum(k)::VARCHAR", "1 40; 2 5"),
        ("SELECT k::VARCHAR AS k FROM u ORDER BY k", "10; 30; 5"),
        ("SELECT k::VARCHAR FROM u ORDER BY k, id", "5; 10; 30"),
        ("SELECT abs(k)::VARCHAR FROM u ORDER BY abs(k), id", "5; 10; 30"),
        ("SELECT abs(k)::VARCHAR, id FROM u ORDER BY u.id DESC, abs(k), 1", "5 2; 10 1; 30 1"),
        ("SELECT id, avg(k) AS k FROM u GROUP BY id ORDER BY avg(k), max(id)", "2 5.0; 1 20.0"),
        (
            "SELECT a.id, b.id, abs(a.k)::VARCHAR FROM u a JOIN u b ON a.k = b.k ORDER BY abs(a.k)",
            "2 2 5; 1 1 10; 1 1 30",
        ),
        (
            "SELECT k, sum(k) OVER (ORDER BY d RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s FROM (SELECT k, DATE '2020-01-01' + k::INT AS d FROM u) ORDER BY k",
            "5 5; 10 10; 30 30",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

const SWAPPED: &str = "SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY a";

/// ORDER BY sorts by aliases, also by an alias that is the name of another column.
#[tokio::test]
async fn order_by_sorts_by_swapped_aliases() {
    let setup = ["CREATE TABLE u AS SELECT * FROM (VALUES (30, 1), (10, 2), (20, 3)) v(k, id)"];
    let cases = [
        (SWAPPED, "1 30; 2 10; 3 20"),
        (
            "SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY b",
            "2 10; 3 20; 1 30",
        ),
        ("SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY 2 LIMIT 1", "2 10"),
        ("SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY 1 LIMIT 1", "1 30"),
        (
            "SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) x ORDER BY a DESC LIMIT 1",
            "3 20",
        ),
        (
            "SELECT DISTINCT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY a",
            "1 30; 2 10; 3 20",
        ),
        (
            "SELECT -b AS a, a + 1 AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY a, b",
            "-3 21; -2 11; -1 31",
        ),
        (
            "SELECT b AS a, count(*) AS b FROM (SELECT k AS a, id AS b FROM u) GROUP BY b ORDER BY a DESC",
            "3 1; 2 1; 1 1",
        ),
        (
            "SELECT b AS a, a AS b FROM (SELECT k AS a, id AS b FROM u) ORDER BY a + 0, b",
            "2 10; 3 20; 1 30",
        ),
        (
            "SELECT b AS a, -a AS b, a AS c FROM (SELECT k AS a, id AS b FROM u) ORDER BY b",
            "1 -30 30; 3 -20 20; 2 -10 10",
        ),
        ("SELECT id AS k, k AS id FROM u ORDER BY k", "1 30; 2 10; 3 20"),
    ];
    expect_rows(&setup, &cases).await;
}

/// When this test fails, `sql::statement::names::order_aliases` need not enclose swapped aliases.
#[tokio::test]
async fn stock_swapped_aliases_still_sort_by_the_other() {
    let ctx = SessionContext::new();
    let table = "CREATE TABLE u AS SELECT * FROM (VALUES (30, 1), (10, 2), (20, 3)) v(k, id)";
    ctx.sql(table).await.unwrap().collect().await.unwrap();
    assert_eq!(rows_of_stock(&ctx, SWAPPED).await, "2 10; 3 20; 1 30");
}

/// `sql::statement::names::order_aliases` can be removed once this test fails.
#[tokio::test]
async fn stock_keys_still_are_columns_of_select() {
    let ctx = SessionContext::new();
    let from = "FROM (VALUES (9, 'a'), (10, 'b')) v(x, g)";
    let texts = format!("SELECT sum(x)::VARCHAR {from} GROUP BY g ORDER BY sum(x)");
    assert_eq!(rows_of_stock(&ctx, &texts).await, "10; 9");
    assert!(ctx.sql(&format!("SELECT x::VARCHAR {from} ORDER BY x")).await.is_err());
}

#[tokio::test]
async fn stock_keys_of_distinct_are_still_refused() {
    let ctx = SessionContext::new();
    let keys = "SELECT DISTINCT x % 2 FROM (VALUES (9), (10)) v(x) ORDER BY x % 2";
    assert!(ctx.sql(keys).await.is_err());
}

async fn rows_of_stock(ctx: &SessionContext, sql: &str) -> String {
    to_rows(&stock_batches(ctx, sql).await.unwrap())
}
