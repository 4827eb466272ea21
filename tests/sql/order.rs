//! Source order, whatever the number of partitions.

use super::*;

#[tokio::test]
async fn big_files_are_read_once_and_in_order_by_four_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.nrt");
    let n = 200_000;
    write(&path, &numbered(0, n));
    let ctx = four();
    batches(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 1048576").await.unwrap();
    let from = format!("FROM '{}'", show(&path));
    assert!(std::fs::metadata(&path).unwrap().len() > 4 << 20);
    let plan = text(&ctx, &format!("EXPLAIN SELECT id {from} WHERE id >= 0")).await;
    assert!(plan.contains("4 groups") || plan.contains("file_groups={4"), "{plan}");
    assert_eq!(one(&ctx, &format!("SELECT count(id) {from} WHERE id >= 0")).await, n as i64);
    let mut ids = ints(&ctx, &format!("SELECT id {from}")).await;
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..n as i64));
}
