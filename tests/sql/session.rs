//! The session: dialect, settings, paths in FROM.

use serrate::sql::{NrtNan, SerrateOptions, session};

use super::*;

#[tokio::test]
async fn unnest_in_from_works_beside_lambdas_and_arrays() {
    let ctx = session();
    assert_eq!(ints(&ctx, "SELECT * FROM unnest([3, 1, 2])").await, [3, 1, 2]);
    assert_eq!(ints(&ctx, "SELECT c FROM unnest([3, 1]) AS u(c)").await, [3, 1]);
    assert_eq!(ints(&ctx, "FROM unnest([5])").await, [5]);
    assert_eq!(ints(&ctx, "SELECT [1, 2, 3][2]").await, [2]);
    let doubled = "SELECT * FROM unnest(array_transform([1, 2], lambda v: v * 2))";
    assert_eq!(ints(&ctx, doubled).await, [2, 4]);
    let lateral = "SELECT u.c FROM (SELECT [7, 8] AS cs) t, LATERAL unnest(t.cs) AS u(c)";
    assert_eq!(ints(&ctx, lateral).await, [7, 8]);
}

#[tokio::test]
async fn from_alone_is_all_columns() {
    let ctx = session();
    ctx.sql("CREATE TABLE t AS SELECT 1 AS a, 2 AS b").await.unwrap().collect().await.unwrap();
    let all = batches(&ctx, "FROM t").await.unwrap();
    assert_eq!(all[0].num_columns(), 2);
    assert_eq!(text(&ctx, "FROM t WHERE a = 1").await, text(&ctx, "SELECT * FROM t").await);
}

#[tokio::test]
async fn settings_are_set_shown_and_checked() {
    let ctx = session();
    let of = |ctx: &SessionContext| SerrateOptions::of(ctx.state().config_options());
    assert_eq!(of(&ctx), SerrateOptions::default());
    for sql in [
        "SET serrate.nrt_nan = 'nan'",
        "SET serrate.mmap = false",
        "SET serrate.max_dense_bytes = '1GiB'",
        "SET serrate.leaf_batch_size = 17",
    ] {
        batches(&ctx, sql).await.unwrap();
    }
    let set = of(&ctx);
    assert_eq!((set.nrt_nan, set.mmap), (NrtNan::Nan, false));
    assert_eq!((set.max_dense_bytes, set.leaf_batch_size), (1 << 30, 17));
    assert!(text(&ctx, "SHOW serrate.leaf_batch_size").await.contains("17"));
    assert!(error(&ctx, "SET serrate.nrt_nan = 'zero'").await.contains("'null' or 'nan'"));
    assert!(error(&ctx, "SET serrate.nosuch = 1").await.contains("leaf_batch_size"));
}

#[tokio::test]
async fn a_path_that_is_none_says_so() {
    let ctx = session();
    let missing = error(&ctx, "SELECT * FROM 'nowhere/x.nrt'").await;
    assert!(missing.contains("nowhere/x.nrt") && missing.contains("no such file"), "{missing}");
    let table = error(&ctx, "SELECT * FROM nowhere").await;
    assert!(table.contains("table") && table.contains("nowhere"), "{table}");
}
